// What the values of the stages say of a request: its message, its decision, its refusal. Pure; the pipeline folds them
// into the record (policy/record.ts).

import { captureArguments } from '../inspection/capture.js';
import { hideArguments } from '../inspection/sensitive-fields.js';
import type { MendedArguments } from '../policy/argument-mending.js';
import { capturedBy } from '../policy/decide.js';
import type { Decision, Deny, Refusal } from '../policy/decision.js';
import { definitionOf, findUndeclared, type PinKind } from '../policy/definitions.js';
import type { PrincipalFacts } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import type { Finding, RecordFacts, RequestRecord } from '../policy/record.js';
import type { PolicyQuery } from '../policy/rules.js';
import { decideShadows } from '../policy/shadow.js';
import type { AdmittedMessage } from '../protocol/admitted-request.js';
import { exactJson } from '../protocol/json/exact-numbers.js';
import type { JsonObject, Target } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { readFilter } from '../protocol/subscriptions.js';
import { isTraceMember, TRACEPARENT } from '../protocol/trace-context.js';
import { PLAIN_SESSION } from '../protocol/versions/session.js';
import { pointerTo } from '../text/json-members.js';
import type { Ports } from './ports.js';
import {
  nameOf,
  type PlannedMessage,
  presentedToken,
  type RequestContext,
  sensitiveFieldsOf,
} from './request-context.js';

const NO_GROUPS: readonly string[] = Object.freeze([]);
const NO_URIS: readonly string[] = Object.freeze([]);
const NO_FINDINGS: readonly Finding[] = Object.freeze([]);
const NO_TARGET: Target = { kind: 'none' };
const NOTHING_CAPTURED: Readonly<Record<string, string>> = Object.freeze({});
/** Names of arguments that the record keeps; the digest covers the rest. */
const MAX_RECORDED_KEYS = 32;
/** The record lists at most this many groups: those of the caller that some rule names. */
const MAX_RECORDED_GROUPS = 32;

/** What is known after admission. */
export function admissionFacts(audit: Pick<Ports['audit'], 'keyedHash'>, admitted: AdmittedMessage): RecordFacts {
  const { protocol, version, selfReported, session } = admitted;
  return {
    client: { era: protocol.era, version, selfReported, session: session?.hash },
    target: admitted.presented === undefined ? targetFacts(admitted) : bothNames(admitted),
    args: argumentFacts(audit, admitted),
    findings: removalFindings(admitted),
  };
}

/** The target, and the name by which the client called it, where that is another. */
function bothNames(admitted: AdmittedMessage): RecordFacts['target'] {
  const facts = targetFacts(admitted);
  const { name: shownAs } = admitted.presented ?? {};
  return shownAs === facts.name ? facts : { ...facts, shownAs };
}

function argumentFacts(audit: Pick<Ports['audit'], 'keyedHash'>, { args }: AdmittedMessage): RequestRecord['args'] {
  if (args === undefined) return undefined;
  const text = exactJson(args);
  return {
    digest: audit.keyedHash('arguments', text),
    bytes: Buffer.byteLength(text),
    keys: Object.keys(args).slice(0, MAX_RECORDED_KEYS),
    captured: NOTHING_CAPTURED,
    violations: undefined,
  };
}

/** What a message is about. */
export function targetFacts({ message, rule, target }: PlannedMessage): NonNullable<RecordFacts['target']> {
  const filter = rule.response === 'subscription' ? readFilter(paramsOf({ message })['notifications']) : undefined;
  return {
    method: rule.method,
    // The word that audit events have for the reply to a server request.
    kind: target.kind === 'server-request' ? 'question' : target.kind,
    name: nameOf(target),
    requestId: message.kind === 'notification' ? undefined : message.id,
    uris: filter?.uris ?? NO_URIS,
  };
}

/** Removed members that are recorded one by one. A message may have tens of thousands of them. */
const MAX_RECORDED_REMOVALS = 16;

/** The members that were cut out of the message, by their pointers or by their names below `/params`. */
function removalFindings({ message, removed, undefinedParams, nulls }: AdmittedMessage): readonly Finding[] {
  if (removed.length === 0 && undefinedParams.length === 0 && nulls.length === 0) return NO_FINDINGS;
  const holder = message.kind === 'result' ? 'result' : 'params';
  return [
    ...removalsOf(
      'reserved-meta',
      'strip',
      removed.filter((name) => !isTraceMember(name)),
    ),
    ...removalsOf('trace-context', 'strip', removed.filter(isEndingHere), `/${holder}/_meta`),
    ...removalsOf('undefined-params', 'drop', undefinedParams, '/params'),
    ...removalsOf('null-members', 'drop', nulls),
  ];
}

/** The trace itself goes on, under an id of the gateway's. */
function isEndingHere(name: string): boolean {
  return isTraceMember(name) && name !== TRACEPARENT;
}

function removalsOf(
  detector: string,
  action: 'strip' | 'drop',
  names: readonly string[],
  holder?: string,
): readonly Finding[] {
  const found = { detector, direction: 'to-upstream', action } as const;
  const named = names.slice(0, MAX_RECORDED_REMOVALS).map((name): Finding => {
    const path = holder === undefined ? name : pointerTo(holder, name);
    return { ...found, path, count: 1 };
  });
  const rest = names.length - MAX_RECORDED_REMOVALS;
  return rest > 0 ? [...named, { ...found, path: '', count: rest }] : named;
}

