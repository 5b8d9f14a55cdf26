// A reload while a report of drift is not complete: what the upstream has shown before is reported as it differed from the
// lock file that was in force then, and what it shows meanwhile as it differs from the next.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createGate, type Gate } from '../support/changing-rig.js';
import { type AttackRig, expectRefusedLines, startRig } from '../support/gateway.js';
import { statelessOnly } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { digestOfTool, lockPath, parseLock, withTool } from '../support/lock-files.js';
import { replace } from '../support/seams.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, type Reply, requestStateless } from '../support/wire-client.js';

const turns = { passed: Promise.resolve() };

/** The steps of a report after its first wait for this gate; everything else has its turns as always. */
replace('drift', {
  createDriftReport(real, { loopScheduler, ...ports }) {
    const waitForTurn = (upstream: string) => turns.passed.then(() => loopScheduler.waitForTurn(upstream));
    return real.createDriftReport({ ...ports, loopScheduler: { ...loopScheduler, waitForTurn } });
  },
});

const MAX_AGE_MS = 60_000;
/** More than are compared at once; the last of them are reported in a later step. */
const TOOLS: readonly JsonObject[] = Array.from({ length: 300 }, (_, index) => ({
  name: `tool_${String(index).padStart(3, '0')}`,
  inputSchema: { type: 'object' },
}));

function formOf(name: string, title?: string): JsonObject {
  return { name, inputSchema: { type: 'object' }, ...(title === undefined ? {} : { title }) };
}

function digestOf(name: string, title?: string): string {
  return digestOfTool(formOf(name, title));
}

/** What is offered if the tool of this name has a title. */
function titled(changed: string): () => readonly JsonObject[] {
  return () => TOOLS.map((tool) => (tool['name'] === changed ? formOf(changed, 'New') : tool));
}

let rig: AttackRig;
let gate: Gate;
beforeEach(async () => {
  rig = await startRig({
    upstream: ['pinning: {maxAge: 60s}'],
    prepare(upstream) {
      upstream.offer(() => TOOLS);
      // The listings of two eras would wait for each other's reports.
      upstream.obey(statelessOnly);
    },
  });
  rig.upstream.answerCalls(() => ({ content: [] }));
  // The report of the first listing is complete.
  await expect
    .poll(() => rig.gateway.metrics(), PATIENT)
    .toContain('sallyport_tools{upstream="target",state="approved"} 300');
  gate = createGate();
});
afterEach(async () => {
  gate.open();
  await rig.close();
});

const call = (name: string): Promise<Reply> => callStateless(rig.access, name);

/** A call that waits for a listing, because the one before it is too old. */
function callAfterListing(name: string): Promise<Reply> {
  rig.passTime(MAX_AGE_MS + 1);
  return call(name);
}

async function reload(): Promise<void> {
  const diagnostics = await rig.gateway.reload();
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
}

const lockFile = (): string => lockPath(rig.gateway.folder);

/** The lock file with this form of a tool in place of the one that it approves. */
function approve(text: string, definition: JsonObject): string {
  const name = String(definition['name']);
  const sha256 = digestOf(name, String(definition['title']));
  return withTool(parseLock(text), name, (pin) => ({ ...pin, definition, sha256 }));
}

async function drifts(): Promise<readonly string[]> {
  const lines = (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift');
  return lines.map(({ target }) => `${target.name} ${target.pin} -> ${target.definition}`);
}

it('[G-06] a drift that is approved before it is reported is reported, and so is what replaces it', async () => {
  const approving = approve(await readFile(lockFile(), 'utf8'), formOf('tool_299', 'New'));
  turns.passed = gate.passed;
  rig.upstream.offer(titled('tool_299'));
  expect((await callAfterListing('tool_000')).message).toHaveProperty('result');
  await expectRefusedLines(rig, await call('tool_299'), 'tool-changed');
  rig.upstream.offer(titled('tool_298'));
  rig.upstream.forget();
  const waiting = callAfterListing('tool_000');
  await expect.poll(() => rig.upstream.seen().length, PATIENT).toBeGreaterThan(0);
  await writeFile(lockFile(), approving);
  await reload();
  expect(await drifts()).toEqual([]);
  gate.open();
  expect((await waiting).message).toHaveProperty('result');
  const [old298, old299] = [digestOf('tool_298'), digestOf('tool_299')];
  const [new298, new299] = [digestOf('tool_298', 'New'), digestOf('tool_299', 'New')];
  await expect
    .poll(drifts, PATIENT)
    .toEqual([`tool_299 ${old299} -> ${new299}`, `tool_298 ${old298} -> ${new298}`, `tool_299 ${new299} -> ${old299}`]);
  for (const name of ['tool_298', 'tool_299']) await expectRefusedLines(rig, await call(name), 'tool-changed');
});

it('[G-06] what a page has shown is reported once though a reload starts its upstream anew', async () => {
  turns.passed = gate.passed;
  rig.upstream.offer(titled('tool_299'));
  expect((await callAfterListing('tool_000')).message).toHaveProperty('result');
  rig.upstream.offer(titled('tool_050'));
  await requestStateless(rig.access, 'tools/list');
  await expectRefusedLines(rig, await call('tool_050'), 'tool-changed');
  rig.upstream.offer(() => TOOLS);
  const file = join(rig.gateway.folder, 'gateway.yaml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('maxAge: 60s', 'maxAge: 50s'));
  await reload();
  for (const name of ['tool_050', 'tool_299']) expect((await call(name)).message).toHaveProperty('result');
  expect(await drifts()).toEqual([]);
  gate.open();
  const reported = ['tool_299', 'tool_050'].map((name) => `${name} ${digestOf(name)} -> ${digestOf(name, 'New')}`);
  await expect.poll(drifts, PATIENT).toEqual(reported);
});
