// Whether a caller may see an item of a list, or anything at all: asked of the function that decides calls.
// Source: contract §4 law 2, and §5.

import type { ListItem } from '../inspect/filter-list.js';
import type { Target } from '../mcp/message.js';
import { isListed as isListedFor } from '../policy/decide.js';
import type { PinKind } from '../policy/definition.js';
import type { ResponsePlan } from './answered.js';
import type { Call } from './call.js';

const PINNED_KINDS: readonly PinKind[] = ['tool', 'prompt', 'template'];

/** Instructions steer a model towards things; who may see none of them is told nothing (contract §4, law 1). */
export function listsAnything(call: Call, responsePlan: ResponsePlan): boolean {
  const catalogue = call.snapshot.catalogueFor(responsePlan.admitted);
  return PINNED_KINDS.some((kind) =>
    catalogue.names(kind).some((name) => isListed(call, responsePlan, targetOf(kind, name))),
  );
}

/** Whether one item of a page may be seen. `pin` is its kind; resources have none. */
export function isItemListed(
  call: Call,
  responsePlan: ResponsePlan,
  pin: PinKind | undefined,
  { name, digest }: ListItem,
): boolean {
  if (pin === undefined) return isListed(call, responsePlan, { kind: 'resource', uri: name });
  const catalogue = call.snapshot.catalogueFor(responsePlan.admitted);
  // Approved is the definition that was seen, not the name: this page must show that very one.
  const isSeen = catalogue.mode === 'off' || catalogue.standing(pin, name).observed === digest;
  return isSeen && isListed(call, responsePlan, targetOf(pin, name));
}

function targetOf(kind: PinKind, name: string): Target {
  switch (kind) {
    case 'tool':
    case 'prompt':
      return { kind, name };
    case 'template':
      return { kind, uriTemplate: name };
    case 'resource':
      return { kind, uri: name };
  }
}

function isListed(call: Call, { principal, admitted }: ResponsePlan, target: Target): boolean {
  const { policies } = call.snapshot;
  const catalogue = call.snapshot.catalogueFor(admitted);
  return isListedFor(policies, principal, catalogue.upstream, target, catalogue);
}
