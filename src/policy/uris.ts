// Reads URIs for the patterns of resources. A URI is parsed into scheme, authority, path and query and written in one
// normal form. Servers differ in what they decode, resolve, collapse and ignore, so a URI may have further readings and
// spellings: an allow rule must cover every reading, and a rule or a block that restricts applies if one spelling
// matches. A URI is never repaired, and it is forwarded as it was received.
// Source: RFC 3986 §3, §5.2.4 and §6.2.2; RFC 8089; the WHATWG URL Standard for the schemes that it calls special;
// docs/contract.md, law 6.

import { BoundedMap } from '../state/bounds.js';
import { libraryHost } from './hosts.js';
import { compilePattern, isExactPattern, matchesPattern, type Pattern } from './patterns.js';

/** Maximum length of a URI that is parsed, in characters. */
export const MAX_URI_CHARS = 8192;
/** A URI with more steps between its readings, or more readings, is refused: it is nested escapes and little else. */
const MAX_STEPS = 64;
const MAX_READINGS = 24;
/** A URI with more spellings, or with more characters in all of them together, is one that no restriction can clear. */
type Bounds = {
  readonly isRepeated: boolean;
  /** The form in which texts are kept. */
  readonly write?: (text: string) => string;
  readonly maxTexts: number;
  readonly maxChars: number;
};
const REDUCED: Bounds = { isRepeated: true, maxTexts: 128, maxChars: 96 * 1024 };
const CORES: Bounds = { ...REDUCED, maxTexts: 64, maxChars: 64 * 1024, write: withoutLastSlashes };
const CORES_IN_ALL: Bounds = { isRepeated: false, maxTexts: 512, maxChars: 256 * 1024 };
const SPELT: Bounds = { isRepeated: false, maxTexts: 512, maxChars: 256 * 1024 };
const TOO_MANY_SPELLINGS = 'the URI has too many spellings';

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
  /** The URI as it was received, which determines everything else. */
  readonly written: string;
  readonly normal: string;
  /** The normal form first. An allow rule must cover all of them. */
  readonly all: readonly UriReading[];
  /** What of the URI a pattern grants only where it has it itself. */
  readonly parts: readonly OddPart[];
  /** What a server could read as the same: nothing is added that the URI has not. Throws if there is too much of it. */
  readonly reduced: () => readonly string[];
  /** The same without what servers add and leave out at will, for patterns that are written so. Throws like `reduced`. */
  readonly cores: () => Cores;
  /** The same with all that servers add and leave out, for other patterns that restrict. Throws like `reduced`. */
  readonly spellings: () => readonly string[];
};

/** True for the resources that hosts run beside a tool (MCP Apps extension). Their content is pinned. */
export function isAppUri(uri: string): boolean {
  return uri.startsWith('ui:');
}

/** The normal form of a URI; undefined if the text is not one. */
export function normalizeUri(uri: string): string | undefined {
  return primaryOf(uri)?.normal;
}

/** RFC 3986, appendix B, for a reference without a fragment. */
const REFERENCE_PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?$/s;

/**
 * A reference without a fragment, resolved against a base (RFC 3986 §5.2.2), in normal form where it is a URI. Names of
 * hosts are not read, so that the outcome is that of no URL parser.
 */
export function resolveReference(reference: string, base: string): string {
  const [, scheme, authority, path = '', query = ''] = REFERENCE_PARTS.exec(reference) ?? [];
  const [, baseScheme, baseAuthority, basePath = '', baseQuery = ''] = REFERENCE_PARTS.exec(base) ?? [];
  const write = (at: string | undefined, from: string | undefined, to: string, rest: string) => {
    const start = from === undefined ? `${at}:` : `${at}://${from}`;
    const written = `${start}${resolvePath(to).path}${rest}`;
    return normalizeUri(written) ?? written;
  };
  if (scheme !== undefined) return write(scheme, authority, path, query);
  if (authority !== undefined) return write(baseScheme, authority, path, query);
  if (path === '') return write(baseScheme, baseAuthority, basePath, query || baseQuery);
  if (path.startsWith('/')) return write(baseScheme, baseAuthority, path, query);
  const isEmpty = baseAuthority !== undefined && basePath === '';
  const merged = isEmpty ? `/${path}` : basePath.replace(/[^/]*$/, '') + path;
  return write(baseScheme, baseAuthority, merged, query);
}

