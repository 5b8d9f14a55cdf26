// Parses and normalizes resource URIs for policies, so that one resource has one spelling. Never repairs: a
// URI with more than one reading is refused and matches nothing. The URI is forwarded as it was received; its
// normal form is matched.
// Source: RFC 3986 §3, §5.2.4 and §6.2.2; docs/contract.md §4, law 6.

/** Maximum length of a URI that is parsed, in characters. */
export const MAX_URI_CHARS = 8192;

/** The characters of RFC 3986 §2: no `\`, quotes, braces, control characters, and nothing beyond ASCII. */
const URI_CHARACTERS = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;
/** RFC 3986, appendix B. Every part excludes its delimiter, so matching is linear. */
const URI_PARTS = /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/;
const AUTHORITY = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=]*)(?::([0-9]{0,5}))?$/;
/** Schemes that browsers and many libraries read with a host even if `//` is absent. */
const HOST_SCHEMES: ReadonlyMap<string, string> = new Map([
  ['http', '80'],
  ['https', '443'],
  ['ws', '80'],
  ['wss', '443'],
  ['ftp', '21'],
]);
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/** True for the resources that hosts run beside a tool (MCP Apps extension). Their content is pinned. */
export function isAppUri(uri: string): boolean {
  return uri.startsWith('ui:');
}

/** The normal form of a URI, or undefined if it does not parse or has more than one reading. */
export function normalizeUri(uri: string): string | undefined {
  if (uri.length > MAX_URI_CHARS || !URI_CHARACTERS.test(uri)) return undefined;
  const parts = URI_PARTS.exec(uri);
  if (parts === null) return undefined;
  const scheme = (parts[1] ?? '').toLowerCase();
  const authority = normalizeAuthority(scheme, parts[2]);
  const path = normalizePath(parts[3] ?? '', parts[2] !== undefined);
  const rest = normalizeEscapes((parts[4] ?? '') + (parts[5] ?? ''), 'query');
  if (authority === undefined || path === undefined || rest === undefined) return undefined;
  return `${scheme}:${authority}${path}${rest}`;
}

/**
 * Writes a resource pattern in the spelling of normal forms: scheme and authority in lower case, escapes of
 * unreserved characters decoded. `re:` patterns stay as written. Undefined if no URI could match.
 */
export function normalizeUriPattern(pattern: string): string | undefined {
  if (pattern.startsWith('re:')) return pattern;
  if (!pattern.includes('*')) return normalizeUri(pattern);
  const head = /^([^/?#]*:\/\/[^/?#]*)/.exec(pattern)?.[1] ?? '';
  const tail = pattern.slice(head.length);
  const path = tail.split(/[?#]/, 1)[0] ?? '';
  if (path.split('/').some(isDots)) return undefined;
  const normalTail = normalizeEscapes(tail, 'query');
  return normalTail === undefined ? undefined : head.toLowerCase() + normalTail;
}

function normalizeAuthority(scheme: string, authority: string | undefined): string | undefined {
  const defaultPort = HOST_SCHEMES.get(scheme);
  if (authority === undefined) return defaultPort === undefined ? '' : undefined;
  const parts = AUTHORITY.exec(authority);
  if (parts === null) return undefined;
  const host = normalizeHost(scheme, (parts[1] ?? '').toLowerCase());
  if (host === undefined) return undefined;
  const port = (parts[2] ?? '').replace(/^0+(?=[0-9])/, '');
  if (port !== '' && host === '') return undefined;
  return port === '' || port === defaultPort ? `//${host}` : `//${host}:${port}`;
}

function normalizeHost(scheme: string, written: string): string | undefined {
  const host = written.endsWith('.') ? written.slice(0, -1) : written;
  if (scheme === 'file') return host === 'localhost' ? '' : host;
  if (!HOST_SCHEMES.has(scheme)) return host;
  // Resolvers take numbers such as 0x7f.1 for addresses, so only their canonical spelling is accepted.
  return host !== '' &&
    URL.canParse(`http://${host}/`) &&
    new URL(`http://${host}/`).hostname === host
    ? host
    : undefined;
}

function normalizePath(path: string, hasAuthority: boolean): string | undefined {
  const decoded = normalizeEscapes(path, 'path');
  if (decoded === undefined) return undefined;
  if (decoded === '') return hasAuthority ? '/' : undefined;
  if (decoded.startsWith('/')) {
    const resolved = resolveSegments(decoded.slice(1).split('/'));
    return resolved === undefined ? undefined : `/${resolved.join('/')}`;
  }
  // Without a leading slash there is nothing that dot segments could be relative to.
  const segments = decoded.split('/');
  return segments.some((segment) => segment === '' || isDots(segment)) ? undefined : decoded;
}

function isDots(segment: string): boolean {
  return segment === '.' || segment === '..';
}

/** RFC 3986 §5.2.4; undefined for a path that climbs above its root or has an empty segment inside. */
function resolveSegments(segments: readonly string[]): readonly string[] | undefined {
  const kept: string[] = [];
  const last = segments.at(-1);
  for (const segment of segments.slice(0, -1)) {
    if (segment === '') return undefined;
    if (segment === '..' && kept.pop() === undefined) return undefined;
    if (!isDots(segment)) kept.push(segment);
  }
  if (last === '..' && kept.pop() === undefined) return undefined;
  kept.push(last === undefined || isDots(last) ? '' : last);
  return kept;
}

/**
 * Decodes escapes of unreserved characters and writes the others in upper case. Undefined for malformed
 * escapes, control characters and invalid UTF-8, and in a path for an encoded slash, backslash or escape.
 */
function normalizeEscapes(text: string, part: 'path' | 'query'): string | undefined {
  if (!text.includes('%')) return text;
  if (/%(?![0-9A-Fa-f]{2})/.test(text) || /%(?:[01][0-9A-Fa-f]|7[Ff])/.test(text)) return undefined;
  if (part === 'path' && /%(?:2[Ff]|5[Cc]|25[0-9A-Fa-f]{2})/.test(text)) return undefined;
  if (!isUtf8(text)) return undefined;
  return text.replace(/%[0-9A-Fa-f]{2}/g, (written) => {
    const character = String.fromCharCode(Number.parseInt(written.slice(1), 16));
    return UNRESERVED.test(character) ? character : written.toUpperCase();
  });
}

function isUtf8(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
