// Conversations told as streams: what one turn of the event loop brings is one reading, and the end, good or
// bad, comes behind everything that was said.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type OutboundItem, type OutboundItems, streamResponse } from '../../../src/upstream/response-messages.js';

const SOURCE = { release: () => undefined, abort: () => undefined };

async function* say(steps: readonly (OutboundItem | 'pause' | 'throw')[]): OutboundItems {
  for (const step of steps) {
    if (step === 'throw') throw new Error('broken');
    if (step === 'pause') await sleep(5);
    else yield step;
  }
}

const message = (text: string): OutboundItem => ({ kind: 'message', text });
const decode = (bytes: unknown): unknown => (bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : bytes);
const event = (text: string): string => `event: message\ndata: ${text}\n\n`;

async function readAll(steps: readonly (OutboundItem | 'pause' | 'throw')[]): Promise<unknown[]> {
  const response = streamResponse(say(steps), SOURCE);
  const read: unknown[] = [];
  for (;;) {
    const chunk = await response.next();
    read.push(decode(chunk));
    if (!(chunk instanceof Uint8Array)) return read;
  }
}

describe('a conversation that is told as a stream', () => {
  it('[PRF-03] is read by turns: what comes together leaves together, in order', async () => {
    expect(await readAll([message('1'), message('2'), message('3'), 'pause', message('4')])).toEqual([
      event('1') + event('2') + event('3'),
      event('4'),
      undefined,
    ]);
  });

  it('[PRF-03] says everything before the fault that ends it', async () => {
    const failure: OutboundItem = { kind: 'error', reason: 'upstream-protocol' };
    expect(await readAll([message('1'), message('2'), failure])).toEqual([
      event('1') + event('2'),
      'upstream-protocol',
    ]);
  });

  it('[PRF-03] says everything before it breaks', async () => {
    const response = streamResponse(say([message('1'), 'throw']), SOURCE);
    expect(decode(await response.next())).toBe(event('1'));
    await expect(response.next()).rejects.toThrow('broken');
  });

  it('[PRF-03] is returned to once it was released behind the fault that ends it', async () => {
    const given: string[] = [];
    async function* fail(): OutboundItems {
      try {
        yield { kind: 'error', reason: 'upstream-timeout' };
      } finally {
        given.push('slot');
      }
    }
    const source = { release: () => given.push('source'), abort: () => undefined };
    const response = streamResponse(fail(), { ...source, release: () => void source.release() });
    expect(await response.next()).toBe('upstream-timeout');
    response.release();
    response.release();
    await expect.poll(() => given).toEqual(['source', 'slot']);
  });

  it('[PRF-03] says nothing more once it was left', async () => {
    const response = streamResponse(say([message('1'), 'pause', message('2')]), SOURCE);
    expect(decode(await response.next())).toBe(event('1'));
    response.release();
    expect(await response.next()).toBeUndefined();
  });
});