/**
 * The URIs that were read last: one that a request names is decided by the rules in force, those in shadow, the blocks
 * and the backends of an aggregate. Few, because the spellings of each may be hundreds of kilobytes.
 */
const lastRead = new BoundedMap<string, { readonly readings: UriReadings | undefined }>(8);

/** All readings of a URI; undefined if the text is not one, or has too many. */
export function readUri(uri: string): UriReadings | undefined {
  if (uri.length > MAX_URI_CHARS) return undefined;
  const known = lastRead.use(uri);
  if (known !== undefined) return known.readings;
  const readings = findAllReadings(uri);
  lastRead.set(uri, { readings });
  return readings;
}

function findAllReadings(uri: string): UriReadings | undefined {
  const primary = primaryOf(uri);
  if (primary === undefined) return undefined;
  const texts = findReadings(primary);
  if (texts === undefined) return undefined;
  const { normal, unresolved } = primary;
  const unfolded = unfoldedHost(uri);
  const withCase = [...texts, ...unfolded];
  const reduced = once(() => expand(texts, REDUCTIONS, REDUCED));
  const reducedWithCase = unfolded.length === 0 ? reduced : () => expand(withCase, REDUCTIONS, REDUCED);
  return {
    written: uri,
    normal,
    all: texts.map(toReading),
    parts: oddPartsOf(unresolved),
    reduced,
    cores: once(() => coresOf(expand(withCase.map(inOneForm), CORE_STEPS, CORES))),
    spellings: once(() => expand(reducedWithCase(), ADDITIONS, SPELT)),
  };
}

/** Computes a value when it is first asked for, or throws each time what that threw. */
function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | { readonly error: unknown } | undefined;
  return () => {
    made ??= attempt(make);
    if ('error' in made) throw made.error;
    return made.value;
  };
}

function attempt<Value>(make: () => Value): { readonly value: Value } | { readonly error: unknown } {
  try {
    return { value: make() };
  } catch (error) {
    return { error };
  }
}

/** The texts that the conditions of a rule see as `uri`: the normal form first. */
export function conditionTexts(readings: UriReadings, effect: string): readonly string[] {
  return effect === 'allow' ? [...new Set(readings.all.flatMap(textsOf))] : readings.reduced();
}

function textsOf({ text, withoutUser }: UriReading): readonly string[] {
  return withoutUser === undefined ? [text] : [text, withoutUser];
}

/**
 * Whether patterns name a URI: for an allow rule in all of its readings, for any other rule in one of its spellings.
 */
export function namesUri(
  patterns: readonly Pattern[],
  readings: UriReadings,
  effect: 'allow' | 'deny' | 'require',
): boolean {
  if (patterns.length === 0) return false;
  if (effect !== 'allow') return restrictsUri(patterns, readings);
  const { all, normal, parts } = readings;
  return all.every((reading) => {
    const isNormal = reading.text === normal;
    return patterns.some(
      (pattern) =>
        coversReading(pattern, reading, isNormal) && (!isNormal || parts.every((part) => grantsPart(pattern, part))),
    );
  });
}

/** Whether one of the patterns matches a spelling that some server could read as this URI. */
export function restrictsUri(patterns: readonly Pattern[], readings: UriReadings): boolean {
  return patterns.some((pattern) => textsFor(pattern, readings).some((text) => matchesPattern(pattern, text)));
}

function textsFor({ compared }: Pattern, readings: UriReadings): readonly string[] {
  if (compared === undefined) return readings.spellings();
  const { asWritten, withHost } = readings.cores();
  return compared === 'core' ? asWritten : withHost;
}

/** URIs as patterns that restrict are compared with them. */
type Cores = {
  readonly asWritten: readonly string[];
  /** With those whose first segment is read as a host. */
  readonly withHost: readonly string[];
};

