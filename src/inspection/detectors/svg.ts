// Finds what an SVG image would run or load from elsewhere: scripts, handlers, foreign objects, outside references, and
// what only an XML parser obeys, such as instructions for style sheets, entities and namespace prefixes. Markup is read
// as XML, and goes on behind what is not well-formed, because lenient readers do too; the same text is also read as HTML,
// because hosts put images into their pages. A link is no load.
// Source: SVG 2 §16 (linking), §17 (scripting), SVG Tiny 1.2 §15 (handler); XML 1.0 §2.4 to §2.9, §4; Namespaces in XML
// 1.0; xml-stylesheet 1.0; XML Base.

import { findActiveContent, neutralize } from './active-content.js';
import { isHandlerName } from './markup.js';
import {
  decodeReferences,
  hasCandidateElsewhere,
  isDataOrScript,
  isElsewhere,
  lastStyleLoad,
  scriptColon,
} from './targets.js';

const MEDIA_TYPE = 'image/svg+xml';
const MAX_PROLOG_CHARS = 16 * 1024;
const ROOT = /<(?:[\w.-]{1,64}:)?svg[\s/>]/iy;
const SVG_DOCTYPE = /<!doctype\s{1,64}(?:[\w.-]{1,64}:)?svg\b/iy;

/** Whether a text is an SVG document by its root element or its document type. */
export function isSvg(text: string): boolean {
  const prolog = text.slice(0, MAX_PROLOG_CHARS);
  let at = prolog.startsWith('\ufeff') ? 1 : 0;
  for (let next = skipPrologPart(prolog, at); next > at; next = skipPrologPart(prolog, at)) at = next;
  ROOT.lastIndex = at;
  SVG_DOCTYPE.lastIndex = at;
  return ROOT.test(prolog) || SVG_DOCTYPE.test(prolog);
}

const BLANKS = /\s*/y;

/** The offset behind the blanks, the comment, the instruction or the type of another document that begins here, if one does. */
function skipPrologPart(prolog: string, at: number): number {
  BLANKS.lastIndex = at;
  BLANKS.test(prolog);
  const start = BLANKS.lastIndex;
  SVG_DOCTYPE.lastIndex = start;
  if (DOCTYPE.test(prolog.slice(start, start + 9)) && !SVG_DOCTYPE.test(prolog))
    return start + (endOfDoctype(prolog.slice(start)) ?? 0);
  const mark = prolog.startsWith('<!--', start) ? '-->' : prolog.startsWith('<?', start) ? '?>' : '';
  const end = mark === '' ? -1 : prolog.indexOf(mark, start);
  return end < 0 ? start : end + mark.length;
}

/** Whether a media type, without parameters and in lower case, is that of SVG. */
export function isSvgType(essence: string): boolean {
  return essence === MEDIA_TYPE;
}

/** Whether an SVG image runs nothing and loads nothing from elsewhere, read as XML and as HTML. */
export function isInertSvg(text: string): boolean {
  if (findActs(text).length > 0) return false;
  return findActiveContent(text, []).found.every(({ kind }) => kind !== 'html');
}

/** The source of an SVG image with everything in it made inert that acts in XML, HTML or Markdown. */
export function neutralizeSvg(text: string): string {
  let inert = '';
  let at = 0;
  for (const act of findActs(text)) {
    inert += `${text.slice(at, act)}&lt;`;
    at = act + 1;
  }
  return neutralize(inert + text.slice(at), () => []).text;
}

/** Elements that run, or whose content another parser reads. */
const RUNNING: ReadonlySet<string> = new Set(
  (
    'script include handler listener foreignobject iframe frame object embed applet audio video link meta base form portal ' +
    'fencedframe webview'
  ).split(' '),
);
const SHOWS_LINK: ReadonlySet<string> = new Set(['image', 'feimage']);
const ANIMATES: ReadonlySet<string> = new Set(
  'animate animatetransform animatemotion animatecolor set discard'.split(' '),
);
const XHTML = 'http://www.w3.org/1999/xhtml';
/** Namespaces in which an element may act. Elements of any other one are data, such as those of an editor. */
const ACTING_NAMESPACES: ReadonlySet<string> = new Set([
  'http://www.w3.org/2000/svg',
  XHTML,
  'http://www.w3.org/2001/xml-events',
  'http://www.w3.org/1998/math/mathml',
  'http://www.w3.org/1999/xsl/transform',
  'http://www.w3.org/2001/xinclude',
  'http://www.w3.org/2003/xinclude',
]);

