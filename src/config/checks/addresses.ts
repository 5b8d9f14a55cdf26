// Checks on URLs and addresses of the gateway file that a schema cannot express: schemes, networks,
// listeners. It classifies the text only and resolves no names: upstream/ checks resolved addresses when
// it connects. Reports diagnostics and changes nothing. docs/reference/network.md: plain http only on loopback or where
// it is accepted in a private network, addresses within their network, never the gateway's own. WHATWG URL.

import ipaddr from 'ipaddr.js';
import { arrivesAt, bareHost, isAddressAllowed } from '../../policy/addresses.js';
import { isDomain } from '../../policy/hosts.js';
import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import type { GatewayConfig } from '../schema/gateway.js';
import type { Network } from '../settings.js';
import { hasPlaceholder, NOT_FILLED_IN } from './likely-mistakes.js';

/** True for localhost, names under it (RFC 6761 §6.3), 127.0.0.0/8 and ::1. */
export function isLoopbackHost(host: string): boolean {
  const bare = bareHost(host).toLowerCase();
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
export function networkOfHost(host: string): Network | 'none' | undefined {
  if (isLoopbackHost(host)) return 'loopback';
  const bare = bareHost(host);
  if (!ipaddr.isValid(bare)) return undefined;
  return (['public', 'private'] as const).find((one) => isAddressAllowed(bare, one)) ?? 'none';
}

const PUNYCODE = /(?:^|\.)xn--/;

/**
 * The parsed URL, or `undefined` if the text is not a URL. A name in Punycode that stands for nothing is not accepted:
 * only some versions of the parser do.
 */
function parseUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isName = url === undefined || !PUNYCODE.test(url.hostname) || isDomain(url.hostname);
  return isName ? url : undefined;
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

function rangeOf(host: string): string | undefined {
  // `process` unwraps IPv4-mapped IPv6, so that ::ffff:127.0.0.1 is classed as the address it reaches.
  return ipaddr.isValid(host) ? ipaddr.process(host).range() : undefined;
}

/**
 * True if `publicUrl` is on loopback. So is one that is refused itself, no URL or plain http elsewhere: nothing
 * starts with it, and what else would be wrong with it is no further mistake.
 */
export function isLoopbackGateway({ publicUrl }: GatewayConfig): boolean {
  const url = parseUrl(publicUrl);
  return url?.protocol !== 'https:' || isLoopbackHost(url.hostname);
}

/** Checks `publicUrl`: https unless on loopback, in normal form, with nothing a resource identifier excludes. */
export function checkPublicUrl({ publicUrl }: GatewayConfig, report: ReportDiagnostic): void {
  const url = checkUrl(['publicUrl'], publicUrl, report);
  if (url === undefined) return;
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    refusePlainHttp(['publicUrl'], url, report, 'plain http is possible only on loopback');
  }
  if (url.search !== '') report(['publicUrl'], 'a public URL has no query');
  const path = url.pathname === '/' ? undefined : url.pathname.replace(/\/$/, '');
  const error = path === undefined ? undefined : findPathError(path);
  if (error !== undefined) report(['publicUrl'], error);
}

/**
 * Reports what is invalid in any configured URL. Returns `undefined` if there is none, or none that can be
 * checked further.
 */
export function checkUrl(path: FilePath, written: string | undefined, report: ReportDiagnostic): URL | undefined {
  if (written === undefined) return undefined;
  if (hasPlaceholder(written)) {
    report(path, NOT_FILLED_IN);
    return undefined;
  }
  const url = parseUrl(written);
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    report(path, 'expected a URL that begins with https:// or http://');
    return undefined;
  }
  if (url.username !== '' || url.password !== '') {
    report(path, 'a URL carries no user name or password', 'secret');
    return undefined;
  }
  checkNormalForm(path, written, url, report);
  return url;
}

function checkNormalForm(path: FilePath, written: string, url: URL, report: ReportDiagnostic): void {
  if (written.includes('#')) {
    report(path, 'a URL here has no fragment');
    return;
  }
  if (url.href === written || url.href === `${written}/`) return;
  const normal = url.pathname === '/' && !written.endsWith('/') ? url.origin : url.href;
  const message = 'this URL is not in normal form; identifiers are compared exactly';
  report(path, message, 'wrong-value', { suggestion: url.search === '' ? normal : undefined });
}

function refusePlainHttp(path: FilePath, url: URL, report: ReportDiagnostic, message: string): void {
  const suggestion = `https://${url.host}${url.pathname.replace(/\/$/, '')}`;
  report(path, message, 'unsafe', { suggestion });
}

/** How an origin may be reached, as written, and the path of the map that has these keys. */
type ConfiguredReach = {
  readonly owner: FilePath;
  readonly network: Network;
  readonly plaintext: string | undefined;
};

/**
 * Checks a URL that the gateway connects to: in normal form, in its network, https unless on loopback or where plain
 * http is accepted, and not the gateway itself. One mistake is reported once, with the keys that would mend it.
 */
export function checkOrigin(
  file: GatewayConfig,
  path: FilePath,
  written: string | undefined,
  reach: ConfiguredReach,
  report: ReportDiagnostic,
): URL | undefined {
  const url = checkUrl(path, written, report);
  if (url === undefined) return undefined;
  const listener = ownListenerAt(file, url);
  const actual = networkOfHost(url.hostname);
  if (listener !== undefined) {
    const message = `this URL leads to the gateway itself: its listener "${listener}" has this address`;
    report(path, message, 'unsafe');
  } else if (actual === 'none') {
    const message = 'the gateway never connects to this address: it is link-local, a metadata address or reserved';
    report(path, message, 'unsafe');
  } else if (reach.plaintext === 'accepted' && reach.network === 'public') {
    const message = 'plain http is never sent to public addresses: "plaintext: accepted" needs "network: private"';
    report([...reach.owner, 'plaintext'], message, 'unsafe');
  } else checkReach(path, url, actual, reach, report);
  return url;
}

