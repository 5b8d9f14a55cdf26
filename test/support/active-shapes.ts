// Random documents of a few shapes in which active content was once let pass: lines of odd blanks around
// fences and in code spans, texts that a client joins to one, links in links, and addresses that go on over
// tags and links. Denser than the documents of the general grammar, and as repeatable.

import type { Random } from './active-content.js';

const PAYLOADS = [
  '<iframe src=//e.example>',
  '<img src=https://e.example/p>',
  '![a](https://e.example/p.png)',
  '![a][a]',
  '<b onclick=x>',
  '[a](javascript:x)',
];
const TICKS = ['`', '`', '``', '```', '````', '~~~', '\\`'];
const ODD_LINES = [
  '\n\u00a0\n',
  '\n\u3000\n',
  '\n\n\u00a0\n',
  '\n\u2028\n',
  '\n\f\n',
  '\n\v\n',
  '\n\t\n',
  '\n\u0085\n',
  '\r\r',
  '\n\u200b\n',
  '\n',
  '\n\n',
];
const BETWEEN = ['', '', ' ', '\n', 'x', 'js', '\u00a0', '[a]: /b', '|', '> ', '- '];

const ADDRESSES = [
  'https://a.example/',
  'HTTP://a.example/(',
  'ftp://a.example/',
  '//a.example/',
  'www.a.example/',
  'www.a.com/',
  'see https://a.example',
];
const PAIRS = [
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['<', '>'],
  ['[a](', ')'],
  ['[a](<', '>)'],
  ['<b title="', '">'],
] as const;
const INNER = [
  '<b>',
  '</b>',
  '</pre>',
  '<',
  '<#a>',
  '/x',
  '#a',
  '`',
  '\\',
  '|',
  'https://b.example/',
  '<https://b.example/>',
  'www.b.example',
  'javascript:x',
  '&#106;',
  '\u00e9',
  '\ufeff',
];
const MARKS = ['?', '#', '&quest;', '&#63;', '\\?', '?<', '(?', '@'];

/** Clients join texts with these, and more. */
const MAX_TEXTS = 4;

function oddFence(random: Random): string {
  let text = '';
  for (let count = 2 + random.below(5); count > 0; count--) {
    text += random.pick(TICKS);
    text += random.pick([random.pick(BETWEEN), random.pick(PAYLOADS), random.pick(ODD_LINES)]);
    if (random.below(2) === 0) text += random.pick(ODD_LINES);
  }
  return text;
}

function wrapped(random: Random, depth: number): string {
  const [open, close] = random.pick(PAIRS);
  const inner = depth > 0 && random.below(2) === 0 ? wrapped(random, depth - 1) : '';
  return `${open}${inner}${random.pick(INNER)}${random.below(5) === 0 ? '' : close}`;
}

function longAddress(random: Random): string {
  let text = `${random.pick(['', '', 'x ', '(', '[', '"', '<b>', '\u00a0'])}${random.pick(ADDRESSES)}`;
  for (let count = random.below(4); count > 0; count--) text += wrapped(random, 2);
  const first = random.below(106);
  const query = `${'q'.repeat(first)}${random.below(2) === 0 ? wrapped(random, 1) : ''}${'q'.repeat(105 - first)}`;
  const user = random.below(6) === 0 ? `${random.pick(INNER)}@e.example/` : '';
  return `${text}${user}${random.pick(MARKS)}${query}${random.below(3) === 0 ? wrapped(random, 1) : ''}`;
}

function linkInLink(random: Random): string {
  const inner = wrapped(random, 2);
  const target = random.pick([random.pick(INNER), wrapped(random, 1), longAddress(random)]);
  return random.pick([
    `[${inner}](${target})`,
    `[a](${inner}${target})`,
    `![${inner}](${target})`,
    `${random.pick(ADDRESSES)}[${inner}](${target})${inner}`,
    `[a]: ${target}\n[${inner}][a]`,
  ]);
}

const CONSTRUCTS = [
  ['[a](', ')'],
  ['[a](x "', '")'],
  ['[a](<', '>)'],
  ['[a][', ']'],
  ['<b x="', '">'],
  ["<b x='", "'>"],
  ['<!A ', '>'],
  ['<?x ', '?>'],
  ['a <![CDATA[', ']]>'],
  ['`', '`'],
  ['~~', '~~'],
  ['*', '*'],
  ['<ab:', '>'],
] as const;
const LINES = ['', '', '> ', '- ', '# ', '[^1]: ', '[b]: y', 'x\n[b]: y', '[b]: /y\n', '| a |\n|-|\n| '];
const NEXT_LINES = ['\n', '\n', '\n> ', '\n  ', '\r', '\n===\n'];
const SIGNS = ['', ' ', 'x', '<', '"', "'", '>', ')', ']', '|', '~', '*'];
const LEAKS = ['https://user@e.example/', 'https://a.example\\x@e.example/', 'www.user@e.example'];

/** A construct that ends in a code span of the next line, or in a tag or a link that holds an address. */
function overlap(random: Random): string {
  const [open, close] = random.pick(CONSTRUCTS);
  const line = random.pick(LINES);
  const sign = random.pick(SIGNS);
  const leak = random.pick(LEAKS);
  const payload = random.pick(PAYLOADS);
  const body = random.pick([
    `${random.pick(NEXT_LINES)}\`${close}${payload}\``,
    `<b title="${sign}${close}${random.pick(SIGNS)}${leak}${random.pick(['">', '"', '" \'>'])}`,
    `[a${sign}${close}](https://a.example/)?${'q'.repeat(105)}`,
    `${leak}${sign}${close}`,
  ]);
  return `${line}${open}${random.pick(SIGNS)}${body}${random.pick(SIGNS)}`;
}

/** The texts of one result. */
export function writeShape(random: Random): readonly string[] {
  const piece = (): string => random.pick([oddFence, oddFence, longAddress, linkInLink, overlap])(random);
  const kind = random.below(4);
  if (kind < 2) return [piece() + (random.below(3) === 0 ? piece() : '')];
  if (kind === 2) {
    const texts: string[] = [];
    for (let count = 2 + random.below(MAX_TEXTS - 1); count > 0; count--) {
      texts.push(
        random.pick([
          random.pick(TICKS) + random.pick([...ODD_LINES, ...BETWEEN]),
          random.pick(TICKS) + random.pick(PAYLOADS),
          oddFence(random),
        ]),
      );
    }
    return texts;
  }
  const text = piece();
  const cut = random.below(text.length + 1);
  return [text.slice(0, cut), text.slice(cut)];
}
