// The check of a response: which check its result has, by its method, and what an error or a task becomes. What comes
// beside it, and the order in which every message is checked, is in upstream-messages.ts. An inspector that throws ends
// the request with a refusal.
// Source: docs/reference/design.md, "How a response finds its plan"; docs/reference/definitions.md;
// docs/reference/responses.md; MCP 2025-11-25 and 2026-07-28, base protocol; MCP Apps extension (SEP-1865).

import { type CompiledSchema, outputOf } from '../policy/definitions.js';
import type { ResponseObligations } from '../policy/obligations.js';
import { addFindings } from '../policy/record.js';
import { isAppUri } from '../policy/uris.js';
import type { MethodRule, SessionTarget } from '../protocol/admitted-request.js';
import {
  hasInexactNumber,
  type ParsedJson,
  readJsonText,
  replaceAt,
  setMember,
  setPrivate,
  spanOf,
} from '../protocol/json/json.js';
import { isObject, type JsonObject, type RpcError, requestIdOf } from '../protocol/jsonrpc.js';
import { LIST_MEMBERS } from '../protocol/methods.js';
import { isInputRetry } from '../protocol/params.js';
import { METHOD_NOT_FOUND, URL_ELICITATION_REQUIRED, withId } from '../protocol/responses.js';
import { canRequireInput } from '../protocol/server-requests.js';
import { type Bytes, joinPieces } from '../protocol/transport.js';
import { errorSeenIn } from '../protocol/upstream-status.js';
import { after } from '../text/after.js';
import { checkInputRequired } from './features/input-required.js';
import { createGateFor, type NotificationGate } from './features/progress.js';
import { checkUrlError } from './features/server-requests.js';
import { checkCreatedTask, checkTaskList, checkTaskResponse } from './features/task-responses.js';
import { countsAsReceived, cutsErrors, cutUnpinnedText } from './flows.js';
import { nameOf, type RequestContext } from './request-context.js';
import {
  ALWAYS_AUTO,
  type CheckContext,
  type CheckPorts,
  type Inspection,
  inspect,
  type MessageOutcome,
  type ResponsePlan,
  respond,
  withhold,
  withProfiles,
} from './response-context.js';
import { type FilterInput, filterResponse, recallList } from './response-filter.js';
import {
  type Checked,
  checkUpstreamMessage,
  type MessagePlace,
  type ResponseMessage,
  recordReceived,
} from './upstream-messages.js';

export type ResponseCheck = {
  /** Checks one message. Synchronous unless the text waits for inspection or the upstream must be listed again. */
  checkBytes(bytes: Bytes): Checked;
  checkText(text: string): Checked;
  /** Replaces the obligations, after a new decision, for all further messages. */
  setObligations(responseObligations: ResponseObligations): void;
};

type ResultContext = Pick<FilterInput, 'responsePlan' | 'openedSession' | 'bytes'>;

/** Methods whose response is a task if it has the form of one. */
const MAY_BECOME_TASK: ReadonlySet<string> = new Set(['tools/call', 'tasks/result']);
/** Content that a reviewer has approved byte for byte. */
const APP_CONTENT = ['/result/contents'];
const NO_ERROR = { isError: false, rpcCode: undefined } as const;

