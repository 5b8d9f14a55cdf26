// Checks on URLs and addresses of the gateway file that a schema cannot express: schemes, networks,
// listeners. It classifies the text only and resolves no names: upstream/ checks resolved addresses when
// it connects. Reports diagnostics and changes nothing. docs/contract.md §3: plain http only on loopback,
// addresses within their network. WHATWG URL; special-purpose ranges of RFC 6890, as ipaddr.js classes them.

import ipaddr from 'ipaddr.js';
import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import type { Network } from '../settings.js';
import { readDurationMs } from '../units.js';
import { mapAt, textAt, textsAt, valueAt } from '../yaml.js';

/** True for localhost, names under it (RFC 6761 §6.3), 127.0.0.0/8 and ::1. */
export function isLoopbackHost(host: string): boolean {
  const bare = withoutBrackets(host).toLowerCase();
  if (bare === 'localhost' || bare.endsWith('.localhost')) return true;
  return rangeOf(bare) === 'loopback';
}

/** True for an IP address or `localhost`, which a listener can bind without a DNS lookup. */
function isListenHost(host: string): boolean {
  return host === 'localhost' || ipaddr.isValid(host);
}

/** True for the unspecified addresses (0.0.0.0, ::), which bind every interface. */
function isWildcardHost(host: string): boolean {
  return rangeOf(host) === 'unspecified';
}

/** True for an IP address or a CIDR range. */
function isAddressOrRange(value: string): boolean {
  return ipaddr.isValid(value) || ipaddr.isValidCIDR(value);
}

/**
 * The network of a host whose text alone decides it: an IP address or localhost; otherwise `undefined`.
 * `none` is an address that no network setting allows (link-local, multicast and the like).
 */
function networkOfHost(host: string): Network | 'none' | undefined {
  if (isLoopbackHost(host)) return 'loopback';
  const range = rangeOf(withoutBrackets(host));
  if (range === undefined) return undefined;
  if (range === 'unicast') return 'public';
  return range === 'private' || range === 'uniqueLocal' ? 'private' : 'none';
}

/** The parsed URL, or `undefined` if the text is not a URL. */
function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** The error in a configured path, or `undefined`. Valid paths have plain segments and no trailing slash. */
export function findPathError(path: string): string | undefined {
  if (!path.startsWith('/')) return 'a path starts with /';
  if (path === '/' || path.endsWith('/')) return 'a path has no trailing slash';
  if (path.includes('%')) return 'a path has no percent-encoding';
  if (path.includes('//')) return 'a path has no empty segment';
  const segments = path.slice(1).split('/');
  if (segments.some((segment) => segment === '.' || segment === '..')) {
    return 'a path has no dot segment';
  }
  if (segments[0]?.toLowerCase() === '.well-known') return 'paths below /.well-known are taken';
  if (!segments.every((segment) => /^[A-Za-z0-9._~-]+$/.test(segment))) {
    return 'a path is made of letters, digits and . _ ~ -';
  }
  return undefined;
}

/** The path without superfluous slashes, suggested only if that makes it valid. */
export function suggestPath(path: string): string | undefined {
  const segments = path.split('/').filter((segment) => segment !== '');
  const plain = `/${segments.join('/')}`;
  return plain !== path && findPathError(plain) === undefined ? plain : undefined;
}

function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

function rangeOf(host: string): string | undefined {
  // `process` unwraps IPv4-mapped IPv6, so that ::ffff:127.0.0.1 is classed as the address it reaches.
  return ipaddr.isValid(host) ? ipaddr.process(host).range() : undefined;
}

/** True if `publicUrl` is on loopback. An unreadable URL counts as public, which has the stricter rules. */
export function isLoopbackGateway(root: unknown): boolean {
  const url = parseUrl(textAt(root, ['publicUrl']) ?? '');
  return url !== undefined && isLoopbackHost(url.hostname);
}

/** Checks `publicUrl`: https unless on loopback, in normal form, with nothing a resource identifier excludes. */
export function checkPublicUrl(root: unknown, report: ReportDiagnostic): void {
  const written = textAt(root, ['publicUrl']);
  if (written === undefined) return;
  const url = checkUrl(['publicUrl'], written, report);
  if (url === undefined) return;
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    refusePlainHttp(['publicUrl'], url, report);
  }
  if (url.search !== '') report(['publicUrl'], 'a public URL has no query');
  const path = url.pathname === '/' ? undefined : url.pathname.replace(/\/$/, '');
  const error = path === undefined ? undefined : findPathError(path);
  if (error !== undefined) report(['publicUrl'], error);
}

/** Reports what is invalid in any configured URL. Returns `undefined` if the URL cannot be checked further. */
export function checkUrl(
  path: FilePath,
  written: string,
  report: ReportDiagnostic,
): URL | undefined {
  const url = parseUrl(written);
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    report(path, 'expected an http or https URL');
    return undefined;
  }
  if (url.username !== '' || url.password !== '') {
    report(path, 'a URL carries no user name or password', { rule: 'secret' });
    return undefined;
  }
  checkNormalForm(path, written, url, report);
  return url;
}

function checkNormalForm(
  path: FilePath,
  written: string,
  url: URL,
  report: ReportDiagnostic,
): void {
  if (written.includes('#')) {
    report(path, 'a URL here has no fragment');
    return;
  }
  if (url.href === written || url.href === `${written}/`) return;
  const normal = url.pathname === '/' && !written.endsWith('/') ? url.origin : url.href;
  report(path, 'this URL is not in normal form; identifiers are compared exactly', {
    ...(url.search === '' ? { suggestion: normal } : {}),
  });
}

