// What the upstreams of one process share, so that none of them takes it all: the event loop, the thread that
// reads and inspects beside it, and the room for answers.

import { MAX_JSON_DEPTH, readJson, readJsonText } from '../mcp/json.js';
import type { Log } from '../observe/log.js';
import { createResponseBufferQuota } from '../upstream/answer-room.js';
import { type Inspection, type OwnOf, startInspection } from './inspection.js';
import { createLoopScheduler } from './loop-turns.js';
import type { ConnectionPorts } from './upstream-connection.js';

type Load = Pick<ConnectionPorts, 'readJson' | 'loopScheduler' | 'bufferQuota'>;

export type SharedLoad = Load & { readonly inspection: Inspection };

/**
 * Shared by all upstreams of a gateway. Whoever makes it closes the inspection. `ownOf`: what the gateway shows
 * an upstream, and must not come back from it.
 */
export function createSharedLoad(log: Log, ownOf: OwnOf): SharedLoad {
  const loopScheduler = createLoopScheduler();
  const inspection = startInspection(log, loopScheduler, ownOf);
  return {
    loopScheduler,
    inspection,
    readJson: inspection.readJson,
    bufferQuota: createResponseBufferQuota(),
  };
}

/** For the command line, which waits for one upstream and for nothing else. */
export function loadOfOne(): Load {
  return {
    readJson(source, { maxValues }) {
      const caps = { maxDepth: MAX_JSON_DEPTH, maxValues };
      return typeof source === 'string' ? readJsonText(source, caps) : readJson(source, caps);
    },
    loopScheduler: createLoopScheduler(),
    bufferQuota: createResponseBufferQuota(),
  };
}
