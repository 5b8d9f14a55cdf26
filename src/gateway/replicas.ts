// What replicas tell each other, and where it is heard: words about sessions that the gateway holds for
// upstreams without any, by the upstream, and sessions that ended elsewhere.

import type { Json } from '../mcp/message.js';
import type { GatewayState } from '../state/gateway-state.js';
import type { ReplicaBus } from '../state/replica-words.js';
import {
  limitSessionBus,
  type SessionBus,
  type SessionMessage,
} from '../upstream/translate/session-words.js';
import type { Runtimes } from './runtimes.js';

type UpstreamSessionMessage = SessionMessage & { readonly upstream: string };

/** The words that are said of the sessions of one upstream. */
export type SessionBusOf = (upstream: string) => SessionBus;

/** Says them. An owner has one share, however many upstreams it has sessions with, and whatever is reloaded. */
export function createSessionBuses(bus: ReplicaBus): SessionBusOf {
  const { self, send, publish } = limitSessionBus({
    self: bus.self,
    send: (replica, message) => bus.send(replica, message as unknown as Json),
    publish: (message) => bus.publish(message as unknown as Json),
  });
  return (upstream) => {
    const about = (message: SessionMessage): UpstreamSessionMessage => ({ upstream, ...message });
    return {
      self,
      send: (replica, message) => send(replica, about(message)),
      publish: (message) => publish(about(message)),
    };
  };
}

/** Hears the other replicas from now on. */
export function receiveFromReplicas(
  { replicaBus, ended }: Pick<GatewayState, 'replicaBus' | 'ended'>,
  runtimes: Runtimes,
): void {
  replicaBus.onMessage((received) => {
    // Only gateways with this key say anything, and nothing but this.
    const { upstream, ...message } = received as unknown as UpstreamSessionMessage;
    runtimes.get(upstream)?.translation.sessions.receive(message);
  });
  ended.onElsewhere(() => {
    for (const { translation } of runtimes.all()) translation.sessions.forgetWhere(ended.has);
  });
}