/** What was mended in the arguments, by pointers. */
export function mendingFindings({ dropped, coerced }: MendedArguments): readonly Finding[] {
  const findings = (detector: string, action: 'drop' | 'coerce', pointers: readonly string[]): readonly Finding[] =>
    pointers.map((pointer) => {
      const path = `/params/arguments${pointer}`;
      return { detector, direction: 'to-upstream', action, path, count: 1 };
    });
  return [...findings('dropped-argument', 'drop', dropped), ...findings('coerced-argument', 'coerce', coerced)];
}

function isPinnedKind(kind: Target['kind']): kind is PinKind {
  return kind === 'tool' || kind === 'prompt' || kind === 'template';
}

/** The decision: its verdict, its rule, what it captures, and the pin that it relied on. */
export function decisionFacts(
  call: RequestContext,
  principal: PrincipalFacts,
  decision: Decision,
  args: JsonObject | undefined,
): RecordFacts {
  const { record } = call;
  const isDenied = decision.verdict === 'deny';
  const { caller, decision: rule } = ruleFacts(principal, decision);
  const { target, findings } = definitionFacts(call, args, isDenied);
  return {
    caller,
    decision: { ...rule, stage: 'decide' },
    reason: isDenied ? decision.reason : undefined,
    args: record.args && {
      ...record.args,
      captured: capturedIn(call, capturedBy(decision), args),
      violations: isDenied ? decision.violations : undefined,
    },
    target,
    findings,
  };
}

/** The definition and the pin that the decision relied on, and the first argument that would be refused, if only observed. */
function definitionFacts(
  { record, snapshot, admitted }: RequestContext,
  args: JsonObject | undefined,
  isDenied: boolean,
): Pick<RecordFacts, 'target' | 'findings'> {
  const target = admitted?.target ?? NO_TARGET;
  const name = nameOf(target);
  const kind = target.kind === 'task' ? 'tool' : target.kind;
  if (name === undefined || !isPinnedKind(kind)) return {};
  const catalog = snapshot.catalogFor(admitted ?? PLAIN_SESSION);
  const status = catalog.statusOf(kind, name);
  const pinned = { definition: status.observed, pin: status.pinned?.digest };
  if (isDenied || args === undefined || catalog.undeclaredArguments !== 'observe') return { target: pinned };
  const undeclared = findUndeclared(definitionOf(status), args);
  // A request that waited is decided again.
  if (undeclared === undefined || record.findings.some(({ detector }) => detector === UNDECLARED.detector))
    return { target: pinned };
  return { target: pinned, findings: [{ ...UNDECLARED, path: `/params/arguments${undeclared.pointer}` }] };
}

const UNDECLARED = { detector: 'undeclared-argument', direction: 'to-upstream', count: 1, action: 'flag' } as const;

/** The arguments that rules ask to record, without the sensitive ones. A later decision replaces an earlier one. */
function capturedIn(
  call: RequestContext,
  pointers: readonly string[],
  args: JsonObject | undefined,
): Readonly<Record<string, string>> {
  const { record, incoming, admitted } = call;
  if (args === undefined) return record.args?.captured ?? NOTHING_CAPTURED;
  if (pointers.length === 0) return NOTHING_CAPTURED;
  const hidden = sensitiveFieldsOf(call, admitted?.target ?? NO_TARGET)?.arguments ?? [];
  const shown = hidden.length === 0 ? args : hideArguments(args, hidden);
  return captureArguments(shown, pointers, presentedToken(incoming));
}

/**
 * What policies that are not enforced would have decided. Asked only where there are some. Under `policies.mode: observe`,
 * the arguments are captured that those rules ask for; `recorded` is what the decision has recorded of them.
 */
export function shadowFacts(
  call: RequestContext,
  query: PolicyQuery,
  decision: Decision,
  args: JsonObject | undefined,
  recorded: RequestRecord['args'],
): RecordFacts {
  const { snapshot } = call;
  const { shadow, captures } = decideShadows(snapshot.policies, query, decision);
  if (captures === undefined) return { decision: { shadow } };
  return {
    decision: { shadow, mode: 'observe' },
    args: recorded && { ...recorded, captured: capturedIn(call, captures, args) },
  };
}

/** The rule that decided, and the caller's groups that made it apply. */
export function ruleFacts(
  principal: PrincipalFacts | undefined,
  { verdict, policy, rule, groups }: Decision,
): Pick<Required<RecordFacts>, 'caller' | 'decision'> {
  const used = groups?.filter((group) => principal?.groups.includes(group) === true).slice(0, MAX_RECORDED_GROUPS);
  return { caller: { groupsUsed: used ?? NO_GROUPS }, decision: { verdict, policy, rule } };
}

/** A refusal. Before forwarding it is `refused`; afterwards the response was `withheld`. */
export function refusalFacts({ decision }: RequestRecord, { stage, deny }: Refusal): RecordFacts {
  const detail = deny.detail ?? decision.detail;
  if (decision.action === 'forwarded') return { decision: { action: 'withheld', stage, detail }, reason: deny.reason };
  return {
    decision: { action: 'refused', verdict: 'deny', ...overridingFacts(deny), stage, detail },
    reason: deny.reason,
  };
}

/** What refused is the block, the flow or the rule that asks a person, whatever rule had allowed the request. */
const OVERRIDING: ReadonlySet<Reason> = new Set([
  ...(['blocked', 'tainted-flow'] as const),
  ...(['approval-required', 'approval-denied', 'approval-expired', 'approval-mismatch'] as const),
]);

/** What refused a request that a rule had allowed, or that was not decided yet. */
export function overridingFacts({ reason, policy, rule, causes }: Deny): NonNullable<RecordFacts['decision']> {
  return OVERRIDING.has(reason) ? { policy, rule, causes } : {};
}
