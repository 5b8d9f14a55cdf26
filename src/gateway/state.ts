// What the gateway remembers, where the configuration says; and what ends at once when someone is revoked,
// or when nobody can tell any more who is: streams that are open, and answers that are on their way.

import type { StateSettings } from '../config/settings.js';
import type { OpenStream } from '../exchange-ports.js';
import { createMemoryState, type GatewayState, type StatePorts } from '../state/gateway-state.js';
import { openRedisLink } from '../state/redis-link.js';
import { createSharedState } from '../state/shared-state.js';
import type { StreamRegistry } from './streams.js';

/** Makes the state; it is asked for nothing before its `start`. */
export function openState(settings: StateSettings, ports: StatePorts): GatewayState {
  switch (settings.type) {
    case 'memory':
      return createMemoryState(ports);
    case 'redis':
      return createSharedState({
        ...ports,
        link: openRedisLink(settings),
        maxAgeMs: settings.maxAgeMs,
      });
  }
}

/** `askAgain` makes every answer that is on its way ask again whether its caller may have it. */
export function endWhatIsRevoked(
  { revocations }: GatewayState,
  { ring }: Pick<StatePorts, 'ring'>,
  streams: StreamRegistry,
  askAgain: () => void,
): void {
  function isGone({ principal, session }: OpenStream): boolean {
    if (revocations.judge(principal) !== undefined) return true;
    return session !== undefined && revocations.hasSession(ring.hmacAll('session', session));
  }
  revocations.onChange(() => {
    streams.endWhere(isGone);
    askAgain();
  });
}
