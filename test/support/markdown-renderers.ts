// What a client makes of a text: four Markdown renderers with raw HTML and bare links switched on, and an
// HTML parser that tells what the page would load, run or link to.

import { HtmlRenderer, Parser } from 'commonmark';
import markdownIt from 'markdown-it';
import { marked } from 'marked';
import { micromark, type Options } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';
import { type DefaultTreeAdapterTypes, parseFragment } from 'parse5';

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

/** What a page of this HTML would do; empty where it only shows text and ordinary links. */
export function effectsOf(html: string): readonly string[] {
  if (!html.replace(PLAIN_TAG, '').includes('<')) return [];
  const effects: string[] = [];
  collect(parseFragment(html), effects);
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

const ACTING: ReadonlySet<string> = new Set(
  (
    'script style iframe frame frameset object embed applet img image picture source audio video track ' +
    'svg math link meta base form button textarea select portal bgsound layer ilayer noscript plaintext ' +
    'xmp marquee template'
  ).split(' '),
);
const LOADING =
  /^(?:on.*|src|srcset|imagesrcset|srcdoc|style|background|poster|action|formaction|ping|lowsrc|dynsrc|data|manifest|codebase|attributionsrc)$/;
/** What renderers of tables and task lists write of their own. */
const OWN_STYLE = /^text-align: ?(?:left|right|center);?$/;
const OWN_INPUT: ReadonlySet<string> = new Set(['type', 'disabled', 'checked']);

function checkElement(element: DefaultTreeAdapterTypes.Element, effects: string[]): void {
  const { tagName, attrs } = element;
  if (ACTING.has(tagName)) effects.push(`<${tagName}>`);
  if (tagName === 'input') {
    const isOwn = attrs.every(({ name }) => OWN_INPUT.has(name));
    if (!isOwn || !attrs.some(({ value }) => value === 'checkbox')) effects.push('<input>');
  }
  for (const { name, value } of attrs) {
    if (name === 'href') checkLink(value, effects);
    else if (value !== '' && LOADING.test(name) && !(name === 'style' && OWN_STYLE.test(value)))
      effects.push(`${name}=`);
  }
}

const QUIET: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:', 'tel:', 'ftp:', 'xmpp:']);
/** Some more than the gateway grants: renderers write some characters in three. */
const MAX_QUERY_CHARS = 100;

function checkLink(target: string, effects: string[]): void {
  if (!URL.canParse(target, 'https://host.example/')) return;
  const url = new URL(target, 'https://host.example/');
  if (!QUIET.has(url.protocol)) effects.push(`link to ${url.protocol}`);
  if (url.protocol !== 'mailto:' && url.username !== '') effects.push('link with a user name');
  if (url.search.length + url.hash.length > MAX_QUERY_CHARS) effects.push('link with a long query');
}
