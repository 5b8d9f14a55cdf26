// Handles input-required results (2026-07-28). Every input request in such a result must be declared by the
// client's request and granted by policy, and none may ask for sensitive data; if one may not pass, the whole
// result is withheld, because the exchange could not continue. The server's request state is sealed for this
// caller and this request. When the client sends its request again, the state is opened and the upstream gets
// its own back, byte for byte; state that does not open is refused.
// Source: MCP 2026-07-28, multi-round-trip requests; elicitation.

import { formSize, MAX_FORM_SIZE } from '../../inspection/elicitation/requests.js';
import { canonicalForm } from '../../pins/digest.js';
import { type Allow, type Refusal, refuseProtocolError } from '../../policy/decision.js';
import type { Principal } from '../../policy/principal.js';
import type { Reason } from '../../policy/reasons.js';
import { addFindings, type Finding, type Staged } from '../../policy/record.js';
import type { RequestScope } from '../../policy/sealed-types.js';
import { amendAdmitted } from '../../protocol/admission.js';
import type { AdmittedMessage, TextEdit } from '../../protocol/admitted-request.js';
import {
  changeMembers,
  memberSpans,
  type ParsedJson,
  readJsonText,
  removalEdits,
  setMember,
  spanOf,
  spanWithin,
} from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { errorContextOf, invalidParams } from '../../protocol/responses.js';
import {
  type InputRequest,
  type InputRequiredResult,
  isOwnKey,
  type RememberedInputRequests,
  readInputRequiredResult,
} from '../../protocol/server-requests.js';
import { type Feature, nameOf, type PlannedMessage, type RequestContext } from '../request-context.js';
import { type MessageOutcome, type ResponsePlan, withhold } from '../response-context.js';
import { type AskedClient, checkContained, contentErrorOf, showLinks } from './server-requests.js';

/** Params that differ between the rounds of one input-required exchange. */
const PARAMS_THAT_CHANGE: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);
/** A request that is sent again with input responses. */
export const INPUT_RETRY: Feature = {
  prepare: (call, { principal, admitted }) => prepareInputRetry(call, principal, admitted),
  withoutSealed: ({ requestState: _, ...content }) => content,
};

