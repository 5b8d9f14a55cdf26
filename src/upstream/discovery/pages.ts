// Walks every page of an upstream's lists. An absent cursor ends a list, an empty one does not; a
// cursor that comes back is refused, and so is a list without end. Never keeps half a list.
// MCP 2025-11-25 and 2026-07-28, pagination.

import { elementSpans, hasInexactNumber, spanOf } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import type { ListedItem } from '../../protocol/listings.js';
import { DIRECT_MESSAGE_READER, type MessageReader, runInTurn } from '../message-reader.js';
import type { CallOutcome, ListingError } from './request.js';

// Reads what the tools of an upstream refer to: the `ui://` resources that a host shows in place of a
// result. Their content is pinned like a definition, because a host runs it. Follows no other reference.
// Source: MCP Apps extension (SEP-1865), `_meta.ui.resourceUri`; docs/contract.md §5.

/** Sends one request of the listing. */
export type ListingQuery = (method: string, params: JsonObject) => Promise<CallOutcome>;

type AppsRead = { readonly kind: 'items'; readonly items: readonly ListedItem[] } | WalkError;

/** Resources read in one listing; tools that refer to more have the rest unread, and so unpinned. */
const MAX_APP_RESOURCES = 200;
const SCHEME = 'ui://';

/**
 * Every `ui://` resource that a tool names, as `{uri, contents}`, each once, in the order of the tools.
 * One that the upstream does not have is left out; an upstream that fails is a fault of the listing.
 */
async function readAppResources(
  tools: readonly ListedItem[],
  capabilities: JsonObject,
  ask: ListingQuery,
): Promise<AppsRead> {
  if (!isObject(capabilities['resources'])) return { kind: 'items', items: [] };
  const uris = new Set(tools.flatMap(({ definition }) => appResourceOf(definition) ?? []));
  const items: ListedItem[] = [];
  for (const uri of [...uris].slice(0, MAX_APP_RESOURCES)) {
    const response = await ask('resources/read', { uri });
    if (response.kind === 'failed') return response;
    const item = response.kind === 'result' ? readItem(uri, response) : undefined;
    if (item !== undefined) items.push(item);
  }
  return { kind: 'items', items };
}

/** The `ui://` resource that a tool's definition names, in the present or the older place. */
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

/** The lists that are walked: method, the member that holds the items, and the one that names each. */
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
  /** What tools refer to. */
  readonly resources: readonly ListedItem[];
};

/** Why a walk ended early. `refused` carries the HTTP status of the answer. */
export type WalkError =
  | { readonly kind: 'failed'; readonly why: ListingError }
  | { readonly kind: 'refused'; readonly status: number };

type Walk = { readonly kind: 'lists'; readonly lists: Lists } | WalkError;

/** JSON-RPC 2.0 §5.1. */
const METHOD_NOT_FOUND = -32601;

/** Every page of every list whose capability the upstream declares, and what its tools refer to. */
export async function walkLists(
  capabilities: JsonObject,
  caps: ListingCaps,
  ask: ListingQuery,
  messageReader: MessageReader = DIRECT_MESSAGE_READER,
): Promise<Walk> {
  const left = { pages: caps.maxPages, items: caps.maxItems };
  const lists: Record<ListName, readonly ListedItem[]> = { tools: [], prompts: [], templates: [] };
  for (const name of ['tools', 'prompts', 'templates'] as const) {
    if (!isObject(capabilities[LISTS[name].capability])) continue;
    const walked = await walkList(name, left, ask, messageReader);
    if (walked.kind !== 'items') return walked;
    lists[name] = walked.items;
  }
  const apps = await readAppResources(lists.tools, capabilities, ask);
  return apps.kind === 'items'
    ? { kind: 'lists', lists: { ...lists, resources: apps.items } }
    : apps;
}

type ListWalk = { readonly kind: 'items'; readonly items: readonly ListedItem[] } | WalkError;

const PROTOCOL: WalkError = { kind: 'failed', why: 'protocol' };

async function walkList(
  name: ListName,
  left: { pages: number; items: number },
  ask: ListingQuery,
  messageReader: MessageReader,
): Promise<ListWalk> {
  const items: ListedItem[] = [];
  const asked = new Set<string | undefined>();
  let cursor: string | undefined;
  do {
    left.pages -= 1;
    if (left.pages < 0 || asked.has(cursor)) return PROTOCOL;
    asked.add(cursor);
    const response = await ask(LISTS[name].method, cursor === undefined ? {} : { cursor });
    if (response.kind !== 'result') return walkErrorOf(name, response, cursor);
    const page = await readPage(name, response, messageReader);
    left.items -= page?.items.length ?? 0;
    if (page === undefined || left.items < 0) return PROTOCOL;
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { kind: 'items', items };
}

/** A server with resources may have no templates at all, and then need not know the method. */
function walkErrorOf(
  name: ListName,
  response: Exclude<CallOutcome, { readonly kind: 'result' }>,
  cursor: string | undefined,
): ListWalk {
  if (response.kind === 'failed') return response;
  const isUnknown = response.error?.code === METHOD_NOT_FOUND && cursor === undefined;
  if (name === 'templates' && isUnknown) return { kind: 'items', items: [] };
  return { kind: 'refused', status: response.status };
}

type ReadPage = { readonly items: readonly ListedItem[]; readonly nextCursor: string | undefined };

/** What of an answer a page is read from. */
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
  // Where no number is in doubt, nobody needs to know where each stands.
  if (!suspectNumbers)
    return { items: entries.map((definition) => ({ definition, isExact: true })), nextCursor };
  const list = spanOf(text, ['result', member]);
  const spans = list === undefined ? [] : elementSpans(text, list);
  if (spans.length !== entries.length) return undefined;
  const items: ListedItem[] = [];
  await runInTurn(messageReader, entries.entries(), ([index, definition]) => {
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
