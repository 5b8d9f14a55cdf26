// Reads every page of an upstream's lists, and the `ui://` resources that its tools refer to: their content
// is pinned like a definition, because a host runs it. No other reference is followed. An absent cursor ends
// a list and an empty one does not; a repeated cursor and an endless list are refused. Never returns a
// partial list.
// MCP 2025-11-25 and 2026-07-28, pagination. Source: MCP Apps extension (SEP-1865), `_meta.ui.resourceUri`;
// docs/contract.md §5.

import { METHOD_NOT_FOUND } from '../../protocol/errors.js';
import { elementSpans, hasInexactNumber, spanOf } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import type { ListedItem } from '../../protocol/listings.js';
import { DIRECT_MESSAGE_READER, type MessageReader, runInTurns } from '../message-reader.js';
import type { CallOutcome, ListingError } from './request.js';

/** Sends one request of the listing. */
export type ListingQuery = (method: string, params: JsonObject) => Promise<CallOutcome>;

type AppsRead = { readonly kind: 'items'; readonly items: readonly ListedItem[] } | ListReadError;

/** Resources read per listing. Those beyond it are not read and therefore not pinned. */
const MAX_APP_RESOURCES = 200;
const SCHEME = 'ui://';

/**
 * Reads every `ui://` resource that a tool names, once each, as `{uri, contents}`, in the order of the tools.
 * A resource that the upstream does not have is left out; if the upstream fails, the listing fails.
 */
async function readAppResources(
  tools: readonly ListedItem[],
  capabilities: JsonObject,
  sendQuery: ListingQuery,
): Promise<AppsRead> {
  if (!isObject(capabilities['resources'])) return { kind: 'items', items: [] };
  const uris = new Set(tools.flatMap(({ definition }) => appResourceOf(definition) ?? []));
  const items: ListedItem[] = [];
  for (const uri of [...uris].slice(0, MAX_APP_RESOURCES)) {
    const response = await sendQuery('resources/read', { uri });
    if (response.kind === 'failed') return response;
    const item = response.kind === 'result' ? readItem(uri, response) : undefined;
    if (item !== undefined) items.push(item);
  }
  return { kind: 'items', items };
}

/** The `ui://` resource named by a tool's definition, in the current or the older member. */
function appResourceOf(definition: JsonObject): string | undefined {
  const meta = definition['_meta'];
  if (!isObject(meta)) return undefined;
  const ui = meta['ui'];
  const named: Json | undefined = isObject(ui) ? ui['resourceUri'] : meta['ui/resourceUri'];
  return typeof named === 'string' && named.startsWith(SCHEME) ? named : undefined;
}

function readItem(
  uri: string,
  { result, text }: { readonly result: JsonObject; readonly text: string },
): ListedItem | undefined {
  const contents = result['contents'];
  const span = spanOf(text, ['result', 'contents']);
  if (contents === undefined || span === undefined) return undefined;
  return { definition: { uri, contents }, isExact: !hasInexactNumber(text, span) };
}

/** Caps of one listing, over all its lists. */
export type ListingCaps = {
  readonly maxPages: number;
  readonly maxItems: number;
  readonly maxBytes: number;
};

export const LISTING_CAPS: ListingCaps = {
  maxPages: 1000,
  maxItems: 10_000,
  maxBytes: 8 * 1024 * 1024,
};

/** The lists that are read: the method, the member with the items, and the member that names an item. */
const LISTS = {
  tools: { method: 'tools/list', member: 'tools', name: 'name', capability: 'tools' },
  prompts: { method: 'prompts/list', member: 'prompts', name: 'name', capability: 'prompts' },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    name: 'uriTemplate',
    capability: 'resources',
  },
} as const;

type ListName = keyof typeof LISTS;

type Lists = { readonly [name in ListName]: readonly ListedItem[] } & {
  /** The `ui://` resources that tools refer to. */
  readonly resources: readonly ListedItem[];
};

/** Why reading ended early. `refused` has the HTTP status of the response. */
export type ListReadError =
  | { readonly kind: 'failed'; readonly why: ListingError }
  | { readonly kind: 'refused'; readonly status: number };

type ListsOutcome = { readonly kind: 'lists'; readonly lists: Lists } | ListReadError;

