// What a schema cannot say about keys, the audit and the console: when a gateway would run unguarded.
// Reports and changes nothing. Contract §3 and §8.

import { normalize } from 'node:path';
import { isLoopbackGateway } from './checks-origins.js';
import type { Report } from './fault.js';
import { quote } from './schema-faults.js';
import { nearestWord } from './suggestion.js';
import { mapAt, textAt, valueAt } from './tree.js';

/** Without a key nothing can be sealed for longer than a run; only loopback may live with that. */
export function checkKeys(root: unknown, report: Report): void {
  if (valueAt(root, ['keys']) !== undefined || isLoopbackGateway(root)) return;
  report([], 'the key "keys" is missing: outside loopback the gateway needs a key of its own', {
    at: 'key',
    rule: 'missing-key',
  });
}

/** Standard output alone is durable only where somebody says so. */
export function checkAudit(root: unknown, report: Report): void {
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

/** The console needs a credential, and its issuers must exist. */
export function checkAdmin(root: unknown, report: Report): void {
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
    const suggestion = nearestWord(issuer, known);
    report(['admin', 'issuers', issuer], `unknown issuer ${quote(issuer)}`, {
      at: 'key',
      rule: 'unknown-name',
      ...(suggestion === undefined ? {} : { suggestion }),
    });
  }
}
