// What is said of sessions names their upstream, and one owner says no more of all of them than its share.

import { describe, expect, it } from 'vitest';
import { createSessionBuses } from '../../../src/gateway/upstreams.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import {
  MAX_MESSAGES_PER_OWNER,
  type SessionMessage,
} from '../../../src/upstream/adapters/session-over-stateless/session-state.js';

const messageOf = (owner: string): SessionMessage => ({
  session: 'session',
  owner,
  news: { kind: 'log-level', level: 'debug' },
});

/** Words that are on their way until they are heard. */
function slowBus() {
  const sentMessages: Json[] = [];
  const released: (() => void)[] = [];
  const publish = (word: Json) => {
    sentMessages.push(word);
    return new Promise<'delivered'>((resolve) => released.push(() => resolve('delivered')));
  };
  const send = (_replica: string, word: Json) => publish(word);
  const busFor = createSessionBuses({
    self: 'here',
    send,
    publish,
    onMessage: () => undefined,
  });
  return { sentMessages, released, busFor };
}

describe('[Y-12] words about sessions', () => {
  it('name their upstream, to one replica and to all', async () => {
    const { sentMessages, released, busFor } = slowBus();
    const bus = busFor('search');
    const sent = [bus.send('there', messageOf('ann')), bus.publish(messageOf('ann'))];
    for (const release of released) release();
    expect(await Promise.all(sent)).toEqual(['delivered', 'delivered']);
    expect(sentMessages).toEqual([
      { upstream: 'search', ...messageOf('ann') },
      { upstream: 'search', ...messageOf('ann') },
    ]);
  });

  it('are one share of their owner, over all upstreams and after a reload', async () => {
    const { released, busFor } = slowBus();
    const upstreams = ['search', 'files'].map(busFor);
    const sent = Array.from({ length: MAX_MESSAGES_PER_OWNER }, (_, at) =>
      upstreams[at % upstreams.length]?.publish(messageOf('ann')),
    );
    expect(released.length).toBe(MAX_MESSAGES_PER_OWNER);
    for (const bus of [...upstreams, busFor('search')]) sent.push(bus.publish(messageOf('ann')));
    expect(released.length).toBe(MAX_MESSAGES_PER_OWNER);
    sent.push(upstreams[0]?.publish(messageOf('bob')));
    expect(released.length).toBe(MAX_MESSAGES_PER_OWNER + 1);
    for (const release of released.splice(0)) release();
    await new Promise((resolve) => setImmediate(resolve));
    for (const release of released.splice(0)) release();
    expect(new Set(await Promise.all(sent))).toEqual(new Set(['delivered']));
  });
});
