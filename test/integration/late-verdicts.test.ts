// What waits for the other thread while something ends: it goes by what stands when it is done, and nothing is
// written that nobody may have any more.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ADMINS, adminsOf, idOf, tokenOf } from '../support/deployments.js';
import { ALLOW_ALL } from '../support/gateway.js';
import { beginJob, holdJobs, jobs } from '../support/held-jobs.js';
import { textResult } from '../support/hostile-acts.js';
import { callMessage, type OpenedChannel, openSessionChannel } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { makeGithubToken } from '../support/secrets.js';
import { startSseServer } from '../support/sse-server.js';
import { callStateless, type Reply } from '../support/wire-client.js';
import { shared, sharedGateway, withGateway } from '../support/with-gateway.js';

const NOTE = 'plain <b> words ';
const LONG = NOTE.repeat(6000);
const RESULT_RULES =
  'result: {secrets: redact, pii: "off", activeContent: neutralize, invisible: strip, injection: flag}';
const DENIED = ALLOW_ALL.replace('effect: allow', 'effect: deny');
const CAPPED = `${ALLOW_ALL}  - id: small
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    maxResultBytes: 2KiB
`;

/** Of the clock by which tokens are verified; what is open ends by timers. */
let aheadMs = 0;
const server = shared(() => startSseServer());
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'old', url: server.url, more: ['transport: http-sse'] }],
  policies: { open: ALLOW_ALL },
  now: () => Date.now() + aheadMs,
}));
afterEach(async () => {
  jobs.held = Promise.resolve();
  aheadMs = 0;
  server.forget();
  await applyPolicy(ALLOW_ALL);
});

async function open(claims: JsonObject = {}): Promise<OpenedChannel> {
  return openSessionChannel(gateway.url('old'), await gateway.token('old', claims));
}

async function applyPolicy(text: string): Promise<void> {
  await gateway.writePolicy('open', text);
  const diagnostics = await gateway.reload();
  expect(diagnostics.filter((diagnostic) => diagnostic.severity === 'error')).toEqual([]);
}

/** The end of a token that is good in a few seconds' time, and is verified however late its request comes. */
function endSoon(): number {
  aheadMs = -20_000;
  return Math.ceil(Date.now() / 1000) + 3;
}

/** A server that answers a call with a long text which is not surely clean. */
async function answerLong({ post }: OpenedChannel, id: string): Promise<void> {
  expect(await post(callMessage(id, 'wait'))).toBe(202);
  const sent = server.seen().findLast(({ body }) => body.includes('"wait"'));
  const sealed: unknown = JSON.parse(sent?.body ?? '{}').id;
  const result = { content: [{ type: 'text', text: LONG }] };
  const answer = JSON.stringify({ jsonrpc: '2.0', id: sealed, result });
  await beginJob(() => server.say(`event: message\ndata: ${answer}\n\n`));
}

describe('[PRF-08] a long answer on a channel', () => {
  it('passes where nothing ended while it was looked at', async () => {
    const opened = await open();
    const release = holdJobs();
    await answerLong(opened, 'kept');
    release();
    expect(JSON.stringify(await opened.channel.answer('kept'))).toContain(NOTE);
    opened.channel.leave();
  });

  it('is refused where its caller lost the tool while it was looked at', async () => {
    const opened = await open();
    const release = holdJobs();
    await answerLong(opened, 'lost');
    await applyPolicy(DENIED);
    release();
    expect(await opened.channel.answer('lost')).toMatchObject({ error: {} });
    expect(opened.channel.text()).not.toContain(NOTE);
    opened.channel.leave();
  });

  it('is not written once the token of the channel has ended', async () => {
    const endsAt = endSoon();
    const opened = await open({ exp: endsAt });
    const release = holdJobs();
    await answerLong(opened, 'ended');
    await sleep(endsAt * 1000 - Date.now() + 200);
    release();
    await sleep(300);
    expect(opened.channel.text()).not.toContain(NOTE);
  });

  it('is not told of where it is a notice that nobody asked for', async () => {
    const endsAt = endSoon();
    const { channel } = await open({ exp: endsAt });
    const release = holdJobs();
    const params = { level: 'info', data: LONG };
    const notification = { jsonrpc: '2.0', method: 'notifications/message', params };
    await beginJob(() => server.say(`event: message\ndata: ${JSON.stringify(notification)}\n\n`));
    await sleep(endsAt * 1000 - Date.now() + 200);
    release();
    await sleep(300);
    expect(channel.text()).not.toContain(NOTE);
  });
});

