import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createWebhook, createWebhooks, MAX_MESSAGES, type Webhook } from '../../../src/approvals/webhook.js';
import type { WebhookSettings } from '../../../src/config/settings.js';
import { createGuardedFetch, type GuardedFetch } from '../../../src/upstream/safe-fetch.js';
import { approvalOf } from '../../support/approvals.js';
import { PATIENT } from '../../support/timing.js';

type Received = {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly url: string | undefined;
};

const SECRET = randomBytes(32);
let received: Received[];
let respond: (response: ServerResponse, count: number) => void;
let server: Server;
let url: URL;
let guarded: GuardedFetch;
let outcomes: object[];
let open: Webhook[];

beforeEach(async () => {
  received = [];
  outcomes = [];
  open = [];
  respond = (response) => response.writeHead(200).end('ok');
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      received.push({ headers: request.headers, body, url: request.url });
      respond(response, received.length);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/services/a-secret-path?x=1`);
  guarded = createGuardedFetch();
});

afterEach(async () => {
  for (const webhook of open) webhook.close();
  await guarded.close();
  server.closeAllConnections();
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

const settingsOf = (more: Partial<WebhookSettings> = {}): WebhookSettings => ({
  ...{ name: 'team', url, format: 'json', secret: SECRET, network: 'loopback' },
  ...more,
});

const ports = () => ({
  emit: (_name: string, event: object) => void outcomes.push(event),
  now: Date.now,
  hashCaller: () => 'hash-of-caller',
  linkTo: (id: string) => `https://console.example.com/approvals/${id}`,
});

function webhookTo(more: Partial<WebhookSettings> = {}): Webhook {
  const webhook = createWebhook(settingsOf(more), { ...ports(), post: guarded.postMessage });
  open.push(webhook);
  return webhook;
}

const HOSTILE = 'delete_all <!channel> @here [x](https://evil.example/) *b* \u202e\u{1f600}`';
const INERT =
  'delete_all \\u{3c}\\u{21}channel\\u{3e} \\u{40}here \\u{5b}x\\u{5d}\\u{28}https\\u{3a}//evil.example/\\u{29} \\u{2a}b\\u{2a} \\u{202e}\\u{1f600}\\u{60}';

describe('[APR-80] a message to reviewers', () => {
  it('is signed as Standard Webhooks says, and holds no argument and no name of the caller', async () => {
    const one = approvalOf(Date.now(), { content: { args: '{"ssn":"in-the-arguments"}' } });
    webhookTo().notify(one);
    await expect.poll(() => outcomes, PATIENT).toEqual([{ webhook: 'team', outcome: 'delivered', detail: undefined }]);
    const { headers = {}, body = '' }: Partial<Received> = received[0] ?? {};
    expect(JSON.parse(body)).toStrictEqual({
      type: 'approval.requested',
      timestamp: new Date(one.createdAtMs).toISOString(),
      data: {
        ...{ approval: one.id, rules: ['records/ask'], upstream: 'desk', method: 'tools/call', name: 'delete_record' },
        ...{ caller: 'hash-of-caller', reviewers: 1, expires: new Date(one.expiresAtMs).toISOString() },
        url: `https://console.example.com/approvals/${one.id}`,
      },
    });
    expect(body).not.toMatch(/in-the-arguments|ada|agent/);
    const [id, timestamp] = [headers['webhook-id'], headers['webhook-timestamp']];
    const digest = createHmac('sha256', SECRET).update(`${id}.${timestamp}.${body}`).digest('base64');
    expect([id, headers['webhook-signature']]).toEqual([one.id, `v1,${digest}`]);
    expect(Math.abs(Date.now() / 1000 - Number(timestamp))).toBeLessThan(60);
    expect(headers['content-type']).toBe('application/json');
  });

  it.each(['json', 'slack', 'teams'] as const)('holds a hostile name inert as %s', async (format) => {
    webhookTo({ format }).notify(approvalOf(Date.now(), { name: HOSTILE }));
    await expect.poll(() => received.length, PATIENT).toBe(1);
    const text = received[0]?.body ?? '';
    expect(text).toContain(JSON.stringify(INERT).slice(1, -1));
    expect(text).not.toMatch(/<!|@here|\]\(|\*b\*|\u202e/u);
  });

  it('holds the name neither of a resource nor of a server request, which others choose', async () => {
    for (const method of ['resources/read', 'sampling/createMessage'])
      webhookTo().notify(approvalOf(Date.now(), { method, name: 'https://evil.example/click' }));
    await expect.poll(() => received.length, PATIENT).toBe(2);
    for (const { body } of received) expect([JSON.parse(body).data.name, body.includes('evil')]).toEqual([null, false]);
  });

  it('says what Slack and Teams show without markup, and a link that approves nothing', async () => {
    const one = approvalOf(Date.now());
    webhookTo({ format: 'slack', secret: undefined }).notify(one);
    webhookTo({ format: 'teams', secret: undefined }).notify(one);
    await expect.poll(() => received.length, PATIENT).toBe(2);
    const [slack, teams] = received.map(({ body }) => JSON.parse(body)).sort((a) => ('blocks' in a ? -1 : 1));
    for (const block of slack.blocks)
      for (const text of [block.text, ...(block.elements ?? []).map((one: { text: object }) => one.text)])
        if (text !== undefined) expect(text.type).toBe('plain_text');
    expect(slack.blocks.at(-1).elements[0]).toMatchObject({ url: `https://console.example.com/approvals/${one.id}` });
    const [{ content }] = teams.attachments;
    expect(new Set(content.body.map(({ type }: { type: string }) => type))).toEqual(new Set(['RichTextBlock']));
    expect(content.actions).toMatchObject([{ type: 'Action.OpenUrl' }]);
    expect(received[0]?.headers['webhook-signature']).toBeUndefined();
  });

  it('is sent for what needs a reviewer alone', async () => {
    const webhook = webhookTo();
    webhook.notify(approvalOf(Date.now(), { demand: { reviewer: undefined } }));
    webhook.notify(approvalOf(Date.now()));
    await expect.poll(() => outcomes.length, PATIENT).toBe(1);
    expect(received).toHaveLength(1);
  });
});

