// Reads audit lines back: completes the events of requests, selects the matching ones and renders them for
// people. Verifies no chain and trusts nothing in a line: control characters are escaped before anything is
// printed. Also the last decisions, for the console: the texts of the events as they are written, kept in memory within
// bounds and read only when somebody looks. What the audit log redacts or omits is not here either.

import { isObject } from '../protocol/jsonrpc.js';
import { BoundedMap } from '../state/bounds.js';
import { makeVisible, toVisibleJson } from '../text/escaping.js';
import { type AuditRecord, namesOf, type ReplicaNames, requiredText, textAt, valueAt } from './chain.js';
import type { EventText } from './event.js';

/** All given filters must match. Values are compared exactly. */
type AuditFilter = {
  readonly type?: string | undefined;
  readonly subject?: string | undefined;
  readonly upstream?: string | undefined;
  readonly reason?: string | undefined;
  /** Only outcomes whose client got something else than the upstream sent. */
  readonly altered?: boolean | undefined;
  /** Name of the gateway, if its chain names it. */
  readonly instance?: string | undefined;
  /** Id of an approval: its own events, and the decisions that name it. */
  readonly approval?: string | undefined;
  /** Id of a trace. */
  readonly trace?: string | undefined;
  /** Milliseconds since the epoch: events at or after it. */
  readonly sinceMs?: number | undefined;
};

/**
 * What a line of a request leaves out where it is so, by member and in the order of the contract. A member that is never
 * null has its place here and is printed only where a line says it.
 */
const LEFT_OUT = {
  actor: { iss: undefined, sub: null, client_id: undefined, act: [], token: null, groups_used: [] },
  token: { id: undefined, aud: undefined, scopes: [], exp: null, binding: 'none' },
  client: { ip: undefined, self_reported: null, era: null, session: null },
  target: { upstream: undefined, method: null, kind: null, name: null, uris: [] },
  args: { digest: undefined, bytes: null, keys: [], captured: {} },
  decision: {
    ...{
      id: undefined,
      verdict: undefined,
      action: 'forwarded',
      mode: 'enforce',
      stage: undefined,
    },
    ...{ policy: null, rule: null, reasons: [], causes: [], approval: undefined, shadow: [] },
  },
  result: {
    ...{ status: undefined, http: null, rpc_code: null, bytes: null, digest: null },
    ...{ altered: false, list: null },
  },
  latency: { total: null, auth: null, policy: null, inspect: null, upstream: null },
};

/** The event of a request with all its members; an outcome has what its decision says, too. */
function completeEvent(record: AuditRecord, decided: AuditRecord, names: ReplicaNames | undefined): AuditRecord {
  const members = (name: string): AuditRecord | undefined => {
    const [own, other] = [record[name], decided[name]];
    if (!isObject(own)) return isObject(other) ? other : undefined;
    return isObject(other) ? { ...other, ...own } : own;
  };
  const actor = members('actor');
  const token = actor?.['token'];
  const target = members('target');
  const pin = target?.['pin'] ?? null;
  const args = members('args');
  const result = record['result'];
  const gateway = members('gateway');
  const { schema, id, time, type, chain } = record;
  const complete = {
    ...{ schema, id, time, type, gateway: gateway === undefined ? null : { ...names, ...gateway } },
    actor: actor === undefined ? null : { ...LEFT_OUT.actor, ...actor, ...completeToken(token) },
    client: { ...LEFT_OUT.client, ...members('client') },
    target: { ...LEFT_OUT.target, definition: pin, pin, request_id: null, ...target },
    args: args === undefined ? null : { ...LEFT_OUT.args, ...args },
    decision: { ...LEFT_OUT.decision, ...members('decision') },
    findings: record['findings'] ?? [],
    result: isObject(result) ? { ...LEFT_OUT.result, ...result } : null,
    latency_ms: { ...LEFT_OUT.latency, ...members('latency_ms') },
    trace: members('trace') ?? null,
    // The number that a decision says is not said again, so that numbers can be summed over lines.
    ...(isObject(record['detail']) && { detail: record['detail'] }),
    chain,
  };
  // Later versions may have further members.
  const further = Object.entries(record).filter(([name]) => !Object.hasOwn(complete, name));
  return { ...complete, ...Object.fromEntries(further) };
}

