// Handles input-required results (2026-07-28). Every input request in such a result must be declared by the
// client's request and granted by policy, and none may ask for sensitive data; if one may not pass, the whole
// result is withheld, because the exchange could not continue. The server's request state is sealed for this
// caller and this request. When the client sends its request again, the state is opened and the upstream gets
// its own back, byte for byte; state that does not open is refused.
// Source: MCP 2026-07-28, multi-round-trip requests; elicitation.

import { formSize, MAX_FORM_SIZE } from '../../inspection/elicitation/requests.js';
import { canonicalForm } from '../../pins/digest.js';
import { type Allow, type Refusal, refuseProtocolError } from '../../policy/decision.js';
import { enforceLimits } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import type { Reason } from '../../policy/reasons.js';
import { addFinding } from '../../policy/record.js';
import { amendAdmitted } from '../../protocol/admission.js';
import type { AdmittedMessage, TextEdit } from '../../protocol/admitted-request.js';
import {
  changeMembers,
  type ParsedJson,
  readJsonText,
  removalEdits,
  setMember,
  spanOf,
} from '../../protocol/json/json.js';
import {
  isObject,
  type Json,
  type JsonObject,
  type ServerRequestName,
} from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { errorContextOf, invalidParams } from '../../protocol/responses.js';
import {
  type InputRequest,
  type InputRequiredResult,
  isOwnKey,
  type RememberedInputRequests,
  readInputRequiredResult,
} from '../../protocol/server-requests.js';
import type { RequestStateScope } from '../ports.js';
import {
  type Feature,
  nameOf,
  type PlannedMessage,
  type RequestContext,
} from '../request-context.js';
import { type MessageOutcome, type ResponsePlan, withhold } from '../response-context.js';
import {
  contentErrorOf,
  contentOf,
  decideForCaller,
  isRefusedForLink,
  showLink,
} from './server-requests.js';

/** Params that differ between the rounds of one input-required exchange. */
const PARAMS_THAT_CHANGE: ReadonlySet<string> = new Set([
  '_meta',
  'inputResponses',
  'requestState',
]);
/** A request that is sent again with input responses. */
export const INPUT_RETRY: Feature = {
  prepare: (call, { principal, admitted }) => prepareInputRetry(call, principal, admitted),
  withoutSealed: ({ requestState: _, ...content }) => content,
};

/** What the state of this request is bound to. */
function stateScope(upstream: string, admitted: PlannedMessage): RequestStateScope {
  const unchangingParams: Record<string, Json> = {};
  for (const [name, value] of Object.entries(paramsOf(admitted))) {
    if (!PARAMS_THAT_CHANGE.has(name)) unchangingParams[name] = value;
  }
  const form = canonicalForm(unchangingParams);
  if (!form.ok) throw new Error(`params without a canonical form: ${form.why}`);
  const { target, rule } = admitted;
  return {
    upstream,
    method: rule.method,
    target: `${target.kind} ${nameOf(target) ?? ''}`,
    params: form.text,
  };
}

/**
 * Prepares a repeated request for the upstream: restores the upstream's own state, and removes input responses
 * under the gateway's reserved keys.
 */
function prepareInputRetry(
  call: RequestContext<'requestState'>,
  principal: Principal,
  admitted: AdmittedMessage,
): AdmittedMessage | Refusal {
  const sealed = paramsOf(admitted)['requestState'];
  const edits: TextEdit[] = [...removeReservedResponses(call, admitted)];
  if (typeof sealed === 'string') {
    const scope = stateScope(call.incoming.upstream, admitted);
    const state = call.ports.requestState.open(sealed, scope, principal);
    const span = spanOf(admitted.text, ['params', 'requestState']);
    if (state === undefined || span === undefined) return refuseState(admitted);
    edits.push({ ...span, text: JSON.stringify(state) });
  }
  return amendAdmitted(admitted, edits);
}

