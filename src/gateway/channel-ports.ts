// The ports of the channels of HTTP+SSE: the upstream's end by its client, the ids of requests by the keys of
// the gateway, the clients' ends by the memory of this replica.

import type { LegacySsePorts } from '../exchange-ports.js';
import type { ClientEnd } from '../mcp/transport.js';
import { createPassedServerRequests } from '../state/asked-questions.js';
import type { KeyRing } from '../state/key-ring.js';
import { createOpenLegacyStreams } from '../state/open-channels.js';
import { openRequest, sealRequest } from '../state/request-seal.js';
import { bindingIn, SESSION_TTL_MS } from './sealed-ids.js';

/** Builds the ports. */
export function createLegacySsePorts(
  ring: KeyRing,
  now: () => number,
  open: LegacySsePorts['open'],
): LegacySsePorts {
  const openStreams = createOpenLegacyStreams<ClientEnd>();
  // Kept for cancellations, which name a request by the client's id.
  const sent = createPassedServerRequests();
  return {
    open,
    sealRequest(request, scope) {
      const binding = bindingIn(scope);
      const sealed = sealRequest(ring, binding, request, now() + SESSION_TTL_MS);
      if (sealed !== undefined) sent.add(binding.session, request.id, sealed);
      return sealed;
    },
    openRequest: (sealed, scope) => openRequest(ring, bindingIn(scope), sealed, now()),
    recallRequest: (id, session) => sent.find(session.hash ?? '', id),
    enter: (session, end) => openStreams.enter(session.hash ?? '', end),
    find: (session) => openStreams.find(session.hash ?? ''),
  };
}
