// Joins the lists and handshakes of all backends. A page of the aggregate consists of a page of each backend,
// and its cursor holds the position of each. What the caller may see was decided by each backend's own pipeline
// run. A backend that does not respond is missing from the result; of one that hangs, a list shows the page that the
// same caller was shown last, if it is no older than `pinning.maxAge`, was kept under the version now in force, and
// every item of it would still be listed.
// Source: MCP 2025-11-25 and 2026-07-28, pagination; MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover.

import { isListed } from '../../policy/decide.js';
import { callerKeyOf } from '../../policy/principal.js';
import { type Refusal, refuseWith } from '../../policy/refusal.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import { isObject, type Json, type RequestId, type Target } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { METHOD_NOT_FOUND } from '../../protocol/responses.js';
import type { Snapshot } from '../ports.js';
import {
  type BackendOutcome,
  type BackendRequest,
  type FanOut,
  findFatalOutcome,
  isTimeout,
  refuseParams,
  requestBackends,
  type VerifiedRequest,
} from './backend-requests.js';
import {
  type BackendPage,
  joinDiscover,
  joinInitialize,
  joinPages,
  listItems,
  oldestVersion,
  readPage,
  replaceText,
  resultOf,
} from './merge.js';
import { backendRequestsOf, endUnusedSessions, sealSessions } from './sessions.js';

type Handshakes = ReturnType<typeof handshakesIn>;

/** Opens a session with all backends (`initialize`), or discovers them, and joins their results. */
export async function joinHandshakes(
  verified: VerifiedRequest,
  { rule, message }: AdmittedMessage,
): Promise<Refusal | undefined> {
  const { context } = verified;
  const { backends, server } = context.aggregate;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backends.map((backend) => ({ backend }));
  // A session is without the backends that did not answer its handshake, so that one is always waited for.
  const hanging =
    rule.method === 'initialize' ? undefined : context.ports.aggregates.hangingBackends;
  const fan = await requestBackends(verified, backendRequests, hanging);
  const handshakes = handshakesIn(fan.outcomes);
  const fatal = findFatalOutcome(verified, fan.outcomes, undefined);
  if (handshakes.length === 0 || fatal !== undefined) {
    endUnusedSessions(verified, fan.pending);
    fan.fail(fatal);
    return undefined;
  }
  if (rule.method === 'initialize') return openJointSession(verified, message.id, handshakes, fan);
  const isComplete = handshakes.length === backends.length;
  fan.send(joinDiscover(handshakes, { id: message.id, server, isComplete }));
  return undefined;
}

function openJointSession(
  verified: VerifiedRequest,
  id: RequestId,
  handshakes: Handshakes,
  fan: FanOut,
): Refusal | undefined {
  const { aggregate, outgoing } = verified.context;
  const { server } = aggregate;
  const version = oldestVersion(handshakes);
  const sealed = version && sealSessions(verified, version, handshakes);
  const isGiven = sealed !== undefined && !outgoing.isClosed;
  const used = isGiven ? handshakes.map((handshake) => handshake.sealed) : [];
  endUnusedSessions(verified, fan.pending, used);
  if (version === undefined || sealed === undefined) return refuseWith('upstream-protocol');
  const text = joinInitialize(handshakes, { id, version, server });
  fan.send(text, { 'mcp-session-id': sealed });
  return undefined;
}

function handshakesIn(outcomes: readonly BackendOutcome[]) {
  return outcomes.flatMap(({ backendRequest: { backend }, response: { text, headers } }) => {
    const result = text === undefined ? undefined : resultOf(text);
    const sealed = headers['mcp-session-id'] ?? '';
    return result === undefined ? [] : [{ backend, result, sealed }];
  });
}

/** The limit for all backends' cursors together, since sealed text is bounded (state/sealed-token.ts). */
const MAX_CURSOR_BYTES = 128 * 1024;

const FOREIGN_CURSOR = 'The cursor does not belong to this list.';

const encoder = new TextEncoder();

type Page = BackendPage & { readonly upstream: string };