type Reading = {
  readonly text: string;
  readonly acts: number[];
  /** Entities that the document declares, which are plain text. */
  readonly entities: Map<string, string>;
  /** The namespaces that each prefix has had so far. */
  readonly prefixes: Map<string, Set<string>>;
  /** End marks of which the text holds no more. */
  readonly absent: Set<string>;
  hasDoctype: boolean;
  /** The end of the last style sheet that was read, and whether it loads. */
  style: { readonly end: number; readonly loads: boolean };
};

/** The offsets of the `<` of everything that acts if the text is read as XML. Linear. */
function findActs(text: string): readonly number[] {
  const reading: Reading = {
    ...{ text, acts: [], entities: new Map(), prefixes: new Map(), absent: new Set() },
    hasDoctype: false,
    style: { end: -1, loads: false },
  };
  for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at)) at = readMarkup(reading, at);
  return reading.acts;
}

/** Reads what begins with the `<` at `at`, and returns where to continue. */
function readMarkup(reading: Reading, at: number): number {
  const { text } = reading;
  if (text.startsWith('<!--', at)) return endBehind(reading, '-->', at + 4);
  if (text.startsWith('<![CDATA[', at)) return endBehind(reading, ']]>', at + 9);
  if (DOCTYPE.test(text.slice(at, at + 9))) return readDoctype(reading, at);
  if (text.startsWith('<?', at)) return readInstruction(reading, at);
  return readElement(reading, at);
}

/** The offset behind the next end mark, or the given one where there is none. */
function endBehind({ text, absent }: Reading, mark: string, from: number): number {
  const end = absent.has(mark) ? -1 : text.indexOf(mark, from);
  if (end >= 0) return end + mark.length;
  absent.add(mark);
  return from;
}

/** Encodings in which every byte of markup means the same. */
const PLAIN_ENCODING = /^(?:utf-?8|us-ascii|ascii|iso-?8859-?\d{1,2}|windows-125\d|utf-16(?:le|be)?)$/i;
const ENCODING = /\sencoding\s*=\s*["']([^"']*)["']/;

function readInstruction(reading: Reading, at: number): number {
  const { text, acts } = reading;
  const end = endBehind(reading, '?>', at + 2);
  const body = text.slice(at, Math.min(end, at + MAX_PROLOG_CHARS));
  if (/^<\?xml-stylesheet\b/i.test(body)) {
    const href = /\shref\s*=\s*["']([^"']*)["']/.exec(body)?.[1] ?? '';
    const type = /\stype\s*=\s*["']([^"']*)["']/.exec(body)?.[1] ?? 'text/css';
    const isOwnStyle = type === 'text/css' && !isElsewhere(href) && !isDataOrScript(href);
    if (!isOwnStyle || end - at > MAX_PROLOG_CHARS) acts.push(at);
  } else if (/^<\?xml\s/i.test(body) && !PLAIN_ENCODING.test(ENCODING.exec(body)?.[1] ?? 'utf-8')) {
    acts.push(at);
  }
  return end;
}

