// The ports that lead to an upstream: each finds the upstream's runtime, lets it choose the adapter, and passes
// on what the newest listing has shown.

import type { Ports, Snapshot } from '../proxy/ports.js';
import type { UpstreamRuntime } from './upstreams.js';

type ForwardingPorts = Pick<
  Ports,
  'forward' | 'openStream' | 'forwardSessionEnd' | 'replyToServer' | 'cancelAtServer' | 'notePage'
>;

/** A reload may have removed the upstream since the message was allowed. */
const NOT_RUNNING = { kind: 'error', reason: 'upstream-unavailable' } as const;

export function createForwarding(
  findRuntime: (upstream: string) => UpstreamRuntime | undefined,
  snapshotOf: (runtime: UpstreamRuntime) => Snapshot,
): ForwardingPorts {
  return {
    forward(upstream, authorized, by, signal) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const snapshot = snapshotOf(runtime);
      const adapter = runtime.adapters.forMessage(authorized.admitted, snapshot);
      return adapter.forward({ authorized, by, signal }, snapshot);
    },
    openStream(upstream, stream) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const currentOffer = (): Snapshot => snapshotOf(runtime);
      const adapter = runtime.adapters.forStream(stream.session, currentOffer());
      return adapter.openStream(stream, currentOffer);
    },
    forwardSessionEnd(upstream, session, by) {
      const adapter = findRuntime(upstream)?.adapters.forSession(session);
      return adapter?.endSession(session, by) ?? Promise.resolve(NOT_RUNNING);
    },
    replyToServer: (upstream, serverRequest, reply) =>
      findRuntime(upstream)
        ?.adapters.forSession(serverRequest.session)
        .replyToServer(serverRequest, reply),
    cancelAtServer: (upstream, request) =>
      findRuntime(upstream)?.adapters.forSession(request.session).cancelAtServer(request),
    notePage: (upstream, page) => findRuntime(upstream)?.notePage(page),
  };
}
