// The ports that lead to an upstream: each finds the upstream's runtime, lets it choose the adapter, and passes
// on what the newest listing has shown.

import type { Ports, Snapshot } from '../proxy/ports.js';
import type { UpstreamRuntime } from './upstreams.js';

type ForwardingPorts = Pick<
  Ports,
  'forward' | 'openStream' | 'forwardSessionEnd' | 'replyToServer' | 'giveUp' | 'notePage'
>;

export function createForwarding(
  runtimeOf: (upstream: string) => UpstreamRuntime,
  snapshotOf: (runtime: UpstreamRuntime) => Snapshot,
): ForwardingPorts {
  return {
    forward(upstream, authorized, by, signal) {
      const runtime = runtimeOf(upstream);
      const snapshot = snapshotOf(runtime);
      const adapter = runtime.adapters.forMessage(authorized.admitted, snapshot);
      return adapter.forward({ authorized, by, signal }, snapshot);
    },
    openStream(upstream, stream) {
      const runtime = runtimeOf(upstream);
      const snapshot = snapshotOf(runtime);
      return runtime.adapters.forStream(stream.session, snapshot).openStream(stream, snapshot);
    },
    forwardSessionEnd: (upstream, session, by) =>
      runtimeOf(upstream).adapters.forSession(session).endSession(session, by),
    replyToServer: (upstream, serverRequest, reply) =>
      runtimeOf(upstream)
        .adapters.forSession(serverRequest.session)
        .replyToServer(serverRequest, reply),
    giveUp: (upstream, request) =>
      runtimeOf(upstream).adapters.forSession(request.session).giveUp(request),
    notePage: (upstream, page) => runtimeOf(upstream).notePage(page),
  };
}
