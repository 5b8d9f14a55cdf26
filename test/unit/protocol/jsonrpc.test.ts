import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import { readEnvelope } from '../../../src/protocol/jsonrpc.js';

const v = { jsonrpc: '2.0' };

describe('envelopes', () => {
  test.each<[string, Json, object]>([
    ['request', { ...v, id: 1, method: 'ping' }, { kind: 'request', id: 1, method: 'ping' }],
    ['request with params', { ...v, id: 'a', method: 'x', params: {} }, { kind: 'request', id: 'a', params: {} }],
    ['notification', { ...v, method: 'n' }, { kind: 'notification', method: 'n' }],
    ['request with null params', { ...v, id: 1.5, method: 'x', params: null }, { kind: 'request', id: 1.5 }],
    ['notification with null params', { ...v, method: 'n', params: null }, { kind: 'notification' }],
    ['result', { ...v, id: 0, result: {} }, { kind: 'result', id: 0, result: {} }],
    [
      'error',
      { ...v, id: 2, error: { code: 1, message: 'm', data: null } },
      { kind: 'error', id: 2, error: { code: 1, message: 'm', data: null } },
    ],
    ['error without id', { ...v, id: null, error: { code: 1, message: 'm' } }, { kind: 'error', id: undefined }],
  ])('[M-07] a %s is read', (_what, value, expected) => {
    expect(readEnvelope(value)).toMatchObject(expected);
  });

  test.each<[string, Json]>([
    ['no version', { id: 1, method: 'ping' }],
    ['another version', { jsonrpc: '1.0', id: 1, method: 'ping' }],
    ['a version that is a number', { jsonrpc: 2, id: 1, method: 'ping' }],
    ['a null id', { ...v, id: null, method: 'ping' }],
    ['an object as id', { ...v, id: {}, method: 'ping' }],
    ['an array as id', { ...v, id: [1], method: 'ping' }],
    ['a method that is no string', { ...v, id: 1, method: ['tools/call'] }],
    ['params as an array', { ...v, id: 1, method: 'ping', params: [] }],
    ['an unknown member', { ...v, id: 1, method: 'ping', extra: 1 }],
    ['another case of a member', { ...v, id: 1, Method: 'ping' }],
    ['method and result', { ...v, id: 1, method: 'ping', result: {} }],
    ['result and error', { ...v, id: 1, result: {}, error: { code: 1, message: '' } }],
    ['neither', { ...v, id: 1 }],
    ['a result that is no object', { ...v, id: 1, result: 'x' }],
    ['a result without id', { ...v, result: {} }],
    ['a result with a null id', { ...v, id: null, result: {} }],
    ['an error that is no object', { ...v, id: 1, error: 'x' }],
    ['an error code that is no integer', { ...v, id: 1, error: { code: 1.5, message: '' } }],
    ['an error without message', { ...v, id: 1, error: { code: 1 } }],
    ['an unknown member in the error', { ...v, id: 1, error: { code: 1, message: '', stack: '' } }],
    ['a string', 'tools/call'],
    ['null', null],
  ])('[M-07] %s is malformed', (_what, value) => {
    expect(readEnvelope(value).kind).toBe('malformed');
  });

  test('[M-07] the id of a malformed request is kept when it can be read', () => {
    expect(readEnvelope({ ...v, id: 7, method: 1 })).toEqual({ kind: 'malformed', id: 7 });
    expect(readEnvelope({ ...v, id: null, method: 1 })).toEqual({ kind: 'malformed' });
  });

  test('[M-08] every array is a batch, whatever it holds', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (value) => {
        expect(readEnvelope(value as Json)).toEqual({ kind: 'batch' });
      }),
    );
  });

  test('[M-07] no JSON makes it throw, and each has one reading', () => {
    const member = fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'result', 'error', 'x');
    fc.assert(
      fc.property(fc.dictionary(member, fc.oneof(fc.constant('2.0'), fc.jsonValue())), (value) => {
        const kinds = ['request', 'notification', 'result', 'error', 'malformed'];
        expect(kinds).toContain(readEnvelope(value as Json).kind);
      }),
    );
  });
});
