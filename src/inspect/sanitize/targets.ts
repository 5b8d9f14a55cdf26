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
const WEB_SCHEMES: ReadonlySet<string> = new Set(['http', 'https']);

/** True where a target may stay as it is. The whole of it is read, blanks included. */
export function isQuietTarget(target: string): boolean {
  if (target.length > MAX_TARGET_CHARS) return false;
  const read = readTarget(target);
  const first = /^[^/?#\\]*/.exec(read)?.[0] ?? '';
  // A reference that is not known here may stand for any character of the scheme.
  if (/&[a-z][a-z0-9]{0,31};/i.test(first)) return false;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(first)?.[1]?.toLowerCase();
  if (scheme === undefined ? first.includes(':') : !QUIET_SCHEMES.has(scheme)) return false;
  if (authorityOf(read, scheme).includes('@')) return false;
  const query = read.search(/[?#]/);
  return query < 0 || read.length - query - 1 <= MAX_QUIET_QUERY_CHARS;
}

/** What a browser takes for the host of a target, of which it drops slashes too many and adds missing ones. */
function authorityOf(read: string, scheme: string | undefined): string {
  const pattern =
    scheme === undefined
      ? /^[\\/]{2,}([^\\/?#]*)/
      : WEB_SCHEMES.has(scheme)
        ? /^[a-z]+:[\\/]*([^\\/?#]*)/i
        : undefined;
  return pattern?.exec(read)?.[1] ?? '';
}

/** A target as a browser reads it: references, escapes and invisible characters resolved. */
function readTarget(target: string): string {
  let view = decodeView(decodeView(foldView(target)));
  if (view.text.includes('%')) view = decodeView(view);
  return view.text
    .replace(/[\t\n\r]/g, '')
    .replace(/\\(?=[!-/:-@[-`{-~])/g, '')
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
