import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admitPost, admitSessionEnd, admitStreamOpen } from '../../../src/protocol/admission.js';
import type { AdmittedMessage } from '../../../src/protocol/admitted-request.js';
import { exactJson } from '../../../src/protocol/json/exact-numbers.js';
import { applyEdits } from '../../../src/protocol/json/json.js';
import { admitted, inSession, leaving, META, opener, post, SESSION, stateless } from './admission.js';

const bytes = (...values: number[]) => Uint8Array.from(values);
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wipe' } };

describe('[P-33] members of params', () => {
  const dropped = (outcome: ReturnType<typeof post>) => admitted(outcome).undefinedParams;
  const inRevision = (version: string, method: string, params: object) =>
    inSession(method, params, { session: { ...SESSION, version } });

  test('that the revision does not define are cut out of the text and of what is read', () => {
    const outcome = inSession('tools/call', {
      extra: { a: [1] },
      name: 'wipe',
      arguments: { id: 1 },
      _meta: { own: 1 },
      other: 2,
    });
    expect(dropped(outcome)).toEqual(['extra', 'other']);
    expect(leaving(outcome)).toBe(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe","arguments":{"id":1},"_meta":{"own":1}}}',
    );
    expect(admitted(outcome).message).toMatchObject({ params: { name: 'wipe' } });
    expect(admitted(outcome).message).not.toHaveProperty('params.extra');
  });

  test('are those of the revision, in sessions and without', () => {
    const context = {
      ref: { type: 'ref/prompt', name: 'p' },
      argument: { name: 'a', value: '' },
      context: {},
    };
    expect(dropped(inRevision('2025-03-26', 'completion/complete', context))).toEqual(['context']);
    expect(dropped(inRevision('2025-06-18', 'completion/complete', context))).toEqual([]);
    const listed = { cursor: 'c', level: 'x' };
    expect(dropped(stateless('tools/list', listed))).toEqual(['level']);
    expect(dropped(inSession('tools/list', listed))).toEqual(['level']);
    // A request for a task is cut too, and recorded by the feature that knows of tasks.
    const wish = stateless('tools/call', { name: 'wipe', task: {} });
    expect([dropped(wish), leaving(wish).includes('task')]).toEqual([[], false]);
    const retry = { name: 'wipe', requestState: 's', inputResponses: {} };
    expect(dropped(stateless('tools/call', retry))).toEqual([]);
    expect(dropped(inSession('ping', { now: true }))).toEqual(['now']);
  });

  test('that are all defined leave the bytes as they came', () => {
    const outcome = admitted(stateless('tools/call', { name: 'wipe', arguments: { any: 1 } }));
    expect(outcome.edits).toEqual([]);
    expect(outcome.undefinedParams).toEqual([]);
  });
});

describe('reading', () => {
  test.each([
    ['invalid UTF-8', bytes(0x7b, 0xff, 0x7d)],
    ['a byte order mark', bytes(0xef, 0xbb, 0xbf, 0x7b, 0x7d)],
    ['no bytes', bytes()],
  ])('[M-01] %s is 400 with -32700', (_what, body) => {
    const outcome = admitPost({
      headers: {},
      repeated: new Set(),
      body,
      openSession: () => SESSION,
    });
    expect(outcome).toMatchObject({ reason: 'malformed-json', status: 400, code: -32700 });
    expect(outcome).not.toHaveProperty('id');
  });

  test('[M-02] a duplicate member is 400 with -32600', () => {
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","Name":"evil"}}';
    expect(post(body)).toMatchObject({ reason: 'duplicate-key', status: 400, code: -32600 });
  });

  test('[M-03] a body nested too deeply is 400 with -32600', () => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(259)}${']'.repeat(259)}}`;
    expect(post(body)).toMatchObject({
      ...{ reason: 'invalid-message', status: 400, code: -32600 },
      message: 'The body is nested deeper than 259 levels.',
    });
  });

  test('[M-08] an array is refused whatever it holds and whatever the headers say', () => {
    for (const body of ['[]', JSON.stringify([call]), JSON.stringify([call, call])]) {
      for (const headers of [{}, { 'mcp-session-id': 's-1' }, { 'mcp-protocol-version': '2026-07-28' }]) {
        expect(post(body, { headers })).toMatchObject({
          reason: 'batch-forbidden',
          status: 400,
          code: -32600,
        });
      }
    }
  });

  test('[M-07] a malformed envelope is 400 with the id that it had', () => {
    expect(post({ ...call, extra: 1 })).toMatchObject({
      reason: 'invalid-message',
      status: 400,
      code: -32600,
      id: 1,
    });
    expect(post({ ...call, id: null })).not.toHaveProperty('id');
  });

  test.each([
    ['a result', { jsonrpc: '2.0', id: 1, result: {} }],
    ['an error', { jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } }],
  ])('[M-24] %s that answers nothing is refused in every era', (_what, body) => {
    for (const headers of [{}, { 'mcp-session-id': 's-1' }, { 'mcp-protocol-version': '2026-07-28' }]) {
      expect(post(body, { headers })).toMatchObject({ status: 400, code: -32600 });
    }
  });

  test.each(['4503599627370496.1', '1.00000000000000000001', '1.5', '-0', '1e400', '17.0'])(
    '[M-06] an id that is the number %s passes as it came',
    (id) => {
      const headers = { 'mcp-session-id': 's-1' };
      const body = `{"jsonrpc":"2.0","method":"tools/list","id":${id}}`;
      expect(leaving(post(body, { headers }))).toBe(body);
    },
  );

  test.each(['1e1000', '1e999999999', '-1e-1000', `1${'0'.repeat(256)}`])(
    '[M-06] an id that is a number beyond the bounds is refused by name: %s',
    (id) => {
      const headers = { 'mcp-session-id': 's-1' };
      const body = `{"jsonrpc":"2.0","method":"tools/list","id":${id}}`;
      expect(post(body, { headers })).toMatchObject({
        status: 400,
        code: -32600,
        message: expect.stringMatching(/^The id is a number of more than 256 characters/),
      });
    },
  );

  test('[M-06] a number that a double changes passes as it came, and is kept as it is written', () => {
    const raw = (id: string, args: string, other: string) =>
      post(
        `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":${args},"_meta":{"other":${other}}},"id":${id}}`,
        {
          headers: { 'mcp-session-id': 's-1' },
        },
      );
    for (const literal of ['9007199254740993', '1e400']) {
      const text = `{"a":[{"b":${literal}, "c":0.1}], "d":1}`;
      const { args = {}, ...call } = admitted(raw('1', text, '0'));
      expect(applyEdits(call.text, call.edits)).toContain(text);
      expect(exactJson(args)).toBe(text.replaceAll(' ', ''));
      expect(leaving(raw('1', '{}', literal))).toContain(literal);
    }
    expect(admitted(raw('1', '{"a":1.0,"b":1e2,"c":0.1}', '0')).args).toEqual({
      a: 1,
      b: 100,
      c: 0.1,
    });
  });
});

