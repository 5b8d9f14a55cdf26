// Reads the HTML tags of a text as renderers do, and says of each whether it acts by itself: whether it runs something,
// loads something from elsewhere, posts or redirects. Attributes are read as an HTML tokenizer does, and once more
// without the marks that a Markdown quote puts before each of its lines. Tags that only mark up text, and those whose
// targets are relative, do nothing. In case of doubt about where a tag ends it acts.
// Source: HTML §13.2.5 (tokenization), §4 (elements), §8.1.8 (event handlers); SVG 2 §16; CommonMark 0.31 §4.6 (HTML
// blocks), §5.1 (block quotes).

import type { Span } from '../../text/span.js';
import {
  decodeReferences,
  hasCandidateElsewhere,
  isDataOrScript,
  isElsewhere,
  lastStyleLoad,
  scriptColon,
} from './targets.js';

/** What is known of a tag from its attributes, one bit for each fact. Of attributes given twice, both count. */
const FACT = {
  handler: 1 << 0,
  source: 1 << 1,
  sourceSet: 1 << 2,
  sourceIsData: 1 << 3,
  hasSource: 1 << 4,
  link: 1 << 5,
  scriptLink: 1 << 6,
  style: 1 << 7,
  background: 1 << 8,
  poster: 1 << 9,
  document: 1 << 10,
  action: 1 << 11,
  posts: 1 << 12,
  formPosts: 1 << 13,
  ping: 1 << 14,
  loadingRelation: 1 << 15,
  refresh: 1 << 16,
  leadsOn: 1 << 17,
  dataType: 1 << 18,
  scriptType: 1 << 19,
  imageType: 1 << 20,
  animates: 1 << 21,
  program: 1 << 22,
  manifest: 1 << 23,
  hidden: 1 << 24,
} as const;

/** The facts each of which makes an element act; others are in `actsByFacts`. */
const ACTING: ReadonlyMap<string, number> = new Map(
  (
    [
      ['img source', FACT.source | FACT.sourceSet],
      ['image', FACT.source | FACT.sourceSet | FACT.link],
      ['audio video', FACT.source | FACT.poster],
      ['track bgsound portal fencedframe webview model', FACT.source],
      ['iframe frame embed', FACT.source | FACT.sourceIsData | FACT.document],
      ['object', FACT.document | FACT.program],
      ['applet', FACT.program | FACT.document],
      ['use feimage cursor font-face-uri mpath tref base', FACT.link],
      ['animate animatetransform animatemotion animatecolor set discard', FACT.animates],
      ['form', FACT.action | FACT.posts],
      ['input button isindex', FACT.action | FACT.formPosts],
      ['body table thead tbody tfoot tr td th', FACT.background],
      ['html', FACT.manifest],
      ['a area', FACT.ping],
    ] as const
  ).flatMap(([names, facts]) => names.split(' ').map((name) => [name, facts] as const)),
);
/** The facts that make any element act. */
const ACTING_EVERYWHERE = FACT.handler | FACT.scriptLink | FACT.style;
/** Elements whose link is an image or the like, in which a document as data does not run. */
const SHOWS_LINK: ReadonlySet<string> = new Set(['link', 'image', 'feimage']);

/** Relations of a `link` for which a browser fetches or connects to its target. */
const LOADING_RELATIONS =
  /(?:^|\s)(?:stylesheet|icon|shortcut|apple-touch-(?:icon|startup-image)(?:-precomposed)?|mask-icon|fluid-icon|preload|modulepreload|prefetch|prerender|dns-prefetch|preconnect|manifest|import|compression-dictionary)(?:\s|$)/i;
/** Types of scripts that run or say what is loaded. Scripts of any other type are data to a browser. */
const SCRIPT_TYPE = /^$|(?:java|ecma|j|live|vb)script|^(?:module|importmap|speculationrules)$|babel|jsx/;

