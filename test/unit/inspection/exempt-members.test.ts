// Members that are not content: each only in the messages that define it, and only in its own shape. The walk shows every
// leaf of JSON text with its place and its span.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exemptIn } from '../../../src/inspection/exempt-members.js';
import { strictestProfile } from '../../../src/inspection/findings.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { type Leaf, walkJson } from '../../../src/protocol/json/walk.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { githubToken } from '../../support/seeded-values.js';
import { profile, withRules } from './samples.js';

const TOKEN = githubToken('exempt');

const PAGING = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'tasks/list'];

function resultOf(members: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: 7, result: { content: [], ...members } };
}

function noteOf(method: string, params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', method: `notifications/${method}`, params };
}

function leaving(message: JsonObject, answered?: string): string {
  const text = JSON.stringify(message);
  const outcome = inspectMessage({ text, value: message, profile, requestMethod: answered });
  switch (outcome.kind) {
    case 'clean':
      return text;
    case 'changed':
      return outcome.text;
    case 'withhold':
      return '';
  }
}

describe('[I-22] a member that is not content', () => {
  const known: readonly (readonly [string, string | undefined, JsonObject])[] = [
    ['/jsonrpc', undefined, resultOf({})],
    ['/id', undefined, resultOf({})],
    ['/id', undefined, { jsonrpc: '2.0', id: TOKEN, error: { code: -1, message: 'no' } }],
    ['/method', undefined, noteOf('message', {})],
    ['/params/level', undefined, noteOf('message', { level: 'emergency', data: 'x' })],
    ['/params/progressToken', undefined, noteOf('progress', { progressToken: TOKEN, progress: 1 })],
    ['/params/requestId', undefined, noteOf('cancelled', { requestId: TOKEN })],
    ['/result/protocolVersion', 'initialize', resultOf({ protocolVersion: '2025-06-18' })],
    ['/result/resultType', 'tools/call', resultOf({ resultType: 'input_required' })],
    ['/result/cacheScope', 'resources/read', resultOf({ cacheScope: 'public' })],
    ...PAGING.map((method) => ['/result/nextCursor', method, resultOf({ nextCursor: TOKEN })] as const),
    ['/result/nextCursor', 'tools/list', resultOf({ nextCursor: `${'x'.repeat(4000)}${TOKEN}` })],
  ];
  it.each(known)('passes as it is where it is defined: %s of %s', (pointer, answered, message) => {
    expect(exemptIn(message, answered)).toContain(pointer);
    expect(leaving(message, answered)).toBe(JSON.stringify(message));
  });

  const hidden: readonly (readonly [string, string | undefined, (text: string) => JsonObject])[] = [
    ['jsonrpc', undefined, (text) => ({ jsonrpc: text, id: 1, result: {} })],
    ['method', undefined, (text) => ({ jsonrpc: '2.0', method: text, params: {} })],
    ['id', undefined, (text) => ({ jsonrpc: '2.0', id: [text], result: {} })],
    ['level', undefined, (text) => noteOf('message', { level: text })],
    ['level', undefined, (text) => noteOf('progress', { level: text })],
    ['level', undefined, (text) => noteOf('message', { level: { info: text } })],
    ['progressToken', undefined, (text) => noteOf('message', { progressToken: text })],
    ['progressToken', undefined, (text) => noteOf('progress', { progressToken: [text] })],
    ['requestId', undefined, (text) => noteOf('progress', { requestId: text })],
    ['protocolVersion', 'initialize', (text) => resultOf({ protocolVersion: text })],
    ['protocolVersion', 'tools/call', (text) => resultOf({ protocolVersion: text })],
    ['resultType', 'tools/call', (text) => resultOf({ resultType: text })],
    ['resultType', 'tools/call', (text) => resultOf({ resultType: { complete: text } })],
    ['cacheScope', 'tools/list', (text) => resultOf({ cacheScope: text })],
    ['cacheScope', 'tools/call', (text) => resultOf({ cacheScope: text })],
    ['nextCursor', 'tools/call', (text) => resultOf({ nextCursor: text })],
    ['nextCursor', undefined, (text) => resultOf({ nextCursor: text })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: { next: text } })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: `${text}\n` })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: `\u00e9 ${text}` })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: `${text}${' x'.repeat(2048)}` })],
  ];
  it.each(hidden)('is text everywhere else, and of any other shape: %s of %s', (...row) => {
    const [, answered, build] = row;
    expect(leaving(build(TOKEN), answered)).not.toContain(TOKEN);
    const script = '<script>alert(1)</script>';
    expect(leaving(build(script), answered)).not.toContain('<script');
  });

  it('is the one where it stands, not its namesake further within', () => {
    const deep: Json = { nextCursor: TOKEN, level: TOKEN, id: TOKEN, method: TOKEN };
    const message = resultOf({ structuredContent: { result: deep, params: deep } });
    expect(leaving(message, 'tools/list')).not.toContain(TOKEN);
  });
});