/** A scheme, any slashes, a first segment, the rest of the path, and what follows it. */
const CORE_PARTS = /^([^:/?#]*:)(\/*)([^/?#]*)([^?#]*)(.*)$/s;

/**
 * A URI, or a pattern of URIs, without the slashes behind the scheme and at the end, in one normal form, and with blanks
 * for the signs that stand for them in forms.
 */
function coreOf(text: string): string {
  const [matched, start = '', , host = '', path = '', rest = ''] = CORE_PARTS.exec(text) ?? [];
  return matched === undefined ? text : start + trimSlashes(inOneForm(host + path)) + inOneForm(rest);
}

function withoutLastSlashes(text: string): string {
  const end = text.search(/[?#]/);
  return end === -1 ? trimSlashes(text) : trimSlashes(text.slice(0, end)) + text.slice(end);
}

function trimSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** The cores of texts, each also without what follows its path, and without its user, port and the host of a file. */
function coresOf(texts: readonly string[]): Cores {
  const asWritten = createFound(CORES_IN_ALL);
  const withHost = createFound(CORES_IN_ALL);
  for (const text of texts) {
    const [matched, start = '', slashes = '', first = '', path = '', rest = ''] = CORE_PARTS.exec(text) ?? [];
    if (matched === undefined) continue;
    const scheme = start.slice(0, -1);
    const names = slashes === '//' ? namesOfHost(scheme, first) : [first];
    if (scheme === 'file' && names.length > 1) names.push('');
    const read = normalizeAuthority(scheme, first) ?? lowerCase(first);
    const readNames = [...names, ...namesOfHost(scheme, read)];
    for (const tail of tailsOf(rest)) {
      const write = (name: string): string => start + trimSlashes(name + path).replace(/^\/+/, '') + tail;
      asWritten.add(names.map(write));
      withHost.add(readNames.map(write));
    }
  }
  return { asWritten: asWritten.all, withHost: withHost.all };
}

/** A query and a fragment, the query alone, and neither: the fragment is never the server's, and many ignore a query. */
function tailsOf(rest: string): readonly string[] {
  return rest === '' ? [rest] : [rest, rest.split('#', 1)[0] ?? '', ''];
}

/** An authority, and it without its user, without its port where the scheme has no default port, and without both. */
function namesOfHost(scheme: string, authority: string): string[] {
  if (authority === '') return [authority];
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  if (HOST_SCHEMES.has(scheme)) return [authority, host];
  return [authority, host, withoutPortOf(authority), withoutPortOf(host)];
}

function withoutPortOf(authority: string): string {
  return authority.replace(/:[0-9]*$/, '');
}

/** What a server may ignore or read in its own way, so that a pattern grants it only if it has it. */
type OddPart = 'fragment' | 'user' | 'encoded slash' | 'empty segment';

const ENCODED_SLASH = /%(?:25)*2F/i;

function oddPartsOf(text: string): readonly OddPart[] {
  const [, , authority = '', path = '', , fragment] = URI_PARTS.exec(text) ?? [];
  const found: OddPart[] = [];
  if (fragment !== undefined) found.push('fragment');
  if (authority.includes('@')) found.push('user');
  if (ENCODED_SLASH.test(authority + path)) found.push('encoded slash');
  if (path.includes('//')) found.push('empty segment');
  return found;
}

/** Patterns of everything, or of everything of one scheme, with or without a fragment. */
const OPEN_PATTERN = /^(?:[a-z][a-z0-9+.-]*:(?:\/\/)?)?\*\*(?:#\*\*)?$/;

function grantsPart(pattern: Pattern, part: OddPart): boolean {
  const { text } = pattern;
  if (part === 'fragment') return text.includes('#');
  if (OPEN_PATTERN.test(text)) return true;
  const isRegex = text.startsWith('re:');
  const [head = ''] = isRegex ? [text] : text.split(/[?#]/, 1);
  switch (part) {
    case 'user':
      return namesUser(pattern);
    case 'encoded slash':
      return ENCODED_SLASH.test(head);
    case 'empty segment':
      return /\/\//.test(head.replace(/^[^/?#]*:\/\//, ''));
  }
}

function coversReading(pattern: Pattern, reading: UriReading, isNormal: boolean): boolean {
  const covers = (text: string): boolean =>
    matchesPattern(pattern, text) || (!isNormal && pattern.decoded?.some((one) => matchesPattern(one, text)) === true);
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
export function normalizeUriPattern(pattern: string): readonly [string, ...(readonly string[])] | undefined {
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
  const collapsed = [normal, ...decoded].map(collapse).filter((text) => text !== normal);
  return [normal, ...new Set([...decoded, ...collapsed])];
}

/**
 * The patterns that restrict what the given ones name: also without the fragment, and a query that one names among other
 * parameters and in any order. They are compared with the cores of URIs where they can be written as one.
 */
export function restrictionsOf(compiled: readonly Pattern[]): readonly Pattern[] {
  return compiled.flatMap((pattern): readonly Pattern[] => {
    const { text } = pattern;
    if (text.startsWith('re:')) return [pattern];
    const compared = /^[^:/?#]*:\/\/[^/?#]/.test(text) ? 'core with a host' : 'core';
    if (isExactPattern(text)) return [{ ...restrictionOf(text), compared }];
    const globs = coresOfGlob(text).map((core) => compilePattern(core, 'path'));
    return globs.flatMap((one) => (one.ok ? [{ ...one.pattern, compared }] : []));
  });
}

/** The pattern of the core of one resource. */
function restrictionOf(written: string): Pattern {
  const [text = ''] = written.split('#', 1);
  const core = coreOf(text);
  const at = core.indexOf('?');
  if (at === -1) return { kind: 'exact', text: core };
  const head = core.slice(0, at);
  const named = parametersOf(core.slice(at));
  if (named.size === 0) return { kind: 'exact', text: head };
  const matches = (candidate: string): boolean => {
    if (!candidate.startsWith(`${head}?`)) return false;
    const given = parametersOf(candidate.slice(head.length).split('#', 1)[0] ?? '');
    return [...named].every((one) => given.has(one));
  };
  return { kind: 'pattern', text: core, matches };
}

/** A glob as it is compared with cores. One that ends with everything in a folder has the folder too. */
function coresOfGlob(glob: string): readonly string[] {
  const core = coreOf(glob);
  const folder = core.replace(/\/\*{1,2}(?=$|[?#])/, '');
  return folder === core ? [core] : [core, folder];
}

/** The patterns of a restriction of one resource; none if the text is not a URI. */
export function restrictionsOfUri(uri: string): readonly Pattern[] {
  const texts = readUri(uri)?.all.map(({ text }) => text) ?? [];
  return restrictionsOf(texts.map((text) => ({ kind: 'exact', text })));
}

function parametersOf(query: string): ReadonlySet<string> {
  const parameters = query.replace(/^\?+/, '').split(/[&;]/);
  return new Set(
    parameters
      .filter((one) => one !== '')
      .map((one) =>
        one
          .replaceAll('+', ' ')
          .replace(ESCAPE, (written) => String.fromCharCode(Number.parseInt(written.slice(1), 16)))
          .replace(/^[^=]*/, (name) => name.toLowerCase())
          .trim(),
      ),
  );
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

function collapse(pattern: string): string {
  return pattern.replace(
    /^([^:/?#]*:(?:\/\/)?[^/?#]*)([^?#]*)/,
    (_all, head: string, path: string) => head + path.replace(/\/{2,}/g, '/'),
  );
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
  const [matched, written = '', host, writtenPath = '', query = '', fragment = ''] = URI_PARTS.exec(uri) ?? [];
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

function writeUri(scheme: string, authority: string | undefined, path: string, rest: string): string {
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
  if (authority !== undefined && path === '') return { isReading: false, next: [`${scheme}://${authority}/${rest}`] };
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
  if (authority !== undefined && (climbs || isDots(authority)))
    next.push(`${scheme}:/${resolvePath(`/${authority}${path}`).path}${rest}`);
  const asLibrary = libraryReading(scheme, authority, text);
  if (asLibrary !== undefined) next.push(asLibrary);
  return { isReading: resolved === path || isRootless, next };
}

/** True if there is nothing to decode, to resolve or to collapse, which holds for nearly all URIs. */
function isPlain(text: string): boolean {
  if (text.includes('%')) return false;
  const [, scheme = '', authority, path = ''] = URI_PARTS.exec(text) ?? [];
  if (isDots(authority ?? '') || path.includes('//') || /(?:^|\/)\.{1,2}(?:\/|$)/.test(path)) return false;
  return libraryReading(scheme, authority, text) === undefined;
}

/** The drive of a file of Windows, whose letter has no case and above which nothing leads. */
const DRIVE = /^(file:\/{0,3})([a-z])(?::|%7C)(?=\/|$)/i;

/** How the libraries read a URL of a special scheme: addresses in any notation, a host without `//`. */
function libraryReading(scheme: string, authority: string | undefined, text: string): string | undefined {
  if (!HOST_SCHEMES.has(scheme) && scheme !== 'file') return undefined;
  const host = authority?.replace(/^.*@/, '').replace(/:[0-9]*$/, '');
  const isCommon = scheme === 'file' ? host === '' && !DRIVE.test(text) : host !== undefined && PLAIN_HOST.test(host);
  if (isCommon) return undefined;
  const href = libraryHref(scheme, text);
  return href === undefined ? undefined : normalizeUri(href);
}

/** Which names are hosts depends on the version of a URL parser, and nothing else of a URL does. */
function libraryHref(scheme: string, text: string): string | undefined {
  const [, start = '', user = '', name = '', rest = ''] = (scheme === 'file' ? FILE_URL : LIBRARY_URL).exec(text) ?? [];
  if (name === '') return URL.canParse(text) ? new URL(text).href : undefined;
  const host = libraryHost(name);
  const standIn = `${start}//${user}${STAND_IN}${rest}`;
  if (host === undefined || !URL.canParse(standIn)) return undefined;
  const shown = host.includes(':') ? `[${host}]` : host;
  return new URL(standIn).href.replace(STAND_IN_OF_URL, (_, before: string) => before + shown);
}

/** The scheme, the user, the host and what follows it, with any number of slashes before them. */
const LIBRARY_URL = /^([^:]*:)\/*((?:[^/?#]*@)?)(\[[^\]/?#]*\]|[^/?#:]*)(.*)$/s;
/** Other numbers of slashes than two begin the path of a file. */
const FILE_URL = /^([^:]*:)\/\/()([^/?#]+)(.*)$/s;
const STAND_IN = 'host.invalid';
const STAND_IN_OF_URL = /^([^/]*\/\/(?:[^/@]*@)?)host\.invalid/;

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

/** What a spelling becomes at a server that decodes, ignores or adds something. */
type Respell = (text: string) => readonly string[];

/** Texts, each once, in the order in which they were found. Throws beyond its bounds. */
type Found = { readonly all: readonly string[]; add(texts: readonly string[]): void };

function createFound({ maxTexts, maxChars, write }: Bounds): Found {
  const known = new Set<string>();
  const all: string[] = [];
  let chars = 0;
  return {
    all,
    add(texts) {
      for (const one of texts) {
        const text = write === undefined ? one : write(one);
        if (known.has(text)) continue;
        known.add(text);
        all.push(text);
        chars += text.length;
      }
      if (all.length > maxTexts || chars > maxChars) throw new Error(TOO_MANY_SPELLINGS);
    },
  };
}

/**
 * Texts with all that comes of them, the given ones first. Each step reads each text once, in rounds: one, or as many as
 * bring anything new.
 */
function expand(texts: readonly string[], steps: readonly Respell[], bounds: Bounds): readonly string[] {
  const found = createFound(bounds);
  found.add(texts);
  const { all } = found;
  const read = steps.map(() => 0);
  do {
    for (const [index, step] of steps.entries()) {
      const fresh = all.slice(read[index]);
      read[index] = all.length;
      for (const text of fresh) found.add(step(text));
    }
  } while (bounds.isRepeated && read.some((count) => count < all.length));
  return all;
}

/** With every escape decoded, and with an empty authority for an absent one or the other way round. */
const decoded: Respell = (text) => {
  const plain = text.includes('%') ? text.replace(ESCAPE, decodeDelimiter) : text;
  if (text.startsWith('file:')) return [plain];
  const other = /^[^:/?#]*:\/\/\//.test(plain)
    ? plain.replace('://', ':')
    : plain.replace(/^([^:/?#]*:)(?=\/[^/]|\/$)/, '$1//');
  return [plain, other];
};

/** Without the fragment, which is never the server's, and without a query, which many servers ignore. */
const cut: Respell = (text) => {
  const [bare = ''] = text.split('#', 1);
  return [bare, bare.split('?', 1)[0] ?? ''];
};

const withoutUser: Respell = (text) => [toReading(text).withoutUser ?? text];

/** Without a port, where the scheme has no default port. */
const withoutPort: Respell = (text) => {
  const [, scheme = '', authority = ''] = URI_PARTS.exec(text) ?? [];
  if (!/:[0-9]*$/.test(authority) || HOST_SCHEMES.has(scheme)) return [];
  return [text.replace(authority, authority.slice(0, authority.lastIndexOf(':')))];
};

/** A file without its host, which many servers do not read. */
const withoutHost: Respell = (text) => [text.replace(/^file:\/\/[^/?#]+(?=\/)/, 'file://')];

/** Without parameters of segments (`;v=1`), the first of which may stand where others see a host. */
const withoutParameters: Respell = (text) =>
  text.includes(';') ? [text.replace(/^[^?#]*/, (head) => head.replace(/;[^/]*/g, ''))] : [];

/** Up to an escaped query, fragment or NUL, and without what file systems and servers cut off segments. */
const trimmed: Respell = (text) =>
  onPath(text, (path) => {
    const shown = path.replace(/%(?:3F|23|00).*$/i, '').replace(/::\$data$/i, '');
    return [shown, trimSegments(shown), trimSegments(path)];
  });

/** A blank of ASCII or Unicode, escaped; NFKC makes the others to one of these. */
const BLANK = '%(?:0[9-D]|1[C-F]|20|C2%85|E1%9A%80|E2%80%A[89]|EF%BB%BF)';
const FIRST_BLANKS = new RegExp(`^(?:${BLANK})+`, 'i');
const LAST_BLANK = new RegExp(`${BLANK}$`, 'i');
const MAX_BLANK_CHARS = 9;

function trimSegments(path: string): string {
  return path.split('/').map(trimSegment).join('/');
}

/** Without blanks at either end and, unless it is all dots, without the dots that Windows ignores at its end. */
function trimSegment(segment: string): string {
  const shown = segment.replace(FIRST_BLANKS, '');
  let end = shown.length;
  for (let withoutDots = false; ; ) {
    const last = LAST_BLANK.exec(shown.slice(Math.max(0, end - MAX_BLANK_CHARS), end))?.[0];
    if (last !== undefined) end -= last.length;
    else if (shown[end - 1] !== '.') break;
    else if (withoutDots || !/^\.+$/.test(shown.slice(0, end))) {
      withoutDots = true;
      end -= 1;
    } else break;
  }
  return shown.slice(0, end);
}

const FORMS = ['NFC', 'NFD', 'NFKC'] as const;
const BEYOND_ASCII = /(?:%[89A-F][0-9A-F])+/gi;

/** In the normal forms in which file systems and servers compare names (UAX #15). */
const inNormalForms: Respell = (text) => FORMS.map((form) => normalized(text, form));

function normalized(text: string, form: (typeof FORMS)[number]): string {
  if (!/%[C-F]/i.test(text)) return text;
  const shown = text.replace(BEYOND_ASCII, (written) => {
    try {
      return decodeURIComponent(written);
    } catch {
      return written;
    }
  });
  return shown.normalize(form).replace(/[^\x21-\x7e]+/gu, encodeURIComponent);
}

/** In the normal form that all others have, and with blanks for the signs that stand for them in the paths of forms. */
function inOneForm(text: string): string {
  const folded = normalized(text, 'NFKC');
  return folded.includes('+') ? folded.replace(/^[^?#]*/, (head) => head.replaceAll('+', '%20')) : folded;
}

/** With blanks for the signs that stand for them in forms. */
const asForm: Respell = (text) => (text.includes('+') ? onPath(text, (path) => [path.replaceAll('+', '%20')]) : []);
const asWrittenInForms: Respell = (text) =>
  text.includes('%20') ? onPath(text, (path) => [path.replaceAll('%20', '+')]) : [];

/** With the letter of a drive in either case. */
const onDrive: Respell = (text) => {
  const [matched = '', start = '', letter = ''] = DRIVE.exec(text) ?? [];
  if (letter === '') return [];
  const rest = `:${text.slice(matched.length)}`;
  return [start + letter.toUpperCase() + rest, start + letter.toLowerCase() + rest];
};

/** Resolved and collapsed, where the steps before have made that possible. */
const resolvedAgain: Respell = (text) =>
  onPath(text, (path) => {
    const resolved = resolvePath(path).path;
    const collapsed = path.replace(/\/{2,}/g, '/');
    return [resolved, resolved.replace(/\/{2,}/g, '/'), resolvePath(collapsed).path];
  });

const withoutSlash: Respell = (text) =>
  onPath(text, (path) => {
    let end = path.length;
    while (path[end - 1] === '/') end -= 1;
    return [end === 0 ? path : path.slice(0, end)];
  });
const withSlash: Respell = (text) => onPath(text, (path) => [path.endsWith('/') ? path : `${path}/`]);

function onPath(text: string, change: (path: string) => readonly string[]): readonly string[] {
  const [, scheme = '', authority, path = '', query = '', fragment = ''] = URI_PARTS.exec(text) ?? [];
  if (scheme === '' || path === '') return [];
  const start = authority === undefined ? `${scheme}:` : `${scheme}://${authority}`;
  return change(path).map((next) => start + next + query + fragment);
}

/** With any number of slashes behind the scheme: many servers cut the scheme off by hand. */
const withSlashes: Respell = (text) => {
  const [, start = '', rest = ''] = /^([a-z][a-z0-9+.-]*:)\/*(.*)$/s.exec(text) ?? [];
  if (rest === '' || rest.startsWith('?') || rest.startsWith('#')) return [];
  const host = /^[^/?#]*/.exec(rest)?.[0] ?? '';
  const path = rest.slice(host.length);
  const authority = normalizeAuthority(start.slice(0, -1), host) ?? lowerCase(host);
  return [
    `${start}${rest}`,
    `${start}/${rest}`,
    `${start}///${rest}`,
    `${start}//${authority}${path.startsWith('/') ? path : `/${path}`}`,
  ];
};

const REDUCTIONS = [
  decoded,
  cut,
  withoutUser,
  withoutPort,
  withoutHost,
  withoutParameters,
  inNormalForms,
  asForm,
  onDrive,
  trimmed,
  resolvedAgain,
  withoutSlash,
];
/** With what follows an authority of a user and a port alone in its place. */
const withoutEmptyHost: Respell = (text) => [text.replace(/^([^:/?#]*:)\/\/(?:[^/?#]*@)?(?::[0-9]*)?(?=\/)/, '$1')];

const decodedInOneForm: Respell = (text) => (text.includes('%') ? decoded(text).map(inOneForm) : decoded(text));

/** Those of them that change the path. The rest is left out when cores are made. */
const CORE_STEPS = [decodedInOneForm, withoutEmptyHost, withoutParameters, onDrive, trimmed, resolvedAgain];
const ADDITIONS = [asWrittenInForms, withSlashes, withoutPort, withoutUser, withoutSlash, withSlash];

/** The URI with its host as it is written, for those who take it for a part of the path. */
function unfoldedHost(uri: string): readonly string[] {
  const folded = uri.replace(/^[^:]*:/, (scheme) => scheme.toLowerCase());
  const host = /^[^:]*:\/\/([^/?#]*)/.exec(folded)?.[1];
  return host === undefined || host === host.toLowerCase() ? [] : [folded];
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
