// Null in optional members is absence: cut from the text by span and from the value, and nowhere else.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { cutClientNulls, cutServerNulls } from '../../../src/protocol/null-members.js';

const message = (method: string, rest: string): string => `{"jsonrpc":"2.0","method":"${method}"${rest}}`;

function expectCut(text: string, expected: string): void {
  const outcome = cutClientNulls(text, JSON.parse(text) as Json);
  expect(outcome.text).toBe(expected);
  expect(outcome.value).toEqual(JSON.parse(expected));
}

describe('null of a client', () => {
  it.each<[string, string, string]>([
    ['tools/list', ',"params":null,"id":1', ',"id":1'],
    ['tools/list', ', "params" : { "cursor" : null } ,"id":1', ', "params" : {  } ,"id":1'],
    [
      'tools/call',
      ',"params":{"_meta":null,"name":"t","arguments":null,"task":null},"id":1',
      ',"params":{"name":"t"},"id":1',
    ],
    [
      'tools/call',
      ',"params":{"name":"t","_meta":{"progressToken":null,"v":null}}',
      ',"params":{"name":"t","_meta":{"v":null}}',
    ],
    [
      'initialize',
      ',"params":{"clientInfo":{"name":"c","title":null,"version":"1"},"capabilities":{"roots":null,"elicitation":{"form":null,"url":{}}}}',
      ',"params":{"clientInfo":{"name":"c","version":"1"},"capabilities":{"elicitation":{"url":{}}}}',
    ],
    ['notifications/initialized', ',"params":null,"id":null', ''],
    ['notifications/cancelled', ',"params":{"requestId":1,"reason":null}', ',"params":{"requestId":1}'],
    ['completion/complete', ',"params":{"context":{"arguments":null}},"id":1', ',"params":{"context":{}},"id":1'],
  ])('is cut from %s with %s', (method, rest, expected) => {
    expectCut(message(method, rest), message(method, expected));
  });

  it.each([
    message('tools/call', ',"params":{"name":"t","arguments":{"a":null,"_meta":null}},"id":1'),
    message('tools/call', ',"params":{"name":null},"id":1'),
    message('tools/call', ',"params":{"name":"null","arguments":{}},"id":1'),
    message('tools/call', ',"id":null'),
    message('tools/call', ',"params":{"cursor":null},"id":1'),
    message('tools/call', ',"params":{"_meta":{"vendor/x":null}},"id":1'),
  ])('stays where it is data, or where a member is required: %s', (text) => {
    expectCut(text, text);
  });

  it('is cut from a reply', () => {
    expectCut(
      '{"jsonrpc":"2.0","id":"x","result":{"action":"decline","content":null,"_meta":null}}',
      '{"jsonrpc":"2.0","id":"x","result":{"action":"decline"}}',
    );
  });

  it('is cut as if the member had never been there, whatever the spacing', () => {
    const members = fc.uniqueArray(fc.constantFrom('cursor', '_meta', 'a', 'b', 'c', 'd'), {
      minLength: 1,
    });
    fc.assert(
      fc.property(members, fc.constantFrom(0, 1, '\t'), (names, spacing) => {
        const params = Object.fromEntries(names.map((name) => [name, null]));
        const text = JSON.stringify({ method: 'tools/list', params, id: 1 }, undefined, spacing);
        const { cursor: _c, _meta: _m, ...others } = params;
        const { text: cut, value } = cutClientNulls(text, JSON.parse(text) as Json);
        expect(JSON.parse(cut)).toEqual({ method: 'tools/list', params: others, id: 1 });
        expect(value).toEqual(JSON.parse(cut));
      }),
    );
  });
});

describe('null of a server', () => {
  it.each<[string, string, string]>([
    [
      'tools/list',
      '{"tools":[{"name":"a","title":null,"description":null,"inputSchema":{"type":"object","properties":{"x":{"default":null}}},"annotations":{"title":null,"readOnlyHint":true}}],"nextCursor":null}',
      '{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"x":{"default":null}}},"annotations":{"readOnlyHint":true}}]}',
    ],
    [
      'prompts/list',
      '{"prompts":[{"name":"a","arguments":[{"name":"x","required":null}]},{"name":"b","arguments":null}]}',
      '{"prompts":[{"name":"a","arguments":[{"name":"x"}]},{"name":"b"}]}',
    ],
    [
      'resources/list',
      '{"resources":[{"uri":"a:b","name":"n","mimeType":null,"size":null}]}',
      '{"resources":[{"uri":"a:b","name":"n"}]}',
    ],
    [
      'initialize',
      '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":null},"serverInfo":{"name":"s","version":"1","title":null},"instructions":null}',
      '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}',
    ],
    ['tools/call', '{"content":[],"structuredContent":{"a":null}}', '{"content":[],"structuredContent":{"a":null}}'],
  ])('is cut from the result of %s', (method, result, expected) => {
    const text = (inner: string): string => `{"jsonrpc":"2.0","id":1,"result":${inner}}`;
    expect(cutServerNulls(method, text(result))).toBe(text(expected));
  });
});
