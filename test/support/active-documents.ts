// Random Markdown documents for the test of active content: a small grammar whose words are markup, odd
// blanks, line ends, containers, references and harmful payloads. The same seed gives the same documents.

export type Random = { below(limit: number): number; pick<T>(from: readonly T[]): T };

/** A generator of numbers (mulberry32): small, fast, and the same everywhere. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (limit: number): number => next() % limit;
  return {
    below,
    pick: (from) => {
      const one = from[below(from.length)];
      if (one === undefined) throw new Error('nothing to pick from');
      return one;
    },
  };
}

const LINE_ENDS = ['\n', '\n', '\n', '\n', '\n\n', '\n\n', '\r\n', '\r', '\n \n', '\n\t\n'];
const ODD_LINE_ENDS = ['\n\u00a0\n', '\n\u3000\n', '\u2028', '\n\u2028\n', '\u0085', '\n>\n', '\v'];
const PREFIXES = [
  ...['> ', '>', '- ', '* ', '1. ', '   ', '    ', '\t', ' ', '>> ', '- - ', '  - ', '[^1]: '],
  ...['# ', '+ ', '\ufeff', '\u00a0', '- [ ] ', '> - ', '10) ', '>\t', '     '],
];
const FENCES = [
  '```',
  '```',
  '```',
  '~~~',
  '````',
  '~~~~',
  '``` js',
  '```html',
  '~~~ `x`',
  '```x`',
];
const AFTER_FENCES = [
  '',
  '',
  '',
  '',
  ' ',
  '\t',
  '\u00a0',
  '\u3000',
  '\u2028',
  '~',
  'x',
  ' \u00a0',
  '\\',
];
const TICKS = ['`', '`', '`', '`', '`', '``', '``', '```', '\\`'];
const BLANKS = [' ', ' ', ' ', '\t', '\n', '\r', '\f', '  ', '\u00a0', '\n> ', '\n>', '\n  '];
const MARKS = [
  ...[
    '[',
    ']',
    '(',
    ')',
    '](',
    '][',
    '!',
    '![',
    '<',
    '>',
    '"',
    "'",
    '\\',
    '|',
    '*',
    '_',
    '~',
    '~~',
  ],
  ...['-', '=', ':', '&', '#', '<b ', '<b>', '</b>', '<?', '?>', '<!', '<!x ', '<!--', '-->'],
  ...['<![CDATA[', ']]>', '<div>', '</div>', '<div', '<pre>', '</pre>', '<a', '<p ', '<details>'],
  ...['<b x="', "<b x='", '">', "'>", '<b\n', '<B\t', '---', '===', '|-|', '|-|-|', '[^1]', '$'],
  ...[']: ', ']:', '[a]: ', '[a]', '[a][a]', '<http://a.b', '<a@b.c>', '@', '{', '}', '/', '/>'],
];
const LITERALS = [
  ...['http://a.example/', 'https://a.example', 'www.a.example', 'www.a.example/', 'a@b.example'],
  ...[
    'ftp://a.example/',
    'HTTP://A.example/(',
    'mailto:a@b.example',
    'xmpp:a@b.example/',
    'b.com/',
  ],
];
const TERMS = [
  'a',
  'b',
  'x',
  'word',
  'two words',
  '1',
  '\u00e9',
  '\u4e2d',
  '.',
  ',',
  'A.',
  '\u00a0',
];
const COLONS = [':', ':', ':', '&colon;', '&#58;', '&#x3a;', '&#0058', '&#x3A', '%3a', '\\:'];
const SCRIPTS = [
  'javascript',
  'JavaScript',
  'vbscript',
  'java&Tab;script',
  'java&NewLine;script',
  'data',
];
const SCRIPT_STARTS = [
  '',
  '',
  '',
  ' ',
  '\t',
  '\u0001',
  '&#1;',
  '&Tab;',
  '&#106;',
  '\n> ',
  '\n',
  '<',
  '\\',
];
const EVENTS = ['onclick', 'onload', 'ONERROR', 'onmouseover', 'style', 'background'];
const ELEMENTS = [
  'img',
  'script',
  'iframe',
  'svg',
  'object',
  'IMG',
  'link',
  'style',
  'video',
  'meta',
];
const NAMES = ['b', 'a', 'p', 'div', 'td', 'details', 'x-y', 'B', 'center', 'section'];
const EQUALS = ['=', '=', '=', ' =', '= ', `${' '.repeat(20)}=`, '\n=', '\t=\n', '/=', '\f='];
const MARKS_OF_QUERY = ['?', '?', '#', '&quest;', '&num;', '&#63;', '\\?'];

type Rule = (random: Random) => string;

const script: Rule = (random) => {
  const name = random.pick(SCRIPTS);
  const body = name === 'data' ? 'text/html,x' : 'alert(1)';
  const start = random.pick(SCRIPT_STARTS);
  // The reference stands for the first letter.
  const own = start === '&#106;' ? 'avascript' : name;
  return `${start}${own}${random.pick(COLONS)}${body}`;
};

const leak: Rule = (random) =>
  random.pick([
    () => `https://user@e.example/${random.pick(TERMS)}`,
    () => `https://e.example/${random.pick(MARKS_OF_QUERY)}${'q'.repeat(105)}`,
    () => `//user@e.example/`,
    () => `www.e.example/${random.pick(MARKS_OF_QUERY)}${'q'.repeat(105)}`,
    () => 'https://a.example&commat;e.example/',
  ])();

const target: Rule = (random) =>
  random.pick([script, script, leak, (one: Random) => one.pick(LITERALS), () => 'x', () => '#a'])(
    random,
  );

const quoted: Rule = (random) => {
  const quote = random.pick(['"', "'", '', '"', "'"]);
  return `${quote}${random.pick([target(random), random.pick(MARKS), random.pick(TERMS)])}${quote}`;
};

const attribute: Rule = (random) =>
  random.pick([
    () => `${random.pick(EVENTS)}${random.pick(EQUALS)}${quoted(random)}`,
    () => `href${random.pick(EQUALS)}${quoted(random)}`,
    () => `title${random.pick(EQUALS)}${quoted(random)}`,
    () => random.pick(['x', 'class', '"', "'", '/', '=', '`', random.pick(MARKS)]),
  ])();

const tag: Rule = (random) => {
  const name = random.below(3) === 0 ? random.pick(ELEMENTS) : random.pick(NAMES);
  let text = `<${name}`;
  for (let count = random.below(4); count > 0; count--) {
    text += `${random.pick([...BLANKS, '/'])}${attribute(random)}`;
  }
  return `${text}${random.pick(['>', '>', '>', ' >', '/>', '', '\n>', '\n\n'])}`;
};

const image: Rule = (random) =>
  random.pick([
    () => '![a](https://e.example/p.png)',
    () =>
      `![${random.pick(['a', '`', ']', '\\]', '[b]', '\n'])}](${random.pick(['x', '<x y>', ' x ', 'x "t"'])})`,
    () => '![a][a]',
    () => '![a]',
    () => '![x](//e.example/`p`)',
  ])();

const link: Rule = (random) =>
  random.pick([
    () => `[${random.pick(['a', '`', '\\]', '`a`', '![x](y)'])}](${target(random)})`,
    () => `[a](${random.pick(BLANKS)}${target(random)}${random.pick(['', ' "t"', " 't", ' (t)'])})`,
    () => `[a](<${target(random)}>)`,
    () => `[a](${random.pick(['`', '<`>', '"`"', 'x "`', '(`)', '\n`'])})`,
    () => `[a][${random.pick(['`', 'a', '\\', ''])}]`,
    () => `<${target(random)}>`,
  ])();

const definition: Rule = (random) =>
  `\n${random.pick(['', '', '> ', '   ', '- ', '[^1]: ', '> > > > > > '])}[${random.pick(['a', 'a', 'A', '\\]', 'a\nb', '`'])}]:${random.pick(['', ' ', '\n', '\t', '\n> ', ' '.repeat(70)])}${random.pick(['', '<'])}${target(random)}${random.pick(['', '', '>', ' "t"', ' "', " '\n", '\n"'])}\n`;

const fence: Rule = (random) => {
  const open = random.pick(FENCES);
  const close = random.below(3) === 0 ? random.pick(FENCES) : open.replace(/[^`~].*$/, '');
  const body = random.pick([() => image(random), () => tag(random), () => random.pick(MARKS)])();
  return `\n${prefix(random)}${open}\n${body}\n${prefix(random)}${close}${random.pick(AFTER_FENCES)}\n`;
};

const halfFence: Rule = (random) =>
  `\n${prefix(random)}${random.pick(FENCES)}${random.pick(AFTER_FENCES)}\n`;

const span: Rule = (random) => {
  const ticks = random.pick(TICKS);
  const before = random.below(3) === 0 ? random.pick([...LITERALS, ...MARKS]) : '';
  const body = random.pick([() => image(random), () => tag(random), () => random.pick(MARKS)])();
  return `${before}${ticks}${body}${random.below(4) === 0 ? random.pick(TICKS) : ticks}`;
};

const table: Rule = (random) =>
  `\n| a | b |\n|---|---|\n| ${random.pick(TICKS)} ${image(random)} | ${random.pick(TICKS)} ${random.pick(MARKS)} |\n`;

const lineEnd: Rule = (random) => random.pick(random.below(6) === 0 ? ODD_LINE_ENDS : LINE_ENDS);

const RULES: readonly Rule[] = [
  ...[
    image,
    image,
    image,
    link,
    link,
    definition,
    tag,
    tag,
    fence,
    fence,
    halfFence,
    span,
    span,
    span,
  ],
  ...[script, leak, table, lineEnd, lineEnd, lineEnd, lineEnd, lineEnd],
  ...[TICKS, TICKS, TICKS, MARKS, MARKS, MARKS, MARKS, MARKS, TERMS, TERMS, LITERALS, BLANKS].map(
    (from): Rule =>
      (random) =>
        random.pick(from),
  ),
];

function prefix(random: Random): string {
  return random.below(4) === 0 ? random.pick(PREFIXES) : '';
}

function writeText(random: Random): string {
  let text = prefix(random);
  for (let count = 1 + random.below(9); count > 0; count--) {
    const piece = random.pick(RULES)(random);
    text += piece;
    if (/[\n\r]$/.test(piece)) text += prefix(random);
  }
  return text;
}

/** The texts of one result: mostly one, else two or three, of which some are one text cut in pieces. */
export function writeDocument(random: Random): readonly string[] {
  const kind = random.below(10);
  if (kind < 6) return [writeText(random)];
  if (kind < 8) return [writeText(random), writeText(random)];
  const complete = writeText(random);
  const cut = random.below(complete.length + 1);
  const rest = complete.slice(cut);
  const again = random.below(rest.length + 1);
  return kind === 8
    ? [complete.slice(0, cut), rest]
    : [complete.slice(0, cut), rest.slice(0, again), rest.slice(again)];
}
