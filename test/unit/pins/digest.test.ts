import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canonicalForm,
  digestDefinition,
  digestListed,
  MAX_DEFINITION_DEPTH,
  MAX_DEFINITION_VALUES,
  NO_DIGEST,
} from '../../../src/pins/digest.js';
import { digestOf } from './samples.js';

function form(value: unknown): string | undefined {
  const canonical = canonicalForm(value);
  return canonical.ok ? canonical.text : undefined;
}

test('[L-01] the order of members, number notation and escapes do not change the form (docs/reference/attacks.md case 66)', () => {
  const one = JSON.parse('{"b":1.0,"a":"\\u0041\\/","c":[1e2,-0,1E-7]}');
  const other = JSON.parse('{"c":[100,0,0.0000001],"a":"A/","b":1}');
  expect(form(one)).toBe(form(other));
  expect(form(one)).toBe('{"a":"A/","b":1,"c":[100,0,1e-7]}');
});

test('[L-01] composed and decomposed letters are two texts (docs/reference/attacks.md case 66)', () => {
  expect(digestOf({ name: '\u00e9' })).not.toBe(digestOf({ name: 'e\u0301' }));
});

test('[L-01] members are sorted by UTF-16 units (RFC 8785 §3.2.3)', () => {
  const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, 1: 4, '\u{1f600}': 5, '\u0080': 6, ö: 7 };
  expect(Object.values(JSON.parse(form(value) ?? '{}'))).toHaveLength(7);
  expect(form(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}');
});

test('[L-02] what has no form of its own is refused', () => {
  expect(canonicalForm('\ud800')).toEqual({ ok: false, why: 'lone-surrogate' });
  expect(canonicalForm({ 'a\udc00': 1 })).toEqual({ ok: false, why: 'lone-surrogate' });
  expect(canonicalForm([Number.POSITIVE_INFINITY])).toEqual({ ok: false, why: 'inexact-number' });
  expect(canonicalForm({ a: undefined })).toEqual({ ok: false, why: 'not-json' });
  expect(canonicalForm({}, false)).toEqual({ ok: false, why: 'inexact-number' });
  let deep: unknown = 1;
  for (let depth = 0; depth < MAX_DEFINITION_DEPTH; depth += 1) deep = [deep];
  expect(canonicalForm(deep).ok).toBe(true);
  expect(canonicalForm([deep])).toEqual({ ok: false, why: 'too-deep' });
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
  expect(canonicalForm(deep)).toEqual({ ok: false, why: 'too-deep' });
});

test('[PRF-12] a definition of more values than can be put into a form at once has none', () => {
  const members = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`member_${index}`, true]));
  expect(canonicalForm(members(MAX_DEFINITION_VALUES - 1)).ok).toBe(true);
  const why = 'too-many-values';
  expect(canonicalForm(members(MAX_DEFINITION_VALUES))).toEqual({ ok: false, why });
  const halves = [members(MAX_DEFINITION_VALUES / 2), members(MAX_DEFINITION_VALUES / 2)];
  expect(canonicalForm({ inputSchema: halves })).toEqual({ ok: false, why });
});

test('[L-02] a listed definition without a digest equals no pin', () => {
  expect(digestListed('tool', { name: 'a', x: 2 ** 53 }, false)).toBe(NO_DIGEST);
  expect(NO_DIGEST).not.toMatch(/^[0-9a-f]{64}$/);
});

test('[L-03] the digest is SHA-256 over the domain line and the form', () => {
  const definition = { name: 'get_issue', description: 'Reads.' };
  const text = 'sallyport.tool/1\n{"description":"Reads.","name":"get_issue"}';
  expect(digestOf(definition)).toBe(createHash('sha256').update(text).digest('hex'));
  expect(digestOf('Be brief.', 'instructions')).toBe(
    createHash('sha256').update('sallyport.instructions/1\n"Be brief."').digest('hex'),
  );
  const kinds = ['tool', 'prompt', 'template', 'instructions'] as const;
  expect(new Set(kinds.map((kind) => digestOf(definition, kind))).size).toBe(4);
});

test('[L-03] the digest is of the value: any spelling gives it, any change does not', () => {
  const json = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(json, (value) => {
      const pretty = JSON.parse(JSON.stringify(value, null, 2));
      expect(digestDefinition('tool', pretty)).toEqual(digestDefinition('tool', value));
    }),
  );
  fc.assert(
    fc.property(json, json, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      const [a, b] = [digestDefinition('tool', one), digestDefinition('tool', other)];
      if (a.ok && b.ok && a.digest === b.digest) expect(form(one)).toBe(form(other));
      if (isSame) expect(a).toEqual(b);
    }),
  );
});

test('[L-04] every part of a definition counts (docs/reference/attacks.md case 54)', () => {
  const base = {
    name: 'a',
    title: 't',
    description: 'd',
    inputSchema: { type: 'object', properties: { p: { type: 'string', default: 'x' } } },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true },
    icons: [{ src: 'https://a.example/i.png' }],
    _meta: { k: 1 },
  };
  const changed = [
    { ...base, title: 'T' },
    { ...base, description: 'd ' },
    {
      ...base,
      inputSchema: { type: 'object', properties: { p: { type: 'string', default: 'y' } } },
    },
    {
      ...base,
      inputSchema: { type: 'object', properties: { p: { type: 'string', enum: ['x'] } } },
    },
    { ...base, outputSchema: {} },
    { ...base, annotations: { readOnlyHint: false } },
    { ...base, icons: [] },
    { ...base, _meta: { k: 2 } },
    { ...base, extra: null },
  ];
  const digests = [base, ...changed].map((definition) => digestOf(definition));
  expect(new Set(digests).size).toBe(digests.length);
});
