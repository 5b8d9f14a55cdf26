// Whose a message is: one member's by its name or URI, or all members'. A method that has no line here is
// refused at endpoints, because nobody could say whose it is.
// Source: docs/reference/protocol.md §6 row 49; MCP 2025-11-25 and 2026-07-28, methods.

import { isListed } from '../../policy/decide.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import type { Admitted, TaskFacts } from '../../protocol/admitted-request.js';
import { INVALID_PARAMS, METHOD_NOT_FOUND, protocolErrorOf } from '../../protocol/errors.js';
import { changeMembers } from '../../protocol/json/json.js';
import { isRequestId, type JsonObject, type Target } from '../../protocol/jsonrpc.js';
import { findFatal, requestBackends } from './fan-out.js';
import { joinHandshakes, joinLists } from './lists.js';
import { type Backend, backendOfName, isList, resultOf, withText } from './merge.js';
import {
  type BackendRequest,
  refuseUnknown,
  runBackendRequest,
  type Verified,
} from './requests.js';
import { backendRequestIn, backendRequestsOf, backendSessionsIn, findBackend } from './sessions.js';
import { listenTogether } from './streams.js';

// Whether a URI may come from a URI template: its literal parts stand there in their order, first and last at
// the ends. Generous on purpose, since it only tells apart servers that may both be read. Linear.
// Source: RFC 6570 §1.1 and §2.

const EXPRESSION = /\{[^{}]*\}/;

/** True where the template's literal parts occur in the URI in their order. */
export function fitsTemplate(uriTemplate: string, uri: string): boolean {
  const literals = uriTemplate.split(EXPRESSION);
  const [first = '', ...rest] = literals;
  if (rest.length === 0) return uri === uriTemplate;
  const last = rest.pop() ?? '';
  if (!uri.startsWith(first) || !uri.endsWith(last)) return false;
  const end = uri.length - last.length;
  let at = first.length;
  for (const literal of rest) {
    const found = uri.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return at <= end;
}

// Whose a task is: its sealed id opens at the one member that gave it to this caller, and nowhere else.

/** The task behind a sealed id, and its member; `undefined` for every id that this caller was not given here. */
export function findTask(
  { context, principal }: Verified,
  sealed: string,
): { readonly backend: Backend; readonly task: TaskFacts } | undefined {
  for (const backend of context.aggregate.backends) {
    const task = context.ports.tasks.open(sealed, { upstream: backend.upstream, principal });
    if (task !== undefined) return { backend, task };
  }
  return undefined;
}

// Whose a resource is. URIs have no prefix, so a member serves one where its rules let this caller see it;
// of several such members, the only one that listed it or whose approved template it fits. Where there are
// several, nobody guesses: another server could answer in the place of the right one.

/** The one member that serves what a message names by URI, or why there is not one. */
function findServing(
  verified: Verified,
  { target, era, apps }: Pick<Admitted, 'target' | 'era' | 'apps'>,
): Backend | 'nobody' | 'several' {
  const { context, principal } = verified;
  const client = { era, apps };
  const seen = context.aggregate.backends.filter((backend) =>
    maySee(verified, backend, target, client),
  );
  const [only, ...others] = seen;
  if (only === undefined) return 'nobody';
  if (others.length === 0) return only;
  if (target.kind !== 'resource') return 'several';
  const listing = context.ports.recallResource(
    { aggregate: context.aggregate.name, principal, uri: target.uri },
    seen.map(({ upstream }) => upstream),
  );
  // What one lists may be what the template of another gives: then both of them may have it.
  const claiming = seen.filter(
    (backend) =>
      listing.includes(backend.upstream) || hasTemplateFor(verified, backend, target.uri, client),
  );
  return onlyOne(claiming) ?? 'several';
}

type Client = Pick<Admitted, 'era' | 'apps'>;

function maySee(
  { context, principal }: Verified,
  { upstream }: Backend,
  target: Target,
  client: Client,
): boolean {
  const snapshot = context.aggregate.snapshot(upstream);
  if (snapshot === undefined) return false;
  return isListed(snapshot.policies, principal, upstream, target, snapshot.catalogueFor(client));
}

function hasTemplateFor(
  verified: Verified,
  backend: Backend,
  uri: string,
  client: Client,
): boolean {
  const catalogue = verified.context.aggregate.snapshot(backend.upstream)?.catalogueFor(client);
  const templates = catalogue?.names('template') ?? [];
  return templates.some(
    (uriTemplate) =>
      fitsTemplate(uriTemplate, uri) &&
      maySee(verified, backend, { kind: 'template', uriTemplate }, client),
  );
}

function onlyOne(backends: readonly Backend[]): Backend | undefined {
  return backends.length === 1 ? backends[0] : undefined;
}

type Route = (
  verified: Verified,
  admitted: Admitted,
) => Promise<Refusal | undefined> | Refusal | undefined;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['initialize', joinHandshakes],
  ['server/discover', joinHandshakes],
  ['tools/call', (verified, admitted) => callByName(verified, admitted, ['params', 'name'])],
  ['prompts/get', (verified, admitted) => callByName(verified, admitted, ['params', 'name'])],
  ['completion/complete', complete],
  ['resources/read', callByUri],
  ['resources/subscribe', callByUri],
  ['resources/unsubscribe', callByUri],
  ['subscriptions/listen', listenTogether],
  ['tasks/get', callByTask],
  ['tasks/result', callByTask],
  ['tasks/cancel', callByTask],
  ['tasks/update', callByTask],
  ['ping', requestAll],
  ['logging/setLevel', requestAll],
  ['notifications/initialized', notifyAll],
  ['notifications/cancelled', cancel],
  ['notifications/roots/list_changed', notifyAll],
]);