/** The event handlers that browsers know as attributes. */
const HANDLERS: ReadonlySet<string> = new Set(
  (
    'abort activate afterprint afterscriptexecute afterupdate animationcancel animationend animationiteration ' +
    'animationstart ariarequest auxclick beforeactivate beforecopy beforecut beforedeactivate beforeeditfocus ' +
    'beforeinput beforematch beforepaste beforeprint beforescriptexecute beforetoggle beforeunload beforeupdate begin ' +
    'blur bounce cached cancel canplay canplaythrough cellchange change checking click close command contentvisibilityautostatechange ' +
    'contextlost contextmenu contextrestored controlselect copy cuechange cut dataavailable datasetchanged datasetcomplete ' +
    'dblclick deactivate devicemotion deviceorientation deviceorientationabsolute downloading drag dragend dragenter ' +
    'dragexit dragleave dragover dragstart drop durationchange emptied encrypted end ended error errorupdate ' +
    'filterchange finish focus focusin focusout formdata freezeframe fullscreenchange fullscreenerror gesturechange gestureend ' +
    'gesturestart gotpointercapture hashchange help input invalid keydown keypress keyup languagechange layoutcomplete load ' +
    'loadeddata loadedmetadata loadend loadstart location losecapture lostpointercapture message messageerror ' +
    'mousedown mouseenter mouseleave mousemove mouseout mouseover mouseup mousewheel move moveend movestart noupdate obsolete ' +
    'offline online orientationchange page pagehide pagereveal pageshow pageswap paste pause play playing pointercancel ' +
    'pointerdown pointerenter pointerleave pointermove pointerout pointerover pointerrawupdate pointerup popstate ' +
    'progress promptaction promptdismiss propertychange ratechange readystatechange rejectionhandled repeat reset resize resizeend resizestart ' +
    'rowdelete rowenter rowexit rowinserted rowsdelete rowsinserted scroll scrollend scrollsnapchange scrollsnapchanging ' +
    'search securitypolicyviolation seeked seeking select selectionchange selectstart show slotchange stalled start stop ' +
    'storage submit suspend syncrestored timeerror timeupdate timeout toggle touchcancel touchend touchmove touchstart trackchange ' +
    'transitioncancel transitionend transitionrun transitionstart unhandledrejection unload updateready urlflip ' +
    'validationstatuschange visibilitychange volumechange waiting wheel zoom'
  ).split(' '),
);
const VENDOR_HANDLER = /^on(?:webkit|moz|ms)[a-z]+$/;
/** Attributes of SVG that may hold `url(…)`. */
const PAINTED: ReadonlySet<string> = new Set(
  'fill stroke filter mask clip-path marker marker-start marker-mid marker-end cursor'.split(' '),
);

/** Whether an attribute name is that of an event handler. */
export function isHandlerName(name: string): boolean {
  return name.startsWith('on') && (HANDLERS.has(name.slice(2)) || VENDOR_HANDLER.test(name));
}

/** A tag: the offset behind it where it ends, and what it does. */
export type HtmlTag = {
  readonly end: number | undefined;
  /** It runs, loads, posts or redirects. */
  readonly isActive: boolean;
  /** Its target is a script. */
  readonly hasScriptLink: boolean;
  readonly isHidden: boolean;
  readonly element: string;
};

const TAG_NAME = /<([a-z][^\t\n\f\r />]*)/iy;

/** What is known of a text's tags, and the remaining reading budget. */
export type TagReading = {
  readonly text: string;
  /** What follows each offset at which an attribute was read, so that no attribute is read twice. */
  readonly rests: Map<number, Rest>;
  readonly lastQuotes: { readonly [quote: string]: number };
  readonly lastScriptClose: number;
  budget: number;
  /** Where HTML blocks may begin, with the blank line that ends each; computed on first use. */
  blocks: readonly Span[] | undefined;
  /** The text without the marks of quotes; computed on first use. */
  unmarked: UnmarkedText | undefined;
  /** The line of the last tag of several lines. */
  line: TagLine | undefined;
  /** The end of the last style sheet that was read, and where in it the last load is. */
  style: { readonly end: number; readonly lastLoad: number } | undefined;
};

/** What is read from an attribute on: the facts of it and those that follow, and where the tag ends. */
type Rest = {
  readonly facts: number;
  readonly end: number | undefined;
  /** A quoted value does not end, or has a blank line in it. */
  readonly isOpen: boolean;
};

