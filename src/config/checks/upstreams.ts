// Checks on upstreams and aggregates that a schema cannot express: which keys exclude or need each other,
// where tokens are requested, which headers the gateway sets itself, what all backends must accept, and that each has
// a path and audiences of its own. Reports diagnostics and changes nothing.
// docs/reference/start-and-reload.md#serve-refuses-to-start-when; RFC 8707 §2; MCP
// security best practices (token passthrough).

import { nearestCandidate } from '../../text/wording.js';
import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import { profileNames } from '../profiles.js';
import { memberOf } from '../schema/declarations.js';
import type { GatewayConfig } from '../schema/gateway.js';
import { checkName, quote } from '../schema/validation.js';
import type { BackendSettings } from '../settings.js';
import { checkOrigin, checkUrl, findPathError, isLoopbackGateway, isLoopbackHost, suggestPath } from './addresses.js';

type Upstream = GatewayConfig['upstreams'][string];
type Aggregate = GatewayConfig['endpoints'][string];
type Credentials = Upstream['credentials'];
type TokenRequest = Extract<Credentials, { readonly clientId: string }>;

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

/** Checks each upstream by itself. */
export function checkUpstreams(file: GatewayConfig, report: ReportDiagnostic): void {
  const profiles = profileNames(Object.keys(file.inspection.profiles));
  for (const [name, upstream] of Object.entries(file.upstreams)) {
    const at = ['upstreams', name];
    const { url, network, plaintext, inspect, socket } = upstream;
    if (socket !== undefined) checkSocket(at, upstream, report);
    else checkOrigin(file, [...at, 'url'], url, { owner: at, network, plaintext }, report);
    checkPath(at, upstream, report);
    checkCallerAuthentication(file, at, upstream, report);
    checkName([...at, 'inspect'], 'inspection profile', inspect, profiles, report);
    checkContent([...at, 'content', 'tools'], upstream, report);
    checkPresentation([...at, 'tools'], upstream, report);
    checkTwin(at, name, upstream, Object.keys(file.upstreams), report);
    checkTimes([...at, 'limits'], upstream, report);
    checkConcurrency([...at, 'limits'], upstream, report);
    checkUpstreamAuthentication(file, at, upstream, report);
  }
}

/** `sameAs` names another upstream of the file. */
function checkTwin(
  owner: FilePath,
  name: string,
  { sameAs }: Upstream,
  names: readonly string[],
  report: ReportDiagnostic,
): void {
  if (sameAs === undefined) return;
  const at = [...owner, 'sameAs'];
  if (sameAs === name) report(at, 'an upstream is not a deployment of itself; name another');
  else checkName(at, 'upstream', sameAs, names, report);
}

/** Checks the path of an upstream or aggregate, if one is configured. */
function checkPath(owner: FilePath, { path }: Upstream | Aggregate, report: ReportDiagnostic) {
  const error = path === undefined ? undefined : findPathError(path);
  if (path === undefined || error === undefined) return;
  report([...owner, 'path'], error, 'wrong-value', { suggestion: suggestPath(path) });
}

/** A Unix socket has no network address, so keys about addresses would have no effect next to it. */
function checkSocket(owner: FilePath, { url, network, plaintext, socket }: Upstream, report: ReportDiagnostic): void {
  const parsed = checkUrl([...owner, 'url'], url, report);
  if (parsed?.protocol === 'https:') {
    const message = 'a server on a Unix socket is reached by plain http';
    report([...owner, 'url'], message, 'conflict');
  }
  // The default, "public", cannot be distinguished from one that is written.
  if (network === 'private') {
    const message = 'with "socket" no address is resolved; leave "network" out';
    report([...owner, 'network'], message, 'conflict');
  }
  if (plaintext !== undefined) {
    const message = 'a Unix socket is no network; leave "plaintext" out';
    report([...owner, 'plaintext'], message, 'conflict');
  }
  if (socket?.includes('\0') === true) {
    report([...owner, 'socket'], 'a path has no NUL character');
  }
}

