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

/** True where a target may stay as it is. */
export function isQuietTarget(target: string): boolean {
  if (target.length > MAX_TARGET_CHARS) return false;
  // Behind a blank stands a title, or nothing that a link could follow (CommonMark 0.31 §6.3).
  const read = readTarget(target.trim().split(' ', 1)[0] ?? '');
  const scheme = /^([a-z][a-z0-9+.-]{0,40}):/i.exec(read)?.[1]?.toLowerCase();
  if (scheme !== undefined && !QUIET_SCHEMES.has(scheme)) return false;
  if (scheme === undefined && /^[^/?#]{0,64}:/.test(read)) return false;
  const authority = /^(?:[a-z]{1,8}:)?[\\/]{2}([^\\/?#]{0,300})/i.exec(read)?.[1] ?? '';
  if (authority.includes('@')) return false;
  const query = read.search(/[?#]/);
  return query < 0 || read.length - query - 1 <= MAX_QUIET_QUERY_CHARS;
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
  const http = /^http(s?):\/\/(?:[^/@]{0,200}@)?(.{0,120})/i.exec(bare);
  return http === null ? '' : `hxxp${http[1] ?? ''}://${http[2] ?? ''}`;
}
