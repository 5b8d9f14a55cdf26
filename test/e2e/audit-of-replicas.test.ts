// Two replicas as a cluster runs them: their standard output in one file, wrapped by the container runtime, over a restart
// and over a kill. What they wrote verifies untouched, and the run that was killed is named.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoUpstream, startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { type DemoFiles, writeDemoFiles } from '../../src/dev/files.js';
import { asCri, asDocker, interleave } from '../support/audit-streams.js';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';
import { openRawSession } from '../support/raw-mcp.js';
import { PATIENT } from '../support/timing.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';

const ENGINEER = { sub: 'engineer', groups: ['engineering'], scope: 'tickets:read' };
/** Processes start slowly on a busy machine. */
const LONG = 120_000;
const CALL = { name: 'get_ticket', arguments: { project: 'web', id: 'T-101' } };

type Replica = { readonly files: DemoFiles; readonly port: number };

describe('two replicas that write to standard output', () => {
  let folder: string;
  let desk: DemoUpstream;
  let issuer: TestIssuer;
  const running: Served[] = [];
  const replicas: Replica[] = [];

  async function makeReplica(name: string): Promise<Replica> {
    const own = await mkdtemp(join(folder, `${name}-`));
    const ports = { data: await findFreePort(), ops: await findFreePort(), admin: await findFreePort() };
    const files = await writeDemoFiles(own, {
      publicUrl: `http://127.0.0.1:${ports.data}`,
      ...{ issuer: issuer.issuer, upstreamUrl: desk.url, ports },
    });
    const text = await readFile(files.configFile, 'utf8');
    const chosen = text.replace('{type: file, path: ./audit.jsonl}', '{type: stdout, durability: handed-over}');
    expect(chosen).not.toBe(text);
    await writeFile(files.configFile, `${chosen}\nshutdown: {delay: 0s}\n`);
    const pinned = ['pin', 'fetch', '-c', files.configFile, '--approve', '--by', 'reviewer'];
    expect((await runSallyport(pinned, { cwd: own })).code).toBe(0);
    return { files, port: ports.data };
  }

  beforeAll(async () => {
    await buildProgram();
    folder = await mkdtemp(join(tmpdir(), 'sallyport-replicas-'));
    desk = await startDemoUpstream({ seed: 'replicas' });
    issuer = await startTestIssuer({ alg: 'ES256' });
    replicas.push(...(await Promise.all([makeReplica('a'), makeReplica('b')])));
  }, LONG);
  afterAll(async () => {
    for (const one of running) one.signal('SIGKILL');
    await Promise.all(running.map(({ ended }) => ended.catch(() => undefined)));
    await desk?.close();
    await issuer?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  async function serve({ files }: Replica): Promise<Served> {
    const served = startSallyport(['serve', '-c', files.configFile], folder);
    running.push(served);
    await expect.poll(served.stderr, { timeout: LONG / 2 }).toContain('ops listening');
    return served;
  }

  async function call({ files }: Replica, served: Served): Promise<void> {
    const token = await issuer.mint(files.resource, { claims: ENGINEER });
    const session = await openRawSession(files.resource, { token });
    const { messages } = await session.ask(1, 'tools/call', CALL);
    expect(messages.at(-1)).toMatchObject({ result: { structuredContent: {} } });
    await expect.poll(() => served.stdout().includes('"type":"mcp.outcome"'), PATIENT).toBe(true);
  }

  async function endBy(served: Served, signal: 'SIGTERM' | 'SIGKILL'): Promise<readonly string[]> {
    served.signal(signal);
    await served.ended.catch(() => undefined);
    return served.stdout().trimEnd().split('\n');
  }

  async function verify(lines: readonly string[]) {
    const file = join(folder, 'stream.log');
    await writeFile(file, `${lines.join('\n')}\n`, 'latin1');
    return runSallyport(['audit', 'verify', file]);
  }

  it(
    '[O-91, O-92, O-93] verifies untouched over a restart, and names a run that was killed',
    async () => {
      const [a, b] = replicas;
      if (a === undefined || b === undefined) throw new Error('there are two replicas');
      const [first, other] = await Promise.all([serve(a), serve(b)]);
      await Promise.all([call(a, first), call(b, other)]);
      const a1 = await endBy(first, 'SIGTERM');
      const again = await serve(a);
      await call(a, again);
      const [a2, b1] = await Promise.all([endBy(again, 'SIGTERM'), endBy(other, 'SIGTERM')]);
      for (const line of [...a1, ...a2, ...b1]) {
        const { type, gateway } = JSON.parse(line) as { type: string; gateway: Record<string, string> };
        if (type === 'lifecycle') expect(gateway).toMatchObject({ host: hostname(), run: expect.any(String) });
      }
      const names = [a, b].map(({ port }) => `${hostname()}:${port}`);
      const merged = interleave([...a1, ...a2], b1);
      for (const stream of [merged, asCri(merged, 'stdout', 400), asDocker(merged, 'stdout', 400)]) {
        const { code, stdout } = await verify(stream);
        expect(stdout).toMatch(/^unsigned: 0 lines; .*\ncomplete: /s);
        expect(stdout).toContain(`instance ${names[0]}: 2 runs`);
        expect(stdout).toContain(`instance ${names[1]}: 1 run,`);
        expect(code).toBe(0);
      }

      const third = await serve(a);
      await call(a, third);
      const a3 = await endBy(third, 'SIGKILL');
      const last = await serve(a);
      const a4 = await endBy(last, 'SIGTERM');
      const found = await verify([...merged, ...a3, ...a4]);
      expect(found.stdout).toMatch(
        new RegExp(`not checked: the run \\S+ of ${names[0]}, .* was killed, .*; \\d+ lines at its end are unsigned`),
      );
      expect(found.code).toBe(2);
    },
    LONG,
  );
});