/** Without pins nothing says which definition of a tool a person has seen, so `code` has to name it. */
function checkContent(path: FilePath, { content, pinning }: Upstream, report: ReportDiagnostic): void {
  if (pinning.mode !== 'off') return;
  for (const [name, written] of Object.entries(content.tools)) {
    const chosen = typeof written === 'string' ? { kind: written, digest: undefined } : written;
    if (chosen.kind !== 'code' || chosen.digest !== undefined) continue;
    const message =
      'without pins, "code" needs the digest of the definition: {kind: code, digest: …}, as "sallyport dev" prints it';
    report([...path, name], message, 'conflict');
  }
}

/** Two tools cannot be called by one name. Names that others have are known once there is a lock file. */
function checkPresentation(path: FilePath, { tools }: Upstream, report: ReportDiagnostic): void {
  const owners = new Map<string, string>();
  for (const [tool, { name = tool }] of Object.entries(tools)) {
    const owner = owners.get(name);
    if (owner === undefined) owners.set(name, tool);
    else report([...path, tool, 'name'], `${quote(owner)} has this name too`, 'conflict');
  }
}

/** With `exchangeMax` shorter than `requestTimeout`, an exchange would end before its first byte may arrive. */
function checkTimes(path: FilePath, { limits }: Upstream, report: ReportDiagnostic): void {
  if ((limits.requestTimeoutMs ?? 0) <= limits.exchangeMaxMs) return;
  const message = '"exchangeMax" is shorter than "requestTimeout"';
  report([...path, 'exchangeMax'], message, 'conflict');
}

function checkConcurrency(path: FilePath, { limits }: Upstream, report: ReportDiagnostic): void {
  if ((limits.concurrencyPerCaller ?? 0) <= limits.concurrency) return;
  const message = '"concurrencyPerCaller" exceeds "concurrency"';
  report([...path, 'concurrencyPerCaller'], message, 'conflict');
}

/** Checks how the gateway authenticates to one upstream, its TLS and its identity assertion. */
function checkUpstreamAuthentication(
  file: GatewayConfig,
  at: FilePath,
  upstream: Upstream,
  report: ReportDiagnostic,
): void {
  const callers = [...at, 'credentials'];
  const own = [...at, 'pinning', 'credentials'];
  checkCredentials(file, callers, upstream.credentials, report);
  if (upstream.pinning.credentials !== undefined) checkCredentials(file, own, upstream.pinning.credentials, report);
  checkExchange(callers, upstream, report);
  checkTls([...at, 'tls'], upstream, report);
  checkIdentity([...at, 'identity'], upstream, report);
}

/** True for a header, in lower case, that the gateway or the connection sets. */
export function isReserved(header: string): boolean {
  return RESERVED_HEADERS.has(header) || RESERVED_PREFIXES.some((prefix) => header.startsWith(prefix));
}

function checkCredentials(
  file: GatewayConfig,
  path: FilePath,
  credentials: Credentials,
  report: ReportDiagnostic,
): void {
  switch (credentials.type) {
    case 'none':
      return;
    case 'static':
      if (isReserved(credentials.header) || credentials.header.startsWith(OWN_PREFIX))
        report([...path, 'header'], 'the gateway sets this header itself', 'conflict');
      return;
    case 'client-credentials':
    case 'token-exchange':
      checkTokenRequest(file, path, credentials, report);
  }
}

/** One authorization server, one client authentication method, and an audience that is not the gateway's own. */
function checkTokenRequest(
  file: GatewayConfig,
  path: FilePath,
  credentials: TokenRequest,
  report: ReportDiagnostic,
): void {
  checkOneOf(path, credentials, ['issuer', 'tokenEndpoint'], report);
  checkOneOf(path, credentials, ['clientSecret', 'privateKey'], report);
  const { network, plaintext } = credentials;
  const reach = { owner: path, network, plaintext };
  for (const key of ['issuer', 'tokenEndpoint'] as const) {
    checkOrigin(file, [...path, key], credentials[key], reach, report);
  }
  const own = ownAudiences(file);
  for (const key of ['resource', 'audience'] as const) {
    if (!own.has(credentials[key] ?? '')) continue;
    report([...path, key], 'this is an audience of the gateway itself', 'unsafe');
  }
  const { resource } = credentials;
  if (resource !== undefined && (!URL.canParse(resource) || resource.includes('#'))) {
    const message = 'a resource indicator is an absolute URI without fragment';
    report([...path, 'resource'], message);
  }
}

