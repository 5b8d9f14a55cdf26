import { describe, expect, test } from 'vitest';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import {
  classifyUpstreamMessage,
  renderError,
  renderMethodRefusal,
  renderNotFound,
  renderToolRefusal,
} from '../../../src/protocol/responses.js';
import { SESSION } from '../../../src/protocol/versions/session.js';
import { STATELESS } from '../../../src/protocol/versions/stateless.js';

const v = { jsonrpc: '2.0' };
const in2025 = { protocol: SESSION, id: 1, version: '2025-11-25' } as const;
const in2026 = { protocol: STATELESS, id: 1, version: '2026-07-28' } as const;

describe('what an upstream answers', () => {
  test('[M-32] its own result and error are told by id, in type and value', () => {
    const error = { code: -32602, message: 'Unknown tool' };
    for (const expected of [in2025, in2026]) {
      expect(classifyUpstreamMessage({ ...v, id: 1, result: {} }, expected)).toEqual({
        kind: 'response-result',
        result: {},
      });
      expect(classifyUpstreamMessage({ ...v, id: 1, error }, expected)).toEqual({
        kind: 'response-error',
        error,
      });
      for (const id of [2, '1']) {
        expect(classifyUpstreamMessage({ ...v, id, result: {} }, expected).kind).toBe('foreign');
        expect(classifyUpstreamMessage({ ...v, id, error }, expected).kind).toBe('foreign');
      }
      expect(classifyUpstreamMessage({ ...v, id: null, error }, expected).kind).toBe('foreign');
    }
    expect(classifyUpstreamMessage({ ...v, error }, { ...in2025, id: undefined }).kind).toBe('foreign');
  });

  test('[M-32] a request of the server is told, never taken for an answer', () => {
    expect(classifyUpstreamMessage({ ...v, id: 1, method: 'sampling/createMessage', params: {} }, in2025)).toEqual({
      kind: 'server-request',
      id: 1,
      method: 'sampling/createMessage',
      params: {},
    });
  });

  test('[M-32] notifications pass by the method table of the era', () => {
    const progress = {
      ...v,
      method: 'notifications/progress',
      params: { progressToken: 1, progress: 1 },
    };
    for (const expected of [in2025, in2026]) {
      expect(classifyUpstreamMessage(progress, expected)).toMatchObject({
        kind: 'notification',
        method: 'notifications/progress',
        params: { progress: 1 },
      });
    }
    const changed = { ...v, method: 'notifications/tools/list_changed' };
    expect(classifyUpstreamMessage(changed, in2025)).toMatchObject({
      kind: 'notification',
      params: undefined,
    });
    expect(classifyUpstreamMessage(changed, in2026).kind).toBe('foreign');
    expect(classifyUpstreamMessage({ ...v, method: 'notifications/tasks' }, in2026).kind).toBe('foreign');
    expect(classifyUpstreamMessage({ ...v, method: 'notifications/initialized' }, in2025).kind).toBe('foreign');
    expect(classifyUpstreamMessage({ ...v, method: 'tools/call', params: {} }, in2025).kind).toBe('foreign');
  });

  test('[T-02] notices of a subscription pass on its stream, and nothing else does', () => {
    const listening = { ...in2026, isListening: true };
    const changed = { ...v, method: 'notifications/tools/list_changed' };
    const progress = { ...v, method: 'notifications/progress', params: {} };
    expect(classifyUpstreamMessage(changed, listening).kind).toBe('notification');
    expect(classifyUpstreamMessage(progress, listening).kind).toBe('foreign');
    expect(classifyUpstreamMessage({ ...v, method: 'notifications/cancelled' }, listening).kind).toBe('foreign');
  });

  test('[T-06] a question is an answer only where one may be asked', () => {
    const question = { ...v, id: 1, result: { resultType: 'input_required' } };
    expect(classifyUpstreamMessage(question, { ...in2026, mayRequireInput: true }).kind).toBe(
      'response-input-required',
    );
    expect(classifyUpstreamMessage(question, in2026).kind).toBe('malformed');
    expect(classifyUpstreamMessage({ ...question, id: 2 }, { ...in2026, mayRequireInput: true }).kind).toBe('foreign');
    expect(classifyUpstreamMessage(question, { ...in2025, mayRequireInput: true }).kind).toBe('response-result');
  });

  test.each<[Json | undefined, string]>([
    [undefined, 'response-result'],
    ['complete', 'response-result'],
    ['input_required', 'malformed'],
    ['task', 'malformed'],
    ['Complete', 'malformed'],
    [null, 'malformed'],
  ])('[M-32] in 2026 a result of type %j is %s', (resultType, kind) => {
    const result = resultType === undefined ? {} : { resultType };
    expect(classifyUpstreamMessage({ ...v, id: 1, result }, in2026).kind).toBe(kind);
    expect(classifyUpstreamMessage({ ...v, id: 1, result }, in2025).kind).toBe('response-result');
  });

  test.each<[string, Json]>([
    ['a batch', [{ ...v, id: 1, result: {} }]],
    ['result and error', { ...v, id: 1, result: {}, error: { code: 1, message: '' } }],
    ['no JSON-RPC', { error: 'invalid_token' }],
  ])('[M-32] %s is malformed', (_what, value) => {
    expect(classifyUpstreamMessage(value, in2025)).toEqual({ kind: 'malformed' });
  });
});