/** Creates the check of every message that answers a request. `opened`: the session that a handshake opens. */
export function createResponseCheck(
  call: RequestContext<CheckPorts>,
  responsePlan: ResponsePlan,
  openedSession: SessionTarget,
): ResponseCheck {
  const { admitted, principal } = responsePlan;
  let notificationGate: NotificationGate | undefined;
  const context: CheckContext = {
    call,
    responseObligations: responsePlan.responseObligations,
    principal,
    protocol: admitted.protocol,
    apps: admitted.apps,
    session: admitted.session,
    requestMethod: admitted.rule.method,
    target: admitted.target,
    previousTail: '',
    refusedServerRequests: 0,
    deliveries: undefined,
    // Most responses come without notifications. INVARIANT: no accessor, which would give the object of each request
    // a hidden class of its own and keep it alive into the old generation.
    gate() {
      notificationGate ??= createGateFor(call, admitted);
      return notificationGate;
    },
  };
  const { rule, version, target } = admitted;
  const checkResult = RESULT_CHECKS.get(rule.method) ?? RESPONSE_CHECKS[rule.response];
  const id = requestIdOf(admitted.message);
  const place: MessagePlace = {
    context,
    expected: {
      protocol: admitted.protocol,
      id,
      version,
      mayRequireInput: canRequireInput(rule.method),
      mayBecomeTask: MAY_BECOME_TASK.has(rule.method) ? admitted.mayBecomeTask : undefined,
    },
    isServerList: LIST_MEMBERS.has(rule.method),
    unread: 'refuse',
    unrecorded: 'refuse',
    checkResponse,
    checkForeign,
    // A list or a handshake shows what is pinned or was asked for by policy alone, because the rest of it is cut; what is
    // sent beside it, or instead of it as an error, may be anything.
    receivedOf(outcome, about) {
      const isShown = outcome.kind === 'response' && !outcome.isError && target.kind === 'none';
      return isShown && !countsAsReceived(call.snapshot, rule.method) ? [] : [target, ...about];
    },
  };

  function checkResponse(reading: ParsedJson, message: ResponseMessage, bytes: Uint8Array | undefined): Checked {
    switch (message.kind) {
      case 'response-input-required': {
        const inputRequired = { text: reading.text, result: message.result };
        return checkInputRequired(call, responsePlan, inputRequired, (cut, allows) =>
          outcomeWhenInspected(inspect(withProfiles(context, allows), cut, ALWAYS_AUTO), NO_ERROR),
        );
      }
      case 'response-task':
        return checkCreatedTask(context, responsePlan, reading, message.result);
      case 'response-result':
        return checkResult(context, reading, message.result, { responsePlan, openedSession, bytes });
      case 'response-error':
        return checkErrorResponse(reading, message.error);
    }
  }

  function checkErrorResponse(reading: ParsedJson, error: RpcError): Checked {
    if (error.code === METHOD_NOT_FOUND && cutsErrors(call.snapshot, rule.method))
      return withOwnError(reading.text, error);
    const facts = { isError: true, rpcCode: error.code };
    if (error.code === URL_ELICITATION_REQUIRED)
      return checkUrlError(context, reading.text, error, (strict) =>
        outcomeWhenInspected(inspect(strict, reading, ALWAYS_AUTO), facts),
      );
    return after(outcomeWhenInspected(inspect(context, reading), facts), (outcome) =>
      correctError(context, outcome, reading.text, error),
    );
  }

  /** A body that is an error under no id, or under another, answers the request that it was sent for. */
  function checkForeign(reading: ParsedJson, bytes: Uint8Array | undefined): Checked | undefined {
    const error = bytes && errorSeenIn(reading.value, id);
    if (id === undefined || error === undefined || error.isOwn) return undefined;
    const text = withId(reading.text, id);
    return after(checkUpstreamMessage(place, text), (outcome) => withResponseText(outcome, text));
  }

  return {
    checkBytes(bytes) {
      const recalled = recallList(call, responsePlan, bytes);
      return recalled === undefined ? checkUpstreamMessage(place, joinPieces(bytes)) : recordReceived(place, recalled);
    },
    checkText: (text) => checkUpstreamMessage(place, text),
    setObligations(responseObligations) {
      context.responseObligations = responseObligations;
    },
  };
}

/**
 * A server without a method says so in a message of the gateway's own, where its words would begin a flow: clients ask
 * for every list as they connect.
 */
function withOwnError(text: string, { code }: RpcError): MessageOutcome {
  const error = JSON.stringify({ code, message: 'Method not found' });
  const own = replaceAt(text, ['error'], error);
  return own === undefined ? withhold('internal') : { ...respond(own, true, code), isOwn: true };
}

function withResponseText(outcome: MessageOutcome, text: string): MessageOutcome {
  return outcome.kind === 'response' ? { ...outcome, text: outcome.text ?? text } : outcome;
}

/** Checks a result by its method: only a few methods have a check of their own. */
type ResultCheck = (
  checkContext: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
) => Checked;

const RESULT_CHECKS: ReadonlyMap<string, ResultCheck> = new Map([
  ['ping', checkEmpty],
  ['logging/setLevel', checkEmpty],
  ['tasks/list', (subject, reading) => checkTaskList(subject, reading)],
  ['resources/read', checkResource],
]);

/** The check for the results of methods that are handled alike. */
const RESPONSE_CHECKS: { readonly [response in MethodRule['response']]: ResultCheck } = {
  task: (subject, reading, _result, { responsePlan }) => checkTaskResponse(subject, responsePlan, reading),
  filter: (checkContext, reading, result, context) =>
    filterResponse({ ...context, call: checkContext.call, reading, result }),
  inspect: checkContent,
  envelope: checkContent,
  subscription: checkContent,
};

function checkResource(
  subject: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
): Checked {
  const app = reviewAppContent(subject.call, context.responsePlan, reading, result);
  if (app === 'changed') return withhold('tool-changed');
  const reviewed = app === 'approved' ? APP_CONTENT : undefined;
  return checkContent(subject, reading, result, context, reviewed);
}

/** The result of a request that is answered by nothing. */
function checkEmpty(
  checkContext: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
): Checked {
  const { call } = checkContext;
  const { text, findings } = cutUnpinnedText(call.snapshot, context.responsePlan.admitted.rule.method, reading.text);
  addFindings(call.record, findings);
  const left = text === reading.text ? reading : readJsonText(text);
  if (!left.ok) return withhold('internal');
  const kept = left !== reading && isObject(left.value) ? left.value['result'] : result;
  if (!isObject(kept)) return withhold('internal');
  const outcome = checkContent(checkContext, left, kept, context);
  return left === reading ? outcome : after(outcome, (resolved) => withResponseText(resolved, text));
}

