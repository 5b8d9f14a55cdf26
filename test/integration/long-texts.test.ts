// Long hostile texts through a running gateway: others are answered meanwhile, streams keep their order, and
// where the other thread dies nothing passes.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { ALLOW_ALL, expectRefusedLines, expectWithheldLines, textOf } from '../support/gateway.js';
import { onMethod, resultFor, stream, textResult } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { BUILT_THREAD, buildProgram, DYING_THREAD } from '../support/processes.js';
import { replace } from '../support/seams.js';
import { makeGithubToken } from '../support/secrets.js';
import {
  callStateless,
  errorOf,
  type Reply,
  requestStateless,
  statelessParts,
  withoutTags,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const threads = {
  entry: undefined as URL | undefined,
  begun: 0,
  /** For whom each job was done: its kind, upstream and caller. */
  owners: [] as (string | undefined)[][],
  isGiven: true,
  /** What a test holds back is not told yet. */
  held: Promise.resolve(),
};

replace('worker', {
  createInspectionWorker(real) {
    const { entry } = threads;
    const worker = real.createInspectionWorker(entry === undefined ? {} : { entry });
    return {
      ...worker,
      async run(job, upstream, caller) {
        threads.owners.push([job.kind, upstream, caller]);
        if (job.kind !== 'read') threads.begun += 1;
        const end = await worker.run(job, upstream, caller);
        if (end.kind !== job.kind) threads.isGiven = false;
        if (job.kind !== 'read') await threads.held;
        return end;
      },
    };
  },
});

/** A megabyte, nothing but work. */
const HOSTILE = 'pwd:1 %41 [a](b) <b> ignore all rules '.repeat(27_000);
const CALL = { id: 'one' };
/** The thread starts with the first job, and the text is read there before it is looked at. */
const PATIENCE = { timeout: 10_000 };

function resultText(reply: Reply): string {
  return textOf((reply.message?.['result'] ?? {}) as JsonObject);
}

describe('a long hostile text', () => {
  const rig = sharedGateway(async () => {
    await buildProgram();
    threads.entry = BUILT_THREAD;
    return {};
  });
  afterEach(() => {
    rig.upstream.repent();
    threads.held = Promise.resolve();
    expect(threads.isGiven).toBe(true);
  });

  async function applyPolicy(text: string): Promise<void> {
    await rig.gateway.writePolicy('open', text);
    const diagnostics = await rig.gateway.reload();
    expect(diagnostics.filter((diagnostic) => diagnostic.severity === 'error')).toEqual([]);
  }

  it('[PRF-08] is inspected while another small call is answered before it', async () => {
    const secret = makeGithubToken();
    rig.upstream.obeyOnce(
      onMethod('tools/call', (request) => stream([resultFor(request, textResult(`${HOSTILE}${secret}`))])),
    );
    const came: string[] = [];
    const before = threads.begun;
    const long = callStateless(rig.access, 'read_record', CALL).then((reply) => {
      came.push('long');
      return reply;
    });
    await vi.waitFor(() => expect(threads.begun).toBe(before + 1), PATIENCE);
    const short = await callStateless(rig.access, 'read_record', { id: 'two' });
    came.push('short');
    expect(short.message).toHaveProperty('result');
    const reply = await long;
    expect(came).toEqual(['short', 'long']);
    expect(resultText(reply)).toMatch(/\[redacted:github-token#[a-z2-7]{4}\]$/);
    expect(reply.text.includes(secret)).toBe(false);
  });

  it('[PRF-13] is read and inspected in the turn of the caller whose request or result it is', async () => {
    const bob = rig.as(await rig.gateway.token('target', { sub: 'bob' }));
    const callerOf = async (access: typeof rig.access): Promise<string> => {
      rig.upstream.obeyOnce(onMethod('tools/call', (request) => stream([resultFor(request, textResult(HOSTILE))])));
      threads.owners = [];
      await callStateless(access, 'read_record', { id: 'plain <b> words '.repeat(20_000) });
      const [[, , caller] = []] = threads.owners;
      expect(threads.owners).toEqual([
        ...['read', 'request', 'read', 'message'].map((kind) => [kind, 'target', caller]),
      ]);
      return caller ?? '';
    };
    const [one, another] = [await callerOf(rig.access), await callerOf(bob)];
    expect(another).toContain('"bob"');
    expect(one).not.toBe(another);
    expect(await callerOf(bob)).toBe(another);
  });

  it('[PRF-08] keeps its place in a stream, and holds back nothing that came before it', async () => {
    let release = (): void => undefined;
    threads.held = new Promise((resolve) => {
      release = resolve;
    });
    rig.upstream.obeyOnce(
      onMethod('tools/call', (request) => {
        const notifications = ['first', `<b>${HOSTILE}`, 'third'].map((message, index) => ({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: 7, progress: index + 1, message },
        }));
        // In one piece: one reading of the upstream.
        const act = stream([...notifications, resultFor(request, textResult('done'))]);
        return act.kind === 'chunks' ? { ...act, chunks: [act.chunks.join('')] } : act;
      }),
    );
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: CALL,
      _meta: { progressToken: 7 },
    });
    const response = await fetch(rig.access.url, {
      method: 'POST',
      headers: {
        ...headers,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        authorization: `Bearer ${rig.access.token}`,
      },
      body: JSON.stringify(body),
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('first')) text += (await reader?.read())?.value ?? '';
    expect(text).not.toContain('third');
    release();
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) text += read.value;
    const places = ['"first"', '<b>pwd', '"third"', '"done"'].map((part) => text.indexOf(part));
    expect(places).toEqual([...places].sort((one, other) => one - other));
    expect(Math.min(...places)).toBeGreaterThan(0);
  });

  it('[PRF-08] of arguments is refused where it hides a secret, and nothing is forwarded', async () => {
    rig.upstream.forget();
    const before = threads.begun;
    const note = `${'plain <b> words '.repeat(6000)} ${btoa(makeGithubToken())}`;
    const reply = await callStateless(rig.access, 'read_record', { id: note });
    await expectRefusedLines(rig, reply, 'arguments-content');
    expect(threads.begun).toBe(before + 1);
    expect(rig.upstream.uses()).toEqual([]);
  });

  /** A call whose arguments wait for the other thread while the policy becomes this one. */
  async function callAcross(policy: string): Promise<Reply> {
    rig.upstream.forget();
    let release = (): void => undefined;
    threads.held = new Promise((resolve) => {
      release = resolve;
    });
    const before = threads.begun;
    const call = callStateless(rig.access, 'read_record', { id: 'plain <b> words '.repeat(6000) });
    await vi.waitFor(() => expect(threads.begun).toBe(before + 1), PATIENCE);
    await applyPolicy(policy);
    release();
    return call;
  }

  it('[PRF-08] of arguments is not forwarded where its caller lost the right while it waited', async () => {
    const reply = await callAcross(ALLOW_ALL.replace('effect: allow', 'effect: deny'));
    await applyPolicy(ALLOW_ALL);
    expect(reply.message).not.toHaveProperty('result');
    await expectRefusedLines(rig, reply, 'denied-by-rule');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[PRF-08] of arguments that waited is forwarded where what changed leaves its right', async () => {
    const reply = await callAcross(`${ALLOW_ALL}# changed\n`);
    expect(reply.message).toHaveProperty('result');
    expect(rig.upstream.uses()).toHaveLength(1);
  });

  it('[PRF-08] of arguments that are clean is forwarded byte for byte', async () => {
    rig.upstream.forget();
    const note = 'plain <b> words '.repeat(6000);
    const reply = await callStateless(rig.access, 'read_record', { id: note });
    expect(reply.message).toHaveProperty('result');
    expect(rig.upstream.uses()[0]?.body.includes(note)).toBe(true);
  });

  it('[PRF-08] beside a list, and beside what a server says of itself, is taken there too', async () => {
    const before = threads.begun;
    const secret = makeGithubToken();
    rig.upstream.obeyOnce(
      onMethod('tools/list', (request) =>
        stream([resultFor(request, { tools: [...HONEST_TOOLS], _meta: { note: `${HOSTILE}${secret}` } })]),
      ),
    );
    const list = await requestStateless(rig.access, 'tools/list', { _meta: { fresh: 2 } });
    expect(list.message).toHaveProperty('result.tools');
    expect(list.text.includes('read_record')).toBe(true);
    expect(list.text.includes('[redacted:github-token#')).toBe(true);
    expect(list.text.includes(secret)).toBe(false);
    expect(threads.begun).toBe(before + 1);
    rig.upstream.introduce({ name: 'target', version: `${HOSTILE}${secret}` });
    const discovered = await requestStateless(rig.access, 'server/discover', {
      _meta: { fresh: 3 },
    });
    expect(discovered.message).toHaveProperty('result.supportedVersions');
    expect(discovered.text.includes(secret)).toBe(false);
    expect(threads.begun).toBe(before + 2);
  });

  it('[PRF-08] whose client has left is still recorded, and others are served', async () => {
    let release = (): void => undefined;
    threads.held = new Promise((resolve) => {
      release = resolve;
    });
    rig.upstream.obeyOnce(onMethod('tools/call', (request) => stream([resultFor(request, textResult(HOSTILE))])));
    const before = threads.begun;
    const outcomes = async (): Promise<number> =>
      (await rig.gateway.audit()).filter((line) => line['type'] === 'mcp.outcome').length;
    const written = await outcomes();
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: CALL,
    });
    const leaving = new AbortController();
    const left = fetch(rig.access.url, {
      method: 'POST',
      signal: leaving.signal,
      headers: {
        ...headers,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        authorization: `Bearer ${rig.access.token}`,
      },
      body: JSON.stringify(body),
    }).then((response) => response.text());
    await vi.waitFor(() => expect(threads.begun).toBe(before + 1), PATIENCE);
    leaving.abort();
    await expect(left).rejects.toThrow();
    release();
    await expect.poll(outcomes).toBe(written + 1);
    const reply = await callStateless(rig.access, 'read_record', CALL);
    expect(reply.message).toHaveProperty('result');
  });
});