function completeToken(token: unknown): { readonly token?: AuditRecord } {
  return isObject(token) ? { token: { ...LEFT_OUT.token, ...token } } : {};
}

/** Decisions without an outcome so far that are kept, and the characters of their lines; the oldest goes first. */
const MAX_UNDER_WAY = 10_000;
const MAX_CHARACTERS_UNDER_WAY = 64 * 1024 * 1024;
/** Chains whose gateways are known. */
const MAX_CHAINS = 10_000;

/** An event with all its members, as far as the lines say them. */
export type JoinedEvent = {
  readonly record: AuditRecord;
  /** The line of the decision is missing: what it alone says is null here, which does not mean that it was. */
  readonly isAlone: boolean;
};

/**
 * Completes the events of a log, which are given in its order: an outcome with what its decision says, if that
 * came before, and both with the names of the gateway, if its chain has named it before. `length` is that of the line.
 */
export function createEventJoiner(): (record: AuditRecord, length: number) => JoinedEvent {
  const underWay = new BoundedMap<unknown, AuditRecord>(MAX_UNDER_WAY, MAX_CHARACTERS_UNDER_WAY);
  const chains = new BoundedMap<string, ReplicaNames>(MAX_CHAINS, Number.POSITIVE_INFINITY);

  function keepNames(record: AuditRecord): void {
    const epoch = requiredText(record, 'gateway', 'epoch');
    const names = chains.has(epoch) ? undefined : namesOf(record);
    if (names !== undefined) chains.set(epoch, names, 0);
  }

  return (record, length) => {
    const { type } = record;
    if (type !== 'mcp.decision' && type !== 'mcp.outcome') {
      keepNames(record);
      return { record, isAlone: false };
    }
    const id = valueAt(record, 'decision', 'id');
    const names = chains.get(requiredText(record, 'gateway', 'epoch'));
    if (type === 'mcp.decision') {
      underWay.set(id, record, length);
      return { record: completeEvent(record, {}, names), isAlone: false };
    }
    const decided = underWay.get(id);
    underWay.delete(id);
    // A line that says all of it itself names its files.
    const isAlone = decided === undefined && valueAt(record, 'gateway', 'policy') === undefined;
    return { record: completeEvent(record, decided ?? {}, names), isAlone };
  };
}

/** True if the event matches the filter. */
export function isMatch(record: AuditRecord, filter: AuditFilter): boolean {
  const { type, subject, upstream, instance, reason, altered, approval, trace, sinceMs } = filter;
  const reasons = valueAt(record, 'decision', 'reasons');
  return (
    (type === undefined || record['type'] === type) &&
    (subject === undefined || valueAt(record, 'actor', 'sub') === subject) &&
    (upstream === undefined || valueAt(record, 'target', 'upstream') === upstream) &&
    (instance === undefined || valueAt(record, 'gateway', 'instance') === instance) &&
    (reason === undefined || (Array.isArray(reasons) && reasons.includes(reason))) &&
    (altered !== true || isAltered(record)) &&
    (approval === undefined || approvalOf(record) === approval) &&
    (trace === undefined || valueAt(record, 'trace', 'trace_id') === trace) &&
    (sinceMs === undefined || Date.parse(String(record['time'])) >= sinceMs)
  );
}

/** The id of the approval that an event is of, or that a decision names. */
function approvalOf(record: AuditRecord): unknown {
  return valueAt(record, 'approval', 'id') ?? valueAt(record, 'decision', 'approval');
}

