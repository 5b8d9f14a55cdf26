// The built program, killed under load: whatever reaches the upstream has its decision in the audit file by
// then, and whatever a client got an answer to has it there afterwards, in both durabilities. What the program
// left is gone on with and verifies.

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoUpstream, startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { type DemoFiles, writeDemoFiles } from '../../src/dev/files.js';
import { readAudit, readAuditSync } from '../support/audit-chain.js';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';
import { openRawSession } from '../support/raw-mcp.js';
import { PATIENT } from '../support/timing.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';

const ENGINEER = { sub: 'engineer', groups: ['engineering'], scope: 'tickets:read' };
const CALL = { name: 'get_ticket', arguments: { project: 'web', id: 'T-101' } };
const CLIENTS = 16;
/** Answers before the kill. */
const ANSWERS = 300;
const ID = /"id":"(call-\d+-\d+)"/;

/** Passes on to an upstream, and shows the body of each request first. */
async function startWatch(upstreamUrl: string, onRequest: (body: string) => void): Promise<Server> {
  const { hostname, port } = new URL(upstreamUrl);
  const server = createServer(async (incoming, outgoing) => {
    let body = '';
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
    onRequest(body);
    const { method, url, headers } = incoming;
    const sent = request({ host: hostname, port, path: url, method, headers });
    sent.once('error', () => outgoing.destroy()).end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    outgoing.writeHead(response.statusCode ?? 0, response.headers);
    response.pipe(outgoing);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

beforeAll(() => buildProgram());

describe.each(['written', 'synced'])('a gateway with audit.durability: %s', (durability) => {
  let folder: string;
  let desk: DemoUpstream;
  let issuer: TestIssuer;
  let files: DemoFiles;
  let running: Served | undefined;
  let watch: Server;
  const reached: string[] = [];
  /** Calls that reached the upstream before their decision was in the file. */
  const early: string[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-kill-'));
    desk = await startDemoUpstream({ seed: 'kill' });
    issuer = await startTestIssuer({ alg: 'ES256' });
    watch = await startWatch(desk.url, (body) => {
      const id = ID.exec(body)?.[1];
      if (id === undefined) return;
      reached.push(id);
      if (!readAuditSync(files.auditFile).includes(`"request_id":"${id}"`)) early.push(id);
    });
    const ports = {
      data: await findFreePort(),
      ops: await findFreePort(),
      admin: await findFreePort(),
    };
    files = await writeDemoFiles(folder, {
      publicUrl: `http://127.0.0.1:${ports.data}`,
      issuer: issuer.issuer,
      upstreamUrl: desk.url.replace(new URL(desk.url).host, `127.0.0.1:${(watch.address() as AddressInfo).port}`),
      ports,
    });
    const text = await readFile(files.configFile, 'utf8');
    const chosen = text.replace('onFailure: block', `durability: ${durability}`);
    expect(chosen).not.toBe(text);
    await writeFile(files.configFile, `${chosen}\nshutdown: {delay: 0s}\n`);
    const pinned = ['pin', 'fetch', '-c', files.configFile, '--approve', '--by', 'reviewer'];
    expect((await runSallyport(pinned, { cwd: folder })).code).toBe(0);
  });
  afterAll(async () => {
    running?.signal('SIGKILL');
    watch?.close().closeAllConnections();
    await desk?.close();
    await issuer?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  async function serve(): Promise<Served> {
    running = startSallyport(['serve', '-c', files.configFile], folder);
    await expect.poll(running.stderr, PATIENT).toContain('ops listening');
    return running;
  }

  it('[O-35] loses no decision to kill -9 under load', async () => {
    const served = await serve();
    const token = await issuer.mint(files.resource, { claims: ENGINEER });
    const session = await openRawSession(files.resource, { token });
    const answered: string[] = [];
    const callOn = async (client: number): Promise<void> => {
      for (let index = 0; ; index += 1) {
        const id = `call-${client}-${index}`;
        const answer = await session.ask(id, 'tools/call', CALL).catch(() => undefined);
        if (answer === undefined) return;
        expect(answer.messages.at(-1)).toMatchObject({ id, result: { structuredContent: {} } });
        answered.push(id);
        if (answered.length === ANSWERS) served.signal('SIGKILL');
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => callOn(client)));
    await expect(served.ended).rejects.toThrow('SIGKILL');
    expect(answered.length).toBeGreaterThanOrEqual(ANSWERS);

    const lines = (await readAudit(files.auditFile)).split('\n').slice(0, -1);
    const decided = lines
      .map((line) => JSON.parse(line))
      .filter(({ type, target }) => type === 'mcp.decision' && target.method === 'tools/call');
    const ids = new Set(decided.map(({ target }) => target.request_id));
    expect(answered.filter((id) => !ids.has(id))).toEqual([]);
    expect(reached.length).toBeGreaterThanOrEqual(answered.length);
    expect(early).toEqual([]);

    const again = await serve();
    again.signal('SIGTERM');
    expect(await again.ended).toBe(143);
    const verified = await runSallyport(['audit', 'verify', files.auditFile]);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('complete: ')]);
  });
});
