// Reads audit lines back: selects the matching ones and renders them for people. Verifies no chain and
// trusts nothing in a line: control characters are escaped before anything is printed.

import { makeVisible } from '../text/escaping.js';

/** An event as read; members may be missing or of any type. */
export type AuditRecord = { readonly [name: string]: unknown };

/** All given filters must match. Values are compared exactly. */
export type AuditFilter = {
  readonly type?: string;
  readonly subject?: string;
  readonly upstream?: string;
  readonly reason?: string;
  /** Milliseconds since the epoch: events at or after it. */
  readonly sinceMs?: number;
};

/** A line as an event; `undefined` if it is not one. */
export function readAuditLine(line: string): AuditRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is AuditRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of own members, or `undefined`. */
export function valueAt(record: AuditRecord, ...path: readonly string[]): unknown {
  let value: unknown = record;
  for (const name of path) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function matchesIfGiven<T>(expected: T | undefined, check: (value: T) => boolean): boolean {
  return expected === undefined || check(expected);
}

function hasReason(record: AuditRecord, reason: string): boolean {
  const reasons = valueAt(record, 'decision', 'reasons');
  return Array.isArray(reasons) && reasons.includes(reason);
}

/** True if the event matches the filter. */
export function isMatch(record: AuditRecord, filter: AuditFilter): boolean {
  return (
    matchesIfGiven(filter.type, (type) => record['type'] === type) &&
    matchesIfGiven(filter.subject, (subject) => valueAt(record, 'actor', 'sub') === subject) &&
    matchesIfGiven(
      filter.upstream,
      (upstream) => valueAt(record, 'target', 'upstream') === upstream,
    ) &&
    matchesIfGiven(filter.reason, (reason) => hasReason(record, reason)) &&
    matchesIfGiven(filter.sinceMs, (since) => Date.parse(String(record['time'])) >= since)
  );
}

/** True if this is the id of the event or of the decision it belongs to. */
export function hasId(record: AuditRecord, id: string): boolean {
  return record['id'] === id || valueAt(record, 'decision', 'id') === id;
}

function quoteIfNeeded(value: unknown): string {
  if (typeof value === 'string' && value !== '') return makeVisible(value);
  return typeof value === 'number' ? String(value) : '-';
}

function reasonsOf(record: AuditRecord): string {
  const reasons = valueAt(record, 'decision', 'reasons');
  return Array.isArray(reasons) && reasons.length > 0 ? reasons.map(quoteIfNeeded).join(',') : '';
}

function detailOf(record: AuditRecord): string {
  const detail = record['detail'];
  if (!isRecord(detail)) return '';
  return Object.entries(detail)
    .map(([name, value]) => `${makeVisible(name)}=${quoteIfNeeded(value)}`)
    .join(' ');
}

/** Renders one line: time, type, subject, target and result. No control characters. */
export function renderAuditRow(record: AuditRecord): string {
  const parts = [quoteIfNeeded(record['time']), quoteIfNeeded(record['type'])];
  if (isRecord(record['actor'])) parts.push(quoteIfNeeded(valueAt(record, 'actor', 'sub')));
  const target = record['target'];
  if (isRecord(target)) {
    const { upstream, method, name } = target;
    parts.push(
      [upstream, method, name]
        .filter((part) => part != null)
        .map(quoteIfNeeded)
        .join(' '),
    );
  }
  const decision = record['decision'];
  if (isRecord(decision)) {
    parts.push(
      `${quoteIfNeeded(decision['action'])} ${reasonsOf(record) || quoteIfNeeded(decision['rule'])}`,
    );
    parts.push(quoteIfNeeded(decision['id']));
  }
  const detail = detailOf(record);
  if (detail !== '') parts.push(detail);
  return parts.join('  ');
}

/** Renders the complete event: indented JSON without terminal control characters. */
export function renderAuditRecord(record: AuditRecord): string {
  const text = JSON.stringify(
    record,
    (_, value: unknown) => (typeof value === 'string' ? makeVisible(value) : value),
    2,
  );
  return text;
}
