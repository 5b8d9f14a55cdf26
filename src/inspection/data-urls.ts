// Reads data URLs: what type they state, and the texts that browsers and more lenient readers find in them. Readers differ
// in whether line ends within the URL count, in where `base64` stands, in malformed triplets and in the charset, so
// that there may be several.
// Source: RFC 2397; WHATWG Fetch §6 (data: URLs); WHATWG URL §4.4; WHATWG Infra (forgiving-base64 decode).

import { readMimeType, textsIn, textsOfBase64 } from './binary-content.js';

export type DataUrl = {
  /** The media type without its parameters, in lower case. */
  readonly essence: string;
  /** What its data are as text, the most likely reading first. */
  readonly texts: readonly string[];
};

const SCHEME = /^data:/i;
/** A scheme with line ends between all its letters is no longer. */
const MAX_SCHEME_CHARS = 64;

/** The reading of a data URL; undefined for any other text. */
export function readDataUrl(text: string): DataUrl | undefined {
  const written = trimStart(text);
  const plain = written.slice(0, MAX_SCHEME_CHARS).replace(/[\t\n\r]+/g, '');
  const comma = written.indexOf(',');
  if (!SCHEME.test(plain) || comma < 0) return undefined;
  const head = written.slice(written.indexOf(':') + 1, comma).replace(/[\t\n\r]+/g, '');
  const { essence, charsets } = readMimeType(head);
  const isEncoded = /;\s*base64\s*(?:;|$)/i.test(head);
  const data = written.slice(comma + 1);
  const readings = new Set([data, data.replace(/[\t\n\r]+/g, '')]);
  const texts = [...readings].flatMap((one) => {
    const bytes = decodeTriplets(one);
    return isEncoded ? textsOfBase64(bytes.toString('latin1'), charsets) : textsIn(bytes, charsets);
  });
  return { essence, texts: [...new Set(texts)] };
}

/** Without the controls and blanks that readers drop before a URL. */
function trimStart(text: string): string {
  return text.charCodeAt(0) > 0x20 ? text : text.replace(/^[\0-\x20]+/, '');
}

/** The bytes of a text in UTF-8 with its percent triplets decoded. What is no triplet stays. */
function decodeTriplets(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (!text.includes('%')) return bytes;
  const decoded = bytes
    .toString('latin1')
    .replace(/%([0-9a-f]{2})/gi, (_triplet, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(decoded, 'latin1');
}
