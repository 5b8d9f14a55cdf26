// The functions that expressions have for paths and URLs. Each reads a text as the most lenient of its readers might,
// and has no answer where readers could differ: a path that climbs by encoded dots, a host that is a number in octal. An
// expression then fails, so that neither an allow rule nor a deny rule is got around. Nothing is resolved: neither names nor links. Linear in the text.
// Source: RFC 3986 §3 and §5.2.4; WHATWG URL, host parsing; RFC 6761; docs/contract.md §4.

import { bareHost, isAddressAllowed } from './addresses.js';

/** More layers of percent-encoding than any reader removes. */
const MAX_DECODINGS = 8;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
/** A drive, a server, a home folder, a URL: the start of a path that is not relative and not below `/`. */
const OTHER_ROOT = /^(?:[A-Za-z]:|[A-Za-z][A-Za-z0-9+.-]*:\/|\/\/|~)/;
/**
 * `...`, `.. ` and `..;x`: readers that drop trailing dots, blanks or parameters take them for `..`, and so do file
 * systems that ignore invisible characters in names.
 */
const AMBIGUOUS_SEGMENT =
  /^[. ]{3,}$|^\.{1,2};|^\s|\s$|^[.\p{Default_Ignorable_Code_Point}]*\p{Default_Ignorable_Code_Point}\.*$/u;

type Path = {
  /** Undefined for a path that climbs above its start, or starts elsewhere. */
  readonly root: string | undefined;
  readonly segments: readonly string[];
  /** Has `..` somewhere. */
  readonly climbs: boolean;
};

/**
 * Whether a path names the folder or something below it, as it is written: links are not followed. Undefined for a path
 * that readers could take for different ones.
 */
export function isPathUnder(path: string, folder: string): boolean | undefined {
  const base = readPath(folder);
  const decoded = decodeFully(path);
  // Some readers fold compatibility forms, in which a full-width dot or slash is a plain one.
  const folded = decoded === undefined ? undefined : decodeFully(decoded.normalize('NFKC'));
  if (base === undefined || decoded === undefined || folded === undefined) return undefined;
  const isUnder = (form: string): boolean | undefined => {
    const read = readPath(form);
    // To a reader that decodes less, `a%2fb`, `a\b` and `a//b` have other numbers of folders, and `..` leads elsewhere.
    if (read === undefined || (read.climbs && (form !== path || /\\|\/\//.test(path))))
      return undefined;
    if (read.root === undefined || read.root !== base.root) return false;
    return base.segments.every((one, at) => read.segments[at] === one);
  };
  const answer = isUnder(decoded);
  return folded === decoded || isUnder(folded) === answer ? answer : undefined;
}

/** Without any percent-encoding; undefined for a text that some readers could not decode, or that never ends. */
function decodeFully(text: string): string | undefined {
  let decoded = text;
  for (let round = 0; round < MAX_DECODINGS; round += 1) {
    if (!decoded.includes('%')) return decoded;
    try {
      decoded = decodeURIComponent(decoded);
    } catch {
      return undefined;
    }
  }
  return undefined;
}

/** A path with its dot segments resolved; undefined for one that has several readings. */
function readPath(text: string): Path | undefined {
  const path = text.replaceAll('\\', '/');
  const written = path.split('/').filter((one) => one !== '' && one !== '.');
  if (CONTROL.test(path) || written.some((one) => AMBIGUOUS_SEGMENT.test(one))) return undefined;
  const segments: string[] = [];
  const climbs = written.includes('..');
  let root = OTHER_ROOT.test(path) ? undefined : path.startsWith('/') ? '/' : '';
  for (const segment of written) {
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) root = undefined;
  }
  return { root, segments, climbs };
}

const MAX_URL_CHARS = 8192;
const AUTHORITY = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/([^/?#]*)/;
/** A host and a port, after at most one user name. An address in brackets is the only host with a colon. */
const HOST = /^(?:[^@]*@)?(\[[^\]@]*\]|[^@:[\]]*)(?::[0-9]{0,5})?$/;

/**
 * The host of an absolute URL in its normal form: in lower case, in Punycode, an IPv4 address with four decimal
 * numbers, an IPv6 address without brackets, without a trailing dot. Undefined for a URL that readers could take
 * for different ones.
 */
export function hostOfUrl(url: string): string | undefined {
  if (url.length > MAX_URL_CHARS || CONTROL.test(url) || /[\s\\]/u.test(url)) return undefined;
  const [, written = ''] = HOST.exec(AUTHORITY.exec(url)?.[1] ?? '') ?? [];
  if (written === '' || written.includes('%')) return undefined;
  const parsed = `http://${written}/`;
  if (!URL.canParse(parsed)) return undefined;
  const host = new URL(parsed).hostname.replace(/\.$/, '');
  if (host === '' || host.endsWith('.')) return undefined;
  const plain = written.normalize('NFKC').replace(IGNORED, '');
  if (IPV4.test(host) && LEADING_ZERO.test(plain)) return undefined;
  return bareHost(host);
}

const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;
const IPV4 = /^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$/;
/** Some readers take such a number for an octal one, and some for a decimal one. */
const LEADING_ZERO = /(?<![0-9a-z])0[0-9]/i;

/** Names that no public resolver answers (RFC 6761, RFC 8375, RFC 9476), and those that private networks use. */
const LOCAL_DOMAINS: ReadonlySet<string> = new Set([
  ...['localhost', 'localdomain', 'local', 'internal', 'intranet', 'private', 'corp', 'home'],
  ...['lan', 'arpa', 'test', 'invalid', 'example', 'onion', 'alt'],
]);

/** Whether a URL names a public address, or a name of a public domain, as it is written. Undefined where its host is. */
export function isPublicUrl(url: string): boolean | undefined {
  const host = hostOfUrl(url);
  if (host === undefined) return undefined;
  if (host.includes(':') || /^[0-9.]+$/.test(host)) return isAddressAllowed(host, 'public');
  const labels = host.split('.');
  const domain = labels.at(-1) ?? '';
  return labels.length > 1 && !labels.includes('') && !LOCAL_DOMAINS.has(domain);
}
