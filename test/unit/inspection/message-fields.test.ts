// Members that are not content: each only in the messages that define it, and only in its own shape.

import { describe, expect, it } from 'vitest';
import { exemptIn } from '../../../src/inspection/message-fields.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { githubToken, profile } from './samples.js';

const TOKEN = githubToken('exempt');

const PAGING = [
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'tasks/list',
];

function resultOf(members: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: 7, result: { content: [], ...members } };
}

function noteOf(method: string, params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', method: `notifications/${method}`, params };
}

function leaving(message: JsonObject, answered?: string): string {
  const text = JSON.stringify(message);
  const outcome = inspectMessage({ text, value: message, profile, requestMethod: answered });
  switch (outcome.kind) {
    case 'clean':
      return text;
    case 'changed':
      return outcome.text;
    case 'withhold':
      return '';
  }
}

describe('[I-22] a member that is not content', () => {
  const known: readonly (readonly [string, string | undefined, JsonObject])[] = [
    ['/jsonrpc', undefined, resultOf({})],
    ['/id', undefined, resultOf({})],
    ['/id', undefined, { jsonrpc: '2.0', id: TOKEN, error: { code: -1, message: 'no' } }],
    ['/method', undefined, noteOf('message', {})],
    ['/params/level', undefined, noteOf('message', { level: 'emergency', data: 'x' })],
    ['/params/progressToken', undefined, noteOf('progress', { progressToken: TOKEN, progress: 1 })],
    ['/params/requestId', undefined, noteOf('cancelled', { requestId: TOKEN })],
    ['/result/protocolVersion', 'initialize', resultOf({ protocolVersion: '2025-06-18' })],
    ['/result/resultType', 'tools/call', resultOf({ resultType: 'input_required' })],
    ['/result/cacheScope', 'resources/read', resultOf({ cacheScope: 'public' })],
    ...PAGING.map(
      (method) => ['/result/nextCursor', method, resultOf({ nextCursor: TOKEN })] as const,
    ),
    ['/result/nextCursor', 'tools/list', resultOf({ nextCursor: `${'x'.repeat(4000)}${TOKEN}` })],
  ];
  it.each(known)('passes as it is where it is defined: %s of %s', (pointer, answered, message) => {
    expect(exemptIn(message, answered)).toContain(pointer);
    expect(leaving(message, answered)).toBe(JSON.stringify(message));
  });

  const hidden: readonly (readonly [string, string | undefined, (text: string) => JsonObject])[] = [
    ['jsonrpc', undefined, (text) => ({ jsonrpc: text, id: 1, result: {} })],
    ['method', undefined, (text) => ({ jsonrpc: '2.0', method: text, params: {} })],
    ['id', undefined, (text) => ({ jsonrpc: '2.0', id: [text], result: {} })],
    ['level', undefined, (text) => noteOf('message', { level: text })],
    ['level', undefined, (text) => noteOf('progress', { level: text })],
    ['level', undefined, (text) => noteOf('message', { level: { info: text } })],
    ['progressToken', undefined, (text) => noteOf('message', { progressToken: text })],
    ['progressToken', undefined, (text) => noteOf('progress', { progressToken: [text] })],
    ['requestId', undefined, (text) => noteOf('progress', { requestId: text })],
    ['protocolVersion', 'initialize', (text) => resultOf({ protocolVersion: text })],
    ['protocolVersion', 'tools/call', (text) => resultOf({ protocolVersion: text })],
    ['resultType', 'tools/call', (text) => resultOf({ resultType: text })],
    ['resultType', 'tools/call', (text) => resultOf({ resultType: { complete: text } })],
    ['cacheScope', 'tools/list', (text) => resultOf({ cacheScope: text })],
    ['cacheScope', 'tools/call', (text) => resultOf({ cacheScope: text })],
    ['nextCursor', 'tools/call', (text) => resultOf({ nextCursor: text })],
    ['nextCursor', undefined, (text) => resultOf({ nextCursor: text })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: { next: text } })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: `${text}\n` })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: `\u00e9 ${text}` })],
    ['nextCursor', 'tools/list', (text) => resultOf({ nextCursor: `${text}${' x'.repeat(2048)}` })],
  ];
  it.each(hidden)('is text everywhere else, and of any other shape: %s of %s', (...row) => {
    const [, answered, build] = row;
    expect(leaving(build(TOKEN), answered)).not.toContain(TOKEN);
    const script = '<script>alert(1)</script>';
    expect(leaving(build(script), answered)).not.toContain('<script');
  });

  it('is the one where it stands, not its namesake further within', () => {
    const deep: Json = { nextCursor: TOKEN, level: TOKEN, id: TOKEN, method: TOKEN };
    const message = resultOf({ structuredContent: { result: deep, params: deep } });
    expect(leaving(message, 'tools/list')).not.toContain(TOKEN);
  });
});
