// Which story a request takes: that of one upstream, or that of an endpoint of several, whose members are then
// asked by exchanges of their own. Counts what is under way at each upstream.

import type { DataServerPorts } from '../edge/server.js';
import { handleRequest } from '../exchange.js';
import type { Ports } from '../exchange-ports.js';
import { runMerged } from '../relay/merged/merged.js';
import type { HandleRequest } from '../relay/merged/whole.js';
import type { Aggregates } from './endpoints.js';

/** The journey of a message, by the path that it came on. */
export function createDispatcher(
  ports: Ports,
  aggregates: Aggregates,
  countInflight: (upstream: string, delta: 1 | -1) => void,
): DataServerPorts['handle'] {
  const run: HandleRequest = async (incoming, outgoing, own) => {
    countInflight(incoming.upstream, 1);
    try {
      await handleRequest(incoming, outgoing, own);
    } finally {
      countInflight(incoming.upstream, -1);
    }
  };
  return (incoming, outgoing) =>
    aggregates.get(incoming.upstream) === undefined
      ? run(incoming, outgoing, ports)
      : runMerged(incoming, outgoing, ports, run);
}
