// An upstream that begins its answer and never ends it. A whole answer has the time that any answer has;
// only a stream may last.

import { describe, expect, it } from 'vitest';
import { expectWithheldLines } from '../support/gateway.js';
import { onMethod } from '../support/hostile-acts.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a body that drips without end', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 1s, concurrency: 1}'],
  });

  it('[H-05] is a 504 in time, closes the connection and gives the place back', async () => {
    rig.upstream.obeyOnce(
      onMethod('tools/call', () => ({
        kind: 'chunks',
        contentType: 'application/json',
        chunks: Array.from({ length: 500 }, () => ' '),
        ending: 'hold',
        paceMs: 50,
      })),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(504);
    expect(reply.message?.['id']).toBe(1);
    await expectWithheldLines(rig, reply, 'upstream-timeout');
    await expect.poll(() => rig.upstream.uses().at(-1)?.isAborted).toBe(true);
    const next = await callStateless(rig.access, 'read_record', { id: 'two' });
    expect(next.status).toBe(200);
  });
});
