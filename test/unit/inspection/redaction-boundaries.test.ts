// What stands beside a secret arrives unchanged, for every format: before and behind it, in the next block, and in the
// next message of the same stream. It is apart from the value by a character that the value cannot have, or by the end
// of the block in which the match is complete.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LINK_SIGNATURE, SECRET_FORMATS, type SecretFormat } from '../../../src/inspection/detectors/secret-formats.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { type Pick, randomValues } from '../../support/secrets.js';
import { profile, textResult } from './samples.js';

/** What a pattern takes only between other things, or does not write out. */
const COMPLETE: { readonly [kind: string]: RegExp } = {
  jwt: /eyJ[A-Za-z0-9_-]{10,16}\.eyJ[A-Za-z0-9_-]{10,14}\.[A-Za-z0-9_-]{20,24}/,
  'terraform-token': /[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}/,
  'url-credentials': /postgres:\/\/app:[A-Za-z0-9]{12,16}[a-z][0-9]@db/,
  'connection-password': /;Password=[A-Za-z0-9]{8,12}[a-z][0-9]/,
  'mailchimp-key': /[0-9a-f]{32}-us[1-9]/,
  'azure-sas': /[?&]sig=[A-Za-z0-9]{40,60}/,
  'netrc-password': /machine x login app password [A-Za-z0-9]{10,12}[a-z][0-9]/,
  'pgpass-password': /db:5432:orders:app:[A-Za-z0-9]{10,12}[a-z][0-9]/,
};

function maker(format: SecretFormat, pick: Pick): () => string {
  if (format.check === 'basic') {
    const password = randomValues(/[A-Za-z0-9]{10,12}[a-z][0-9]/, pick);
    const [anchor] = format.anchors;
    const sign = anchor === 'auth' ? ':' : '';
    return () => `${anchor}${sign} ${Buffer.from(`app:${password()}`).toString('base64')}`;
  }
  if (format.check !== 'pem') return randomValues(COMPLETE[format.kind] ?? format.pattern, pick);
  const line = randomValues(/[A-Za-z0-9+]{64}/, pick);
  const label = `PRIVATE ${'KEY'}`;
  return () => `-----BEGIN ${label}-----\n${line()}\n${line()}\n-----END ${label}-----`;
}

const INNOCENT = ['done', 'ok', 'the', 'report', 'see', '12', 'Line', 'is', 'next', 'x', 'EU', 'café'];
const SIGNS = [' ', '\n', ', ', '. ', ': ', ' (', ') ', ' - ', ' | ', '\t', '; ', ' / ', '"'];
const innocent = fc
  .array(fc.tuple(fc.constantFrom(...INNOCENT), fc.constantFrom(...SIGNS)), { maxLength: 8 })
  .map((parts) => parts.flat().join(''));
const opening = fc
  .tuple(fc.constantFrom(...INNOCENT), fc.constantFrom(...SIGNS), innocent)
  .map((parts) => parts.join(''));

/** The characters that end a value of the format, of those that stand in prose, code and tables. */
function endsOf({ tail, check }: SecretFormat): readonly string[] {
  const ends = [' ', '\n', ',', ')', ']', '"', ';', '|', '<', '>', "'"];
  return check === 'pem' ? [''] : ends.filter((end) => !tail.test(end));
}

function textsOf(value: Json): readonly string[] {
  return (value as { result: { content: { text: string }[] } }).result.content.map(({ text }) => text);
}

/** The signature of a link stays by default, and is nothing outside a link: links.test.ts has its cases. */
const NAMED = SECRET_FORMATS.filter(({ kind }) => kind !== LINK_SIGNATURE).map((format): [string, SecretFormat] => [
  `${format.kind} ${format.pattern.source.slice(0, 24)}`,
  format,
]);

describe('law: a redaction takes the secret and nothing else', () => {
  it.each(NAMED)('of %s', (_name, format) => {
    const before = fc.tuple(innocent, fc.constantFrom('', ' ', '\n', '(', ' "'));
    const behind = fc.oneof(
      fc.constant(''),
      fc.tuple(fc.constantFrom(...endsOf(format)), opening).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(
        before,
        behind,
        opening,
        opening,
        fc.infiniteStream(fc.nat()),
        ([parts, sign], after, nextBlock, nextEvent, numbers) => {
          const pick: Pick = (bound) => Number(numbers.next().value) % bound;
          const start = parts === '' ? '' : `${parts}${sign === '' ? ' ' : sign}`;
          const secret = maker(format, pick)();
          const outcome = inspectMessage({
            ...textResult(`${start}${secret}${after}`, nextBlock),
            profile,
          });
          if (outcome.kind !== 'changed') throw new Error(`${outcome.kind}: ${secret.length}`);
          const [shown = '', ...rest] = textsOf(outcome.value);
          expect([shown.slice(0, start.length), rest]).toEqual([start, [nextBlock]]);
          expect(after === '' ? '' : shown.slice(-after.length)).toBe(after);
          const { previousTail } = outcome;
          const next = inspectMessage({ ...textResult(nextEvent), profile, previousTail });
          expect([next.kind, nextEvent]).toEqual(['clean', nextEvent]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('a name that ends one value of structured content', () => {
  it.each([
    ['a cache key', 'secret:123456', 'MDEwOlJlcG9zaXRvcnk3'],
    ['a label', 'token:', 'q8Zk2mP0xW4r7T1n'],
    ['a question', 'What is the password:', 'Bq7xT2mK9fLp'],
  ])('makes no secret of the next: %s', (_what, key, value) => {
    const structuredContent = { key, node_id: value, list: [key, value] };
    for (const text of ['done', JSON.stringify(structuredContent)]) {
      const message = { result: { content: [{ type: 'text', text }], structuredContent } };
      const outcome = inspectMessage({ text: JSON.stringify(message), value: message, profile });
      expect(outcome.findings).toEqual([]);
    }
  });
});

it('takes nothing together with the name of a text in the protocol', () => {
  const outcome = inspectMessage({ ...textResult('secret: root-ca5'), profile });
  expect(outcome.findings).toEqual([]);
});