const DOCTYPE = /^<!doctype/i;
const DOCTYPE_TOKEN = /"[^"]*"|'[^']*'|<!--[\s\S]*?-->|[[\]>]/g;
const DOCTYPE_HEAD =
  /^<!doctype\s+[^\s[>"']+\s*(?:public\s*(?:"[^"]*"|'[^']*')\s*)?(?:system\s*)?(?:"([^"]*)"|'([^']*)')?/i;
/** The definitions of SVG, which no viewer fetches, and which nobody else can change. */
const KNOWN_DEFINITION = /^https?:\/\/www\.w3\.org\/[\w./+-]+\.dtd$/i;
const ENTITY = /<!ENTITY\s+([^\s"'<>%&]+)\s+(?:"([^"<&]*)"|'([^'<&]*)')\s*>/g;
const MAX_DOCTYPE_CHARS = 16 * 1024;

function readDoctype(reading: Reading, at: number): number {
  const { text, acts, entities } = reading;
  if (reading.hasDoctype) {
    // A document has one.
    acts.push(at);
    return at + 2;
  }
  reading.hasDoctype = true;
  const end = endOfDoctype(text.slice(at, at + MAX_DOCTYPE_CHARS));
  const declaration = text.slice(at, at + (end ?? MAX_DOCTYPE_CHARS));
  for (const [, name = '', one, other] of declaration.matchAll(ENTITY)) {
    if (!entities.has(name)) entities.set(name, one ?? other ?? '');
  }
  if (end === undefined || !isPlainDoctype(declaration)) acts.push(at);
  return at + (end ?? 2);
}

function endOfDoctype(text: string): number | undefined {
  let depth = 0;
  DOCTYPE_TOKEN.lastIndex = 0;
  for (let token = DOCTYPE_TOKEN.exec(text); token !== null; token = DOCTYPE_TOKEN.exec(text)) {
    if (token[0] === '[') depth++;
    else if (token[0] === ']') depth--;
    else if (token[0] === '>' && depth <= 0) return DOCTYPE_TOKEN.lastIndex;
  }
  return undefined;
}

/** Whether a document type loads nothing, and declares only entities that are plain text. */
function isPlainDoctype(declaration: string): boolean {
  const head = DOCTYPE_HEAD.exec(declaration);
  const definition = head?.[1] ?? head?.[2] ?? '';
  if (isElsewhere(definition) && !KNOWN_DEFINITION.test(definition)) return false;
  // What is left may be an entity of another file or with markup in it, an attribute with a default, or an instruction,
  // in which quotes quote nothing.
  const left = declaration.replace(ENTITY, '').replace(/<!--[\s\S]*?-->/g, '');
  return !/<!(?:ENTITY|ATTLIST)|<\?|%/i.test(left);
}

const NAME = /<([^\s"'<>/=!?&]+)/y;
const ATTRIBUTE = /[\s/]*([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?/y;

function readElement(reading: Reading, at: number): number {
  const { text, acts } = reading;
  NAME.lastIndex = at;
  const name = NAME.exec(text)?.[1];
  if (name === undefined) return at + 1;
  const attributes: Attribute[] = [];
  let end = NAME.lastIndex;
  ATTRIBUTE.lastIndex = end;
  for (let one = ATTRIBUTE.exec(text); one !== null; one = ATTRIBUTE.exec(text)) {
    end = ATTRIBUTE.lastIndex;
    const value = one[2] ?? one[3] ?? one[4] ?? '';
    attributes.push({ ...splitName(one[1] ?? ''), value: expand(value, reading) });
  }
  for (const attribute of attributes) noteNamespace(reading, attribute);
  if (isActing(reading, splitName(name), attributes, end)) acts.push(at);
  return end;
}

type QualifiedName = { readonly prefix: string; readonly local: string };
type Attribute = QualifiedName & {
  /** Undefined where the value is longer with its entities than anything that is read. */
  readonly value: string | undefined;
};

function splitName(name: string): QualifiedName {
  const colon = name.indexOf(':');
  return {
    prefix: name.slice(0, Math.max(0, colon)),
    local: name.slice(colon + 1).toLowerCase(),
  };
}

const ENTITY_REFERENCE = /&([^\s;&#]{1,256});/g;
const MAX_EXPANSION = 256 * 1024;

/** A value with its references resolved, those to entities of the document included. */
function expand(value: string, { entities }: Reading): string | undefined {
  if (!value.includes('&')) return value;
  let room = MAX_EXPANSION;
  const written = value.replace(ENTITY_REFERENCE, (reference, name: string) => {
    const entity = entities.get(name);
    room -= entity?.length ?? 0;
    return room < 0 ? '' : (entity ?? reference);
  });
  return room < 0 ? undefined : decodeReferences(written);
}

function noteNamespace({ prefixes }: Reading, { prefix, local, value }: Attribute): void {
  if (prefix !== 'xmlns' && (prefix !== '' || local !== 'xmlns')) return;
  const declared = prefix === '' ? '' : local;
  const known = prefixes.get(declared) ?? new Set();
  prefixes.set(declared, known.add((value ?? '').trim().toLowerCase()));
}

/** Whether the elements of a prefix are those of a namespace in which nothing acts. */
function isForeign({ prefixes }: Reading, prefix: string): boolean {
  const known = prefixes.get(prefix.toLowerCase());
  return prefix !== '' && known !== undefined && ![...known].some((one) => ACTING_NAMESPACES.has(one));
}

function isActing(
  reading: Reading,
  { prefix, local }: QualifiedName,
  attributes: readonly Attribute[],
  end: number,
): boolean {
  if (attributes.some((one) => one.value === undefined || isForeignBase(one))) return true;
  if (isForeign(reading, prefix)) return false;
  if (RUNNING.has(local) || reading.prefixes.get(prefix.toLowerCase())?.has(XHTML)) return true;
  if (local === 'style' && loadsInStyle(reading, end)) return true;
  return attributes.some((one) => isActingAttribute(local, one));
}

function isForeignBase({ prefix, local, value = '' }: Attribute): boolean {
  return prefix === 'xml' && local === 'base' && (isElsewhere(value) || isDataOrScript(value));
}

function isActingAttribute(element: string, { prefix, local, value = '' }: Attribute): boolean {
  if (local === 'href') return isActingLink(element, value);
  if (prefix !== '') return false;
  if (isHandlerName(local)) return true;
  if (value.includes('(') && lastStyleLoad(value) >= 0) return true;
  switch (local) {
    case 'src':
    case 'data':
    case 'poster':
    case 'background':
    case 'action':
    case 'formaction':
      return isElsewhere(value) || scriptColon(value) !== undefined;
    case 'srcset':
    case 'ping':
      return hasCandidateElsewhere(value);
    case 'attributename':
      return ANIMATES.has(element) && isHandlerName(value.trim().toLowerCase());
    case 'to':
    case 'from':
    case 'by':
    case 'values':
      return ANIMATES.has(element) && value.split(';').some(isActingValue);
    default:
      return false;
  }
}

function isActingLink(element: string, target: string): boolean {
  if (SHOWS_LINK.has(element) && /^\s*data:/i.test(target)) return false;
  if (scriptColon(target) !== undefined) return true;
  return element !== 'a' && isElsewhere(target);
}

function isActingValue(value: string): boolean {
  return isElsewhere(value.trim()) || scriptColon(value) !== undefined;
}

const STYLE_MARK = /<!--|<!\[CDATA\[|<\?|<\/(?:[^\s<>:]+:)?style\s*>/gi;

/** Whether the style sheet behind a tag loads something. The tags of one that does not end are read once. */
function loadsInStyle(reading: Reading, from: number): boolean {
  const { text, style } = reading;
  if (from <= style.end) return style.loads;
  const end = endOfStyle(reading, from);
  const sheet = expand(text.slice(from, end), reading);
  reading.style = { end, loads: sheet === undefined || lastStyleLoad(sheet) >= 0 };
  return reading.style.loads;
}

/** Where a style sheet ends. A closing tag within a comment, a section or an instruction does not count. */
function endOfStyle(reading: Reading, from: number): number {
  const { text } = reading;
  STYLE_MARK.lastIndex = from;
  for (let mark = STYLE_MARK.exec(text); mark !== null; mark = STYLE_MARK.exec(text)) {
    if (mark[0].startsWith('</')) return mark.index;
    const end = mark[0] === '<!--' ? '-->' : mark[0] === '<?' ? '?>' : ']]>';
    STYLE_MARK.lastIndex = endBehind(reading, end, STYLE_MARK.lastIndex);
  }
  return text.length;
}
