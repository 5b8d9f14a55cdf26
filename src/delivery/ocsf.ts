// An audit line as an event of the Open Cybersecurity Schema Framework: API Activity (class 6003) for every type, so that
// one query of a log store finds all of them. The line itself is kept in `raw_data`, byte for byte, so that the chain can
// still be verified. Pure. The rows of the table are the mapping and the page docs/reference/ocsf.md.
// Facts: schema.ocsf.io 1.6.0, class api_activity, profiles security_control and trace.

import { isIP } from 'node:net';
import { type AuditRecord, valueAt } from '../audit/chain.js';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import type { Line } from './delivery.js';

export const OCSF_VERSION = '1.6.0';
const CLASS_UID = 6003;
const CATEGORY_UID = 6;
const ACTIVITIES_PER_CLASS = 100;

type Row = {
  /** Name of the attribute, with dots between objects. */
  readonly attribute: string;
  /** What it has, for the page. */
  readonly from: string;
  /** `undefined`: the event has no such attribute. */
  readonly value: (record: AuditRecord) => Json | undefined;
};

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A row that copies a member. */
function copied(attribute: string, ...path: readonly string[]): Row {
  return { attribute, from: `\`${path.join('.')}\``, value: (record) => text(valueAt(record, ...path)) };
}

/** A row that is the same in every event. */
function fixed(attribute: string, value: Json): Row {
  return { attribute, from: `always \`${JSON.stringify(value)}\``, value: () => value };
}

function computed(attribute: string, from: string, value: Row['value']): Row {
  return { attribute, from, value };
}

const OTHER = 99;
const READ = 2;
const READING: ReadonlySet<unknown> = new Set(['resources/read', 'prompts/get']);

function activityOf(record: AuditRecord): number {
  const method = valueAt(record, 'target', 'method');
  return READING.has(method) || String(method).endsWith('/list') ? READ : OTHER;
}

/** The method of a request, and the type of any other event. */
function operationOf(record: AuditRecord): string {
  return text(valueAt(record, 'target', 'method')) ?? text(record['type']) ?? 'unknown';
}

const INFORMATIONAL = 1;
const MEDIUM = 3;
const HIGH = 4;
const SEVERITIES: Readonly<Record<string, number>> = { 'pin.drift': HIGH, 'pin.finding': HIGH, 'auth.failure': MEDIUM };

/** OCSF's number for how much an event matters: 1 informational, 3 medium, 4 high. */
export function severityOf(record: AuditRecord): number {
  const known = SEVERITIES[String(record['type'])];
  return known ?? (isRefused(record) ? MEDIUM : INFORMATIONAL);
}

const REFUSED_TYPES: ReadonlySet<unknown> = new Set(['auth.failure', 'approval.denied']);
const REFUSED_ACTIONS: ReadonlySet<unknown> = new Set(['refused', 'withheld']);
const FIRST_HTTP_ERROR = 400;

/** A request that did not pass, or whose result did not; a change or an access that was not admitted. */
function isRefused(record: AuditRecord): boolean {
  return (
    valueAt(record, 'decision', 'verdict') === 'deny' ||
    REFUSED_ACTIONS.has(valueAt(record, 'decision', 'action')) ||
    REFUSED_TYPES.has(record['type']) ||
    valueAt(record, 'detail', 'result') === 'rejected' ||
    (record['type'] === 'admin.action' && Number(valueAt(record, 'detail', 'status')) >= FIRST_HTTP_ERROR)
  );
}

function hasDecision(record: AuditRecord): boolean {
  return isObject(record['decision']) && record['approval'] === undefined;
}

const FAILED: ReadonlySet<unknown> = new Set(['error']);

function isFailed(record: AuditRecord): boolean {
  return isRefused(record) || FAILED.has(valueAt(record, 'result', 'status'));
}

function reasonsOf(record: AuditRecord): string | undefined {
  const reasons = valueAt(record, 'decision', 'reasons');
  return Array.isArray(reasons) ? text(reasons.join(', ')) : undefined;
}

