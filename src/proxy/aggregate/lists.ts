// One list out of the lists of all members: a page of ours holds a page of each, and its cursor says where
// each of them goes on. What of a list a caller may see, each member's own exchange has decided.
// Source: MCP 2025-11-25 and 2026-07-28, pagination.

import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import type { Admitted } from '../../protocol/admitted-request.js';
import { INVALID_PARAMS, METHOD_NOT_FOUND, protocolErrorOf } from '../../protocol/errors.js';
import { isObject, type Json, type RequestId } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../features/input-required.js';
import { type BackendOutcome, type FanOut, findFatal, requestBackends } from './fan-out.js';
import {
  type BackendPage,
  joinDiscover,
  joinInitialize,
  joinPages,
  oldestVersion,
  readPage,
  resultOf,
  withText,
} from './merge.js';
import type { BackendRequest, Verified } from './requests.js';
import { backendRequestsOf, sealTogether } from './sessions.js';

// Opens a session with all members of an endpoint, or discovers them: each is asked by its own exchange, and
// what they say of themselves becomes one answer. A member that does not answer is missing from it.
// Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover.

type Handshakes = ReturnType<typeof handshakesIn>;

/** Answers `initialize` or `server/discover`. */
export async function joinHandshakes(
  verified: Verified,
  { rule, message }: Admitted,
): Promise<Refusal | undefined> {
  const { context } = verified;
  const { backends, server } = context.aggregate;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backends.map((backend) => ({ backend }));
  const fan = await requestBackends(verified, backendRequests);
  const handshakes = handshakesIn(fan.outcomes);
  const fatal = findFatal(verified, fan.outcomes, false);
  if (handshakes.length === 0 || fatal !== undefined) {
    fan.fail(fatal);
    return undefined;
  }
  if (rule.method === 'initialize') return openTogether(verified, message.id, handshakes, fan);
  const isComplete = handshakes.length === backends.length;
  fan.send(joinDiscover(handshakes, { id: message.id, server, isComplete }));
  return undefined;
}

function openTogether(
  verified: Verified,
  id: RequestId,
  handshakes: Handshakes,
  fan: FanOut,
): Refusal | undefined {
  const { server } = verified.context.aggregate;
  const version = oldestVersion(handshakes);
  const sealed = version && sealTogether(verified, version, handshakes);
  if (version === undefined || sealed === undefined) return refuseWith('upstream-protocol');
  const text = joinInitialize(handshakes, { id, version, server });
  fan.send(text, { 'mcp-session-id': sealed ?? '' });
  return undefined;
}

function handshakesIn(outcomes: readonly BackendOutcome[]) {
  return outcomes.flatMap(({ backendRequest: { backend }, response: { text, headers } }) => {
    const result = text === undefined ? undefined : resultOf(text);
    const sealed = headers['mcp-session-id'] ?? '';
    return result === undefined ? [] : [{ backend, result, sealed }];
  });
}

/** Of all members together: sealed, they are read up to a length (state/sealed-values.ts). */
const MAX_CURSOR_BYTES = 128 * 1024;

const encoder = new TextEncoder();

type Page = BackendPage & { readonly upstream: string };

/** Answers a list. */
export async function joinLists(
  verified: Verified,
  admitted: Admitted,
): Promise<Refusal | undefined> {
  const { era, rule, message } = admitted;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const cursors = openCursors(verified, admitted);
  if (cursors === 'foreign') return refuseCursor(admitted);
  const backendRequests = backendRequestsToSend(verified, admitted, cursors);
  const fan = await requestBackends(verified, backendRequests);
  const pages = fan.outcomes.flatMap((outcome) => pageOf(outcome, rule.method));
  const fatal = findFatal(verified, fan.outcomes, admitted.session !== undefined);
  if (fatal !== undefined || (pages.length === 0 && backendRequests.length > 0)) {
    fan.fail(fatal);
    return undefined;
  }
  const without = fan.outcomes.filter(({ response }) => hasNoSuchList(response.text));
  if (rule.method === 'resources/list') noteResources(verified, pages, without, cursors);
  const isComplete = pages.length + without.length === backendRequests.length;
  const nextCursor = cursorOf(verified, rule.method, pages);
  fan.send(joinPages(pages, { id: message.id, era, method: rule.method, nextCursor, isComplete }));
  return undefined;
}

