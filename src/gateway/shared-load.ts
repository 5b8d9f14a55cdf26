// What the upstreams of one process share, so that none of them takes it all: the event loop, the thread that
// reads and inspects beside it, and the room for answers.

import { MAX_JSON_DEPTH, readJson, readJsonText } from '../mcp/json.js';
import type { Log } from '../observe/log.js';
import { createAnswerRoom } from '../upstream/answer-room.js';
import { type Inspection, type OwnOf, startInspection } from './inspection.js';
import { createLoopTurns } from './loop-turns.js';
import type { ConnectionPorts } from './upstream-connection.js';

type Load = Pick<ConnectionPorts, 'readJson' | 'turns' | 'room'>;

export type SharedLoad = Load & { readonly inspection: Inspection };

/**
 * Shared by all upstreams of a gateway. Whoever makes it closes the inspection. `ownOf`: what the gateway shows
 * an upstream, and must not come back from it.
 */
export function shareLoad(log: Log, ownOf: OwnOf): SharedLoad {
  const turns = createLoopTurns();
  const inspection = startInspection(log, turns, ownOf);
  return { turns, inspection, readJson: inspection.readJson, room: createAnswerRoom() };
}

/** For the command line, which waits for one upstream and for nothing else. */
export function loadOfOne(): Load {
  return {
    readJson(source, { maxValues }) {
      const caps = { maxDepth: MAX_JSON_DEPTH, maxValues };
      return typeof source === 'string' ? readJsonText(source, caps) : readJson(source, caps);
    },
    turns: createLoopTurns(),
    room: createAnswerRoom(),
  };
}