/** What the state of this request is bound to; undefined where its params are too many to have a canonical form. */
function stateScope(upstream: string, principal: Principal, admitted: PlannedMessage): RequestScope | undefined {
  const unchangingParams: Record<string, Json> = {};
  for (const [name, value] of Object.entries(paramsOf(admitted))) {
    if (!PARAMS_THAT_CHANGE.has(name)) unchangingParams[name] = value;
  }
  const form = canonicalForm(unchangingParams);
  if (!form.ok) return undefined;
  const { target, rule } = admitted;
  return {
    ...{ upstream, principal, method: rule.method },
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
): Staged<AdmittedMessage> {
  const sealed = paramsOf(admitted)['requestState'];
  const { edits: removals, findings } = removeReservedResponses(admitted);
  const edits: TextEdit[] = [...removals];
  const facts = [{ findings }];
  if (typeof sealed === 'string') {
    const scope = stateScope(call.incoming.upstream, principal, admitted);
    const state = scope && call.ports.requestState.open(sealed, scope);
    const span = spanOf(admitted.text, ['params', 'requestState']);
    if (state === undefined || span === undefined) return { outcome: refuseState(admitted), facts };
    edits.push({ ...span, text: JSON.stringify(state) });
  }
  return { outcome: amendAdmitted(admitted, edits), facts };
}

type Removals = { readonly edits: readonly TextEdit[]; readonly findings: readonly Finding[] };

const NOTHING_REMOVED: Removals = { edits: [], findings: [] };

function removeReservedResponses(admitted: AdmittedMessage): Removals {
  const inputResponses = paramsOf(admitted)['inputResponses'];
  if (!isObject(inputResponses)) return NOTHING_REMOVED;
  const count = Object.keys(inputResponses).filter(isOwnKey).length;
  const path = '/params/inputResponses';
  const span = count === 0 ? undefined : spanOf(admitted.text, ['params', 'inputResponses']);
  if (span === undefined) return NOTHING_REMOVED;
  return {
    edits: removalEdits(admitted.text, span, isOwnKey),
    findings: [{ detector: 'reserved-key', direction: 'to-upstream', path, count, action: 'strip' }],
  };
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
type Inspect = (reading: ParsedJson, allows: readonly Allow[]) => MessageOutcome | Promise<MessageOutcome>;

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
  call: RequestContext<'approvals' | 'audit' | 'limits' | 'requestState'>,
  responsePlan: ResponsePlan,
  { text, result }: { readonly text: string; readonly result: JsonObject },
  inspect: Inspect,
): Promise<MessageOutcome> {
  const inputRequired = readInputRequiredResult(result);
  if (inputRequired === undefined) return withhold('upstream-protocol');
  const { principal, admitted } = responsePlan;
  const { protocol, version, session, allowedServerRequests } = admitted;
  const client = { call, principal, protocol, version, session, allowedServerRequests };
  const reading = readJsonText(changeMembers(text, { path: ['result'], cut: UNINSPECTED_MEMBERS }));
  if (!reading.ok) return withhold('upstream-protocol');
  const asked = { ...inputRequired, text: reading.text, holder: 'result' } as const;
  return checkInputRequests(client, asked, async (allows) => {
    const outcome = await inspect(reading, allows);
    if (outcome.kind !== 'response') return outcome;
    const inspected = normalizeUrls(outcome.text ?? reading.text, inputRequired, ['result']);
    if (inspected === undefined) return withhold('elicitation-url');
    const withState = sealStateIn(call, responsePlan, inspected, inputRequired.state);
    return withState === undefined ? withhold('result-too-large') : { ...outcome, text: withState };
  });
}

/** Input requests with the message that they stand in. */
type ContainedInputRequests = InputRequiredResult & { readonly text: string; readonly holder: string };

/**
 * Checks a message with input requests. `inspect` inspects it, also under the profiles that the decisions about them
 * name. Those that a task made before are decided again, and neither counted nor recorded.
 */
export async function checkInputRequests(
  client: AskedClient,
  inputRequired: ContainedInputRequests,
  inspect: (allows: readonly Allow[]) => MessageOutcome | Promise<MessageOutcome>,
  remembered: RememberedInputRequests = NO_INPUT_REQUESTS_SEEN,
): Promise<MessageOutcome> {
  const { call } = client;
  const hashes = new Map<InputRequest, string>();
  if (remembered !== NO_INPUT_REQUESTS_SEEN)
    for (const one of inputRequired.inputRequests) hashes.set(one, hashOf(call, one));
  const hashIn = (one: InputRequest): string => hashes.get(one) ?? '';
  const checked = await checkContained(client, {
    requests: inputRequired.inputRequests,
    text: inputRequired.text,
    pathOf: ({ key }) => [inputRequired.holder, 'inputRequests', key, 'params'],
    findError: () => findInputRequestError(inputRequired),
    inspect,
    isRepeated: (one) => remembered.has(hashIn(one)),
    noteCounted: (one) => remembered.add(hashIn(one)),
  });
  if (checked.kind !== 'refused') return checked;
  const { request, reason, isForbidden } = checked;
  if (request === undefined) return withhold(reason);
  addFindings(call.record, [withheldFinding(request)]);
  return withhold(isForbidden ? FORBIDDEN_REASONS[request.name] : reason);
}

/** The result with the server's state sealed; `undefined` if that is too long to carry. */
function sealStateIn(
  call: RequestContext<'requestState'>,
  { admitted, principal }: ResponsePlan,
  text: string,
  state: string | undefined,
): string | undefined {
  if (state === undefined) return text;
  const scope = stateScope(call.incoming.upstream, principal, admitted);
  const sealed = scope && call.ports.requestState.seal(state, scope);
  return sealed && setMember(text, ['result'], 'requestState', sealed);
}

const NO_INPUT_REQUESTS_SEEN: RememberedInputRequests = { has: () => false, add: () => undefined };

/** Identifies an input request by its whole content, because a server may reuse a key for a different one. */
function hashOf({ ports }: RequestContext<'audit'>, inputRequest: InputRequest): string {
  return ports.audit.keyedHash('arguments', JSON.stringify(inputRequest));
}

type InputRequestError = { readonly reason: Reason; readonly request: InputRequest };

function findInputRequestError({ inputRequests }: InputRequiredResult): InputRequestError | undefined {
  let size = 0;
  for (const request of inputRequests) {
    const { name, params } = request;
    // All forms of one result together may be no larger than a single form.
    size += name === 'elicitation/form' ? formSize(params) : 0;
    if (size > MAX_FORM_SIZE) return { reason: 'upstream-protocol', request };
    const reason = contentErrorOf(name, params);
    if (reason !== undefined) return { reason, request };
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
  const links = inputRequests.filter(({ name }) => name === 'elicitation/url');
  if (links.length === 0) return text;
  const requests = spanOf(text, [...holder, 'inputRequests']);
  const spans = new Map(requests && memberSpans(text, requests).map(({ name, value }) => [name, value]));
  return showLinks(
    text,
    links.map(({ key, params }) => ({ span: spanWithin(text, spans.get(key), ['params', 'url']), url: params['url'] })),
  );
}

/** The input request that caused a result to be withheld. */
function withheldFinding({ name }: InputRequest): Finding {
  const path = '/result/inputRequests';
  return { detector: `question:${name}`, direction: 'to-client', path, count: 1, action: 'withhold' };
}