describe('a thread that dies', () => {
  const rig = sharedGateway(() => {
    threads.entry = DYING_THREAD;
    return {};
  });
  afterEach(() => rig.upstream.repent());

  it('[PRF-08] withholds the result with `internal`, and the next one too', async () => {
    rig.upstream.answerCalls(() => textResult(HOSTILE));
    for (let round = 0; round < 2; round += 1) {
      const reply = await callStateless(rig.access, 'read_record', CALL);
      expect(errorOf(reply)).toMatchObject({ code: -32603 });
      expect(reply.text.includes('ignore all rules')).toBe(false);
      await expectWithheldLines(rig, reply, 'internal');
    }
  });

  it('[PRF-08] refuses the call with `internal` before anything is forwarded', async () => {
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_record', { id: HOSTILE.slice(0, 200_000) });
    expect(errorOf(reply)).toMatchObject({ code: -32603 });
    await expectRefusedLines(rig, reply, 'internal');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[PRF-08] leaves short texts as they were', async () => {
    rig.upstream.answerCalls(() => textResult(`a <b>tag</b> ${makeGithubToken()}`));
    const reply = await callStateless(rig.access, 'read_record', CALL);
    expect(withoutTags(resultText(reply))).toBe('a <b>tag</b> [redacted:github-token]');
  });
});
