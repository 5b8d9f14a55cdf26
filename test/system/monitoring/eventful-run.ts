// Two replicas with a real store, and most of what can happen to them within an hour: calls of both eras, refusals, bad
// tokens, a changed tool, a server that fails and one that hangs, a store and receivers that are away, files that are
// rejected, approvals and a block. Their metrics are recorded meanwhile.

import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDemoUpstream } from '../../../src/dev/demo-upstream.js';
import { ADMINS, adminsOf } from '../../support/deployments.js';
import { type RunningGateway, startTestGateway } from '../../support/gateway.js';
import { startHostileUpstream } from '../../support/hostile-upstream.js';
import { startOtlpReceiver, tracingTo } from '../../support/otlp-receiver.js';
import { findFreePort, startRedisServer } from '../../support/processes.js';
import { makeAuthority, startTlsFront } from '../../support/tls.js';
import { startTestIssuer, startTokenServer } from '../../support/tokens.js';
import {
  callStateless,
  openSession,
  requestStateless,
  sessionHeaders,
  statelessParts,
} from '../../support/wire-client.js';
import { type Recording, startRecording } from './recording.js';

const POLICY = `version: 1
policy: base
rules:
  - id: most
    effect: allow
    who: {anyone: true}
    what: {upstreams: [desk, crm, files], tools: [get_ticket, list_tickets, search_docs, get_customer, read_record, write_record], prompts: ["*"], resources: ["**"]}
  - {id: few, effect: require, who: {anyone: true}, what: {tools: [list_tickets]}, limits: {rate: 20/min}}
  - {id: ask, effect: require, who: {anyone: true}, what: {tools: [write_record]}, approval: {by: reviewer}, reason: Writing is for good.}
  - {id: never, effect: deny, who: {anyone: true}, what: {tools: [get_ticket]}, when: 'args.id == "T-104"'}
`;
const SHADOW = `version: 1
policy: next
mode: shadow
rules:
  - {id: no-customers, effect: deny, who: {anyone: true}, what: {tools: [get_customer]}}
`;

const PAUSE_MS = 500;
/** Steps that something is waited for, at most. */
const MAX_STEPS = 80;

