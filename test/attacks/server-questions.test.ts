// Connections to an upstream are never used up by what it asks itself: its requests are answered a few
// at a time, beside the connections of calls.

import { describe, expect, it } from 'vitest';
import { textOf } from '../support/gateway.js';
import { resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import { callStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const QUESTIONS = 300;
/** The least that the configuration of a busy upstream would give it. */
const CONCURRENCY = 4;

/** Asks again and again in its stream, and never takes an answer. */
function askAndHold(request: HostileRequest): Act | undefined {
  if (request.message !== undefined && request.method === undefined) return { kind: 'hold' };
  if (request.method !== 'tools/call' || request.headers['mcp-session-id'] === undefined) return undefined;
  const asked = Array.from({ length: QUESTIONS }, (_, i) =>
    sseEvent({ jsonrpc: '2.0', id: `question-${i}`, method: 'roots/list' }),
  );
  const own = sseEvent(resultFor(request, textResult('asked')));
  return {
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [asked.join(''), own],
    ending: 'end',
  };
}

describe('a server that asks without end and takes no answer', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', `limits: {concurrency: ${CONCURRENCY}, concurrencyPerCaller: ${CONCURRENCY}}`],
  });

  it('[H-01] holds up no call of anyone', async () => {
    const session = await rig.openSession();
    rig.upstream.obey(askAndHold);
    const asked = await session.call('read_record', { id: 'one' });
    expect(textOf(resultOf(asked))).toBe('asked');
    const calls = Array.from({ length: CONCURRENCY }, () => callStateless(rig.access, 'read_record', { id: 'one' }));
    const replies = await Promise.all(calls);
    expect(replies.map((reply) => reply.status)).toEqual([200, 200, 200, 200]);
    const answers = rig.upstream
      .seen()
      .filter((request) => request.message !== undefined && request.method === undefined);
    expect(answers.length).toBeGreaterThan(0);
    // Those that are held have not timed out yet; none was begun beside them.
    expect(answers.length).toBeLessThanOrEqual(8);
  }, 20_000);
});