/** Responds to a list request with the joined pages of the backends. */
export async function joinLists(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
): Promise<Refusal | undefined> {
  const { protocol, rule, message } = admitted;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const cursors = openCursors(verified, admitted);
  if (cursors === 'foreign') return refuseParams(admitted, FOREIGN_CURSOR);
  const backendRequests = backendRequestsToSend(verified, admitted, cursors);
  const { hangingBackends } = verified.context.ports.aggregates;
  const fan = await requestBackends(verified, backendRequests, hangingBackends);
  const fresh = fan.outcomes.flatMap((outcome) => pageOf(outcome, rule.method));
  const pages = withLastPages(verified, admitted, { backendRequests, fan, fresh, cursors });
  const fatal = findFatalOutcome(verified, fan.outcomes, admitted.session);
  if (fatal !== undefined || (pages.length === 0 && backendRequests.length > 0)) {
    fan.fail(fatal);
    return undefined;
  }
  const answered = new Set(fresh.map(({ upstream }) => upstream));
  const withoutList = fan.outcomes.filter(
    ({ backendRequest, response }) =>
      !answered.has(backendRequest.backend.upstream) && hasNoSuchList(response.text),
  );
  if (rule.method === 'resources/list') noteResources(verified, fresh, withoutList, cursors);
  const isComplete = fresh.length + withoutList.length === backendRequests.length;
  const nextCursor = cursorOf(verified, rule.method, pages);
  fan.send(
    joinPages(pages, { id: message.id, protocol, method: rule.method, nextCursor, isComplete }),
  );
  return undefined;
}

/** The cursor of each backend's list, by upstream. */
type Cursors = ReadonlyMap<string, string>;

/** Opens the client's cursor: `undefined` on the first page, `foreign` for a cursor that was not issued here. */
function openCursors(
  { context, principal }: VerifiedRequest,
  admitted: AdmittedMessage,
): Cursors | 'foreign' | undefined {
  const cursor = paramsOf(admitted)['cursor'];
  if (typeof cursor !== 'string') return undefined;
  const scope = { aggregate: context.aggregate.name, principal, method: admitted.rule.method };
  return context.ports.aggregates.openCursor(cursor, scope) ?? 'foreign';
}

/** The requests for all backends, or for those whose lists continue. */
function backendRequestsToSend(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  cursors: Cursors | undefined,
): readonly BackendRequest[] {
  const backendRequests = backendRequestsOf(verified, admitted);
  return cursors === undefined
    ? backendRequests
    : backendRequests.flatMap((backendRequest) => continueList(backendRequest, admitted, cursors));
}

/** An empty string is a valid cursor. */
function continueList(
  backendRequest: BackendRequest,
  { text }: AdmittedMessage,
  cursors: Cursors,
): readonly BackendRequest[] {
  const backendCursor = cursors.get(backendRequest.backend.upstream);
  return backendCursor === undefined
    ? []
    : [{ ...backendRequest, text: replaceText(text, ['params', 'cursor'], backendCursor) }];
}

/** Remembers which backend listed which resource, to route later reads by URI. */
function noteResources(
  { context: { aggregate, ports }, principal }: VerifiedRequest,
  pages: readonly Page[],
  withoutList: readonly BackendOutcome[],
  cursors: Cursors | undefined,
): void {
  const empty = withoutList.map(({ backendRequest }) => ({
    upstream: backendRequest.backend.upstream,
    uris: [],
    nextCursor: undefined,
  }));
  for (const { upstream, uris, nextCursor } of [...pages, ...empty]) {
    const page = { upstream, uris, cursor: cursors?.get(upstream), nextCursor };
    ports.aggregates.noteResources(aggregate.name, principal, page);
  }
}

/** What was asked, and which pages came. */
type Answers = {
  readonly backendRequests: readonly BackendRequest[];
  readonly fan: FanOut;
  readonly fresh: readonly Page[];
  readonly cursors: Cursors | undefined;
};

/** The pages in the order of the backends; those that hang have the page that this caller was shown last, if any. */
function withLastPages(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  { backendRequests, fan, fresh, cursors }: Answers,
): readonly Page[] {
  const { method } = admitted.rule;
  return backendRequests.flatMap((backendRequest) => {
    const { upstream } = backendRequest.backend;
    const position = { upstream, cursor: cursors?.get(upstream) };
    const response = fan.outcomes.find((one) => one.backendRequest === backendRequest)?.response;
    const page = fresh.find((one) => one.upstream === upstream);
    if (page !== undefined && response?.text !== undefined)
      keepPage(verified, admitted, position, response.text);
    if (response !== undefined && !isTimeout(response)) return page ?? [];
    const text = recallPage(verified, admitted, position);
    const last =
      text === undefined ? undefined : readPage(text, method, backendRequest.backend.prefix);
    return last === undefined ? [] : [{ ...last, upstream }];
  });
}

