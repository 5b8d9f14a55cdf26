// Documents with active content, what renders them, and the trial of what is left of them.

import { HtmlRenderer, Parser } from 'commonmark';
import markdownIt from 'markdown-it';
import { marked } from 'marked';
import { micromark, type Options } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';
import { type DefaultTreeAdapterTypes, parseFragment } from 'parse5';
import { neutralize } from '../../src/inspection/detectors/active-content.js';
import { findMarkdownCode } from '../../src/inspection/detectors/markdown-code.js';
import { sanitizeText } from '../../src/inspection/detectors/text-sanitizer.js';
import { isSurelyClean } from '../../src/inspection/prefilter/prefilter.js';
import { inspectMessage } from '../../src/inspection/responses.js';
import { textResult, withRules } from '../unit/inspection/samples.js';
import type { Json } from './json.js';

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
const FENCES = ['```', '```', '```', '~~~', '````', '~~~~', '``` js', '```html', '~~~ `x`', '```x`'];
const AFTER_FENCES = ['', '', '', '', ' ', '\t', '\u00a0', '\u3000', '\u2028', '~', 'x', ' \u00a0', '\\'];
const TICKS = ['`', '`', '`', '`', '`', '``', '``', '```', '\\`'];
const BLANKS = [' ', ' ', ' ', '\t', '\n', '\r', '\f', '  ', '\u00a0', '\n> ', '\n>', '\n  '];
const MARKS = [
  ...['[', ']', '(', ')', '](', '][', '!', '![', '<', '>', '"', "'", '\\', '|', '*', '_', '~', '~~'],
  ...['-', '=', ':', '&', '#', '<b ', '<b>', '</b>', '<?', '?>', '<!', '<!x ', '<!--', '-->'],
  ...['<![CDATA[', ']]>', '<div>', '</div>', '<div', '<pre>', '</pre>', '<a', '<p ', '<details>'],
  ...['<b x="', "<b x='", '">', "'>", '<b\n', '<B\t', '---', '===', '|-|', '|-|-|', '[^1]', '$'],
  ...[']: ', ']:', '[a]: ', '[a]', '[a][a]', '<http://a.b', '<a@b.c>', '@', '{', '}', '/', '/>'],
];
const LITERALS = [
  ...['http://a.example/', 'https://a.example', 'www.a.example', 'www.a.example/', 'a@b.example'],
  ...['ftp://a.example/', 'HTTP://A.example/(', 'mailto:a@b.example', 'xmpp:a@b.example/', 'b.com/'],
];
const TERMS = ['a', 'b', 'x', 'word', 'two words', '1', '\u00e9', '\u4e2d', '.', ',', 'A.', '\u00a0'];
const COLONS = [':', ':', ':', '&colon;', '&#58;', '&#x3a;', '&#0058', '&#x3A', '%3a', '\\:'];
const SCRIPTS = ['javascript', 'JavaScript', 'vbscript', 'java&Tab;script', 'java&NewLine;script', 'data'];
const SCRIPT_STARTS = ['', '', '', ' ', '\t', '\u0001', '&#1;', '&Tab;', '&#106;', '\n> ', '\n', '<', '\\'];
const EVENTS = ['onclick', 'onload', 'ONERROR', 'onmouseover'];
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
  ...['form', 'base', 'embed', 'source', 'image', 'use', 'input', 'button', 'textarea', 'title'],
];
const NAMES = ['b', 'a', 'p', 'div', 'td', 'details', 'x-y', 'B', 'center', 'section'];
const EQUALS = ['=', '=', '=', ' =', '= ', `${' '.repeat(20)}=`, '\n=', '\t=\n', '/=', '\f='];
const MARKS_OF_QUERY = ['?', '?', '#', '&quest;', '&num;', '&#63;', '\\?'];

const ELSEWHERE = [
  ...['//e.example/x', '<https://e.example/x y>', ' https://e.example/x ', 'https://e.example/x "t"'],
  ...['x', '/\\e.example/x', '\\\\e.example\\x', '/\t/e.example/x', 'https&colon;//e.example', '&#47;/e.example'],
];
const LOADING = [
  ...['src', 'srcset', 'href', 'xlink:href', 'data', 'poster', 'background', 'action', 'ping', 'formaction'],
];

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
  random.pick([script, script, leak, (one: Random) => one.pick(LITERALS), () => 'x', () => '#a'])(random);

