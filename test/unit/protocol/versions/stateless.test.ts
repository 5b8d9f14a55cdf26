import { describe, expect, test } from 'vitest';
import { STATELESS } from '../../../../src/protocol/versions/stateless.js';
import { admitted, inSession, leaving, META, post, stateless } from '../admission.js';

const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const VERSION = 'io.modelcontextprotocol/protocolVersion';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const MISMATCH = { reason: 'header-mismatch', status: 400, code: -32020, id: 1 };

function encoded(text: string): string {
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

describe('version', () => {
  test('[M-10] header and body must name one version', () => {
    for (const version of [undefined, '2025-11-25', '2026-07-29', '2026-07-28, 2026-07-28']) {
      const headers = { 'mcp-protocol-version': version };
      expect(stateless('tools/list', {}, { headers })).toMatchObject(MISMATCH);
    }
    const padded = { 'mcp-protocol-version': ' 2026-07-28\t' };
    expect(admitted(stateless('tools/list', {}, { headers: padded })).version).toBe('2026-07-28');
  });

  test.each(['2027-01-01', '2025-11-25', 'v999'])('[M-15] %s in both is 400 with -32022', (version) => {
    const params = { _meta: { ...META, [VERSION]: version } };
    const outcome = stateless('tools/list', params, {
      headers: { 'mcp-protocol-version': version },
    });
    expect(outcome).toMatchObject({
      reason: 'unsupported-version',
      status: 400,
      code: -32022,
      id: 1,
    });
    expect(outcome).toHaveProperty('data.requested', version);
    // What server/discover names, and nothing else.
    expect(outcome).toHaveProperty('data.supported', ['2026-07-28']);
  });

  test('[M-16] each required member of _meta is required', () => {
    for (const key of [VERSION, CAPABILITIES]) {
      const { [key]: _gone, ...rest } = META as { [key: string]: unknown };
      expect(stateless('tools/list', { _meta: rest })).toMatchObject({
        reason: 'invalid-message',
        status: 400,
        code: -32602,
        id: 1,
      });
    }
    expect(stateless('tools/list', { _meta: undefined })).toMatchObject({
      status: 400,
      code: -32602,
    });
    expect(stateless('tools/list', { _meta: [] })).toMatchObject({ status: 400, code: -32602 });
  });

  test.each([
    [VERSION, 1],
    [CAPABILITIES, []],
    [CAPABILITIES, null],
    [CLIENT_INFO, 'x'],
    [LOG_LEVEL, 'loud'],
  ])('[M-16] %s may not be %j', (key, value) => {
    expect(stateless('tools/list', { _meta: { ...META, [key]: value } })).toMatchObject({
      status: 400,
      code: -32602,
    });
  });

  test('[M-16] clientInfo is optional and only reported', () => {
    expect(admitted(stateless('tools/list')).selfReported).toBeUndefined();
    const _meta = { ...META, [CLIENT_INFO]: { name: 'c', version: '2' }, [LOG_LEVEL]: 'debug' };
    expect(admitted(stateless('tools/list', { _meta })).selfReported).toEqual({
      name: 'c',
      version: '2',
    });
  });
});

describe('mirrored headers', () => {
  test.each([undefined, 'tools/list', 'TOOLS/CALL', 'tools/call, tools/call', '', encoded('tools/call')])(
    '[M-11] Mcp-Method %j for tools/call is refused',
    (value) => {
      expect(stateless('tools/call', { name: 't' }, { headers: { 'mcp-method': value } })).toMatchObject(MISMATCH);
    },
  );

  test.each([undefined, 'safe', 'EVIL', 'evil,evil', '', '=?base64?ZXZpbA?=', '=?base64?ZXZpbB==?='])(
    '[M-12] Mcp-Name %j for the tool "evil" is refused',
    (value) => {
      expect(stateless('tools/call', { name: 'evil' }, { headers: { 'mcp-name': value } })).toMatchObject(MISMATCH);
    },
  );

  test.each([
    ['tools/call', 'name'],
    ['prompts/get', 'name'],
    ['resources/read', 'uri'],
  ])('[M-12] %s mirrors its %s, plain, padded or encoded', (method, member) => {
    for (const value of ['a,b', ' a,b ', encoded('a,b')]) {
      const outcome = stateless(method, { [member]: 'a,b' }, { headers: { 'mcp-name': value } });
      expect(admitted(outcome).nameHeader).toBe(value.trim());
    }
    const other = stateless(method, { [member]: 'größe' }, { headers: { 'mcp-name': encoded('größe') } });
    expect(other.kind).toBe('admitted');
  });

  test('[M-12] a name with CR and LF is refused even when it is mirrored', () => {
    const name = 'a\r\nX-Evil: 1';
    expect(stateless('tools/call', { name }, { headers: { 'mcp-name': encoded(name) } })).toMatchObject(MISMATCH);
  });

  test('[M-12] Mcp-Name without a source in the body is refused', () => {
    expect(stateless('tools/list', {}, { headers: { 'mcp-name': 't' } })).toMatchObject(MISMATCH);
  });

  test('[M-13] parameter headers are kept for comparison and forwarding', () => {
    const headers = { 'mcp-param-region': 'eu', 'mcp-param-new': encoded('ü') };
    const message = admitted(stateless('tools/call', { name: 't' }, { headers }));
    expect({ ...message.paramHeaders }).toEqual(headers);
    expect(stateless('tools/call', { name: 't' }, { headers, repeated: ['mcp-param-new'] })).toMatchObject(MISMATCH);
    expect(stateless('tools/call', { name: 't' }, { headers: { 'mcp-param-a': '=?base64?*?=' } })).toMatchObject(
      MISMATCH,
    );
  });
});

describe('methods', () => {
  test.each([
    ['initialize', 'method-forbidden'],
    ['ping', 'method-forbidden'],
    ['logging/setLevel', 'method-forbidden'],
    ['resources/subscribe', 'method-forbidden'],
    ['tasks/list', 'method-forbidden'],
    ['tasks/result', 'method-forbidden'],
    ['notifications/cancelled', 'method-forbidden'],
    ['no/such', 'method-unknown'],
  ])('[M-17] %s is 404 with -32601', (method, reason) => {
    expect(stateless(method)).toMatchObject({
      reason,
      status: 404,
      code: -32601,
      message: 'Method not found',
      id: 1,
    });
  });

  test('[M-17] a notification of a client is 404', () => {
    const body = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 1, _meta: META },
    };
    expect(post(body, { headers: { 'mcp-protocol-version': '2026-07-28' } })).toMatchObject({
      status: 404,
      code: -32601,
    });
  });

  test('[T-10] answers to questions stand on three methods, and have their shape', () => {
    const named = { name: 't', uri: 'memo://t' };
    for (const extra of [{ inputResponses: { a: {} } }, { requestState: 'x' }]) {
      for (const method of ['tools/call', 'prompts/get', 'resources/read']) {
        expect(stateless(method, { ...named, ...extra }).kind).toBe('admitted');
      }
      expect(stateless('tools/list', extra)).toMatchObject({ status: 400, code: -32602 });
      expect(inSession('tools/call', { name: 't', ...extra })).toMatchObject({
        status: 200,
        code: -32602,
      });
    }
    for (const extra of [{ inputResponses: [] }, { requestState: 1 }, { InputResponses: {} }]) {
      expect(stateless('tools/call', { name: 't', ...extra })).toMatchObject({
        status: 400,
        code: -32602,
      });
    }
  });

  test('[T-10] a number of an answer that no double holds passes as it is written', () => {
    const text = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 't', inputResponses: { a: 'NUMBER' }, _meta: META },
    });
    const headers = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 't',
    };
    const body = text.replace('"NUMBER"', '9007199254740993');
    expect(post(body, { headers })).toMatchObject({ kind: 'admitted', text: body, edits: [] });
  });

  test('[M-25] Last-Event-ID is ignored, as the era asks', () => {
    expect(stateless('server/discover', {}, { headers: { 'last-event-id': '1' } }).kind).toBe('admitted');
  });
});