function pageOf({ backendRequest, response }: BackendOutcome, method: string): readonly Page[] {
  const { upstream, prefix } = backendRequest.backend;
  const page = response.text === undefined ? undefined : readPage(response.text, method, prefix);
  return page === undefined ? [] : [{ ...page, upstream }];
}

function cursorOf(
  { context, principal }: VerifiedRequest,
  method: string,
  pages: readonly Page[],
): string | undefined {
  const nextCursors = cursorsThatFit(pages);
  if (nextCursors.length === 0) return undefined;
  const scope = { aggregate: context.aggregate.name, principal, method };
  return context.ports.aggregates.sealCursor(new Map(nextCursors), scope);
}

/** Selects the cursors that fit. A list whose cursor is too long ends here, without ending the others. */
function cursorsThatFit(pages: readonly Page[]): readonly (readonly [string, string])[] {
  const nextCursors = pages.flatMap(({ upstream, nextCursor }) =>
    nextCursor === undefined ? [] : [[upstream, nextCursor] as const],
  );
  let bytesLeft = MAX_CURSOR_BYTES;
  return nextCursors
    .map((entry) => ({ entry, bytes: encoder.encode(JSON.stringify(entry)).byteLength }))
    .sort((one, other) => one.bytes - other.bytes)
    .filter(({ bytes }) => {
      bytesLeft -= bytes;
      return bytesLeft >= 0;
    })
    .map(({ entry }) => entry);
}

/** True if the backend does not implement the list. Then nothing is missing, unlike after a failure. */
function hasNoSuchList(text: string | undefined): boolean {
  const message: Json = text === undefined ? null : JSON.parse(text);
  const error = isObject(message) ? message['error'] : undefined;
  return isObject(error) && error['code'] === METHOD_NOT_FOUND;
}

/** A page of a backend's list: its position in the list. */
type Position = { readonly upstream: string; readonly cursor: string | undefined };

/** Keeps the response of a backend for when it hangs. */
function keepPage(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  position: Position,
  text: string,
): void {
  const { context, principal } = verified;
  const snapshot = context.aggregate.snapshot(position.upstream);
  if (snapshot === undefined || targetOf(admitted.rule.method, {}) === undefined) return;
  const key = keyOf(verified, admitted, position, snapshot);
  context.ports.aggregates.lastPages.keep(callerKeyOf(principal), key, text);
}

/** The response that was kept; `undefined` where there is none that may be shown now. */
function recallPage(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  position: Position,
): string | undefined {
  const { context, principal } = verified;
  const { upstream } = position;
  const snapshot = context.aggregate.snapshot(upstream);
  if (snapshot === undefined || !snapshot.isFresh) return undefined;
  const key = keyOf(verified, admitted, position, snapshot);
  const text = context.ports.aggregates.lastPages.recall(callerKeyOf(principal), key, upstream);
  if (text === undefined) return undefined;
  const { method } = admitted.rule;
  const catalog = snapshot.catalogFor(admitted);
  const isShown = (item: Json): boolean => {
    const target = targetOf(method, item);
    return (
      target !== undefined && isListed(snapshot.policies, principal, upstream, target, catalog)
    );
  };
  return listItems(text, method)?.every(isShown) === true ? text : undefined;
}

/** The target of an item in rules; `undefined` for lists whose pages are not kept. */
function targetOf(method: string, item: Json): Target | undefined {
  const textAt = (member: string): string => {
    const value = isObject(item) ? item[member] : undefined;
    return typeof value === 'string' ? value : '';
  };
  switch (method) {
    case 'tools/list':
      return { kind: 'tool', name: textAt('name') };
    case 'prompts/list':
      return { kind: 'prompt', name: textAt('name') };
    case 'resources/list':
      return { kind: 'resource', uri: textAt('uri') };
    case 'resources/templates/list':
      return { kind: 'template', uriTemplate: textAt('uriTemplate') };
    default:
      return undefined;
  }
}

/** Includes the version in force, so that no page outlives a change of configuration, policy or pins. */
function keyOf(
  { context }: VerifiedRequest,
  { rule, version, apps }: AdmittedMessage,
  { upstream, cursor }: Position,
  { versions }: Snapshot,
): string {
  const { config, policy, pins } = versions;
  return JSON.stringify([
    ...[context.aggregate.name, upstream, rule.method, cursor ?? null, version, apps],
    ...[config, policy, pins],
  ]);
}
