// Checks the words and the citations of the repository: no declared name and no file name has a word that
// docs/glossary.md bans, no file cites a page outside the repository but public specifications, and what is
// cited inside it exists. Reads only. Exit 0: nothing found; 1: something found; 2: could not check.
//
//   node scripts/check-words.mjs            every finding, then a summary by word
//   node scripts/check-words.mjs --count    the summary alone

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { declaredNames } from './declared-names.mjs';

const ROOT = join(import.meta.dirname, '..');
const GLOSSARY = 'docs/glossary.md';
const NAMED = /^(?:src|test)\/.*\.ts$|^bench\/[^/]*\.m[jt]s$/;

/** The rows of the first table behind a line that begins with `start`, as the texts of their cells. */
function tableAfter(page, start) {
  const lines = page.split('\n');
  const from = lines.findIndex((line) => line.startsWith(start));
  if (from === -1) throw new Error(`${GLOSSARY} has no line "${start}"`);
  const first = lines.findIndex((line, index) => index > from && line.startsWith('|'));
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('|'));
  const rows = lines.slice(first + 2, end === -1 ? undefined : end);
  return rows.map((row) => row.split('|').slice(1, -1));
}

function inBackticks(cell = '') {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]);
}

/** The banned words of the first table: what stands in backticks in its first column. */
function readBanned(page) {
  return new Set(tableAfter(page, '### Banned in names').flatMap(([cell]) => inBackticks(cell)));
}

/** Of each name in a table of names that stay, the beginnings of the files in which it does. */
function readKept(page, start) {
  const rows = tableAfter(page, start);
  return new Map(rows.flatMap(([cell, , files]) => inBackticks(cell).map((name) => [name, inBackticks(files)])));
}

/** The words of a name: of `readHTTPBody2`, `MAX_ROWS` or `listing-pages`, in lower case. */
function wordsOf(name) {
  return (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());
}

function findNames(file, text, { banned, properties, exported }) {
  const found = [];
  for (const { name, line, isProperty } of declaredNames(text)) {
    const kept = isProperty ? properties : exported;
    if (kept.get(name)?.some((start) => file.startsWith(start))) continue;
    for (const word of wordsOf(name)) if (banned.has(word)) found.push({ word, text: `${file}:${line} ${name}` });
  }
  return found;
}

function findFileName(file, banned) {
  const words = wordsOf(basename(file)).filter((word) => banned.has(word));
  return words.map((word) => ({ word, text: `${file} (file name)` }));
}

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

const PAGE = /(?<![\w/.-])(?:docs\/[\w./-]+\.md|(?:ARCHITECTURE|CONTRIBUTING|SECURITY|README|CHANGELOG)\.md)\b/g;
const LINK = /\]\((?!https?:|mailto:|data:|javascript:)([^)\s#]+\.md)?(?:#([^)\s]*))?\)/g;
/** What may follow the name of a page: `#limits`, `rows 20 and 35`, `case 10`, `rules 3 and 10`, `"Bytes"`. */
const PART =
  /^(?:#[\w-]+|,? (?:§[\d.]*\d|(?:rows?|cases?|rules?|laws?) \d[\d,]*(?:(?: to | and |, |-)\d+)*|"[^"\n]+"|B\d+))+/;
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

/** The anchors of the headings of a page, as GitHub makes them. */
function anchorsOf(page) {
  const prose = page.replace(/^```[\s\S]*?^```/gm, '');
  const anchors = new Set();
  for (const [, title] of prose.matchAll(/^#+ (.*)$/gm)) {
    const text = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
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
  const sections = [...parts.matchAll(/§[\d.]*\d/g)].map(([section]) => section);
  const anchors = [...parts.matchAll(/#([\w-]+)/g)].map(([, anchor]) => anchor);
  const titles = [...parts.matchAll(/(?<!row )"([^"]+)"/g)].map(([, title]) => title);
  return [
    ...sections.map((section) => `${section} (name the heading: #its-anchor)`),
    ...anchors.filter((anchor) => !anchorsOf(page).has(anchor)).map((anchor) => `#${anchor}`),
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

function findBrokenLinks(file, text, read, exists) {
  return [...text.matchAll(LINK)].flatMap(([link, page, anchor]) => {
    if (page !== undefined && !exists(file, page)) return [`${file} links to a missing page: ${page}`];
    const target = page === undefined ? text : read(join(dirname(file), page));
    if (anchor === undefined || anchorsOf(target).has(anchor)) return [];
    return [`${file} links to a missing heading: ${link.slice(2, -1)}`];
  });
}

/** Every citation in `files` that leads out of the repository or nowhere. */
function checkCitations(files, read, exists) {
  return files
    .filter((file) => READ.test(file) && !SKIPPED.test(file))
    .flatMap((file) => {
      const text = read(file);
      const links = file.endsWith('.md') ? findBrokenLinks(file, text, read, exists) : [];
      return [...findOutside(file, text), ...findBroken(file, text, read, exists), ...links];
    });
}

function listFiles() {
  const args = ['ls-files', '-co', '--exclude-standard'];
  const listed = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\n');
  return listed.filter((file) => file !== '' && existsSync(join(ROOT, file)));
}

function summarize(names) {
  const counts = new Map();
  for (const { word } of names) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([word, count]) => `  ${word} ${count}`);
}

function main() {
  const isCount = process.argv.includes('--count');
  const page = readFileSync(join(ROOT, GLOSSARY), 'utf8');
  const banned = readBanned(page);
  const rules = {
    banned,
    properties: readKept(page, 'Public spellings that stay'),
    exported: readKept(page, 'Exports that stay'),
  };
  const files = listFiles();
  const read = (file) => readFileSync(join(ROOT, file), 'utf8');
  const named = files.filter((file) => NAMED.test(file));
  if (banned.size === 0 || named.length === 0) throw new Error('nothing to check');
  const names = named.flatMap((file) => [...findFileName(file, banned), ...findNames(file, read(file), rules)]);
  const citations = checkCitations(files, read, (from, path) =>
    existsSync(join(ROOT, from === undefined ? '' : dirname(from), path)),
  );
  if (!isCount) for (const { text } of names) console.log(text);
  if (!isCount) for (const one of citations) console.log(one);
  console.log(`${names.length} banned words in the names of ${named.length} files`);
  console.log(summarize(names).join('\n'));
  console.log(`${citations.length} citations of pages that are not here, in ${files.length} files`);
  return names.length + citations.length === 0 ? 0 : 1;
}

try {
  process.exitCode = main();
} catch (error) {
  console.error(`not checked: ${error.message}`);
  process.exitCode = 2;
}