/** Where each member's list goes on, by its upstream. */
type Cursors = ReadonlyMap<string, string>;

/** Those that the client brings back; `undefined` where it begins, `foreign` for a cursor that is not ours. */
function openCursors(
  { context, principal }: Verified,
  admitted: Admitted,
): Cursors | 'foreign' | undefined {
  const cursor = paramsOf(admitted)['cursor'];
  if (typeof cursor !== 'string') return undefined;
  const scope = { aggregate: context.aggregate.name, principal, method: admitted.rule.method };
  return context.ports.openCursor(cursor, scope) ?? 'foreign';
}

/** All members, or those whose list goes on. */
function backendRequestsToSend(
  verified: Verified,
  admitted: Admitted,
  cursors: Cursors | undefined,
): readonly BackendRequest[] {
  const backendRequests = backendRequestsOf(verified, admitted);
  return cursors === undefined
    ? backendRequests
    : backendRequests.flatMap((backendRequest) => goOn(backendRequest, admitted, cursors));
}

/** The empty text is a cursor like any other. */
function goOn(
  backendRequest: BackendRequest,
  { text }: Admitted,
  cursors: Cursors,
): readonly BackendRequest[] {
  const own = cursors.get(backendRequest.backend.upstream);
  return own === undefined
    ? []
    : [{ ...backendRequest, text: withText(text, ['params', 'cursor'], own) }];
}

/** What was listed tells whose a resource is when it is read. */
function noteResources(
  { context: { aggregate, ports }, principal }: Verified,
  pages: readonly Page[],
  without: readonly BackendOutcome[],
  cursors: Cursors | undefined,
): void {
  const empty = without.map(({ backendRequest }) => ({
    upstream: backendRequest.backend.upstream,
    uris: [],
    nextCursor: undefined,
  }));
  for (const { upstream, uris, nextCursor } of [...pages, ...empty]) {
    const cursor = cursors?.get(upstream);
    ports.noteResources(aggregate.name, principal, { upstream, uris, cursor, nextCursor });
  }
}

function pageOf({ backendRequest, response }: BackendOutcome, method: string): readonly Page[] {
  const { upstream, prefix } = backendRequest.backend;
  const page = response.text === undefined ? undefined : readPage(response.text, method, prefix);
  return page === undefined ? [] : [{ ...page, upstream }];
}

function cursorOf(
  { context, principal }: Verified,
  method: string,
  pages: readonly Page[],
): string | undefined {
  const more = fitting(pages);
  if (more.length === 0) return undefined;
  const scope = { aggregate: context.aggregate.name, principal, method };
  return context.ports.sealCursor(new Map(more), scope);
}

/** Where the lists go on. One whose cursor is too long ends here, and takes those of others not with it. */
function fitting(pages: readonly Page[]): readonly (readonly [string, string])[] {
  const more = pages.flatMap(({ upstream, nextCursor }) =>
    nextCursor === undefined ? [] : [[upstream, nextCursor] as const],
  );
  let left = MAX_CURSOR_BYTES;
  return more
    .map((entry) => ({ entry, bytes: encoder.encode(JSON.stringify(entry)).byteLength }))
    .sort((one, other) => one.bytes - other.bytes)
    .filter(({ bytes }) => {
      left -= bytes;
      return left >= 0;
    })
    .map(({ entry }) => entry);
}

/** A member that knows no such list lacks nothing; one that could not answer does. */
function hasNoSuchList(text: string | undefined): boolean {
  const message: Json = text === undefined ? null : JSON.parse(text);
  const error = isObject(message) ? message['error'] : undefined;
  return isObject(error) && error['code'] === METHOD_NOT_FOUND;
}

function refuseCursor({ era, message }: Admitted): Refusal {
  const errorContext = message.kind === 'request' ? { era, id: message.id } : { era };
  const text = 'The cursor is not one of this list.';
  return refuseProtocolError(
    protocolErrorOf('invalid-message', INVALID_PARAMS, text, errorContext, 200),
  );
}
