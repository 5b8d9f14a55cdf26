// The ports of lists that several upstreams fill: cursors by the keys of the gateway, which resources are whose
// by the memory of this replica.

import type { ListPlace, Ports } from '../exchange-ports.js';
import { openCursor, sealCursor } from '../state/cursor-seal.js';
import type { KeyRing } from '../state/key-ring.js';
import { createListedResources } from '../state/listed-resources.js';
import { bindingOf } from './sealed-ids.js';

/** How long a client may wait between two pages. */
const CURSOR_TTL_MS = 60 * 60 * 1000;

/** Builds the ports. */
export function createListPorts(
  ring: KeyRing,
  now: () => number,
): Pick<Ports, 'sealCursor' | 'openCursor' | 'noteResources' | 'recallResource'> {
  const listed = createListedResources();
  const bindingAt = ({ endpoint, principal, method }: ListPlace) => ({
    ...bindingOf(endpoint, principal),
    method,
  });
  return {
    sealCursor: (cursors, place) =>
      sealCursor(ring, bindingAt(place), cursors, now() + CURSOR_TTL_MS),
    openCursor: (sealed, place) => openCursor(ring, bindingAt(place), sealed, now()),
    noteResources: listed.note,
    recallResource: listed.recall,
  };
}
