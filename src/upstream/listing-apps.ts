// Reads what the tools of an upstream refer to: the `ui://` resources that a host shows in place of a
// result. Their content is pinned like a definition, because a host runs it. Follows no other reference.
// Source: MCP Apps extension (SEP-1865), `_meta.ui.resourceUri`; contract §5.

import { hasInexactNumber, spanOf } from '../mcp/json.js';
import type { ListedItem } from '../mcp/listing.js';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import type { CallOutcome } from './listing-call.js';
import type { WalkError } from './listing-pages.js';

/** Sends one request of the listing. */
export type ListingQuery = (method: string, params: JsonObject) => Promise<CallOutcome>;

export type AppsRead =
  | { readonly kind: 'items'; readonly items: readonly ListedItem[] }
  | WalkError;

/** Resources read in one listing; tools that refer to more have the rest unread, and so unpinned. */
export const MAX_APP_RESOURCES = 200;
const SCHEME = 'ui://';

/**
 * Every `ui://` resource that a tool names, as `{uri, contents}`, each once, in the order of the tools.
 * One that the upstream does not have is left out; an upstream that fails is a fault of the listing.
 */
export async function readAppResources(
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
export function appResourceOf(definition: JsonObject): string | undefined {
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
