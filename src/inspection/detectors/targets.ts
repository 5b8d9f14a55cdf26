// Reads the targets of links, images and style sheets as a browser resolves them: whether one leaves the origin of the
// page or file that names it, and whether it is a script or a document that may hold one. A target is read as it is
// written, and without the character references and backslash escapes that HTML and Markdown resolve.
// Source: WHATWG URL §4.4; HTML §13.2.5.72 (character references); CommonMark 0.31 §2.4, §2.5; CSS Syntax 3 §4.3.

import type { Span } from '../../text/span.js';
import { NAMED_REFERENCES } from './decoded-text.js';

/** Anything else is relative: it has no scheme, and begins with no two slashes. */
const MAY_LEAVE = /[:\\&]|^[\0-\x20]*\/[\t\n\r]*\//;
// With a base of `https:`, `https:path` is relative, but with one of `file:` it is not. Data URLs and references to the
// same message or document fetch nothing.
const LEAVES = /^(?!(?:data|about|attachment|cid):)(?:[a-z][a-z0-9+.-]*:|[\\/]{2})/i;

/**
 * Whether a target leads elsewhere in some reading: it is not relative, that is, does not resolve to the origin of its
 * base, for a base of `https:` and for one of `file:`.
 */
export function isElsewhere(target: string): boolean {
  return MAY_LEAVE.test(target) && readingsOf(target).some(leaves);
}

function leaves(text: string): boolean {
  return LEAVES.test(trimTarget(text));
}

function readingsOf(target: string): readonly string[] {
  const written = target.length > MAX_READ_CHARS ? trimTarget(target).slice(0, MAX_READ_CHARS) : target;
  const readings = [written];
  if (written.includes('\\')) readings.push(unescapeSigns(written));
  if (written.includes('&')) {
    const decoded = decodeReferences(written);
    readings.push(decoded);
    if (decoded.includes('\\')) readings.push(unescapeSigns(decoded));
  }
  return readings;
}

/** Room for what is dropped or written longer. */
const MAX_READ_CHARS = 32 * 1024;

/** Drops what browsers drop: line ends and tabs anywhere, controls and blanks at the beginning. */
function trimTarget(text: string): string {
  return text.replace(/[\t\n\r]+/g, '').replace(/^[\0-\x20]+/, '');
}

