// Checks on upstreams and aggregates that a schema cannot express: which keys exclude or need each other,
// where tokens are requested, which headers the gateway sets itself, and what all backends must accept.
// Reports diagnostics and changes nothing. docs/contract.md §3, "serve refuses to start when"; RFC 8707 §2;
// MCP security best practices (token passthrough).

import { nearestCandidate } from '../../text/edit-distance.js';
import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import { quote } from '../schema/validation.js';
import type { BackendSettings } from '../settings.js';
import { readDurationMs } from '../units.js';
import { mapAt, textAt, textsAt, valueAt } from '../yaml.js';
import {
  checkOriginAt,
  checkUpstreamUrl,
  findPathError,
  isLoopbackGateway,
  isLoopbackHost,
  suggestPath,
} from './addresses.js';
import { ownAudiences } from './resources.js';

/** Headers that the gateway or the connection sets: configured headers must not replace them. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'keep-alive', 'accept', 'accept-encoding', 'origin'],
  ...['expect', 'last-event-id', 'forwarded', 'via', 'traceparent', 'tracestate', 'baggage'],
  'user-agent',
]);
const RESERVED_PREFIXES = ['mcp-', 'proxy-', 'sec-', 'x-forwarded-'];
const OWN_PREFIX = 'sallyport-';
/** Headers that carry credentials; an assertion must not be sent in one of them. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'cookie', 'dpop']);
/** With a longer lifetime, an assertion would serve as a credential. */
const MAX_ASSERTION_MS = 10 * 60 * 1000;
const MIN_ASSERTION_MS = 1_000;

/** Checks how the gateway authenticates to one upstream, its TLS and its identity assertion. */
function checkUpstreamAuthentication(root: unknown, name: string, report: ReportDiagnostic): void {
  const at: FilePath = ['upstreams', name];
  const callers = [...at, 'credentials'];
  const own = [...at, 'pinning', 'credentials'];
  for (const credentialsPath of [callers, own]) checkStaticHeader(root, credentialsPath, report);
  checkTokenRequest(root, callers, ['client-credentials', 'token-exchange'], report);
  checkTokenRequest(root, own, ['client-credentials'], report);
  checkExchange(root, at, report);
  checkTls(root, at, report);
  checkIdentity(root, at, report);
}

function isReserved(header: string): boolean {
  return (
    RESERVED_HEADERS.has(header) || RESERVED_PREFIXES.some((prefix) => header.startsWith(prefix))
  );
}

function checkStaticHeader(
  root: unknown,
  credentialsPath: FilePath,
  report: ReportDiagnostic,
): void {
  const header = textAt(root, [...credentialsPath, 'header'])?.toLowerCase();
  if (header === undefined) return;
  if (isReserved(header) || header.startsWith(OWN_PREFIX)) {
    report([...credentialsPath, 'header'], 'the gateway sets this header itself', {
      rule: 'conflict',
    });
  }
}

/**
 * Checks `client-credentials` and `token-exchange`: one authorization server, one client authentication
 * method, and an audience that is not the gateway's own.
 */
function checkTokenRequest(
  root: unknown,
  credentialsPath: FilePath,
  types: readonly string[],
  report: ReportDiagnostic,
): void {
  if (!types.includes(textAt(root, [...credentialsPath, 'type']) ?? '')) return;
  checkOneOf(root, credentialsPath, ['issuer', 'tokenEndpoint'], report);
  checkOneOf(root, credentialsPath, ['clientSecret', 'privateKey'], report);
  for (const key of ['issuer', 'tokenEndpoint']) checkOriginAt(root, credentialsPath, key, report);
  const own = ownAudiences(root);
  for (const key of ['resource', 'audience']) {
    const written = textAt(root, [...credentialsPath, key]);
    if (written !== undefined && own.has(written)) {
      report([...credentialsPath, key], 'this is an audience of the gateway itself', {
        rule: 'unsafe',
      });
    }
  }
  const resource = textAt(root, [...credentialsPath, 'resource']);
  if (resource !== undefined && (!URL.canParse(resource) || resource.includes('#'))) {
    report(
      [...credentialsPath, 'resource'],
      'a resource indicator is an absolute URI without fragment',
    );
  }
}

