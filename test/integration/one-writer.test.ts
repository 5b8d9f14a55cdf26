// A start is whole or leaves nothing open, and two gateways never write one audit file: taken ports, a
// second gateway with the same files, and the rollout of the chart (`Recreate`), where the pod of before is
// still ending while the next one starts.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyChain } from '../support/audit-chain.js';
import { canary } from '../support/canary.js';
import { ADMINS } from '../support/deployments.js';
import { type GatewayStart, tryStart, UPSTREAM } from '../support/gateway.js';
import { findFreePort } from '../support/processes.js';
import { PATIENT } from '../support/timing.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const HOST = '127.0.0.1';

type Ports = { readonly data: number; readonly ops: number; readonly admin: number };

const rig = sharedGateway({ more: ADMINS });

async function freePorts(): Promise<Ports> {
  return { data: await findFreePort(), ops: await findFreePort(), admin: await findFreePort() };
}

/** Starts a second gateway on the files of the first, and on its audit, with ports of its own. */
async function startSecond(ports: Ports, change: (text: string) => string = (text) => text): Promise<GatewayStart> {
  const { folder, opsUrl } = rig.gateway;
  const text = (await readFile(join(folder, 'gateway.yaml'), 'utf8'))
    .replaceAll(`:${rig.port}`, `:${ports.data}`)
    .replace(`port: ${rig.port}`, `port: ${ports.data}`)
    .replace(`port: ${new URL(opsUrl).port}`, `port: ${ports.ops}`)
    .replace(/admin: \{host: 127.0.0.1, port: \d+/, `admin: {host: 127.0.0.1, port: ${ports.admin}`);
  const file = join(folder, 'second.yaml');
  await writeFile(file, change(text));
  return tryStart({ file });
}

/** Takes a port; rejects when it is taken. */
function listenOn(port: number, host = HOST): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

const closed = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()));

async function isFree(port: number): Promise<boolean> {
  try {
    await closed(await listenOn(port));
    return true;
  } catch {
    return false;
  }
}

async function instances(): Promise<ReadonlySet<unknown>> {
  return new Set((await rig.gateway.audit()).flatMap((line) => line['gateway'].instance ?? []));
}

const lease = () => readFile(join(rig.gateway.folder, 'audit.jsonl.lease'), 'utf8');

describe('a start', () => {
  it.each([['data'], ['ops'], ['admin']] as const)(
    '[E-39] whose %s port is taken names it, leaves nothing open, and writes nothing',
    async (name) => {
      const ports = await freePorts();
      const before = JSON.parse(await lease()) as { instance: unknown };
      const taken = await listenOn(ports[name]);
      try {
        const started = await startSecond(ports);
        expect(started).toMatchObject({
          kind: 'failed',
          message: `the ${name} listener cannot listen on ${HOST}:${ports[name]}: the port is already in use (EADDRINUSE)`,
        });
      } finally {
        await closed(taken);
      }
      for (const port of Object.values(ports)) expect(await isFree(port)).toBe(true);
      expect(await instances()).toEqual(new Set([before.instance]));
      expect(JSON.parse(await lease())).toMatchObject({ instance: before.instance });
      expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
    },
  );

  it('[E-39] names an address of IPv6 as it is written in a URL', async () => {
    const ports = await freePorts();
    // Not an address of any machine.
    const elsewhere = (text: string): string => text.replace(`ops: {host: ${HOST}`, 'ops: {host: "2001:db8::1"');
    expect(await startSecond(ports, elsewhere)).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining(`the ops listener cannot listen on [2001:db8::1]:${ports.ops}: `),
    });
    expect(await isFree(ports.data)).toBe(true);
  });

  it.each([
    ['in a folder that is not there', 'absent/audit.jsonl', /ENOENT.*absent/],
    ['at the place of another file', 'second.yaml', /no audit line/],
  ])('[E-39] whose audit cannot be written %s leaves nothing open', async (_, path, why) => {
    const ports = await freePorts();
    const elsewhere = (text: string): string => text.replace('./audit.jsonl', `./${path}`);
    const started = await startSecond(ports, elsewhere);
    expect(started).toMatchObject({ kind: 'failed', message: expect.stringMatching(why) });
    for (const port of Object.values(ports)) expect(await isFree(port)).toBe(true);
    expect((await readdir(rig.gateway.folder)).filter((name) => name.includes('.lease'))).toEqual([
      'audit.jsonl.lease',
    ]);
    // Calls that need no record go on without one.
    const continuing = await startSecond(ports, (text) =>
      elsewhere(text).replace('audit: {', 'audit: {onFailure: continue, '),
    );
    if (continuing.kind !== 'started') throw new Error('the second gateway did not start');
    await continuing.gateway.close();
  });

  // Ends the gateway that the tests before share.
  it('[O-38] beside a gateway that is ending waits for its audit, serves nobody, then goes on with it', async () => {
    const ports = await freePorts();
    canary.watchGateway(ports.data, ports.ops);
    const start = startSecond(ports);
    const get = (port: number, path: string) => fetch(`http://${HOST}:${port}${path}`);
    await expect
      .poll(
        () =>
          get(ports.ops, '/livez').then(
            (r) => r.status,
            () => 0,
          ),
        PATIENT,
      )
      .toBe(200);
    expect((await get(ports.ops, '/readyz')).status).toBe(503);
    const url = `http://${HOST}:${ports.data}/${UPSTREAM}`;
    const access = { url, token: await rig.gateway.issuer.mint(url) };
    const early = await callStateless(access, 'read_record', { id: 'one' });
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '5']);
    // The first one still answers.
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
    expect((await instances()).size).toBe(1);
    await rig.gateway.gateway.close();
    const started = await start;
    if (started.kind !== 'started') throw new Error('the second gateway did not start');
    try {
      await expect.poll(async () => (await get(ports.ops, '/readyz')).status, PATIENT).toBe(200);
      expect((await callStateless(access, 'read_record', { id: 'one' })).status).toBe(200);
    } finally {
      await started.gateway.close();
    }
    const text = await readFile(join(rig.gateway.folder, 'audit.jsonl'), 'latin1');
    const verdict = verifyChain(text.trimEnd().split('\n'));
    expect(verdict.faults).toEqual([]);
    expect((await instances()).size).toBe(2);
    expect((await readdir(rig.gateway.folder)).filter((name) => name.includes('lease'))).toEqual([]);
  });
});
