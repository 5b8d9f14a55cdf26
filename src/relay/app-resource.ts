// The content of a `ui://` resource on its way to a host that will run it: exactly what was approved, and
// then unchanged, or nothing. What differs counts for everyone at once, like a changed definition.
// Source: MCP Apps extension (SEP-1865); contract §5 (resources that a definition refers to).

import { hasInexactNumber, spanOf } from '../mcp/json.js';
import type { JsonObject } from '../mcp/message.js';
import { isAppUri } from '../policy/resource-uri.js';
import type { ResponsePlan } from './answered.js';
import type { Call } from './call.js';
import type { Read } from './subject.js';

/** `approved`: byte for byte what was reviewed. `none`: no resource of this kind, to be inspected. */
export type AppContent = 'approved' | 'changed' | 'none';

/** Compares what a `ui://` resource holds with its pin. Without pinning nothing is compared. */
export function reviewAppContent(
  call: Call,
  { admitted }: ResponsePlan,
  { text }: Read,
  result: JsonObject,
): AppContent {
  const { target, rule } = admitted;
  if (rule.method !== 'resources/read' || target.kind !== 'resource') return 'none';
  const { uri } = target;
  const catalogue = call.snapshot.catalogueFor(admitted);
  if (!isAppUri(uri) || catalogue.mode === 'off') return 'none';
  const contents = result['contents'] ?? null;
  const span = spanOf(text, ['result', 'contents']);
  const isExact = span !== undefined && !hasInexactNumber(text, span);
  const definition = { uri, contents };
  const digest = call.ports.digest('resource', definition, isExact);
  if (digest === catalogue.standing('resource', uri).pinned?.digest) return 'approved';
  const item = { name: uri, digest, definition };
  const page = { kind: 'resource' as const, items: [item] };
  call.ports.notePage(call.incoming.upstream, page);
  return 'changed';
}
