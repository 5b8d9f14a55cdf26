// Whether the target of a link may stay a link: plain http(s), mail and relative targets may, unless
// they carry a long query, which is how data leaves by a click, or a user name, which disguises the host.
// Every other scheme is inert from here on. Reads spellings as browsers do; fetches nothing.
// Source: WHATWG URL §4.4 (tabs, line ends and leading controls are dropped); CommonMark 0.31 §2.5, §6.3.

import { decodeView, foldView } from './view.js';

/** A query or fragment up to this length is taken for an address, not for a message. */
export const MAX_QUIET_QUERY_CHARS = 64;
/** The longest target that is read; longer ones are never links here. */
export const MAX_TARGET_CHARS = 2048;

const QUIET_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'mailto', 'tel']);

/** True where a target may stay as it is. The whole of it is read, blanks included. */
export function isQuietTarget(target: string): boolean {
  if (target.length > MAX_TARGET_CHARS) return false;
  if (!hasQuietHost(target)) return false;
  const read = readTarget(target);
  const first = /^[^/?#\\]*/.exec(read)?.[0] ?? '';
  // A reference that is not known here may stand for any character of the scheme.
  if (/&[a-z][a-z0-9]{0,31};/i.test(first)) return false;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(first)?.[1]?.toLowerCase();
  if (scheme === undefined ? first.includes(':') : !QUIET_SCHEMES.has(scheme)) return false;
  const query = read.search(/[?#]/);
  return query < 0 || read.length - query - 1 <= MAX_QUIET_QUERY_CHARS;
}

const REFERENCE = /&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,16});?/g;

/**
 * Whether a target has no user name in any reading of its host. A browser splits an address before it decodes
 * percent triplets and folds look-alikes, so that neither ends a user name; and a backslash is no escape in an
 * attribute.
 */
function hasQuietHost(target: string): boolean {
  if (!/[@&%\\]|[^!-~]/.test(target)) return true;
  const folded = foldView(target).text;
  const written = folded === target ? [target] : [target, folded];
  const readings = written.flatMap((text) => {
    const once = text.replace(REFERENCE, readReference);
    return [text, once, once.replace(REFERENCE, readReference)];
  });
  return [...readings, readTarget(target)].every(
    (text) => !hasUserName(trimTarget(text)) && !hasUserName(trimTarget(unescapeSigns(text))),
  );
}

function readReference(reference: string): string {
  return decodeView({ text: reference, map: undefined }).text;
}

/** Browsers drop slashes too many before the host, and add missing ones. */
function hasUserName(read: string): boolean {
  const host = /^(?:https?:[\\/]*|[\\/]{2,})([^\\/?#]*)/i.exec(read)?.[1];
  return host?.includes('@') === true;
}

/** A target as a browser reads it: references, escapes and invisible characters resolved. */
function readTarget(target: string): string {
  let view = decodeView(decodeView(foldView(target)));
  if (view.text.includes('%')) view = decodeView(view);
  return trimTarget(unescapeSigns(view.text));
}

function unescapeSigns(text: string): string {
  return text.replace(/\\([!-/:-@[-`{-~])/g, '$1');
}

/** Without what browsers drop: line ends and tabs anywhere, controls and blanks around it. */
function trimTarget(text: string): string {
  return text
    .replace(/[\t\n\r]/g, '')
    .replace(/^[\0-\x20]+/, '')
    .trim();
}

/** A target that a reader can read and nothing follows: scheme broken, query cut. */
export function defangTarget(target: string): string {
  const read = readTarget(target)
    .replace(/[^\x21-\x7e]/g, '')
    .replace(/[<>()[\]`"'|!]/g, '');
  const bare = read.split(/[?#]/, 1)[0] ?? '';
  const http = /^http(s?):[\\/]*(?:[^\\/@]*@)?([^@:&]{0,120})/i.exec(bare);
  return http === null ? '' : `hxxp${http[1] ?? ''}://${http[2] ?? ''}`;
}