describe('[PRF-08] long arguments that waited', () => {
  it('have an answer that is judged by what was decided last', async () => {
    const { channel, post } = await open();
    const release = holdJobs();
    await beginJob(() => void post(callMessage('capped', 'echo', { text: LONG })));
    await applyPolicy(CAPPED);
    release();
    expect(JSON.stringify(await channel.answer('capped'))).toContain('"result-too-large"');
    expect(channel.text()).not.toContain(NOTE);
    channel.leave();
  });

  it('are not sent on once the token of their caller has ended', async () => {
    const endsAt = endSoon();
    const { post } = await open({ exp: endsAt });
    const release = holdJobs();
    server.forget();
    let posted: Promise<number> | undefined;
    await beginJob(() => {
      posted = post(callMessage('over', 'echo', { text: LONG }));
    });
    await sleep(endsAt * 1000 - Date.now() + 200);
    aheadMs = 0;
    release();
    expect(await posted).toBe(401);
    expect(server.seen().filter(({ body }) => body.includes('"echo"'))).toEqual([]);
  });

  it('owe what was decided last, where the answer comes at once', () =>
    withGateway({}, async (rig) => {
      rig.upstream.answerCalls(() => textResult('plain words '.repeat(1000)));
      const release = holdJobs();
      let called: Promise<Reply> | undefined;
      await beginJob(() => {
        called = callStateless(rig.access, 'read_record', { id: LONG });
      });
      await rig.gateway.writePolicy('open', CAPPED);
      await rig.gateway.reload();
      release();
      const reply = await called;
      expect(reply?.text).toContain('"result-too-large"');
      expect(reply?.text).not.toContain('plain words');
    }));

  it('are not sent on for who was revoked meanwhile, also where they were only read there', () =>
    withGateway(
      {
        more: ADMINS,
        upstream: ['pinning: {maxAge: 10m}', 'arguments: any'],
      },
      async (rig) => {
        const token = await tokenOf(rig.gateway, 'ada');
        const release = holdJobs();
        const called: Promise<Reply>[] = [];
        for (const args of [{ id: LONG }, { id: 'one', rows: Array(12_000).fill(1) }])
          await beginJob(() => called.push(callStateless(rig.as(token), 'read_record', args)));
        const order = { token: { issuer: rig.gateway.issuer.issuer, jti: idOf(token) } };
        expect((await adminsOf(rig.gateway).revoke(order)).status).toBe(201);
        release();
        expect((await Promise.all(called)).map(({ status }) => status)).toEqual([401, 401]);
        expect(rig.upstream.uses()).toEqual([]);
      },
    ));

  it('are looked at again where their profile became stricter', async () => {
    const lax = 'request: {secrets: "off"}';
    const more = `inspection: {profiles: {default: {${lax}, ${RESULT_RULES}}}}`;
    await withGateway({ more }, async (rig) => {
      const release = holdJobs();
      let called: Promise<Reply> | undefined;
      await beginJob(() => {
        called = callStateless(rig.access, 'read_record', { id: LONG + makeGithubToken() });
      });
      const file = join(rig.gateway.folder, 'gateway.yaml');
      const text = await readFile(file, 'utf8');
      await writeFile(file, text.replace(lax, 'request: {secrets: block}'));
      await rig.gateway.reload();
      release();
      expect((await called)?.text).toContain('"arguments-content"');
      expect(rig.upstream.uses()).toEqual([]);
    });
  });
});
