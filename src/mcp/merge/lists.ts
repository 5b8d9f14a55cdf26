// Makes one page of a list out of the pages of several members: items byte for byte but for the prefix of
// their names, in the order of the members. Reads pages that were judged; judges nothing itself.
// Source: MCP 2025-11-25 and 2026-07-28, pagination; 2026-07-28, caching.

import { elementSpans, spanOf } from '../json.js';
import { type Era, isObject, type Json, type RequestId } from '../message.js';
import { withText } from './prefixes.js';

/** Where the items of a list stand, and whether they have names that take a prefix; resources have URIs, tasks sealed ids. */
type ListMember = { readonly member: string; readonly isNamed: boolean };

const LIST_MEMBERS: ReadonlyMap<string, ListMember> = new Map([
  ['tools/list', { member: 'tools', isNamed: true }],
  ['prompts/list', { member: 'prompts', isNamed: true }],
  ['resources/list', { member: 'resources', isNamed: false }],
  ['resources/templates/list', { member: 'resourceTemplates', isNamed: false }],
  ['tasks/list', { member: 'tasks', isNamed: false }],
]);

/** A page of one member, ready to be joined with others. */
export type BackendPage = {
  readonly items: readonly string[];
  /** URIs of the items, where they are resources. */
  readonly uris: readonly string[];
  readonly nextCursor: string | undefined;
  readonly ttlMs: number;
};

/** True for the methods whose answers can be joined. */
export function isList(method: string): boolean {
  return LIST_MEMBERS.has(method);
}

/** Reads a member's answer; `undefined` where it is an error. */
export function readPage(text: string, method: string, prefix: string): BackendPage | undefined {
  const listMember = LIST_MEMBERS.get(method);
  const message: Json = JSON.parse(text);
  const result = isObject(message) ? message['result'] : undefined;
  const list = isObject(result) && listMember !== undefined ? result[listMember.member] : undefined;
  if (listMember === undefined || !isObject(result) || !Array.isArray(list)) return undefined;
  const span = spanOf(text, ['result', listMember.member]);
  const spans = span === undefined ? [] : elementSpans(text, span);
  const { nextCursor, ttlMs } = { nextCursor: result['nextCursor'], ttlMs: result['ttlMs'] };
  return {
    items: spans.map(({ start, end }, index) =>
      itemText(text.slice(start, end), list[index] ?? null, listMember, prefix),
    ),
    uris: method === 'resources/list' ? list.flatMap(uriOf) : [],
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' ? ttlMs : 0,
  };
}

function itemText(text: string, item: Json, { isNamed }: ListMember, prefix: string): string {
  const name = isNamed && isObject(item) ? item['name'] : undefined;
  return typeof name === 'string' ? withText(text, ['name'], prefix + name) : text;
}

function uriOf(item: Json): readonly string[] {
  const uri = isObject(item) ? item['uri'] : undefined;
  return typeof uri === 'string' ? [uri] : [];
}

/** What the answer says besides its items. */
export type JoinedList = {
  readonly id: RequestId;
  readonly era: Era;
  readonly method: string;
  /** A cursor of our own, where a member has more. */
  readonly nextCursor: string | undefined;
  /** False where a member is missing: the list may be whole again in a moment. */
  readonly isComplete: boolean;
};

/** One answer out of all pages. It depends on the caller, so no cache may share it. */
export function joinPages(pages: readonly BackendPage[], list: JoinedList): string {
  const { id, era, method, nextCursor, isComplete } = list;
  const members = [
    `${JSON.stringify(LIST_MEMBERS.get(method)?.member)}:[${pages.flatMap(({ items }) => items).join(',')}]`,
  ];
  if (nextCursor !== undefined) members.push(`"nextCursor":${JSON.stringify(nextCursor)}`);
  if (era === '2026') {
    const ttlMs = isComplete && pages.length > 0 ? Math.min(...pages.map((page) => page.ttlMs)) : 0;
    members.push('"resultType":"complete"', '"cacheScope":"private"', `"ttlMs":${ttlMs}`);
  }
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${members.join(',')}}}`;
}