/** The end of a line, and whether it belongs to a quote, if that was asked. */
type TagLine = { readonly end: number; isQuoted: boolean | undefined };

/** How many times the tags of a text may be read over. Beyond that, a tag counts as active. */
const READS_A_CHAR = 16;
const LEAST_BUDGET = 4096;

/** Prepares the reading of a text's tags, with a budget that keeps it linear in the text. */
export function createTagReading(text: string): TagReading {
  return {
    text,
    rests: new Map(),
    lastQuotes: { '"': text.lastIndexOf('"'), "'": text.lastIndexOf("'") },
    lastScriptClose: lastMatch(text, /<\/script/gi),
    budget: READS_A_CHAR * text.length + LEAST_BUDGET,
    blocks: undefined,
    unmarked: undefined,
    line: undefined,
    style: undefined,
  };
}

function lastMatch(text: string, pattern: RegExp): number {
  let last = -1;
  for (const { index } of text.matchAll(pattern)) last = index;
  return last;
}

/** Reads the tag that begins with the `<` at `at`; undefined where none does. Closing tags do nothing. */
export function readHtmlTag(at: number, tags: TagReading): HtmlTag | undefined {
  TAG_NAME.lastIndex = at;
  const name = TAG_NAME.exec(tags.text)?.[1]?.toLowerCase();
  if (name === undefined) return undefined;
  const element = name.replace(/^(?:svg|html|xhtml):/, '');
  const from = at + 1 + name.length;
  tags.budget -= name.length;
  const place = { at, from, tags };
  const rest = readRest(from, tags);
  const isActive =
    tags.budget <= 0 ||
    isActing(element, rest, place) ||
    (rest.isOpen && mayBeInBlock(at, tags)) ||
    isActiveUnmarked(element, rest.end, place);
  return {
    end: rest.end,
    isActive,
    hasScriptLink: (rest.facts & FACT.scriptLink) !== 0,
    isHidden: (rest.facts & FACT.hidden) !== 0,
    element,
  };
}

type TagPlace = { readonly at: number; readonly from: number; readonly tags: TagReading };

function isActing(element: string, { facts, end }: Rest, place: TagPlace): boolean {
  const everywhere = SHOWS_LINK.has(element) ? FACT.handler | FACT.style : ACTING_EVERYWHERE;
  if ((facts & everywhere) !== 0) return true;
  switch (element) {
    case 'script':
      return isRunningScript(facts, end ?? place.from, place);
    case 'style':
      return end !== undefined && isLoadingStyle(end, place.tags);
    case 'link':
      return hasAll(facts, FACT.loadingRelation) && (facts & (FACT.link | FACT.sourceSet)) !== 0;
    case 'meta':
      return hasAll(facts, FACT.refresh | FACT.leadsOn);
    case 'input':
      if (hasAll(facts, FACT.imageType | FACT.source)) return true;
      return (facts & (ACTING.get(element) ?? 0)) !== 0;
    default:
      return (facts & (ACTING.get(element) ?? 0)) !== 0;
  }
}

function hasAll(facts: number, wanted: number): boolean {
  return (facts & wanted) === wanted;
}

