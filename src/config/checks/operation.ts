// Checks on keys, audit, state and the console that a schema cannot express: settings under which a
// gateway would run unprotected. Reports diagnostics and changes nothing. docs/contract.md §3 and §8.

import { normalize } from 'node:path';
import { nearestCandidate } from '../../text/edit-distance.js';
import type { ReportDiagnostic } from '../diagnostics.js';
import { quote } from '../schema/validation.js';
import { readDurationMs } from '../units.js';
import { mapAt, textAt, valueAt } from '../yaml.js';
import { isLoopbackGateway } from './addresses.js';

/** Without a configured key, sealed values do not outlive the process, which is acceptable only on loopback. */
export function checkKeys(root: unknown, report: ReportDiagnostic): void {
  if (valueAt(root, ['keys']) !== undefined || isLoopbackGateway(root)) return;
  report([], 'the key "keys" is missing: outside loopback the gateway needs a key of its own', {
    at: 'key',
    rule: 'missing-key',
  });
}

/** Standard output as the only sink counts as durable only with `durability: handed-over`, and is never synced. */
export function checkAudit(root: unknown, report: ReportDiagnostic): void {
  const sinks = valueAt(root, ['audit', 'sinks']);
  if (!Array.isArray(sinks) || sinks.length === 0) return;
  const files = new Set<string>();
  sinks.forEach((sink: unknown, index) => {
    const written = textAt(sink, ['path']);
    if (written === undefined) return;
    const path = normalize(written);
    if (files.has(path)) {
      report(['audit', 'sinks', index, 'path'], 'another sink has this path', { rule: 'conflict' });
    }
    files.add(path);
  });
  const hasFile = sinks.some((sink: unknown) => textAt(sink, ['type']) === 'file');
  if (!hasFile && textAt(root, ['audit', 'durability']) === 'synced') {
    report(['audit', 'durability'], '"synced" needs a sink of type file', { rule: 'conflict' });
  }
  const isDurable = sinks.some(
    (sink: unknown) =>
      textAt(sink, ['type']) !== 'stdout' || textAt(sink, ['durability']) === 'handed-over',
  );
  if (isDurable || textAt(root, ['audit', 'onFailure']) !== 'block') return;
  report(
    ['audit', 'sinks', 0],
    'stdout alone with "onFailure: block" needs "durability: handed-over"',
    { rule: 'unsafe', suggestion: '{type: stdout, durability: handed-over}' },
  );
}

/** Lower bound of `state.maxAge`: with less, every short network disturbance would refuse calls. */
export const MIN_STORE_AGE_MS = 2000;

/** Checks the shared store: two commands must fit into the age that its data may have. */
export function checkState(root: unknown, report: ReportDiagnostic): void {
  if (textAt(root, ['state', 'type']) !== 'redis') return;
  if (valueAt(root, ['keys']) === undefined && isLoopbackGateway(root)) {
    report(
      ['state'],
      'a shared store needs "keys": with a key of its own, a replica shares nothing',
      {
        at: 'key',
        rule: 'missing-key',
      },
    );
  }
  const maxAgeMs = readDurationMs(textAt(root, ['state', 'maxAge']) ?? '');
  const timeoutMs = readDurationMs(textAt(root, ['state', 'commandTimeout']) ?? '');
  if (maxAgeMs === undefined || timeoutMs === undefined) return;
  if (maxAgeMs < MIN_STORE_AGE_MS) {
    report(['state', 'maxAge'], 'this is shorter than 2s', { rule: 'wrong-value' });
  } else if (timeoutMs * 2 > maxAgeMs) {
    report(['state', 'commandTimeout'], 'this is longer than half of "maxAge"', {
      rule: 'conflict',
    });
  }
}

/** The console needs a credential, and the issuers it names must exist. */
export function checkAdmin(root: unknown, report: ReportDiagnostic): void {
  if (valueAt(root, ['admin']) === undefined) return;
  const admin = mapAt(root, ['admin']);
  if (admin['issuers'] === undefined && admin['breakGlass'] === undefined) {
    report(['admin'], 'the console needs "issuers" or "breakGlass"', {
      at: 'key',
      rule: 'missing-key',
    });
  }
  const known = Object.keys(mapAt(root, ['issuers']));
  for (const issuer of Object.keys(mapAt(root, ['admin', 'issuers']))) {
    if (known.includes(issuer)) continue;
    const suggestion = nearestCandidate(issuer, known);
    report(['admin', 'issuers', issuer], `unknown issuer ${quote(issuer)}`, {
      at: 'key',
      rule: 'unknown-name',
      ...(suggestion === undefined ? {} : { suggestion }),
    });
  }
}
