// What tokens must be bound to at an endpoint: whatever satisfies every member, or nothing could hold them to it.

import type { UpstreamSettings } from './settings.js';

type Binding = UpstreamSettings['binding'];

/** The binding that satisfies all of these; `undefined` where none does. */
export function strictestBinding(bindings: readonly Binding[]): Binding | undefined {
  const demanded = new Set(bindings.filter((binding) => binding !== 'none'));
  if (demanded.has('dpop') && demanded.has('mtls')) return undefined;
  if (demanded.has('dpop')) return 'dpop';
  if (demanded.has('mtls')) return 'mtls';
  return demanded.has('any') ? 'any' : 'none';
}
