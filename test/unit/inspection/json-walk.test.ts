// The walk shows every leaf of JSON text with its place and its span.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Leaf, walkJson } from '../../../src/inspection/json-walk.js';
import { strictestProfile } from '../../../src/inspection/profiles.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import { profile, withRules } from './samples.js';

const caps = { maxDepth: 64, maxStrings: 10_000 };

function leavesOf(text: string): Leaf[] {
  const leaves: Leaf[] = [];
  expect(walkJson(text, caps, (leaf) => leaves.push({ ...leaf, steps: [...leaf.steps] }))).toBe(
    'done',
  );
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
    expect(strictestProfile(profile, profile)).toEqual(profile);
    const off = withRules({ pii: { action: 'off', kinds: ['card', 'iban', 'ssn'] } });
    expect(strictestProfile(off, lax).result.pii.kinds).toEqual(['card']);
  });
});