/** True if this is the id of the event, of the decision it belongs to, of the request it is a part of, or of the approval. */
export function hasId(record: AuditRecord, id: string): boolean {
  const isOfRequest = ['id', 'part_of'].some((name) => valueAt(record, 'decision', name) === id);
  return isOfRequest || record['id'] === id || approvalOf(record) === id;
}

function quoteIfNeeded(value: unknown): string {
  if (typeof value === 'string' && value !== '') return makeVisible(value);
  return typeof value === 'number' ? String(value) : '-';
}

function reasonsOf(record: AuditRecord): string {
  const reasons = valueAt(record, 'decision', 'reasons');
  return Array.isArray(reasons) && reasons.length > 0 ? reasons.map(quoteIfNeeded).join(',') : '';
}

function isAltered(record: AuditRecord): boolean {
  return valueAt(record, 'result', 'altered') === true;
}

/** What was done about a finding, as a person reads it. Flags change nothing. */
const DONE: { readonly [action: string]: string } = {
  redact: 'redacted',
  neutralize: 'made inert',
  strip: 'removed',
  drop: 'left out',
  coerce: 'converted',
  withhold: 'because of',
  block: 'because of',
};

/**
 * What was changed in a message, or why it was withheld, by the findings of an event: `redacted secret:npm-token (2)`.
 * Equal ones are counted together. No control characters.
 */
export function describeFindings(record: AuditRecord, direction = 'to-client'): string {
  const findings = record['findings'];
  if (!Array.isArray(findings)) return '';
  const counts = new Map<string, number>();
  for (const found of findings) {
    if (!isObject(found) || found['direction'] !== direction) continue;
    const done = DONE[String(found['action'])];
    if (done === undefined) continue;
    const text = `${done} ${quoteIfNeeded(found['detector'])}`;
    counts.set(text, (counts.get(text) ?? 0) + Number(found['count'] ?? 1));
  }
  return [...counts].map(([text, count]) => (count === 1 ? text : `${text} (${count})`)).join(', ');
}

/** What was wrong with a request or with the answer to it, as far as the event says it. No control characters. */
export function describeCause(record: AuditRecord): string {
  const detail = valueAt(record, 'decision', 'detail');
  const listed = valueAt(record, 'args', 'violations');
  const violations = (Array.isArray(listed) ? listed : []).filter(isObject).map((violation) => {
    const { pointer, keyword } = violation;
    const place = pointer === '' ? 'arguments' : quoteIfNeeded(pointer);
    return `${place} (${quoteIfNeeded(keyword)})`;
  });
  return [...(typeof detail === 'string' ? [makeVisible(detail)] : []), ...violations].join(', ');
}

/** Counts that a row shows only if they are not zero. */
const COUNTED: ReadonlySet<string> = new Set(['suppressed', 'faults']);

function detailOf(record: AuditRecord): string {
  const detail = record['detail'];
  if (!isObject(detail)) return '';
  return Object.entries(detail)
    .filter(([name, value]) => !(COUNTED.has(name) && value === 0))
    .map(([name, value]) => `${makeVisible(name)}=${quoteIfNeeded(value)}`)
    .join(' ');
}

/** Which approval an event is of, what asks for it and who answered how; empty for other events. */
function describeApproval(record: AuditRecord): string {
  const approval = record['approval'];
  if (!isObject(approval)) return '';
  const { id, rules, party, proof, remembered } = approval;
  const person = valueAt(approval, 'person', 'sub');
  const asked = Array.isArray(rules) ? rules.map(quoteIfNeeded).join(',') : '';
  const who = person === undefined ? [] : [quoteIfNeeded(person)];
  const answered = party === undefined ? [] : [...who, `as ${quoteIfNeeded(party)} by ${quoteIfNeeded(proof)}`];
  return [quoteIfNeeded(id), asked, ...answered, ...(remembered === true ? ['remembered'] : [])].join(' ');
}

