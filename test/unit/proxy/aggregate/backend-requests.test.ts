// Asking several members at once, over exchanges of literals: what of their answers is waited for, and what
// is passed on.

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openRecord } from '../../../../src/policy/record.js';
import { encodeSseMessage } from '../../../../src/protocol/sse.js';
import type { Incoming, Outgoing } from '../../../../src/protocol/transport.js';
import { SESSION } from '../../../../src/protocol/versions/session.js';
import {
  type AggregateContext,
  backendOfName,
  replaceText,
  requestBackends,
} from '../../../../src/proxy/aggregate/backend-requests.js';
import type { Aggregate, HandleRequest } from '../../../../src/proxy/ports.js';
import { principal } from '../../policy/samples.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const REQUESTS = ['left', 'right'].map((upstream) => ({
  backend: { upstream, prefix: `${upstream}_` },
}));

function incomingList(): Incoming {
  return {
    id: '00000000-0000-4000-8000-000000000000',
    upstream: 'all',
    httpMethod: 'POST',
    headers: {},
    repeated: new Set(),
    query: '',
    body: new Uint8Array(0),
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    receivedAt: 0,
    acquireSlot: () => 'regular',
    startedMs: 0,
  };
}

function contextWith(run: HandleRequest): { context: AggregateContext; written: string[] } {
  const written: string[] = [];
  const outgoing: Outgoing = {
    isClosed: false,
    addHeader: () => undefined,
    send: (status, _headers, body) => void written.push(`${status} ${String(body)}`),
    open: (status) => void written.push(`open ${status}`),
    write: (text) => void written.push(String(text)),
    end: () => void written.push('end'),
    disconnect: () => undefined,
  };
  const incoming = incomingList();
  const message = { kind: 'request', id: 1, method: 'tools/list', params: undefined };
  const target = { kind: 'none' };
  const rule = { method: 'tools/list' };
  const admitted = {
    message,
    target,
    rule,
    protocol: SESSION,
    removed: [],
    undefinedParams: [],
    nulls: [],
  };
  const context = {
    ...{
      incoming,
      outgoing,
      run,
      record: openRecord(incoming),
      hasBackendRecords: false,
      admitted,
    },
    ports: { audit: { newDecisionId: () => 'id' } },
    aggregate: { name: 'all', challenge: () => '' } as unknown as Aggregate,
  };
  return { context: context as unknown as AggregateContext, written };
}

const answer = (text: string): string => `{"jsonrpc":"2.0","id":1,"result":{"says":"${text}"}}`;

