// What a gateway file may say and hardly ever means: ranges that trust everybody, an identifier that is the URL of a
// document, names of claims that are paths, a way back to the gateway itself, secrets in URLs, blanks around names that
// are compared exactly, values that somebody expected to be filled in. Warnings where it may be meant after all. Reports
// diagnostics and changes nothing. RFC 8414 §3, RFC 9110 §11.6.2, RFC 6901, RFC 7239 §8.1.

import ipaddr from 'ipaddr.js';
import { maskSecrets } from '../../text/escaping.js';
import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import type { GatewayConfig } from '../schema/gateway.js';
import { quote } from '../schema/validation.js';

type Warn = (path: FilePath, message: string, suggestion?: string) => void;

/** Checks everything that a valid file probably does not mean. */
export function checkLikelyMistakes(file: GatewayConfig, report: ReportDiagnostic): void {
  const warn: Warn = (path, message, suggestion) =>
    report(path, message, 'unsafe', { severity: 'warning', suggestion });
  checkTrustedProxies(file, warn);
  for (const [name, { issuer, claims, introspection, login }] of Object.entries(file.issuers)) {
    const path = ['issuers', name];
    checkIssuerUrl([...path, 'issuer'], issuer, report);
    for (const [claim, names] of Object.entries(claims)) checkClaims([...path, 'claims', claim], names, warn);
    if (login?.match !== undefined) checkClaim([...path, 'login', 'match'], login.match, warn);
    checkQuery([...path, 'introspection', 'endpoint'], introspection?.endpoint, warn);
  }
  for (const [name, upstream] of Object.entries(file.upstreams))
    checkUpstream(file, ['upstreams', name], upstream, report);
  if (Object.keys(file.upstreams).length === 0)
    warn(['upstreams'], 'there is no server yet, so every path is unknown; sallyport add NAME adds one');
  checkBlanks(file, warn);
}

/** With fewer bits a range holds a large part of all addresses, and with it whoever calls. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 } as const;

function checkTrustedProxies({ listeners }: GatewayConfig, warn: Warn): void {
  for (const [index, range] of listeners.data.trustedProxies.entries()) {
    if (!ipaddr.isValidCIDR(range)) continue;
    const [address, bits] = ipaddr.parseCIDR(range);
    if (bits >= MIN_PREFIX[address.kind()]) continue;
    const message =
      'nearly everybody is a trusted proxy here, so that callers choose the address that rates and the audit log have of them; name the addresses of your proxies alone';
    warn(['listeners', 'data', 'trustedProxies', index], message);
  }
}

/** The documents that an issuer is discovered by (OpenID Connect Discovery §4, RFC 8414 §3). */
const DISCOVERY = /\/\.well-known\/(?:openid-configuration|oauth-authorization-server)(?=\/|$)/;

function checkIssuerUrl(path: FilePath, written: string | undefined, report: ReportDiagnostic): void {
  if (written === undefined || !DISCOVERY.test(written)) return;
  const message =
    'this is the URL of the discovery document, and no token has it as "iss"; write the identifier of the issuer, which the document has as "issuer"';
  report(path, message, 'wrong-value', { suggestion: written.replace(DISCOVERY, '') });
}

function checkClaims(path: FilePath, names: string | readonly string[], warn: Warn): void {
  if (typeof names === 'string') checkClaim(path, names, warn);
  else for (const [index, name] of names.entries()) checkClaim([...path, index], name, warn);
}

/** A path into a claim in another notation: a name is compared as it is, and found nowhere. */
function checkClaim(path: FilePath, name: string, warn: Warn): void {
  const steps = claimSteps(name);
  if (steps === undefined) return;
  const message = `a claim named ${quote(name)} is looked for, and no member of another; a path into a claim begins with /`;
  warn(path, message, `/${steps.join('/')}`);
}