async function startReceiver() {
  let status = 204;
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    answerWith(next: number) {
      status = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type EventfulRun = {
  readonly recording: Recording;
  readonly gateways: ReadonlyMap<string, RunningGateway>;
  close(): Promise<void>;
};

/** Starts everything and lets it happen. */
export async function runEventfully(): Promise<EventfulRun> {
  const [desk, crm, redis, siem, hook, otlp, opaque, tokens] = await Promise.all([
    startDemoUpstream({}),
    startHostileUpstream(),
    startRedisServer(),
    startReceiver(),
    startReceiver(),
    startOtlpReceiver(),
    startTestIssuer(),
    startTokenServer(),
  ]);
  const authority = makeAuthority();
  const front = await startTlsFront(crm.url, authority.issue());
  // Not a JWT: its issuer is asked about it.
  const bearer = randomBytes(24).toString('hex');
  const client = randomBytes(24).toString('hex');
  const key = randomBytes(32).toString('base64url');
  async function start(readiness: 'lenient' | 'strict'): Promise<RunningGateway> {
    const adminPort = await findFreePort();
    return startTestGateway({
      adminPort,
      files: { 'authority.crt': authority.cert },
      issuers: [
        `opaque: {issuer: "${opaque.issuer}", network: loopback, introspection: {clientId: gateway, clientSecret: {env: CLIENT}, cacheTtl: 1ms}}`,
      ],
      issuer: ['algorithms: [ES256]', 'keysMaxAge: 10s'],
      upstreams: [
        { name: 'desk', url: desk.url, more: ['pinning: {maxAge: 3s}'] },
        { name: 'crm', url: crm.url, more: ['pinning: {maxAge: 3s}', 'limits: {requestTimeout: 1s}'] },
        {
          name: 'files',
          url: `https://127.0.0.1:${front.port}/mcp`,
          more: [
            'issuers: [opaque]',
            'tls: {ca: ./authority.crt}',
            'pinning: {maxAge: 10m}',
            'limits: {requestTimeout: 5s}',
            `credentials: {type: client-credentials, tokenEndpoint: "${tokens.url}", network: loopback, clientId: gateway, clientSecret: {env: CLIENT}}`,
          ],
        },
      ],
      policies: { base: POLICY, next: SHADOW },
      env: {
        REDIS_URL: redis.url,
        KEY: key,
        CLIENT: client,
        HOOK: hook.url,
        HOOK_KEY: `whsec_${randomBytes(32).toString('base64')}`,
      },
      audit: `audit: {sinks: [{type: file, path: ./audit.jsonl}, {type: http, name: siem, url: "${siem.url}", network: loopback}]}`,
      more: `keys: [{env: KEY}]
state: {type: redis, url: {env: REDIS_URL}, commandTimeout: 2s, maxAge: 4s, afterLoss: degrade, readiness: ${readiness}}
approvals: {webhooks: {team: {url: {env: HOOK}, secret: {env: HOOK_KEY}, network: loopback}}}
${ADMINS}  publicUrl: http://127.0.0.1:${adminPort}
${tracingTo(otlp)}`,
    });
  }
  const one = await start('lenient');
  const other = await start('strict');
  const gateways = new Map([
    ['gateway-0:9464', one],
    ['gateway-1:9464', other],
  ]);
  const recording = startRecording(gateways);
  const admins = adminsOf(one);
  let turn = 0;

  const as = async (gateway: RunningGateway, upstream: string, claims = {}) => ({
    url: gateway.url(upstream),
    token: await gateway.token(upstream, { sub: 'ada', ...claims }),
  });
  async function call(name: string, args = {}, gateway = turn % 3 === 0 ? other : one): Promise<unknown> {
    const upstream = name.endsWith('_record') ? 'crm' : 'desk';
    return callStateless(await as(gateway, upstream), name, args);
  }
  const ticket = (id: string) => call('get_ticket', { project: 'web', id });
  /** A step of everyday traffic, with what else happens in it; it is scraped in the middle of that. */
  async function step(more: readonly Promise<unknown>[] = []): Promise<void> {
    turn += 1;
    const usual = 2 + Math.round(Math.sin(turn / 6));
    const everyday = Array.from({ length: usual }, (_, at) => ticket(`T-10${1 + at}`));
    const sometimes = [
      ...(turn % 4 === 0 ? [as(one, 'desk').then((access) => requestStateless(access, 'tools/list'))] : []),
      ...(turn % 2 === 0 ? [file()] : []),
      ...(turn % 7 === 0 ? [call('search_docs', { query: 'refund' })] : []),
    ];
    await Promise.all([...everyday, ...sometimes, ...more, recording.scrape()]);
  }
  async function steps(count: number, more: (at: number) => readonly Promise<unknown>[] = () => []): Promise<void> {
    for (let at = 0; at < count; at += 1) await step(more(at));
  }
  /** Goes on until the first gateway shows it. */
  async function until(pattern: RegExp, more: (at: number) => readonly Promise<unknown>[] = () => []): Promise<void> {
    for (let at = 0; at < MAX_STEPS; at += 1) {
      await step(more(at));
      if (pattern.test(recording.newest('gateway-0:9464'))) return;
      await sleep(PAUSE_MS);
    }
    throw new Error(`the metrics did not come to show ${pattern}`);
  }
  opaque.answerAbout((token) =>
    token === bearer
      ? {
          active: true,
          sub: 'eve',
          client_id: 'ide',
          aud: one.url('files'),
          exp: Math.floor(Date.now() / 1000) + 300,
        }
      : { active: false },
  );
  const file = () => callStateless({ url: one.url('files'), token: bearer }, 'read_record', { id: 'two' });
  const records = () => [call('read_record', { id: 'one' })];

  async function leave(access: ReturnType<typeof as>): Promise<void> {
    const { url, token } = await access;
    const { headers, body } = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
    const sent = {
      ...headers,
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const left = fetch(url, {
      method: 'POST',
      headers: sent,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(100),
    });
    await step([left.catch(() => undefined)]);
  }

  async function happen(): Promise<void> {
    await until(/^sallyport_upstream_up\{upstream="crm"\} 1$/m);
    const session = await openSession(await as(one, 'desk'));
    const stream = new AbortController();
    const { url, token: own } = await as(one, 'desk');
    const headers = { ...sessionHeaders(session.id), authorization: `Bearer ${own}`, accept: 'text/event-stream' };
    await fetch(url, { headers, signal: stream.signal });
    await steps(8, (at) => [
      session.call('get_ticket', { project: 'web', id: 'T-101' }),
      file(),
      ...(at % 2 === 0 ? records() : []),
    ]);
    stream.abort();
    // Refusals: by a rule, without one, of arguments, by a rate, and of tokens.
    await steps(8, (at) => [
      call('get_customer', { id: 'C-1' }),
      ticket('T-104'),
      ...(at % 3 === 0 ? [call('delete_ticket', { id: 'T-101' }), call('get_ticket', { number: 1 })] : []),
      ...(at % 4 === 0 ? Array.from({ length: 12 }, () => call('list_tickets', { project: 'web' }, one)) : []),
      ...(at % 2 === 0 ? [fetch(one.url('desk'), { method: 'POST' })] : []),
      as(one, 'desk', { aud: 'https://other.example.com' }).then((access) => requestStateless(access, 'tools/list')),
      as(other, 'desk', { exp: 1 }).then((access) => requestStateless(access, 'tools/list')),
    ]);
    // An approval that is asked for, waits, and is denied, while the first message to reviewers gets lost.
    hook.answerWith(400);
    await until(/^sallyport_approvals_waiting\{party="reviewer"\} [1-9]/m, () => [
      call('write_record', { id: 'one', text: 'x' }, one),
    ]);
    hook.answerWith(200);
    await steps(5, (at) => (at === 0 ? [call('write_record', { id: 'two', text: 'x' }, one)] : []));
    const token = await admins.token('leads');
    const waiting = (await admins.ask('GET', '/api/approvals', { token })).body.callers as readonly {
      readonly approvals: readonly { readonly id: string }[];
    }[];
    const [id] = waiting.flatMap(({ approvals }) => approvals.map((approval) => approval.id));
    const denied = await admins.ask('POST', `/api/approvals/${id}/deny`, { token, body: {} });
    if (denied.status !== 200) throw new Error(`the approval was not denied: ${denied.text}`);
    await admins.ask('POST', '/api/revocations', {
      token,
      body: { note: 'looked at', block: { target: 'tool', upstream: 'desk', name: 'sync_mailbox' } },
    });
    await until(/^sallyport_blocks\{target="(?:item|tool)"\} 1$/m);
    // A server changes a tool, and another one fails, is slow and hangs.
    desk.misbehave({ drift: 'description' });
    await until(/^sallyport_tools\{upstream="desk",state="changed"\} [1-9]/m);
    crm.obey(({ method }) =>
      method === 'tools/call' ? { kind: 'http', status: 500, headers: {}, body: 'no' } : undefined,
    );
    await steps(5, records);
    crm.obey(() => ({ kind: 'hold' }));
    await until(/^sallyport_upstream_hanging\{upstream="crm"\} 1$/m, records);
    await steps(3, records);
    crm.repent();
    await until(/^sallyport_upstream_hanging\{upstream="crm"\} 0$/m);
    // Nobody says whether a token is active.
    opaque.misbehave('error', 'introspection');
    await steps(4, () => [file()]);
    opaque.misbehave('none');
    // A client that does not wait for the answer.
    crm.obey(() => ({ kind: 'honest', after: sleep(300) }));
    for (let at = 0; at < 3; at += 1) await leave(as(one, 'crm'));
    crm.repent();
    // The receiver of audit lines is away.
    siem.answerWith(503);
    await until(/^sallyport_audit_delivery_lag_seconds\{sink="siem"\} (?:[3-9]|\d\d)/m);
    siem.answerWith(204);
    await until(/^sallyport_audit_delivery_lag_seconds\{sink="siem"\} 0$/m);
    // Files that are wrong, and the store away.
    await other.writePolicy('next', 'version: 1\npolicy: next\nrules: nonsense\n');
    await other.reload();
    await steps(4);
    await other.writePolicy('next', SHADOW);
    const gatewayFile = join(other.folder, 'gateway.yaml');
    const text = await readFile(gatewayFile, 'utf8');
    await writeFile(gatewayFile, `${text}metrics: {maxSeries: 900}\n`);
    await other.reload();
    await steps(4);
    await writeFile(gatewayFile, text);
    await other.reload();
    await steps(3);
    await redis.stop();
    await until(/^sallyport_store_degraded 1$/m);
    await until(/reason="store-unavailable"[^}]*\} [1-9]/m);
    await steps(3);
    await redis.start();
    await until(/^sallyport_store_degraded 0$/m);
    desk.behave();
    await until(/^sallyport_tools\{upstream="desk",state="changed"\} 0$/m);
    await steps(8, records);
  }

  async function close(): Promise<void> {
    await Promise.all([one.close(), other.close()]);
    await Promise.all([front, desk, crm, redis, siem, hook, otlp, opaque, tokens].map((part) => part.close()));
  }
  try {
    await happen();
  } catch (error) {
    await close();
    throw error;
  }
  return { recording, gateways, close };
}
