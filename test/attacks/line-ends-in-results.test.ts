// A server that writes line ends which only some readers take for such: what a reviewer, a log or a terminal shows of the
// text is not what the model reads. They are part of files and of data, so they stay; the record says that they were
// there.

import { describe, expect, it } from 'vitest';
import { textOf } from '../support/gateway.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const KINDS = ['auto', 'code', 'markup', 'text'] as const;

describe.each(KINDS)('in a result of the kind %s', (kind) => {
  let reads = 0;
  const rig = sharedGateway({ upstream: [`content: {kind: ${kind}}`, 'pinning: {maxAge: 10m}'] });

  async function read(text: string): Promise<readonly [shown: string, flags: number]> {
    rig.upstream.answerCalls(() => ({ content: [{ type: 'text', text }] }));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    reads += 1;
    const outcomes = async () =>
      (await rig.gateway.audit()).filter(
        ({ type, target }) => type === 'mcp.outcome' && target?.name === 'read_record',
      );
    await expect.poll(async () => (await outcomes()).length, PATIENT).toBe(reads);
    const findings: readonly { detector: string; action: string; count: number }[] =
      (await outcomes()).at(-1)?.['findings'] ?? [];
    const flags = findings.filter((one) => one.detector === 'invisible' && one.action === 'flag');
    return [textOf(resultOf(reply)), flags.reduce((sum, { count }) => sum + count, 0)];
  }

  it.each([
    ['a lone carriage return', 'total 5\rtotal 9'],
    ['NEL', 'total 5\u0085total 9'],
    ['a line separator', 'total 5\u2028total 9'],
    ['a paragraph separator', 'total 5\u2029total 9'],
  ])('%s stays, flagged', async (_what, text) => {
    expect(await read(text)).toEqual([text, 1]);
  });

  it('line feeds, with or without a carriage return, are those of any text', async () => {
    const text = 'one\r\ntwo\nthree\r\n\r\nfour\r\n';
    expect(await read(text)).toEqual([text, 0]);
  });
});
