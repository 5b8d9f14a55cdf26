// Finds citations of pages that are not in the repository, and citations within it that lead nowhere: a page,
// section, row, case, rule or heading that does not exist. Public specifications may be cited and are not checked.

const READ = /\.(?:[cm]?[jt]s|md|ya?ml|json|sh|tpl|go|py|java)$|^\.ci\/run$/;
/** These name the patterns themselves, or are not ours. */
const SKIPPED = /^scripts\/|package-lock\.json$|^LICENSE$/;

/** How pages were cited that are not here. */
const OUTSIDE = [
  /(?<![/\w])[Cc]ontract(?:\.md)?,?\s+(?:(?:\*|\/\/)\s+)?(?:§\d+|laws? \d|deployment\b)/g,
  /\bmcp-spec\b/g,
  /(?<!reference\/)\b[Aa]ttacks?(?:\.md)? (?:\d|\$\{)/g,
  /(?<![/\w])[Aa]rchitecture(?: §\d|, ")/g,
  /'(?:[^'\n]*; )?(?:performance|libraries|lessons|scope|attack)[,:] [^'\n]*'(?=,)/g,
  /\bwhat follows \d|(?<=source:\s+'(?:[^'\n]*; )?)rows? \d/g,
];

const PAGE =
  /(?<![\w/.-])(?:docs\/[\w./-]+\.md|(?:ARCHITECTURE|CONTRIBUTING|SECURITY|README|CHANGELOG)\.md)\b/g;
const LINK = /\]\((?!https?:|mailto:|#|data:|javascript:)([^)\s#]+\.md)(?:#[^)]*)?\)/g;
/** What may follow the name of a page: `§6, rows 20 and 35`, `case 10`, `rules 3 and 10`, `"Bytes"`. */
const PART =
  /^(?:,? (?:§[\d.]*\d|(?:rows?|cases?|rules?|laws?) \d[\d,]*(?:(?: to | and |, |-)\d+)*|"[^"\n]+"|B\d+))+/;
/** Longer than any list of parts that is cited. */
const MAX_PART = 200;

function lineAt(text, index) {
  return text.slice(0, index).split('\n').length;
}

function findOutside(file, text) {
  const matches = OUTSIDE.flatMap((pattern) => [...text.matchAll(pattern)]);
  return matches.map((match) => {
    const cited = match[0].replace(/\s+/g, ' ');
    return `${file}:${lineAt(text, match.index)} cites a page that is not here: ${cited}`;
  });
}

/** The numbers of `20 and 35`, `5 to 17` and `12-14, 26`. */
function numbersOf(text) {
  return [...text.matchAll(/(\d+)(?:(?: to |-)(\d+))?/g)].flatMap(([, from, to = from]) =>
    Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => Number(from) + index),
  );
}

function hasHeading(page, test) {
  return page.split('\n').some((line) => line.startsWith('#') && test(line.replace(/^#+ /, '')));
}

function hasNumber(page, kind, number) {
  if (kind === 'law' || kind === 'rule') return new RegExp(`^${number}\\. `, 'm').test(page);
  return new RegExp(`^\\| ${number} \\|`, 'm').test(page);
}

function missingNumbers(page, parts) {
  const lists = parts.matchAll(/(row|case|rule|law)s? ((?:\d+(?: to | and |, |-)?)+)/g);
  return [...lists].flatMap(([, kind, list]) => {
    const missing = numbersOf(list).filter((number) => !hasNumber(page, kind, number));
    return missing.map((number) => `${kind} ${number}`);
  });
}

/** What of a citation is not on the page that it names. */
function missingParts(page, parts) {
  const plain = page.replaceAll('`', '');
  const sections = [...parts.matchAll(/§([\d.]*\d)/g)].map(([, section]) => section);
  const titles = [...parts.matchAll(/(?<!row )"([^"]+)"/g)].map(([, title]) => title);
  return [
    ...sections
      .filter((section) => !hasHeading(page, (title) => title.startsWith(`${section} `)))
      .map((section) => `§${section}`),
    ...titles.filter((title) => !plain.includes(title)).map((title) => `"${title}"`),
    ...missingNumbers(page, parts),
  ];
}

function findBroken(file, text, read, exists) {
  const joined = text.replace(/\n\s*(?:\/\/|\*|#) +/g, (gap) => ` ${' '.repeat(gap.length - 1)}`);
  return [...text.matchAll(PAGE)].flatMap((match) => {
    const where = `${file}:${lineAt(text, match.index)}`;
    if (!exists(undefined, match[0])) return [`${where} cites a missing page: ${match[0]}`];
    const end = match.index + match[0].length;
    const behind = joined.slice(end, end + MAX_PART).replace(/ +/g, ' ');
    const parts = PART.exec(behind)?.[0];
    if (parts === undefined) return [];
    const missing = missingParts(read(match[0]), parts);
    return missing.map((part) => `${where} cites what ${match[0]} does not have: ${part}`);
  });
}

function findBrokenLinks(file, text, exists) {
  return [...text.matchAll(LINK)]
    .filter((match) => !exists(file, match[1]))
    .map((match) => `${file}:${lineAt(text, match.index)} links to a missing page: ${match[1]}`);
}

/** Every citation in `files` that leads out of the repository or nowhere. */
export function checkCitations(files, read, exists) {
  return files
    .filter((file) => READ.test(file) && !SKIPPED.test(file))
    .flatMap((file) => {
      const text = read(file);
      const links = file.endsWith('.md') ? findBrokenLinks(file, text, exists) : [];
      return [...findOutside(file, text), ...findBroken(file, text, read, exists), ...links];
    });
}
