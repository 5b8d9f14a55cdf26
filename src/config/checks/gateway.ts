// Checks on the settings of the gateway itself that a schema cannot express: keys, signers, audit, state, the console,
// the policy mode, and issuers with the verification of their tokens. Most find settings under which a gateway would
// run unprotected. upstreams.ts checks upstreams and endpoints, addresses.ts listeners and URLs. Reports diagnostics
// and changes nothing. docs/reference/configuration.md; docs/reference/definitions.md; docs/reference/audit.md; RFC
// 7662 §4, RFC 9068 §2.1.

import { normalize } from 'node:path';
import { stepsOf } from '../../text/json-members.js';
import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import { memberOf } from '../schema/declarations.js';
import type { GatewayConfig } from '../schema/gateway.js';
import { checkName, quote } from '../schema/validation.js';
import { checkOrigin, checkUrl, isLoopbackGateway, isLoopbackHost } from './addresses.js';

type Issuer = GatewayConfig['issuers'][string];

/** Without a configured key, sealed values do not outlive the process, which is acceptable only on loopback. */
export function checkKeys(file: GatewayConfig, report: ReportDiagnostic): void {
  if (file.keys !== undefined || isLoopbackGateway(file)) return;
  const message = 'the key "keys" is missing: outside loopback the gateway needs a key of its own';
  report([], message, 'missing-key', { at: 'key' });
}

/** What would let an unsigned definition through although signatures are required, or require them of nobody. */
export function checkSigning({ pins, upstreams }: GatewayConfig, report: ReportDiagnostic): void {
  if (pins?.signers === undefined) {
    if (pins?.require === undefined) return;
    report(['pins', 'require'], '"require" needs "signers": nobody could sign', 'missing-key');
    return;
  }
  for (const [name, { pinning }] of Object.entries(upstreams)) {
    if (pinning.mode !== 'trust-on-first-use') continue;
    const message =
      '"trust-on-first-use" cannot be combined with "pins.signers": definitions that are trusted on first use have no signature';
    report(['upstreams', name, 'pinning', 'mode'], message, 'conflict');
  }
}

/** Standard output as the only sink counts as durable only with `durability: handed-over`, and is never synced. */
export function checkAudit({ audit }: GatewayConfig, report: ReportDiagnostic): void {
  const { sinks, durability: promised, onFailure } = audit;
  const paths = new Set<string>();
  for (const [index, sink] of sinks.entries()) {
    if (sink.type !== 'file') continue;
    const path = normalize(sink.path);
    if (paths.has(path)) {
      report(['audit', 'sinks', index, 'path'], 'another sink has this path', 'conflict');
    }
    paths.add(path);
  }
  checkAuditTimes(audit, report);
  if (promised === 'synced' && !sinks.some(({ type }) => type === 'file')) {
    report(['audit', 'durability'], '"synced" needs a sink of type file', 'conflict');
  }
  const isDurable = sinks.some(
    (sink) => sink.type === 'file' || (sink.type === 'stdout' && sink.durability === 'handed-over'),
  );
  if (isDurable || onFailure !== 'block') return;
  const message = 'stdout alone with "onFailure: block" needs "durability: handed-over"';
  const suggestion = '{type: stdout, durability: handed-over}';
  report(['audit', 'sinks', 0], message, 'unsafe', { suggestion });
}

/** With less, every few lines would begin a file. */
const MIN_ROTATE_BYTES = 1_048_576;

/** A file may be removed only when no run can still be writing it, or about to write its next checkpoint. */
function checkAuditTimes({ checkpoint, rotate, retainMs }: GatewayConfig['audit'], report: ReportDiagnostic): void {
  if (rotate.size < MIN_ROTATE_BYTES) report(['audit', 'rotate', 'size'], 'this is less than 1MiB');
  if (retainMs === undefined || retainMs >= 2 * checkpoint.everyMs + rotate.ageMs) return;
  const message = 'this is shorter than "rotate.age" and twice "checkpoint.every" together: make it longer';
  report(['audit', 'retain'], message, 'conflict');
}

