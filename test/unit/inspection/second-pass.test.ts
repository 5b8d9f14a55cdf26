// The second check stands without the first: a sanitizer that does nothing, too little, or throws lets
// nothing through. And what the first pass leaves never alarms the second.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sanitizeText } from '../../../src/inspection/detectors/text-sanitizer.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { findRemaining } from '../../../src/inspection/second-pass.js';
import {
  awsKey,
  cardNumber,
  githubToken,
  iban,
  profile,
  resultOf,
  ssn,
  textResult,
} from './samples.js';

const NO_OP = {
  sanitize: (text: string) => ({ text, notes: [] }),
  recheck: findRemaining,
};
const BROKEN = {
  sanitize: (): never => {
    throw new Error('broken');
  },
  recheck: findRemaining,
};
const BROKEN_CHECK = {
  sanitize: sanitizeText,
  recheck: (): never => {
    throw new Error('broken');
  },
};

const card = cardNumber('recheck');
const fullWidth = [...card].map((digit) => String.fromCodePoint(0xff10 + Number(digit))).join('');
const REMAINS: readonly (readonly [string, string])[] = [
  ['a secret', githubToken('recheck')],
  ['a card', card],
  ['a card in full width', fullWidth],
  ['a card with zero-width characters', [...card].join('\u200b')],
  ['a card in percent triplets', [...card].map((digit) => `%3${digit}`).join('')],
  ['a card in references', [...card].map((digit) => `&#x3${digit};`).join('')],
  ['a card in escapes', [...card].map((digit) => `\\u003${digit}`).join('')],
  ['a card in base64', Buffer.from(`the card is ${card}`).toString('base64')],
  ['a card in hex', Buffer.from(`the card is ${card}`).toString('hex')],
  ['an IBAN', iban('DE', '370400440532013000')],
  ['a social security number', ssn('recheck')],
  ['an image', '![a](https://e.example/p.png)'],
  ['a script', '<script>alert(1)</script>'],
  ['an invisible character', 'a\u202eb'],
  ['a terminal sequence', 'a\u001b[31mb'],
];

describe('the second check', () => {
  it.each(REMAINS)('[I-30] catches what a sabotaged first pass left: %s', (_what, text) => {
    const outcome = inspectMessage({ ...textResult(`see ${text} there`), profile }, NO_OP);
    expect(outcome).toMatchObject({ kind: 'withhold', reason: 'result-content' });
    const inner = textResult(JSON.stringify({ note: text }));
    const structured = resultOf({ content: [], structuredContent: { list: [text] } });
    for (const message of [inner, structured]) {
      const joined = inspectMessage({ ...message, profile }, NO_OP);
      // What is joined with its name is cut by a part of the first pass that is not sabotaged.
      if (joined.kind === 'changed') expect(joined.text).not.toContain(text);
      else expect(joined).toMatchObject({ reason: 'result-content' });
    }
  });

  it.each(REMAINS)(
    '[I-30] is content with what the real first pass leaves of %s',
    (_what, text) => {
      const outcome = inspectMessage({ ...textResult(`see ${text} there`), profile });
      expect(outcome.kind).toBe('changed');
    },
  );

  it('[I-30] joins what a reader joins: the blocks, and the message before', () => {
    const key = awsKey('recheck');
    const rules = profile.result;
    const base = { rules, approved: new Set<string>(), maxDepth: 64 };
    const { text } = textResult(`a ${key.slice(0, 9)}`, `${key.slice(9)} b`);
    expect(findRemaining({ ...base, text, tail: '' })).toEqual(['split']);
    const later = textResult(`${key.slice(9)} b`).text;
    expect(findRemaining({ ...base, text: later, tail: '' })).toEqual([]);
    expect(findRemaining({ ...base, text: later, tail: `a ${key.slice(0, 9)}` })).toEqual([
      'split',
    ]);
  });

  it('[I-30] refuses a text that became unreadable or ambiguous', () => {
    const base = { rules: profile.result, approved: new Set<string>(), tail: '', maxDepth: 64 };
    expect(findRemaining({ ...base, text: '{"a":1,"A":2}' })).toEqual(['unreadable']);
    expect(findRemaining({ ...base, text: '{"a":' })).toEqual(['unreadable']);
  });

  it('[I-31] an inspector that throws withholds: never the original', () => {
    const message = textResult(`see ${card} there`);
    for (const inspectors of [BROKEN, BROKEN_CHECK]) {
      const outcome = inspectMessage({ ...message, profile }, inspectors);
      expect(outcome).toMatchObject({ kind: 'withhold', reason: 'internal' });
      expect(JSON.stringify(outcome)).not.toContain(card);
    }
  });

  it('[I-32] law: inspecting twice changes nothing more, whatever the text', () => {
    const piece = fc.oneof(
      fc.constantFrom(...REMAINS.map(([, text]) => text)),
      fc.constantFrom(
        'password=',
        'token: ',
        '"',
        '{"a":"',
        '"}',
        '`',
        '\n',
        '](',
        '<b ',
        ' ',
        '![',
        '\\u0041',
      ),
      fc.string({ maxLength: 8 }),
    );
    const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), (texts) => {
        const first = inspectMessage({ ...textResult(...texts), profile });
        if (first.kind !== 'changed') return;
        const again = inspectMessage({ text: first.text, value: first.value, profile });
        // Our own findings are removed and told anew; nothing else changes.
        const withoutMeta = (value: unknown): unknown =>
          JSON.parse(JSON.stringify(value, (name, one) => (name === '_meta' ? undefined : one)));
        expect(again.kind).toBe('changed');
        if (again.kind === 'changed')
          expect(withoutMeta(again.value)).toEqual(withoutMeta(first.value));
      }),
      { numRuns: 400 },
    );
  });
});
