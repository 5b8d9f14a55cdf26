// A start is whole or leaves nothing open, and two gateways never share an audit file: taken ports, and a second gateway
// with the same files, which serves too and is reported.

import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { listFilesOf, verifyFolder } from '../support/audit-chain.js';
import { canary } from '../support/canary.js';
import { ADMINS } from '../support/deployments.js';
import { type GatewayStart, tryStart, UPSTREAM } from '../support/gateway.js';
import { findFreePort } from '../support/processes.js';
import { PATIENT } from '../support/timing.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

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

const auditFiles = (): Promise<readonly string[]> => listFilesOf(join(rig.gateway.folder, 'audit.jsonl'));

describe('audit files', () => {
  it('[O-95] of a run: compresses what is no longer written, and says how much is free', () =>
    withGateway(
      {
        audit:
          'audit: {sinks: [{type: file, path: ./audit.jsonl}], checkpoint: {every: 1s}, rotate: {compress: gzip}, minFree: 100}',
      },
      async (own) => {
        const [first = ''] = await listFilesOf(join(own.gateway.folder, 'audit.jsonl'));
        await own.gateway.gateway.close();
        // A minute later, nobody writes it any more.
        const at = new Date(Date.now() - 60_000);
        await utimes(first, at, at);
        const started = await tryStart({ file: join(own.gateway.folder, 'gateway.yaml') });
        expect(started.kind).toBe('started');
        const files = () => listFilesOf(join(own.gateway.folder, 'audit.jsonl'));
        await expect.poll(async () => (await files())[0], PATIENT).toBe(`${first}.gz`);
        const metrics = async (): Promise<string> => (await fetch(`${own.gateway.opsUrl}/metrics`)).text();
        const isLow = 'sallyport_controls{control="audit-space",state="degraded"} 1';
        await expect.poll(metrics, PATIENT).toContain(isLow);
        expect(await metrics()).toMatch(/sallyport_audit_free_bytes\{sink="file"\} [1-9]/);
        if (started.kind === 'started') await started.gateway.close();
        const verdict = await verifyFolder(own.gateway.folder);
        expect([verdict.faults, verdict.unchecked]).toEqual([[], []]);
      },
    ));

  it('[O-39] of a run: begins the next file and removes what is old, once a signed checkpoint says so', () =>
    withGateway(
      { audit: 'audit: {sinks: [{type: file, path: ./audit.jsonl}], rotate: {size: 1MiB, age: 1s}, retain: 90d}' },
      async (own) => {
        const path = join(own.gateway.folder, 'audit.jsonl');
        // The next line comes after the age.
        await sleep(1_100);
        await callStateless(own.access, 'read_record', { id: 'one' });
        await own.gateway.gateway.close();
        const files = await listFilesOf(path);
        expect(files.length).toBeGreaterThan(1);
        const file = join(own.gateway.folder, 'gateway.yaml');
        const now = (): number => Date.now() + 95 * 86_400_000;
        const started = await tryStart({ file, now });
        if (started.kind !== 'started') throw new Error('the gateway did not start again');
        const left = async () => (await listFilesOf(path)).filter((one) => files.includes(one));
        await expect.poll(left, PATIENT).toEqual([]);
        await started.gateway.close();
        const verdict = await verifyFolder(own.gateway.folder);
        expect([verdict.faults, verdict.unchecked]).toEqual([[], []]);
        expect(verdict.notes.join()).toContain('which was removed; a signed checkpoint says so');
      },
    ));

  it('[O-39] of a run: goes on in the next file once one has the size that is configured', () =>
    withGateway({ audit: 'audit: {sinks: [{type: file, path: ./audit.jsonl}], rotate: {size: 1MiB}}' }, async (own) => {
      const path = join(own.gateway.folder, 'audit.jsonl');
      // Each call is two lines of some thousand bytes together.
      for (let round = 0; round < 100 && (await listFilesOf(path)).length < 2; round += 1)
        await Promise.all(
          Array.from({ length: 20 }, (_, at) => callStateless(own.access, 'read_record', { id: `${round}-${at}` })),
        );
      const [first = '', second = ''] = await listFilesOf(path);
      expect((await stat(first)).size).toBeGreaterThanOrEqual(1024 * 1024);
      await expect.poll(() => readFile(second, 'utf8'), PATIENT).toContain('\n');
      const [line = '{}'] = (await readFile(second, 'utf8')).split('\n', 1);
      expect(JSON.parse(line).detail).toMatchObject({ event: 'continued', why: 'size', after_file: basename(first) });
      await own.gateway.gateway.close();
      const verdict = await verifyFolder(own.gateway.folder);
      expect([verdict.faults, verdict.unchecked]).toEqual([[], []]);
    }));
});

describe('a start', () => {
  it.each([['data'], ['ops'], ['admin']] as const)(
    '[E-39] whose %s port is taken names it, leaves nothing open, and writes nothing',
    async (name) => {
      const ports = await freePorts();
      const before = await instances();
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
      expect(await instances()).toEqual(before);
      expect(await auditFiles()).toHaveLength(1);
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
    ['in a folder that is not there', 'absent/audit.jsonl', /ENOENT/],
    ['in a folder that is a file', 'second.yaml/audit.jsonl', /ENOTDIR/],
  ])('[E-39] whose audit cannot be written %s leaves nothing open', async (_, path, why) => {
    const ports = await freePorts();
    const elsewhere = (text: string): string => text.replace('./audit.jsonl', `./${path}`);
    const started = await startSecond(ports, elsewhere);
    expect(started).toMatchObject({ kind: 'failed', message: expect.stringMatching(why) });
    for (const port of Object.values(ports)) expect(await isFree(port)).toBe(true);
    expect(await auditFiles()).toHaveLength(1);
    // Calls that need no record go on without one.
    const continuing = await startSecond(ports, (text) =>
      elsewhere(text).replace('audit: {', 'audit: {onFailure: continue, '),
    );
    if (continuing.kind !== 'started') throw new Error('the second gateway did not start');
    await continuing.gateway.close();
  });

  it('[O-38] beside a gateway that serves writes a file of its own, and both say so while both run', async () => {
    const ports = await freePorts();
    canary.watchGateway(ports.data, ports.ops);
    const control = async (url: string): Promise<string | undefined> =>
      /control="audit",state="(\w+)"\} 1/.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
    expect(await control(rig.gateway.opsUrl)).toBe('armed');
    const started = await startSecond(ports);
    if (started.kind !== 'started') throw new Error('the second gateway did not start');
    const url = `http://${HOST}:${ports.data}/${UPSTREAM}`;
    const access = { url, token: await rig.gateway.issuer.mint(url) };
    try {
      expect((await callStateless(access, 'read_record', { id: 'one' })).status).toBe(200);
      expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
      for (const opsUrl of [rig.gateway.opsUrl, `http://${HOST}:${ports.ops}`])
        await expect.poll(() => control(opsUrl), PATIENT).toBe('degraded');
      expect(rig.gateway.log()).toContain('two writers: another gateway writes audit-');
    } finally {
      await started.gateway.close();
    }
    await expect.poll(() => control(rig.gateway.opsUrl), PATIENT).toBe('armed');
    expect(await auditFiles()).toHaveLength(2);
    expect((await instances()).size).toBe(2);
    const verdict = await verifyFolder(rig.gateway.folder);
    expect([verdict.faults, verdict.unchecked]).toEqual([[], []]);
    expect(verdict.twoWriters).toEqual([expect.stringContaining('was written on after')]);
  });
});