describe('what is cut', () => {
  test('[M-22] capabilities that are not carried, per request; all else stays byte for byte', () => {
    const text =
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28", "io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"experimental":{"n":1.50},"Roots":{}},"dev.sallyport/x":[1,{}]}}}';
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    const outcome = post(text, { headers });
    expect(leaving(outcome)).toBe(
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28", "io.modelcontextprotocol/clientCapabilities":{"experimental":{"n":1.50}}}}}',
    );
    expect(admitted(outcome).removed).toEqual(['dev.sallyport/x']);
  });

  test('[M-22] nothing is cut where nothing must go', () => {
    const _meta = { ...META, [CAPABILITIES]: { experimental: {} } };
    expect(admitted(stateless('tools/list', { _meta }))).toMatchObject({ edits: [], removed: [] });
  });
});

const { correctionOf, statusOfResponse } = STATELESS;

describe('the status of an answer', () => {
  test.each<[number, number | undefined, number]>([
    [200, undefined, 200],
    [404, undefined, 200],
    [200, -32020, 400],
    [200, -32021, 400],
    [404, -32022, 400],
    [200, -32601, 404],
    [400, -32601, 404],
    [200, -32602, 200],
    [400, -32602, 400],
    [404, -32602, 200],
    [200, -32603, 200],
    [500, -32603, 500],
    [201, -32603, 200],
    [418, 7, 200],
  ])('[T-12] that came as %s with code %s is %s', (status, code, expected) => {
    expect(statusOfResponse(status, code)).toBe(expected);
  });
});

describe('an error', () => {
  test('[T-12] has the codes of this era, and offers no version that is not policed', () => {
    const message = 'x';
    expect(correctionOf({ code: -32002, message })).toEqual({ code: -32602 });
    expect(correctionOf({ code: -32021, message })).toEqual({ code: -32021 });
    const supported = ['2026-07-28', '2027-01-01', '2024-11-05'];
    expect(correctionOf({ code: -32022, message, data: { supported } })).toEqual({
      code: -32022,
      supported: ['2026-07-28'],
    });
    expect(correctionOf({ code: -32022, message, data: { supported: ['2026-07-28'] } })).toEqual({
      code: -32022,
    });
  });
});
