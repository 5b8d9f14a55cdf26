// The ports of endpoints of several upstreams: cursors by the keys of the gateway; which resources are whose, who
// keeps losing sessions, and who works on what, by the memory of this replica.

import type { ListScope, Ports } from '../exchange-ports.js';
import type { Principal } from '../policy/principal.js';
import { openCursor, sealCursor } from '../state/cursor-seal.js';
import type { KeyRing } from '../state/key-ring.js';
import { createListedResources } from '../state/listed-resources.js';
import { createLostBackends } from '../state/lost-parts.js';
import { createRunningBackends } from '../state/running-parts.js';
import { bindingOf } from './sealed-ids.js';

/** A caller by identity, at one endpoint. */
function callerAt(aggregate: string, principal: Principal): string {
  return JSON.stringify(bindingOf(aggregate, principal));
}

/** How long a client may wait between two pages. */
const CURSOR_TTL_MS = 60 * 60 * 1000;

/** Builds the ports. */
export function createAggregatePorts(
  ring: KeyRing,
  now: () => number,
): Pick<
  Ports,
  | 'sealCursor'
  | 'openCursor'
  | 'noteResources'
  | 'recallResource'
  | 'reportLostBackend'
  | 'registerBackendRequest'
  | 'findRunningBackends'
> {
  const listed = createListedResources();
  const lost = createLostBackends(now);
  const running = createRunningBackends();
  const bindingAt = ({ aggregate, principal, method }: ListScope) => ({
    ...bindingOf(aggregate, principal),
    method,
  });
  return {
    sealCursor: (cursors, scope) =>
      sealCursor(ring, bindingAt(scope), cursors, now() + CURSOR_TTL_MS),
    openCursor: (sealed, scope) => openCursor(ring, bindingAt(scope), sealed, now()),
    reportLostBackend(aggregate, upstream, principal) {
      const key = `${callerAt(aggregate, principal)} ${upstream}`;
      if (lost.isFrequent(key)) return false;
      lost.note(key);
      return true;
    },
    noteResources: (aggregate, principal, page) =>
      listed.note(callerAt(aggregate, principal), page),
    recallResource: ({ aggregate, principal, uri }, backends) =>
      listed.recall(callerAt(aggregate, principal), uri, backends),
    registerBackendRequest: running.enter,
    findRunningBackends: running.find,
  };
}