function refusePlainHttp(path: FilePath, url: URL, report: ReportDiagnostic): void {
  report(path, 'plain http is possible only on loopback', {
    rule: 'unsafe',
    suggestion: `https://${url.host}${url.pathname.replace(/\/$/, '')}`,
  });
}

/** Checks the URL of one upstream and its network. */
export function checkUpstreamUrl(root: unknown, name: string, report: ReportDiagnostic): void {
  checkOriginAt(root, ['upstreams', name], 'url', report);
}

/** Checks the URL under `key` against the network beside it: https unless on loopback, in normal form. */
export function checkOriginAt(
  root: unknown,
  owner: FilePath,
  key: string,
  report: ReportDiagnostic,
): void {
  const path = [...owner, key];
  const written = textAt(root, path);
  const url = written === undefined ? undefined : checkUrl(path, written, report);
  if (url !== undefined) checkNetwork(root, owner, path, url, report);
}

/** Checks that a URL lies in the network of its owner and uses plain http only on loopback. */
export function checkNetwork(
  root: unknown,
  owner: FilePath,
  urlPath: FilePath,
  url: URL,
  report: ReportDiagnostic,
): void {
  const network = textAt(root, [...owner, 'network']);
  const actual = networkOfHost(url.hostname);
  const networkPath = [...owner, 'network'];
  if (actual === 'none') {
    report(urlPath, 'no network admits this address', { rule: 'unsafe' });
  } else if (actual !== undefined && network !== undefined && !admitsNetwork(network, actual)) {
    report(urlPath, `this address is not in the network "${network}"`, {
      rule: 'unsafe',
      suggestion: `network: ${actual}`,
    });
  }
  if (network === 'loopback' && !isLoopbackGateway(root)) {
    report(networkPath, 'the network "loopback" needs a loopback publicUrl', { rule: 'unsafe' });
  }
  if (url.protocol === 'http:' && network !== 'loopback' && actual !== 'loopback') {
    refusePlainHttp(urlPath, url, report);
  }
}

function admitsNetwork(network: string, actual: string): boolean {
  return network === actual || (network === 'private' && actual === 'public');
}

/** Checks the listeners: bindable addresses without duplicates, TLS, origins, proxies, age of DPoP proofs. */
export function checkListeners(root: unknown, report: ReportDiagnostic): void {
  const bound: BoundAddress[] = [];
  const names = valueAt(root, ['admin']) === undefined ? ['data', 'ops'] : ['data', 'ops', 'admin'];
  for (const name of names) checkListener(root, name, bound, report);
  checkOrigins(root, report);
  checkTls(root, report);
  checkProofAge(root, report);
  for (const [index, range] of textsAt(root, ['listeners', 'data', 'trustedProxies'])) {
    if (isAddressOrRange(range)) continue;
    report(
      ['listeners', 'data', 'trustedProxies', index],
      'expected an IP address or a CIDR range',
    );
  }
}

/** Checks that TLS fits `publicUrl`, and that with `mtls` bindings the listener itself requests certificates. */
function checkTls(root: unknown, report: ReportDiagnostic): void {
  const tls = ['listeners', 'data', 'tls'];
  const isTls = valueAt(root, tls) !== undefined;
  if (isTls && textAt(root, ['publicUrl'])?.startsWith('http:') === true) {
    report(tls, 'a data listener with TLS needs a publicUrl of https', {
      at: 'key',
      rule: 'conflict',
    });
  }
  if (textAt(root, [...tls, 'clientCa']) !== undefined) return;
  for (const name of Object.keys(mapAt(root, ['upstreams']))) {
    const path = ['upstreams', name, 'binding'];
    if (textAt(root, path) !== 'mtls') continue;
    report(path, '"mtls" needs "listeners.data.tls.clientCa": no header of a proxy proves one', {
      rule: 'conflict',
    });
  }
}

/** Bounds the replay memory: each proof's id is remembered for as long as the proof is valid. */
const MAX_PROOF_AGE_MS = 5 * 60_000;

function checkProofAge(root: unknown, report: ReportDiagnostic): void {
  const path = ['listeners', 'data', 'dpop', 'maxAge'];
  const ageMs = readDurationMs(textAt(root, path) ?? '');
  if (ageMs !== undefined && ageMs > MAX_PROOF_AGE_MS)
    report(path, 'a proof is good for 5m at most');
}

type BoundAddress = { readonly name: string; readonly host: string; readonly port: unknown };

function checkListener(
  root: unknown,
  name: string,
  bound: BoundAddress[],
  report: ReportDiagnostic,
): void {
  const path = ['listeners', name];
  const host = textAt(root, [...path, 'host']);
  if (host === undefined) return;
  if (!isListenHost(host)) {
    report([...path, 'host'], 'expected an IP address or localhost');
    return;
  }
  const port = valueAt(root, [...path, 'port']);
  const other = bound.find((one) => one.port === port && overlap(one.host, host));
  if (other !== undefined && port !== 0) {
    report([...path, 'port'], `the listener "${other.name}" has this address too`, {
      rule: 'conflict',
    });
  }
  bound.push({ name, host, port });
}

function overlap(a: string, b: string): boolean {
  return a === b || isWildcardHost(a) || isWildcardHost(b);
}

function checkOrigins(root: unknown, report: ReportDiagnostic): void {
  for (const [index, written] of textsAt(root, ['listeners', 'data', 'allowedOrigins'])) {
    const path = ['listeners', 'data', 'allowedOrigins', index];
    const origin = parseUrl(written)?.origin;
    if (origin === undefined || origin === 'null') {
      report(path, 'expected an origin such as https://inspector.example.com');
    } else if (origin !== written) {
      report(path, 'this is not an origin as browsers send it', { suggestion: origin });
    }
  }
}