const decision = { id: 'd-1', reason: 'arguments-invalid' };

describe('bodies of our own', () => {
  test('[M-33] an error', () => {
    expect(renderError(1, -32601, 'Method not found')).toBe(
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}',
    );
    expect(renderError('a"b', 1, 'm', { x: 1 })).toBe(
      '{"jsonrpc":"2.0","id":"a\\"b","error":{"code":1,"message":"m","data":{"x":1}}}',
    );
    expect(renderError(undefined, 1, 'm')).toBe('{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}');
  });

  test('[M-33] not found, by era and kind', () => {
    const data = '"data":{"dev.sallyport/decision":{"id":"d-1"}}';
    const body = (code: number, text: string) =>
      `{"jsonrpc":"2.0","id":1,"error":{"code":${code},"message":"${text}",${data}}}`;
    const tool = { kind: 'tool', name: 'wipe' } as const;
    const prompt = { kind: 'prompt', name: 'p' } as const;
    const resource = { kind: 'resource', uri: 'x:y' } as const;
    const template = { kind: 'template', uriTemplate: 'x:{y}' } as const;
    for (const protocol of [SESSION, STATELESS]) {
      expect(renderNotFound(protocol, tool, 1, 'd-1')).toBe(body(-32602, 'Unknown tool. Request the list again.'));
      expect(renderNotFound(protocol, prompt, 1, 'd-1')).toBe(body(-32602, 'Unknown prompt. Request the list again.'));
      expect(renderNotFound(protocol, template, 1, 'd-1')).toBe(
        body(-32602, 'Unknown resource template. Request the list again.'),
      );
      expect(renderNotFound(protocol, { kind: 'none' }, 1, 'd-1')).toBe(body(-32601, 'Method not found'));
    }
    expect(renderNotFound(SESSION, resource, 1, 'd-1')).toBe(
      body(-32002, 'Resource not found. Request the list again.'),
    );
    expect(renderNotFound(STATELESS, resource, 1, 'd-1')).toBe(
      body(-32602, 'Resource not found. Request the list again.'),
    );
  });

  test('[M-33] what is hidden and what does not exist are one body but for ids', () => {
    for (const kind of ['tool', 'prompt'] as const) {
      const hidden = renderNotFound(SESSION, { kind, name: 'secret' }, 1, 'd-1');
      expect(hidden).toBe(renderNotFound(SESSION, { kind, name: 'no such' }, 1, 'd-1'));
      expect(hidden).not.toContain('secret');
    }
  });

  test('[M-33] a refused tool call', () => {
    const rest =
      '"content":[{"type":"text","text":"Say why."}],"isError":true,"_meta":{"dev.sallyport/decision":{"id":"d-1","reason":"arguments-invalid"}}}}';
    expect(renderToolRefusal(SESSION, 1, 'Say why.', decision)).toBe(`{"jsonrpc":"2.0","id":1,"result":{${rest}`);
    expect(renderToolRefusal(STATELESS, 1, 'Say why.', decision)).toBe(
      `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",${rest}`,
    );
  });

  test('[M-33] a refusal of another method', () => {
    expect(renderMethodRefusal(1, 1422, 'Say why.', decision)).toBe(
      '{"jsonrpc":"2.0","id":1,"error":{"code":1422,"message":"Say why.","data":{"dev.sallyport/decision":{"id":"d-1","reason":"arguments-invalid"}}}}',
    );
  });
});
