// What must not change unless it is meant to: the wire traffic and the audit lines of the tour, and every
// name that users rely on. The records stand in test/golden/; `UPDATE_GOLDEN=1 npx vitest run
// test/golden.test.ts` writes them anew, in the commit that means the change. The third record, the outcome
// of each check of the conformance suite, is conformance/expected.json (`UPDATE_GOLDEN=1 npm run conformance`).

import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../src/dev/demo-upstream.js';
import { blockPin } from '../src/pins/approval.js';
import { writeLock } from '../src/pins/lock.js';
import { readLock } from '../src/pins/lock-reader.js';
import { readAudit } from './support/audit-chain.js';
import { ALLOW_ALL, type AuditLine, type RunningGateway, startTestGateway } from './support/gateway.js';
import { readPaths, readPublicSurface, renderSurface } from './support/public-surface.js';
import { isChained, playTour, renderTour } from './support/tour-record.js';
import { requestStateless } from './support/wire-client.js';

const FOLDER = join(import.meta.dirname, 'golden');

/** Compares a text with its record, line by line, or records it. */
async function compare(name: string, text: string): Promise<void> {
  const file = join(FOLDER, name);
  if (process.env['UPDATE_GOLDEN'] === '1') {
    await mkdir(FOLDER, { recursive: true });
    await writeFile(file, text);
  }
  expect(text.split('\n')).toEqual((await readFile(file, 'utf8')).split('\n'));
}

async function namesOfControls(gateway: RunningGateway, adminToken: string): Promise<readonly string[]> {
  const port = gateway.gateway.listening.find(({ listener }) => listener === 'admin')?.port;
  const headers = { authorization: `Bearer ${adminToken}` };
  const response = await fetch(`http://127.0.0.1:${port}/api/controls`, { headers });
  const { controls } = (await response.json()) as { readonly controls: readonly { readonly control: string }[] };
  return controls.map(({ control }) => control);
}

function typesOf(audit: readonly AuditLine[]): readonly string[] {
  return audit.map(({ type }) => String(type));
}

/** Blocks a tool in a lock file, and approves it again. */
async function blockAndApprove(file: string, reload: () => Promise<unknown>): Promise<void> {
  const approved = await readFile(file, 'utf8');
  const { lock } = readLock(file, approved);
  const name = { kind: 'tool', name: 'get_ticket' } as const;
  const block = lock && blockPin(lock, name, { by: 'reviewer', at: '2026-11-22T10:00:00.000Z' });
  if (block?.ok !== true) throw new Error('there is nothing to block');
  for (const text of [writeLock(block.lock), approved]) {
    await writeFile(file, text);
    expect(await reload()).toEqual([]);
  }
}

describe('the record of the tour', () => {
  it('[D-14] is what the tour sends, gets and leaves in the audit log', async () => {
    const run = await playTour();
    expect(run.exitCode).toBe(0);
    expect(isChained(run)).toBe(true);
    await compare('tour.txt', renderTour(run));
  });
});

describe('the record of public names', () => {
  it('[D-14] is what the tables and a running gateway say', async () => {
    const adminToken = randomUUID();
    const desk = await startDemoUpstream();
    const gateway = await startTestGateway({
      upstreams: [{ name: 'desk', url: desk.url }],
      more: `endpoints: {all: {issuers: [test], upstreams: {desk: {}}}}
admin: {breakGlass: {token: {env: ADMIN_TOKEN}}}`,
      env: { ADMIN_TOKEN: adminToken },
    });
    const paths = await readPaths(gateway, adminToken);
    const access = { url: gateway.url('all'), token: await gateway.token('all') };
    expect((await requestStateless(access, 'tools/list')).status).toBe(200);
    await gateway.writePolicy('open', `${ALLOW_ALL}# read again\n`);
    expect(await gateway.reload()).toEqual([]);
    await blockAndApprove(join(gateway.folder, 'policies/pins/desk.lock.yaml'), gateway.reload);
    const metrics = await gateway.metrics();
    for (const type of ['admin.action', 'config.reload', 'mcp.outcome', 'pin.approval'])
      await expect.poll(async () => typesOf(await gateway.audit())).toContain(type);
    const written = await readAudit(join(gateway.folder, 'audit.jsonl'));
    const audit = written
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as AuditLine);
    const names = await namesOfControls(gateway, adminToken);
    await gateway.close();
    await desk.close();
    const surface = await readPublicSurface(names, audit, paths);
    const served = [...metrics.matchAll(/^# TYPE ((?:mcp|sallyport)_\w+) (\w+)$/gm)];
    expect(Object.fromEntries(served.map(([, name, type]) => [name, type]))).toEqual(
      Object.fromEntries(
        Object.entries(surface['metrics'] ?? {}).map(([name, row]) => [name, (row as { readonly type: string }).type]),
      ),
    );
    await compare('public-surface.json', renderSurface(surface));
  });
});
