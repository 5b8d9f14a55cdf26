// Two gateways as processes of their own, one real Redis, and callers who answer at the one page behind both: what is asked
// at one is answered and used at the other, once, and what becomes of it when a gateway or the store ends in between.

import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeKeyText } from '../../src/config/key-material.js';
import { type DevIssuer, startIssuer } from '../../src/dev/issuer.js';
import { answerAt, linkIn } from '../support/caller-stage.js';
import { TestBrowser } from '../support/console-rig.js';
import { fetchPins, UPSTREAM } from '../support/gateway.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import {
  buildProgram,
  findFreePort,
  type RedisServer,
  type Served,
  startRedisServer,
  startSallyport,
} from '../support/processes.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, type Reply } from '../support/wire-client.js';

const POLICY = `version: 1
policy: records
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: ask
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record]}
    approval: {by: caller}
    reason: Writing is for good.
`;

const STARTED = { timeout: 60_000, interval: 50 };

/** A process, at ports that stay when it is started again. */
type Replica = { readonly data: number; readonly file: string; served?: Served };

let folder: string;
let redis: RedisServer;
let upstream: HostileUpstream;
let issuer: DevIssuer;
let one: Replica;
let other: Replica;
/** Stands for the load balancer behind `publicUrl`, which leads to one of them. */
let front: Server;
let publicUrl: string;
let behind: Replica;
const sockets = new Set<Socket>();

async function makeReplica(name: string): Promise<Replica> {
  const [data, ops] = [await findFreePort(), await findFreePort()];
  const file = join(folder, `${name}.yaml`);
  await writeFile(
    file,
    `version: 1
publicUrl: ${publicUrl}
listeners: {data: {host: 127.0.0.1, port: ${data}}, ops: {host: 127.0.0.1, port: ${ops}}}
keys: [{file: ./key}]
issuers:
  demo:
    issuer: ${issuer.issuer}
    network: loopback
    algorithms: [ES256]
    login: {clientId: sallyport-login, clientSecret: {file: ./login-secret}}
upstreams: {${UPSTREAM}: {url: "${upstream.url}", network: loopback, issuers: [demo], pinning: {maxAge: 10m}}}
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
state: {type: redis, url: {file: ./redis-url}, maxAge: 2s, commandTimeout: 300ms}
audit: {sinks: [{type: file, path: ./audit-${name}.jsonl}]}
`,
  );
  return { data, file };
}

async function start(replica: Replica): Promise<void> {
  const served = startSallyport(['serve', '-c', replica.file], folder);
  replica.served = served;
  await vi.waitFor(() => expect(served.stderr()).toContain('ops listening'), STARTED);
}

async function kill({ served }: Replica): Promise<void> {
  served?.signal('SIGKILL');
  await served?.ended.catch(() => undefined);
}

beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-approvals-'));
  redis = await startRedisServer();
  upstream = await startHostileUpstream();
  issuer = await startIssuer({ users: [{ name: 'ann', groups: [], scopes: [] }] });
  const port = await findFreePort();
  publicUrl = `http://127.0.0.1:${port}`;
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFile(join(folder, 'policies/records.policy.yaml'), POLICY);
  await writeFile(join(folder, 'key'), writeKeyText(randomBytes(32)), { mode: 0o600 });
  await writeFile(join(folder, 'login-secret'), randomBytes(24).toString('base64url'), { mode: 0o600 });
  await writeFile(join(folder, 'redis-url'), redis.url, { mode: 0o600 });
  [one, other] = [await makeReplica('one'), await makeReplica('other')];
  behind = other;
  front = createServer((socket) => {
    const on = connect(behind.data, '127.0.0.1');
    for (const each of [socket, on]) sockets.add(each.on('error', () => undefined));
    socket.pipe(on).pipe(socket);
  });
  await new Promise<void>((resolve) => {
    front.listen(port, '127.0.0.1', resolve);
  });
  await fetchPins(one.file);
  await Promise.all([start(one), start(other)]);
});
afterAll(async () => {
  for (const replica of [one, other]) if (replica !== undefined) await kill(replica);
  for (const socket of sockets) socket.destroy();
  front?.close();
  await issuer?.close();
  await upstream?.close();
  await redis?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Every test has a call of its own. */
let count = 0;
let text = '';
beforeEach(() => {
  count += 1;
  text = `test ${count}`;
  behind = other;
  upstream.forget();
});

async function call({ data }: Replica): Promise<Reply> {
  const token = await issuer.mint({ resource: `${publicUrl}/${UPSTREAM}`, subject: 'ann' });
  return callStateless({ url: `http://127.0.0.1:${data}/${UPSTREAM}`, token }, 'write_record', { id: 'one', text });
}

const REASON = /approval-[a-z]+|store-unavailable/;
const outcomeOf = ({ status, text: body }: Reply): string =>
  body.includes('write_record one') ? 'passed' : (REASON.exec(body)?.[0] ?? `${status} ${body}`);
const uses = (): number => upstream.uses().length;

/** Calls at a replica, which asks; gives the link. */
async function askAt(replica: Replica): Promise<string> {
  const reply = await call(replica);
  expect(outcomeOf(reply)).toBe('approval-required');
  expect(uses()).toBe(0);
  return linkIn(reply.text);
}

describe('[APR-60] two processes at one Redis', () => {
  it.each([
    ['the one', () => [one]],
    ['the other', () => [other]],
    ['both at once', () => [one, other, one, other, one, other]],
  ] as const)('ask at one, take the answer at the other, and let it pass once at %s', async (_where, users) => {
    const link = await askAt(one);
    expect(await answerAt(link, 'grant')).toContain('You approved this request.');
    const outcomes = (await Promise.all(users().map(call))).map(outcomeOf);
    expect(outcomes.filter((outcome) => outcome === 'passed')).toHaveLength(1);
    expect(new Set(outcomes.filter((outcome) => outcome !== 'passed'))).toEqual(
      new Set(users().length > 1 ? ['approval-required'] : []),
    );
    expect(uses()).toBe(1);
    for (const replica of [one, other]) expect(linkIn((await call(replica)).text)).not.toBe(link);
    expect(uses()).toBe(1);
  });

  it('refuse at both what was refused at one', async () => {
    await answerAt(await askAt(one), 'deny');
    for (const replica of [one, other, one]) expect(outcomeOf(await call(replica))).toBe('approval-denied');
    expect(uses()).toBe(0);
  });

  it('ask once for simultaneous requests', async () => {
    const replies = await Promise.all([one, other, one, other, one, other].map(call));
    expect(new Set(replies.map(({ text: body }) => linkIn(body))).size).toBe(1);
  });

  it('know of a question and of its yes when the one that asked is killed in between, and started again', async () => {
    const link = await askAt(one);
    await kill(one);
    expect(await answerAt(link, 'grant')).toContain('You approved this request.');
    await start(one);
    expect(outcomeOf(await call(one))).toBe('passed');
    for (const replica of [one, other]) expect(outcomeOf(await call(replica))).toBe('approval-required');
    expect(uses()).toBe(1);
  });

  it('let nothing pass while the store is gone, and ask anew when it is back and empty', async () => {
    const link = await askAt(one);
    const waiting = text;
    text = `${waiting}, approved`;
    expect(await answerAt(await askAt(other), 'grant')).toContain('You approved this request.');
    await redis.stop();
    for (const replica of [one, other]) {
      const reply = await call(replica);
      expect([reply.status, outcomeOf(reply)]).toEqual([503, 'store-unavailable']);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    const page = await new TestBrowser().submit(link, { do: 'login' });
    expect(page.body).not.toContain('Do you approve this request?');
    await redis.start();
    for (const replica of [one, other])
      await expect.poll(async () => outcomeOf(await call(replica)), PATIENT).toBe('approval-required');
    text = waiting;
    expect(await answerAt(link, 'grant')).toContain('There is no such request, or not any more.');
    const next = await askAt(one);
    expect(next).not.toBe(link);
    expect(await answerAt(next, 'grant')).toContain('You approved this request.');
    expect(outcomeOf(await call(other))).toBe('passed');
    expect(uses()).toBe(1);
  });
});
