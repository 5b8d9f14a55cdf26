// A redacted value under an output schema: the mark where the schema admits a text, then null, no member, 0, or a power
// of ten, so that the result stays valid and no number takes it away.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { cardNumber, githubToken } from '../../support/seeded-values.js';
import { profile, resultOf } from './samples.js';

const CARD = cardNumber('schema');
const MARK = '[redacted:card]';

/** The structured content that a client gets. */
function shown(structuredContent: Json, properties: JsonObject, more: JsonObject = {}): Json {
  const compiled = compileSchema({ type: 'object', properties, ...more });
  if (!compiled.ok) throw new Error(compiled.why);
  const message = resultOf({ content: [], structuredContent });
  const outcome = inspectMessage({ ...message, profile, output: compiled.schema });
  if (outcome.kind !== 'changed') return outcome.kind;
  expect(outcome.text).not.toContain(CARD);
  expect(JSON.parse(outcome.text)).toEqual(outcome.value);
  const { result } = outcome.value as { result: { structuredContent: Json } };
  return result.structuredContent;
}

const card = Number(CARD);
const REQUIRED = { required: ['cardNumber'] };

describe('a card number as a number', () => {
  it.each<readonly [string, JsonObject, JsonObject, Json]>([
    ['admits a text', { type: ['string', 'number'] }, REQUIRED, { a: 1, cardNumber: MARK, b: 2 }],
    ['says nothing', {}, REQUIRED, { a: 1, cardNumber: MARK, b: 2 }],
    ['admits null', { type: ['number', 'null'] }, {}, { a: 1, cardNumber: null, b: 2 }],
    ['is optional', { type: 'integer' }, {}, { a: 1, b: 2 }],
    ['is required', { type: 'number' }, REQUIRED, { a: 1, cardNumber: 0, b: 2 }],
    ['has a minimum', { type: 'integer', minimum: 1e12 }, REQUIRED, { a: 1, cardNumber: 1e15, b: 2 }],
  ])('where the member %s', (_what, schema, more, expected) => {
    const content = { a: 1, cardNumber: card, b: 2 };
    expect(shown(content, { cardNumber: schema }, more)).toEqual(expected);
  });

  it('in a list and in its items', () => {
    const item = {
      type: 'object',
      properties: { card: { type: 'integer' }, pan: { type: 'number' } },
      required: ['pan'],
    };
    const properties = {
      cards: { type: 'array', items: { type: 'integer' } },
      rows: { items: item },
    };
    const content = { cards: [1, card], rows: [{ card, pan: card, x: 1 }, { pan: 5 }, { card }] };
    const valid = { ...content, rows: [{ card, pan: card, x: 1 }, { pan: 5 }] };
    expect(shown(valid, properties)).toEqual({
      cards: [1, 0],
      rows: [{ pan: 0, x: 1 }, { pan: 5 }],
    });
  });

  it('leaves out neighbours, the last ones included', () => {
    const number = { type: 'integer' };
    const content = { card, cardNumber: card, b: 2, pan: card, creditCard: card };
    const properties = { card: number, cardNumber: number, pan: number, creditCard: number };
    expect(shown(content, properties)).toEqual({ b: 2 });
  });

  it('keeps the mark of a text, and leaves a text out only where its form is asked for', () => {
    const token = githubToken('schema');
    const content = { token, other: token };
    const properties = { token: { type: 'string' }, other: { type: 'string', maxLength: 12 } };
    const longer = { ...properties, other: { type: 'string', pattern: '^gh' } };
    expect(shown(content, longer)).toEqual({ token: '[redacted:github-token]' });
    expect(shown(content, longer, { required: ['other'] })).toBe('withhold');
  });
});

describe('many findings', () => {
  it('do not fail the inspection', () => {
    const text = 'https://u@ '.repeat(140_000);
    const outcome = inspectMessage({
      ...resultOf({ content: [{ type: 'text', text }] }),
      profile: { ...profile, result: { ...profile.result, links: 'flag' } },
    });
    expect(outcome.kind).not.toBe('withhold');
  });
});

describe('a number beside others', () => {
  it.each([
    ['a parameter of a query', [`see https://x.example/s?a=${CARD}&b=1`]],
    ['a setting in a line', [`dur=439us trace=${CARD}\ndur=1us trace=1`]],
    ['an id before another block', [`id: ${CARD}`, 'id: 12']],
    ['the item of a list under any name', [`[ a b ${CARD}`, 'x'].slice(0, 1)],
  ])('is no card: %s', (_what, texts) => {
    const message = resultOf({ content: texts.map((text) => ({ type: 'text', text })) });
    expect(inspectMessage({ ...message, profile }).kind).toBe('clean');
  });

  it.each([
    ['a card as a parameter', `https://x.example/s?card=${CARD}&b=1`],
    ['prose as a parameter', `msg="paid" text=${CARD}`],
    ['prose', `it was ${CARD} and done`],
  ])('is a card: %s', (_what, text) => {
    const outcome = inspectMessage({ ...resultOf({ content: [{ type: 'text', text }] }), profile });
    expect(outcome.kind).toBe('changed');
  });
});