/** A call directly behind the tag: a script, not the placeholder of a usage line. */
const CALL = /\s{0,64}[\w$][\w$.]{0,64}\(/y;

// A script runs once its closing tag is read. Without one it is a type parameter or a placeholder, unless it has a
// source elsewhere or is followed by a call.
function isRunningScript(facts: number, end: number, { tags, at }: TagPlace): boolean {
  if ((facts & (FACT.source | FACT.sourceIsData | FACT.link)) !== 0) return true;
  const isData = hasAll(facts, FACT.dataType) && (facts & FACT.scriptType) === 0;
  if (isData && (facts & FACT.hasSource) === 0) return false;
  CALL.lastIndex = end;
  return at < tags.lastScriptClose || CALL.test(tags.text);
}

const STYLE_CLOSE = /<\/style/gi;

function isLoadingStyle(from: number, tags: TagReading): boolean {
  if (tags.style === undefined || from > tags.style.end) {
    STYLE_CLOSE.lastIndex = from;
    const end = STYLE_CLOSE.exec(tags.text)?.index ?? tags.text.length;
    const load = lastStyleLoad(tags.text.slice(from, end));
    tags.style = { end, lastLoad: load < 0 ? -1 : from + load };
  }
  return tags.style.lastLoad >= from;
}

// Exactly the white space of HTML: any other character would end a value too early.
const ATTRIBUTE_NAME = /[^\t\n\f\r />][^\t\n\f\r />=]*/y;
const SPACES = /[\t\n\f\r /]*/y;
const BLANKS = /[\t\n\f\r ]*/y;
const UNQUOTED = /[^\t\n\f\r >]*/y;
const BLANK_LINE = /(?:\r\n?|\n)[ \t>]*[\r\n]/;
const NOTHING_MORE: Rest = { facts: 0, end: undefined, isOpen: false };

/** Reads the attributes of a tag from after its name. */
function readRest(from: number, tags: TagReading): Rest {
  const { text, rests } = tags;
  const read: { readonly at: number; readonly attribute: Attribute }[] = [];
  let rest: Rest = NOTHING_MORE;
  for (let at = matchEnd(SPACES, text, from); at < text.length && tags.budget > 0; ) {
    const known = rests.get(at);
    if (known !== undefined || text[at] === '>') {
      rest = known ?? { ...NOTHING_MORE, end: at + 1 };
      break;
    }
    const attribute = readAttribute(text, at, tags.lastQuotes);
    read.push({ at, attribute });
    tags.budget -= attribute.end - at;
    at = matchEnd(SPACES, text, attribute.end);
  }
  for (let index = read.length - 1; index >= 0; index--) {
    const one = read[index];
    if (one === undefined) break;
    const { name, value, isOpen } = one.attribute;
    const facts = value === undefined ? bareFacts(name) : factsOf(name, value);
    rest = { facts: facts | rest.facts, end: rest.end, isOpen: isOpen || rest.isOpen };
    rests.set(one.at, rest);
  }
  return rest;
}

type Attribute = {
  readonly name: string;
  readonly value: string | undefined;
  readonly end: number;
  readonly isOpen: boolean;
};

function readAttribute(text: string, at: number, lastQuotes: TagReading['lastQuotes']): Attribute {
  const nameEnd = matchEnd(ATTRIBUTE_NAME, text, at);
  // The name may begin with a sign that some renderer takes away.
  const name = text
    .slice(at, nameEnd)
    .toLowerCase()
    .replace(/^["'=\\]+/, '');
  const sign = matchEnd(BLANKS, text, nameEnd);
  if (text[sign] !== '=') return { name, value: undefined, end: nameEnd, isOpen: false };
  const start = matchEnd(BLANKS, text, sign + 1);
  const quote = text[start];
  if (quote !== '"' && quote !== "'") {
    const end = matchEnd(UNQUOTED, text, start);
    return { name, value: text.slice(start, end), end, isOpen: false };
  }
  const isClosed = (lastQuotes[quote] ?? -1) > start;
  const valueEnd = isClosed ? text.indexOf(quote, start + 1) : text.length;
  const value = text.slice(start + 1, valueEnd);
  const isOpen = !isClosed || BLANK_LINE.test(value);
  return { name, value, end: Math.min(valueEnd + 1, text.length), isOpen };
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

function bareFacts(name: string): number {
  return name === 'hidden' ? FACT.hidden : 0;
}

/** Values that hide an element from the reader but not from a model. */
const HIDING_STYLE =
  /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0*\.?0+\s*(?:[;!]|$)|font-size\s*:\s*0(?![.\d]*[1-9])|(?:left|top|text-indent)\s*:\s*-\d{3,})/i;

function factsOf(name: string, value: string): number {
  if (isHandlerName(name)) return FACT.handler;
  if (PAINTED.has(name)) return value.includes('(') && lastStyleLoad(decodeReferences(value)) >= 0 ? FACT.style : 0;
  const read = READERS.get(name);
  return read === undefined ? 0 : read(value);
}

const ifElsewhere =
  (fact: number) =>
  (value: string): number =>
    isElsewhere(value) ? fact : 0;

const ifFilled =
  (fact: number) =>
  (value: string): number =>
    value.trim() === '' ? 0 : fact;

function linkFacts(value: string): number {
  const script = scriptColon(value) === undefined ? 0 : FACT.scriptLink;
  const link = isElsewhere(value) ? FACT.link : 0;
  return link | script | (isDataOrScript(value) ? FACT.sourceIsData : 0);
}

function sourceFacts(value: string): number {
  const own = FACT.hasSource | (isElsewhere(value) ? FACT.source : 0);
  return own | (isDataOrScript(value) ? FACT.sourceIsData : 0);
}

function styleFacts(value: string): number {
  const style = decodeReferences(value);
  return (lastStyleLoad(style) < 0 ? 0 : FACT.style) | (HIDING_STYLE.test(style) ? FACT.hidden : 0);
}

function typeFacts(value: string): number {
  const type = decodeReferences(value).trim().toLowerCase();
  if (type === 'image') return FACT.imageType | FACT.scriptType;
  return SCRIPT_TYPE.test(type) ? FACT.scriptType : FACT.dataType;
}

/** A link or a value that an animation sets. */
function animationFacts(value: string): number {
  const values = decodeReferences(value).split(';');
  const acts = values.some(
    (one) => isElsewhere(one.trim()) || scriptColon(one) !== undefined || lastStyleLoad(one) >= 0,
  );
  return acts ? FACT.animates : 0;
}

function submitFacts(fact: number): (value: string) => number {
  return (value) => (decodeReferences(value).trim().toLowerCase() === 'post' ? fact : 0);
}

const READERS: ReadonlyMap<string, (value: string) => number> = new Map([
  ['src', sourceFacts],
  ['lowsrc', sourceFacts],
  ['dynsrc', sourceFacts],
  ['srcset', (value: string) => (hasCandidateElsewhere(value) ? FACT.sourceSet : 0)],
  ['imagesrcset', (value: string) => (hasCandidateElsewhere(value) ? FACT.sourceSet : 0)],
  ['srcdoc', ifFilled(FACT.document)],
  ['href', linkFacts],
  ['xlink:href', linkFacts],
  ['style', styleFacts],
  ['background', ifElsewhere(FACT.background)],
  ['poster', ifElsewhere(FACT.poster)],
  ['data', (value: string) => (isElsewhere(value) || isDataOrScript(value) ? FACT.document : 0)],
  ['action', ifElsewhere(FACT.action)],
  ['formaction', ifElsewhere(FACT.action)],
  ['method', submitFacts(FACT.posts)],
  ['formmethod', submitFacts(FACT.formPosts)],
  ['ping', (value: string) => (hasCandidateElsewhere(value) ? FACT.ping : 0)],
  ['attributionsrc', (value: string) => (hasCandidateElsewhere(value) ? FACT.handler : 0)],
  ['rel', (value: string) => (LOADING_RELATIONS.test(decodeReferences(value)) ? FACT.loadingRelation : 0)],
  ['http-equiv', (value: string) => (/^\s*refresh\s*$/i.test(decodeReferences(value)) ? FACT.refresh : 0)],
  ['content', (value: string) => (/[^\d.\s]/.test(value) ? FACT.leadsOn : 0)],
  ['type', typeFacts],
  ['to', animationFacts],
  ['from', animationFacts],
  ['by', animationFacts],
  ['values', animationFacts],
  ['code', ifFilled(FACT.program)],
  ['classid', ifFilled(FACT.program)],
  ['codebase', ifElsewhere(FACT.program)],
  ['archive', (value: string) => (hasCandidateElsewhere(value) ? FACT.program : 0)],
  ['manifest', ifElsewhere(FACT.manifest)],
  ['hidden', () => FACT.hidden],
]);

const LINE_END = /[\r\n]/g;
const LINE_MARKS = /(\r\n?|\n)(?:[ \t]*>)+/g;

/** A text without the marks of quotes: where they were, and how many characters of them precede each place. */
type UnmarkedText = {
  readonly tags: TagReading;
  readonly ends: readonly number[];
  readonly removed: readonly number[];
};

/** Whether a tag of several lines is active once the marks of a quote are removed from it. */
function isActiveUnmarked(element: string, end: number | undefined, { at, from, tags }: TagPlace): boolean {
  const line = lineAt(at, tags);
  if (line.end === tags.text.length || (end !== undefined && end <= line.end)) return false;
  line.isQuoted ??= isQuoted(at, tags.text);
  if (!line.isQuoted) return false;
  tags.unmarked ??= unmark(tags.text);
  const { ends, removed, tags: unmarked } = tags.unmarked;
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const bareFrom = from - (low === 0 ? 0 : (removed[low - 1] ?? 0));
  const rest = readRest(bareFrom, unmarked);
  return unmarked.budget <= 0 || isActing(element, rest, { at: bareFrom, from: bareFrom, tags: unmarked });
}

function unmark(text: string): UnmarkedText {
  const ends: number[] = [];
  const removed: number[] = [];
  let total = 0;
  const bare = text.replace(LINE_MARKS, (marks: string, lineEnd: string, at: number) => {
    total += marks.length - lineEnd.length;
    ends.push(at + marks.length);
    removed.push(total);
    return lineEnd;
  });
  return { tags: createTagReading(bare), ends, removed };
}

/** The line around an offset, which ends before its line end. Offsets only ascend. */
function lineAt(at: number, tags: TagReading): TagLine {
  if (tags.line === undefined || at >= tags.line.end) {
    LINE_END.lastIndex = at;
    tags.line = { end: LINE_END.exec(tags.text)?.index ?? tags.text.length, isQuoted: undefined };
  }
  return tags.line;
}

/** How many lines of a paragraph are read back for the mark of a quote. */
const MAX_LAZY_LINES = 64;
const QUOTED_LINE = /^(?:[ \t>*+-]|\d{1,9}[.)]|\[\^[^[\]]*\]:)*>[ \t>]*[^\s>]/;
const MAX_HEAD_CHARS = 256;

/** Whether the line at `at` may be one of a quote: it or a line before it in its paragraph begins with a mark and text. */
function isQuoted(at: number, text: string): boolean {
  let end = at;
  for (let lines = 0; lines < MAX_LAZY_LINES; lines++) {
    const start = lineStart(text, end);
    const line = text.slice(start, Math.min(end, start + MAX_HEAD_CHARS));
    if (QUOTED_LINE.test(lines === 0 ? `${line}<` : line)) return true;
    if (start === 0 || (lines > 0 && line.trim() === '')) return false;
    end = start - 1;
  }
  return true;
}

function lineStart(text: string, at: number): number {
  return Math.max(text.lastIndexOf('\n', at - 1), text.lastIndexOf('\r', at - 1)) + 1;
}

const LINE_WITH_END = /[^\r\n]*(?:\r\n?|\n|$)/y;
/** A line that begins with a tag, a declaration or an instruction, after any container marks. */
const TAG_LINE = /^[^A-Za-z<]*(?:\[\^[^[\]]*\]:[^A-Za-z<]*)?<[A-Za-z/!?]/;
/** Blocks that no blank line ends. After some of these tags one renderer writes raw text, even within a line. */
const LONG_BLOCK = /<(?:[!?]|(?:pre|script|style|textarea|code|kbd)\b)/i;

function mayBeInBlock(at: number, tags: TagReading): boolean {
  tags.blocks ??= findBlocks(tags.text);
  let low = 0;
  let high = tags.blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tags.blocks[middle]?.end ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const block = tags.blocks[low];
  return block !== undefined && block.start <= at;
}

/** The spans from each line that begins with a tag to the next blank line or the end of the text. */
function findBlocks(text: string): readonly Span[] {
  const blocks: Span[] = [];
  let start: number | undefined;
  for (let at = 0; at < text.length; ) {
    const next = Math.max(at + 1, matchEnd(LINE_WITH_END, text, at));
    const line = text.slice(at, next);
    if (LONG_BLOCK.test(line)) {
      start ??= at;
      break;
    }
    if (TAG_LINE.test(line)) start ??= at;
    else if (start !== undefined && line.trim() === '' && /^[ \t\r\n]*$/.test(line)) {
      blocks.push({ start, end: at });
      start = undefined;
    }
    at = next;
  }
  if (start !== undefined) blocks.push({ start, end: text.length });
  return blocks;
}
