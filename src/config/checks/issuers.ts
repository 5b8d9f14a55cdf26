// Checks on issuers that a schema cannot express: their identifiers, how their tokens are verified, and
// which scopes include which. Reports diagnostics and changes nothing.
// docs/contract.md §3; RFC 7662 §4, RFC 9068 §2.1.

import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import type { ReadableGateway } from '../schema/gateway.js';
import { quote } from '../schema/validation.js';
import { entriesOf, textsOf } from '../schema/values.js';
import { checkOrigin } from './addresses.js';

type Issuer = NonNullable<NonNullable<ReadableGateway['issuers']>[string]>;

/**
 * Every scope that `scope` includes, directly or indirectly; `scope` itself only if it is part of a cycle.
 * Terminates on cyclic input. MCP 2026-07-28, scope challenge handling (hierarchies).
 */
export function includedScopes(
  scope: string,
  hierarchy: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
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
export function checkIssuers(file: ReadableGateway, report: ReportDiagnostic): void {
  const seen = new Map<string, string>();
  for (const [name, issuer] of entriesOf(file.issuers)) {
    const path = ['issuers', name];
    if (checkIdentifier(file, path, issuer, report)) {
      const other = seen.get(issuer.issuer ?? '');
      if (other !== undefined) {
        const message = `the issuer "${other}" has this identifier too`;
        report([...path, 'issuer'], message, 'conflict');
      }
      seen.set(issuer.issuer ?? '', name);
    }
    checkVerification(file, path, issuer, report);
    checkTokenType([...path, 'tokenType'], issuer, report);
    checkPointers([...path, 'claims'], issuer, report);
    checkHierarchy([...path, 'scopeHierarchy'], issuer, report);
  }
}

/** True if there is an identifier that can be compared with those of others. */
function checkIdentifier(
  file: ReadableGateway,
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
function checkVerification(
  file: ReadableGateway,
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
  const type = tokenType?.toLowerCase().replace(/^application\//, '');
  if (type === undefined || !NON_ACCESS_TOKEN_TYPES.has(type)) return;
  report(path, 'tokens of this type are no access tokens', 'unsafe');
}

/** Checks claims written as JSON Pointers: `~` is followed by 0 or 1 (RFC 6901 §3). */
function checkPointers(path: FilePath, { claims }: Issuer, report: ReportDiagnostic): void {
  for (const claim of ['client', 'scope', 'groups'] as const) {
    const names = claims?.[claim];
    for (const [index, name] of textsOf([names ?? []].flat())) {
      if (!name.startsWith('/') || !/~(?![01])/.test(name)) continue;
      const at = typeof names === 'string' ? [claim] : [claim, index];
      report([...path, ...at], 'this is not a JSON Pointer');
    }
  }
}

function checkHierarchy(path: FilePath, { scopeHierarchy }: Issuer, report: ReportDiagnostic) {
  const hierarchy = new Map(entriesOf(scopeHierarchy));
  for (const scope of hierarchy.keys()) {
    if (!includedScopes(scope, hierarchy).includes(scope)) continue;
    const message = `the scope ${quote(scope)} includes itself`;
    report([...path, scope], message, 'conflict', { at: 'key' });
  }
}
