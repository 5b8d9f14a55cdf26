// The ports of endpoints of several upstreams: cursors by the keys of the gateway; which resources are whose, who
// keeps losing sessions, and who works on what, by the memory of this replica.

import type { ListPlace, Ports } from '../exchange-ports.js';
import type { Principal } from '../policy/principal.js';
import { openCursor, sealCursor } from '../state/cursor-seal.js';
import type { KeyRing } from '../state/key-ring.js';
import { createListedResources } from '../state/listed-resources.js';
import { createLostParts } from '../state/lost-parts.js';
import { createRunningParts } from '../state/running-parts.js';
import { bindingOf } from './sealed-ids.js';

/** A caller by identity, at one endpoint. */
function callerAt(endpoint: string, principal: Principal): string {
  return JSON.stringify(bindingOf(endpoint, principal));
}

/** How long a client may wait between two pages. */
const CURSOR_TTL_MS = 60 * 60 * 1000;

/** Builds the ports. */
export function createEndpointPorts(
  ring: KeyRing,
  now: () => number,
): Pick<
  Ports,
  | 'sealCursor'
  | 'openCursor'
  | 'noteResources'
  | 'recallResource'
  | 'tellLoss'
  | 'enterPart'
  | 'findParts'
> {
  const listed = createListedResources();
  const lost = createLostParts(now);
  const running = createRunningParts();
  const bindingAt = ({ endpoint, principal, method }: ListPlace) => ({
    ...bindingOf(endpoint, principal),
    method,
  });
  return {
    sealCursor: (cursors, place) =>
      sealCursor(ring, bindingAt(place), cursors, now() + CURSOR_TTL_MS),
    openCursor: (sealed, place) => openCursor(ring, bindingAt(place), sealed, now()),
    tellLoss(endpoint, upstream, principal) {
      const key = `${callerAt(endpoint, principal)} ${upstream}`;
      if (lost.isFrequent(key)) return false;
      lost.note(key);
      return true;
    },
    noteResources: (endpoint, principal, page) => listed.note(callerAt(endpoint, principal), page),
    recallResource: ({ endpoint, principal, uri }, members) =>
      listed.recall(callerAt(endpoint, principal), uri, members),
    enterPart: running.enter,
    findParts: running.find,
  };
}
