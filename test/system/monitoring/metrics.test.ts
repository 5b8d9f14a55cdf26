// The metrics of gateways to which much has happened, at Prometheus' own check and in a real Prometheus, which is asked
// what every panel of the dashboards asks. With DRAW_DASHBOARDS=FOLDER each panel is drawn there, and a page for each
// dashboard.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drawPage, drawPanel, type JsonPanel } from '../../../scripts/dashboards/draw.js';
import { isFlat, problemOf, type Range, readExpression, readPanel } from '../../../scripts/dashboards/run.js';
import { findFreePort } from '../../support/processes.js';
import { must, run } from '../programs.js';
import { type EventfulRun, runEventfully } from './eventful-run.js';
import { STEP_SECONDS } from './recording.js';
import { alertingRules } from './rules.js';

const DASHBOARDS = join(import.meta.dirname, '../../../config/grafana');
const DRAWN = process.env['DRAW_DASHBOARDS'];

/** The alerts of which the run has the cause, whether or not it lasts. */
const HAPPENED = [
  ...['SallyportNotReady', 'SallyportCallsFail', 'SallyportRefusalsByFailure', 'SallyportUpstreamErrors'],
  ...['SallyportUpstreamDown', 'SallyportUpstreamHangs', 'SallyportTokensUnverifiable', 'SallyportStoreUnreachable'],
  ...['SallyportDefinitionsDrifted', 'SallyportDriftSeen', 'SallyportConfigurationRejected'],
  ...['SallyportRestartPending', 'SallyportReplicasDiffer', 'SallyportControlsDegraded', 'SallyportBlocksInForce'],
  ...['SallyportApprovalMessagesLost', 'SallyportIntrospectionFails'],
];

const files = (await readdir(DASHBOARDS)).sort();

let folder: string;
let eventful: EventfulRun;
let prometheus: ChildProcess;
let url: string;
let range: Range;

/** Puts the recording into the files of a Prometheus, and starts it. */
async function startPrometheus(): Promise<void> {
  const endSeconds = Math.floor(Date.now() / 1000 / STEP_SECONDS) * STEP_SECONDS;
  const { text, startSeconds } = eventful.recording.write(endSeconds);
  range = { startSeconds, endSeconds, stepSeconds: STEP_SECONDS };
  await writeFile(join(folder, 'recorded.txt'), text);
  await writeFile(join(folder, 'prometheus.yaml'), '{}\n');
  const data = join(folder, 'data');
  await must('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', join(folder, 'recorded.txt'), data]);
  const port = await findFreePort();
  url = `http://127.0.0.1:${port}`;
  prometheus = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${data}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: 'ignore' },
  );
  prometheus.on('error', () => undefined);
  for (;;) {
    const ready = await fetch(`${url}/-/ready`).catch(() => undefined);
    if (ready?.ok === true) return;
    if (prometheus.exitCode !== null || prometheus.pid === undefined) throw new Error('prometheus does not run');
    await sleep(50);
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-monitoring-'));
  eventful = await runEventfully();
  await startPrometheus();
});

afterAll(async () => {
  if (prometheus?.exitCode === null) {
    prometheus.kill('SIGKILL');
    await new Promise((resolve) => prometheus.once('exit', resolve));
  }
  await eventful?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('the metrics', () => {
  it('[R-20] pass promtool, but for the process defaults of the library', async () => {
    const [gateway] = eventful.gateways.values();
    const own = ((await gateway?.metrics()) ?? '')
      .split('\n')
      .filter((line) => /^(# (HELP|TYPE) )?(sallyport_|mcp_)/.test(line))
      .join('\n');
    expect(own).toContain('sallyport_controls');
    const checked = await run('promtool', ['check', 'metrics'], { input: `${own}\n` });
    expect(checked.stderr).toBe('');
    expect(checked.code).toBe(0);
  });

  it.each(files)('[R-18] fill every panel of %s', async (file) => {
    const { title, panels } = JSON.parse(await readFile(join(DASHBOARDS, file), 'utf8')) as {
      title: string;
      panels: readonly JsonPanel[];
    };
    const filled = panels.filter(({ type }) => type !== 'row');
    const read = await Promise.all(filled.map((panel) => readPanel(url, panel, range)));
    if (DRAWN !== undefined) {
      await mkdir(DRAWN, { recursive: true });
      const drawn = new Map(read.map((data) => [data.panel, drawPanel(data, range)]));
      const rows = panels.filter(({ type }) => type === 'row');
      await writeFile(join(DRAWN, file.replace('.json', '.html')), drawPage(title, rows, drawn));
      for (const [panel, svg] of drawn) {
        const name = `${title} ${panel.title}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
        await writeFile(join(DRAWN, `${name}.svg`), svg);
      }
      console.log(read.filter(isFlat).map(({ panel }) => `flat: ${panel.title}`));
    }
    expect(read.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
    expect(filled.length).toBeGreaterThan(10);
  });

  it('[R-19] show what the alerting rules look for', async () => {
    const rules = await alertingRules();
    const seen = await Promise.all(
      rules.map(async ({ alert, expr }) => ((await readExpression(url, expr, range)).length > 0 ? [alert] : [])),
    );
    expect(seen.flat()).toEqual(expect.arrayContaining(HAPPENED));
    expect(HAPPENED.length).toBeGreaterThan(10);
  });
});