/** The result of an outcome and how long it took; a request that was refused has no result. */
function resultOf(record: AuditRecord): string {
  if (record['type'] !== 'mcp.outcome') return '';
  const status = valueAt(record, 'result', 'status');
  const total = valueAt(record, 'latency_ms', 'total');
  const result = status === 'none' || status === undefined ? [] : [quoteIfNeeded(status)];
  const took = typeof total === 'number' ? [`in ${total.toFixed(1)} ms`] : [];
  return [...result, ...took].join(' ');
}

/**
 * Prints one row for each event that is chosen, and one for a request: its outcome, or its decision where the outcome is
 * not chosen or not in the log (yet). `end` prints what is left.
 */
export function createRowPrinter(print: (row: string, instance: string | undefined) => void): {
  readonly add: (record: AuditRecord, isChosen: boolean) => void;
  readonly end: () => void;
} {
  const undecided = new Map<unknown, { readonly row: string; readonly instance: string | undefined }>();

  function release(id: unknown, isReplaced: boolean): void {
    const kept = undecided.get(id);
    undecided.delete(id);
    if (kept !== undefined && !isReplaced) print(kept.row, kept.instance);
  }

  return {
    add(record, isChosen) {
      const id = valueAt(record, 'decision', 'id');
      if (record['type'] === 'mcp.outcome') release(id, isChosen);
      if (!isChosen) return;
      const row = renderAuditRow(record);
      const instance = textAt(record, 'gateway', 'instance');
      if (record['type'] !== 'mcp.decision') return print(row, instance);
      undecided.set(id, { row, instance });
      if (undecided.size > MAX_UNDER_WAY) release(undecided.keys().next().value, false);
    },
    end() {
      for (const { row, instance } of undecided.values()) print(row, instance);
      undecided.clear();
    },
  };
}

/** Rows that are kept until those of another instance are printed. */
const MAX_GROUPED = 100_000;

/**
 * Prints rows under the name of the instance that wrote them. Those of the first are printed at once, those of all others
 * at the end, or when they are too many to be kept.
 */
export function createInstanceGroups(print: (row: string) => void): {
  readonly add: (row: string, instance: string | undefined) => void;
  readonly end: () => void;
} {
  const groups = new Map<string, string[]>();
  let current: string | undefined;
  let kept = 0;

  function begin(instance: string): void {
    current = instance;
    print(`instance ${makeVisible(instance)}`);
  }

  function end(): void {
    for (const [instance, rows] of groups) {
      begin(instance);
      for (const row of rows) print(row);
    }
    groups.clear();
    kept = 0;
  }

  return {
    add(row, instance = 'unknown') {
      if (current === undefined) begin(instance);
      if (instance === current) return print(row);
      const rows = groups.get(instance);
      if (rows === undefined) groups.set(instance, [row]);
      else rows.push(row);
      kept += 1;
      if (kept >= MAX_GROUPED) end();
    },
    end,
  };
}

/**
 * Renders one line: time, type, subject, target and decision, and of an outcome its result and what was altered in it. No
 * control characters.
 */
export function renderAuditRow(record: AuditRecord): string {
  const parts = [quoteIfNeeded(record['time']), quoteIfNeeded(record['type'])];
  if (isObject(record['actor'])) parts.push(quoteIfNeeded(valueAt(record, 'actor', 'sub')));
  const target = record['target'];
  if (isObject(target)) {
    const { upstream, method, name } = target;
    parts.push(
      [upstream, method, name]
        .filter((part) => part != null)
        .map(quoteIfNeeded)
        .join(' '),
    );
  }
  const decision = record['decision'];
  const approval = describeApproval(record);
  if (approval !== '') parts.push(approval);
  if (isObject(decision) && approval !== '') parts.push(quoteIfNeeded(decision['id']));
  else if (isObject(decision)) {
    parts.push(`${quoteIfNeeded(decision['action'])} ${reasonsOf(record) || quoteIfNeeded(decision['rule'])}`);
    parts.push(quoteIfNeeded(decision['id']));
  }
  const result = resultOf(record);
  if (result !== '') parts.push(result);
  const named = valueAt(record, 'decision', 'approval');
  if (typeof named === 'string') parts.push(`approval: ${quoteIfNeeded(named)}`);
  const cause = describeCause(record);
  if (cause !== '') parts.push(`cause: ${cause}`);
  if (isAltered(record)) parts.push(`altered: ${describeFindings(record)}`);
  const detail = detailOf(record);
  if (detail !== '') parts.push(detail);
  return parts.join('  ');
}

