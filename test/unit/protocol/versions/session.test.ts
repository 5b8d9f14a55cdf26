import { describe, expect, test } from 'vitest';
import type { SessionFacts } from '../../../../src/protocol/admitted-request.js';
import { NO_SESSION_ID } from '../../../../src/protocol/admitted-request.js';
import { checkParamHeaders } from '../../../../src/protocol/versions/negotiation.js';

import { admitted, inSession, leaving, post } from '../admission.js';

const OLDEST: SessionFacts = { version: '2025-03-26', target: NO_SESSION_ID };
const MIDDLE: SessionFacts = { version: '2025-06-18', target: NO_SESSION_ID };

function initialize(params: object, headers: { [name: string]: string } = {}) {
  return post({ jsonrpc: '2.0', id: 1, method: 'initialize', params }, { headers });
}

const CLIENT = { capabilities: {}, clientInfo: { name: 'probe', version: '1' } };

describe('sessions', () => {
  test('[M-19] a session that cannot be opened is 404 with our own code', () => {
    expect(inSession('tools/list', {}, { headers: { 'mcp-session-id': 's-2' } })).toMatchObject({
      reason: 'unknown-session',
      status: 404,
      code: 1404,
      id: 1,
    });
  });

  test('[M-19] a session has one spelling: blanks that HTTP does not trim make another', () => {
    for (const id of ['s-1\u00a0', '\u00a0s-1', 's-1 ']) {
      expect(inSession('ping', undefined, { headers: { 'mcp-session-id': id } })).toMatchObject({
        reason: 'unknown-session',
        status: 404,
      });
    }
  });

  test('[M-19] a request without session is 400', () => {
    for (const method of ['ping', 'tools/list', 'tools/call', 'notifications/initialized']) {
      const body = { jsonrpc: '2.0', id: 1, method, params: { name: 't' } };
      expect(post(body)).toMatchObject({ reason: 'session-required', status: 400, code: -32600 });
    }
  });

  test.each<[SessionFacts, string | undefined, boolean]>([
    [OLDEST, undefined, true],
    [OLDEST, '2025-03-26', true],
    [OLDEST, '2025-11-25', true],
    [MIDDLE, undefined, true],
    [MIDDLE, '2025-06-18', true],
    [MIDDLE, '2025-11-25', false],
    [MIDDLE, '2025-03-26', false],
  ])('[M-20] in %j the version header %s is accepted: %s', (session, header, isAccepted) => {
    const outcome = inSession('ping', undefined, {
      session,
      headers: { 'mcp-protocol-version': header },
    });
    if (isAccepted) expect(admitted(outcome).version).toBe(session.version);
    else expect(outcome).toMatchObject({ reason: 'header-mismatch', status: 400, code: -32020 });
  });

  test('[M-20] an unknown version header in a session is 400', () => {
    for (const header of ['2024-11-05', 'v999', '2025-11-25, 2025-11-25', '']) {
      expect(inSession('ping', undefined, { headers: { 'mcp-protocol-version': header } })).toMatchObject({
        reason: 'unsupported-version',
        status: 400,
        code: -32602,
        data: { supported: ['2025-03-26', '2025-06-18', '2025-11-25'] },
      });
    }
  });

  const mirrors = { 'mcp-method': 'tools/call', 'mcp-name': 't' };
  const named = { ...mirrors, 'mcp-protocol-version': '2025-11-25' };

  test.each<[string, { [name: string]: string }]>([
    ['another method, without a version', { ...mirrors, 'mcp-method': 'tools/list' }],
    ['another name alone', { 'mcp-name': 'u' }],
    ['another method', { ...named, 'mcp-method': 'tools/list' }],
    ['another case', { ...named, 'mcp-method': 'Tools/Call' }],
    ['another name', { ...named, 'mcp-name': 'u' }],
    ['an argument, unreadable', { ...named, 'mcp-param-region': '=?base64?x?=' }],
  ])('[M-35] headers that mirror the body are refused in a session: %s', (_what, headers) => {
    expect(inSession('tools/call', { name: 't' }, { headers })).toMatchObject({
      reason: 'header-mismatch',
      status: 400,
      code: -32020,
    });
  });

  test('[M-35] headers that mirror arguments are kept for comparison on a call alone', () => {
    const headers = { 'mcp-param-region': 'eu' };
    const outcome = admitted(inSession('tools/call', { name: 't' }, { headers }));
    expect({ ...outcome.paramHeaders }).toEqual(headers);
    const catalog = { statusOf: () => ({ pinned: undefined }) };
    const error = { reason: 'header-mismatch', status: 400, code: -32020 };
    expect(checkParamHeaders(outcome, catalog)).toMatchObject(error);
    expect(inSession('ping', undefined, { headers })).toMatchObject(error);
  });

  test('[M-35] a name on a method that has none is refused in a session', () => {
    const headers = { ...named, 'mcp-method': 'ping' };
    expect(inSession('ping', { name: 't' }, { headers }).kind).toBe('error');
  });

  test.each([
    named,
    { ...named, 'mcp-name': '=?base64?dA==?=' },
    mirrors,
    { 'mcp-method': 'tools/call' },
    { 'mcp-name': 't' },
  ])('[M-35] headers that say what the body says are overlooked and not kept: %j', (headers) => {
    const outcome = admitted(inSession('tools/call', { name: 't' }, { headers }));
    expect(outcome).toMatchObject({
      protocol: { era: '2025' },
      nameHeader: undefined,
      paramHeaders: {},
    });
  });

  test('[M-35] initialize may carry the headers of a client of both eras', () => {
    const headers = { 'mcp-method': 'initialize', 'mcp-protocol-version': '2025-11-25' };
    const params = { protocolVersion: '2025-11-25', ...CLIENT };
    expect(initialize(params, headers).kind).toBe('admitted');
    expect(initialize(params, { ...headers, 'mcp-method': 'ping' }).kind).toBe('error');
    expect(initialize(params, { 'mcp-method': 'initialize' }).kind).toBe('admitted');
  });

  test('[M-25] Last-Event-ID is refused on every message', () => {
    const headers = { 'last-event-id': '1' };
    expect(inSession('ping', undefined, { headers })).toMatchObject({
      reason: 'invalid-message',
      status: 400,
    });
    expect(initialize({ protocolVersion: '2025-11-25', ...CLIENT }, headers)).toMatchObject({
      reason: 'invalid-message',
      status: 400,
    });
  });
});

