// The URLs of the input requests of one message are written at once, in whatever order their keys stand, and each as it
// would be written alone.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readLink } from '../../../../src/inspection/elicitation/requests.js';
import { setMember } from '../../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { normalizeUrls } from '../../../../src/proxy/features/input-required.js';

const URLS = ['https://example.com/a', 'https://bücher.example/b', 'https://example.com/ü'];
const requestsOf = fc.dictionary(
  fc.oneof(fc.stringMatching(/^[a-c]{1,2}$/), fc.nat(20).map(String)),
  fc.record({ url: fc.constantFrom(...URLS), mode: fc.constantFrom('url', 'form') }),
  { minKeys: 1, maxKeys: 8, noNullPrototype: true },
);
type Asked = { readonly url: string; readonly mode: string };

function read(asked: Readonly<Record<string, Asked>>) {
  const inputRequests = Object.entries(asked).map(([key, params]) => {
    const name = params.mode === 'url' ? ('elicitation/url' as const) : ('elicitation/form' as const);
    return { key, name, params: params as JsonObject };
  });
  return { inputRequests, state: undefined };
}

/** A message whose keys stand in the given order, which is not always the order in which an object has them. */
function messageOf(asked: Readonly<Record<string, Asked>>, isReversed: boolean): string {
  const entries = Object.entries(asked).map(
    ([key, params]) => `${JSON.stringify(key)}: {"params": ${JSON.stringify(params)}}`,
  );
  const members = isReversed ? entries.reverse() : entries;
  return `{"result": {"note": "https://Example.com/", "inputRequests": {${members.join(', ')}}}}`;
}

it('writes all URLs as one after the other would be written', () => {
  fc.assert(
    fc.property(requestsOf, fc.boolean(), (asked, isReversed) => {
      const text = messageOf(asked, isReversed);
      let expected = text;
      for (const [key, { url, mode }] of Object.entries(asked)) {
        const path = ['result', 'inputRequests', key, 'params'];
        if (mode === 'url') expected = setMember(expected, path, 'url', readLink(url) ?? '');
      }
      expect(normalizeUrls(text, read(asked), ['result'])).toBe(expected);
    }),
  );
});

it('shows nothing of a message in which the inspection changed one of them', () => {
  const asked = { a: { url: 'https://example.com/a', mode: 'url' }, b: { url: 'https://example.com/b', mode: 'url' } };
  const text = messageOf(asked, false).replace('example.com/b"', 'example.com/[redacted]"');
  expect(normalizeUrls(text, read(asked), ['result'])).toBeUndefined();
  expect(normalizeUrls(messageOf({ a: asked.a }, false), read(asked), ['result'])).toBeUndefined();
});
