// Builds the line of an audit event (`sallyport.audit/2`, docs/reference/audit.md) as text, with members in a fixed
// order. It decides what is recorded and never records a payload, a token or a secret: it reads named members of the
// record only. The sink adds the epoch and the chain when it writes the line, see chain.ts. A line of a request leaves
// out what is null or empty, and an outcome what its decision says; query.ts completes them. Texts that many events
// share are cached: each equals what building it again would give, the caches are bounded, and they hold nothing chosen
// by a client.

import { randomUUID } from 'node:crypto';
import { type Approval, type ApprovalAnswer, type ApprovalParty, openParties } from '../policy/approval.js';
import type { PrincipalFacts } from '../policy/principal.js';
import type { Finding, RefusedToken, RequestRecord } from '../policy/record.js';
import type { ApprovalEvent, FileHashes, SecurityEvent } from '../policy/security-events.js';
import { recordedId } from '../protocol/json/request-ids.js';
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
import { firstOf } from '../text/wording.js';

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

/** Of a `config.reload`: the hashes of what is in force and of the files, and what waits for a restart. */
function reloadDetail(event: Extract<AuditEvent, { type: 'config.reload' }>): string {
  const listOf = (names: readonly string[] = []) => (names.length === 0 ? undefined : firstOf(names, MAX_LISTED));
  const { inForce, files, pending, leftOut, closed } = event.versions ?? {};
  return detailText({
    ...{ result: event.result, faults: event.faults, ...inForce },
    ...{ files_config: files?.config, files_policy: files?.policy, files_pins: files?.pins },
    ...{ pending: listOf(pending), left_out: listOf(leftOut), closed: listOf(closed) },
  });
}

/** Additional members of a `detail`, with values from clients or upstreams. */
function foreignDetail(detail: Readonly<Record<string, string>> | undefined, mask: MaskText | undefined): string {
  return Object.entries(detail ?? {})
    .map(([name, value]) => `,${quoteVerified(name)}:${quoteForeign(value, mask)}`)
    .join('');
}

/** `,"name":"text"` of verified text, or nothing. */
function member(name: string, text: string | undefined): string {
  return text === undefined ? '' : `,"${name}":${quoteVerified(text)}`;
}

/** Longer lists are truncated in an event, so that a line stays small. */
const MAX_LISTED = 64;

/** A request names the files that it was decided under by as many digits of their hashes. */
const SHORT_HASH_DIGITS = 16;

