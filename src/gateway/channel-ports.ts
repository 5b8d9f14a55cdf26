// The ports of the channels of HTTP+SSE: the upstream's end by its client, the ids of requests by the keys of
// the gateway, the clients' ends by the memory of this replica.

import type { ChannelPorts } from '../exchange-ports.js';
import type { ClientEnd } from '../mcp/transport.js';
import { createAskedQuestions } from '../state/asked-questions.js';
import type { KeyRing } from '../state/key-ring.js';
import { createOpenChannels } from '../state/open-channels.js';
import { openRequest, sealRequest } from '../state/request-seal.js';
import { bindingIn, SESSION_TTL_MS } from './sealed-ids.js';

/** Builds the ports. */
export function createChannelPorts(
  ring: KeyRing,
  now: () => number,
  open: ChannelPorts['open'],
): ChannelPorts {
  const channels = createOpenChannels<ClientEnd>();
  // Kept for cancellations, which name a request by the client's id.
  const sent = createAskedQuestions();
  return {
    open,
    sealRequest(request, place) {
      const binding = bindingIn(place);
      const sealed = sealRequest(ring, binding, request, now() + SESSION_TTL_MS);
      if (sealed !== undefined) sent.add(binding.session, request.id, sealed);
      return sealed;
    },
    openRequest: (sealed, place) => openRequest(ring, bindingIn(place), sealed, now()),
    recallRequest: (id, session) => sent.find(session.hash ?? '', id),
    enter: (session, end) => channels.enter(session.hash ?? '', end),
    find: (session) => channels.find(session.hash ?? ''),
  };
}
