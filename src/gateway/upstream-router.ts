// The port that leads to the upstreams: it finds an upstream's runtime, lets it choose the adapter, and passes on what
// the newest listing has shown.

import type { Snapshot, UpstreamPort } from '../proxy/ports.js';
import type { UpstreamRuntime } from './upstreams.js';

/** A reload may have removed the upstream since the message was allowed. */
const NOT_RUNNING = { kind: 'error', reason: 'upstream-unavailable' } as const;

export function createUpstreamPort(
  findRuntime: (upstream: string) => UpstreamRuntime | undefined,
  snapshotOf: (runtime: UpstreamRuntime) => Snapshot,
): UpstreamPort {
  function runtimeOf(upstream: string): UpstreamRuntime {
    const runtime = findRuntime(upstream);
    if (runtime === undefined) throw new Error(`upstream ${upstream} is not running`);
    return runtime;
  }

  return {
    snapshot(upstream) {
      const runtime = findRuntime(upstream);
      return runtime === undefined ? undefined : snapshotOf(runtime);
    },
    refreshListing: (upstream) => runtimeOf(upstream).refreshListing(),
    notePage: (upstream, page) => findRuntime(upstream)?.notePage(page),
    noteListChanged: (upstream) => runtimeOf(upstream).noteListChanged(),
    forward(upstream, request) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const snapshot = snapshotOf(runtime);
      return runtime.adapters
        .forMessage(request.authorized.admitted, snapshot)
        .forward(request, snapshot);
    },
    openStream(upstream, stream) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const currentOffer = (): Snapshot => snapshotOf(runtime);
      const adapter = runtime.adapters.forStream(stream.session, currentOffer());
      return adapter.openStream(stream, currentOffer);
    },
    openLegacyStream: (upstream, by, signal) =>
      runtimeOf(upstream).client.openLegacyStream(by, signal),
    endSession(upstream, session, by) {
      const adapter = findRuntime(upstream)?.adapters.forSession(session);
      return adapter?.endSession(session, by) ?? Promise.resolve(NOT_RUNNING);
    },
    replyToServer: (upstream, serverRequest, reply) =>
      findRuntime(upstream)
        ?.adapters.forSession(serverRequest.session)
        .replyToServer(serverRequest, reply),
    cancelAtServer: (upstream, request) =>
      findRuntime(upstream)?.adapters.forSession(request.session).cancelAtServer(request),
  };
}
