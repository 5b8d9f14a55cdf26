// What a schema cannot say about credentials, TLS and the assertion of an upstream: which keys belong
// together, where tokens are asked for, and whose headers these are. Reports and changes nothing.
// Contract §3; RFC 8707 §2; MCP security best practices (token passthrough).

import { checkOriginAt } from './checks-origins.js';
import { ownAudiences } from './checks-resources.js';
import type { FilePath, Report } from './fault.js';
import { mapAt, textAt, valueAt } from './tree.js';
import { readDurationMs } from './units.js';

/** Headers that the gateway or the connection owns: nothing configured may take their place. */
const OWNED_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'keep-alive', 'accept', 'accept-encoding', 'origin'],
  ...['expect', 'last-event-id', 'forwarded', 'via', 'traceparent', 'tracestate', 'baggage'],
  'user-agent',
]);
const OWNED_PREFIXES = ['mcp-', 'proxy-', 'sec-', 'x-forwarded-'];
const OWN_PREFIX = 'sallyport-';
/** Where credentials stand; an assertion is none. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'cookie', 'dpop']);
/** A longer life would make an assertion a credential. */
const MAX_ASSERTION_MS = 10 * 60 * 1000;
const MIN_ASSERTION_MS = 1_000;

/** Checks what one upstream is shown and how it is known. */
export function checkPresented(root: unknown, name: string, report: Report): void {
  const at: FilePath = ['upstreams', name];
  const callers = [...at, 'credentials'];
  const own = [...at, 'pinning', 'credentials'];
  for (const place of [callers, own]) checkStaticHeader(root, place, report);
  checkTokenRequest(root, callers, ['client-credentials', 'token-exchange'], report);
  checkTokenRequest(root, own, ['client-credentials'], report);
  checkExchange(root, at, report);
  checkTls(root, at, report);
  checkIdentity(root, at, report);
}

function isOwned(header: string): boolean {
  return OWNED_HEADERS.has(header) || OWNED_PREFIXES.some((prefix) => header.startsWith(prefix));
}

function checkStaticHeader(root: unknown, place: FilePath, report: Report): void {
  const header = textAt(root, [...place, 'header'])?.toLowerCase();
  if (header === undefined) return;
  if (isOwned(header) || header.startsWith(OWN_PREFIX)) {
    report([...place, 'header'], 'the gateway sets this header itself', { rule: 'conflict' });
  }
}

/** `client-credentials` and `token-exchange`: one server, one way to prove oneself, one audience not ours. */
function checkTokenRequest(
  root: unknown,
  place: FilePath,
  types: readonly string[],
  report: Report,
): void {
  if (!types.includes(textAt(root, [...place, 'type']) ?? '')) return;
  checkOneOf(root, place, ['issuer', 'tokenEndpoint'], report);
  checkOneOf(root, place, ['clientSecret', 'privateKey'], report);
  for (const key of ['issuer', 'tokenEndpoint']) checkOriginAt(root, place, key, report);
  const own = ownAudiences(root);
  for (const key of ['resource', 'audience']) {
    const written = textAt(root, [...place, key]);
    if (written !== undefined && own.has(written)) {
      report([...place, key], 'this is an audience of the gateway itself', { rule: 'unsafe' });
    }
  }
  const resource = textAt(root, [...place, 'resource']);
  if (resource !== undefined && (!URL.canParse(resource) || resource.includes('#'))) {
    report([...place, 'resource'], 'a resource indicator is an absolute URI without fragment');
  }
}

function checkOneOf(
  root: unknown,
  place: FilePath,
  [one, other]: readonly [string, string],
  report: Report,
): void {
  const found = [one, other].filter((key) => valueAt(root, [...place, key]) !== undefined);
  if (found.length === 1) return;
  if (found.length === 0) {
    report(place, `one of the keys "${one}" and "${other}" is missing`, { rule: 'missing-key' });
    return;
  }
  report([...place, other], `"${one}" or "${other}", not both`, { at: 'key', rule: 'conflict' });
}

function checkExchange(root: unknown, at: FilePath, report: Report): void {
  if (textAt(root, [...at, 'credentials', 'type']) !== 'token-exchange') return;
  if (valueAt(root, [...at, 'pinning', 'credentials']) === undefined) {
    report(
      [...at, 'credentials'],
      'token-exchange needs "pinning.credentials": the gateway lists for itself, without a caller',
      { rule: 'missing-key' },
    );
  }
  if (textAt(root, [...at, 'authentication']) === 'none') {
    const message = 'with "authentication: none" there is no token to exchange';
    report([...at, 'credentials'], message, { rule: 'conflict' });
  }
}

function checkTls(root: unknown, at: FilePath, report: Report): void {
  const tls = mapAt(root, [...at, 'tls']);
  if (Object.keys(tls).length === 0) return;
  if (textAt(root, [...at, 'url'])?.startsWith('http:') === true) {
    report([...at, 'tls'], 'this upstream is reached by plain http', {
      at: 'key',
      rule: 'conflict',
    });
  }
  for (const [key, other] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    if (tls[key] === undefined || tls[other] !== undefined) continue;
    report([...at, 'tls', key], `"${key}" needs "${other}" beside it`, { rule: 'missing-key' });
  }
}

function checkIdentity(root: unknown, at: FilePath, report: Report): void {
  const path = [...at, 'identity'];
  const header = textAt(root, [...path, 'header'])?.toLowerCase();
  if (header !== undefined && (isOwned(header) || CREDENTIAL_HEADERS.has(header))) {
    report([...path, 'header'], 'the gateway sets this header itself', { rule: 'conflict' });
  }
  for (const place of ['credentials', 'pinning.credentials']) {
    const taken = textAt(root, [...at, ...place.split('.'), 'header'])?.toLowerCase();
    if (taken === undefined || taken !== header) continue;
    report([...path, 'header'], `"${place}" has this header too`, { rule: 'conflict' });
  }
  const ttlMs = readDurationMs(textAt(root, [...path, 'ttl']) ?? '60s');
  if (ttlMs !== undefined && (ttlMs < MIN_ASSERTION_MS || ttlMs > MAX_ASSERTION_MS)) {
    report([...path, 'ttl'], 'an assertion is valid for 1s to 10m');
  }
}