function checkOneOf(
  path: FilePath,
  credentials: TokenRequest,
  [one, other]: readonly [keyof TokenRequest, keyof TokenRequest],
  report: ReportDiagnostic,
): void {
  const found = [one, other].filter((key) => credentials[key] !== undefined);
  if (found.length === 0) {
    report(path, `one of the keys "${one}" and "${other}" is missing`, 'missing-key');
  } else if (found.length === 2) {
    report([...path, other], `"${one}" or "${other}", not both`, 'conflict', { at: 'key' });
  }
}

function checkExchange(path: FilePath, upstream: Upstream, report: ReportDiagnostic): void {
  if (upstream.credentials.type !== 'token-exchange') return;
  if (upstream.pinning.credentials === undefined) {
    const message = 'token-exchange needs "pinning.credentials": the gateway lists for itself, without a caller';
    report(path, message, 'missing-key');
  }
  if (upstream.authentication === 'none') {
    report(path, 'with "authentication: none" there is no token to exchange', 'conflict');
  }
}

/** TLS settings go with a URL of TLS, and a certificate with its key. */
export function checkTls(path: FilePath, { tls, url }: Pick<Upstream, 'tls' | 'url'>, report: ReportDiagnostic): void {
  if (Object.keys(tls).length > 0 && /^(?:http|tcp):/.test(url)) {
    report(path, 'this URL is reached without TLS', 'conflict', { at: 'key' });
  }
  for (const [key, other] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    if (tls[key] === undefined || tls[other] !== undefined) continue;
    report([...path, key], `"${key}" needs "${other}" beside it`, 'missing-key');
  }
}

function checkIdentity(path: FilePath, upstream: Upstream, report: ReportDiagnostic): void {
  const { identity, credentials, pinning } = upstream;
  if (identity === undefined) return;
  const { header, ttlMs } = identity;
  if (isReserved(header) || CREDENTIAL_HEADERS.has(header)) {
    report([...path, 'header'], 'the gateway sets this header itself', 'conflict');
  }
  const taken = { credentials, 'pinning.credentials': pinning.credentials };
  for (const [key, other] of Object.entries(taken)) {
    if (other?.type !== 'static' || other.header !== header) continue;
    report([...path, 'header'], `"${key}" has this header too`, 'conflict');
  }
  if (ttlMs < MIN_ASSERTION_MS || ttlMs > MAX_ASSERTION_MS) {
    report([...path, 'ttl'], 'an assertion is valid for 1s to 10m');
  }
}

function kindOf(path: FilePath): 'an endpoint' | 'an upstream' {
  return path[0] === 'endpoints' ? 'an endpoint' : 'an upstream';
}

/** Checks who authenticates the callers of an upstream or aggregate: known issuers, or explicitly none. */
function checkCallerAuthentication(
  file: GatewayConfig,
  path: FilePath,
  resource: Upstream | Aggregate,
  report: ReportDiagnostic,
): void {
  const { issuers, authentication, audiences } = resource;
  if (authentication === 'none') checkUnauthenticated(file, path, resource, report);
  else if (issuers === undefined) {
    const message = 'the key "issuers" is missing: name the issuers whose tokens callers may use';
    report(path, message, 'missing-key', { at: 'key' });
  }
  const names = issuers ?? [];
  const known = Object.keys(file.issuers);
  for (const [index, issuer] of names.entries()) {
    checkName([...path, 'issuers', index], 'issuer', issuer, known, report);
  }
  // An opaque token does not name its issuer, and offering it to several would disclose it (RFC 7662 §4).
  const introspected = [...names.entries()].filter(([, issuer]) => memberOf(file.issuers, issuer)?.introspection);
  for (const [index] of introspected.slice(1)) {
    const message = `one issuer of ${kindOf(path)} may be introspected, not several`;
    report([...path, 'issuers', index], message, 'conflict');
  }
  for (const issuer of Object.keys(audiences)) {
    if (names.includes(issuer)) continue;
    const noun = kindOf(path).replace(/^an /, '');
    const message = `${quote(issuer)} is not among the issuers of this ${noun}`;
    const suggestion = nearestCandidate(issuer, names);
    report([...path, 'audiences', issuer], message, 'unknown-name', { at: 'key', suggestion });
  }
}

