// Content that a host runs (MCP Apps): a `ui://` resource passes unchanged if it was approved, and is refused
// otherwise. Nothing else is decided about resources here.
// Source: MCP Apps extension (SEP-1865); docs/contract.md §5 (resources that a definition refers to).

import { isAppUri } from '../../policy/resource-uri.js';
import { hasInexactNumber, type ParsedJson, spanOf } from '../../protocol/json/json.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import type { RequestContext } from '../request-context.js';
import type { ResponsePlan } from '../response-plan.js';

/** `approved`: byte for byte what was reviewed. `none`: not such a resource, so it has to be inspected. */
type AppContent = 'approved' | 'changed' | 'none';

/**
 * Compares the content of a resource with its pin. A difference updates the catalog for all callers, like a
 * changed definition. Without pinning nothing is compared.
 */
export function reviewAppContent(
  call: RequestContext<'inspection' | 'upstreams'>,
  { admitted }: ResponsePlan,
  { text }: ParsedJson,
  result: JsonObject,
): AppContent {
  const { target } = admitted;
  if (target.kind !== 'resource') return 'none';
  const { uri } = target;
  const catalog = call.snapshot.catalogFor(admitted);
  if (!isAppUri(uri) || catalog.mode === 'off') return 'none';
  const contents = result['contents'] ?? null;
  const span = spanOf(text, ['result', 'contents']);
  const isExact = span !== undefined && !hasInexactNumber(text, span);
  const definition = { uri, contents };
  const digest = call.ports.inspection.digest('resource', definition, isExact);
  if (digest === catalog.statusOf('resource', uri).pinned?.digest) return 'approved';
  const item = { name: uri, digest, definition };
  const page = { kind: 'resource' as const, items: [item] };
  call.ports.upstreams.notePage(call.incoming.upstream, page);
  return 'changed';
}
