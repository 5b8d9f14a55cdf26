// Reads URIs for the patterns of resources. A URI is parsed into scheme, authority, path and query and written in one
// normal form. Servers differ in what they decode, resolve and collapse, so a URI may have further readings: an allow
// rule must cover every reading, and a rule that restricts applies if one of them matches. A URI is never repaired, and
// it is forwarded as it was received.
// Source: RFC 3986 §3, §5.2.4 and §6.2.2; RFC 8089; the WHATWG URL Standard for the schemes that it calls special;
// docs/contract.md §4, law 6.

import { matchesPattern, type Pattern } from './patterns.js';

/** Maximum length of a URI that is parsed, in characters. */
export const MAX_URI_CHARS = 8192;
/** A URI with more steps between its readings, or more readings, is refused: it is nested escapes and little else. */
const MAX_STEPS = 64;
const MAX_READINGS = 24;

/** The characters of RFC 3986 §2: no `\`, quotes, braces, control characters, and nothing beyond ASCII. */
const URI_CHARACTERS = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;
/** RFC 3986, appendix B. Every part excludes its delimiter, so matching is linear. */
const URI_PARTS = /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/s;
const HOST =
  /^(?:\[(?:[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9\-._~%]+)?|[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]|[A-Za-z0-9\-._~!$&'()*+,;=%]*)(?::[0-9]*)?$/;
const USER = /^[A-Za-z0-9\-._~!$&'()*+,;=:%]*$/;
/** Schemes that browsers and many libraries read with a host even if `//` is absent, with their default ports. */
const HOST_SCHEMES: ReadonlyMap<string, string> = new Map([
  ['http', '80'],
  ['https', '443'],
  ['ws', '80'],
  ['wss', '443'],
  ['ftp', '21'],
]);
/** A name that no resolver takes for an address. */
const PLAIN_HOST = /^(?:[a-z0-9-]+\.)*[a-z](?:[a-z0-9-]*[a-z0-9])?$/;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/** One way to read a URI. */
type UriReading = {
  readonly text: string;
  /** The same without the user, whom a pattern without `@` does not name. */
  readonly withoutUser: string | undefined;
};

export type UriReadings = {
  readonly normal: string;
  /** The normal form first. An allow rule must cover all of them. */
  readonly all: readonly UriReading[];
  /** Further spellings of the same, to which rules that restrict apply too. */
  readonly restricted: readonly UriReading[];
};

/** True for the resources that hosts run beside a tool (MCP Apps extension). Their content is pinned. */
export function isAppUri(uri: string): boolean {
  return uri.startsWith('ui:');
}

/** The normal form of a URI; undefined if the text is not one. */
export function normalizeUri(uri: string): string | undefined {
  return primaryOf(uri)?.normal;
}

/** All readings of a URI; undefined if the text is not one, or has too many. */
export function readUri(uri: string): UriReadings | undefined {
  const primary = primaryOf(uri);
  if (primary === undefined) return undefined;
  const texts = findReadings(primary);
  if (texts === undefined) return undefined;
  const all = texts.map(toReading);
  const known = new Set(texts);
  const restricted = texts
    .flatMap(spellingsOf)
    .filter((text) => !known.has(text) && known.add(text))
    .map(toReading);
  return { normal: primary.normal, all, restricted };
}

/** Every text that a rule which restricts is held against. */
export function restrictedTexts({ all, restricted }: UriReadings): readonly string[] {
  return [...all, ...restricted].flatMap(textsOf);
}

/** The texts that the conditions of a rule see as `uri`: the normal form first. */
export function conditionTexts(readings: UriReadings, effect: string): readonly string[] {
  const texts = effect === 'allow' ? readings.all.flatMap(textsOf) : restrictedTexts(readings);
  return [...new Set(texts)];
}

function textsOf({ text, withoutUser }: UriReading): readonly string[] {
  return withoutUser === undefined ? [text] : [text, withoutUser];
}

/** Whether patterns name a URI: for an allow rule in all of its readings, for any other rule in one of them. */
export function namesUri(
  patterns: readonly Pattern[],
  readings: UriReadings,
  effect: 'allow' | 'deny' | 'require',
): boolean {
  if (patterns.length === 0) return false;
  if (effect !== 'allow') {
    return restrictedTexts(readings).some((text) =>
      patterns.some((pattern) => matchesPattern(pattern, text)),
    );
  }
  return readings.all.every((reading) =>
    patterns.some((pattern) => coversReading(pattern, reading, reading.text === readings.normal)),
  );
}

function coversReading(pattern: Pattern, reading: UriReading, isNormal: boolean): boolean {
  const covers = (text: string): boolean =>
    matchesPattern(pattern, text) ||
    (!isNormal && pattern.decoded?.some((one) => matchesPattern(one, text)) === true);
  const { text, withoutUser } = reading;
  // Without this, `https://host:*` would cover a user with that name at any host.
  return covers(text) && (withoutUser === undefined || namesUser(pattern) || covers(withoutUser));
}

function namesUser({ text }: Pattern): boolean {
  return text.startsWith('re:') ? text.includes('@') : /^[^/?#]*:\/\/[^/?#]*@/.test(text);
}

/**
 * Writes a resource pattern in the spelling of normal forms: scheme and host in lower case, escapes of unreserved
 * characters decoded; further elements are the readings of it with other escapes decoded. `re:` patterns stay as
 * written. Undefined if no URI could match.
 */
export function normalizeUriPattern(
  pattern: string,
): readonly [string, ...(readonly string[])] | undefined {
  if (pattern.startsWith('re:')) return [pattern];
  if (!pattern.includes('*')) {
    const readings = readUri(pattern);
    if (readings === undefined) return undefined;
    const [, ...others] = readings.all.map(({ text }) => text);
    return [readings.normal, ...others];
  }
  const head = /^[^/?#]*:\/\/[^/?#]*/.exec(pattern)?.[0] ?? schemeOf(pattern);
  const tail = pattern.slice(head.length);
  const path = tail.split(/[?#]/, 1)[0] ?? '';
  const normalTail = normalizeEscapes(tail);
  if (path.split('/').some(isDots) || normalTail === undefined) return undefined;
  // An empty path after an authority is `/`; a `**` at the end of the authority covers paths as it stands.
  const isRootless = path === '' && head.includes('://') && !head.endsWith('**');
  const normal = normalizeHead(head) + (isRootless ? '/' : '') + normalTail;
  const decoded = decodeNested(normal);
  return [normal, ...decoded];
}

function schemeOf(pattern: string): string {
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(pattern)?.[0] ?? '';
}

function normalizeHead(head: string): string {
  const start = head.indexOf('://');
  if (start === -1) return head.toLowerCase();
  const scheme = head.slice(0, start).toLowerCase();
  const written = head.slice(start + 3);
  if (!written.includes('*')) {
    const authority = normalizeAuthority(scheme, written);
    if (authority !== undefined) return `${scheme}://${authority}`;
  }
  const at = written.lastIndexOf('@') + 1;
  return `${scheme}://${written.slice(0, at)}${written.slice(at).toLowerCase()}`;
}

function decodeNested(text: string): readonly string[] {
  const found: string[] = [];
  let last = text;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const next = decodeStructure(last);
    if (next === last) break;
    found.push(next);
    last = next;
  }
  return found;
}

type Primary = { readonly normal: string; readonly unresolved: string };

function primaryOf(uri: string): Primary | undefined {
  if (uri.length > MAX_URI_CHARS || !URI_CHARACTERS.test(uri)) return undefined;
  const [matched, written = '', host, writtenPath = '', query = '', fragment = ''] =
    URI_PARTS.exec(uri) ?? [];
  const rest = normalizeEscapes(query + fragment);
  const path = normalizeEscapes(writtenPath);
  if (matched === undefined || path === undefined || rest === undefined) return undefined;
  const scheme = written.toLowerCase();
  // RFC 8089: a local file with or without an empty authority.
  const isLocalFile = scheme === 'file' && path.startsWith('/');
  const authority = normalizeAuthority(scheme, host ?? (isLocalFile ? '' : undefined));
  if (authority === undefined && host !== undefined) return undefined;
  const write = (shown: string): string => writeUri(scheme, authority, shown, rest);
  // Without a slash at its start there is nothing that dot segments could be relative to.
  const normal = path.startsWith('/') ? write(resolvePath(path).path) : write(path);
  return { normal, unresolved: write(path) };
}

function writeUri(
  scheme: string,
  authority: string | undefined,
  path: string,
  rest: string,
): string {
  if (authority !== undefined) return `${scheme}://${authority}${path === '' ? '/' : path}${rest}`;
  // Two slashes at the start would be read as an authority.
  return `${scheme}:${path.startsWith('//') ? '/.' : ''}${path}${rest}`;
}

/** The user, host and port without `//`. */
function normalizeAuthority(scheme: string, written: string | undefined): string | undefined {
  if (written === undefined) return undefined;
  const at = written.lastIndexOf('@') + 1;
  const user = normalizeEscapes(written.slice(0, Math.max(0, at - 1)));
  const decoded = normalizeEscapes(written.slice(at));
  if (user === undefined || decoded === undefined) return undefined;
  if (!USER.test(user) || !HOST.test(decoded)) return undefined;
  const colon = /:[0-9]*$/.exec(decoded)?.index ?? decoded.length;
  // Escapes keep their upper case.
  const host = normalizeHost(scheme, lowerCase(decoded.slice(0, colon)));
  const port = decoded.slice(colon + 1).replace(/^0+(?=[0-9])/, '');
  const shownPort = port === '' || port === HOST_SCHEMES.get(scheme) ? '' : `:${port}`;
  return `${at === 0 ? '' : `${user}@`}${host}${shownPort}`;
}

function lowerCase(host: string): string {
  return host.toLowerCase().replace(/%[0-9a-f]{2}/g, (written) => written.toUpperCase());
}

function normalizeHost(scheme: string, written: string): string {
  const host = written.endsWith('.') ? written.slice(0, -1) : written;
  return scheme === 'file' && host === 'localhost' ? '' : host;
}

/**
 * The readings of servers that decode escapes of `/`, `\` and `%`, resolve dot segments and collapse slashes, in
 * whatever order and however often; of paths that climb above their root, also the one in which that takes away the
 * host.
 */
function findReadings({ normal, unresolved }: Primary): readonly string[] | undefined {
  if (isPlain(unresolved)) return [normal];
  const found = new Set([normal]);
  const seen = new Set([unresolved, normal]);
  for (const text of seen) {
    if (seen.size > MAX_STEPS || found.size > MAX_READINGS) return undefined;
    const step = stepsFrom(text);
    if (step.isReading) found.add(text);
    for (const next of step.next) seen.add(next);
  }
  return [...found];
}

type Step = {
  /** Whether a server may stop here: no dot segments are left that it would resolve. */
  readonly isReading: boolean;
  readonly next: readonly string[];
};

/** What one step makes of a reading: resolved, collapsed, decoded, cut at a NUL, or read as libraries do. */
function stepsFrom(text: string): Step {
  const parts = URI_PARTS.exec(text);
  if (parts === null) return { isReading: false, next: [] };
  const [, scheme = '', authority, path = '', query = '', fragment = ''] = parts;
  const rest = query + fragment;
  if (authority !== undefined && path === '')
    return { isReading: false, next: [`${scheme}://${authority}/${rest}`] };
  const start = authority === undefined ? `${scheme}:` : `${scheme}://${authority}`;
  const { path: resolved, climbs } = resolvePath(path);
  const isRootless = authority === undefined && !path.startsWith('/');
  const next = [
    start + resolved + rest,
    `${start}${resolved.replace(/\/{2,}/g, '/')}${rest}`,
    `${start}${path.replace(/\/{2,}/g, '/')}${rest}`,
    decodeStructure(text),
    ...(text.includes('%00') ? [text.slice(0, text.indexOf('%00'))] : []),
  ];
  if (climbs && authority !== undefined)
    next.push(`${scheme}:/${resolvePath(`/${authority}${path}`).path}${rest}`);
  const asLibrary = libraryReading(scheme, authority, text);
  if (asLibrary !== undefined) next.push(asLibrary);
  return { isReading: resolved === path || isRootless, next };
}

/** True if there is nothing to decode, to resolve or to collapse, which holds for nearly all URIs. */
function isPlain(text: string): boolean {
  if (text.includes('%')) return false;
  const [, scheme = '', authority, path = ''] = URI_PARTS.exec(text) ?? [];
  if (path.includes('//') || /(?:^|\/)\.{1,2}(?:\/|$)/.test(path)) return false;
  return libraryReading(scheme, authority, text) === undefined;
}

/** How the libraries read a URL of a special scheme: addresses in any notation, a host without `//`. */
function libraryReading(
  scheme: string,
  authority: string | undefined,
  text: string,
): string | undefined {
  if (!HOST_SCHEMES.has(scheme) && scheme !== 'file') return undefined;
  const host = authority?.replace(/^.*@/, '').replace(/:[0-9]*$/, '');
  const isCommon = scheme === 'file' ? host === '' : host !== undefined && PLAIN_HOST.test(host);
  if (isCommon) return undefined;
  return URL.canParse(text) ? normalizeUri(new URL(text).href) : undefined;
}

function isDots(segment: string): boolean {
  return segment === '.' || segment === '..';
}

/** RFC 3986 §5.2.4. A path that climbs above its root stays there; `climbs` tells so. */
function resolvePath(path: string): { readonly path: string; readonly climbs: boolean } {
  const isRooted = path.startsWith('/');
  const segments = (isRooted ? path.slice(1) : path).split('/');
  if (!segments.some(isDots)) return { path, climbs: false };
  const kept: string[] = [];
  let climbs = false;
  for (const segment of segments) {
    if (segment === '..') climbs = kept.pop() === undefined || climbs;
    else if (segment !== '.') kept.push(segment);
  }
  if (isDots(segments.at(-1) ?? '')) kept.push('');
  return { path: (isRooted ? '/' : '') + kept.join('/'), climbs };
}

const ESCAPE = /%([0-9A-Fa-f]{2})/g;
/** Escapes in forms of UTF-8 that are too long for their character, which lenient decoders take for it. */
const OVERLONG = /%(?:C[01]|E0%8[01])%([89AB][0-9A-F])/gi;

/**
 * Decodes one level of the escapes of `/`, `\` and `%` in the path, and of all delimiters in the authority, because
 * they end or divide it.
 */
function decodeStructure(text: string): string {
  if (!text.includes('%')) return text;
  const head = /^[^/?#]*:\/\/[^/?#]*/.exec(text)?.[0] ?? '';
  const end = text.slice(head.length).search(/[?#]/);
  const pathEnd = end === -1 ? text.length : head.length + end;
  const path = decodeOverlong(text.slice(head.length, pathEnd)).replace(
    /%(?:2[FDE]|5[CF]|25(?=[0-9A-F]{2})|7E|[46][1-9A-F]|[57][0-9A]|3[0-9])/gi,
    decodeDelimiter,
  );
  return head.replace(ESCAPE, decodeDelimiter) + path + text.slice(pathEnd);
}

function decodeOverlong(text: string): string {
  return text.replace(OVERLONG, (written) => {
    const bytes = written
      .slice(1)
      .split('%')
      .map((byte) => Number.parseInt(byte, 16));
    const [low = 0, high = 0] = bytes.reverse();
    return toCharacter(((high & (bytes.length === 2 ? 0x1f : 0x3f)) << 6) | (low & 0x3f), written);
  });
}

function decodeDelimiter(written: string): string {
  return toCharacter(Number.parseInt(written.slice(1), 16), written);
}

/** A backslash is a slash to those who take it for a delimiter, and a star stays escaped: it would be a glob. */
function toCharacter(code: number, written: string): string {
  if (code === 0x5c) return '/';
  return code <= 0x20 || code >= 0x7f || code === 0x2a ? written : String.fromCharCode(code);
}

/** The reading with every escape decoded, and with an empty authority for an absent one or the other way round. */
function spellingsOf(text: string): readonly string[] {
  const decoded = text.replace(ESCAPE, decodeDelimiter);
  if (text.startsWith('file:')) return [decoded];
  const other = /^[^:/?#]*:\/\/\//.test(decoded)
    ? decoded.replace('://', ':')
    : decoded.replace(/^([^:/?#]*:)(?=\/[^/]|\/$)/, '$1//');
  return [decoded, other];
}

function toReading(text: string): UriReading {
  const withoutUser = text.replace(/^([^/?#]*:\/\/)[^/?#]*@/, '$1');
  return { text, withoutUser: withoutUser === text ? undefined : withoutUser };
}

/** Decodes escapes of unreserved characters and writes the others in upper case. Undefined for malformed escapes. */
function normalizeEscapes(text: string): string | undefined {
  if (!text.includes('%')) return text;
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  return text.replace(ESCAPE, (written: string) => {
    const character = String.fromCharCode(Number.parseInt(written.slice(1), 16));
    return UNRESERVED.test(character) ? character : written.toUpperCase();
  });
}