function checkUnauthenticated(
  file: GatewayConfig,
  path: FilePath,
  resource: Upstream | Aggregate,
  report: ReportDiagnostic,
): void {
  const at = [...path, 'authentication'];
  if (resource.issuers !== undefined) {
    const message = `${kindOf(path)} has issuers or "authentication: none", not both`;
    report(at, message, 'conflict');
  }
  if ('binding' in resource && resource.binding !== 'none') {
    const message = 'without authentication there is no token to be bound';
    report([...path, 'binding'], message, 'conflict');
  }
  if (!isLoopbackHost(file.listeners.data.host)) {
    report(at, '"authentication: none" needs a data listener on loopback', 'unsafe');
  }
  if (!isLoopbackGateway(file)) {
    report(at, '"authentication: none" needs a loopback publicUrl', 'unsafe');
  }
}

/** The backends of an aggregate of the gateway file, in its order. The default prefix is the upstream's name and `_`. */
export function backendsOf({ upstreams }: Pick<Aggregate, 'upstreams'>): readonly BackendSettings[] {
  return Object.entries(upstreams).map(([upstream, { prefix = `${upstream}_` }]) => ({ upstream, prefix }));
}

/** Checks each aggregate by itself. `checkResources` compares its path and audiences with the others. */
export function checkAggregates(file: GatewayConfig, report: ReportDiagnostic): void {
  const known = Object.keys(file.upstreams);
  for (const [name, aggregate] of Object.entries(file.endpoints)) {
    const at = ['endpoints', name];
    if (known.includes(name)) {
      report(at, 'an upstream has this name too', 'conflict', { at: 'key' });
    }
    checkPath(at, aggregate, report);
    checkCallerAuthentication(file, at, aggregate, report);
    const backends = backendsOf(aggregate);
    for (const { upstream } of backends) {
      checkName([...at, 'upstreams', upstream], 'upstream', upstream, known, report, 'key');
      const backend = memberOf(file.upstreams, upstream);
      if (backend !== undefined) checkBackend(at, aggregate, upstream, backend, report);
    }
    checkPrefixes([...at, 'upstreams'], backends, report);
    const bindings = backends.map(({ upstream }) => memberOf(file.upstreams, upstream)?.binding);
    if (!bindings.includes('dpop') || !bindings.includes('mtls')) continue;
    // No token can satisfy both.
    const message = 'one member wants tokens bound by "dpop", another by "mtls"';
    report([...at, 'upstreams'], message, 'conflict', { at: 'key' });
  }
}

/**
 * INVARIANT: who may call an aggregate may call each of its backends. A backend that lacks one of the
 * issuers would otherwise be open to callers that it does not accept.
 */
function checkBackend(
  path: FilePath,
  { authentication, issuers }: Aggregate,
  name: string,
  backend: Upstream,
  report: ReportDiagnostic,
): void {
  if (authentication === 'none' && backend.authentication !== 'none') {
    const message = `the member ${quote(name)} asks for a token`;
    report([...path, 'authentication'], message, 'unsafe');
  }
  for (const [index, issuer] of (issuers ?? []).entries()) {
    if (backend.issuers?.includes(issuer)) continue;
    const message = `the member ${quote(name)} does not accept this issuer`;
    report([...path, 'issuers', index], message, 'conflict');
  }
}

/** No prefix may begin with another, ignoring case, so that a name belongs to at most one backend. */
function checkPrefixes(path: FilePath, backends: readonly BackendSettings[], report: ReportDiagnostic): void {
  for (const [index, { upstream, prefix }] of backends.entries()) {
    const folded = prefix.toLowerCase();
    const other = backends.slice(0, index).find((one) => isEitherPrefix(folded, one.prefix.toLowerCase()));
    if (other === undefined) continue;
    const message = `names under this prefix could be those of ${quote(other.upstream)}: one prefix begins with the other`;
    report([...path, upstream, 'prefix'], message, 'conflict');
  }
}

