// Whose a message is: one member's by its name or URI, or all members'. A method that has no line here is
// refused at endpoints, because nobody could say whose it is.
// Source: mcp-spec.md row 49; MCP 2025-11-25 and 2026-07-28, methods.

import type { Admitted } from '../../mcp/admitted.js';
import { faultOf, INVALID_PARAMS, METHOD_NOT_FOUND } from '../../mcp/faults.js';
import { isRequestId } from '../../mcp/jsonrpc.js';
import { resultOf } from '../../mcp/merge/handshakes.js';
import { isList } from '../../mcp/merge/lists.js';
import { type Member, memberOfName, withText } from '../../mcp/merge/prefixes.js';
import type { JsonObject, Target } from '../../mcp/message.js';
import { changeMembers } from '../../mcp/translate/members.js';
import { isListed } from '../../policy/decide.js';
import { type Refusal, refuseFault, refuseWith } from '../../policy/refusal.js';
import { askMembers, findFatal } from './fan-out.js';
import { joinHandshakes } from './handshake.js';
import { joinLists } from './list.js';
import { listenTogether } from './listen.js';
import { type PartOf, runPart } from './part.js';
import { findMember, membersIn, partIn, partsOf } from './sessions.js';
import { findTask } from './tasks.js';
import { findServing } from './uris.js';
import { refuseUnknown, type Verified } from './whole.js';

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
  ['ping', askAll],
  ['logging/setLevel', askAll],
  ['notifications/initialized', tellAll],
  ['notifications/cancelled', cancel],
  ['notifications/roots/list_changed', tellAll],
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
  const found = memberOfName(verified.whole.endpoint.members, name);
  if (found === undefined) return refuseUnknown();
  const own = { ...target, name: found.name } as Target;
  const edited = { text: withText(text, path, found.name), name: found.name };
  return passOn(verified, admitted, found.member, own, edited);
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
  return passOn(verified, admitted, found.member, admitted.target, {});
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
  member: Member,
  target: Target,
  edited: Pick<PartOf, 'text' | 'name'>,
): Promise<Refusal | undefined> {
  const part = partsOf(verified, admitted).find((one) => one.member.upstream === member.upstream);
  if (part === undefined) return refuseAbsent(verified, admitted, member, target);
  const { incoming, outgoing } = verified.whole;
  // Asked here too, where the refusal can name the request: an element of an array has no other answer.
  if (!incoming.enter(member.upstream)) return refuseWith('overloaded');
  await runPart(verified, { ...part, ...edited }, outgoing);
  return undefined;
}

/** The member did not answer when the session was opened; who may not see the thing learns nothing of it. */
function refuseAbsent(
  { whole, principal }: Verified,
  admitted: Admitted,
  { upstream }: Member,
  target: Target,
): Refusal {
  const view = whole.endpoint.view(upstream);
  const isSeen =
    view !== undefined &&
    isListed(view.policies, principal, upstream, target, view.catalogueFor(admitted));
  return isSeen ? refuseWith('upstream-unavailable') : refuseUnknown();
}

/** The answer to a question goes to the member whose sealed id it carries. */
async function reply(verified: Verified, admitted: Admitted): Promise<undefined> {
  const { whole, principal } = verified;
  const { incoming, ports, outgoing } = whole;
  const members =
    admitted.session === undefined ? [] : membersIn(whole, principal, admitted.session);
  const sealed = sealedIdOf(incoming.body);
  const found = findMember(members, (place) => ports.openQuestion(sealed, place), principal);
  if (found === undefined) throw new Error('an admitted answer has a question');
  await runPart(verified, partIn(found.session), outgoing);
  return undefined;
}

function sealedIdOf(body: Uint8Array): string {
  const { id } = JSON.parse(new TextDecoder().decode(body)) as { id?: unknown };
  return typeof id === 'string' ? id : '';
}

/** Asked of every member, because each of them has a session to keep or a level to set; one answer will do. */
async function askAll(verified: Verified, admitted: Admitted): Promise<undefined> {
  const fan = await askMembers(verified, partsOf(verified, admitted));
  const fatal = findFatal(verified, fan.answers, admitted.session !== undefined);
  const good = fan.answers.find(({ answer }) => answer.text && resultOf(answer.text));
  if (fatal !== undefined || good === undefined) fan.fail(fatal);
  else fan.send(good.answer.body);
  return undefined;
}

/** A notification that every member of the session may need; it is accepted where one accepts it. */
function tellAll(verified: Verified, admitted: Admitted): Promise<undefined> {
  return tell(verified, partsOf(verified, admitted));
}

/**
 * A cancellation reaches the members that work on the request. Where none is known here (it has been answered,
 * or runs at another replica) all are told, because one of them may; then of the id alone, because all else may
 * say what was asked of another.
 */
function cancel(verified: Verified, admitted: Admitted): Promise<undefined> {
  const { incoming, ports } = verified.whole;
  const { message, text } = admitted;
  const parts = partsOf(verified, admitted);
  const params = ('params' in message ? message.params : undefined) ?? NO_PARAMS;
  const { requestId: id, ...rest } = params;
  const session = incoming.headers['mcp-session-id'];
  const working =
    session !== undefined && isRequestId(id) ? ports.findParts(session, id) : NO_MEMBERS;
  const known = parts.filter(({ member }) => working.includes(member.upstream));
  if (known.length > 0) return tell(verified, known);
  const bare = changeMembers(text, { path: ['params'], cut: new Set(Object.keys(rest)) });
  return tell(
    verified,
    parts.map((part) => ({ ...part, text: bare })),
  );
}

const NO_MEMBERS: readonly string[] = [];
const NO_PARAMS: JsonObject = {};

async function tell(verified: Verified, parts: readonly PartOf[]): Promise<undefined> {
  const { whole } = verified;
  const fan = await askMembers(verified, parts);
  const fatal = findFatal(verified, fan.answers, true);
  const isAccepted = fan.answers.some(({ answer }) => answer.status === 202);
  if (isAccepted && fatal === undefined) whole.outgoing.send(202, {}, '');
  else fan.fail(fatal);
  return undefined;
}

function refuseMethod({ era, message }: Admitted): Refusal {
  const place = message.kind === 'request' ? { era, id: message.id } : { era };
  const status = era === '2026' ? 404 : message.kind === 'request' ? 200 : 400;
  const text = 'This method is not carried where several servers stand behind one endpoint.';
  return refuseFault(faultOf('method-forbidden', METHOD_NOT_FOUND, text, place, status));
}

function refuseAmbiguous({ era, message }: Admitted): Refusal {
  const place = message.kind === 'request' ? { era, id: message.id } : { era };
  const text = 'Several servers of this endpoint may serve this resource. Ask one on its own path.';
  return refuseFault(faultOf('invalid-message', INVALID_PARAMS, text, place, 200));
}