describe('[APR-81] a receiver', () => {
  it.each([500, 503, 429])('that answers %d is asked again, with a signature of its own', async (status) => {
    respond = (response, count) => response.writeHead(count === 1 ? status : 204).end();
    webhookTo().notify(approvalOf(Date.now()));
    await expect.poll(() => outcomes, PATIENT).toMatchObject([{ outcome: 'delivered' }]);
    expect(received).toHaveLength(2);
    expect(received[0]?.headers['webhook-id']).toBe(received[1]?.headers['webhook-id']);
  });

  it('whose connection breaks is asked again', async () => {
    respond = (response, count) => (count === 1 ? response.destroy() : response.writeHead(200).end());
    webhookTo().notify(approvalOf(Date.now()));
    await expect.poll(() => outcomes, PATIENT).toMatchObject([{ outcome: 'delivered' }]);
  });

  it.each([400, 401, 404, 410])('that answers %d is not asked again', async (status) => {
    respond = (response) => response.writeHead(status).end();
    webhookTo().notify(approvalOf(Date.now()));
    await expect
      .poll(() => outcomes, PATIENT)
      .toMatchObject([{ outcome: 'failed', detail: `answered with status ${status}` }]);
    expect(received).toHaveLength(1);
  });

  it('that redirects is not followed, and its URL is told nobody', async () => {
    respond = (response) => response.writeHead(307, { location: './elsewhere' }).end();
    webhookTo().notify(approvalOf(Date.now()));
    await expect
      .poll(() => outcomes, PATIENT)
      .toEqual([{ webhook: 'team', outcome: 'failed', detail: 'answered with a redirect' }]);
    expect(received).toHaveLength(1);
  });

  it('may send ten megabytes, or never end: nothing of it is read', async () => {
    respond = (response, count) => {
      response.writeHead(200);
      if (count === 1) response.end(Buffer.alloc(10 * 1024 * 1024));
      else response.write('and then nothing');
    };
    const webhook = webhookTo();
    webhook.notify(approvalOf(Date.now()));
    webhook.notify(approvalOf(Date.now()));
    await expect.poll(() => outcomes, PATIENT).toMatchObject([{ outcome: 'delivered' }, { outcome: 'delivered' }]);
  });

  it('that hangs holds up a few messages, and is given up', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
    try {
      respond = () => undefined;
      webhookTo().notify(approvalOf(Date.now()));
      await vi.waitFor(() => expect(received).toHaveLength(1), PATIENT);
      for (let count = 2; count <= 5; count += 1) {
        await vi.advanceTimersByTimeAsync(140_000);
        if (count < 5) await vi.waitFor(() => expect(received.length).toBeGreaterThanOrEqual(count), PATIENT);
      }
      await vi.advanceTimersByTimeAsync(300_000);
      expect(outcomes).toMatchObject([{ outcome: 'failed' }]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('in another network is not reached', async () => {
    webhookTo({ network: 'public' }).notify(approvalOf(Date.now()));
    await expect.poll(() => outcomes, PATIENT).toMatchObject([{ outcome: 'failed' }]);
    expect(received).toHaveLength(0);
  });

  it('that takes nothing costs a bounded queue, whose oldest messages are dropped', async () => {
    respond = () => undefined;
    const webhook = webhookTo();
    const many = Array.from({ length: MAX_MESSAGES + 50 }, () => approvalOf(Date.now()));
    for (const one of many) webhook.notify(one);
    expect(outcomes).toHaveLength(50);
    expect(outcomes[0]).toMatchObject({ outcome: 'dropped' });
    await expect.poll(() => received.length, PATIENT).toBe(4);
  });

  it('is kept with what waits for it when others change, and closed when it goes', async () => {
    let opened = 0;
    const closed = vi.fn(() => Promise.resolve());
    const webhooks = createWebhooks(() => {
      opened += 1;
      return { postMessage: guarded.postMessage, close: closed };
    }, ports());
    open.push(webhooks);
    webhooks.use([settingsOf(), settingsOf({ name: 'chat', format: 'slack' })]);
    webhooks.use([settingsOf()]);
    expect([opened, closed.mock.calls.length]).toEqual([2, 1]);
    webhooks.notify(approvalOf(Date.now()));
    await expect.poll(() => outcomes, PATIENT).toMatchObject([{ webhook: 'team' }]);
  });
});