/** Lower bound of `state.maxAge`: with less, every short network disturbance would refuse calls. */
const MIN_STORE_AGE_MS = 2000;

/** Checks the shared store: two commands must fit into the age that its data may have. */
export function checkState(file: GatewayConfig, report: ReportDiagnostic): void {
  const { state } = file;
  if (state.type !== 'redis') return;
  if (file.keys === undefined && isLoopbackGateway(file)) {
    const message = 'a shared store needs "keys": with a key of its own, a replica shares nothing';
    report(['state'], message, 'missing-key', { at: 'key' });
  }
  if (state.maxAgeMs < MIN_STORE_AGE_MS) {
    report(['state', 'maxAge'], 'this is shorter than 2s');
  } else if (state.commandTimeoutMs * 2 > state.maxAgeMs) {
    report(['state', 'commandTimeout'], 'this is longer than half of "maxAge"', 'conflict');
  }
}

/** The console needs a credential, and the issuers it names must exist. */
export function checkAdmin({ admin, issuers }: GatewayConfig, report: ReportDiagnostic): void {
  if (admin === undefined) return;
  if (admin.issuers === undefined && admin.breakGlass === undefined) {
    const message = 'the console needs "issuers" or "breakGlass"';
    report(['admin'], message, 'missing-key', { at: 'key' });
  }
  const known = Object.keys(issuers);
  for (const name of Object.keys(admin.issuers ?? {})) {
    const path = ['admin', 'issuers', name];
    checkName(path, 'issuer', name, known, report, 'key');
    if (admin.publicUrl !== undefined || memberOf(issuers, name)?.login === undefined) continue;
    const message = 'the key "publicUrl" of "admin" is missing: logins of this issuer return to it';
    report(path, message, 'missing-key', { at: 'key' });
  }
  checkConsoleUrl(admin.publicUrl, report);
}

/** A login ends with an ID token, which is verified by its signature. */
function checkLogin(path: FilePath, { login, introspection }: Issuer, report: ReportDiagnostic): void {
  if (login === undefined) return;
  if (introspection !== undefined) {
    const message = 'an ID token is verified by its signature, and this issuer has no "algorithms"';
    report(path, message, 'conflict', { at: 'key' });
  }
  if (!login.scopes.includes('openid')) report([...path, 'scopes'], 'without the scope "openid" there is no ID token');
  checkMatch([...path, 'match'], login.match, report);
}

/** Claims that people or administrators can set, or that a second person may have later (OpenID Connect Core §5.7). */
const CHANGEABLE_CLAIMS: ReadonlySet<string> = new Set([
  ...['email', 'preferred_username', 'upn', 'name', 'unique_name', 'username', 'user_name', 'login', 'mail'],
  ...['given_name', 'family_name', 'middle_name', 'nickname', 'profile', 'picture', 'website', 'gender', 'birthdate'],
  ...['zoneinfo', 'locale', 'phone_number', 'address', 'updated_at', 'email_verified', 'phone_number_verified'],
]);

/** Claims that several people have in common, or that name no person at all. */
const SHARED_CLAIMS: ReadonlySet<string> = new Set([
  ...['iss', 'aud', 'azp', 'client_id', 'appid', 'exp', 'nbf', 'iat', 'auth_time', 'nonce', 'jti', 'sid', 'acr', 'amr'],
  ...['at_hash', 'c_hash', 's_hash', 'typ', 'ver', 'scope', 'scp', 'groups', 'roles', 'tid', 'hd', 'org_id', 'idp'],
]);