describe('which era', () => {
  test('[M-27] a call with neither session, envelope nor version is refused', () => {
    for (const headers of [{}, { 'mcp-protocol-version': '2025-11-25' }]) {
      expect(post(call, { headers })).toMatchObject({
        reason: 'session-required',
        status: 400,
        code: -32600,
        id: 1,
      });
    }
  });

  test.each<[string, object, { [name: string]: string }, number]>([
    [
      'a 2026 envelope under an older header',
      { ...call, params: { ...call.params, _meta: META } },
      { 'mcp-protocol-version': '2025-11-25' },
      -32020,
    ],
    ['a 2026 envelope without header', { ...call, params: { ...call.params, _meta: META } }, {}, -32020],
    ['a 2026 header without envelope', call, { 'mcp-protocol-version': '2026-07-28' }, -32602],
    ['a 2026 header within a session', call, { 'mcp-protocol-version': '2026-07-28', 'mcp-session-id': 's-1' }, -32020],
    [
      'a 2026 envelope within a session',
      { ...call, params: { ...call.params, _meta: META } },
      { 'mcp-session-id': 's-1' },
      -32020,
    ],
    [
      'a part of the envelope within a session',
      {
        ...call,
        params: { ...call.params, _meta: { 'io.modelcontextprotocol/clientCapabilities': {} } },
      },
      { 'mcp-session-id': 's-1' },
      -32020,
    ],
    [
      'a version that is no string within a session',
      {
        ...call,
        params: { ...call.params, _meta: { 'io.modelcontextprotocol/protocolVersion': null } },
      },
      { 'mcp-session-id': 's-1' },
      -32020,
    ],
    [
      'a 2026 header on initialize',
      { ...call, method: 'initialize' },
      { 'mcp-protocol-version': '2026-07-28' },
      -32602,
    ],
  ])('[M-27] %s is refused, never resolved', (_what, body, headers, code) => {
    expect(post(body, { headers })).toMatchObject({ kind: 'error', status: 400, code, id: 1 });
  });

  test.each(['mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name', 'last-event-id'])(
    '[M-34] a repeated %s is refused',
    (name) => {
      const expected = { reason: 'header-mismatch', status: 400, code: -32020, id: 1 };
      expect(stateless('tools/call', { name: 't' }, { repeated: [name] })).toMatchObject(expected);
      expect(inSession('tools/call', { name: 't' }, { repeated: [name] })).toMatchObject(expected);
    },
  );

  test('[M-34] other headers may repeat', () => {
    expect(inSession('ping', undefined, { repeated: ['accept'] }).kind).toBe('admitted');
  });

  test('[M-15] a header of an unknown version is refused with what is carried', () => {
    expect(post(call, { headers: { 'mcp-protocol-version': 'v999' } })).toMatchObject({
      reason: 'unsupported-version',
      status: 400,
      code: -32022,
      id: 1,
      data: {
        supported: ['2026-07-28', '2025-03-26', '2025-06-18', '2025-11-25'],
        requested: 'v999',
      },
    });
  });

  test('[M-15] what does not look like a version is not echoed', () => {
    const requested = '<img src=x>';
    expect(JSON.stringify(post(call, { headers: { 'mcp-protocol-version': requested } }))).not.toContain('img');
  });

  test('[M-27] for every mix of era signs one era is admitted only when all signs agree', () => {
    const signs = fc.record({
      header: fc.constantFrom(undefined, '2025-03-26', '2025-11-25', '2026-07-28', '2024-11-05', ''),
      session: fc.constantFrom(undefined, 's-1', 's-2'),
      meta: fc.constantFrom(undefined, META, { 'io.modelcontextprotocol/protocolVersion': '2025-11-25' }, {}),
      mirrors: fc.boolean(),
    });
    fc.assert(
      fc.property(signs, ({ header, session, meta, mirrors }) => {
        const body = { ...call, params: { ...call.params, _meta: meta } };
        const headers = {
          'mcp-protocol-version': header,
          'mcp-session-id': session,
          ...(mirrors ? { 'mcp-method': 'tools/call', 'mcp-name': 'wipe' } : {}),
        };
        const isStateless = header === '2026-07-28' && meta === META && session === undefined && mirrors;
        const isSession =
          (header === undefined || header === '2025-11-25') &&
          session === 's-1' &&
          (meta === undefined || Object.keys(meta).length === 0);
        const outcome = post(body, { headers });
        const era = outcome.kind === 'admitted' ? outcome.protocol.era : undefined;
        expect(era).toBe(isStateless ? '2026' : isSession ? '2025' : undefined);
      }),
      { numRuns: 500 },
    );
  });
});