/** Names of claims may be URLs, which have slashes and dots. */
function claimSteps(name: string): readonly string[] | undefined {
  if (name.startsWith('/') || name.includes('://')) return undefined;
  const plain = name.replace(/^\$\./, '');
  const isPath = plain !== name || name.includes('/') || /^(?:realm_access|resource_access)\./.test(name);
  return isPath ? plain.split(/[./]/).filter((step) => step !== '') : undefined;
}

type Upstream = GatewayConfig['upstreams'][string];

function checkUpstream(file: GatewayConfig, at: FilePath, upstream: Upstream, report: ReportDiagnostic): void {
  const warn: Warn = (path, message, suggestion) =>
    report(path, message, 'unsafe', { severity: 'warning', suggestion });
  const { url, socket, limits, credentials, pinning } = upstream;
  if (socket === undefined) checkLoop(file, [...at, 'url'], url, report);
  checkQuery([...at, 'url'], url, warn);
  checkCredentials([...at, 'credentials'], credentials, report, warn);
  if (pinning.credentials !== undefined)
    checkCredentials([...at, 'pinning', 'credentials'], pinning.credentials, report, warn);
  if (limits.keepAliveMs >= limits.streamIdleMs) {
    const message =
      'this is no shorter than "streamIdle", after which an idle stream ends: no keep-alive is ever sent; make it shorter';
    warn([...at, 'limits', 'keepAlive'], message);
  }
}

/** What the gateway serves at its public URL, by the way round. */
function checkLoop({ publicUrl, ...file }: GatewayConfig, path: FilePath, url: string, report: ReportDiagnostic): void {
  if (!URL.canParse(url) || !URL.canParse(publicUrl)) return;
  const [target, own] = [new URL(url), new URL(publicUrl)];
  if (target.origin !== own.origin) return;
  const base = own.pathname.replace(/\/$/, '');
  const served = [...Object.entries(file.upstreams), ...Object.entries(file.endpoints)].map(
    ([name, { path: written }]) => base + (written ?? `/${name}`),
  );
  const isServed = served.some((one) => target.pathname === one || target.pathname.startsWith(`${one}/`));
  if (isServed)
    report(path, 'this is a path of the gateway itself: it would call itself; write the URL of the server', 'unsafe');
  else {
    const message =
      'this has the address of "publicUrl": if the gateway answers there, it calls itself; a proxy must lead this path to the server';
    report(path, message, 'unsafe', { severity: 'note' });
  }
}

/** Names of parameters that hold secrets. */
const SECRET_PARAMETER =
  /^(?:.*[_-])?(?:(?:api|access|auth|secret|private)?[_-]?key|token|secret|password|passwd|pwd|sig|signature|credential|auth|code|jwt)$/i;

/** A URL stands in the file, in logs of proxies and servers, and where errors are shown. */
function checkQuery(path: FilePath, written: string | undefined, warn: Warn): void {
  if (written === undefined || !URL.canParse(written)) return;
  const { searchParams } = new URL(written);
  const name = [...searchParams.keys()].find((one) => SECRET_PARAMETER.test(one));
  if (name === undefined && maskSecrets(written) === written) return;
  const what =
    name === undefined ? 'this URL seems to hold a secret' : `the parameter ${quote(name)} seems to be a secret`;
  const message = `${what}, which every reader of this file and every log on the way sees; give it by "credentials: {type: static, header: …, value: {file: …}}" if the server takes a header`;
  warn(path, message);
}

function checkCredentials(
  path: FilePath,
  credentials: Upstream['credentials'],
  report: ReportDiagnostic,
  warn: Warn,
): void {
  switch (credentials.type) {
    case 'none':
      return;
    case 'static':
      checkScheme([...path, 'value'], credentials, warn);
      return;
    case 'client-credentials':
    case 'token-exchange':
      checkIssuerUrl([...path, 'issuer'], credentials.issuer, report);
      checkQuery([...path, 'tokenEndpoint'], credentials.tokenEndpoint, warn);
  }
}

