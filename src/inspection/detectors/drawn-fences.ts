// Finds the fenced blocks of Markdown that hosts draw as diagrams instead of showing them as code, and the addresses and
// scripts in them that the drawing would load or run. A diagram that loads and runs nothing has none.
// Source: CommonMark 0.31 §4.5 (fenced code, info strings); GitHub, creating diagrams; Mermaid (image shapes, init
// directives, themeCSS); Vega (data, marks of type image, `url`); PlantUML (`!include`, `<img:…>`); Graphviz (`image`).

import type { Span } from '../../text/span.js';
import { decodeReferences, isElsewhere, lastStyleLoad, scriptColon } from './targets.js';

/** The languages of diagrams, by how their addresses are read. */
const JSON_LANGUAGES =
  'vega vega-lite vegalite vl vg echarts plotly chart chartjs chart.js geojson topojson wavedrom excalidraw markmap-json apexcharts highcharts';
const OTHER_LANGUAGES =
  'mermaid mmd svg plantuml puml uml pu dot graphviz gv d2 markmap drawio bpmn flowchart flow sequence nomnoml pikchr ditaa blockdiag seqdiag actdiag nwdiag erd bytefield structurizr c4plantuml tikz abc jsxgraph math latex katex kroki infographic';
const DRAWN: ReadonlyMap<string, 'json' | 'other'> = new Map([
  ...JSON_LANGUAGES.split(' ').map((name) => [name, 'json'] as const),
  ...OTHER_LANGUAGES.split(' ').map((name) => [name, 'other'] as const),
]);