const quoted: Rule = (random) => {
  const quote = random.pick(['"', "'", '', '"', "'"]);
  return `${quote}${random.pick([target(random), random.pick(MARKS), random.pick(TERMS)])}${quote}`;
};

const attribute: Rule = (random) =>
  random.pick([
    () => `${random.pick(EVENTS)}${random.pick(EQUALS)}${quoted(random)}`,
    () => `href${random.pick(EQUALS)}${quoted(random)}`,
    () => `${random.pick(LOADING)}${random.pick(EQUALS)}${random.pick(['"', "'", ''])}${random.pick(ELSEWHERE)}`,
    () => `style${random.pick(EQUALS)}"a:url(${random.pick(ELSEWHERE)})"`,
    () => `rel="stylesheet"`,
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
    () => `![${random.pick(['a', '`', ']', '\\]', '[b]', '\n'])}](${random.pick(ELSEWHERE)})`,
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

const halfFence: Rule = (random) => `\n${prefix(random)}${random.pick(FENCES)}${random.pick(AFTER_FENCES)}\n`;

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
  ...[image, image, image, link, link, definition, tag, tag, fence, fence, halfFence, span, span, span],
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

// What a client makes of a text: four Markdown renderers with raw HTML and bare links switched on, and an
// HTML parser that tells what the page would load, run or link to.

const linking = markdownIt({ html: true, linkify: true });
// Renderers that check targets are the exception: what the gateway lets pass must not need it.
linking.validateLink = () => true;
const parser = new Parser();
const renderer = new HtmlRenderer({ safe: false });
const micromarkOptions: Options = {
  allowDangerousHtml: true,
  allowDangerousProtocol: true,
  extensions: [gfm()],
  htmlExtensions: [gfmHtml()],
};

export type Renderers = ReadonlyMap<string, (text: string) => string>;

export const RENDERERS: Renderers = new Map([
  ['markdown-it', (text) => linking.render(text)],
  ['marked', (text) => marked.parse(text, { async: false, gfm: true })],
  ['commonmark', (text) => renderer.render(parser.parse(text))],
  ['micromark', (text) => micromark(text, micromarkOptions)],
]);

/** Tags that renderers write of their own and that carry nothing: the quick way past the parser. */
const PLAIN_TAG =
  /<\/?(?:p|em|strong|code|pre|ul|ol|li|blockquote|h[1-6]|del|b|div|table|thead|tbody|tr|th|td|s)>|<(?:hr|br)(?: \/)?>|<a href="(?:https?:\/\/|#)?[\w./%-]*">|<\/a>/g;

/** What a page of this HTML would do; empty where it only shows text, ordinary links and what is relative. */
export function effectsOf(html: string): readonly string[] {
  if (!html.replace(PLAIN_TAG, '').includes('<')) return [];
  const effects: string[] = [];
  collect(parseFragment(html, { sourceCodeLocationInfo: true }), effects);
  return effects;
}

/** What any of the renderers makes of the text. */
export function effectsOfText(text: string, renderers = RENDERERS): readonly string[] {
  const effects: string[] = [];
  for (const [name, render] of renderers) {
    for (const effect of effectsOf(render(text))) effects.push(`${name}: ${effect}`);
  }
  return effects;
}

function collect(node: DefaultTreeAdapterTypes.ParentNode, effects: string[]): void {
  const open: DefaultTreeAdapterTypes.ParentNode[] = [node];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    for (const child of one.childNodes) {
      if (!('tagName' in child)) continue;
      checkElement(child, effects);
      open.push(child);
      if ('content' in child) open.push(child.content);
    }
  }
}