const caps = { maxDepth: 64, maxStrings: 10_000 };

function leavesOf(text: string): Leaf[] {
  const leaves: Leaf[] = [];
  expect(walkJson(text, caps, (leaf) => leaves.push({ ...leaf, steps: [...leaf.steps] }))).toBe('done');
  return leaves;
}

/** The same leaves by recursion over the parsed value. */
function expected(value: Json, steps: readonly (string | number)[]): [string, string, string][] {
  const place = JSON.stringify(steps);
  if (typeof value === 'string') return [['string', place, value]];
  if (typeof value === 'number') return [['number', place, String(value)]];
  if (Array.isArray(value)) return value.flatMap((one: Json, at) => expected(one, [...steps, at]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) => [
    ['name', JSON.stringify([...steps, name]), name] as [string, string, string],
    ...expected(one, [...steps, name]),
  ]);
}

describe('the walk', () => {
  it('[I-41] law: sees what a parser sees, in order, with spans that hold it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.boolean(), (json, isSpaced) => {
        const value: Json = JSON.parse(json);
        const text = JSON.stringify(value, null, isSpaced ? 2 : 0);
        const seen = leavesOf(text);
        const found = seen.map((leaf) => [
          leaf.kind,
          JSON.stringify(leaf.steps),
          leaf.kind === 'number' ? String(Number(leaf.value)) : leaf.value,
        ]);
        expect(found).toEqual(expected(JSON.parse(text), []));
        for (const { start, end, value: leaf, kind } of seen) {
          const literal: unknown = JSON.parse(text.slice(start, end));
          expect(kind === 'number' ? Number(leaf) : leaf).toEqual(literal);
        }
      }),
    );
  });

  it('[I-29] ends at its caps', () => {
    const few = { maxDepth: 2, maxStrings: 3 };
    expect(walkJson('[[["a"]]]', few, () => undefined)).toBe('too-large');
    expect(walkJson('["a","b","c","d"]', few, () => undefined)).toBe('too-large');
    expect(walkJson('[["a","b"],"c"]', few, () => undefined)).toBe('done');
  });
});

describe('profiles', () => {
  it('[I-42] of two the strictest holds, in either order, and never less than the upstream\u2019s', () => {
    const strict = {
      ...withRules({
        secrets: 'block',
        pii: { action: 'flag', kinds: ['ssn'] },
        injection: 'block',
      }),
      name: 's',
    };
    const lax = {
      ...withRules({
        secrets: 'off',
        pii: { action: 'redact', kinds: ['card'] },
        activeContent: 'off',
      }),
      name: 'l',
    };
    for (const both of [strictestProfile(strict, lax), strictestProfile(lax, strict)]) {
      expect(both.result).toMatchObject({
        secrets: 'block',
        activeContent: 'neutralize',
        injection: 'block',
      });
      expect(both.result.pii.action).toBe('redact');
      expect([...both.result.pii.kinds].sort()).toEqual(['card', 'ssn']);
    }
    expect(strictestProfile(profile, profile)).toMatchObject(profile);
    const off = withRules({ pii: { action: 'off', kinds: ['card', 'iban', 'ssn'] } });
    expect(strictestProfile(off, lax).result.pii.kinds).toEqual(['card']);
  });
});