/** Copies to one contiguous string: a concatenated string would be flattened again at each write. */
function flattenString(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Versions change only on reload, so the last text serves nearly every request. */
const versionTexts = new WeakMap<Versions, string>();

/** From the end of the epoch to the end of `gateway`. */
function versionsText(decided: Versions): string {
  const cached = versionTexts.get(decided);
  if (cached !== undefined) return cached;
  const short = (hash: string): string => quoteVerified(hash.slice(0, SHORT_HASH_DIGITS));
  const text = flattenString(
    `","config":${short(decided.config)},"policy":${short(decided.policy)},"pins":${short(decided.pins)}}`,
  );
  versionTexts.set(decided, text);
  return text;
}

/** A text of an outcome, and that of its decision, which goes on from there. */
type SharedText = { readonly outcome: string; readonly decision: string };

/** A verified token is presented many times: its texts are built once. */
const actorTexts = new WeakMap<PrincipalFacts, SharedText>();

/** The actor without its end: of a decision, up to the groups that were used. */
function principalText(principal: PrincipalFacts): SharedText {
  const cached = actorTexts.get(principal);
  if (cached !== undefined) return cached;
  const { token, actors } = principal;
  const scopes = principal.statedScopes ?? principal.scopes;
  const act = actors
    .slice(0, MAX_LISTED)
    .map((actor) => `{"iss":${quoteOptional(actor.issuer)},"sub":${quoteVerified(actor.subject)}}`);
  const outcome = `,"actor":{"iss":${quoteVerified(principal.issuerUrl)},"sub":${quoteVerified(principal.subject)},"client_id":${quoteVerified(principal.client)}`;
  const decision =
    (act.length === 0 ? '' : `,"act":[${act.join()}]`) +
    `,"token":{"id":${quoteVerified(token.id)},"aud":${quoteVerified(token.audience)}` +
    (scopes.length === 0 ? '' : `,"scopes":${quoteList(scopes, MAX_LISTED)}`) +
    `,"exp":${quoteNumber(token.expiresAt / 1000)}` +
    (token.binding === 'none' ? '}' : `,"binding":"${token.binding}"}`);
  const texts = { outcome: flattenString(outcome), decision: flattenString(outcome + decision) };
  actorTexts.set(principal, texts);
  return texts;
}

function foreignMember(name: string, text: string | undefined, mask: MaskText | undefined): string {
  return text === undefined ? '' : `,"${name}":${quoteForeign(text, mask)}`;
}

/** The actions of findings that leave a message other than it came. */
const ALTERING: ReadonlySet<Finding['action']> = new Set([...(['redact', 'neutralize', 'strip', 'drop'] as const)]);

const AUDIT_SCHEMA = 'sallyport.audit/2';

/** An event without its epoch and chain. The line is `before + epoch + after + chain`. */
export type EventText = {
  readonly before: string;
  readonly after: string;
  /** The time stated in the line, in milliseconds since the epoch. */
  readonly timeMs: number;
};

/** Hashes of the configuration files in force. */
export type Versions = FileHashes;

/** The gateway that an event belongs to, and the versions of its configuration files. */
export type GatewayInfo = Versions & {
  /** Stays the same when the gateway is restarted. */
  readonly instance: string;
  /** Absent in lines of earlier versions, where `instance` names the run. */
  readonly host?: string;
  readonly run?: string;
  readonly version: string;
};

/** Events other than those of a request. `detail` of the line holds what has no member of its own. */
export type AuditEvent =
  | SecurityEvent
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
  readonly mask?: MaskText | undefined;
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

function eventHead(type: string, { nowMs }: EventContext): string {
  return `{"schema":"${AUDIT_SCHEMA}","id":"${randomUUID()}","time":"${timeText(nowMs)}","type":"${type}","gateway":{`;
}

function requestHead(type: 'mcp.decision' | 'mcp.outcome', context: EventContext): string {
  return `${eventHead(type, context)}"epoch":"`;
}

function actorText({ principal, groupsUsed = [] }: RequestRecord): string {
  if (principal === undefined) return '';
  const groups = groupsUsed.length === 0 ? '' : `,"groups_used":${quoteList(groupsUsed, MAX_LISTED)}`;
  return `${principalText(principal).decision}${groups}}`;
}

function clientText({ client }: RequestRecord, mask: MaskText | undefined): string {
  const self = client.selfReported;
  const selfReported =
    self === undefined
      ? ''
      : `,"self_reported":{"name":${quoteForeign(self.name, mask)},"version":${quoteForeign(self.version, mask)}}`;
  return `,"client":{"ip":${quoteForeign(client.ip)}${selfReported}${member('era', client.era)}${member('session', client.session)}}`;
}

/** The target without its end, as both events of a request have it. */
function targetStart(record: RequestRecord, mask: MaskText | undefined): string {
  const { upstream, aggregate, target } = record;
  const { method, receivedMethod, name, shownAs, pin } = target;
  const methodText = method === undefined ? foreignMember('method', receivedMethod, mask) : member('method', method);
  // The name of a pinned definition was reviewed; any other name is text from the client.
  const nameText = pin === undefined ? foreignMember('name', name, mask) : member('name', name);
  const names = shownAs === undefined ? nameText : `${nameText}${member('shown_as', shownAs)}`;
  return `,"target":{"upstream":${quoteVerified(upstream)}${member('endpoint', aggregate)}${methodText}${names}`;
}

function targetText(record: RequestRecord, mask: MaskText | undefined): string {
  const { kind, definition, pin } = record.target;
  const requestId = recordedId(record.target.requestId);
  // Without this member, the definition was seen as it is pinned.
  const seen = definition === pin ? '' : `,"definition":${quoteOptional(definition)}`;
  const id =
    typeof requestId === 'number'
      ? `,"request_id":${quoteNumber(requestId)}`
      : foreignMember('request_id', requestId, mask);
  const { uris } = record.target;
  const named = uris.length === 0 ? '' : `,"uris":${quoteForeignList(uris, MAX_LISTED, mask)}`;
  return `${targetStart(record, mask)}${member('kind', kind)}${seen}${member('pin', pin)}${id}${named}}`;
}

function argsText({ args }: RequestRecord, mask: MaskText | undefined): string {
  if (args === undefined) return '';
  const keys = args.keys.length === 0 ? '' : `,"keys":${quoteForeignList(args.keys, MAX_LISTED, mask)}`;
  const captured = Object.entries(args.captured)
    .slice(0, MAX_LISTED)
    .map(([pointer, value]) => `${quoteVerified(pointer)}:${quoteForeign(value, mask)}`);
  const violations = (args.violations ?? []).map(
    ({ pointer, keyword }) => `{"pointer":${quoteForeign(pointer, mask)},"keyword":${quoteVerified(keyword)}}`,
  );
  const refused = violations.length === 0 ? '' : `,"violations":[${violations.join()}]`;
  const capturedText = captured.length === 0 ? '' : `,"captured":{${captured.join()}}`;
  return `,"args":{"digest":${quoteUnescaped(args.digest)},"bytes":${quoteNumber(args.bytes)}${keys}${refused}${capturedText}}`;
}

/** The decision; its policy and rule stand in one line alone. What was forwarded says neither action nor stage. */
function decisionText({ id, decision }: RequestRecord, rule: string, shadow = '', mask?: MaskText): string {
  const { verdict, action, stage, reasons, detail } = decision;
  const end = action === 'forwarded' ? '' : `,"action":"${action}","stage":"${stage}"`;
  const why = reasons.length === 0 ? '' : `,"reasons":${quoteList(reasons, MAX_LISTED)}`;
  const detailed = detail === undefined ? '' : `,"detail":${quoteForeign(detail, mask)}`;
  return `,"decision":{"id":${quoteUnescaped(id)},"verdict":"${verdict}"${end}${rule}${why}${detailed}${shadow}}`;
}

function findingsText({ findings }: RequestRecord, mask: MaskText | undefined): string {
  if (findings.length === 0) return '';
  const texts = findings
    .slice(0, MAX_LISTED)
    .map(
      (found) =>
        `{"detector":${quoteVerified(found.detector)},"direction":"${found.direction}","path":${quoteForeign(found.path, mask)},"count":${quoteNumber(found.count)},"action":"${found.action}"}`,
    );
  return `,"findings":[${texts.join()}]`;
}

/** Whether what the client got differs from what the upstream sent, because of what a detector found. */
function isAltered({ decision, findings }: RequestRecord): boolean {
  return (
    decision.action === 'forwarded' &&
    findings.some(({ direction, action }) => direction === 'to-client' && ALTERING.has(action))
  );
}

function resultText(record: RequestRecord): string {
  const { status, http, rpcCode, bytes, digest, list } = record.result;
  return (
    `,"result":{"status":"${status}","http":${quoteNumber(http)}` +
    (rpcCode === undefined ? '' : `,"rpc_code":${quoteNumber(rpcCode)}`) +
    `,"bytes":${quoteNumber(bytes)}` +
    (digest === undefined ? '' : `,"digest":${quoteUnescaped(digest)}`) +
    (isAltered(record) ? ',"altered":true' : '') +
    (list === undefined
      ? '}'
      : `,"list":{"advertised":${quoteNumber(list.advertised)},"visible":${quoteNumber(list.visible)}}}`)
  );
}

function latencyText({ latency }: RequestRecord, totalMs: number): string {
  const { auth, policy, inspect, upstream } = latency;
  return `,"latency_ms":{"total":${quoteNumber(totalMs)},"auth":${quoteNumber(auth)},"policy":${quoteNumber(policy)},"inspect":${quoteNumber(inspect)},"upstream":${quoteNumber(upstream)}}`;
}

/**
 * Of a refusal at the edge, how many before it were only counted. In no outcome, even if a sink had no room for the decision:
 * another has the number already, or the next event that is written says it.
 */
function suppressedText({ suppressed = 0 }: RequestRecord): string {
  return suppressed === 0 ? '' : `,"detail":${detailText({ suppressed })}`;
}

function traceText({ trace }: RequestRecord): string {
  if (trace === undefined) return '';
  return `,"trace":{"trace_id":${quoteVerified(trace.traceId)},"span_id":${quoteVerified(trace.spanId)}}`;
}

/** What policies that are not enforced would have decided. */
function shadowText({ decision: { shadow } }: RequestRecord): string {
  const texts = shadow
    .slice(0, MAX_LISTED)
    .map(
      ({ policy, rule, verdict, reason }) =>
        `{"verdict":"${verdict}"${member('policy', policy)}${member('rule', rule)}${member('reason', reason)}}`,
    );
  return `,"shadow":[${texts.join()}]`;
}

/** Everything that is known of a request when it is decided. */
function decidedText(record: RequestRecord, { gateway, mask }: EventContext): string {
  const { policy, rule, mode, causes, approval, shadow } = record.decision;
  const modeText = mode === 'enforce' ? '' : `,"mode":"${mode}"`;
  const causesText = causes === undefined ? '' : `,"causes":${quoteList(causes, MAX_LISTED)}`;
  const approvalText = approval === undefined ? '' : `,"approval":${quoteVerified(approval)}`;
  const partText = member('part_of', record.partOf);
  const ruleText = partText + modeText + member('policy', policy) + member('rule', rule) + causesText + approvalText;
  return (
    `${versionsText(record.versions ?? gateway)}${actorText(record)}${clientText(record, mask)}` +
    `${targetText(record, mask)}${argsText(record, mask)}` +
    `${decisionText(record, ruleText, shadow.length === 0 ? '' : shadowText(record), mask)}` +
    `${findingsText(record, mask)}${traceText(record)}`
  );
}

/** What an outcome says besides its result; everything else stands in the line of its decision. */
function endedText(record: RequestRecord, { mask }: EventContext): string {
  const { principal, client, decidedSession } = record;
  const actor = principal === undefined ? '' : `${principalText(principal).outcome}}`;
  // A session that the request itself has opened.
  const session =
    client.session === undefined || client.session === decidedSession
      ? ''
      : `,"client":{"session":${quoteVerified(client.session)}}`;
  return (
    `"}${actor}${session}${targetStart(record, mask)}}` +
    `${decisionText(record, '', '', mask)}${findingsText(record, mask)}`
  );
}

/** The event written before anything is forwarded. */
export function decisionEvent(record: RequestRecord, context: EventContext): EventText {
  record.decidedSession = record.client.session;
  return {
    before: requestHead('mcp.decision', context),
    after: `${decidedText(record, context)}${suppressedText(record)}`,
    timeMs: context.nowMs,
  };
}

/** The event written once at the end of a request, however it ended. `totalMs` is in milliseconds. */
export function outcomeEvent(record: RequestRecord, context: EventContext, totalMs: number): EventText {
  // A decision that could not be written is in no other line.
  const isAlone = record.isDecisionLost === true || record.decision.reasons.includes('audit-unavailable');
  const request = isAlone ? decidedText(record, context) : endedText(record, context);
  return {
    before: requestHead('mcp.outcome', context),
    after: `${request}${resultText(record)}${latencyText(record, totalMs)}`,
    timeMs: context.nowMs,
  };
}

function pinTarget(
  event: { readonly upstream: string; readonly kind: string; readonly name: string },
  definition: string | undefined,
  pin: string | undefined,
  mask: MaskText | undefined,
): string {
  return `"target":{"upstream":${quoteVerified(event.upstream)},"kind":${quoteVerified(event.kind)},"name":${quoteForeign(event.name, mask)},"definition":${quoteOptional(definition)},"pin":${quoteOptional(pin)}}`;
}

const MAX_EXPECTED = 512;

/** What was expected of a token and what it said of itself, which is foreign text. */
function refusedTokenText(token: RefusedToken | undefined, mask: MaskText | undefined): string {
  if (token === undefined) return '';
  const { expected, presented } = token;
  return (['issuer', 'audience', 'type', 'lifetime'] as const)
    .map((name) => {
      const wanted = expected[name];
      const found = presented[name];
      const wantedText =
        wanted === undefined ? '' : `,"expected_${name}":${quoteVerified(wanted.slice(0, MAX_EXPECTED))}`;
      return found === undefined ? wantedText : `${wantedText},"presented_${name}":${quoteForeign(found, mask)}`;
    })
    .join('');
}

function eventMembers(event: AuditEvent, mask: MaskText | undefined, suppressed: number): string {
  switch (event.type) {
    case 'auth.failure':
      return `"client":{"ip":${quoteForeign(event.ip)}},"target":{"upstream":${quoteVerified(event.upstream)}},"decision":{"id":${quoteVerified(event.decisionId)},"verdict":"deny","action":"refused","mode":"enforce","stage":"authn","reasons":[${quoteVerified(event.reason)}]},"detail":{"suppressed":${quoteNumber(suppressed)}${refusedTokenText(event.refusedToken, mask)}}`;
    case 'pin.drift':
      return `${pinTarget(event, event.after, event.before, mask)},"detail":${detailText({ change: event.change, suppressed })}`;
    case 'pin.approval':
    case 'pin.block':
      return `"actor":{"sub":${event.by === undefined ? 'null' : quoteForeign(event.by, mask)}},${pinTarget(event, event.digest, undefined, mask)},"detail":{"note":${event.note === undefined ? 'null' : quoteForeign(event.note, mask)}}`;
    case 'pin.first-use':
      return pinTarget(event, event.digest, undefined, mask);
    case 'pin.finding': {
      const { finding, found, tier, action, pointer, evidence } = event;
      const own = detailText({ finding, kind: found, tier, action, suppressed }).slice(0, -1);
      const target = pinTarget(event, undefined, undefined, mask);
      return `${target},"detail":${own}${foreignDetail({ pointer, evidence }, mask)}}`;
    }
    case 'config.reload':
      return `"detail":${reloadDetail(event)}`;
    case 'admin.action':
      return `"actor":{"iss":${quoteOptional(event.issuer)},"sub":${quoteOptional(event.subject)}},"client":{"ip":${quoteForeign(event.ip)}},"detail":{"action":${quoteForeign(event.action, mask)},"status":${quoteNumber(event.status)}${foreignDetail(event.detail, mask)}}`;
    case 'lifecycle':
      return `"detail":${detailText({ event: event.event, ...event.detail })}`;
    case 'checkpoint':
      return `"detail":${detailText(event.detail)}`;
  }
}

function eventText(type: string, members: string, context: EventContext): EventText {
  const { instance, host, run, version, config, policy, pins } = context.gateway;
  const names = `"instance":${quoteVerified(instance)}${member('host', host)}${member('run', run)}`;
  return {
    before: `${eventHead(type, context)}${names},"epoch":"`,
    after: `","version":${quoteVerified(version)},"config":${quoteVerified(config)},"policy":${quoteVerified(policy)},"pins":${quoteVerified(pins)}},${members}`,
    timeMs: context.nowMs,
  };
}

/**
 * An event other than those of a request. Members that do not apply are left out. `suppressed`: how many events before it
 * were only counted, in the types that say so.
 */
export function buildEvent(event: AuditEvent, context: EventContext, suppressed = 0): EventText {
  return eventText(event.type, eventMembers(event, context.mask, suppressed), context);
}

/** Who calls, as events of requests name them, as far as an approval is bound to it. */
function approvalCallerText({ subject: { caller } }: Approval): string {
  const { issuer, subject, client, actors } = caller;
  const act = actors
    .slice(0, MAX_LISTED)
    .map((actor) => `{"iss":${quoteVerified(actor.issuer)},"sub":${quoteVerified(actor.subject)}}`);
  const chain = act.length === 0 ? '' : `,"act":[${act.join()}]`;
  return `"actor":{"iss":${quoteVerified(issuer)},"sub":${quoteVerified(subject)},"client_id":${quoteVerified(client)}${chain}}`;
}

function approvalTargetText({ subject }: Approval, mask: MaskText | undefined): string {
  const { upstream, method, name, shownAs, pin } = subject;
  // The name of a pinned definition was reviewed; any other name is text from outside.
  const nameText = pin === undefined ? quoteForeign(name, mask) : quoteVerified(name);
  return `"target":{"upstream":${quoteVerified(upstream)},"method":${quoteVerified(method)},"name":${nameText}${member('shown_as', shownAs)}${member('pin', pin)}}`;
}

/** Who answered, and how it is known; a client that answers names nobody. */
function answerText(answer: ApprovalAnswer | undefined): string {
  if (answer === undefined) return '';
  const { party, proof, person } = answer;
  const who =
    proof === 'client'
      ? ''
      : `,"person":{"iss":${quoteVerified(person.issuer)},"sub":${quoteVerified(person.subject)}}`;
  return `,"party":"${party}","proof":"${proof}"${who}`;
}

function timeMember(name: string, atMs: number | undefined): string {
  return atMs === undefined ? '' : `,"${name}":"${new Date(atMs).toISOString()}"`;
}

/** Who has still to say yes, of a question that stands or stood. */
function waitsForText({ change, approval }: ApprovalEvent): string {
  const isQuestion = change === 'requested' || change === 'granted' || change === 'expired';
  return isQuestion ? `,"waits_for":${quoteList(openParties(approval), PARTIES.length)}` : '';
}

const PARTIES: readonly ApprovalParty[] = ['caller', 'reviewer'];

/** What a person is asked, by digest, and what became of it. */
function approvalText(event: ApprovalEvent): string {
  const { approval, answer, isRemembered } = event;
  const { id, demand, shown, decisionId, subject } = approval;
  const { createdAtMs, expiresAtMs, usableUntilMs, rememberedUntilMs } = approval;
  const parties = PARTIES.filter((party) => demand[party] !== undefined);
  return (
    `"approval":{"id":${quoteVerified(id)},"asked_by":${quoteVerified(decisionId)}` +
    `,"rules":${quoteList(demand.rules, MAX_LISTED)},"rules_digest":${quoteVerified(subject.rules)}` +
    `,"parties":${quoteList(parties, PARTIES.length)}${waitsForText(event)}${answerText(answer)},"shown":${quoteVerified(shown)}` +
    `${timeMember('asked_at', createdAtMs)}${timeMember('expires_at', expiresAtMs)}` +
    `${timeMember('answered_at', answer?.atMs)}${timeMember('usable_until', usableUntilMs)}` +
    `${timeMember('remembered_until', rememberedUntilMs)}${isRemembered === true ? ',"remembered":true' : ''}}`
  );
}

/** What is written of an answer for which nobody has to have been there. */
export const ANSWERED_BY_CLIENT = 'answered by the client, perhaps without a person';

/**
 * An event of an approval. Its decision is the one that used the yes, and otherwise the one that asked. Never the
 * arguments or the definition: what was shown is named by its digest.
 */
export function approvalEvent(event: ApprovalEvent, context: EventContext): EventText {
  const { change, approval, answer, decisionId = approval.decisionId } = event;
  const note = answer?.proof === 'client' ? `,"detail":${detailText({ note: ANSWERED_BY_CLIENT })}` : '';
  const members =
    `${approvalCallerText(approval)},${approvalTargetText(approval, context.mask)}` +
    `,"args":{"digest":${quoteVerified(approval.subject.args)}},"decision":{"id":${quoteVerified(decisionId)}}` +
    `,${approvalText(event)}${note}`;
  return eventText(`approval.${change}`, members, context);
}