function checkOneOf(
  root: unknown,
  credentialsPath: FilePath,
  [one, other]: readonly [string, string],
  report: ReportDiagnostic,
): void {
  const found = [one, other].filter(
    (key) => valueAt(root, [...credentialsPath, key]) !== undefined,
  );
  if (found.length === 1) return;
  if (found.length === 0) {
    report(credentialsPath, `one of the keys "${one}" and "${other}" is missing`, {
      rule: 'missing-key',
    });
    return;
  }
  report([...credentialsPath, other], `"${one}" or "${other}", not both`, {
    at: 'key',
    rule: 'conflict',
  });
}

function checkExchange(root: unknown, at: FilePath, report: ReportDiagnostic): void {
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

function checkTls(root: unknown, at: FilePath, report: ReportDiagnostic): void {
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

function checkIdentity(root: unknown, at: FilePath, report: ReportDiagnostic): void {
  const path = [...at, 'identity'];
  const header = textAt(root, [...path, 'header'])?.toLowerCase();
  if (header !== undefined && (isReserved(header) || CREDENTIAL_HEADERS.has(header))) {
    report([...path, 'header'], 'the gateway sets this header itself', { rule: 'conflict' });
  }
  for (const credentialsKey of ['credentials', 'pinning.credentials']) {
    const taken = textAt(root, [...at, ...credentialsKey.split('.'), 'header'])?.toLowerCase();
    if (taken === undefined || taken !== header) continue;
    report([...path, 'header'], `"${credentialsKey}" has this header too`, { rule: 'conflict' });
  }
  const ttlMs = readDurationMs(textAt(root, [...path, 'ttl']) ?? '60s');
  if (ttlMs !== undefined && (ttlMs < MIN_ASSERTION_MS || ttlMs > MAX_ASSERTION_MS)) {
    report([...path, 'ttl'], 'an assertion is valid for 1s to 10m');
  }
}

/** Checks each upstream by itself. */
export function checkUpstreams(root: unknown, report: ReportDiagnostic): void {
  for (const name of Object.keys(mapAt(root, ['upstreams']))) {
    checkUpstreamUrl(root, name, report);
    checkPath(root, ['upstreams', name], report);
    checkCallerAuthentication(root, ['upstreams', name], report);
    checkProfileName(root, name, report);
    checkTimes(root, name, report);
    checkConcurrency(root, name, report);
    checkUpstreamAuthentication(root, name, report);
  }
}

/** Checks the path of an upstream or aggregate, if one is configured. */
function checkPath(root: unknown, owner: FilePath, report: ReportDiagnostic): void {
  const path = [...owner, 'path'];
  const written = textAt(root, path);
  const error = written === undefined ? undefined : findPathError(written);
  if (written === undefined || error === undefined) return;
  const suggestion = suggestPath(written);
  report(path, error, suggestion === undefined ? {} : { suggestion });
}

/** Checks who authenticates the callers of an upstream or aggregate: known issuers, or explicitly none. */
function checkCallerAuthentication(root: unknown, path: FilePath, report: ReportDiagnostic): void {
  const isUnauthenticated = textAt(root, [...path, 'authentication']) === 'none';
  const hasIssuers = valueAt(root, [...path, 'issuers']) !== undefined;
  if (isUnauthenticated) checkUnauthenticated(root, path, hasIssuers, report);
  else if (!hasIssuers) {
    report(path, 'the key "issuers" is missing: somebody must vouch for callers', {
      at: 'key',
      rule: 'missing-key',
    });
  }
  const known = Object.keys(mapAt(root, ['issuers']));
  for (const [index, issuer] of textsAt(root, [...path, 'issuers'])) {
    checkName([...path, 'issuers', index], 'issuer', issuer, known, report);
  }
  checkIntrospected(root, path, report);
  checkAudienceNames(root, path, report);
}

/**
 * At most one issuer of a resource may use introspection: an opaque token does not name its issuer, and
 * offering it to several issuers would disclose it (RFC 7662 §4).
 */
function checkIntrospected(root: unknown, owner: FilePath, report: ReportDiagnostic): void {
  const path = [...owner, 'issuers'];
  const introspected = textsAt(root, path).filter(
    ([, issuer]) => valueAt(root, ['issuers', issuer, 'introspection']) !== undefined,
  );
  for (const [index] of introspected.slice(1)) {
    const noun = owner[0] === 'endpoints' ? 'an endpoint' : 'an upstream';
    report([...path, index], `one issuer of ${noun} may be introspected, not several`, {
      rule: 'conflict',
    });
  }
}

function checkUnauthenticated(
  root: unknown,
  path: FilePath,
  hasIssuers: boolean,
  report: ReportDiagnostic,
): void {
  const at = [...path, 'authentication'];
  if (hasIssuers) {
    const owner = path[0] === 'endpoints' ? 'an endpoint' : 'an upstream';
    report(at, `${owner} has issuers or "authentication: none", not both`, { rule: 'conflict' });
  }
  if ((textAt(root, [...path, 'binding']) ?? 'none') !== 'none') {
    report([...path, 'binding'], 'without authentication there is no token to be bound', {
      rule: 'conflict',
    });
  }
  const host = textAt(root, ['listeners', 'data', 'host']);
  if (host !== undefined && !isLoopbackHost(host)) {
    report(at, '"authentication: none" needs a data listener on loopback', { rule: 'unsafe' });
  }
  if (!isLoopbackGateway(root)) {
    report(at, '"authentication: none" needs a loopback publicUrl', { rule: 'unsafe' });
  }
}

function checkAudienceNames(root: unknown, path: FilePath, report: ReportDiagnostic): void {
  const accepted = textsAt(root, [...path, 'issuers']).map(([, issuer]) => issuer);
  for (const issuer of Object.keys(mapAt(root, [...path, 'audiences']))) {
    if (accepted.includes(issuer)) continue;
    const suggestion = nearestCandidate(issuer, accepted);
    report(
      [...path, 'audiences', issuer],
      `${quote(issuer)} is not among the issuers of this ${path[0] === 'endpoints' ? 'endpoint' : 'upstream'}`,
      { at: 'key', rule: 'unknown-name', ...(suggestion === undefined ? {} : { suggestion }) },
    );
  }
}

function checkProfileName(root: unknown, name: string, report: ReportDiagnostic): void {
  const profile = textAt(root, ['upstreams', name, 'inspect']);
  if (profile === undefined) return;
  const known = ['default', ...Object.keys(mapAt(root, ['inspection', 'profiles']))];
  checkName(['upstreams', name, 'inspect'], 'inspection profile', profile, known, report);
}

/** With `exchangeMax` shorter than `requestTimeout`, an exchange would end before its first byte may arrive. */
function checkTimes(root: unknown, name: string, report: ReportDiagnostic): void {
  const limits = ['upstreams', name, 'limits'];
  const [first, total] = ['requestTimeout', 'exchangeMax'].map((key) =>
    readDurationMs(textAt(root, [...limits, key]) ?? ''),
  );
  if (first === undefined || total === undefined || first <= total) return;
  report([...limits, 'exchangeMax'], '"exchangeMax" is shorter than "requestTimeout"', {
    rule: 'conflict',
  });
}

function checkConcurrency(root: unknown, name: string, report: ReportDiagnostic): void {
  const limits = ['upstreams', name, 'limits'];
  const [all, own] = ['concurrency', 'concurrencyPerCaller'].map((key) =>
    valueAt(root, [...limits, key]),
  );
  if (typeof all !== 'number' || typeof own !== 'number' || own <= all) return;
  report([...limits, 'concurrencyPerCaller'], '"concurrencyPerCaller" exceeds "concurrency"', {
    rule: 'conflict',
  });
}

/** Reports a reference to a name that the file does not define. `at`: whether the name is a key or a value. */
function checkName(
  path: FilePath,
  kind: string,
  name: string,
  known: readonly string[],
  report: ReportDiagnostic,
  at: 'key' | 'value' = 'value',
): void {
  if (known.includes(name)) return;
  const suggestion = nearestCandidate(name, known);
  report(path, `unknown ${kind} ${quote(name)}`, {
    at,
    rule: 'unknown-name',
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

/** The prefix of a backend for which none is configured: the upstream's name and `_`. */
export function defaultPrefix(upstream: string): string {
  return `${upstream}_`;
}

/** The backends of an aggregate of the gateway file, in its order. */
export function backendsOf(root: unknown, aggregate: string): readonly BackendSettings[] {
  const path = ['endpoints', aggregate, 'upstreams'];
  return Object.keys(mapAt(root, path)).map((upstream) => ({
    upstream,
    prefix: textAt(root, [...path, upstream, 'prefix']) ?? defaultPrefix(upstream),
  }));
}

/** Checks each aggregate by itself. checks/resources.ts compares its path and audiences with the others. */
export function checkAggregates(root: unknown, report: ReportDiagnostic): void {
  const upstreams = Object.keys(mapAt(root, ['upstreams']));
  for (const name of Object.keys(mapAt(root, ['endpoints']))) {
    if (upstreams.includes(name)) {
      report(['endpoints', name], 'an upstream has this name too', { at: 'key', rule: 'conflict' });
    }
    checkPath(root, ['endpoints', name], report);
    checkCallerAuthentication(root, ['endpoints', name], report);
    for (const { upstream } of backendsOf(root, name)) {
      const path = ['endpoints', name, 'upstreams', upstream];
      checkName(path, 'upstream', upstream, upstreams, report, 'key');
      if (upstreams.includes(upstream)) checkBackend(root, name, upstream, report);
    }
    checkPrefixes(root, name, report);
    checkBinding(root, name, report);
  }
}

/**
 * INVARIANT: who may call an aggregate may call each of its backends. A backend that lacks one of the
 * issuers would otherwise be open to callers that it does not accept.
 */
function checkBackend(
  root: unknown,
  name: string,
  upstream: string,
  report: ReportDiagnostic,
): void {
  const path = ['endpoints', name];
  const backend = ['upstreams', upstream];
  const isUnauthenticated = textAt(root, [...path, 'authentication']) === 'none';
  if (isUnauthenticated && textAt(root, [...backend, 'authentication']) !== 'none') {
    report([...path, 'authentication'], `the member ${quote(upstream)} asks for a token`, {
      rule: 'unsafe',
    });
  }
  const accepted = textsAt(root, [...backend, 'issuers']).map(([, issuer]) => issuer);
  for (const [index, issuer] of textsAt(root, [...path, 'issuers'])) {
    if (accepted.includes(issuer)) continue;
    report(
      [...path, 'issuers', index],
      `the member ${quote(upstream)} does not accept this issuer`,
      {
        rule: 'conflict',
      },
    );
  }
}

/** No token can satisfy both a backend that requires DPoP and one that requires mTLS. */
function checkBinding(root: unknown, name: string, report: ReportDiagnostic): void {
  const bindings = backendsOf(root, name).map(({ upstream }) =>
    textAt(root, ['upstreams', upstream, 'binding']),
  );
  if (!bindings.includes('dpop') || !bindings.includes('mtls')) return;
  const message = 'one member wants tokens bound by "dpop", another by "mtls"';
  report(['endpoints', name, 'upstreams'], message, { at: 'key', rule: 'conflict' });
}

/** No prefix may begin with another, ignoring case, so that a name belongs to at most one backend. */
function checkPrefixes(root: unknown, name: string, report: ReportDiagnostic): void {
  const backends = backendsOf(root, name);
  for (const [index, { upstream, prefix }] of backends.entries()) {
    const folded = prefix.toLowerCase();
    const other = backends
      .slice(0, index)
      .find((one) => isEitherPrefix(folded, one.prefix.toLowerCase()));
    if (other === undefined) continue;
    report(
      ['endpoints', name, 'upstreams', upstream, 'prefix'],
      `names under this prefix could be those of ${quote(other.upstream)}: one prefix begins with the other`,
      { rule: 'conflict' },
    );
  }
}

function isEitherPrefix(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}