/** Denied, modified (a detector has changed what the client got) or allowed. */
function actionOf(record: AuditRecord): number | undefined {
  if (!hasDecision(record)) return undefined;
  if (isRefused(record)) return 2;
  return valueAt(record, 'result', 'altered') === true ? 4 : 1;
}

function timeOf(record: AuditRecord): number {
  const ms = Date.parse(String(record['time']));
  return Number.isNaN(ms) ? 0 : ms;
}

function numberAt(record: AuditRecord, ...path: readonly string[]): number | undefined {
  const value = valueAt(record, ...path);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function jsonAt(record: AuditRecord, ...path: readonly string[]): Json | undefined {
  const value = valueAt(record, ...path);
  if (value === undefined || value === null) return undefined;
  const isEmpty = typeof value === 'object' && Object.keys(value).length === 0;
  return isEmpty ? undefined : (value as Json);
}

function addressOf(record: AuditRecord): string | undefined {
  const ip = text(valueAt(record, 'client', 'ip'));
  return ip !== undefined && isIP(ip) !== 0 ? ip : undefined;
}

function groupsOf(record: AuditRecord): Json | undefined {
  const groups = valueAt(record, 'actor', 'groups_used');
  if (!Array.isArray(groups) || groups.length === 0) return undefined;
  return groups.map((name) => ({ name: String(name) }));
}

function resourcesOf(record: AuditRecord): Json | undefined {
  const name = text(valueAt(record, 'target', 'name'));
  const type = text(valueAt(record, 'target', 'kind'));
  return name === undefined ? undefined : [{ name, ...(type !== undefined && { type }) }];
}

/** The mapping, in the order of the page. */
export const OCSF_ROWS: readonly Row[] = [
  fixed('category_uid', CATEGORY_UID),
  fixed('category_name', 'Application Activity'),
  fixed('class_uid', CLASS_UID),
  fixed('class_name', 'API Activity'),
  computed('activity_id', '2 (Read) for lists, `resources/read` and `prompts/get`, otherwise 99 (Other)', activityOf),
  computed('activity_name', 'what `api.operation` has, or `Read`', (record) =>
    activityOf(record) === READ ? 'Read' : operationOf(record),
  ),
  computed('type_uid', 'from class and activity', (record) => CLASS_UID * ACTIVITIES_PER_CLASS + activityOf(record)),
  computed('time', '`time` in milliseconds', timeOf),
  computed(
    'severity_id',
    '4 (High) of `pin.drift` and `pin.finding`, 3 (Medium) of refusals and `auth.failure`, otherwise 1 (Informational)',
    severityOf,
  ),
  computed(
    'status_id',
    '2 (Failure) of what was refused or withheld and of failed calls, otherwise 1 (Success)',
    (record) => (isFailed(record) ? 2 : 1),
  ),
  computed('status_code', 'the first of `decision.reasons`', (record) => {
    const reasons = valueAt(record, 'decision', 'reasons');
    return Array.isArray(reasons) ? text(reasons[0]) : undefined;
  }),
  computed(
    'status_detail',
    '`decision.detail`, otherwise `decision.reasons`',
    (record) => text(valueAt(record, 'decision', 'detail')) ?? reasonsOf(record),
  ),
  computed(
    'action_id',
    '2 (Denied) of what was refused or withheld, 4 (Modified) where a detector changed the result, 1 (Allowed)',
    actionOf,
  ),
  computed('disposition_id', '2 (Blocked) or 1 (Allowed)', (record) => {
    const action = actionOf(record);
    return action === undefined || action === 2 ? action : 1;
  }),
  computed('duration', '`latency_ms.total`, rounded', (record) => {
    const total = numberAt(record, 'latency_ms', 'total');
    return total === undefined ? undefined : Math.round(total);
  }),
  copied('actor.user.uid', 'actor', 'sub'),
  computed('actor.user.groups', 'names in `actor.groups_used`', groupsOf),
  copied('actor.session.issuer', 'actor', 'iss'),
  computed('actor.session.uid', '`client.session`; with an issuer and no session, `actor.token.id`', (record) => {
    const session = text(valueAt(record, 'client', 'session')) ?? text(valueAt(record, 'actor', 'token', 'id'));
    return text(valueAt(record, 'actor', 'iss')) === undefined ? undefined : session;
  }),
  computed(
    'actor.app_uid',
    '`actor.client_id`, otherwise `sallyport`',
    (record) => text(valueAt(record, 'actor', 'client_id')) ?? 'sallyport',
  ),
  copied('actor.app_name', 'client', 'self_reported', 'name'),
  computed('api.operation', '`target.method`, otherwise `type`', operationOf),
  copied('api.request.uid', 'decision', 'id'),
  copied('api.service.name', 'target', 'upstream'),
  computed('api.response.code', '`result.http`', (record) => numberAt(record, 'result', 'http')),
  computed('api.response.error', '`decision.reasons`', reasonsOf),
  computed('resources', '`target.name` with `target.kind` as its type', resourcesOf),
  computed('src_endpoint.ip', '`client.ip`', addressOf),
  computed('src_endpoint.svc_name', '`sallyport` where there is no address', (record) =>
    addressOf(record) === undefined ? 'sallyport' : undefined,
  ),
  copied('dst_endpoint.svc_name', 'target', 'upstream'),
  copied('policy.name', 'decision', 'policy'),
  copied('firewall_rule.name', 'decision', 'rule'),
  copied('trace.uid', 'trace', 'trace_id'),
  fixed('metadata.version', OCSF_VERSION),
  fixed('metadata.product.name', 'Sallyport'),
  fixed('metadata.product.vendor_name', 'Sallyport'),
  copied('metadata.product.version', 'gateway', 'version'),
  copied('metadata.uid', 'id'),
  copied('metadata.correlation_uid', 'decision', 'id'),
  copied('metadata.event_code', 'type'),
  copied('metadata.log_name', 'schema'),
  copied('metadata.original_time', 'time'),
  computed('metadata.sequence', '`chain.seq`', (record) => numberAt(record, 'chain', 'seq')),
  computed('metadata.profiles', 'the profiles used', (record) =>
    isObject(record['trace']) ? ['security_control', 'trace'] : ['security_control'],
  ),
  computed('unmapped.delegation', '`actor.act`, whole: `iss` and `sub` of everybody who acts for the user', (record) =>
    jsonAt(record, 'actor', 'act'),
  ),
  computed('unmapped.pin', '`target.pin`', (record) => jsonAt(record, 'target', 'pin')),
  computed('unmapped.findings', '`findings`', (record) => jsonAt(record, 'findings')),
  computed(
    'unmapped.approval',
    '`approval`, otherwise `decision.approval`',
    (record) => jsonAt(record, 'approval') ?? jsonAt(record, 'decision', 'approval'),
  ),
  computed('unmapped.detail', '`detail`', (record) => jsonAt(record, 'detail')),
  computed('unmapped.epoch', '`gateway.epoch`', (record) => jsonAt(record, 'gateway', 'epoch')),
];

type Tree = { [name: string]: Json };

function setAt(tree: Tree, path: readonly string[], value: Json): void {
  const [name = '', ...rest] = path;
  if (rest.length === 0) {
    tree[name] = value;
    return;
  }
  const inner = (tree[name] ?? {}) as Tree;
  tree[name] = inner;
  setAt(inner, rest, value);
}

const PATHS = OCSF_ROWS.map(({ attribute, value }) => ({ path: attribute.split('.'), value }));

/** The event of a line. A line that is no record is an event that says little more than the line. */
export function ocsfEvent({ text: line, record = {} }: Line): Json {
  const event: Tree = {};
  for (const { path, value } of PATHS) {
    const found = value(record);
    if (found !== undefined) setAt(event, path, found);
  }
  event['raw_data'] = line;
  return event;
}
