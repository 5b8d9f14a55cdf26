// A call that a policy puts to a reviewer: who is told, where it is answered, and what becomes of it.

import { createHmac } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { AdminApiPorts } from '../../src/cli/admin-client.js';
import { approvalsCommand } from '../../src/cli/approvals.js';
import { buildProgram } from '../../src/cli/program.js';
import { DISK_FILES } from '../../src/config/files.js';
import { formTokenOf, logIn, TestBrowser } from '../support/console-rig.js';
import { type ReviewRig, secondsAgo, startReview } from '../support/review-rig.js';
import { PATIENT } from '../support/timing.js';
import { makeAuthority } from '../support/tls.js';
import { shared, withStarted } from '../support/with-gateway.js';
import { terminal } from '../unit/cli/console.js';

const HOSTILE = '</pre><script>alert(1)</script>"\'\u202e\u200b';

async function waitingOf(review: ReviewRig): Promise<string> {
  const [id = ''] = await review.waiting();
  return id;
}

describe('a call that is put to a reviewer', () => {
  const review = shared(() => startReview());

  it('[APR-74] is the first page of the console while it waits, is read and granted there, and passes once', async () => {
    const browser = await logIn(review);
    expect((await browser.open(review.url)).body).toContain('<h1>Controls</h1>');
    const args = { id: 'one', text: HOSTILE };
    const calls = () => review.rig.upstream.seen().filter(({ body }) => String(body).includes('tools/call')).length;
    const before = calls();
    await review.call(args);
    expect(calls()).toBe(before);
    const first = await browser.open(review.url);
    expect(first.body).toContain('<h1>Approvals</h1>');
    const path = /href="(\/approvals\/[\w-]{16,})"/.exec(first.body)?.[1] ?? '';
    const one = await browser.open(review.url + path);
    expect(one.body).toContain('Writing is for good.');
    // No flow looks for labels here, so that nothing is kept of what the caller received.
    expect(one.body).toContain('Not known: no flow');
    expect(one.body).toContain('&lt;script&gt;');
    for (const text of ['<script', '\u202e', '\u200b']) expect(one.body).not.toContain(text);
    const answered = await browser.submit(`${review.url}${path}/grant`, { form: formTokenOf(one) });
    expect(answered.url).toBe(review.url + path);
    expect(answered.body).toContain('granted by');
    expect(answered.body).not.toContain('/grant"');
    expect((await browser.open(review.url)).body).toContain('<h1>Controls</h1>');
    expect((await review.call(args)).message).toMatchObject({ result: {} });
    expect(calls()).toBe(before + 1);
    expect((await browser.open(`${review.url}/approvals/history`)).body).toContain('used');
    // The next one is asked for anew.
    await review.call(args);
    expect(calls()).toBe(before + 1);
    const next = await waitingOf(review);
    expect(next).not.toBe(path.split('/').at(-1));
    expect((await review.ask('POST', `/api/approvals/${next}/deny`, review.breakGlass)).status).toBe(200);
  });

  it('[APR-71] is granted by the API with the token of a person, and recorded', async () => {
    const args = { id: 'two', text: 'by the API' };
    await review.call(args);
    const id = await waitingOf(review);
    const token = await review.adminToken({ sub: 'rev', groups: ['leads'], auth_time: secondsAgo(5) });
    const shown = await review.ask('GET', `/api/approvals/${id}`, token);
    expect(shown.value['approval']).toMatchObject({ id, arguments: JSON.stringify(args), upstream: 'target' });
    expect((await review.ask('POST', `/api/approvals/${id}/grant`, token)).status).toBe(200);
    expect((await review.call(args)).message).toMatchObject({ result: {} });
    const lines = async () => (await review.rig.gateway.audit()).filter(({ type }) => type === 'approval.granted');
    await expect.poll(async () => JSON.stringify(await lines()), PATIENT).toContain('"rev"');
    await expect
      .poll(async () => (await review.rig.gateway.audit()).filter(({ type }) => type === 'admin.action'), PATIENT)
      .toContainEqual(
        expect.objectContaining({
          detail: expect.objectContaining({ action: 'grant-approval', approval: id, status: 200 }),
        }),
      );
  });

  it('[APR-71] that was denied stays refused, and nobody is asked again', async () => {
    const args = { id: 'three', text: 'denied' };
    await review.call(args);
    const id = await waitingOf(review);
    expect((await review.ask('POST', `/api/approvals/${id}/deny`, review.breakGlass)).status).toBe(200);
    await review.call(args);
    expect(await review.waiting()).toEqual([]);
    expect((await review.ask('POST', `/api/approvals/${id}/deny`, review.breakGlass)).status).toBe(409);
  });

  it('[APR-73] is listed, shown and granted by the command line', async () => {
    const args = { id: 'five', text: `by command ${HOSTILE}` };
    await review.call(args);
    const token = await review.adminToken({ sub: 'rev', groups: ['leads'], auth_time: secondsAgo(5) });
    const run = async (...argv: readonly string[]) => {
      const io = terminal({ env: { SALLYPORT_ADMIN_TOKEN: token }, cwd: review.rig.gateway.folder });
      const ask: AdminApiPorts['ask'] = async (url, { method, token: sent, body }) => {
        const headers = { authorization: `Bearer ${sent}`, 'content-type': 'application/json' };
        const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
        return { status: response.status, text: await response.text() };
      };
      const command = approvalsCommand(io, { files: DISK_FILES, ask });
      const code = await buildProgram(io, [command]).run(['approvals', ...argv, '--url', review.url]);
      return { code, out: io.out(), err: io.err() };
    };
    const id = await waitingOf(review);
    expect(await run('list')).toMatchObject({ code: 0, out: expect.stringContaining(`${id} waits for reviewer`) });
    const shown = await run('show', id);
    expect(shown.out).toContain('by command </pre><script>');
    expect(shown.out).toMatch(/^received +not known$/m);
    for (const hidden of ['\u202e', '\u200b']) expect(shown.out).not.toContain(hidden);
    expect(await run('grant', id)).toMatchObject({ code: 0, out: expect.stringContaining(`granted ${id}`) });
    expect((await run('grant', id)).code).toBe(1);
    expect((await review.call(args)).message).toMatchObject({ result: {} });
  });

  it('[APR-75] is warned of where a reviewer could be the caller at another issuer', async () => {
    const found = (await review.rig.gateway.reload()).map(({ message }) => message);
    expect(found).toContainEqual(expect.stringContaining('one person cannot be told at idp and test'));
  });

  it('[APR-81] waits for no receiver: one that redirects, hangs or floods delays nothing', async () => {
    const { receiver } = review;
    const count = receiver.messages.length;
    receiver.respond = (response, sent) => {
      if (sent === count + 1) response.writeHead(307, { location: './elsewhere' }).end();
      else if (sent === count + 2) response.writeHead(200).end(Buffer.alloc(10 * 1024 * 1024));
    };
    for (const id of ['six', 'seven', 'eight']) {
      expect((await review.call({ id, text: 'x' })).status).toBe(200);
      await expect.poll(() => receiver.messages.length, PATIENT).toBeGreaterThan(count);
    }
    await expect.poll(() => receiver.messages.length, PATIENT).toBe(count + 3);
    const failed = 'sallyport_approval_messages_total{outcome="failed"} 1';
    await expect.poll(() => review.rig.gateway.metrics(), PATIENT).toContain(failed);
    expect(review.rig.gateway.log()).not.toContain('path-that-is-secret');
    receiver.respond = (response) => response.writeHead(200).end();
    for (const id of await review.waiting()) await review.ask('POST', `/api/approvals/${id}/deny`, review.breakGlass);
  });

  it('[APR-80] tells a receiver by a signed message, whose link leads to the page after a login', async () => {
    const { receiver } = review;
    const count = receiver.messages.length;
    await review.call({ id: 'four', text: 'told' });
    const id = await waitingOf(review);
    await expect.poll(() => receiver.messages.length, PATIENT).toBe(count + 1);
    const { headers, body } = receiver.messages[count] ?? { headers: {}, body: '' };
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const digest = createHmac('sha256', review.secret).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${digest}`);
    const { data } = JSON.parse(body);
    expect(data).toMatchObject({ approval: id, upstream: 'target', url: `${review.url}/approvals/${id}` });
    expect(body).not.toContain('told');
    const browser = new TestBrowser();
    const page = await browser.open(data.url);
    expect(page.status).toBe(401);
    const link = /href="(\/login\/with\/idp[^"]*)"/.exec(page.body)?.[1] ?? '';
    expect((await browser.open(review.url + link.replaceAll('&amp;', '&'))).url).toBe(data.url);
    await review.ask('POST', `/api/approvals/${id}/deny`, review.breakGlass);
  });
});

describe('[APR-80] a message', () => {
  it('is in the form of each receiver, whose certificate another authority signed, and not sent elsewhere', async () => {
    const authority = makeAuthority();
    const { cert, key } = authority.issue();
    const bodies: string[] = [];
    const server = createServer({ cert, key }, (request, response) => {
      let text = '';
      request.on('data', (part: Buffer) => {
        text += String(part);
      });
      request.on('end', () => {
        bodies.push(text);
        response.writeHead(202).end();
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
    await withStarted(
      () =>
        startReview({
          env: { CHAT_URL: url },
          files: { 'hook-ca.crt': authority.cert },
          webhooks: [
            'slack: {url: {env: CHAT_URL}, format: slack, network: loopback, ca: ./hook-ca.crt}',
            'teams: {url: {env: CHAT_URL}, format: teams, network: loopback, ca: ./hook-ca.crt}',
            'unknown: {url: {env: CHAT_URL}, format: slack, network: loopback}',
          ],
        }),
      async (review) => {
        await review.call({ id: 'one', text: 'x' });
        await expect.poll(() => bodies.length, PATIENT).toBe(2);
        expect(bodies.map((body) => Object.keys(JSON.parse(body)).sort().join()).sort()).toEqual([
          'attachments,type',
          'blocks,text',
        ]);
        // Where a secret URL leads is in no log.
        expect(review.rig.gateway.log()).not.toContain('/hook');
      },
    );
    server.closeAllConnections();
    server.close();
  });

  it('goes to a receiver in a private network by plain http only where that is accepted', async () => {
    await withStarted(
      () => startReview({ webhooks: [] }),
      async ({ rig }) => {
        const file = `${rig.gateway.folder}/gateway.yaml`;
        const text = await readFile(file, 'utf8');
        const write = async (members: string): Promise<string> => {
          await writeFile(`${rig.gateway.folder}/hook.url`, 'http://10.1.2.3/hook\n');
          const hook = `private: {url: {file: ./hook.url}, format: slack, network: private${members}}`;
          await writeFile(file, text.replace('webhooks: {', `webhooks: {${hook}, `));
          const found = await rig.gateway.reload();
          return found
            .filter(({ severity }) => severity === 'error')
            .map(({ message }) => message)
            .join();
        };
        expect(await write('')).toContain('plaintext: accepted');
        expect(await write(', plaintext: accepted')).toBe('');
      },
    );
  });
});
