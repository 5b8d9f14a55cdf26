// Builds the line of an audit event (`sallyport.audit/1`, docs/contract.md §8) as text, with members in a fixed
// order. It decides what is recorded and never records a payload, a token or a secret: it reads named members
// of the record only. The sink adds the epoch and the chain when it writes the line, see chain.ts.
// Texts that many events share are cached: each equals what building it again would give, the caches are
// bounded, and they hold nothing chosen by a client.

import { randomUUID } from 'node:crypto';
import type { PrincipalFacts } from '../policy/principal.js';
import type { RequestRecord } from '../policy/record.js';
import {
  type MaskText,
  quoteForeign,
  quoteForeignList,
  quoteList,
  quoteNumber,
  quoteOptional,
  quoteUnescaped,
  quoteVerified,
} from '../text/escaping.js';

/** A `detail` of the gateway's own texts and numbers; `undefined` values are left out. */
function detailText(detail: Readonly<Record<string, string | number | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(detail)) {
    if (value === undefined) continue;
    const quoted = typeof value === 'number' ? quoteNumber(value) : quoteVerified(value);
    text += `${text === '' ? '' : ','}${quoteVerified(name)}:${quoted}`;
  }
  return `{${text}}`;
}

/** Additional members of a `detail`, with values from clients or upstreams. */
function foreignDetail(
  detail: Readonly<Record<string, string>> | undefined,
  mask: MaskText | undefined,
): string {
  return Object.entries(detail ?? {})
    .map(([name, value]) => `,${quoteVerified(name)}:${quoteForeign(value, mask)}`)
    .join('');
}

/** Longer lists are truncated in an event, so that a line stays small. */
const MAX_LISTED = 64;
const MAX_TARGETS = 1024;

type FileVersions = Pick<GatewayInfo, 'config' | 'policy' | 'pins'>;

