// What of a redacted value is found in other texts, whoever wrote them, and how many of the checks that keep a result
// valid run at a time.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { planInSteps, planRedaction } from '../../../src/inspection/sensitive-fields.js';
import type { CompiledSchema } from '../../../src/policy/definitions.js';
import { fieldSteps, type SensitiveField } from '../../../src/policy/information-flow.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { profile } from './samples.js';

const MARKER = '[redacted:sensitive]';

function sensitive(...pointers: readonly string[]) {
  const results = pointers.map(
    (pointer): SensitiveField => ({ pointer, effect: 'redact', steps: fieldSteps(pointer) }),
  );
  return { results, arguments: [], labels: [] };
}

function schemaOf(schema: JsonObject): CompiledSchema {
  const compiled = compileSchema(schema);
  if (!compiled.ok) throw new Error(compiled.why);
  return compiled.schema;
}

/** The result that a client gets of one that is given as JSON. */
function shown(result: string, pointers: readonly string[], output?: CompiledSchema): JsonObject {
  const text = `{"jsonrpc":"2.0","id":1,"result":${result}}`;
  const value: Json = JSON.parse(text);
  const planned = planRedaction(value, sensitive(...pointers), output);
  if (planned === undefined) throw new Error('nothing can stand for the fields');
  const outcome = inspectMessage({ text, value, profile, sensitive: planned, output });
  if (outcome.kind !== 'changed') throw new Error(`not changed: ${JSON.stringify(outcome)}`);
  return (outcome.value as JsonObject)['result'] as JsonObject;
}

const v = '/structuredContent/v';

describe('a redacted value', () => {
  it.each(['12345678901234567890', '12345.60', '1.5E10', '-0.10'])(
    '[SF-03] that is the number %s is found as the server writes it',
    (number) => {
      const content = JSON.stringify([{ type: 'text', text: `it is ${number}, see there` }]);
      const result = shown(`{"content":${content},"structuredContent":{"v":${number}}}`, [v]);
      expect(result['content']).toEqual([{ type: 'text', text: `it is ${MARKER}, see there` }]);
    },
  );

  it.each([
    ['a slash', 'AB/12345', '{"note":{"is":"AB\\/12345."}}'],
    ['an ampersand', 'A&B 12345', '{"note":{"is":"A\\u0026B 12345."}}'],
    ['an umlaut in upper case', 'Jörg Muster', '{"note":{"is":"J\\u00F6rg Muster."}}'],
  ])('[SF-03] is found in a text that is JSON with %s escaped', (_, value, text) => {
    const content = [{ type: 'text', text }];
    const result = shown(JSON.stringify({ content, structuredContent: { v: value } }), [v]);
    expect(result['content']).toEqual([{ type: 'text', text: `{"note":{"is":${JSON.stringify(`${MARKER}.`)}}}` }]);
  });

  it('[SF-03] leaves JSON valid where it is a number of a text', () => {
    const content = [{ type: 'text', text: '{"of":12345678}' }];
    const result = shown(JSON.stringify({ content, structuredContent: { v: 12345678 } }), [v]);
    expect(result['content']).toEqual([{ type: 'text', text: `{"of":"${MARKER}"}` }]);
  });

  it.each([
    ['a member', { result: '{"v":"4711","w":1}' }, { result: `{"v":"${MARKER}","w":1}` }],
    ['all of it', '{"v":"4711","w":1}', `{"v":"${MARKER}","w":1}`],
  ])('[SF-03] is found in structured content of which %s is JSON', (_, given, expected) => {
    const result = shown(JSON.stringify({ content: [], structuredContent: given }), [v]);
    expect(result['structuredContent']).toEqual(expected);
  });
});

describe('a result with a schema', () => {
  const names = [...'abcdefghijklmnopqrst'];
  const pointers = names.map((name) => `/structuredContent/${name}`);
  const structuredContent = Object.fromEntries(names.map((name, index) => [name, index]));
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'integer' }]));
  const output = schemaOf({ type: 'object', properties });

  it('[SF-02] stays valid however many fields have to be left out', () => {
    const result = shown(JSON.stringify({ content: [], structuredContent }), pointers, output);
    expect(result['structuredContent']).toEqual({});
  });

  it('[SF-02] of a union keeps the replacements that its alternative admits', () => {
    const found = {
      properties: { v: { type: 'string' }, id: { type: 'integer' } },
      required: ['v'],
    };
    const missing = { properties: { error: { type: 'string' } }, required: ['error'] };
    const result = shown(
      JSON.stringify({ content: [], structuredContent: { v: 'x', id: 1 } }),
      [v, '/structuredContent/id'],
      schemaOf({ type: 'object', anyOf: [found, missing] }),
    );
    expect(result['structuredContent']).toEqual({ v: MARKER });
  });

  it('[SF-02] asks the schema once in each step', () => {
    let checks = 0;
    const counting: CompiledSchema = {
      ...output,
      check(value) {
        checks++;
        return output.check(value);
      },
    };
    const message = { jsonrpc: '2.0', id: 1, result: { content: [], structuredContent } };
    const steps = planInSteps(message, sensitive(...pointers), counting);
    let taken = 0;
    do taken++;
    while (steps.next().done !== true);
    expect(checks).toBe(taken);
    expect(taken).toBe(2 * names.length + 1);
  });
});
