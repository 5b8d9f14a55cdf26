// Finds runs of base64, base64url and hex in a text that hide readable text, and reads them.
// Runs that decode to anything else (hashes, images, keys) are left alone. Never judges the text.
// Source: RFC 4648 §4, §5 and §8.

/** A run and what it says. */
export type EncodedRun = { readonly start: number; readonly end: number; readonly decoded: string };

/** Shorter runs hide less than the shortest secret. */
export const MIN_RUN_CHARS = 20;
/** Longer runs are read up to here; what follows is read as a run of its own. */
const MAX_RUN_CHARS = 1 << 20;
const MIN_PRINTABLE_SHARE = 0.9;

const RUN = new RegExp(`[A-Za-z0-9+/_-]{${MIN_RUN_CHARS},${MAX_RUN_CHARS}}={0,2}`, 'g');
const FOLDED_LINES = /[A-Za-z0-9+/]{60,76}(?:\r?\n[A-Za-z0-9+/]{1,76}){1,400}={0,2}/g;
const HEX = /^(?:[0-9a-f]{2})+$|^(?:[0-9A-F]{2})+$/;

/** The readable runs of a text, in order. Linear. */
export function findEncodedRuns(text: string): EncodedRun[] {
  const runs: EncodedRun[] = [];
  collect(text, RUN, runs);
  if (runs.length < text.length / MIN_RUN_CHARS && text.includes('\n')) {
    collect(text, FOLDED_LINES, runs);
  }
  return runs;
}

function collect(text: string, pattern: RegExp, runs: EncodedRun[]): void {
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    if (!mayBeEncoded(match[0])) continue;
    const decoded = decodeRun(match[0].replace(/[\r\n]/g, ''));
    if (decoded === undefined) continue;
    runs.push({ start: match.index, end: match.index + match[0].length, decoded });
  }
}

/** False for words and paths: encoded text has digits or many capitals. */
function mayBeEncoded(run: string): boolean {
  return /\d/.test(run) || (run.match(/[A-Z]/g)?.length ?? 0) >= 4;
}

/** The readable text behind one run, if it has any. */
export function decodeRun(run: string): string | undefined {
  if (HEX.test(run)) {
    const text = readable(bytesOfHex(run));
    if (text !== undefined) return text;
  }
  return readable(bytesOfBase64(run));
}

function bytesOfHex(run: string): Uint8Array {
  const bytes = new Uint8Array(run.length / 2);
  for (let at = 0; at < bytes.length; at++) {
    bytes[at] = Number.parseInt(run.slice(at * 2, at * 2 + 2), 16);
  }
  return bytes;
}

/** Bytes of base64 or base64url, with or without padding; undefined where it is neither. */
export function bytesOfBase64(run: string): Uint8Array | undefined {
  const standard = run.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  // One character too many cannot be: what stands before it is read.
  const whole = standard.length % 4 === 1 ? standard.slice(0, -1) : standard;
  try {
    return Uint8Array.from(atob(whole), (unit) => unit.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** Base64 (RFC 4648 §4) of a text in UTF-8. */
export function base64OfText(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of bytes that are UTF-8 and nearly all printable. */
export function readable(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined;
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return undefined;
  }
  let printable = 0;
  for (const unit of text) {
    const code = unit.codePointAt(0) ?? 0;
    if ((code >= 0x20 && code !== 0x7f) || code === 0x09 || code === 0x0a || code === 0x0d)
      printable++;
  }
  return printable >= text.length * MIN_PRINTABLE_SHARE ? text : undefined;
}