/** Sends an admitted message to the member or members that it concerns. */
export async function route(verified: Verified, admitted: Admitted): Promise<Refusal | undefined> {
  const { message, rule } = admitted;
  if (message.kind === 'result' || message.kind === 'error') return reply(verified, admitted);
  if (isList(rule.method)) return joinLists(verified, admitted);
  const own = ROUTES.get(rule.method);
  return own === undefined ? refuseMethod(admitted) : own(verified, admitted);
}

async function callByName(
  verified: Verified,
  admitted: Admitted,
  path: readonly string[],
): Promise<Refusal | undefined> {
  const { target, text } = admitted;
  const name = target.kind === 'tool' || target.kind === 'prompt' ? target.name : '';
  const found = backendOfName(verified.context.aggregate.backends, name);
  if (found === undefined) return refuseUnknown();
  const own = { ...target, name: found.name } as Target;
  const edited = { text: withText(text, path, found.name), name: found.name };
  return passOn(verified, admitted, found.backend, own, edited);
}

async function callByUri(verified: Verified, admitted: Admitted): Promise<Refusal | undefined> {
  const serving = findServing(verified, admitted);
  if (serving === 'nobody') return refuseUnknown();
  if (serving === 'several') return refuseAmbiguous(admitted);
  return passOn(verified, admitted, serving, admitted.target, {});
}

async function callByTask(verified: Verified, admitted: Admitted): Promise<Refusal | undefined> {
  const found = admitted.task && findTask(verified, admitted.task.sealed);
  if (found === undefined) return refuseWith('unknown-task', { listed: false });
  return passOn(verified, admitted, found.backend, admitted.target, {});
}

function complete(verified: Verified, admitted: Admitted): Promise<Refusal | undefined> {
  return admitted.target.kind === 'prompt'
    ? callByName(verified, admitted, ['params', 'ref', 'name'])
    : callByUri(verified, admitted);
}

/** Passes a message on to one member, whose exchange answers the client itself. */
async function passOn(
  verified: Verified,
  admitted: Admitted,
  backend: Backend,
  target: Target,
  edited: Pick<BackendRequest, 'text' | 'name'>,
): Promise<Refusal | undefined> {
  const backendRequest = backendRequestsOf(verified, admitted).find(
    (one) => one.backend.upstream === backend.upstream,
  );
  if (backendRequest === undefined) return refuseAbsent(verified, admitted, backend, target);
  const { incoming, outgoing } = verified.context;
  // Asked here too, where the refusal can name the request: an element of an array has no other answer.
  if (!incoming.enter(backend.upstream)) return refuseWith('overloaded');
  await runBackendRequest(verified, { ...backendRequest, ...edited }, outgoing);
  return undefined;
}