/** The event without members that are null or empty, and without those that `before` has with the same value. */
export function shortenRecord(record: AuditRecord, before: AuditRecord = {}): AuditRecord {
  const members = Object.entries(record).flatMap(([name, value]) => {
    const known = before[name];
    if (JSON.stringify(value) === JSON.stringify(known)) return [];
    const short = isObject(value) ? shortenRecord(value, isObject(known) ? known : {}) : value;
    const isEmpty = typeof short === 'object' && Object.keys(short ?? {}).length === 0;
    return isEmpty ? [] : [[name, short] as const];
  });
  return Object.fromEntries(members);
}

/** Renders the complete event: indented JSON without terminal control characters. */
export function renderAuditRecord(record: AuditRecord): string {
  return toVisibleJson(record);
}

/** Decisions about verified callers that are shown. */
export const MAX_RECENT = 1_000;
/** The others, apart: anybody can cause them, and they would push out the first. */
export const MAX_RECENT_ANONYMOUS = 100;
/** Of the texts of all events together. */
const MAX_RECENT_CHARACTERS = 8 * 1024 * 1024;
/** A decision and an outcome. */
const EVENTS_PER_REQUEST = 2;

export type RecentDecisions = {
  /** Keeps the event of a request. */
  note(event: EventText, isVerified: boolean): void;
  /** The decisions, completed by their outcomes as far as they have one, newest first. */
  list(): readonly AuditRecord[];
};

export function createRecentDecisions(): RecentDecisions {
  const share = MAX_RECENT_ANONYMOUS / (MAX_RECENT + MAX_RECENT_ANONYMOUS);
  const keptOf = (decisions: number, characters: number) =>
    new BoundedMap<EventText, true>(decisions * EVENTS_PER_REQUEST, characters);
  const verified = keptOf(MAX_RECENT, MAX_RECENT_CHARACTERS * (1 - share));
  const others = keptOf(MAX_RECENT_ANONYMOUS, MAX_RECENT_CHARACTERS * share);
  return {
    note(event, isVerified) {
      const length = event.before.length + event.after.length;
      (isVerified ? verified : others).set(event, true, length);
    },
    list: () =>
      [...decisionsOf(verified.keys()), ...decisionsOf(others.keys())]
        .reverse()
        .sort((one, other) => compareTexts(timeOf(other), timeOf(one))),
  };
}

/** One record for each decision, in order of the first event that is kept of it. */
function decisionsOf(events: Iterable<EventText>): readonly AuditRecord[] {
  const join = createEventJoiner();
  const byId = new Map<unknown, AuditRecord>();
  for (const { before, after } of events) {
    // The sink that writes a line adds the epoch and the chain.
    const event: unknown = JSON.parse(`${before}${after}}`, (name, value: unknown) =>
      name === 'epoch' && value === '' ? undefined : value,
    );
    if (!isObject(event)) continue;
    const { record } = join(event, before.length + after.length);
    const id = valueAt(record, 'decision', 'id');
    // The time shown is that of the decision.
    const time = byId.get(id)?.['time'] ?? record['time'];
    byId.set(id, { ...record, time });
  }
  return [...byId.values()];
}

/** RFC 3339 with equally many digits, which sorts as text. */
function timeOf({ time }: AuditRecord): string {
  return String(time);
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