function removeReservedResponses(
  call: RequestContext,
  admitted: AdmittedMessage,
): readonly TextEdit[] {
  const inputResponses = paramsOf(admitted)['inputResponses'];
  if (!isObject(inputResponses)) return [];
  const count = Object.keys(inputResponses).filter(isOwnKey).length;
  const span = count === 0 ? undefined : spanOf(admitted.text, ['params', 'inputResponses']);
  if (span === undefined) return [];
  addFinding(call.record.findings, {
    detector: 'reserved-key',
    direction: 'to-upstream',
    path: '/params/inputResponses',
    count,
    action: 'strip',
  });
  return removalEdits(admitted.text, span, isOwnKey);
}

/** State that was modified, stolen, issued for another request or has expired: one refusal for all of these. */
function refuseState({ message }: AdmittedMessage): Refusal {
  const text = 'requestState is not valid for this request.';
  return refuseProtocolError(invalidParams(errorContextOf(message), text));
}

/**
 * Inspects the text as a response is inspected, but without the output schema of a complete result, and also under the
 * profiles that the decisions about its input requests name.
 */
type Inspect = (
  reading: ParsedJson,
  allows: readonly Allow[],
) => MessageOutcome | Promise<MessageOutcome>;

/** Not inspected: such results are never cached, and their state is opaque (MCP 2026-07-28, caching). */
const UNINSPECTED_MEMBERS: ReadonlySet<string> = new Set(['requestState', 'ttlMs', 'cacheScope']);

const FORBIDDEN_REASONS: { readonly [name in ServerRequestName]: Reason } = {
  sampling: 'sampling-forbidden',
  roots: 'roots-forbidden',
  'elicitation/form': 'elicitation-forbidden',
  'elicitation/url': 'elicitation-forbidden',
};

/** Checks a result of type `input_required`. */
export async function checkInputRequired(
  call: RequestContext<'audit' | 'limits' | 'requestState'>,
  responsePlan: ResponsePlan,
  { text, result }: { readonly text: string; readonly result: JsonObject },
  inspect: Inspect,
): Promise<MessageOutcome> {
  const inputRequired = readInputRequiredResult(result);
  if (inputRequired === undefined) return withhold('upstream-protocol');
  const { principal } = responsePlan;
  const { allowedServerRequests } = responsePlan.admitted;
  const target = { call, principal, allowedServerRequests };
  const decided = decideInputRequests(target, inputRequired);
  if ('reason' in decided) return withholdFor(call, decided);
  const reading = readJsonText(changeMembers(text, { path: ['result'], cut: UNINSPECTED_MEMBERS }));
  if (!reading.ok) return withhold('upstream-protocol');
  const outcome = await inspect(reading, allowsOf(decided));
  if (outcome.kind !== 'response') return outcome;
  const inspected = normalizeUrls(outcome.text ?? reading.text, inputRequired, ['result']);
  if (inspected === undefined) return withhold('elicitation-url');
  const withState = sealStateIn(call, responsePlan, inspected, inputRequired.state);
  if (withState === undefined) return withhold('result-too-large');
  const limited = await limitInputRequests(target, decided);
  return limited === undefined ? { ...outcome, text: withState } : withholdFor(call, limited);
}

/** The result with the server's state sealed; `undefined` if that is too long to carry. */
function sealStateIn(
  call: RequestContext<'requestState'>,
  { admitted, principal }: ResponsePlan,
  text: string,
  state: string | undefined,
): string | undefined {
  if (state === undefined) return text;
  const scope = stateScope(call.incoming.upstream, admitted);
  const sealed = call.ports.requestState.seal(state, scope, principal);
  return sealed && setMember(text, ['result'], 'requestState', sealed);
}

const NO_INPUT_REQUESTS_SEEN: RememberedInputRequests = { has: () => false, add: () => undefined };

/** Identifies an input request by its whole content, because a server may reuse a key for a different one. */
function hashOf({ ports }: RequestContext<'audit'>, inputRequest: InputRequest): string {
  return ports.audit.keyedHash('arguments', JSON.stringify(inputRequest));
}

type InputRequestError = { readonly reason: Reason; readonly inputRequest: InputRequest };

/** The caller, and the server requests that it declared and was granted. */
type ServerRequestTarget = Pick<ResponsePlan, 'principal'> &
  Pick<ResponsePlan['admitted'], 'allowedServerRequests'> & {
    readonly call: RequestContext<'audit' | 'limits'>;
  };

