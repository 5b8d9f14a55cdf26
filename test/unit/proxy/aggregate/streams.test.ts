// The streams of an aggregate over backends of literals: one backend's part ends without the parts of the others, also
// where the client reads nothing, and the last one ends the client's stream.

import { describe, expect, it } from 'vitest';
import type { AdmittedMessage } from '../../../../src/protocol/admitted-request.js';
import { encodeSseMessage } from '../../../../src/protocol/sse.js';
import type { Outgoing } from '../../../../src/protocol/transport.js';
import type { VerifiedRequest } from '../../../../src/proxy/aggregate/backend-requests.js';
import { openStreams, subscribeToAll } from '../../../../src/proxy/aggregate/streams.js';
import { principal } from '../../policy/samples.js';

const BACKENDS = ['left', 'right'].map((upstream) => ({ upstream, prefix: `${upstream}_` }));
const SESSIONS = new Map(BACKENDS.map(({ upstream }) => [upstream, `session of ${upstream}`]));
const VERSION = '2025-11-25';
const LISTEN = { message: { kind: 'request', id: 1 }, session: undefined };

const note = (data: string): string =>
  encodeSseMessage(`{"jsonrpc":"2.0","method":"notifications/message","params":"${data}"}`);
const ACKNOWLEDGED = encodeSseMessage(
  '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}',
);

/** The pipeline run of one backend: where it writes, and its end. */
type Part = { readonly outgoing: Outgoing; end(): void };

/** A client that reads nothing, and a request of it to both backends. */
function createRig() {
  const written: string[] = [];
  const parts = new Map<string, Part>();
  const rig = { written, hasEnded: false, isDisconnected: false, part, verified: request() };
  function part(upstream: string): Part {
    const found = parts.get(upstream);
    if (found === undefined) throw new Error(`nothing was asked of ${upstream}`);
    return found;
  }
  function request(): VerifiedRequest {
    const outgoing: Outgoing = {
      get isClosed() {
        return rig.isDisconnected;
      },
      addHeader: () => undefined,
      send: () => undefined,
      open: () => undefined,
      write(text) {
        written.push(String(text));
        return new Promise(() => undefined);
      },
      end() {
        rig.hasEnded = true;
      },
      disconnect() {
        rig.isDisconnected = true;
      },
    };
    const headers = { 'mcp-session-id': 'sealed', accept: 'text/event-stream' };
    const aggregate = { name: 'all', backends: BACKENDS };
    const context = {
      ...{ outgoing, aggregate, record: {}, incoming: { headers, repeated: new Set() } },
      ports: {
        audit: { newDecisionId: () => 'id' },
        sessions: {
          open: (sealed: string) => ({
            version: VERSION,
            target: sealed === 'sealed' ? { kind: 'aggregate', sessions: SESSIONS } : { kind: 'upstream', id: sealed },
          }),
        },
      },
      run: ({ upstream }: { readonly upstream: string }, own: Outgoing) =>
        new Promise<void>((resolve) => parts.set(upstream, { outgoing: own, end: resolve })),
    };
    return { context, principal: principal() } as unknown as VerifiedRequest;
  }
  return rig;
}

describe.each<[string, (verified: VerifiedRequest) => Promise<unknown>]>([
  ['the stream of a session', openStreams],
  ['a subscription', (verified) => subscribeToAll(verified, LISTEN as unknown as AdmittedMessage)],
])('[MRG-12, MRG-16] %s', (_what, open) => {
  function begin() {
    const rig = createRig();
    const done = open(rig.verified);
    const [left, right] = [rig.part('left'), rig.part('right')];
    for (const { outgoing } of [left, right]) {
      outgoing.open(200, {});
      void outgoing.write(ACKNOWLEDGED);
    }
    rig.written.length = 0;
    return { rig, done, left, right };
  }

  it('goes on where a backend must end its part although the client does not read', async () => {
    const { rig, left, right } = begin();
    const waiting = left.outgoing.write(note('left'));
    left.outgoing.disconnect();
    await waiting;
    expect([left.outgoing.isClosed, right.outgoing.isClosed]).toEqual([true, false]);
    void left.outgoing.write(note('too late'));
    left.end();
    void right.outgoing.write(note('right'));
    expect(rig.written).toEqual([note('left'), note('right')]);
    expect([rig.isDisconnected, rig.hasEnded]).toEqual([false, false]);
  });

  it('is broken off where every backend must end its part', async () => {
    const { rig, left, right } = begin();
    left.outgoing.disconnect();
    right.outgoing.disconnect();
    expect(rig.isDisconnected).toBe(true);
  });

  it('is broken off by the last part, where the others ended by themselves', async () => {
    const { rig, left, right } = begin();
    left.end();
    await new Promise(setImmediate);
    expect(rig.isDisconnected).toBe(false);
    right.outgoing.disconnect();
    expect(rig.isDisconnected).toBe(true);
  });

  it('ends by itself where its last part does, whatever was broken off before', async () => {
    const { rig, done, left, right } = begin();
    left.outgoing.disconnect();
    left.end();
    right.end();
    await done;
    expect([rig.isDisconnected, rig.hasEnded]).toEqual([false, true]);
  });
});