/** Reads every page of every list whose capability the upstream declares, and the resources of its tools. */
export async function readLists(
  capabilities: JsonObject,
  limits: ListingCaps,
  sendQuery: ListingQuery,
  messageReader: MessageReader = DIRECT_MESSAGE_READER,
): Promise<ListsOutcome> {
  const remaining = { pages: limits.maxPages, items: limits.maxItems };
  const lists: Record<ListName, readonly ListedItem[]> = { tools: [], prompts: [], templates: [] };
  for (const name of ['tools', 'prompts', 'templates'] as const) {
    if (!isObject(capabilities[LISTS[name].capability])) continue;
    const outcome = await readList(name, remaining, sendQuery, messageReader);
    if (outcome.kind !== 'items') return outcome;
    lists[name] = outcome.items;
  }
  const apps = await readAppResources(lists.tools, capabilities, sendQuery);
  return apps.kind === 'items'
    ? { kind: 'lists', lists: { ...lists, resources: apps.items } }
    : apps;
}

type ListOutcome =
  | { readonly kind: 'items'; readonly items: readonly ListedItem[] }
  | ListReadError;

const PROTOCOL: ListReadError = { kind: 'failed', why: 'protocol' };

async function readList(
  name: ListName,
  remaining: { pages: number; items: number },
  sendQuery: ListingQuery,
  messageReader: MessageReader,
): Promise<ListOutcome> {
  const items: ListedItem[] = [];
  const seenCursors = new Set<string | undefined>();
  let cursor: string | undefined;
  do {
    remaining.pages -= 1;
    if (remaining.pages < 0 || seenCursors.has(cursor)) return PROTOCOL;
    seenCursors.add(cursor);
    const response = await sendQuery(LISTS[name].method, cursor === undefined ? {} : { cursor });
    if (response.kind !== 'result') return listReadErrorOf(name, response, cursor);
    const page = await readPage(name, response, messageReader);
    remaining.items -= page?.items.length ?? 0;
    if (page === undefined || remaining.items < 0) return PROTOCOL;
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { kind: 'items', items };
}

/** A server with resources may have no templates, and then need not know the method. */
function listReadErrorOf(
  name: ListName,
  response: Exclude<CallOutcome, { readonly kind: 'result' }>,
  cursor: string | undefined,
): ListOutcome {
  if (response.kind === 'failed') return response;
  const isUnknown = response.error?.code === METHOD_NOT_FOUND && cursor === undefined;
  if (name === 'templates' && isUnknown) return { kind: 'items', items: [] };
  return { kind: 'refused', status: response.status };
}

type ReadPage = { readonly items: readonly ListedItem[]; readonly nextCursor: string | undefined };

/** The members of a response that a page is read from. */
type PageResponse = Pick<
  Extract<CallOutcome, { readonly kind: 'result' }>,
  'result' | 'text' | 'suspectNumbers'
>;

async function readPage(
  name: ListName,
  { result, text, suspectNumbers }: PageResponse,
  messageReader: MessageReader,
): Promise<ReadPage | undefined> {
  const { member, name: nameMember } = LISTS[name];
  const entries = result[member];
  const nextCursor = result['nextCursor'];
  if (!Array.isArray(entries)) return undefined;
  if (nextCursor !== undefined && typeof nextCursor !== 'string') return undefined;
  if (!entries.every((one: Json): one is JsonObject => isNamed(one, nameMember))) return undefined;
  // If no number is suspect, the positions of the items are not needed.
  if (!suspectNumbers)
    return { items: entries.map((definition) => ({ definition, isExact: true })), nextCursor };
  const list = spanOf(text, ['result', member]);
  const spans = list === undefined ? [] : elementSpans(text, list);
  if (spans.length !== entries.length) return undefined;
  const items: ListedItem[] = [];
  await runInTurns(messageReader, entries.entries(), ([index, definition]) => {
    const span = spans[index];
    const isExact = span !== undefined && !hasInexactNumber(text, span);
    items.push({ definition, isExact });
  });
  return { items, nextCursor };
}

function isNamed(definition: Json, nameMember: string): definition is JsonObject {
  if (!isObject(definition)) return false;
  return typeof definition[nameMember] === 'string' && definition[nameMember] !== '';
}
