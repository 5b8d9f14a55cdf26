// Secrets that are interrupted or spelt by characters which are themselves written as escapes: only once they are decoded
// do they vanish for whoever reads the text, or become the letters of the secret.

import { describe, expect, it } from 'vitest';
import { redactForRecord } from '../../../src/inspection/capture.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { cleanForeign } from '../../../src/text/escaping.js';
import { awsKey, githubToken, jwt } from '../../support/seeded-values.js';
import { profile } from './samples.js';

/** Characters that readers skip, in every notation in which an escape is decoded. */
const INVISIBLE = [0xad, 0x200b, 0x200d, 0x2060, 0xfeff, 0xe0041];
const NOTATIONS: Readonly<Record<string, (code: number) => string>> = {
  'a decimal reference': (code) => `&#${code};`,
  'a hexadecimal reference': (code) => `&#x${code.toString(16)};`,
  'an escape of JSON': (code) =>
    String.fromCodePoint(code)
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  'an escape of JSON in a text that is written into JSON': (code) =>
    String.fromCodePoint(code)
      .split('')
      .map((unit) => `\\\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  'an escape of JavaScript': (code) => `\\u{${code.toString(16)}}`,
  'percent triplets': (code) => encodeURIComponent(String.fromCodePoint(code)),
};
const NAMED = ['&ic;', '&it;', '&af;', '&shy;', '&NegativeThinSpace;', '&ZeroWidthSpace;'];

function shown(text: string): string {
  const message = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: { content: [{ type: 'text', text }] },
  });
  const outcome = inspectMessage({ text: message, value: JSON.parse(message), profile });
  return outcome.kind === 'changed' ? JSON.stringify(outcome.value) : message;
}

const SECRETS = { 'a token': githubToken('one'), 'a key': awsKey('one') } as const;
const FULL_WIDTH = 0xfee0;

describe.each(Object.entries(SECRETS))('%s', (_what, secret) => {
  it.each(Object.entries(NOTATIONS))('is found wherever %s interrupts it', (_notation, write) => {
    const gaps = INVISIBLE.map(write);
    for (let at = 1; at < secret.length; at++) {
      const text = `see ${secret.slice(0, at)}${gaps[at % gaps.length]}${secret.slice(at)} there`;
      expect([text, shown(text).includes('[redacted:')]).toEqual([text, true]);
    }
  });

  it.each(NAMED)('is found where %s interrupts it', (reference) => {
    const text = `see ${secret.slice(0, 9)}${reference}${secret.slice(9)} there`;
    expect(shown(text)).toContain('see [redacted:');
  });

  it.each(Object.entries(NOTATIONS))('is found in full-width letters, each %s', (_notation, write) => {
    const spelt = [...secret].map((one) => write(one.charCodeAt(0) + FULL_WIDTH)).join('');
    expect(shown(`see ${spelt} there`)).toContain('see [redacted:');
  });
});

it('what escapes spell otherwise passes byte for byte', () => {
  for (const text of [
    'Caf%C3%A9 &#8211; na&#xEF;ve \\u00e9 50%C3 100%',
    'soft&shy;hyphen &#8203; &ic; %E2%80%8B and no more',
  ])
    expect(shown(text)).toContain(JSON.stringify(text));
});

it.each(Object.entries(NOTATIONS))('a record keeps no rest of a token that %s interrupts', (_notation, write) => {
  const token = jwt('a record');
  for (const at of [20, token.length - 60, token.length - 30]) {
    const text = `memo://see/${token.slice(0, at)}${write(0x200b)}${token.slice(at)}`;
    expect(cleanForeign(text, redactForRecord)).toMatch(/^memo:\/\/see\/\[redacted:[a-z-]+\]$/);
  }
});

describe('what is encoded in a path', () => {
  const ENCODED = ['hex', 'base64', 'base64url'] as const;
  it.each(ENCODED)('is read where it is %s', (encoding) => {
    for (const secret of Object.values(SECRETS))
      for (const [before, after] of [
        ['memo://vault/open/', ''],
        ['/usr/share/doc/', '/more'],
        ['https://a.example/x/', '/b/c/d'],
      ] as const) {
        const text = `${before}${Buffer.from(`see ${secret}!`).toString(encoding)}${after}`;
        expect([text, shown(text).includes('[redacted:')]).toEqual([text, true]);
      }
  });

  it('leaves paths as they are', () => {
    for (const text of [
      '/usr/share/doc/packages/README20/aGVsbG8gd29ybGQgYWdhaW4/x',
      `/blobs/${'0123456789abcdef'.repeat(4)}/layers/${'fedcba9876543210'.repeat(4)}`,
      '/'.repeat(5_000),
    ])
      expect(shown(text)).toContain(JSON.stringify(text));
  });
});
