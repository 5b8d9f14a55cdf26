// A secret split over two texts, behind a word in another text that makes something of its first piece.

import { expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { noise } from '../../support/seeded-values.js';
import { profile, resultOf } from './samples.js';

const TOKEN = `np${'m_'}${noise('split', 36)}`;
const PIECES = ['toke', `n: ${TOKEN.slice(0, 22)}`, TOKEN.slice(22)] as const;

const RESULTS: readonly (readonly [string, JsonObject])[] = [
  ['content', { content: PIECES.map((text) => ({ type: 'text', text })) }],
  ['structured content', { content: [], structuredContent: { ...PIECES } }],
  ['members of the result', { notes: PIECES.map((text) => ({ text })) }],
];

it.each(RESULTS)('leaves no piece of it in %s', (_where, result) => {
  const outcome = inspectMessage({ ...resultOf(result), profile });
  const text = outcome.kind === 'changed' ? outcome.text : '';
  expect(outcome.kind).toBe('changed');
  expect(text).not.toContain(TOKEN.slice(4, 22));
  expect(text).not.toContain(TOKEN.slice(22));
});
