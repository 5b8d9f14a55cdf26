// Tasks between a real client and a real server of 2025-11-25, with every control armed: begun, asked about,
// fetched, listed and cancelled, with a question of the server in between.
// Source: MCP 2025-11-25, tasks.

import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/gateway.js';
import { type AskedClient, connectAsked, connectSdkV2, grantQuestions } from '../support/sdk-clients.js';
import { startEverything } from '../support/sdk-servers.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const TOOL = 'simulate-research-query';
/** The server works in four steps of a second each. */
const TIMEOUT_MS = 60_000;

let asked: AskedClient;

async function connect(subject: string): Promise<AskedClient> {
  const token = await gateway.token('everything', { sub: subject });
  return connectAsked(gateway.url('everything'), token, {
    content: { interpretation: 'technical' },
  });
}

const everything = shared(() => startEverything());
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'everything', url: everything.url }],
  policies: {
    open: writeOpenPolicy(EVERYTHING_TEMPLATES),
    questions: grantQuestions('elicitation: [form]'),
  },
}));
beforeAll(async () => {
  asked = await connect('ada');
});
afterAll(async () => {
  await asked?.close();
});

describe('a task of a real server', () => {
  it(
    '[TSK-01] [TSK-09] is begun, asks, is answered and brings its result, by ids of ours alone',
    async () => {
      const { client } = asked;
      await client.listTools();
      const { tasks } = client.experimental;
      const stream = tasks.callToolStream(
        { name: TOOL, arguments: { topic: 'python', ambiguous: true } },
        CallToolResultSchema,
        { task: { ttl: 120_000 }, timeout: TIMEOUT_MS },
      );
      const types: string[] = [];
      const ids = new Set<string>();
      let text = '';
      for await (const message of stream) {
        types.push(message.type);
        if (message.type === 'taskCreated' || message.type === 'taskStatus') ids.add(message.task.taskId);
        if (message.type === 'result') text = JSON.stringify(message.result.content);
        if (message.type === 'error') throw message.error;
      }
      expect(types[0]).toBe('taskCreated');
      expect(types.at(-1)).toBe('result');
      expect(text).toContain('Research Report: python (technical)');
      expect(asked.asked.map(({ method }) => method)).toEqual(['elicitation/create']);
      const [taskId = ''] = ids;
      expect(ids.size).toBe(1);
      expect(asked.asked[0]?.params['_meta']).toEqual({
        'io.modelcontextprotocol/related-task': { taskId },
      });
      const listed = await tasks.listTasks();
      expect(listed.tasks.map((task) => task.taskId)).toContain(taskId);
      expect((await tasks.getTask(taskId)).status).toBe('completed');
      const again = await tasks.getTaskResult(taskId, CallToolResultSchema);
      expect(again._meta).toEqual({ 'io.modelcontextprotocol/related-task': { taskId } });

      const other = await connect('eve');
      expect((await other.client.experimental.tasks.listTasks()).tasks).toEqual([]);
      await expect(other.client.experimental.tasks.getTask(taskId)).rejects.toMatchObject({
        code: -32602,
      });
      await other.close();
    },
    TIMEOUT_MS,
  );

  it('[TSK-11] that its tool demands is refused, with the reason, to a client of another revision', async () => {
    const access = { token: await gateway.token('everything') };
    const { client, close } = await connectSdkV2(gateway.url('everything'), '2026', access);
    await expect(client.callTool({ name: TOOL, arguments: { topic: 'rivers' } })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('only be called as a task'),
    });
    await close();
  });

  it(
    '[TSK-01] is cancelled by the client that began it',
    async () => {
      const { tasks } = asked.client.experimental;
      const stream = tasks.callToolStream({ name: TOOL, arguments: { topic: 'rivers' } }, CallToolResultSchema, {
        task: { ttl: 120_000 },
        timeout: TIMEOUT_MS,
      });
      const first = await stream.next();
      const created = first.value;
      if (created?.type !== 'taskCreated') throw new Error('no task was begun');
      const cancelled = await tasks.cancelTask(created.task.taskId);
      expect(cancelled).toMatchObject({ taskId: created.task.taskId, status: 'cancelled' });
      await stream.return();
    },
    TIMEOUT_MS,
  );
});