describe('[MRG-06] members that are asked together', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('are waited for only so long once one has answered, and what comes later is for nobody', async () => {
    let late: Outgoing | undefined;
    const { context, written } = contextWith(async ({ upstream }, outgoing) => {
      if (upstream === 'left') return outgoing.send(200, JSON_TYPE, answer('left'));
      late = outgoing;
      await new Promise(() => undefined);
    });
    let isDone = false;
    const asked = requestBackends({ context, principal: principal() }, REQUESTS).then((fan) => {
      isDone = true;
      return fan;
    });
    await vi.advanceTimersByTimeAsync(9_999);
    expect(isDone).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    const fan = await asked;
    expect(fan.outcomes.map(({ backendRequest }) => backendRequest.backend.upstream)).toEqual(['left']);
    fan.send('joined');
    expect(late?.isClosed).toBe(true);
    void late?.write(encodeSseMessage('{"jsonrpc":"2.0","method":"notifications/message"}'));
    expect(written).toEqual(['200 joined']);
  });

  it('[MRG-27] are waited for shortly once they hang, until they answer within the time again', async () => {
    let answersAfterMs = Number.POSITIVE_INFINITY;
    const hanging = new Set<string>();
    const { context } = contextWith(async ({ upstream }, outgoing) => {
      if (upstream === 'left') return outgoing.send(200, JSON_TYPE, answer('left'));
      if (answersAfterMs === Number.POSITIVE_INFINITY) await new Promise(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, answersAfterMs));
      outgoing.send(200, JSON_TYPE, answer('right'));
    });
    const ask = async (): Promise<readonly [tookMs: number, answered: number]> => {
      const startedMs = performance.now();
      const { outcomes } = await requestBackends({ context, principal: principal() }, REQUESTS, {
        has: (upstream) => hanging.has(upstream),
        note: (upstream, isHanging) => void (isHanging ? hanging.add(upstream) : hanging.delete(upstream)),
      });
      return [performance.now() - startedMs, outcomes.length];
    };
    const askInTime = async (): ReturnType<typeof ask> => {
      const asked = ask();
      await vi.advanceTimersByTimeAsync(20_000);
      return asked;
    };
    expect(await askInTime()).toEqual([10_000, 1]);
    expect(await askInTime()).toEqual([500, 1]);
    // An answer that not even the whole time would have brought changes nothing.
    answersAfterMs = 15_000;
    expect(await askInTime()).toEqual([500, 1]);
    expect([...hanging]).toEqual(['right']);
    answersAfterMs = 3_000;
    expect(await askInTime()).toEqual([500, 1]);
    expect([...hanging]).toEqual([]);
    expect(await askInTime()).toEqual([3_000, 2]);
  });

  it('are waited for without end while none has answered well', async () => {
    const { context } = contextWith(async ({ upstream }, outgoing) => {
      if (upstream === 'left') return outgoing.send(502, JSON_TYPE, '{}');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
      outgoing.send(200, JSON_TYPE, answer('right'));
    });
    const asked = requestBackends({ context, principal: principal() }, REQUESTS);
    await vi.advanceTimersByTimeAsync(60_000);
    const { outcomes } = await asked;
    expect(outcomes.map(({ response: { status } }) => status)).toEqual([502, 200]);
  });

  it('have answered nothing when their exchange ends without a word', async () => {
    const { context, written } = contextWith(() => Promise.resolve());
    const fan = await requestBackends({ context, principal: principal() }, REQUESTS);
    expect(fan.outcomes.map(({ response: { text } }) => text)).toEqual([undefined, undefined]);
    fan.fail();
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/^502 .*"id":1,"error":\{"code":1506/);
  });

  it('pass on at once what is no answer, and the joined answer as the last event', async () => {
    const question = '{"jsonrpc":"2.0","id":"q","method":"roots/list"}';
    const { context, written } = contextWith(async ({ upstream }, outgoing) => {
      outgoing.open(200, {});
      if (upstream === 'left') void outgoing.write(encodeSseMessage(question));
      void outgoing.write(encodeSseMessage(answer(upstream)));
      outgoing.end();
    });
    const fan = await requestBackends({ context, principal: principal() }, REQUESTS);
    fan.send('joined');
    expect(written).toEqual([...['open 200', encodeSseMessage(question), encodeSseMessage('joined'), 'end']]);
    expect(fan.outcomes.map(({ response: { text } }) => text)).toEqual([answer('left'), answer('right')]);
  });
});

const MEMBERS = [
  { upstream: 'github', prefix: 'gh_' },
  { upstream: 'web', prefix: 'web_' },
  { upstream: 'mail', prefix: 'm.' },
];
const names = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });

describe('[MRG-02] names under prefixes', () => {
  it('map back to their member and to nothing else', () => {
    fc.assert(
      fc.property(fc.constantFrom(...MEMBERS), names, (backend, name) => {
        expect(backendOfName(MEMBERS, backend.prefix + name)).toEqual({ backend, name });
      }),
    );
  });

  it('are nobody’s under no prefix, and behind a prefix alone', () => {
    for (const { prefix } of MEMBERS) expect(backendOfName(MEMBERS, prefix)).toBeUndefined();
    for (const name of ['', 'g', 'gh', 'GH_x', ' gh_x', 'x_gh_y', '__proto__'])
      expect(backendOfName(MEMBERS, name)).toBeUndefined();
  });

  it('are edited alone: every other byte of the message stays', () => {
    fc.assert(
      fc.property(names, fc.json({ maxDepth: 3 }), fc.json({ maxDepth: 2 }), (name, args, rest) => {
        const before = `{ "jsonrpc":"2.0","id":1, "params" : {"a":${rest},"name":"old" ,"arguments":${args}} }`;
        const after = replaceText(before, ['params', 'name'], name);
        expect(after).toBe(before.replace('"old"', () => JSON.stringify(name)));
      }),
    );
  });
});