/** Whoever can set the claim by which people are told apart can be anybody. */
function checkMatch(path: FilePath, claim: string | undefined, report: ReportDiagnostic): void {
  if (claim === undefined) return;
  if (isBadPointer(claim)) {
    report(path, 'this is not a JSON Pointer');
    return;
  }
  const name = (claim.startsWith('/') ? (stepsOf(claim).at(-1) ?? '') : claim).toLowerCase();
  if (CHANGEABLE_CLAIMS.has(name)) {
    const message = `users or administrators can set ${quote(name)}, so it does not tell who somebody is: name a claim that only the issuer sets`;
    report(path, message, 'unsafe');
  } else if (name === 'sub') {
    const message = '"sub" is compared in any case: name the claim that is the same where the subject is not';
    report(path, message, 'conflict');
  } else if (SHARED_CLAIMS.has(name)) {
    const message = `${quote(name)} may be the same for several people: name a claim that tells one person`;
    report(path, message, 'unsafe');
  }
}

/** Cookies and codes travel to this URL: https unless on loopback, and the pages are at its root. */
function checkConsoleUrl(written: string | undefined, report: ReportDiagnostic): void {
  const path = ['admin', 'publicUrl'];
  const url = checkUrl(path, written, report);
  if (url === undefined) return;
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname))
    report(path, 'plain http is possible only on loopback', 'unsafe');
  if (url.pathname !== '/' || url.search !== '')
    report(path, 'the console is served at the root of its host: write the URL without a path');
}

/** A message is signed or goes where only its URL is known, its link leads somewhere, and its URL is one that is connected to. */
export function checkWebhooks(file: GatewayConfig, report: ReportDiagnostic): void {
  const { approvals, admin } = file;
  for (const [name, { url, format, secret, network, plaintext, ca }] of Object.entries(approvals.webhooks)) {
    const owner = ['approvals', 'webhooks', name];
    if (format === 'json' && secret === undefined) {
      const message = 'with "format: json" the key "secret" is needed: nothing else tells who sent a message';
      report(owner, message, 'missing-key', { at: 'key' });
    }
    if (admin?.publicUrl === undefined) {
      const message = 'a webhook needs "admin.publicUrl": its messages link to the console';
      report(owner, message, 'missing-key', { at: 'key' });
    }
    // Empty where secrets are not read. The URL is a secret, so that nothing of it is suggested.
    if (url === '') continue;
    // Receivers write a port that is the default one.
    checkOrigin(
      file,
      [...owner, 'url'],
      new URL(url).href,
      { owner, network, plaintext },
      (path, message, rule, more) =>
        report(path, message, rule, { ...more, suggestion: path.at(-1) === 'url' ? undefined : more?.suggestion }),
    );
    if (ca !== undefined && url.startsWith('http:'))
      report([...owner, 'ca'], 'this webhook is reached by plain http', 'conflict', { at: 'key' });
  }
}

/** Rules that decide nothing are a choice that is made twice. */
export function checkPolicyMode({ policies }: GatewayConfig, report: ReportDiagnostic): void {
  if (policies.mode !== 'observe') {
    if (policies.acceptUnenforced === undefined) return;
    const message = '"acceptUnenforced" goes with "mode: observe"';
    report(['policies', 'acceptUnenforced'], message, 'conflict', { at: 'key' });
    return;
  }
  const path = ['policies', 'mode'];
  if (policies.acceptUnenforced === undefined) {
    const message = 'with "observe" no rule is enforced, which needs "acceptUnenforced: true"';
    report(path, message, 'unsafe');
    return;
  }
  const message = 'no policy is enforced: every verified caller may use whatever is pinned';
  report(path, message, 'unsafe', { severity: 'warning' });
}

/**
 * Every scope that `scope` includes, directly or indirectly; `scope` itself only if it is part of a cycle.
 * Terminates on cyclic input. MCP 2026-07-28, scope challenge handling (hierarchies).
 */
