// Measures both requirement sets of the official suite on three ways to one server, judges what was lost
// through the gateway, and compares the outcome of every check with expected.json. Exit 0: nothing that is
// not listed or recorded; 1: a loss, a list that is not true any more, or an outcome that is not the
// recorded one; 2: it could not be measured.
// Arguments: the Node that runs the gateway, then optionally revisions. `UPDATE_GOLDEN=1` records anew.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  findDifferences,
  type RecordedOutcomes,
  type RecordedRevision,
  recordRevision,
  renderOutcomes,
} from './expected.ts';
import { type Fixture, startFixture } from './fixture/server.ts';
import { type GatewayUnderTest, startGateway } from './gateway.ts';
import { startPassThrough } from './pass-through.ts';
import { compareRuns, countPassed, type NotCarried, passedOf, type Run } from './scores.ts';
import { readScored, runSuite } from './suite.ts';
import { type Results, renderTable, suggestList } from './table.ts';

const REVISIONS = ['2025-11-25', '2026-07-28'];
const LIST = join(import.meta.dirname, 'not-carried.json');
const RECORD = join(import.meta.dirname, 'expected.json');
const PAGE = join(import.meta.dirname, '../docs/reference/conformance.md');
/** What the fixture reaches by itself: with less it is broken, and measures nothing. */
const EXPECTED: { readonly [revision: string]: { scenarios: number; checks: number } } = {
  '2025-11-25': { scenarios: 30, checks: 84 },
  '2026-07-28': { scenarios: 37, checks: 196 },
};

/** What was measured at one revision, and the outcome of every check as it would be recorded. */
type Measured = { readonly results: Results; readonly outcomes: RecordedRevision };

type Lists = { readonly [revision: string]: NotCarried };

async function measure(node: string, fixture: Fixture, revision: string): Promise<Measured> {
  const passThrough = await startPassThrough(fixture.url);
  try {
    return await measureBeside(node, fixture, passThrough.url, revision);
  } finally {
    await passThrough.close();
  }
}

async function measureBeside(
  node: string,
  fixture: Fixture,
  passThroughUrl: string,
  revision: string,
): Promise<Measured> {
  const gateway = await startGateway(node, fixture.url);
  try {
    const scored = await readScored(revision);
    const direct = await runSuite(fixture.url, revision);
    const proxied = await runSuite(passThroughUrl, revision);
    const through = await runSuite(gateway.url, revision);
    await proveArmed(gateway, through.size);
    return {
      results: {
        revision,
        scored,
        direct: passedOf(direct),
        passThrough: passedOf(proxied),
        gateway: passedOf(through),
      },
      outcomes: recordRevision(direct, through),
    };
  } finally {
    await gateway.close();
  }
}

/**
 * What has no part here: the console, approvals, which no rule of the run asks for, signatures of lock files that are made
 * for the run, TLS on loopback, a store that replicas share, and what tokens and credentials have to do with, which the
 * suite does not send and the fixture does not ask for.
 */
const NO_PART =
  /^(?:admin|approvals|pin-signatures|store|tracing|tls|audience|binding|upstream-credentials|upstream-identity)$/;

/** What was measured counts only if every control stood that has a part here. */
async function proveArmed(gateway: GatewayUnderTest, scenarios: number): Promise<void> {
  const unarmed = (await gateway.listUnarmed()).filter((control) => !NO_PART.test(control));
  if (unarmed.length > 0) throw new Error(`not armed: ${unarmed.join(', ')}`);
  if ((await gateway.countAudited()) < scenarios) throw new Error('the gateway recorded less than it was asked');
}

function total(run: Run): number {
  return [...run.values()].reduce((sum, passed) => sum + countPassed(passed), 0);
}

/** Prints what was found; true when nothing is wrong. */
function judge(results: Results, list: NotCarried): boolean {
  const { revision, direct, passThrough, gateway, scored } = results;
  const expected = EXPECTED[revision] ?? { scenarios: 0, checks: 0 };
  const seen = [...direct.keys()].filter((name) => scored.has(name)).length;
  const proxied = compareRuns(direct, passThrough, {});
  const { losses, stale } = compareRuns(direct, gateway, list);
  console.log(
    `${revision}: ${total(direct)} checks passed directly, ${total(passThrough)} through a pass-through, ${total(gateway)} through Sallyport.`,
  );
  const faults = [
    ...(seen >= expected.scenarios ? [] : [`only ${seen} scored scenarios were run`]),
    ...(total(direct) >= expected.checks ? [] : ['the fixture passes less than it did']),
    ...proxied.losses.map((loss) => `lost through the pass-through: ${loss}`),
    ...losses.map((loss) => `lost through Sallyport: ${loss}`),
    ...stale.map((entry) => `listed as not carried, and carried: ${entry}`),
  ];
  for (const fault of faults) console.error(`  ${fault}`);
  if (losses.length > 0) console.error(`  all that is lost: ${JSON.stringify(suggestList(direct, gateway))}`);
  return faults.length === 0;
}

async function checkPage(page: string): Promise<boolean> {
  if (process.env['UPDATE_REFERENCE'] === '1') {
    await writeFile(PAGE, page);
    return true;
  }
  if ((await readFile(PAGE, 'utf8').catch(() => '')) === page) return true;
  console.error('docs/reference/conformance.md does not show these results.');
  return false;
}

/** Compares what was measured with the record, or records it; revisions that were not asked for stay. */
async function checkOutcomes(all: readonly Measured[], isWhole: boolean): Promise<boolean> {
  const recorded: RecordedOutcomes = JSON.parse(await readFile(RECORD, 'utf8').catch(() => '{}'));
  const measured: RecordedOutcomes = Object.fromEntries(
    all.map(({ results, outcomes }) => [results.revision, outcomes]),
  );
  if (process.env['UPDATE_GOLDEN'] === '1') {
    await writeFile(RECORD, renderOutcomes({ ...(isWhole ? {} : recorded), ...measured }));
    return true;
  }
  const revisions = Object.keys(isWhole ? { ...recorded, ...measured } : measured);
  const differences = revisions.flatMap((revision) =>
    findDifferences(recorded[revision] ?? {}, measured[revision] ?? {}).map((text) => `${revision}: ${text}`),
  );
  for (const difference of differences) console.error(`  not as recorded: ${difference}`);
  if (differences.length > 0)
    console.error('  If this is meant: UPDATE_GOLDEN=1 npm run conformance, in the same commit.');
  return differences.length === 0;
}

async function run(node: string, asked: readonly string[]): Promise<boolean> {
  const lists: Lists = JSON.parse(await readFile(LIST, 'utf8'));
  const revisions = asked.length > 0 ? asked : REVISIONS;
  const fixture = await startFixture();
  try {
    const measured: Measured[] = [];
    for (const revision of revisions) measured.push(await measure(node, fixture, revision));
    const all = measured.map(({ results }) => results);
    const judged = all.map((results) => judge(results, lists[results.revision] ?? {}));
    const isShown = asked.length > 0 || (await checkPage(renderTable(all, lists)));
    const isAsRecorded = await checkOutcomes(measured, asked.length === 0);
    return isShown && isAsRecorded && judged.every((isGood) => isGood);
  } finally {
    await fixture.close();
  }
}

const [node = process.execPath, ...asked] = process.argv.slice(2);
run(node, asked).then(
  (isGood) => {
    process.exitCode = isGood ? 0 : 1;
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 2;
  },
);
