import { describe, expect, it } from 'vitest';
import { DEFINED_META_MEMBERS, DEFINED_RESULT_MEMBERS, hasMisspelledMember } from '../../../src/protocol/params.js';
import { classifyUpstreamMessage } from '../../../src/protocol/responses.js';
import { SESSION } from '../../../src/protocol/versions/session.js';
import { STATELESS } from '../../../src/protocol/versions/stateless.js';
import { inSession, stateless } from './admission.js';

const complete = (ref: object, argument: object, context?: object): object => ({
  ref,
  argument,
  ...(context === undefined ? {} : { context }),
});
const REF = { type: 'ref/prompt', name: 'greet' };
const ARGUMENT = { name: 'who', value: 'a' };

describe('a member that is a defined one but for its case', () => {
  it.each([
    ['a progress token', { ProgressToken: 1 }],
    ['a progress token with a long s', { progre\u017f\u017fToken: 1 }],
    ['a version', { 'io.modelcontextprotocol/ProtocolVersion': '2026-07-28' }],
    ['capabilities', { 'IO.modelcontextprotocol/clientCapabilities': { sampling: {} } }],
    ['a log level', { 'io.modelcontextprotocol/loglevel': 'debug' }],
  ])('[K-02] is refused in _meta, in both eras: %s', (_what, meta) => {
    const params = { name: 'echo', arguments: {}, _meta: meta };
    expect(inSession('tools/call', params)).toMatchObject({ kind: 'error', code: -32602 });
    const full = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const both = { ...params, _meta: { ...full, ...meta } };
    expect(stateless('tools/call', both).kind).toBe('error');
  });

  it('[K-02] is refused in what completion names', () => {
    for (const params of [
      complete({ ...REF, Uri: 'memo://{x}' }, ARGUMENT),
      complete({ type: 'ref/resource', uri: 'memo://{x}', NAME: 'greet' }, ARGUMENT),
      complete(REF, { ...ARGUMENT, Type: 'x' }),
      complete(REF, ARGUMENT, { Arguments: { other: 'x' } }),
    ])
      expect(inSession('completion/complete', params), JSON.stringify(params)).toMatchObject({
        kind: 'error',
        code: -32602,
      });
    expect(inSession('completion/complete', complete(REF, ARGUMENT)).kind).toBe('admitted');
  });

  it('[K-02] makes a result malformed, in both eras', () => {
    for (const result of [
      { ResultType: 'input_required', InputRequests: {} },
      { content: [], StructuredContent: {} },
      { Tools: [{ name: 'evil' }] },
      { tools: [], nextcursor: 'x' },
      { content: [], iserror: true },
    ]) {
      const message = { jsonrpc: '2.0', id: 1, result };
      for (const expected of [
        { protocol: SESSION, id: 1, version: '2025-11-25' },
        { protocol: STATELESS, id: 1, version: '2026-07-28' },
      ] as const)
        expect(classifyUpstreamMessage(message, expected).kind, JSON.stringify(result)).toBe('malformed');
    }
  });

  it('[K-02] is told from names that nobody defined', () => {
    for (const name of ['progressToken', 'traceparent', 'com.example/Own', 'progress-token'])
      expect(hasMisspelledMember({ [name]: 1 }, DEFINED_META_MEMBERS), name).toBe(false);
    for (const name of ['content', 'tools', 'Extra', '_meta'])
      expect(hasMisspelledMember({ [name]: 1 }, DEFINED_RESULT_MEMBERS), name).toBe(false);
  });
});
