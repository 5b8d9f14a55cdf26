import { PromptSchema, ResourceSchema, ResourceTemplateSchema, ToolSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { describeShapeError, findSessionShapeError, findShapeError } from '../../../src/protocol/definition-shape.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';

const ANNOTATIONS: JsonObject = {
  audience: ['user'],
  priority: 0.5,
  lastModified: '2025-01-12T15:00:58Z',
};

/** One definition of each kind with every member that has a rule. */
const COMPLETE = {
  tools: {
    ...{ name: 'read', title: 'Read', description: 'Reads.', _meta: { 'x/y': 1 } },
    inputSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    outputSchema: { type: 'object', properties: { b: {} }, required: ['b'] },
    annotations: {
      ...{ title: 'Read', readOnlyHint: true, destructiveHint: false },
      ...{ idempotentHint: true, openWorldHint: false },
    },
    execution: { taskSupport: 'optional' },
  },
  prompts: {
    ...{ name: 'start', title: 'Start', description: 'Starts.', _meta: {} },
    arguments: [{ name: 'who', description: 'A name.', required: true }],
  },
  templates: {
    ...{ name: 'file', uriTemplate: 'file:///{path}', title: 'File', description: 'A file.' },
    ...{ mimeType: 'text/plain', annotations: ANNOTATIONS, _meta: {} },
  },
  resources: {
    ...{ name: 'file', uri: 'file:///a', title: 'File', description: 'A file.' },
    ...{ mimeType: 'text/plain', size: 3, annotations: ANNOTATIONS, _meta: {} },
  },
} as const satisfies { readonly [list: string]: JsonObject };

const SDK = {
  tools: ToolSchema,
  prompts: PromptSchema,
  templates: ResourceTemplateSchema,
  resources: ResourceSchema,
};

const LISTS = ['tools', 'prompts', 'templates', 'resources'] as const;
const OTHERS: readonly Json[] = ['object', 'true', '2025-01-12', '', 7, -1, true, [], ['x'], {}, { x: true }];

/** Every value that differs from the given one at one place: changed there, or without that member. */
function variants(value: Json): readonly Json[] {
  if (Array.isArray(value))
    return value.flatMap((one: Json, at) =>
      [...OTHERS, ...variants(one)].map((other) => value.toSpliced(at, 1, other)),
    );
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const { [name]: _, ...rest } = value as JsonObject;
    return [rest, ...[...OTHERS, ...variants(member)].map((other) => ({ ...rest, [name]: other }))];
  });
}

describe('what a definition in a list must be', () => {
  it.each(LISTS)('is what the official SDK reads: %s', (list) => {
    const all = [COMPLETE[list], ...variants(COMPLETE[list])] as JsonObject[];
    const readable = (definition: JsonObject) => SDK[list].safeParse(definition).success;
    const differing = all.filter(
      (definition) => readable(definition) !== (findSessionShapeError(list, definition) === undefined),
    );
    expect(differing).toEqual([]);
    expect(all.filter(readable).length).toBeGreaterThan(2);
    expect(all.length - all.filter(readable).length).toBeGreaterThan(20);
  });

  it.each([
    ['without inputSchema', { name: 'a' }, 'inputSchema: is missing'],
    [
      'a hint as text',
      { ...COMPLETE.tools, annotations: { readOnlyHint: 'true' } },
      'annotations/readOnlyHint: expected boolean, got string',
    ],
    ['a schema without a type', { name: 'a', inputSchema: {} }, 'inputSchema/type: is missing'],
    ['a title in another type', { ...COMPLETE.tools, title: ['a'] }, 'title: expected string, got array'],
    [
      'an output schema that is a boolean',
      { ...COMPLETE.tools, outputSchema: true },
      'outputSchema: expected object, got boolean',
    ],
  ])('names the place: %s', (_what, definition, clause) => {
    const error = findShapeError('tools', definition as JsonObject);
    expect(error && describeShapeError(error)).toBe(clause);
  });

  it.each([
    ['an output schema of another type', { outputSchema: { type: 'array' } }],
    ['an output schema with a choice at its root', { outputSchema: { anyOf: [{}] } }],
    ['a property that is true', { inputSchema: { type: 'object', properties: { a: true } } }],
    ['another kind of execution', { execution: { taskSupport: 'maybe' } }],
  ])('asks less in the stateless era: %s', (_what, more) => {
    const definition: JsonObject = { ...COMPLETE.tools, ...more };
    expect(findShapeError('tools', definition)).toBeUndefined();
    expect(findSessionShapeError('tools', definition)).toBeDefined();
  });

  it('takes null in an optional member for absence', () => {
    const nulls = Object.fromEntries(Object.keys(COMPLETE.tools).map((name) => [name, null]));
    const { name, inputSchema } = COMPLETE.tools;
    expect(findSessionShapeError('tools', { ...nulls, name, inputSchema })).toBeUndefined();
  });
});