function findInputRequestError(
  { inputRequests }: InputRequiredResult,
  allowedServerRequests: ServerRequestTarget['allowedServerRequests'],
): InputRequestError | undefined {
  let size = 0;
  for (const inputRequest of inputRequests) {
    const { name, params } = inputRequest;
    if (!allowedServerRequests.includes(name))
      return { reason: FORBIDDEN_REASONS[name], inputRequest };
    // All forms of one result together may be no larger than a single form.
    size += name === 'elicitation/form' ? formSize(params) : 0;
    if (size > MAX_FORM_SIZE) return { reason: 'upstream-protocol', inputRequest };
    const reason = contentErrorOf(name, params);
    if (reason !== undefined) return { reason, inputRequest };
  }
  return undefined;
}

/** Input requests that may pass, each with the decision that allows it. */
type DecidedInputRequest = { readonly inputRequest: InputRequest; readonly allow: Allow };

/**
 * Decides each input request by the rules now in force, or returns the first that may not pass, with the reason. Like a
 * server request, they are counted only after their content was inspected: `limitInputRequests`.
 */
export function decideInputRequests(
  { call, principal, allowedServerRequests }: ServerRequestTarget,
  inputRequired: InputRequiredResult,
): readonly DecidedInputRequest[] | InputRequestError {
  const inputRequestError = findInputRequestError(inputRequired, allowedServerRequests);
  if (inputRequestError !== undefined) return inputRequestError;
  const decided: DecidedInputRequest[] = [];
  for (const inputRequest of inputRequired.inputRequests) {
    const { name, params } = inputRequest;
    const content = contentOf(name, params);
    const decision = decideForCaller(call.snapshot, principal, name, content);
    if (isRefusedForLink(call.snapshot, principal, name, decision))
      return { reason: 'elicitation-url', inputRequest };
    if (decision.verdict === 'deny') return { reason: FORBIDDEN_REASONS[name], inputRequest };
    decided.push({ inputRequest, allow: decision });
  }
  return decided;
}

/** The decisions that allow the input requests. */
export function allowsOf(decided: readonly DecidedInputRequest[]): readonly Allow[] {
  return decided.map(({ allow }) => allow);
}

/**
 * Counts the input requests against their limits and returns the first that exceeds one. One that was made before is not
 * counted again.
 */
export async function limitInputRequests(
  { call, principal }: Pick<ServerRequestTarget, 'call' | 'principal'>,
  decided: readonly DecidedInputRequest[],
  rememberedRequests: RememberedInputRequests = NO_INPUT_REQUESTS_SEEN,
): Promise<InputRequestError | undefined> {
  for (const { inputRequest, allow } of decided) {
    const requestHash =
      rememberedRequests === NO_INPUT_REQUESTS_SEEN ? '' : hashOf(call, inputRequest);
    if (rememberedRequests.has(requestHash)) continue;
    const limited = await enforceLimits([allow], principal, call.ports.limits);
    if (limited !== undefined) return { reason: limited.reason, inputRequest };
    rememberedRequests.add(requestHash);
  }
  return undefined;
}

/**
 * Writes every URL in its normalized form. Returns `undefined` if the content inspection changed one, since it
 * then contained something that must not pass.
 */
export function normalizeUrls(
  text: string,
  { inputRequests }: InputRequiredResult,
  holder: readonly string[],
): string | undefined {
  let shown: string | undefined = text;
  for (const { key, name, params } of inputRequests) {
    if (name !== 'elicitation/url' || shown === undefined) continue;
    shown = showLink(shown, [...holder, 'inputRequests', key, 'params', 'url'], params['url']);
  }
  return shown;
}

/** Notes the input request that caused a result to be withheld. */
export function noteWithheld(call: RequestContext, { name }: InputRequest): void {
  addFinding(call.record.findings, {
    detector: `question:${name}`,
    direction: 'to-client',
    path: '/result/inputRequests',
    count: 1,
    action: 'withhold',
  });
}

function withholdFor(
  call: RequestContext,
  { reason, inputRequest }: InputRequestError,
): MessageOutcome {
  noteWithheld(call, inputRequest);
  return withhold(reason);
}
