// Whether a tag does something where it is rendered: runs, loads, frames, submits, restyles, or hides
// text. Judged at one `<`; tags that only mark text stay.
// Source: HTML §13.2.5 (tokenization), §4.8 and §4.12; SVG 2 §11; OWASP XSS filter evasion.

import { isQuietTarget } from './targets.js';

/** A tag to be removed: where it ends and what is shown in its place. */
export type ActiveHtml = { readonly end: number; readonly shown: string };

const MAX_TAG_CHARS = 1024;

/** Elements that act by being there. */
const ACTIVE_ELEMENTS: ReadonlySet<string> = new Set(
  (
    'script style iframe frame frameset object embed applet img image picture source audio video track ' +
    'svg math link meta base form input button textarea select option template slot portal dialog ' +
    'marquee bgsound layer ilayer foreignobject animate animatetransform animatemotion set use ' +
    'noscript noembed noframes plaintext xmp isindex keygen canvas'
  ).split(' '),
);
const NAME = /^<\/?([a-z][^\s/>]{0,64})/i;
const ON_ATTRIBUTE = /[\s"'/]on[a-z]{2,32}[\s/]{0,16}=/i;
const LOADING_ATTRIBUTE =
  /[\s"'/](?:src|srcset|srcdoc|style|background|poster|action|formaction|ping|lowsrc|dynsrc|manifest|codebase|profile|cite|longdesc|usemap|data)[\s/]{0,16}=/i;
const LINK_ATTRIBUTE =
  /[\s"'/](?:href|xlink:href)\s{0,16}=\s{0,16}(?:"([^"]{0,2048})"|'([^']{0,2048})'|([^\s>"']{0,2048}))/gi;
const ANY_LINK = /[\s"'/](?:href|xlink:href)\s{0,16}=/gi;

/** What is known of a text's tags: where the last `>` stands, and how much reading is left. */
export type TagReading = { readonly lastClose: number; budget: number };

/** Tags of one text may be read so many times over; past that, a tag is taken for an active one. */
const READS_A_CHAR = 8;

export function startTags(text: string): TagReading {
  return { lastClose: text.lastIndexOf('>'), budget: READS_A_CHAR * text.length + MAX_TAG_CHARS };
}

/** What is active at the `<` at `at`; undefined where nothing is. */
export function findHtml(text: string, at: number, tags: TagReading): ActiveHtml | undefined {
  const name = NAME.exec(text.slice(at, at + 72))?.[1]?.toLowerCase();
  if (name === undefined) return undefined;
  const end = readTagEnd(text, at, tags);
  const tag = text.slice(at, end ?? at + MAX_TAG_CHARS);
  if (ACTIVE_ELEMENTS.has(bareName(name))) {
    return { end: end ?? at + 1 + name.length, shown: `(removed html ${bareName(name)})` };
  }
  // A tag that never ends is none; of one that ends past the cap we do not see every attribute.
  if (end === undefined ? at > tags.lastClose : !hasActiveAttribute(tag)) return undefined;
  return { end: end ?? at + 1 + name.length, shown: '(removed html)' };
}

/** A name without its prefix: `svg:script` is a script. */
function bareName(name: string): string {
  return name.slice(name.lastIndexOf(':') + 1);
}

function readTagEnd(text: string, at: number, tags: TagReading): number | undefined {
  if (at > tags.lastClose || tags.budget <= 0) return undefined;
  const end = tagEnd(text, at);
  tags.budget -= (end ?? at + MAX_TAG_CHARS) - at;
  return end;
}

/** Behind the `>` that ends the tag, quotes minded; undefined where it does not end within the cap. */
function tagEnd(text: string, at: number): number | undefined {
  const tag = text.slice(at, at + MAX_TAG_CHARS);
  let quote = '';
  SIGN.lastIndex = 0;
  for (let match = SIGN.exec(tag); match !== null; match = SIGN.exec(tag)) {
    const sign = match[0];
    if (quote !== '') {
      if (sign === quote) quote = '';
    } else if (sign === '>') return at + match.index + 1;
    else if (beginsValue(tag, match.index)) quote = sign;
  }
  const first = tag.indexOf('>');
  return first < 0 ? undefined : at + first + 1;
}

const SIGN = /["'>]/g;
/** A quote opens a value only behind an equals sign (HTML §13.2.5.35). */
function beginsValue(tag: string, quoteAt: number): boolean {
  let before = quoteAt - 1;
  while (tag.charCodeAt(before) <= 0x20) before--;
  return tag[before] === '=';
}

function hasActiveAttribute(tag: string): boolean {
  if (!tag.includes('=')) return false;
  if (ON_ATTRIBUTE.test(tag) || LOADING_ATTRIBUTE.test(tag)) return true;
  const links = tag.match(ANY_LINK)?.length ?? 0;
  let quiet = 0;
  for (const match of tag.matchAll(LINK_ATTRIBUTE)) {
    if (!isQuietTarget(match[1] ?? match[2] ?? match[3] ?? '')) return true;
    quiet++;
  }
  return quiet < links;
}
