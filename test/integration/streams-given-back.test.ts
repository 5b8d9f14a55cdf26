// Streams that were opened and left: nothing of them stays, neither a timer nor a place in a registry.

import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { onMethod, sseEvent } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { openEvents } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const LISTEN = 'subscriptions/listen';
const COUNT = 20;

const rig = sharedGateway();
beforeAll(async () => {
  rig.upstream.obey(
    onMethod(LISTEN, (request) => {
      const params = request.message?.['params'] as JsonObject;
      const message = {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: {
          notifications: params['notifications'] ?? {},
          _meta: { 'io.modelcontextprotocol/subscriptionId': request.message?.['id'] ?? null },
        },
      };
      const chunks = [sseEvent(message)];
      return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'hold' };
    }),
  );
});

/** Timers that hold the process: every stream has some. */
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

async function openStreams(): Promise<string> {
  const text = await rig.gateway.metrics();
  return /^sallyport_open_streams\{[^}]*\} (\d+)$/m.exec(text)?.[1] ?? '0';
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200 && !(await isDone()); tries += 1) await sleep(20);
}

describe('idle streams that were left', () => {
  it('[PRF-06] keep no timer and no place', PATIENT, async () => {
    const before = timers();
    const readers = [];
    for (let at = 0; at < COUNT; at += 1) {
      const reader = await openEvents(
        rig.access,
        LISTEN,
        { notifications: { toolsListChanged: true } },
        { id: `listen-${at}` },
      );
      expect(reader.status).toBe(200);
      expect((await reader.next())?.['method']).toContain('acknowledged');
      readers.push(reader);
    }
    expect(await openStreams()).toBe(String(COUNT));
    expect(timers()).toBeGreaterThan(before);
    for (const reader of readers) reader.leave();
    await until(async () => (await openStreams()) === '0');
    await until(async () => timers() <= before);
    expect(await openStreams()).toBe('0');
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
