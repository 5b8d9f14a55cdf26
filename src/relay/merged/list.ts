// One list out of the lists of all members: a page of ours holds a page of each, and its cursor says where
// each of them goes on. What of a list a caller may see, each member's own exchange has decided.
// Source: MCP 2025-11-25 and 2026-07-28, pagination.

import type { Admitted } from '../../mcp/admitted.js';
import { faultOf, INVALID_PARAMS, METHOD_NOT_FOUND } from '../../mcp/faults.js';
import { joinPages, type MemberPage, readPage } from '../../mcp/merge/lists.js';
import { withText } from '../../mcp/merge/prefixes.js';
import { isObject, type Json } from '../../mcp/message.js';
import { type Refusal, refuseFault, refuseWith } from '../../policy/refusal.js';
import { paramsOf } from '../retry.js';
import { type Answered, askMembers, findFatal } from './fan-out.js';
import type { PartOf } from './part.js';
import { partsOf } from './sessions.js';
import type { Verified } from './whole.js';

/** Of all members together: sealed, they are read up to a length (state/cursor-seal.ts). */
const MAX_CURSOR_BYTES = 128 * 1024;

const encoder = new TextEncoder();

type Page = MemberPage & { readonly upstream: string };

/** Answers a list. */
export async function joinLists(
  verified: Verified,
  admitted: Admitted,
): Promise<Refusal | undefined> {
  const { era, rule, message } = admitted;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const cursors = openCursors(verified, admitted);
  if (cursors === 'foreign') return refuseCursor(admitted);
  const parts = partsToAsk(verified, admitted, cursors);
  const fan = await askMembers(verified, parts);
  const pages = fan.answers.flatMap((answered) => pageOf(answered, rule.method));
  const fatal = findFatal(verified, fan.answers, admitted.session !== undefined);
  if (fatal !== undefined || (pages.length === 0 && parts.length > 0)) {
    fan.fail(fatal);
    return undefined;
  }
  const without = fan.answers.filter(({ answer }) => hasNoSuchList(answer.text));
  if (rule.method === 'resources/list') noteResources(verified, pages, without, cursors);
  const isWhole = pages.length + without.length === parts.length;
  const nextCursor = cursorOf(verified, rule.method, pages);
  fan.send(joinPages(pages, { id: message.id, era, method: rule.method, nextCursor, isWhole }));
  return undefined;
}

/** Where each member's list goes on, by its upstream. */
type Cursors = ReadonlyMap<string, string>;

/** Those that the client brings back; `undefined` where it begins, `foreign` for a cursor that is not ours. */
function openCursors(
  { whole, principal }: Verified,
  admitted: Admitted,
): Cursors | 'foreign' | undefined {
  const cursor = paramsOf(admitted)['cursor'];
  if (typeof cursor !== 'string') return undefined;
  const place = { endpoint: whole.endpoint.name, principal, method: admitted.rule.method };
  return whole.ports.openCursor(cursor, place) ?? 'foreign';
}

/** All members, or those whose list goes on. */
function partsToAsk(
  verified: Verified,
  admitted: Admitted,
  cursors: Cursors | undefined,
): readonly PartOf[] {
  const parts = partsOf(verified, admitted);
  return cursors === undefined ? parts : parts.flatMap((part) => goOn(part, admitted, cursors));
}

/** The empty text is a cursor like any other. */
function goOn(part: PartOf, { text }: Admitted, cursors: Cursors): readonly PartOf[] {
  const own = cursors.get(part.member.upstream);
  return own === undefined ? [] : [{ ...part, text: withText(text, ['params', 'cursor'], own) }];
}

/** What was listed tells whose a resource is when it is read. */
function noteResources(
  { whole: { endpoint, ports }, principal }: Verified,
  pages: readonly Page[],
  without: readonly Answered[],
  cursors: Cursors | undefined,
): void {
  const empty = without.map(({ part }) => ({
    upstream: part.member.upstream,
    uris: [],
    nextCursor: undefined,
  }));
  for (const { upstream, uris, nextCursor } of [...pages, ...empty]) {
    const cursor = cursors?.get(upstream);
    ports.noteResources(endpoint.name, principal, { upstream, uris, cursor, nextCursor });
  }
}

function pageOf({ part, answer }: Answered, method: string): readonly Page[] {
  const { upstream, prefix } = part.member;
  const page = answer.text === undefined ? undefined : readPage(answer.text, method, prefix);
  return page === undefined ? [] : [{ ...page, upstream }];
}

function cursorOf(
  { whole, principal }: Verified,
  method: string,
  pages: readonly Page[],
): string | undefined {
  const more = fitting(pages);
  if (more.length === 0) return undefined;
  const place = { endpoint: whole.endpoint.name, principal, method };
  return whole.ports.sealCursor(new Map(more), place);
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
  const place = message.kind === 'request' ? { era, id: message.id } : { era };
  const text = 'The cursor is not one of this list.';
  return refuseFault(faultOf('invalid-message', INVALID_PARAMS, text, place, 200));
}
