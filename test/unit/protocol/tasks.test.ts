import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { classifyUpstreamMessage } from '../../../src/protocol/responses.js';
import {
  declaresTasks,
  findRelatedTask,
  readCreatedTask,
  readDetailedTask,
  readPlainTask,
  readTaskCapabilities,
  writeTaskCapabilities,
} from '../../../src/protocol/tasks.js';
import { SESSION } from '../../../src/protocol/versions/session.js';
import { STATELESS } from '../../../src/protocol/versions/stateless.js';

const HEAD = { taskId: 't', status: 'working', createdAt: 'x', lastUpdatedAt: 'y' };
const PLAIN = { ...HEAD, ttl: 1000 };
const DETAILED = { ...HEAD, ttlMs: null };
const WRONG: readonly JsonObject[] = [
  { taskId: '' },
  { taskId: 1 },
  { taskId: 'x'.repeat(1025) },
  { status: 'done' },
  { status: null },
  { TaskId: 't2' },
  { Status: 'completed' },
];

describe('a task', () => {
  test('[TSK-04] is read in both forms, or is none', () => {
    expect(readPlainTask(PLAIN)).toEqual({ id: 't', ttlMs: 1000, state: { kind: 'plain' } });
    expect(readDetailedTask(DETAILED)).toEqual({ id: 't', ttlMs: null, state: { kind: 'plain' } });
    for (const wrong of [...WRONG, { ttl: -1 }, { ttl: 'x' }])
      expect(readPlainTask({ ...PLAIN, ...wrong })).toBeUndefined();
    for (const wrong of [...WRONG, { ttlMs: -1 }, { requestState: 's' }]) {
      expect(readDetailedTask({ ...DETAILED, ...wrong })).toBeUndefined();
      expect(readCreatedTask({ ...DETAILED, ...wrong })).toBeUndefined();
    }
    for (const none of [null, [], 't', undefined]) expect(readPlainTask(none)).toBeUndefined();
  });

  test('[TSK-04] has the content of its status, and of no other', () => {
    const contents = {
      completed: { result: { content: [] } },
      failed: { error: { code: 1, message: 'm' } },
      input_required: { inputRequests: { a: {} } },
    };
    for (const [status, content] of Object.entries(contents)) {
      expect(readDetailedTask({ ...DETAILED, status, ...content })).toBeDefined();
      expect(readDetailedTask({ ...DETAILED, status })).toBeUndefined();
      expect(readCreatedTask({ ...DETAILED, status, ...content })).toBeUndefined();
      for (const other of Object.values(contents))
        if (other !== content) expect(readDetailedTask({ ...DETAILED, status, ...content, ...other })).toBeUndefined();
      expect(readDetailedTask({ ...DETAILED, status: 'cancelled', ...content })).toBeUndefined();
    }
    const nested = { ...DETAILED, status: 'completed' };
    for (const resultType of ['input_required', 'task', 'odd'])
      expect(readDetailedTask({ ...nested, result: { resultType } })).toBeUndefined();
    expect(readDetailedTask({ ...nested, result: { Content: [] } })).toBeUndefined();
  });

  test('[TSK-05] is declared by either side in its own form', () => {
    const complete = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
    expect(readTaskCapabilities({ tasks: complete })).toEqual(['call', 'list', 'cancel']);
    expect(writeTaskCapabilities(readTaskCapabilities({ tasks: complete }))).toEqual(complete);
    expect(readTaskCapabilities({ tasks: { list: {}, requests: { tools: {} } } })).toEqual([]);
    for (const none of [undefined, {}, { tasks: true }, { tasks: { requests: [] } }])
      expect(readTaskCapabilities(none)).toEqual([]);
    expect(declaresTasks({ extensions: { 'io.modelcontextprotocol/tasks': {} } })).toBe(true);
    for (const none of [{}, { extensions: {} }, { extensions: { 'io.modelcontextprotocol/tasks': true } }])
      expect(declaresTasks(none)).toBe(false);
  });

  test('[TSK-09] is named by a message that belongs to it', () => {
    const key = 'io.modelcontextprotocol/related-task';
    for (const holder of ['params', 'result'] as const)
      expect(findRelatedTask({ [holder]: { _meta: { [key]: { taskId: 't' } } } })).toEqual({
        holder,
        id: 't',
      });
    expect(findRelatedTask({ params: { _meta: { [key]: {} } } })?.id).toBe('');
    expect(findRelatedTask({ params: { _meta: { [key]: 't' } } })?.id).toBe('');
    expect(findRelatedTask({ params: { _meta: {} } })).toBeUndefined();
    expect(findRelatedTask(undefined)).toBeUndefined();
  });
});

describe('an answer that is a task', () => {
  const answer = (result: JsonObject): Json => ({ jsonrpc: '2.0', id: 1, result });
  const in2026 = { protocol: STATELESS, id: 1, version: '2026-07-28' } as const;
  const inSession = (version: string) => ({ protocol: SESSION, id: 1, version }) as const;

  test('[TSK-03] is one where it was declared (2026)', () => {
    const task = answer({ resultType: 'task', ...DETAILED });
    expect(classifyUpstreamMessage(task, { ...in2026, mayBecomeTask: true }).kind).toBe('response-task');
    expect(classifyUpstreamMessage(task, { ...in2026, mayBecomeTask: false }).kind).toBe('malformed');
    expect(classifyUpstreamMessage(task, in2026).kind).toBe('malformed');
  });

  test('[TSK-03] is one where it was wished for (2025-11-25), and a member elsewhere', () => {
    const task = answer({ task: PLAIN });
    const last = inSession('2025-11-25');
    expect(classifyUpstreamMessage(task, { ...last, mayBecomeTask: true }).kind).toBe('response-task');
    expect(classifyUpstreamMessage(task, { ...last, mayBecomeTask: false }).kind).toBe('malformed');
    expect(classifyUpstreamMessage(task, last).kind).toBe('response-result');
    expect(classifyUpstreamMessage(task, { ...inSession('2025-06-18'), mayBecomeTask: false }).kind).toBe(
      'response-result',
    );
    expect(classifyUpstreamMessage(answer({ content: [] }), { ...last, mayBecomeTask: true }).kind).toBe(
      'response-result',
    );
  });

  test('[TSK-09] notices of tasks are those of their revision', () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/tasks/status', params: PLAIN };
    expect(classifyUpstreamMessage(notification, inSession('2025-11-25')).kind).toBe('notification');
    expect(classifyUpstreamMessage(notification, inSession('2025-06-18')).kind).toBe('foreign');
    expect(classifyUpstreamMessage(notification, { ...in2026, isListening: true }).kind).toBe('foreign');
  });
});