describe('GET and DELETE', () => {
  const openSession = opener(SESSION);

  test.each([
    ['opening a stream', admitStreamOpen],
    ['ending a session', admitSessionEnd],
  ])('[M-26] %s needs a session of a session era', (_what, admit) => {
    const without = (headers: { [name: string]: string }) => admit({ headers, repeated: new Set(), openSession });
    expect(without({})).toMatchObject({ kind: 'error', status: 405 });
    expect(without({ 'mcp-protocol-version': '2026-07-28' })).toMatchObject({ status: 405 });
    expect(without({ 'mcp-protocol-version': '2026-07-28', 'mcp-session-id': 's-1' })).toMatchObject({ status: 405 });
    expect(without({ 'mcp-session-id': 's-2' })).toMatchObject({
      reason: 'unknown-session',
      status: 404,
      code: 1404,
    });
    // A GET may name an event, and this one is unknown; a DELETE may name none.
    const status = admit === admitStreamOpen ? 404 : 400;
    expect(without({ 'mcp-session-id': 's-1', 'last-event-id': '7' })).toMatchObject({ status });
    expect(without({ 'mcp-session-id': 's-1', 'mcp-protocol-version': '2025-06-18' })).toMatchObject({ status: 400 });
    expect(without({ 'mcp-session-id': 's-1' })).toEqual({
      kind: 'session',
      version: '2025-11-25',
      session: SESSION,
    });
    const repeated = new Set(['mcp-session-id']);
    expect(admit({ headers: { 'mcp-session-id': 's-1' }, repeated, openSession })).toMatchObject({
      status: 400,
      code: -32020,
    });
  });
});

describe('what is admitted', () => {
  test('[M-10] keeps the bytes and the text as they came', () => {
    const text = '{ "id" : 1.0,"method":"tools\\/call", "jsonrpc":"2.0","params":{"name":"a","arguments":{"x":1e2}} }';
    const message = admitted(post(text, { headers: { 'mcp-session-id': 's-1' } }));
    expect(message.edits).toEqual([]);
    expect(message.text).toBe(text);
    expect(new TextDecoder().decode(message.bytes)).toBe(text);
    expect(message).toMatchObject({
      protocol: { era: '2025' },
      version: '2025-11-25',
      session: SESSION,
      target: { kind: 'tool', name: 'a' },
    });
    expect(message.rule.method).toBe('tools/call');
  });

  test('[M-37] a plain object is no admitted message, whatever its members', () => {
    type Forged = {
      readonly [key in Exclude<keyof AdmittedMessage, symbol>]: AdmittedMessage[key];
    };
    const forge = (forged: Forged): AdmittedMessage => {
      // @ts-expect-error only admission makes one
      return forged;
    };
    expect(forge).toBeTypeOf('function');
  });

  test('[M-36] no JSON and no headers make admission throw, and a fault quotes nothing', () => {
    const canary = 'canary-7f3a';
    const member = fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'name', '_meta', 'arguments', canary);
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('2.0', 1, null, 'tools/call', canary),
        fc.dictionary(member, tie('any')),
        fc.array(tie('any')),
      ),
    })).any;
    const header = fc.constantFrom('mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name', 'mcp-param-a');
    fc.assert(
      fc.property(
        value,
        fc.dictionary(header, fc.constantFrom('2026-07-28', 's-1', 'tools/call', canary)),
        (body, headers) => {
          const outcome = post(JSON.stringify(body), { headers });
          if (outcome.kind !== 'error') return;
          const { id: _id, data: _data, ...rest } = outcome;
          expect(JSON.stringify(rest)).not.toContain(canary);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
