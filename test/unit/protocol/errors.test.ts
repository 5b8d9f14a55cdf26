import { describe, expect, test } from 'vitest';
import {
  renderError,
  renderMethodRefusal,
  renderNotFound,
  renderToolRefusal,
} from '../../../src/protocol/errors.js';
import { SESSION } from '../../../src/protocol/versions/session.js';
import { STATELESS } from '../../../src/protocol/versions/stateless.js';

const decision = { id: 'd-1', reason: 'arguments-invalid' };

describe('bodies of our own', () => {
  test('[M-33] an error', () => {
    expect(renderError(1, -32601, 'Method not found')).toBe(
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}',
    );
    expect(renderError('a"b', 1, 'm', { x: 1 })).toBe(
      '{"jsonrpc":"2.0","id":"a\\"b","error":{"code":1,"message":"m","data":{"x":1}}}',
    );
    expect(renderError(undefined, 1, 'm')).toBe(
      '{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}',
    );
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
      expect(renderNotFound(protocol, tool, 1, 'd-1')).toBe(body(-32602, 'Unknown tool'));
      expect(renderNotFound(protocol, prompt, 1, 'd-1')).toBe(body(-32602, 'Unknown prompt'));
      expect(renderNotFound(protocol, template, 1, 'd-1')).toBe(
        body(-32602, 'Unknown resource template'),
      );
      expect(renderNotFound(protocol, { kind: 'none' }, 1, 'd-1')).toBe(
        body(-32601, 'Method not found'),
      );
    }
    expect(renderNotFound(SESSION, resource, 1, 'd-1')).toBe(body(-32002, 'Resource not found'));
    expect(renderNotFound(STATELESS, resource, 1, 'd-1')).toBe(body(-32602, 'Resource not found'));
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
    expect(renderToolRefusal(SESSION, 1, 'Say why.', decision)).toBe(
      `{"jsonrpc":"2.0","id":1,"result":{${rest}`,
    );
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
