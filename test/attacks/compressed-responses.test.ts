// Case 12: an upstream whose small answer is large when inflated, or wrapped in many encodings. Nothing
// is inflated: an encoding that was not asked for is a broken answer.

import { afterEach, describe, expect, it } from 'vitest';
import { expectWithheldLines } from '../support/gateway.js';
import {
  body,
  brotliBody,
  chainedEncodings,
  gzipBomb,
  onMethod,
  resultFor,
  textResult,
} from '../support/hostile-acts.js';
import type { Act } from '../support/hostile-upstream.js';
import { callStateless, errorOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const BOMB_BYTES = 200 * 1024 * 1024;
/** What a gateway that inflates nothing may need besides. */
const SPARE_BYTES = 96 * 1024 * 1024;

describe('a compressed answer', () => {
  const rig = sharedGateway();
  afterEach(() => rig.upstream.repent());

  async function expectBroken(act: Act): Promise<void> {
    rig.upstream.obey(onMethod('tools/call', () => act));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(502);
    expect(reply.message?.['id']).toBe(1);
    expect(errorOf(reply)).toMatchObject({ code: 1506 });
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  }

  it('[X-12] of 200 MB is refused and never inflated', async () => {
    const bomb = gzipBomb(BOMB_BYTES);
    const before = process.memoryUsage().rss;
    await expectBroken(bomb);
    expect(process.memoryUsage().rss - before).toBeLessThan(SPARE_BYTES);
  });

  it('[X-12] with 50 encodings in a chain is refused', () =>
    expectBroken(chainedEncodings(50, { jsonrpc: '2.0', id: 1, result: {} })));

  it('[X-12] in Brotli is refused', () => expectBroken(brotliBody({ jsonrpc: '2.0', id: 1, result: {} })));

  it('[X-12] is not asked for', async () => {
    await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(rig.upstream.uses().at(-1)?.headers['accept-encoding']).toBe('identity');
  });

  it('[X-12] breaks nothing for the next call', async () => {
    rig.upstream.obeyOnce(onMethod('tools/call', () => chainedEncodings(3, {})));
    await callStateless(rig.access, 'read_record', { id: 'one' });
    const reply = await callStateless(rig.access, 'read_record', { id: 'two' });
    expect(reply.message?.['result']).toMatchObject({
      content: [{ type: 'text', text: 'read_record two' }],
    });
  });

  it('[X-12] may say "identity", which is no encoding', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'http',
        status: 200,
        headers: { 'content-type': 'application/json', 'content-encoding': 'identity' },
        body: JSON.stringify(resultFor(request, textResult('plain'))),
      })),
    );
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
    rig.upstream.obey(onMethod('tools/call', () => body('', 'application/json')));
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(502);
  });
});
