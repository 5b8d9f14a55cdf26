// Checks on issuers that a schema cannot express: their identifiers, how their tokens are verified, and
// which scopes include which. Reports diagnostics and changes nothing.
// docs/contract.md §3; RFC 7662 §4, RFC 9068 §2.1.

import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import { quote } from '../schema/validation.js';
import { mapAt, textAt, textsAt, valueAt } from '../yaml.js';
import { checkNetwork, checkUrl } from './addresses.js';

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
export function checkIssuers(root: unknown, report: ReportDiagnostic): void {
  const seen = new Map<string, string>();
  for (const name of Object.keys(mapAt(root, ['issuers']))) {
    checkIdentifier(root, name, seen, report);
    checkVerification(root, name, report);
    checkTokenType(root, name, report);
    checkPointers(root, name, report);
    checkHierarchy(root, name, report);
  }
}

function checkIdentifier(
  root: unknown,
  name: string,
  seen: Map<string, string>,
  report: ReportDiagnostic,
): void {
  const path = ['issuers', name, 'issuer'];
  const written = textAt(root, path);
  const url = written === undefined ? undefined : checkUrl(path, written, report);
  if (written === undefined || url === undefined) return;
  if (url.search !== '') report(path, 'an issuer identifier has no query');
  checkNetwork(root, ['issuers', name], path, url, report);
  const other = seen.get(written);
  if (other !== undefined) {
    report(path, `the issuer "${other}" has this identifier too`, { rule: 'conflict' });
  }
  seen.set(written, name);
}

/** An issuer's tokens are verified either by signature or by introspection. */
function checkVerification(root: unknown, name: string, report: ReportDiagnostic): void {
  const path = ['issuers', name];
  const hasAlgorithms = valueAt(root, [...path, 'algorithms']) !== undefined;
  const usesIntrospection = valueAt(root, [...path, 'introspection']) !== undefined;
  if (!hasAlgorithms && !usesIntrospection) {
    report(path, 'the key "algorithms" is missing, or "introspection" in its place', {
      at: 'key',
      rule: 'missing-key',
    });
  }
  if (hasAlgorithms && usesIntrospection) {
    report([...path, 'algorithms'], 'tokens are verified by signature or introspected, not both', {
      at: 'key',
      rule: 'conflict',
    });
  }
  const endpoint = [...path, 'introspection', 'endpoint'];
  const written = textAt(root, endpoint);
  const url = written === undefined ? undefined : checkUrl(endpoint, written, report);
  if (url !== undefined) checkNetwork(root, path, endpoint, url, report);
}

function checkTokenType(root: unknown, name: string, report: ReportDiagnostic): void {
  const path = ['issuers', name, 'tokenType'];
  const type = textAt(root, path)
    ?.toLowerCase()
    .replace(/^application\//, '');
  if (type === undefined || !NON_ACCESS_TOKEN_TYPES.has(type)) return;
  report(path, 'tokens of this type are no access tokens', { rule: 'unsafe' });
}

/** Checks claims written as JSON Pointers: `~` is followed by 0 or 1 (RFC 6901 §3). */
function checkPointers(root: unknown, name: string, report: ReportDiagnostic): void {
  for (const claim of ['client', 'scope', 'groups']) {
    const path = ['issuers', name, 'claims', claim];
    const single = textAt(root, path);
    const names: readonly (readonly [FilePath, string])[] =
      single === undefined
        ? textsAt(root, path).map(([index, text]) => [[...path, index], text])
        : [[path, single]];
    for (const [place, text] of names) {
      if (!text.startsWith('/')) continue;
      if (/~(?![01])/.test(text)) report(place, 'this is not a JSON Pointer');
    }
  }
}

function checkHierarchy(root: unknown, name: string, report: ReportDiagnostic): void {
  const path = ['issuers', name, 'scopeHierarchy'];
  const hierarchy = new Map(
    Object.keys(mapAt(root, path)).map((scope) => [
      scope,
      textsAt(root, [...path, scope]).map(([, narrower]) => narrower),
    ]),
  );
  for (const scope of hierarchy.keys()) {
    if (!includedScopes(scope, hierarchy).includes(scope)) continue;
    report([...path, scope], `the scope ${quote(scope)} includes itself`, {
      at: 'key',
      rule: 'conflict',
    });
  }
}