/** Checks the network and the scheme of a URL; `actual` is the network of its host where the text decides it. */
function checkReach(
  path: FilePath,
  url: URL,
  actual: Network | undefined,
  { network, plaintext }: ConfiguredReach,
  report: ReportDiagnostic,
): void {
  const isPlain = url.protocol === 'http:';
  const isInNetwork = actual === undefined || network === actual || (network === 'private' && actual === 'public');
  if (isPlain && actual === 'public') {
    refusePlainHttp(path, url, report, 'plain http is never sent to public addresses');
  } else if (!isInNetwork && isPlain && actual === 'private' && plaintext === undefined) {
    const message =
      'plain http to this private address has to be accepted: write "network: private" and "plaintext: accepted", or use https';
    report(path, message, 'unsafe');
  } else if (!isInNetwork) {
    const suggestion = `network: ${actual}`;
    report(path, `this address is not in the network "${network}"`, 'unsafe', { suggestion });
  } else if (isPlain && network === 'public') {
    const message =
      'plain http is never sent to public addresses; for a server in a private network write "network: private" and "plaintext: accepted", for one on this machine "network: loopback"';
    refusePlainHttp(path, url, report, message);
  } else if (isPlain && network === 'private' && plaintext === undefined) {
    const message =
      'plain http in a private network has to be accepted: write "plaintext: accepted" beside "network: private", or use https';
    report(path, message, 'unsafe');
  }
}

/** The gateway's listener that a URL leads to, where its text alone shows that. */
function ownListenerAt({ listeners, admin }: GatewayConfig, url: URL): string | undefined {
  const port = Number(url.port || (url.protocol === 'https:' ? '443' : '80'));
  const host = bareHost(url.hostname);
  // A name on loopback may mean either address family.
  const addresses = ipaddr.isValid(host) ? [host] : isLoopbackHost(host) ? ['127.0.0.1', '::1'] : [];
  return (['data', 'ops', 'admin'] as const).find((name) => {
    if (name === 'admin' && admin === undefined) return false;
    return addresses.some((address) => arrivesAt(listeners[name], { address, port, isOwn: false }));
  });
}

/** Checks the listeners: bindable addresses without duplicates, TLS, origins, proxies, age of DPoP proofs. */
export function checkListeners(file: GatewayConfig, report: ReportDiagnostic): void {
  const bound: BoundAddress[] = [];
  for (const name of ['data', 'ops', 'admin'] as const) {
    if (name !== 'admin' || file.admin !== undefined) checkListener(file, name, bound, report);
  }
  checkTls(file, report);
  const path = ['listeners', 'data'];
  const { allowedOrigins, trustedProxies, dpop } = file.listeners.data;
  for (const [index, origin] of allowedOrigins.entries()) {
    checkBrowserOrigin([...path, 'allowedOrigins', index], origin, report);
  }
  for (const [index, range] of trustedProxies.entries()) {
    if (isAddressOrRange(range)) continue;
    report([...path, 'trustedProxies', index], 'expected an IP address or a CIDR range');
  }
  if (dpop.maxAgeMs > MAX_PROOF_AGE_MS) {
    report([...path, 'dpop', 'maxAge'], 'a proof is good for 5m at most');
  }
}

/** Bounds the replay memory: each proof's id is remembered for as long as the proof is valid. */
const MAX_PROOF_AGE_MS = 5 * 60_000;

/** Checks that TLS fits `publicUrl`, and that with `mtls` bindings the listener itself requests certificates. */
function checkTls({ listeners, publicUrl, upstreams }: GatewayConfig, report: ReportDiagnostic) {
  const path = ['listeners', 'data', 'tls'];
  const { tls } = listeners.data;
  if (tls !== undefined && publicUrl.startsWith('http:')) {
    const message = 'a data listener with TLS needs a publicUrl of https';
    report(path, message, 'conflict', { at: 'key' });
  }
  if (tls?.clientCa !== undefined) return;
  for (const [name, { binding }] of Object.entries(upstreams)) {
    if (binding !== 'mtls') continue;
    const message = '"mtls" needs "listeners.data.tls.clientCa": no header of a proxy proves one';
    report(['upstreams', name, 'binding'], message, 'conflict');
  }
}

type BoundAddress = {
  readonly name: string;
  readonly host: string;
  readonly port: number;
};

function checkListener(
  { listeners }: GatewayConfig,
  name: 'data' | 'ops' | 'admin',
  bound: BoundAddress[],
  report: ReportDiagnostic,
): void {
  const path = ['listeners', name];
  const { host, port } = listeners[name];
  if (!isListenHost(host)) {
    report([...path, 'host'], 'expected an IP address or localhost');
    return;
  }
  const other = bound.find((one) => one.port === port && overlap(one.host, host));
  if (other !== undefined && port !== 0) {
    report([...path, 'port'], `the listener "${other.name}" has this address too`, 'conflict');
  }
  bound.push({ name, host, port });
}

function overlap(a: string, b: string): boolean {
  return a === b || isWildcardHost(a) || isWildcardHost(b);
}

function checkBrowserOrigin(path: FilePath, written: string, report: ReportDiagnostic): void {
  const origin = parseUrl(written)?.origin;
  if (origin === undefined || origin === 'null') {
    report(path, 'expected an origin such as https://inspector.example.com');
  } else if (origin !== written) {
    const message = 'this is not an origin as browsers send it';
    report(path, message, 'wrong-value', { suggestion: origin });
  }
}
