// A server that repeats a sensitive value where content has members of the protocol: its type, its media type, its
// annotations. A client may show any of them.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { planRedaction } from '../../../src/inspection/sensitive-fields.js';
import { fieldSteps } from '../../../src/policy/information-flow.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { profile } from './samples.js';

const POINTER = '/structuredContent/v';
const FIELDS = {
  results: [{ pointer: POINTER, effect: 'redact', steps: fieldSteps(POINTER) }],
  arguments: [],
  labels: [],
} as const;

/** The content that a client gets beside a redacted value. */
function shown(v: Json, block: JsonObject): JsonObject {
  const result = { content: [{ type: 'text', text: 'x', ...block }], structuredContent: { v } };
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
  const sensitive = planRedaction(JSON.parse(text), FIELDS, undefined);
  const outcome = inspectMessage({ text, value: JSON.parse(text), profile, sensitive });
  if (outcome.kind !== 'changed') throw new Error(JSON.stringify(outcome));
  const { content } = (outcome.value as { result: { content: JsonObject[] } }).result;
  return content[0] ?? {};
}

const VALUE = 'Kunde-4711-Nord';

describe('a redacted value', () => {
  it.each<[string, JsonObject]>([
    ['the media type', { mimeType: `text/${VALUE}` }],
    ['a parameter of the media type', { mimeType: `text/plain; note=${VALUE}` }],
    ['the media type of a resource', { resource: { uri: 'a://b', mimeType: `x/${VALUE}`, text: '' } }],
    ['the type', { type: VALUE }],
    ['the audience', { annotations: { audience: ['user', VALUE] } }],
    ['an annotation of no revision', { annotations: { note: VALUE } }],
  ])('is not repeated in %s', (_where, block) => {
    expect(JSON.stringify(shown(VALUE, block))).not.toContain(VALUE);
  });

  it('that is a date is not repeated in a time, which stays one', () => {
    const day = ['1980', '05', '04'].join('-');
    const block = shown(day, { annotations: { lastModified: `${day}T00:00:00Z` } });
    expect(block['annotations']).toEqual({ lastModified: '1970-01-01T00:00:00Z' });
  });

  it('that is a number is not repeated as a priority, which stays one', () => {
    expect(shown(123456789, { annotations: { priority: 123456789 } })['annotations']).toEqual({
      priority: 0,
    });
  });

  it.each<[string, JsonObject]>([
    ['plain', { mimeType: 'text/plain' }],
    ['text', { type: 'text' }],
    ['user', { annotations: { audience: ['user'], priority: 0.5 } }],
    ['image/png', { type: 'image', mimeType: 'image/png', data: 'QQ==' }],
  ])('such as %s leaves alone what the protocol says', (value, block) => {
    expect(shown(value, block)).toMatchObject(block);
  });
});
