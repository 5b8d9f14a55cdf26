// One server that sends too much takes nothing from others: values, bytes of a stream, bytes of a minute and
// bytes of listings are counted before anything is made of them, and refused where they are too many.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, expectWithheldLines, startRig } from '../support/gateway.js';
import { body, jsonBody, onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { type Act, type HostileRequest, paramsOf } from '../support/hostile-upstream.js';
import {
  bearer,
  callStateless,
  errorOf,
  listenOn,
  type OpenSession,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const FLOOD = `[${'{},'.repeat(2_000)}{}]`;
const TEXT = 'Nothing of note was said in this part of it. '.repeat(100);

/** An own result whose structure is a flood of values. */
function flooded({ id }: HostileRequest): string {
  const result = `{"resultType":"complete","content":[],"structuredContent":{"list":${FLOOD}}}`;
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
}

function progress(step: number): string {
  const params = { progressToken: 7, progress: step, message: TEXT };
  return sseEvent({ jsonrpc: '2.0', method: 'notifications/progress', params });
}

const LIMITS = [
  'maxValues: 1000',
  'maxResponseBytes: 64KiB',
  'maxStreamBytesPerMinute: 64KiB',
  'maxListingBytesPerMinute: 256KiB',
].join(', ');

describe('a server that sends too much', () => {
  let session: OpenSession;
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', `limits: {${LIMITS}}`] });
  beforeAll(async () => {
    session = await rig.openSession();
  });
  afterEach(() => rig.upstream.repent());

  function expectTooLarge(reply: Reply): Promise<void> {
    expect(reply.text).not.toContain('{},{}');
    return expectWithheldLines(rig, reply, 'result-too-large');
  }

  it('[PRF-12] of values in a result is withheld, in either era', async () => {
    rig.upstream.obey(onMethod('tools/call', (request) => body(flooded(request))));
    await expectTooLarge(await callStateless(rig.access, 'read_record', { id: 'one' }));
    await expectTooLarge(await session.call('read_record', { id: 'one' }));
  });

  it('[PRF-12] of values in an event is withheld', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [`data: ${flooded(request)}\n\n`],
        ending: 'end',
      })),
    );
    await expectTooLarge(await callStateless(rig.access, 'read_record', { id: 'one' }));
  });

  it('[PRF-12] of values in a request is refused before anything is forwarded', async () => {
    rig.upstream.forget();
    const list = Array.from({ length: 2_000 }, () => ({}));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one', list });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32600 });
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[PRF-12] in events under the cap of one is cut off at the sum of a whole answer', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [
          ...Array.from({ length: 40 }, (_, step) => progress(step)),
          sseEvent(resultFor(request, textResult('answered'))),
        ],
        ending: 'end',
      })),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).not.toContain('answered');
    await expectWithheldLines(rig, reply, 'result-too-large');
  });

  it('[PRF-12] on a stream of its own is cut off by the minute, and on record as such', async () => {
    const notification = sseEvent({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: TEXT },
    });
    rig.upstream.obey((request) =>
      request.httpMethod === 'GET'
        ? {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: Array.from({ length: 40 }, () => notification),
            ending: 'hold',
          }
        : undefined,
    );
    const response = await fetch(rig.access.url, {
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        accept: 'text/event-stream',
      },
    });
    const listening = await listenOn(response);
    await expect.poll(() => listening.isOver(), { timeout: 10_000 }).toBe(true);
    expect(listening.text().length).toBeLessThan(2 * 64 * 1024);
    await expect
      .poll(async () =>
        (await rig.gateway.audit()).some(
          (line) =>
            line['type'] === 'mcp.outcome' &&
            JSON.stringify(line).includes('"rate-limited"') &&
            JSON.stringify(line).includes('"GET"'),
        ),
      )
      .toBe(true);
  });

  it('[PRF-12] who behaves again is served again', async () => {
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(resultOf(reply)).toHaveProperty('content');
  });
});

describe('an upstream whose lists are long', () => {
  const PAGES = 20;
  let rig: AttackRig;
  afterEach(() => rig.close());

  /** Pages of 10 KiB, twenty in all: more than the 64 KiB that the limit below leaves. */
  function pageFor(request: HostileRequest): Act {
    const { cursor } = paramsOf(request);
    const index = typeof cursor === 'string' ? Number(cursor) : 0;
    const tool = {
      name: `tool_${index}`,
      description: TEXT.repeat(2),
      inputSchema: { type: 'object' },
    };
    const nextCursor = index + 1 < PAGES ? { nextCursor: String(index + 1) } : {};
    return jsonBody(resultFor(request, { tools: [tool], ...nextCursor }));
  }

  const failures = (): number => rig.gateway.log().split('its lists are longer').length - 1;
  const listings = (): number => rig.upstream.seen().filter(({ method }) => method?.endsWith('/list')).length;

  it('[PRF-12] is not asked again in a minute in which its lists were too long', async () => {
    rig = await startRig({
      upstream: ['pinning: {maxAge: 1s}', 'limits: {maxListingBytesPerMinute: 64KiB}'],
      prepare: (upstream) => upstream.obey(onMethod('tools/list', pageFor)),
    });
    // The listing that came upon the limit loses that kind alone; those that follow in this minute fail as a whole.
    expect(rig.gateway.log()).toContain('the list of tools is unavailable');
    const failed = failures();
    rig.upstream.forget();
    await expect.poll(failures, { timeout: 10_000 }).toBeGreaterThan(failed);
    expect(await rig.gateway.metrics()).toContain('sallyport_upstream_up{upstream="target"} 0');
    expect(listings()).toBe(0);
  });
});

describe('a server whose answers take the other thread', () => {
  const rig = sharedGateway();
  afterEach(() => rig.upstream.repent());

  const SHORT = 'Nothing of note. ';
  const DIRTY = 'Nothing <b>of</b> note. <img src=x> ';

  /** Clean and dirty ones, short, long and large: some are looked at here and some on the other thread. */
  function messageOf(step: number): string {
    const text = step % 2 === 0 ? SHORT : DIRTY;
    if (step % 50 === 7) return text.repeat(9_000);
    return text.repeat(step % 7 === 3 ? 700 : 1 + (step % 3) * 40);
  }

  it('[PRF-12] has its events written in order, wherever each was looked at', async () => {
    const steps = Array.from({ length: 100 }, (_, step) => step + 1);
    const event = (step: number): string =>
      sseEvent({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'p', progress: step, message: messageOf(step) },
      });
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [...steps.map(event), sseEvent(resultFor(request, textResult('answered')))],
        ending: 'end',
      })),
    );
    const { text } = await requestStateless(rig.access, 'tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
      _meta: { progressToken: 'p' },
    });
    const seen = [...text.matchAll(/"progress":(\d+)/g)].map(([, step]) => Number(step));
    expect(seen).toEqual(steps);
    expect(text.lastIndexOf('answered')).toBeGreaterThan(text.lastIndexOf('"progress"'));
  });

  it('[PRF-12] may answer many calls at once with long texts that need a closer look', async () => {
    rig.upstream.answerCalls(() => textResult(DIRTY.repeat(1_800)));
    const calls = Array.from({ length: 32 }, () => callStateless(rig.access, 'read_record', { id: 'one' }));
    for (const reply of await Promise.all(calls)) expect(resultOf(reply)).toHaveProperty('content');
  });
});