describe('initialize', () => {
  test.each(['2025-03-26', '2025-06-18', '2025-11-25'])('[M-21] %s is asked for as it is', (version) => {
    const outcome = initialize({ protocolVersion: version, ...CLIENT });
    expect(admitted(outcome)).toMatchObject({
      version,
      edits: [],
      session: undefined,
      protocol: { era: '2025' },
    });
    expect(admitted(outcome).selfReported).toEqual({ name: 'probe', version: '1' });
  });

  test.each(['2024-11-05', '2026-07-28', '1.0', ''])('[M-21] instead of %j our latest is asked for', (version) => {
    const outcome = initialize({ protocolVersion: version, ...CLIENT });
    expect(admitted(outcome).version).toBe('2025-11-25');
    expect(JSON.parse(leaving(outcome)).params.protocolVersion).toBe('2025-11-25');
  });

  test('[M-21] capabilities that are not carried are cut, in any case, and all else stays', () => {
    const text = `{"method":"initialize","params":{ "capabilities" : {"Sampling":{}, "elicitation":{"form":{}},
      "experimental":{"x":1.0},"roots":{"listChanged":true},"tasks":{},"extensions":{"io.modelcontextprotocol/ui":{}}},
      "protocolVersion":"2024-11-05","clientInfo":{"name":"a","version":"b"}},"jsonrpc":"2.0","id":1}`;
    expect(leaving(post(text))).toBe(`{"method":"initialize","params":{ "capabilities" : {"experimental":{"x":1.0}},
      "protocolVersion":"2025-11-25","clientInfo":{"name":"a","version":"b"}},"jsonrpc":"2.0","id":1}`);
  });

  test('[M-21] edits ascend whichever member comes first', () => {
    const sampling = { sampling: {} };
    for (const params of [
      { protocolVersion: 'x', capabilities: sampling, _meta: { 'dev.sallyport/a': 1 } },
      { _meta: { 'dev.sallyport/a': 1 }, capabilities: sampling, protocolVersion: 'x' },
      { _meta: {}, protocolVersion: 'x', capabilities: sampling },
    ]) {
      const outcome = initialize(params);
      const starts = admitted(outcome).edits.map((edit) => edit.start);
      expect(starts).toEqual([...starts].sort((one, other) => one - other));
      expect(JSON.parse(leaving(outcome)).params).toEqual({
        protocolVersion: '2025-11-25',
        capabilities: {},
        _meta: {},
      });
    }
  });

  test.each<[string, object]>([
    ['no version', CLIENT],
    ['a version that is no string', { ...CLIENT, protocolVersion: 1 }],
    ['no capabilities', { protocolVersion: '2025-11-25' }],
    ['capabilities that are no object', { protocolVersion: '2025-11-25', capabilities: [] }],
    ['clientInfo that is no object', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: 'x' }],
    ['another case of a member', { protocolVersion: '2025-11-25', capabilities: {}, Capabilities_: 1, CLIENTINFO: {} }],
  ])('[M-18] with %s it is refused', (_what, params) => {
    expect(initialize(params)).toMatchObject({
      reason: 'invalid-message',
      status: 200,
      code: -32602,
      id: 1,
    });
  });

  test('[M-19] within a session it is refused', () => {
    const headers = { 'mcp-session-id': 's-1' };
    expect(initialize({ protocolVersion: '2025-11-25', ...CLIENT }, headers)).toMatchObject({
      reason: 'invalid-message',
      status: 400,
      code: -32600,
    });
  });

  test('[M-19] with a session that does not open it is the 404 of a dead session', () => {
    const headers = { 'mcp-session-id': 's-2' };
    expect(initialize({ protocolVersion: '2025-11-25', ...CLIENT }, headers)).toMatchObject({
      ...{ reason: 'unknown-session', status: 404, code: 1404, id: 1 },
    });
  });

  test('[M-18] as a notification it is refused', () => {
    const body = {
      jsonrpc: '2.0',
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', ...CLIENT },
    };
    expect(post(body)).toMatchObject({ reason: 'invalid-message', status: 400 });
  });
});

