// What upstreams offered first, in a store that replicas share.

import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import type { FirstUseStore } from '../../../src/state/memory.js';
import { createSharedState } from '../../../src/state/shared-state.js';
import type { StoreLink } from '../../../src/state/store.js';
import { createFakeStore } from '../../support/state.js';

const KEY = { id: 'first', bytes: randomBytes(32) };
const NEXT_KEY = { id: 'next', bytes: randomBytes(32) };

function firstUsesOver(link: StoreLink, keys = [KEY]): FirstUseStore {
  const ring = createKeyRing(keys);
  const { firstUses } = createSharedState({ ring, now: Date.now, link, maxAgeMs: 10_000 });
  if (firstUses === undefined) throw new Error('the store keeps nothing');
  return firstUses;
}

it('[L-55] are those of the replica that was first, sealed', async () => {
  const store = createFakeStore(Date.now);
  const [one, two] = [firstUsesOver(store.link()), firstUsesOver(store.link())];
  expect(await one.find('github')).toBeUndefined();
  expect(await one.keep('github', 'what one saw')).toBe('what one saw');
  expect(await two.keep('github', 'what two saw')).toBe('what one saw');
  expect(await two.find('github')).toBe('what one saw');
  expect(await two.find('gitlab')).toBeUndefined();
  expect(store.dump()).not.toContain('github');
  expect(store.dump()).not.toContain('saw');
});

it('[L-55] are found under the key of their time, and lost with it', async () => {
  const store = createFakeStore(Date.now);
  await firstUsesOver(store.link()).keep('github', 'seen');
  expect(await firstUsesOver(store.link(), [NEXT_KEY, KEY]).find('github')).toBe('seen');
  expect(await firstUsesOver(store.link(), [NEXT_KEY]).find('github')).toBeUndefined();
});

it('[L-55] are not known where the store is down, or holds what was sealed for another', async () => {
  const store = createFakeStore(Date.now);
  const firstUses = firstUsesOver(store.link());
  await firstUses.keep('github', 'seen');
  store.goDown();
  await expect(firstUses.find('github')).rejects.toThrow('no connection');
  await expect(firstUses.keep('github', 'seen')).rejects.toThrow('no connection');
  store.comeBack();
  const texts: string[] = [];
  const link = store.link();
  await firstUsesOver({
    ...link,
    keepFirst: async (hash, text, leftMs) => {
      if (text !== undefined) texts.push(text);
      return link.keepFirst(hash, text, leftMs);
    },
  }).keep('gitlab', 'of another');
  const exchanged = firstUsesOver({ ...link, keepFirst: async () => texts[0] });
  await expect(exchanged.find('github')).rejects.toThrow('did not seal');
});
