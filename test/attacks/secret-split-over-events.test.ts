// Case 72: a secret that is cut in two by the chunks of a stream, or by its events. What the client has
// read at any moment never holds it.

import { afterEach, describe, expect, it } from 'vitest';
import {
  onMethod,
  progressThenResult,
  resultFor,
  splitStream,
  sseEvent,
  stream,
  textResult,
} from '../support/hostile-acts.js';
import type { Json, JsonObject } from '../support/json.js';
import { askStateless, beginStateless, createTaskServer, TASK_TOOLS } from '../support/mcp-servers.js';
import { makeAwsKey, makeCard, makeGithubToken } from '../support/secrets.js';
import { callStateless, type Reply } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a secret in an event stream', () => {
  const rig = sharedGateway({ prepare: (upstream) => upstream.offer(() => TASK_TOOLS) });
  afterEach(() => rig.upstream.repent());

  /** Every text that a reader of the messages would read, one after the other. */
  function readAloud(reply: Reply): string {
    const texts: string[] = [];
    const collect = (value: Json | undefined): void => {
      if (typeof value === 'string') texts.push(value);
      else if (Array.isArray(value)) for (const item of value as readonly Json[]) collect(item);
      else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) collect(item);
    };
    for (const message of reply.messages) {
      const { params, result } = message as { params?: JsonObject; result?: JsonObject };
      collect(params?.['message']);
      collect(result?.['content']);
    }
    return texts.filter((text) => text !== 'text').join('');
  }

  it.each([
    ['a GitHub token', makeGithubToken],
    ['an AWS key', makeAwsKey],
    ['a card', makeCard],
  ])('[X-72] is caught wherever the chunks cut it: %s', async (_name, make) => {
    for (let round = 0; round < 8; round += 1) {
      const secret = make();
      rig.upstream.obey(
        onMethod('tools/call', (request) => {
          const text = sseEvent(resultFor(request, textResult(`see ${secret} here`)));
          const at = Buffer.from(text.slice(0, text.indexOf(secret))).byteLength;
          const offsets = Array.from({ length: round + 1 }, (_, i) => at + 1 + i * 3);
          return splitStream(text, offsets);
        }),
      );
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.message).toHaveProperty('result');
      expect(reply.text).not.toContain(secret);
      expect(reply.text).toContain('[redacted:');
    }
  });

  it.each([
    ['a GitHub token', makeGithubToken],
    ['an AWS key', makeAwsKey],
    ['a card', () => makeCard('-')],
  ])('[X-72] is caught where two events cut it: %s', async (_name, make) => {
    for (const part of [0.25, 0.5, 0.75]) {
      const secret = make();
      const cut = Math.floor(secret.length * part);
      rig.upstream.obey(
        onMethod('tools/call', (request) =>
          progressThenResult(request, [`the key is ${secret.slice(0, cut)}`, `${secret.slice(cut)} and no more`]),
        ),
      );
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, { progressToken: 1 });
      expect(readAloud(reply)).not.toContain(secret);
      expect(reply.text).not.toContain(secret.slice(cut));
    }
  });

  it('[X-72] is caught between the last progress and the result', async () => {
    const secret = makeGithubToken();
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        progressThenResult(request, [secret.slice(0, 20)], textResult(secret.slice(20))),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, { progressToken: 1 });
    expect(readAloud(reply)).not.toContain(secret);
    expect(reply.text).not.toContain(secret.slice(20));
  });

  it('[X-72] is caught between the status message of a task and its result', async () => {
    const secret = makeGithubToken();
    const tasks = createTaskServer();
    rig.upstream.obey(tasks.order);
    const taskId = await beginStateless(rig.access);
    tasks.say(tasks.begun[0] ?? '', {
      status: 'completed',
      statusMessage: secret.slice(0, 20),
      result: textResult(secret.slice(20)),
    });
    const reply = await askStateless(rig.access, 'tasks/get', { taskId });
    expect(reply.text).toContain('completed');
    expect(reply.text).not.toContain(secret.slice(20));
  });

  it('[X-72] does not leave with a stream that never ends its event', async () => {
    const secret = makeGithubToken();
    rig.upstream.obey(
      onMethod('tools/call', (request) => {
        const event = sseEvent(resultFor(request, textResult(secret)));
        return { ...splitStream(event.slice(0, -2), [40]), ending: 'destroy' };
      }),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).not.toContain(secret);
    expect(reply.message).toHaveProperty('error');
  });

  it('[X-72] does not leave in comments, ids, event names or retry lines', async () => {
    const secret = makeGithubToken();
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [
          `: ${secret}\n\nid: ${secret}\nevent: ${secret}\nretry: 1\nother: ${secret}\n`,
          `data: ${JSON.stringify(resultFor(request, textResult('ok')))}\n\n`,
        ],
        ending: 'end',
      })),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).not.toContain(secret);
  });

  it('[X-72] nothing passes of a message that comes after the answer', async () => {
    const secret = makeGithubToken();
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        stream([resultFor(request, textResult('ok')), resultFor(request, textResult(secret))]),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.messages).toHaveLength(1);
    expect(reply.text).not.toContain(secret);
  });
});