function unescapeSigns(text: string): string {
  return text.replace(/\\([!-/:-@[-`{-~])/g, '$1');
}

const REFERENCE = /&(?:#0*[0-9]{1,7}|#x0*[0-9a-f]{1,6}|[a-z]{2,16});?/gi;

/** Resolves character references to the characters that matter to markup and addresses. */
export function decodeReferences(text: string): string {
  return text.includes('&') ? text.replace(REFERENCE, decodeReference) : text;
}

const MAX_CODE_POINT = 0x10ffff;

function decodeReference(reference: string): string {
  const name = reference.slice(1).replace(/;$/, '').toLowerCase();
  if (!name.startsWith('#')) return NAMED_REFERENCES.get(name) ?? reference;
  const code = name[1] === 'x' ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return code <= MAX_CODE_POINT ? String.fromCodePoint(code) : reference;
}

const SCRIPT_SCHEME = /^(?:java|vb|live)script$/i;
const MAY_BE_SCRIPT = /^[\0-\x20]*[jvl&\\]/i;
const DATA_SCHEME = /^[\0-\x20]*d/i;
/** Documents in which a script may run. */
const DOCUMENT_TYPE = /^\s*(?:text\/html|[\w.+-]+\/(?:[\w.+-]*\+)?xml|image\/svg|multipart\/)/i;
const UNIT = /&(?:#0*[0-9]{1,7}|#x0*[0-9a-f]{1,6}|[a-z]{2,16});?|\\[!-/:-@[-`{-~]|[\s\S]/giy;
/** The longest scheme that is looked for. */
const MAX_SCHEME_CHARS = 10;
const MAX_TYPE_CHARS = 64;

/**
 * The colon behind the scheme of a target that is a script (`javascript:`) or a document as data (`data:text/html`),
 * as it is written in the target; undefined for any other target.
 */
export function scriptColon(target: string): Span | undefined {
  let scheme = '';
  UNIT.lastIndex = 0;
  for (let unit = UNIT.exec(target); unit !== null; unit = UNIT.exec(target)) {
    const read = readUnit(unit[0]);
    if (read === ':') {
      const colon = { start: unit.index, end: UNIT.lastIndex };
      return isScript(scheme, target.slice(colon.end)) ? colon : undefined;
    }
    if (read === '\t' || read === '\n' || read === '\r' || (scheme === '' && read <= ' ')) continue;
    scheme += read;
    if (scheme.length > MAX_SCHEME_CHARS) return undefined;
  }
  return undefined;
}

function readUnit(written: string): string {
  if (written.length === 1) return written;
  return written.startsWith('\\') ? written.slice(1) : decodeReference(written);
}

/** The colon behind the scheme of an address that is a script; no browser opens a document as data from a link. */
export function scriptSchemeColon(address: string): Span | undefined {
  const colon = MAY_BE_SCRIPT.test(address) ? scriptColon(address) : undefined;
  return colon !== undefined && !DATA_SCHEME.test(address.slice(0, colon.end)) ? colon : undefined;
}

function isScript(scheme: string, rest: string): boolean {
  if (SCRIPT_SCHEME.test(scheme)) return true;
  if (scheme.toLowerCase() !== 'data') return false;
  const type = decodeReferences(rest.slice(0, MAX_READ_CHARS)).replace(/[\t\n\r]+/g, '');
  return DOCUMENT_TYPE.test(unescapeSigns(type.slice(0, MAX_TYPE_CHARS)));
}

/** Whether a target is data or a script: as the source of a script or a frame it runs. */
export function isDataOrScript(target: string): boolean {
  return /^(?:data|(?:java|vb|live)script):/i.test(trimTarget(decodeReferences(target.slice(0, MAX_READ_CHARS))));
}

const SPACES_AND_SIGNS = /[\s,]+/;

/** Whether one of the candidates of a `srcset` leads elsewhere. */
export function hasCandidateElsewhere(candidates: string): boolean {
  return decodeReferences(candidates).split(SPACES_AND_SIGNS).some(isElsewhere);
}

/** What a style sheet fetches, or runs in old browsers. */
const STYLE_LOAD = /(?:url|src|(?:-webkit-)?image-set|image|(?:-webkit-)?cross-fade)\(|@import|expression\(/gi;
const STYLE_TARGET = /(?:\s|\/\*[^*]{0,100}\*\/){0,64}["']?([^"')]{0,2048})/y;
/** As much of a function or an import is read. */
const MAX_STYLE_CHARS = 4096;
const STRINGS = /"([^"]{0,2048})"|'([^']{0,2048})'/g;

/** The offset of the last thing that a style sheet loads from elsewhere; negative where it loads nothing. */
export function lastStyleLoad(css: string): number {
  if (!/[u@\\&c(]/i.test(css)) return -1;
  const last = lastLoadIn(css, true);
  const decoded = decodeStyle(css);
  // Offsets of a decoded text are not those of the text.
  return decoded !== css && lastLoadIn(decoded, false) >= 0 ? css.length : last;
}

/** The name of a namespace, which nothing loads. */
const NAMESPACE = /(?:^|[;{}>])\s{0,64}@namespace\s{1,16}(?:[\w-]{1,64}\s{1,16})?$/i;
const MAX_NAMESPACE_CHARS = 200;

// Signs that were written as escapes begin no rule, so that of a decoded text nothing is taken for a namespace.
function lastLoadIn(css: string, isAsWritten: boolean): number {
  let last = -1;
  STYLE_LOAD.lastIndex = 0;
  for (let match = STYLE_LOAD.exec(css); match !== null; match = STYLE_LOAD.exec(css)) {
    if (!loadsBehind(css, match[0].toLowerCase(), STYLE_LOAD.lastIndex)) continue;
    const from = Math.max(0, match.index - MAX_NAMESPACE_CHARS);
    const before = (from > 0 ? '.' : '') + css.slice(from, match.index);
    if (!isAsWritten || !NAMESPACE.test(before)) last = match.index;
  }
  return last;
}

function loadsBehind(css: string, kind: string, at: number): boolean {
  if (kind === 'expression(') return true;
  STYLE_TARGET.lastIndex = at;
  const target = STYLE_TARGET.exec(css)?.[1] ?? '';
  if (isElsewhere(target.trim())) return true;
  if (kind === 'url(') return false;
  const rest = /^[^;}]*/.exec(css.slice(at, at + MAX_STYLE_CHARS))?.[0] ?? '';
  if (kind.endsWith('image-set(') && /\bvar\(/i.test(rest)) return true;
  return [...rest.matchAll(STRINGS)].some(([, one, other]) => isElsewhere(one ?? other ?? ''));
}

const STYLE_ESCAPE = /\\(?:([0-9a-f]{1,6})[ \t\n\f]?|([\s\S]))/gi;

/** Without the escapes of CSS, references, comments and tags, which a style sheet in SVG may hold between letters. */
function decodeStyle(css: string): string {
  const bare = css.includes('<') ? withoutTags(css) : css;
  return decodeReferences(bare).replace(STYLE_ESCAPE, (_escape, hex?: string, unit?: string) => {
    if (hex === undefined) return unit === '\n' ? '' : (unit ?? '');
    const code = Number.parseInt(hex, 16);
    return code <= MAX_CODE_POINT ? String.fromCodePoint(code) : '';
  });
}

function withoutTags(css: string): string {
  let kept = '';
  let at = 0;
  for (let open = css.indexOf('<!--'); open >= 0; open = css.indexOf('<!--', at)) {
    const close = css.indexOf('-->', open + 4);
    if (close < 0) break;
    kept += css.slice(at, open);
    at = close + 3;
  }
  return (kept + css.slice(at)).replace(/<!\[CDATA\[|\]\]>|<[^<>]*>/gi, '');
}
