// Edits of single members: what is named changes, and nothing else does.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changeMembers } from '../../../../src/protocol/json/json.js';
import { isObject, type JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { toSessionMessage, toStatelessMessage } from '../../../../src/upstream/adapters/message-translation.js';

const plain = fc.dictionary(
  fc.string().filter((name) => name !== '__proto__'),
  fc.jsonValue(),
);

describe('a change of members', () => {
  it('[Y-01] cuts and sets what is named, and keeps the rest', () => {
    fc.assert(
      fc.property(plain, plain, fc.boolean(), (object, set, isPretty) => {
        const names = Object.keys(object);
        const cut = new Set(names.filter((_, index) => index % 2 === 0));
        const text = JSON.stringify({ result: object }, null, isPretty ? 2 : undefined);
        const changed = changeMembers(text, { path: ['result'], cut, set: set as JsonObject });
        const kept = Object.fromEntries(Object.entries(object).filter(([name]) => !cut.has(name)));
        const merged: unknown = { result: { ...kept, ...set } };
        expect(JSON.parse(changed)).toEqual(JSON.parse(JSON.stringify(merged)));
      }),
    );
  });

  it('[Y-01] leaves numbers as they are written', () => {
    const text = '{"result":{"resultType":"complete","n":12345678901234567890.10}}';
    const reader = { method: 'tools/call', version: '2025-11-25', id: 1, sentId: 1 };
    const value: JsonObject = { id: 1, ...(JSON.parse(text) as JsonObject) };
    const withId = text.replace('{', '{"id":1,');
    expect(toSessionMessage(withId, value, reader)).toBe('{"id":1,"result":{"n":12345678901234567890.10}}');
  });

  it('[Y-01] that goes to a stateless client and back says the same', () => {
    const sent = { method: 'tools/list', id: 'x', sentId: 7, progressToken: undefined };
    const reader = { method: 'tools/list', version: '2025-11-25', id: 'x', sentId: 'x' };
    fc.assert(
      fc.property(plain, (given) => {
        const { resultType: _r, ttlMs: _t, cacheScope: _c, structuredContent: _s, ...result } = given;
        const text = JSON.stringify({ jsonrpc: '2.0', id: 7, result });
        const there = toStatelessMessage(text, JSON.parse(text), sent) ?? '';
        const value: unknown = JSON.parse(there);
        expect(value).toMatchObject({ id: 'x', result: { resultType: 'complete', ttlMs: 0 } });
        const back: unknown = JSON.parse(toSessionMessage(there, JSON.parse(there), reader));
        expect(isObject(back) && back['result']).toEqual(JSON.parse(JSON.stringify(result)));
      }),
    );
  });
});
