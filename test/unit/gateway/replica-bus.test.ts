// What is said of sessions names their upstream, and one owner says no more of all of them than its share.

import { describe, expect, it } from 'vitest';
import { createSessionBuses } from '../../../src/gateway/upstreams.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import {
  MAX_MESSAGES_PER_OWNER,
  type SessionMessage,
} from '../../../src/upstream/adapters/session-over-stateless/session-state.js';

const wordOf = (owner: string): SessionMessage => ({
  session: 'session',
  owner,
  news: { kind: 'log-level', level: 'debug' },
});

/** Words that are on their way until they are heard. */
function slowWords() {
  const said: Json[] = [];
  const heard: (() => void)[] = [];
  const tellAll = (word: Json) => {
    said.push(word);
    return new Promise<'told'>((resolve) => heard.push(() => resolve('told')));
  };
  const tell = (_replica: string, word: Json) => tellAll(word);
  const wordsAbout = createSessionBuses({
    self: 'here',
    send: tell,
    publish: tellAll,
    onMessage: () => undefined,
  });
  return { said, heard, wordsAbout };
}

describe('[Y-12] words about sessions', () => {
  it('name their upstream, to one replica and to all', async () => {
    const { said, heard, wordsAbout } = slowWords();
    const words = wordsAbout('search');
    const told = [words.send('there', wordOf('ann')), words.publish(wordOf('ann'))];
    for (const hear of heard) hear();
    expect(await Promise.all(told)).toEqual(['told', 'told']);
    expect(said).toEqual([
      { upstream: 'search', ...wordOf('ann') },
      { upstream: 'search', ...wordOf('ann') },
    ]);
  });

  it('are one share of their owner, over all upstreams and after a reload', async () => {
    const { heard, wordsAbout } = slowWords();
    const upstreams = ['search', 'files'].map(wordsAbout);
    const told = Array.from({ length: MAX_MESSAGES_PER_OWNER }, (_, at) =>
      upstreams[at % upstreams.length]?.publish(wordOf('ann')),
    );
    expect(heard.length).toBe(MAX_MESSAGES_PER_OWNER);
    for (const words of [...upstreams, wordsAbout('search')])
      told.push(words.publish(wordOf('ann')));
    expect(heard.length).toBe(MAX_MESSAGES_PER_OWNER);
    told.push(upstreams[0]?.publish(wordOf('bob')));
    expect(heard.length).toBe(MAX_MESSAGES_PER_OWNER + 1);
    for (const hear of heard.splice(0)) hear();
    await new Promise((resolve) => setImmediate(resolve));
    for (const hear of heard.splice(0)) hear();
    expect(new Set(await Promise.all(told))).toEqual(new Set(['told']));
  });
});