/** A line that opens a fence with a language, behind any marks of containers. */
const OPENING = /(?:^|[\r\n])[^\r\n\p{L}`~]{0,256}(`{3,}|~{3,})([^\r\n]{1,128})/gu;
const LANGUAGE = /^[\s{.:]*([a-z0-9][a-z0-9_.-]*)/i;

/** How the block with this info string is drawn; undefined where hosts show it as code. */
export function drawnLanguage(info: string): 'json' | 'other' | undefined {
  const read = decodeReferences(info).replace(/\\([!-/:-@[-`{-~])/g, '$1');
  return DRAWN.get(LANGUAGE.exec(read)?.[1]?.toLowerCase() ?? '');
}

/** The parts of addresses and script links in drawn blocks that are to be broken, in order. */
export function findDrawnAddresses(text: string, code: readonly Span[]): readonly Span[] {
  const found = /`{3}|~{3}/.test(text) ? findInFences(text, code) : [];
  const others = findInContainers(text, code);
  if (others.length === 0) return found;
  const all = new Map([...found, ...others].map((span) => [span.start, span]));
  return [...all.values()].sort((one, other) => one.start - other.start);
}

/** `:::mermaid` opens a container, and `<pre class="mermaid">` an element, whose text hosts draw as well. */
const CONTAINER =
  /(?:^|[\r\n])[ \t>]{0,64}:{3,}([^\r\n]{1,128})|<(pre|div|code|figure|section)\b[^<>]{0,512}?\bclass\s{0,8}=\s{0,8}["']?[^"'<>]{0,256}?(?<![\w-])(?:lang(?:uage)?-)?(mermaid|markmap|vega|vega-lite|plantuml|graphviz|nomnoml|wavedrom|kroki|excalidraw|bpmn)(?![\w-])[^<>]{0,512}>/gi;

function findInContainers(text: string, code: readonly Span[]): readonly Span[] {
  if (!/:::|class/i.test(text)) return [];
  const found: Span[] = [];
  let region = 0;
  CONTAINER.lastIndex = 0;
  for (let match = CONTAINER.exec(text); match !== null; match = CONTAINER.exec(text)) {
    const [opening, info, element, language] = match;
    const kind = drawnLanguage(info ?? language ?? '');
    while ((code[region]?.end ?? text.length) <= match.index) region++;
    const isCode = (code[region]?.start ?? text.length) <= match.index;
    if (kind === undefined || isCode) continue;
    const start = match.index + opening.length;
    const end = element === undefined ? closingOf(text, start, ':::') : elementEnd(text, start, element);
    collect(text, { start, end }, kind, found);
    CONTAINER.lastIndex = end;
  }
  return found;
}

/** Where the element ends that opens before `from`: at its own closing tag. */
function elementEnd(text: string, from: number, element: string): number {
  const tags = new RegExp(`<(/?)${element}\\b`, 'gi');
  tags.lastIndex = from;
  let depth = 1;
  for (let tag = tags.exec(text); tag !== null; tag = tags.exec(text)) {
    depth += tag[1] === '' ? 1 : -1;
    if (depth === 0) return tag.index;
  }
  return text.length;
}

function findInFences(text: string, code: readonly Span[]): readonly Span[] {
  const found: Span[] = [];
  let region = 0;
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match !== null; match = OPENING.exec(text)) {
    const [line, run = '', info = ''] = match;
    const kind = drawnLanguage(info);
    if (kind === undefined) continue;
    const from = match.index + line.length;
    while ((code[region]?.end ?? text.length) < from) region++;
    // A fence within another one is code.
    if ((code[region]?.start ?? text.length) < from && (code[region]?.end ?? 0) > from) continue;
    const end = closingOf(text, from, run);
    collect(text, { start: from, end }, kind, found);
    OPENING.lastIndex = end;
  }
  return found;
}

function closingOf(text: string, from: number, run: string): number {
  const sign = run.charAt(0);
  const closing = new RegExp(`[\\r\\n][ \\t>]*${sign}{${run.length},}[ \\t]*(?=[\\r\\n]|$)`, 'g');
  closing.lastIndex = from;
  return closing.exec(text)?.index ?? text.length;
}

/** Keys, attributes and commands whose value a drawing loads. */
const LOADED =
  /(?:\b(?:img|image|icon|logo|src|background(?:-?image)?|sprite|stylesheet|shapefile|imagepath)\\?["']?\s{0,16}[:=]\s{0,16}[{\\]?["'(<]{0,2}|url\(\s{0,16}["']?|@import\s{0,16}["']?|!(?:include(?:url|sub|_many|_once)?|import|theme\s{1,16}[\w-]{1,64}\s{1,16}from)\s{1,16}["'<]?|%load_\w{1,16}\(\s{0,16}["']?|!\[[^\]\r\n]{0,256}\]\(\s{0,16}<?|<img:|\\includegraphics(?:\[[^\]\r\n]{0,100}\])?\{)([^\s"'<>)}]{1,2048})/gi;
const STRING = /"((?:[^"\\\r\n]|\\.){1,4096})"(\s{0,16}:)?/g;
/** A script where a link may stand: behind a quote, a sign or a word for a link. */
const SCRIPT =
  /(?<=["'=(<]\s{0,8}|\b(?:click|href|link|links)\b[^\r\n]{0,256})\b(?:(?:java|vb|live)script|data)[\s]{0,8}(?::|&colon;?|&#0*58;?|&#x0*3a;?|\\u003a)/gi;

function collect(text: string, block: Span, kind: 'json' | 'other', found: Span[]): void {
  const spans = new Map<number, number>();
  const put: Put = (start, end) => spans.set(start, end);
  const body = text.slice(block.start, block.end);
  for (const { index, 0: written } of body.matchAll(SCRIPT)) {
    if (scriptColon(body.slice(index, index + 256)) === undefined) continue;
    const colon = written.search(/[:&\\]/);
    put(block.start + index + colon, block.start + index + written.length);
  }
  if (kind === 'json') collectStrings(body, block.start, put);
  for (const match of body.matchAll(LOADED)) collectLoaded(match, block.start, put);
  if (loadsByStyle(body)) collectStyle(body, block.start, spans);
  const ordered = [...spans].sort(([one], [other]) => one - other);
  for (const [start, end] of ordered) found.push({ start, end });
}

type Put = (start: number, end: number) => unknown;

function collectLoaded(match: RegExpMatchArray, offset: number, put: Put): void {
  const target = match[1] ?? '';
  if (!isElsewhere(target)) return;
  breakAddress(target, target, offset + (match.index ?? 0) + match[0].length - target.length, put);
}

const JSON_ESCAPE = /\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(["'\\/]))/gi;

/** Whether a style sheet in the block loads something, as it is written or as a string of JSON or YAML. */
function loadsByStyle(body: string): boolean {
  if (lastStyleLoad(body) >= 0) return true;
  if (!body.includes('\\')) return false;
  const read = body.replace(JSON_ESCAPE, (_escape, unit?: string, byte?: string, sign?: string) =>
    sign === undefined ? String.fromCharCode(Number.parseInt(unit ?? byte ?? '', 16)) : sign,
  );
  return lastStyleLoad(read) >= 0;
}

/** Breaks what loads in a style sheet where its address is hidden by escapes: the function, or the escapes. */
function collectStyle(body: string, offset: number, spans: Map<number, number>): void {
  let broken = '';
  let at = 0;
  for (const [start, end] of [...spans].sort(([one], [other]) => one - other)) {
    broken += `${body.slice(at, start - offset)}[${body.slice(start - offset, end - offset)}]`;
    at = end - offset;
  }
  if (!loadsByStyle(broken + body.slice(at))) return;
  for (const { index } of body.matchAll(/(?:url|src|image|cross-fade|image-set)\(|@import|expression\(|\\/gi)) {
    spans.set(offset + index, offset + index + 1);
  }
}

/** Members of a chart that name a schema or a link, which are not loaded. */
const NOT_LOADED = /^(?:\$schema|href|description|title|link|homepage)$/;

// Any string of a chart may be data of which a mark makes a picture.
function collectStrings(body: string, offset: number, put: Put): void {
  let name = '';
  for (const match of body.matchAll(STRING)) {
    const [matched, written = '', colon] = match;
    const value = decodeString(written);
    if (colon !== undefined) {
      name = value;
      if (/^url$/i.test(value) && isComputed(body, match.index + matched.length)) {
        put(offset + match.index + matched.length - 1, offset + match.index + matched.length);
      }
      continue;
    }
    const isAddress = isElsewhere(value) && /^[\0-\x20]*(?:[a-z][a-z0-9+.-]*:)?[\t\n\r]*[\\/]/i.test(value);
    if (isAddress && !NOT_LOADED.test(name)) breakAddress(written, value, offset + match.index + 1, put);
  }
}

const EXPRESSION = /"(?:signal|expr|update|calculate|init)"\s{0,16}:/;
/** The value of a member: a string, or an object that names a string, or a column of the data. */
const GIVEN = /^\s{0,64}(?:"|\{\s{0,64}"(value|field)"\s{0,16}:\s{0,16}"[^"\\]{0,512}"\s{0,64}\})/;

/** Whether the address that stands at `at` may be one that the chart puts together itself. */
function isComputed(body: string, at: number): boolean {
  const given = GIVEN.exec(body.slice(at, at + 1024));
  return (given === null || given[1] === 'field') && EXPRESSION.test(body);
}

function decodeString(written: string): string {
  try {
    const value: unknown = JSON.parse(`"${written}"`);
    return typeof value === 'string' ? value : written;
  } catch {
    return written;
  }
}

const SCHEME = /^[\0-\x20]*[a-z][a-z0-9+.\t\n\r-]*:/i;
const COLON = /:|&colon;?|&#0*58;?|&#x0*3a;?|\\u003a/i;
const SLASH = /^[\0-\x20]*(?:\\?[\\/]|\\u00[25][fc]|&\w{2,6};)/i;

/** Breaks the colon of the scheme, or the first slash of an address without one. `value`: what is written, as read. */
function breakAddress(written: string, value: string, at: number, put: Put): void {
  const hasScheme = SCHEME.test(decodeReferences(value));
  const sign = hasScheme ? COLON.exec(written) : SLASH.exec(written);
  const start = at + (sign?.index ?? 0);
  put(start, start + (sign?.[0].length ?? 1));
}