export function includedScopes(scope: string, hierarchy: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const found = new Set<string>();
  const open = [...(hierarchy.get(scope) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    open.push(...(hierarchy.get(next) ?? []));
  }
  return [...found].sort();
}

/** JWT types that are never access tokens, whatever an issuer calls them. */
const NON_ACCESS_TOKEN_TYPES: ReadonlySet<string> = new Set([
  ...['dpop+jwt', 'id_token', 'id+jwt', 'logout+jwt', 'oauth-id-jag+jwt', 'secevent+jwt'],
  ...['oauth-authz-req+jwt', 'token-introspection+jwt', 'client-authentication+jwt', 'refresh+jwt'],
]);

/** Checks each issuer, and that no two issuers have the same identifier. */
export function checkIssuers(file: GatewayConfig, report: ReportDiagnostic): void {
  const seen = new Map<string, string>();
  for (const [name, issuer] of Object.entries(file.issuers)) {
    const path = ['issuers', name];
    if (checkIssuerIdentifier(file, path, issuer, report)) {
      const other = seen.get(issuer.issuer);
      if (other !== undefined) {
        const message = `the issuer "${other}" has this identifier too`;
        report([...path, 'issuer'], message, 'conflict');
      }
      seen.set(issuer.issuer, name);
    }
    checkTokenVerification(file, path, issuer, report);
    checkTokenType([...path, 'tokenType'], issuer, report);
    checkClaimPointers([...path, 'claims'], issuer, report);
    checkScopeHierarchy([...path, 'scopeHierarchy'], issuer, report);
    checkLogin([...path, 'login'], issuer, report);
  }
}

/** True if there is an identifier that can be compared with those of others. */
function checkIssuerIdentifier(
  file: GatewayConfig,
  owner: FilePath,
  { issuer: written, network, plaintext }: Issuer,
  report: ReportDiagnostic,
): boolean {
  const path = [...owner, 'issuer'];
  const url = checkOrigin(file, path, written, { owner, network, plaintext }, report);
  if (url?.search) report(path, 'an issuer identifier has no query');
  return url !== undefined;
}

/** An issuer's tokens are verified either by signature or by introspection. */
function checkTokenVerification(
  file: GatewayConfig,
  owner: FilePath,
  { algorithms, introspection, network, plaintext }: Issuer,
  report: ReportDiagnostic,
): void {
  if (algorithms === undefined && introspection === undefined) {
    const message = 'the key "algorithms" is missing, or "introspection" in its place';
    report(owner, message, 'missing-key', { at: 'key' });
  }
  if (algorithms !== undefined && introspection !== undefined) {
    const message = 'tokens are verified by signature or introspected, not both';
    report([...owner, 'algorithms'], message, 'conflict', { at: 'key' });
  }
  const path = [...owner, 'introspection', 'endpoint'];
  checkOrigin(file, path, introspection?.endpoint, { owner, network, plaintext }, report);
}

function checkTokenType(path: FilePath, { tokenType }: Issuer, report: ReportDiagnostic): void {
  const type = tokenType.toLowerCase().replace(/^application\//, '');
  if (!NON_ACCESS_TOKEN_TYPES.has(type)) return;
  report(path, 'tokens of this type are no access tokens', 'unsafe');
}

/** Of a claim that is written as a JSON Pointer: `~` is followed by 0 or 1 (RFC 6901 §3). */
function isBadPointer(claim: string): boolean {
  return claim.startsWith('/') && /~(?![01])/.test(claim);
}

/** Checks claims written as JSON Pointers. */
function checkClaimPointers(path: FilePath, { claims }: Issuer, report: ReportDiagnostic): void {
  for (const claim of ['client', 'scope', 'groups'] as const) {
    const names = claims[claim];
    for (const [index, name] of [names].flat().entries()) {
      if (!isBadPointer(name)) continue;
      const at = typeof names === 'string' ? [claim] : [claim, index];
      report([...path, ...at], 'this is not a JSON Pointer');
    }
  }
}

function checkScopeHierarchy(path: FilePath, { scopeHierarchy }: Issuer, report: ReportDiagnostic) {
  const hierarchy = new Map(Object.entries(scopeHierarchy));
  for (const scope of hierarchy.keys()) {
    if (!includedScopes(scope, hierarchy).includes(scope)) continue;
    const message = `the scope ${quote(scope)} includes itself`;
    report([...path, scope], message, 'conflict', { at: 'key' });
  }
}