/** What a browser fetches by an attribute. */
const LOADED: Readonly<Record<string, readonly string[]>> = {
  ...{ img: ['src', 'srcset'], image: ['href', 'xlink:href'], source: ['src', 'srcset'] },
  ...{
    iframe: ['src'],
    frame: ['src'],
    embed: ['src'],
    object: ['data'],
    script: ['src', 'href', 'xlink:href'],
  },
  ...{
    audio: ['src'],
    video: ['src', 'poster'],
    track: ['src'],
    bgsound: ['src'],
    portal: ['src'],
  },
  ...{
    use: ['href', 'xlink:href'],
    feimage: ['href', 'xlink:href'],
    base: ['href'],
    form: ['action'],
  },
  ...{
    button: ['formaction'],
    input: ['formaction'],
    body: ['background'],
    table: ['background'],
    td: ['background'],
  },
};
const FRAMES: ReadonlySet<string> = new Set(['iframe', 'frame', 'embed', 'object', 'script']);
const LOADING_LINK = /stylesheet|icon|preload|prefetch|preconnect|manifest|prerender/i;
const HANDLER = /^on(?:click|load|error|mouse\w+|focus\w*|key\w+|toggle|begin|start|pointer\w+|animation\w+)$/;
const DATA_SCRIPT = /json|template/i;
const STYLE_LOADS = /(?:url\(|@import|image-set\()\s*["']?\s*(?:[a-z]+:)?[\\/]{2}/i;

/** Whether the address is that of another origin for a page, or of another host for a file. */
export function leadsElsewhere(target: string): boolean {
  if (/^(?:data|about|attachment|cid):/i.test(target.replace(/[\t\n\r]/g, '').trimStart())) return false;
  const read = (base: string): URL | undefined => (URL.canParse(target, base) ? new URL(target, base) : undefined);
  const onPage = read('https://host.example/a/b');
  const inFile = read('file:///a/b');
  return (
    (onPage !== undefined && onPage.origin !== 'https://host.example') ||
    (inFile !== undefined && (inFile.protocol !== 'file:' || inFile.host !== ''))
  );
}

function checkElement(element: DefaultTreeAdapterTypes.Element, effects: string[]): void {
  const tagName = element.tagName.toLowerCase();
  const attrs = new Map(
    element.attrs.map(({ name, prefix, value }) => [(prefix ? `${prefix}:${name}` : name).toLowerCase(), value]),
  );
  if (tagName === 'script') checkScript(element, attrs, effects);
  if (tagName === 'style' && STYLE_LOADS.test(textOf(element))) effects.push('<style> that loads');
  if (tagName === 'link' && LOADING_LINK.test(attrs.get('rel') ?? '') && leadsElsewhere(attrs.get('href') ?? ''))
    effects.push('<link> that loads');
  if (tagName === 'meta' && /refresh/i.test(attrs.get('http-equiv') ?? '')) effects.push('<meta>');
  if (tagName === 'form' && /post/i.test(attrs.get('method') ?? '')) effects.push('<form> that posts');
  for (const name of LOADED[tagName] ?? []) {
    const value = attrs.get(name) ?? '';
    const targets = name === 'srcset' ? value.split(/[\s,]+/) : [value];
    if (targets.some(leadsElsewhere)) effects.push(`<${tagName} ${name}=>`);
    if (FRAMES.has(tagName) && /^\s*(?:data|javascript):/i.test(value)) effects.push(`<${tagName} ${name}=data>`);
  }
  for (const [name, value] of attrs) {
    if (name === 'href' || name === 'xlink:href') {
      if (!['link', 'image', 'feimage'].includes(tagName)) checkLink(value, effects);
    } else if (name === 'srcdoc' && value !== '') effects.push('srcdoc=');
    else if (HANDLER.test(name) && value !== '') effects.push(`${name}=`);
    else if (name === 'style' && STYLE_LOADS.test(value)) effects.push('style= that loads');
    else if (name === 'ping' && ['a', 'area'].includes(tagName) && leadsElsewhere(value)) effects.push('ping=');
  }
}

/** A script runs where its end is read; one that is data never does. */
function checkScript(
  element: DefaultTreeAdapterTypes.Element,
  attrs: ReadonlyMap<string, string>,
  effects: string[],
): void {
  if (DATA_SCRIPT.test(attrs.get('type') ?? '') && !attrs.has('src')) return;
  const isClosed = element.sourceCodeLocation?.endTag !== undefined;
  if (isClosed || leadsElsewhere(attrs.get('src') ?? '')) effects.push('<script>');
}

function textOf(element: DefaultTreeAdapterTypes.Element): string {
  return element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
}

function checkLink(target: string, effects: string[]): void {
  if (!URL.canParse(target, 'https://host.example/')) return;
  const { protocol, pathname } = new URL(target, 'https://host.example/');
  const isDocument = protocol === 'data:' && /^\s*(?:text\/html|image\/svg|[\w.+/-]*xml)/i.test(pathname);
  if (/^(?:java|vb|live)script:$/.test(protocol) || isDocument) effects.push(`link to ${protocol}`);
}

// Runs random documents through the content inspection and looks at what a client would make of what is
// let pass. The sanitizer and the prefilter are each judged by themselves.

/** Nothing but active content is looked for: the rest takes most of the time. */
const profile = withRules({
  secrets: 'off',
  pii: { action: 'off', kinds: [] },
  injection: 'off',
});

export type Trial = {
  readonly documents: number;
  readonly passed: number;
  readonly changed: number;
  readonly withheld: number;
  /** Documents that did something after all: by whom they were let pass, what they did, and what they are. */
  readonly failures: readonly string[];
};

/** Texts of one result as clients join them. */
export const GLUES = ['', ' ', '\n', '\n\n'] as const;
const MAX_FAILURES = 20;

/** A document goes to one renderer after the other in turn where time is short, else to each of them. */
export type Thoroughness = 'in-turn' | 'each';

/** Writes the texts of one random result. */
export type Write = (random: Random) => readonly string[];

export function tryDocuments(seed: number, documents: number, how: Thoroughness, write: Write = writeDocument): Trial {
  const random = createRandom(seed);
  const failures: string[] = [];
  const alone: readonly Renderers[] = [...RENDERERS].map((one) => new Map([one]));
  const count = { clean: 0, changed: 0, withhold: 0 };
  for (let done = 0; done < documents && failures.length < MAX_FAILURES; done++) {
    const texts = write(random);
    const renderers = how === 'each' ? RENDERERS : (alone[done % alone.length] ?? RENDERERS);
    count[tryDocument({ random, renderers, failures }, texts)]++;
  }
  return {
    documents,
    passed: count.clean,
    changed: count.changed,
    withheld: count.withhold,
    failures,
  };
}

type Bench = {
  readonly random: Random;
  readonly renderers: Renderers;
  readonly failures: string[];
};

function tryDocument(bench: Bench, texts: readonly string[]): 'clean' | 'changed' | 'withhold' {
  const { random, failures } = bench;
  const message = textResult(...texts);
  const outcome = inspectMessage({ ...message, profile });
  const left = outcome.kind === 'changed' ? textsOf(outcome.value) : texts;
  // A client may show the texts apart, or as one.
  const shown = left.length === 1 ? left[0] : random.pick([left[0], ...GLUES.map((glue) => left.join(glue))]);
  if (outcome.kind !== 'withhold') report(bench, 'inspection', texts, shown ?? '');
  for (const text of texts) {
    if (outcome.kind === 'withhold') {
      const alone = sanitizeText(text, profile.result, { name: undefined, reading: 'markdown' });
      report(bench, 'sanitizer', texts, alone.text);
    }
    if (isSurelyClean(text) && neutralize(text, findMarkdownCode).text !== text) {
      failures.push(`prefilter: calls clean what is changed: ${asAscii(text)}`);
    }
  }
  return outcome.kind;
}

function report(bench: Bench, by: string, texts: readonly string[], shown: string): void {
  const found = effectsOfText(shown, bench.renderers);
  if (found.length === 0) return;
  bench.failures.push(`${by}: ${found.join(', ')}\n  of ${asAscii([...texts])}\n  in ${asAscii(shown)}`);
}

/** As JSON, in ASCII. */
function asAscii(value: Json): string {
  return JSON.stringify(value).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function textsOf(message: Json): readonly string[] {
  const { result } = message as { result: { content: { text: string }[] } };
  return result.content.map(({ text }) => text);
}