function isEitherPrefix(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

/** Checks upstreams and aggregates against each other. */
export function checkResources(file: GatewayConfig, report: ReportDiagnostic): void {
  const resources = resourcesOf(file);
  const clashing = checkPathsDiffer(resources, file, report);
  checkAudiencesDiffer(resources, clashing, file, report);
}

/** Suffixes that legacy SSE clients use below an upstream's path (docs/reference/listeners.md#paths). */
const RESERVED_SUFFIXES = ['', '/sse', '/message'];

/** Reports resources with the path of another, and returns their own audiences, which are equal too. */
function checkPathsDiffer(
  resources: readonly Resource[],
  { publicUrl }: GatewayConfig,
  report: ReportDiagnostic,
): ReadonlySet<string> {
  const clashing = new Set<string>();
  const taken = new Map<string, string>();
  const publicPath = URL.canParse(publicUrl) ? new URL(publicUrl).pathname.replace(/\/$/, '') : '';
  for (const { at, noun, path, id } of resources) {
    const ownPaths = new Set([
      ...RESERVED_SUFFIXES.map((suffix) => path + suffix),
      // The protected resource metadata is also served with the path of publicUrl inserted.
      publicPath + path,
    ]);
    const clash = [...ownPaths].map((one) => taken.get(one)).find((other) => other !== undefined);
    if (clash !== undefined) {
      report([...at, 'path'], `the path ${quote(path)} belongs to ${clash}`, 'conflict');
      clashing.add(id);
    }
    for (const one of ownPaths) taken.set(one, noun);
  }
  return clashing;
}

/**
 * INVARIANT: a token is valid for one resource only. No audience of an issuer may be accepted by two of
 * the upstreams, the aggregates and the console.
 */
function checkAudiencesDiffer(
  resources: readonly Resource[],
  clashing: ReadonlySet<string>,
  { admin }: GatewayConfig,
  report: ReportDiagnostic,
): void {
  const owners = new Map<string, string>();
  const claim = (noun: string, { issuer, audience, path }: Audience): void => {
    const key = JSON.stringify([issuer, audience]);
    const owner = owners.get(key);
    if (owner !== undefined && owner !== noun && !clashing.has(audience)) {
      report(path, `${owner} accepts this audience of ${quote(issuer)} too`, 'conflict');
    }
    owners.set(key, noun);
  };
  for (const { noun, audiences } of resources) for (const one of audiences) claim(noun, one);
  for (const [issuer, { audience }] of Object.entries(admin?.issuers ?? {})) {
    claim('the console', { issuer, audience, path: ['admin', 'issuers', issuer, 'audience'] });
  }
}

/** Every audience that a token for the gateway itself may have. */
export function ownAudiences(file: GatewayConfig): ReadonlySet<string> {
  const accepted = resourcesOf(file).flatMap(({ id, audiences }) => [id, ...audiences.map(({ audience }) => audience)]);
  const admins = Object.values(file.admin?.issuers ?? {}).map(({ audience }) => audience);
  return new Set([...accepted, ...admins]);
}

type Audience = { readonly issuer: string; readonly audience: string; readonly path: FilePath };

/** An upstream or aggregate, with its path and its audiences. */
type Resource = {
  readonly at: FilePath;
  readonly noun: string;
  readonly path: string;
  /** `publicUrl` and the path. */
  readonly id: string;
  readonly audiences: readonly Audience[];
};

function resourcesOf({ publicUrl, upstreams, endpoints }: GatewayConfig): Resource[] {
  const base = publicUrl.replace(/\/$/, '');
  const resource = (kind: 'upstreams' | 'endpoints', name: string, file: Upstream | Aggregate): Resource => {
    const at = [kind, name];
    const path = file.path ?? `/${name}`;
    const noun = `the ${kind === 'upstreams' ? 'upstream' : 'endpoint'} ${quote(name)}`;
    return { at, noun, path, id: base + path, audiences: audiencesOf(at, file, base + path) };
  };
  return [
    ...Object.entries(upstreams).map(([name, file]) => resource('upstreams', name, file)),
    ...Object.entries(endpoints).map(([name, file]) => resource('endpoints', name, file)),
  ];
}

function audiencesOf(at: FilePath, { issuers = [], audiences }: Upstream | Aggregate, id: string): Audience[] {
  return issuers.flatMap((issuer): Audience[] => {
    const mapped = memberOf(audiences, issuer);
    if (mapped === undefined) return [{ issuer, audience: id, path: [...at, 'path'] }];
    const path = [...at, 'audiences', issuer];
    return mapped.map((audience, index) => ({ issuer, audience, path: [...path, index] }));
  });
}