function checkContent(
  checkContext: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
  reviewed?: readonly string[],
): Checked {
  const { responsePlan } = context;
  const facts = { isError: result['isError'] === true, rpcCode: undefined };
  const output = outputSchemaFor(checkContext.call, responsePlan);
  return after(inspect(checkContext, reading, { output, approved: reviewed }), (inspection) =>
    markPrivate(checkContext, responsePlan, reading, outcomeOfInspection(inspection, facts)),
  );
}

/** Marks a result that may be cached as private to its caller, and bounds its lifetime. */
function markPrivate(
  context: CheckContext,
  { admitted }: ResponsePlan,
  reading: ParsedJson,
  outcome: MessageOutcome,
): MessageOutcome {
  const { rule } = admitted;
  const result = isObject(reading.value) ? reading.value['result'] : undefined;
  if (!isObject(result)) return outcome;
  if (!context.protocol.hasCacheHints || outcome.kind !== 'response' || !isCacheable(rule.method, result))
    return outcome;
  const inspected = outcome.text ?? reading.text;
  const maxTtlMs = isInputRetry(admitted) ? 0 : context.call.snapshot.limits.listTtlMs;
  const text = setPrivate(inspected, result, maxTtlMs);
  return text === reading.text ? outcome : { ...outcome, text };
}

/** What a caller may read depends on the caller, so no shared cache may store it (MCP 2026-07-28, caching). */
function isCacheable(method: string, result: JsonObject): boolean {
  return method === 'resources/read' || result['cacheScope'] !== undefined || result['ttlMs'] !== undefined;
}

/**
 * Corrects an inspected error: the error code that the client's version defines for it, and only versions that
 * the gateway supports. Everything else passes byte for byte.
 * Source: MCP 2026-07-28, error codes and versioning.
 */
function correctError(
  { protocol }: CheckContext,
  outcome: MessageOutcome,
  text: string,
  error: RpcError,
): MessageOutcome {
  if (outcome.kind !== 'response') return outcome;
  const correction = protocol.correctionOf(error);
  let repaired = outcome.text ?? text;
  if (correction.code !== error.code) repaired = setMember(repaired, ['error'], 'code', correction.code);
  if (correction.supported !== undefined)
    repaired = setMember(repaired, ['error', 'data'], 'supported', correction.supported);
  return repaired === text ? outcome : { ...outcome, text: repaired, rpcCode: correction.code };
}

type Facts = { readonly isError: boolean; readonly rpcCode: number | undefined };

function outcomeWhenInspected(outcome: Inspection | Promise<Inspection>, facts: Facts): Checked {
  return after(outcome, (inspection) => outcomeOfInspection(inspection, facts));
}

function outcomeOfInspection(outcome: Inspection, { isError, rpcCode }: Facts): MessageOutcome {
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  return respond(outcome.kind === 'changed' ? outcome.text : undefined, isError, rpcCode);
}

function outputSchemaFor(call: RequestContext, { admitted }: ResponsePlan): CompiledSchema | undefined {
  const { target } = admitted;
  const tool = nameOf(target);
  if ((target.kind !== 'tool' && target.kind !== 'task') || tool === undefined) return undefined;
  return outputOf(call.snapshot.catalogFor(admitted).statusOf('tool', tool));
}

/** `approved`: byte for byte what was reviewed. `none`: not such a resource, so it has to be inspected. */
type AppContent = 'approved' | 'changed' | 'none';

/**
 * Compares content that a host runs with its pin: a `ui://` resource passes unchanged if it was approved, and is refused
 * otherwise. A difference updates the catalog for all callers, like a changed definition. Without pinning nothing is
 * compared.
 */
function reviewAppContent(
  call: RequestContext<'inspection' | 'upstreams'>,
  { admitted }: ResponsePlan,
  { text }: ParsedJson,
  result: JsonObject,
): AppContent {
  const { target } = admitted;
  if (target.kind !== 'resource') return 'none';
  const { uri } = target;
  const catalog = call.snapshot.catalogFor(admitted);
  if (!isAppUri(uri) || catalog.mode === 'off') return 'none';
  const contents = result['contents'] ?? null;
  const span = spanOf(text, ['result', 'contents']);
  const isExact = span !== undefined && !hasInexactNumber(text, span);
  const definition = { uri, contents };
  const digest = call.ports.inspection.digest('resource', definition, isExact);
  if (digest === catalog.statusOf('resource', uri).pinned?.digest) return 'approved';
  const item = { name: uri, digest, definition };
  const page = { kind: 'resource' as const, items: [item] };
  call.ports.upstreams.notePage(call.incoming.upstream, page);
  return 'changed';
}
