// An upstream that has tasks, in both forms: what it says of each is set by the test, so that it can lie.

import { isObject, type JsonObject } from '../../src/protocol/jsonrpc.js';
import { jsonBody } from './hostile-acts.js';
import { type Act, HONEST_TOOLS, type HostileRequest, type Order } from './hostile-upstream.js';
import { type Access, type Reply, requestStateless, resultOf } from './wire-client.js';

export const EXTENSION = 'io.modelcontextprotocol/tasks';
export const RELATED = 'io.modelcontextprotocol/related-task';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

/** What a client that waits for tasks says in `_meta`. */
export function declaring(more: JsonObject = {}): JsonObject {
  return { [CAPABILITIES_KEY]: { ...more, extensions: { [EXTENSION]: {} } } };
}

/** A tool that is a task where its caller wishes, and whose result has a schema. */
export const TASK_TOOL: JsonObject = {
  name: 'compute',
  description: 'Computes for a while.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
  execution: { taskSupport: 'optional' },
};
/** The same without a schema of its result. */
export const TALKING_TOOL: JsonObject = {
  name: 'talk',
  description: 'Talks for a while.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  execution: { taskSupport: 'optional' },
};
export const TASK_TOOLS = [...HONEST_TOOLS, TASK_TOOL, TALKING_TOOL];

export const SESSION_TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const TIMES = { createdAt: '2026-07-28T10:00:00Z', lastUpdatedAt: '2026-07-28T10:00:01Z' };

export type TaskServer = {
  readonly order: Order;
  /** Ids of the tasks that it began, its own. */
  readonly begun: readonly string[];
  /** What it says of a task from now on, over the bare members. */
  say(id: string, state: JsonObject): void;
  /** What tasks/result answers. */
  bring(outcome: JsonObject): void;
};

/** A task of its own, in the form of 2026. */
export function taskOf(id: string, state: JsonObject): JsonObject {
  return { taskId: id, status: 'working', ...TIMES, ttlMs: 60_000, pollIntervalMs: 50, ...state };
}

/** A task of its own, in the form of 2025-11-25. */
export function sessionTaskOf(id: string, state: JsonObject): JsonObject {
  return { taskId: id, status: 'working', ...TIMES, ttl: 60_000, ...state };
}

/** A server that begins a task at every call that may be one. Its capabilities are those of the honest one, and tasks. */
export function createTaskServer(prefix = 'up'): TaskServer {
  const begun: string[] = [];
  const states = new Map<string, JsonObject>();
  let outcome: JsonObject = { result: { content: [{ type: 'text', text: 'done' }] } };

  function begin(): string {
    const id = `${prefix}-${begun.length + 1}`;
    begun.push(id);
    return id;
  }

  function stateless(request: HostileRequest, params: JsonObject): JsonObject | undefined {
    const id = String(params['taskId']);
    const known = states.get(id) ?? {};
    switch (request.method) {
      case 'tools/call':
        return declares(params) ? { resultType: 'task', ...taskOf(begin(), {}) } : undefined;
      case 'tasks/get':
        return { resultType: 'complete', ...taskOf(id, known) };
      case 'tasks/update':
      case 'tasks/cancel':
        return { resultType: 'complete', ...known };
      default:
        return undefined;
    }
  }

  function inSession(request: HostileRequest, params: JsonObject): JsonObject | undefined {
    const id = String(params['taskId']);
    switch (request.method) {
      case 'tools/call':
        return params['task'] === undefined ? undefined : { task: sessionTaskOf(begin(), {}) };
      case 'tasks/get':
      case 'tasks/cancel':
        return sessionTaskOf(id, states.get(id) ?? {});
      case 'tasks/list':
        return { tasks: begun.map((one) => sessionTaskOf(one, states.get(one) ?? {})) };
      default:
        return undefined;
    }
  }

  function order(request: HostileRequest): Act | undefined {
    const given = request.message?.['params'];
    const params = isObject(given) ? given : {};
    const isStateless = request.headers['mcp-protocol-version'] === '2026-07-28';
    const result = isStateless ? stateless(request, params) : inSession(request, params);
    const id = request.id ?? 0;
    if (result !== undefined) return jsonBody({ jsonrpc: '2.0', id, result });
    return request.method === 'tasks/result'
      ? jsonBody({ jsonrpc: '2.0', id, ...outcome })
      : undefined;
  }

  return {
    order,
    begun,
    say: (id, state) => void states.set(id, state),
    bring(next) {
      outcome = next;
    },
  };
}

function declares(params: JsonObject): boolean {
  const meta = params['_meta'];
  const declared = isObject(meta) ? meta[CAPABILITIES_KEY] : undefined;
  const extensions = isObject(declared) ? declared['extensions'] : undefined;
  return isObject(extensions) && extensions[EXTENSION] !== undefined;
}

/** The answer to an `initialize` that declares tasks; the session is the client's to name. */
export function initializeWithTasks(
  request: HostileRequest,
  tasks: JsonObject = SESSION_TASKS,
): Act {
  const result = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, tasks },
    serverInfo: { name: 'tasks', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, result });
  const headers = { 'content-type': 'application/json' };
  return { kind: 'http', status: 200, headers, body };
}

/** A request of 2026 whose client waits for tasks. */
export function askStateless(
  access: Access,
  method: string,
  params: JsonObject,
  capabilities: JsonObject = {},
): Promise<Reply> {
  return requestStateless(access, method, { ...params, _meta: declaring(capabilities) });
}

/** Begins a task in 2026; its id as the client has it. */
export async function beginStateless(
  access: Access,
  name = 'talk',
  args: JsonObject = {},
): Promise<string> {
  const reply = await askStateless(access, 'tools/call', { name, arguments: args });
  const id = resultOf(reply)['taskId'];
  if (typeof id !== 'string') throw new Error(`no task was begun: ${reply.status} ${reply.text}`);
  return id;
}