/** Copies to one contiguous string: a concatenated string would be flattened again at each write. */
function flattenString(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

let lastInstance = { name: '', text: '""' };

/** The name of this run of the gateway. */
function instanceText({ instance }: GatewayInfo): string {
  if (lastInstance.name !== instance)
    lastInstance = { name: instance, text: quoteVerified(instance) };
  return lastInstance.text;
}

/** Versions change only on reload, so the last text serves nearly every event. */
const versionTexts = new WeakMap<
  FileVersions,
  { readonly program: string; readonly text: string }
>();

/** From the end of the epoch to the end of `gateway`, with the given versions or the gateway's own. */
function versionsText(gateway: GatewayInfo, decided: FileVersions = gateway): string {
  const cached = versionTexts.get(decided);
  if (cached?.program === gateway.version) return cached.text;
  const text = flattenString(
    `","version":${quoteVerified(gateway.version)},"config":${quoteVerified(decided.config)},"policy":${quoteVerified(decided.policy)},"pins":${quoteVerified(decided.pins)}}`,
  );
  versionTexts.set(decided, { program: gateway.version, text });
  return text;
}

/** A verified token is presented many times: its text is built once. */
const actorTexts = new WeakMap<PrincipalFacts, string>();

/** The actor, up to the groups that were used. */
function principalText(principal: PrincipalFacts): string {
  const cached = actorTexts.get(principal);
  if (cached !== undefined) return cached;
  const { token } = principal;
  const act = principal.actors
    .slice(0, MAX_LISTED)
    .map((actor) => `{"iss":${quoteOptional(actor.issuer)},"sub":${quoteVerified(actor.subject)}}`);
  const text = flattenString(
    `{"iss":${quoteVerified(principal.issuerUrl)},"sub":${quoteVerified(principal.subject)},"client_id":${quoteVerified(principal.client)},"act":[${act.join()}],` +
      `"token":{"id":${quoteVerified(token.id)},"aud":${quoteVerified(token.audience)},"scopes":${quoteList(principal.statedScopes ?? principal.scopes, MAX_LISTED)},"exp":${quoteNumber(token.expiresAt / 1000)},"binding":"${token.binding}"},"groups_used":`,
  );
  actorTexts.set(principal, text);
  return text;
}

type CachedTarget = {
  readonly upstream: string;
  readonly aggregate: string | undefined;
  readonly method: string | undefined;
  readonly kind: string | undefined;
  readonly name: string | undefined;
  readonly definition: string | undefined;
  readonly text: string;
};

function describesTarget(
  cached: CachedTarget,
  { upstream, aggregate, target }: RequestRecord,
): boolean {
  return (
    cached.method === target.method &&
    cached.name === target.name &&
    cached.upstream === upstream &&
    cached.aggregate === aggregate &&
    cached.kind === target.kind &&
    cached.definition === target.definition
  );
}

/** By digest of the pin. */
const targetTexts = new Map<string, CachedTarget>();

/** The target of a request for a pinned definition, up to the request id. */
function pinnedTargetText(record: RequestRecord): string {
  const { upstream, aggregate, target } = record;
  const { method, kind, name, definition, pin = '' } = target;
  const cached = targetTexts.get(pin);
  if (cached !== undefined && describesTarget(cached, record)) return cached.text;
  const aggregateText = aggregate === undefined ? '' : `,"endpoint":${quoteVerified(aggregate)}`;
  const text = flattenString(
    `{"upstream":${quoteVerified(upstream)}${aggregateText},"method":${quoteOptional(method)},"kind":${quoteOptional(kind)},"name":${quoteOptional(name)},"definition":${quoteOptional(definition)},"pin":${quoteOptional(pin)},"request_id":`,
  );
  if (targetTexts.size >= MAX_TARGETS) targetTexts.clear();
  targetTexts.set(pin, { upstream, aggregate, method, kind, name, definition, text });
  return text;
}

type CachedDecision = Pick<
  RequestRecord['decision'],
  'verdict' | 'action' | 'stage' | 'policy' | 'rule'
> & {
  readonly text: string;
};

let lastDecision: CachedDecision | undefined;

function describesDecision(cached: CachedDecision, decision: RequestRecord['decision']): boolean {
  return (
    cached.verdict === decision.verdict &&
    cached.action === decision.action &&
    cached.stage === decision.stage &&
    cached.policy === decision.policy &&
    cached.rule === decision.rule
  );
}

/** The decision, from after its id to the reasons; the last text serves most events. */
function verdictText(decision: RequestRecord['decision']): string {
  const { verdict, action, stage, policy, rule } = decision;
  const cached = lastDecision;
  if (cached !== undefined && describesDecision(cached, decision)) return cached.text;
  const text = flattenString(
    `,"verdict":"${verdict}","action":"${action}","mode":"enforce","stage":"${stage}","policy":${quoteOptional(policy)},"rule":${quoteOptional(rule)},"reasons":`,
  );
  lastDecision = { verdict, action, stage, policy, rule, text };
  return text;
}

const AUDIT_SCHEMA = 'sallyport.audit/1';

/** An event without its epoch and chain. The line is `before + epoch + after + chain`. */
export type EventText = {
  readonly before: string;
  readonly after: string;
  /** The time stated in the line, in milliseconds since the epoch. */
  readonly timeMs: number;
};

/** The instance that an event belongs to, and the versions of its configuration files. */
export type GatewayInfo = {
  readonly instance: string;
  readonly version: string;
  readonly config: string;
  readonly policy: string;
  readonly pins: string;
};

/** Events other than those of a request. `detail` of the line holds what has no member of its own. */
export type AuditEvent =
  | {
      readonly type: 'auth.failure';
      readonly upstream: string;
      readonly reason: string;
      readonly decisionId: string;
      readonly ip: string;
      /** Earlier failures that were counted and not written. */
      readonly suppressed?: number;
    }
  | {
      readonly type: 'pin.drift';
      readonly upstream: string;
      readonly kind: string;
      readonly name: string;
      readonly change: string;
      readonly before: string | undefined;
      readonly after: string | undefined;
    }
  | {
      readonly type: 'pin.approval' | 'pin.block';
      readonly upstream: string;
      readonly kind: string;
      readonly name: string;
      readonly digest: string | undefined;
      readonly by: string;
      readonly note: string | undefined;
    }
  | {
      readonly type: 'config.reload';
      readonly result: 'applied' | 'rejected';
      readonly faults: number;
    }
  | {
      readonly type: 'admin.action';
      readonly subject: string | undefined;
      readonly action: string;
      readonly status: number;
      readonly ip: string;
      /** What the action was applied to; the names are the gateway's own. */
      readonly detail?: Readonly<Record<string, string>> | undefined;
    }
  | {
      readonly type: 'lifecycle';
      readonly event: string;
      readonly detail?: Readonly<Record<string, string | number>>;
    }
  | {
      readonly type: 'checkpoint';
      readonly detail: Readonly<Record<string, string | number>>;
    };

/** The inputs of building an event other than the event itself. */
export type EventContext = {
  readonly gateway: GatewayInfo;
  readonly nowMs: number;
  /** An additional mask for text from clients and upstreams. */
  readonly mask?: MaskText;
};

/** Many events occur in one millisecond: its text is built once. */
let lastMs = Number.NaN;
let lastTime = '';

function timeText(nowMs: number): string {
  if (nowMs !== lastMs) {
    lastTime = new Date(nowMs).toISOString();
    lastMs = nowMs;
  }
  return lastTime;
}

function eventHead(type: string, { gateway, nowMs }: EventContext): string {
  return `{"schema":"${AUDIT_SCHEMA}","id":"${randomUUID()}","time":"${timeText(nowMs)}","type":"${type}","gateway":{"instance":${instanceText(gateway)},"epoch":"`;
}

function actorText(principal: PrincipalFacts | undefined, groups: readonly string[]): string {
  return principal === undefined
    ? 'null'
    : `${principalText(principal)}${quoteList(groups, MAX_LISTED)}}`;
}

function clientText({ client }: RequestRecord, mask: MaskText | undefined): string {
  const self = client.selfReported;
  const selfReported =
    self === undefined
      ? 'null'
      : `{"name":${quoteForeign(self.name, mask)},"version":${quoteForeign(self.version, mask)}}`;
  return `{"ip":${quoteForeign(client.ip)},"self_reported":${selfReported},"era":${quoteOptional(client.era)},"session":${quoteOptional(client.session)}}`;
}

function requestId(id: string | number | undefined, mask: MaskText | undefined): string {
  return typeof id === 'string' ? quoteForeign(id, mask) : quoteNumber(id);
}

function foreign(text: string | undefined, mask: MaskText | undefined): string {
  return text === undefined ? 'null' : quoteForeign(text, mask);
}

function targetText(record: RequestRecord, mask: MaskText | undefined): string {
  const { upstream, aggregate, target } = record;
  const id = requestId(target.requestId, mask);
  // The name of a pinned definition was reviewed; any other name is text from the client.
  if (target.pin !== undefined && target.method !== undefined)
    return `${pinnedTargetText(record)}${id}}`;
  const name = target.pin === undefined ? foreign(target.name, mask) : quoteOptional(target.name);
  const method =
    target.method === undefined
      ? foreign(target.receivedMethod, mask)
      : quoteVerified(target.method);
  const aggregateText = aggregate === undefined ? '' : `,"endpoint":${quoteVerified(aggregate)}`;
  return `{"upstream":${quoteVerified(upstream)}${aggregateText},"method":${method},"kind":${quoteOptional(target.kind)},"name":${name},"definition":${quoteOptional(target.definition)},"pin":${quoteOptional(target.pin)},"request_id":${id}}`;
}

function argsText({ args }: RequestRecord, mask: MaskText | undefined): string {
  if (args === undefined) return 'null';
  const captured = Object.entries(args.captured)
    .slice(0, MAX_LISTED)
    .map(([pointer, value]) => `${quoteVerified(pointer)}:${quoteForeign(value, mask)}`);
  return `{"digest":${quoteUnescaped(args.digest)},"bytes":${quoteNumber(args.bytes)},"keys":${quoteForeignList(args.keys, MAX_LISTED, mask)},"captured":{${captured.join()}}}`;
}

/** Target and arguments, known at the decision: the outcome repeats the same text. */
function targetAndArgsText(record: RequestRecord, mask: MaskText | undefined): string {
  record.requestText ??= `,"target":${targetText(record, mask)},"args":${argsText(record, mask)}`;
  return record.requestText;
}

function decisionText(record: RequestRecord): string {
  const { id, decision } = record;
  return `{"id":${quoteUnescaped(id)}${verdictText(decision)}${quoteList(decision.reasons, MAX_LISTED)},"shadow":[]}`;
}

function findingsText({ findings }: RequestRecord, mask: MaskText | undefined): string {
  if (findings.length === 0) return '[]';
  const texts = findings
    .slice(0, MAX_LISTED)
    .map(
      (found) =>
        `{"detector":${quoteVerified(found.detector)},"direction":"${found.direction}","path":${quoteForeign(found.path, mask)},"count":${quoteNumber(found.count)},"action":"${found.action}"}`,
    );
  return `[${texts.join()}]`;
}

function resultText({ result }: RequestRecord): string {
  const list =
    result.list === undefined
      ? 'null'
      : `{"advertised":${quoteNumber(result.list.advertised)},"visible":${quoteNumber(result.list.visible)}}`;
  return `{"status":"${result.status}","http":${quoteNumber(result.http)},"rpc_code":${quoteNumber(result.rpcCode)},"bytes":${quoteNumber(result.bytes)},"digest":${result.digest === undefined ? 'null' : quoteUnescaped(result.digest)},"list":${list}}`;
}

function latencyText({ latency }: RequestRecord, totalMs: number | undefined): string {
  const upstream = totalMs === undefined ? undefined : latency.upstream;
  return `{"total":${quoteNumber(totalMs)},"auth":${quoteNumber(latency.auth)},"policy":${quoteNumber(latency.policy)},"inspect":${quoteNumber(latency.inspect)},"upstream":${quoteNumber(upstream)}}`;
}

function traceText({ trace }: RequestRecord): string {
  if (trace === undefined) return 'null';
  return `{"trace_id":${quoteVerified(trace.traceId)},"span_id":${quoteVerified(trace.spanId)}}`;
}

function requestText(
  type: 'mcp.decision' | 'mcp.outcome',
  record: RequestRecord,
  context: EventContext,
  totalMs: number | undefined,
): EventText {
  const { mask } = context;
  const result = type === 'mcp.decision' ? 'null' : resultText(record);
  return {
    before: eventHead(type, context),
    after:
      `${versionsText(context.gateway, record.versions)},"actor":${actorText(record.principal, record.groupsUsed ?? [])}` +
      `,"client":${clientText(record, mask)}${targetAndArgsText(record, mask)}` +
      `,"decision":${decisionText(record)},"findings":${findingsText(record, mask)},"result":${result}` +
      `,"latency_ms":${latencyText(record, totalMs)},"trace":${traceText(record)}`,
    timeMs: context.nowMs,
  };
}

/** The event written before anything is forwarded. Its result and upstream latency are `null`. */
export function decisionEvent(record: RequestRecord, context: EventContext): EventText {
  return requestText('mcp.decision', record, context, undefined);
}

/** The event written once at the end of a request, however it ended. `totalMs` is in milliseconds. */
export function outcomeEvent(
  record: RequestRecord,
  context: EventContext,
  totalMs: number,
): EventText {
  return requestText('mcp.outcome', record, context, totalMs);
}

function pinTarget(
  event: { readonly upstream: string; readonly kind: string; readonly name: string },
  definition: string | undefined,
  pin: string | undefined,
  mask: MaskText | undefined,
): string {
  return `"target":{"upstream":${quoteVerified(event.upstream)},"kind":${quoteVerified(event.kind)},"name":${quoteForeign(event.name, mask)},"definition":${quoteOptional(definition)},"pin":${quoteOptional(pin)}}`;
}

function eventMembers(event: AuditEvent, mask: MaskText | undefined): string {
  switch (event.type) {
    case 'auth.failure':
      return `"client":{"ip":${quoteForeign(event.ip)}},"target":{"upstream":${quoteVerified(event.upstream)}},"decision":{"id":${quoteVerified(event.decisionId)},"verdict":"deny","action":"refused","mode":"enforce","stage":"authn","reasons":[${quoteVerified(event.reason)}]},"detail":${detailText({ suppressed: event.suppressed ?? 0 })}`;
    case 'pin.drift':
      return `${pinTarget(event, event.after, event.before, mask)},"detail":${detailText({ change: event.change })}`;
    case 'pin.approval':
    case 'pin.block':
      return `"actor":{"sub":${quoteForeign(event.by, mask)}},${pinTarget(event, event.digest, undefined, mask)},"detail":{"note":${foreign(event.note, mask)}}`;
    case 'config.reload':
      return `"detail":${detailText({ result: event.result, faults: event.faults })}`;
    case 'admin.action':
      return `"actor":{"sub":${quoteOptional(event.subject)}},"client":{"ip":${quoteForeign(event.ip)}},"detail":{"action":${quoteForeign(event.action, mask)},"status":${quoteNumber(event.status)}${foreignDetail(event.detail, mask)}}`;
    case 'lifecycle':
      return `"detail":${detailText({ event: event.event, ...event.detail })}`;
    case 'checkpoint':
      return `"detail":${detailText(event.detail)}`;
  }
}

/** An event other than those of a request. Members that do not apply are left out. */
export function buildEvent(event: AuditEvent, context: EventContext): EventText {
  return {
    before: eventHead(event.type, context),
    after: `${versionsText(context.gateway)},${eventMembers(event, context.mask)}`,
    timeMs: context.nowMs,
  };
}
