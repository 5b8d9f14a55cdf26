import { describe, expect, it } from 'vitest';
import { diagnosticLines, GOOD, KEY_HEX, LOCAL, read } from '../reading.js';

const STORE = 'redis://gateway:secret-of-the-store@store.internal:6380/2';

function lines(state: string, url: string = STORE, text: string = GOOD): readonly string[] {
  return diagnosticLines(`${text}state: ${state}\n`, { env: { KEY: KEY_HEX, STORE: url } });
}

describe('[REV-20] the settings of the store', () => {
  it('are those of memory unless they say otherwise', () => {
    expect(read(GOOD, { env: { KEY: KEY_HEX } }).settings?.state).toEqual({ type: 'memory' });
    const text = `${GOOD}state: {type: redis, url: {env: STORE}}\n`;
    expect(read(text, { env: { KEY: KEY_HEX, STORE } }).settings?.state).toEqual({
      type: 'redis',
      url: STORE,
      prefix: 'sallyport',
      commandTimeoutMs: 500,
      maxAgeMs: 30_000,
    });
  });

  it.each([
    ['no URL', '{type: redis}', STORE, 'error the key "url" is missing'],
    ['another scheme', '{type: redis, url: {env: STORE}}', 'https://x', 'no redis:// or rediss://'],
    ['no host', '{type: redis, url: {env: STORE}}', 'redis://', 'no redis:// or rediss://'],
    ['too short an age', '{type: redis, url: {env: STORE}, maxAge: 1s}', STORE, 'shorter than 2s'],
    [
      'a command that outlives it',
      '{type: redis, url: {env: STORE}, maxAge: 2s, commandTimeout: 1500ms}',
      STORE,
      'longer than half of "maxAge"',
    ],
    [
      'a prefix with a brace',
      '{type: redis, url: {env: STORE}, prefix: "a}b"}',
      STORE,
      'expected up to 64 letters',
    ],
  ])('are refused with %s', (_, state, url, message) => {
    const found = lines(state, url);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(message);
    expect(found[0]).not.toContain('secret-of');
  });

  it('are refused on loopback without a key that replicas could share', () => {
    const found = lines('{type: redis, url: {env: STORE}}', STORE, LOCAL);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('a shared store needs "keys"');
  });
});