/** A scheme, a blank, and what it is given (RFC 9110 §11.4). */
const AUTHORIZATION = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ +\S/;

function checkScheme(path: FilePath, { header, value }: { header: string; value: string }, warn: Warn): void {
  // Empty where secrets are not read, or could not be.
  if (header.toLowerCase() !== 'authorization' || value === '' || AUTHORIZATION.test(value)) return;
  warn(
    path,
    'this secret has no scheme, and "Authorization" begins with one: put "Bearer " before a token, in the secret itself',
  );
}

/** Names that are compared exactly with what tokens hold. */
function checkBlanks(file: GatewayConfig, warn: Warn): void {
  for (const { path, text } of [...namesOfConsole(file), ...namesOfIssuers(file), ...namesOfResources(file)]) {
    if (text.trim() === text) continue;
    warn(path, `${quote(text)} has blanks around it, and is compared exactly`, text.trim());
  }
}

type Named = { readonly path: FilePath; readonly text: string };

function named(path: FilePath, text: string | readonly string[] | undefined): readonly Named[] {
  if (text === undefined) return [];
  if (typeof text === 'string') return [{ path, text }];
  return text.map((one, index) => ({ path: [...path, index], text: one }));
}

function namesOfConsole({ admin }: GatewayConfig): readonly Named[] {
  return Object.entries(admin?.issuers ?? {}).flatMap(([name, { audience, roles }]) => {
    const path = ['admin', 'issuers', name];
    const groups = Object.entries<readonly string[]>(roles).flatMap(([role, listed]) =>
      named([...path, 'roles', role], listed),
    );
    return [...named([...path, 'audience'], audience), ...groups];
  });
}

function namesOfIssuers({ issuers }: GatewayConfig): readonly Named[] {
  return Object.entries(issuers).flatMap(([name, { login, claims }]) => {
    const path = ['issuers', name];
    const read = Object.entries<string | readonly string[]>(claims).flatMap(([claim, names]) =>
      named([...path, 'claims', claim], names),
    );
    return [...named([...path, 'login', 'clientId'], login?.clientId), ...read];
  });
}

function namesOfResources({ upstreams, endpoints }: GatewayConfig): readonly Named[] {
  return Object.entries({ upstreams, endpoints }).flatMap(([key, resources]) =>
    Object.entries(resources).flatMap(([name, { audiences }]) =>
      Object.entries<readonly string[]>(audiences).flatMap(([issuer, accepted]) =>
        named([key, name, 'audiences', issuer], accepted),
      ),
    ),
  );
}

/** What templates, shells and charts would replace: `${HOST}`, `{{ host }}`, `%HOST%`. */
const PLACEHOLDER = /\$\{[^{}]*\}|\$\([A-Za-z_]\w*\)|\{\{.*?\}\}|%[A-Z][A-Z0-9_]*%|\$[A-Z][A-Z0-9_]+\b/;

export const NOT_FILLED_IN =
  'nothing is filled in here: values are taken as they are written, and secrets alone come from the environment; write the value, in a file for each environment';

export function hasPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text);
}

/** Texts of a file, as they were written, that somebody expected to be filled in. */
export function checkPlaceholders(written: unknown, report: ReportDiagnostic, path: FilePath = []): void {
  if (typeof written === 'string') {
    if (hasPlaceholder(written) && !isUrlKey(path)) report(path, NOT_FILLED_IN, 'wrong-value', { severity: 'warning' });
    return;
  }
  if (typeof written !== 'object' || written === null) return;
  const entries = Array.isArray(written) ? written.entries() : Object.entries(written);
  for (const [step, value] of entries) checkPlaceholders(value, report, [...path, step]);
}

/** Those that have to be URLs are errors already. */
const URL_KEYS: ReadonlySet<string> = new Set(['publicUrl', 'url', 'issuer', 'endpoint', 'tokenEndpoint']);

function isUrlKey(path: FilePath): boolean {
  return URL_KEYS.has(String(path.at(-1)));
}
