// What a schema cannot say about upstreams: how paths are written, who vouches for callers, which headers are ours.
// Reports and changes nothing. Contract §3, "serve refuses to start when".

import { findPathError, isLoopbackHost, suggestPath } from './addresses.js';
import { checkPresented } from './checks-credentials.js';
import { checkUpstreamUrl, isLoopbackGateway } from './checks-origins.js';
import type { FilePath, Report } from './fault.js';
import { quote } from './schema-faults.js';
import { nearestCandidate } from './suggestion.js';
import { mapAt, textAt, textsAt, valueAt } from './tree.js';
import { readDurationMs } from './units.js';

/** Checks every upstream by itself. */
export function checkUpstreams(root: unknown, report: Report): void {
  for (const name of Object.keys(mapAt(root, ['upstreams']))) {
    checkUpstreamUrl(root, name, report);
    checkPath(root, ['upstreams', name], report);
    checkVouchers(root, ['upstreams', name], report);
    checkProfileName(root, name, report);
    checkTimes(root, name, report);
    checkPresented(root, name, report);
  }
}

/** The path of an upstream or endpoint, where one is written. */
export function checkPath(root: unknown, owner: FilePath, report: Report): void {
  const path = [...owner, 'path'];
  const written = textAt(root, path);
  const error = written === undefined ? undefined : findPathError(written);
  if (written === undefined || error === undefined) return;
  const suggestion = suggestPath(written);
  report(path, error, suggestion === undefined ? {} : { suggestion });
}

/** Who vouches for the callers of an upstream or endpoint. */
export function checkVouchers(root: unknown, path: FilePath, report: Report): void {
  const isOpen = textAt(root, [...path, 'authentication']) === 'none';
  const hasIssuers = valueAt(root, [...path, 'issuers']) !== undefined;
  if (isOpen) checkOpen(root, path, hasIssuers, report);
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

/** A token that does not say whose it is must not be shown to issuers in turn (RFC 7662 §4). */
function checkIntrospected(root: unknown, owner: FilePath, report: Report): void {
  const path = [...owner, 'issuers'];
  const asked = textsAt(root, path).filter(
    ([, issuer]) => valueAt(root, ['issuers', issuer, 'introspection']) !== undefined,
  );
  for (const [index] of asked.slice(1)) {
    const noun = owner[0] === 'endpoints' ? 'an endpoint' : 'an upstream';
    report([...path, index], `one issuer of ${noun} may be introspected, not several`, {
      rule: 'conflict',
    });
  }
}

function checkOpen(root: unknown, path: FilePath, hasIssuers: boolean, report: Report): void {
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

function checkAudienceNames(root: unknown, path: FilePath, report: Report): void {
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

function checkProfileName(root: unknown, name: string, report: Report): void {
  const profile = textAt(root, ['upstreams', name, 'inspect']);
  if (profile === undefined) return;
  const known = ['default', ...Object.keys(mapAt(root, ['inspection', 'profiles']))];
  checkName(['upstreams', name, 'inspect'], 'inspection profile', profile, known, report);
}

/** An exchange that must end before its first byte may come would always end so. */
function checkTimes(root: unknown, name: string, report: Report): void {
  const limits = ['upstreams', name, 'limits'];
  const [first, total] = ['requestTimeout', 'exchangeMax'].map((key) =>
    readDurationMs(textAt(root, [...limits, key]) ?? ''),
  );
  if (first === undefined || total === undefined || first <= total) return;
  report([...limits, 'exchangeMax'], '"exchangeMax" is shorter than "requestTimeout"', {
    rule: 'conflict',
  });
}

/** A name of something else in the file, which must be there. `at` says where the name stands. */
export function checkName(
  path: FilePath,
  kind: string,
  name: string,
  known: readonly string[],
  report: Report,
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