describe('methods and params in a session', () => {
  test.each([
    ['tasks/update', 'method-forbidden'],
    ['subscriptions/listen', 'method-forbidden'],
    ['server/discover', 'method-forbidden'],
    ['sampling/createMessage', 'method-forbidden'],
    ['tools/Call', 'method-unknown'],
    ['tools/call ', 'method-unknown'],
    ['constructor', 'method-unknown'],
    ['notifications/initialized', 'method-forbidden'],
  ])('[M-17] the request %j is 200 with -32601, for a 404 would mean a lost session', (method, reason) => {
    expect(inSession(method, {})).toMatchObject({
      reason,
      status: 200,
      code: -32601,
      message: 'Method not found',
      id: 1,
    });
  });

  test('[M-17] a notification that is not carried is 202, for clients leave on an error', () => {
    const body = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
    const outcome = post(body, { headers: { 'mcp-session-id': 's-1' } });
    expect(outcome).toMatchObject({ reason: 'method-forbidden', status: 202, code: -32601 });
    expect(outcome).not.toHaveProperty('id');
  });

  test('[M-18] a call sent as a notification is refused', () => {
    const body = { jsonrpc: '2.0', method: 'tools/call', params: { name: 't' } };
    expect(post(body, { headers: { 'mcp-session-id': 's-1' } })).toMatchObject({
      reason: 'invalid-message',
      status: 400,
    });
  });

  test.each<[string, object | undefined, object]>([
    ['tools/call', { name: 't' }, { target: { kind: 'tool', name: 't' }, args: {} }],
    ['tools/call', { name: 't', arguments: { a: 1 }, extra: 1 }, { args: { a: 1 } }],
    ['prompts/get', { name: 'p', arguments: {} }, { target: { kind: 'prompt', name: 'p' }, args: {} }],
    ['resources/read', { uri: 'x:y' }, { target: { kind: 'resource', uri: 'x:y' }, args: undefined }],
    ['resources/subscribe', { uri: 'x:y' }, { target: { kind: 'resource', uri: 'x:y' } }],
    ['resources/unsubscribe', { uri: 'x:y' }, { target: { kind: 'resource', uri: 'x:y' } }],
    ['tools/list', undefined, { target: { kind: 'none' }, args: undefined }],
    ['tools/list', { cursor: '' }, { target: { kind: 'none' } }],
    ['logging/setLevel', { level: 'warning' }, { target: { kind: 'none' } }],
    ['ping', undefined, { target: { kind: 'none' } }],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
      { target: { kind: 'prompt', name: 'p' } },
    ],
    [
      'completion/complete',
      {
        ref: { type: 'ref/resource', uri: 'x:{y}' },
        argument: { name: 'y', value: '' },
        context: { arguments: {} },
      },
      { target: { kind: 'template', uriTemplate: 'x:{y}' } },
    ],
  ])('[M-18] %s with %j is admitted', (method, params, expected) => {
    expect(admitted(inSession(method, params))).toMatchObject(expected);
  });

  test.each<[string, object | undefined]>([
    ['tools/call', undefined],
    ['tools/call', { name: '' }],
    ['tools/call', { name: ['t'] }],
    ['tools/call', { name: 't', arguments: [] }],
    ['tools/call', { name: 't', arguments: 'x' }],
    ['tools/call', { name: 't', Arguments: { path: '/' } }],
    ['tools/call', { name: 't', 'argument\u017f': {} }],
    ['tools/call', { name: 't', _Meta: {} }],
    ['tools/call', { name: 't', _meta: [] }],
    ['tools/call', { name: 't', _meta: { progressToken: {} } }],
    ['tools/call', { name: 't', requestState: 'x' }],
    ['tools/call', { name: 't', inputResponses: {} }],
    ['prompts/get', { name: 1 }],
    ['resources/read', { uri: 1 }],
    ['resources/read', { URI: 'x:y' }],
    ['tools/list', { cursor: 1 }],
    ['logging/setLevel', { level: 'loud' }],
    ['completion/complete', { ref: { type: 'ref/tool', name: 't' }, argument: { name: 'a', value: '' } }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'p', uri: 'x:y' }, argument: { name: 'a', value: '' } }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a' } }],
    [
      'completion/complete',
      {
        ref: { type: 'ref/prompt', name: 'p' },
        argument: { name: 'a', value: '' },
        context: { arguments: 1 },
      },
    ],
  ])('[M-18] %s with %j is -32602 with status 200', (method, params) => {
    expect(inSession(method, params)).toMatchObject({
      reason: 'invalid-message',
      status: 200,
      code: -32602,
      id: 1,
    });
  });

  test.each<[string, object, boolean]>([
    ['notifications/initialized', {}, true],
    ['notifications/cancelled', { requestId: 1 }, true],
    ['notifications/cancelled', { requestId: null }, false],
    ['notifications/cancelled', {}, false],
    ['notifications/progress', { progressToken: 'a', progress: 0.5 }, true],
    ['notifications/progress', { progressToken: 'a' }, false],
  ])('[M-18] the notification %s with %j is admitted: %s', (method, params, isAdmitted) => {
    const outcome = post({ jsonrpc: '2.0', method, params }, { headers: { 'mcp-session-id': 's-1' } });
    expect(outcome.kind).toBe(isAdmitted ? 'admitted' : 'error');
  });

  test('[M-23] our own members of _meta are cut, in any case, and named', () => {
    const outcome = inSession('tools/call', {
      name: 't',
      _meta: {
        'dev.sallyport/decision': { id: 'x' },
        progressToken: 1,
        'Dev.Sallyport/Y': 1,
        'dev.sallyport.x/z': 1,
      },
    });
    expect(JSON.parse(leaving(outcome)).params._meta).toEqual({
      progressToken: 1,
      'dev.sallyport.x/z': 1,
    });
    expect(admitted(outcome).removed).toEqual(['dev.sallyport/decision', 'Dev.Sallyport/Y']);
  });
});
