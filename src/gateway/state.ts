// What the gateway remembers, where the configuration says; and what ends at once when someone is revoked,
// when nobody can tell any more who is, or when a session ended elsewhere: streams that are open, and
// answers that are on their way.

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
  { revocations, ended }: GatewayState,
  { ring }: Pick<StatePorts, 'ring'>,
  streams: StreamRegistry,
  retryLater: () => void,
): void {
  /** Sessions end all the time, and a stream keeps its own. */
  const digests = new WeakMap<OpenStream, readonly string[]>();

  function digestsOf(stream: OpenStream): readonly string[] {
    const known = digests.get(stream);
    if (known !== undefined || stream.session === undefined) return known ?? [];
    const found = ring.hmacAll('session', stream.session);
    digests.set(stream, found);
    return found;
  }

  function hasEnded(stream: OpenStream): boolean {
    return digestsOf(stream).some(ended.has);
  }

  function isGone(stream: OpenStream): boolean {
    if (revocations.checkPrincipal(stream.principal) !== undefined) return true;
    return revocations.hasSession(digestsOf(stream));
  }
  revocations.onChange(() => {
    streams.endWhere(isGone);
    retryLater();
  });
  ended.onElsewhere(() => streams.endWhere(hasEnded));
}