/** The member did not answer when the session was opened; who may not see the thing learns nothing of it. */
function refuseAbsent(
  { context, principal }: Verified,
  admitted: Admitted,
  { upstream }: Backend,
  target: Target,
): Refusal {
  const snapshot = context.aggregate.snapshot(upstream);
  const isSeen =
    snapshot !== undefined &&
    isListed(snapshot.policies, principal, upstream, target, snapshot.catalogueFor(admitted));
  return isSeen ? refuseWith('upstream-unavailable') : refuseUnknown();
}

/** The answer to a question goes to the member whose sealed id it carries. */
async function reply(verified: Verified, admitted: Admitted): Promise<undefined> {
  const { context, principal } = verified;
  const { incoming, ports, outgoing } = context;
  const backends =
    admitted.session === undefined ? [] : backendSessionsIn(context, principal, admitted.session);
  const sealed = sealedIdOf(incoming.body);
  const found = findBackend(backends, (scope) => ports.openServerRequest(sealed, scope), principal);
  if (found === undefined) throw new Error('an admitted answer has a question');
  await runBackendRequest(verified, backendRequestIn(found.session), outgoing);
  return undefined;
}

function sealedIdOf(body: Uint8Array): string {
  const { id } = JSON.parse(new TextDecoder().decode(body)) as { id?: unknown };
  return typeof id === 'string' ? id : '';
}

/** Asked of every member, because each of them has a session to keep or a level to set; one answer will do. */
async function requestAll(verified: Verified, admitted: Admitted): Promise<undefined> {
  const fan = await requestBackends(verified, backendRequestsOf(verified, admitted));
  const fatal = findFatal(verified, fan.outcomes, admitted.session !== undefined);
  const good = fan.outcomes.find(({ response }) => response.text && resultOf(response.text));
  if (fatal !== undefined || good === undefined) fan.fail(fatal);
  else fan.send(good.response.body);
  return undefined;
}

/** A notification that every member of the session may need; it is accepted where one accepts it. */
function notifyAll(verified: Verified, admitted: Admitted): Promise<undefined> {
  return notifyBackends(verified, backendRequestsOf(verified, admitted));
}

/**
 * A cancellation reaches the members that work on the request. Where none is known here (it has been answered,
 * or runs at another replica) all are told, because one of them may; then of the id alone, because all else may
 * say what was asked of another.
 */
function cancel(verified: Verified, admitted: Admitted): Promise<undefined> {
  const { incoming, ports } = verified.context;
  const { message, text } = admitted;
  const backendRequests = backendRequestsOf(verified, admitted);
  const params = ('params' in message ? message.params : undefined) ?? NO_PARAMS;
  const { requestId: id, ...rest } = params;
  const session = incoming.headers['mcp-session-id'];
  const working =
    session !== undefined && isRequestId(id) ? ports.findRunningBackends(session, id) : NO_BACKENDS;
  const known = backendRequests.filter(({ backend }) => working.includes(backend.upstream));
  if (known.length > 0) return notifyBackends(verified, known);
  const bare = changeMembers(text, { path: ['params'], cut: new Set(Object.keys(rest)) });
  return notifyBackends(
    verified,
    backendRequests.map((backendRequest) => ({ ...backendRequest, text: bare })),
  );
}

const NO_BACKENDS: readonly string[] = [];
const NO_PARAMS: JsonObject = {};

async function notifyBackends(
  verified: Verified,
  backendRequests: readonly BackendRequest[],
): Promise<undefined> {
  const { context } = verified;
  const fan = await requestBackends(verified, backendRequests);
  const fatal = findFatal(verified, fan.outcomes, true);
  const isAccepted = fan.outcomes.some(({ response }) => response.status === 202);
  if (isAccepted && fatal === undefined) context.outgoing.send(202, {}, '');
  else fan.fail(fatal);
  return undefined;
}

function refuseMethod({ era, message }: Admitted): Refusal {
  const errorContext = message.kind === 'request' ? { era, id: message.id } : { era };
  const status = era === '2026' ? 404 : message.kind === 'request' ? 200 : 400;
  const text = 'This method is not carried where several servers stand behind one endpoint.';
  return refuseProtocolError(
    protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, text, errorContext, status),
  );
}

function refuseAmbiguous({ era, message }: Admitted): Refusal {
  const errorContext = message.kind === 'request' ? { era, id: message.id } : { era };
  const text = 'Several servers of this endpoint may serve this resource. Ask one on its own path.';
  return refuseProtocolError(
    protocolErrorOf('invalid-message', INVALID_PARAMS, text, errorContext, 200),
  );
}
