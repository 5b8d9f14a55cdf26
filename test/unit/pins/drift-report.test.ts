// What the report of a drift tells open streams, and how a drift is recorded that takes long to classify.

import { expect, it } from 'vitest';
import type { Version } from '../../../src/gateway/config-version.js';
import { createFindingReport } from '../../../src/inspection/definitions/finding-report.js';
import type { Change } from '../../../src/pins/comparison.js';
import { createDriftClasses } from '../../../src/pins/drift-classes.js';
import { createDriftReport } from '../../../src/pins/drift-report.js';
import { NO_FIRST_USE } from '../../../src/pins/first-use.js';
import type { Observed } from '../../../src/pins/last-seen.js';
import { NO_CATALOG } from '../../../src/policy/decide.js';
import { createEvents } from '../../../src/policy/events.js';
import type { SecurityEvent } from '../../../src/policy/security-events.js';
import type { UpstreamRuntime } from '../../../src/upstream/runtimes.js';
import type { DefinitionTasks } from '../../../src/work/inspection.js';
import { lockOf, observedOf, pinOf, toolOf } from './samples.js';

const NO_FINDINGS = { news: () => [], blocked: () => [] };

type DriftPorts = Parameters<typeof createDriftReport<UpstreamRuntime, Version>>[0];

it('[G-06] announces each list that may have changed once, those of resources and templates too', () => {
  const announced: string[] = [];
  const ports = {
    announce: (_upstream: string, method: string) => announced.push(method),
    emit: () => undefined,
    catalogOf: () => ({ names: () => [] }),
    mask: (text: string) => text,
    findings: NO_FINDINGS,
    classes: createDriftClasses(async () => undefined),
  } as unknown as DriftPorts;
  const settings = { name: 'target', pinning: { mode: 'off' } };
  const runtime = {
    settings,
    observed: () => undefined,
    lock: () => undefined,
    firstUse: NO_FIRST_USE,
    scan: { found: () => [] },
  } as unknown as UpstreamRuntime;
  const version = {
    locks: new Map(),
    settings: { upstreams: new Map() },
  } as unknown as Version;
  void createDriftReport<UpstreamRuntime, Version>(ports).report(runtime, version);
  expect(announced.sort()).toEqual([
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/tools/list_changed',
  ]);
});

it('[G-06] records a drift that takes long to classify once another thread has done so', async () => {
  const events: unknown[] = [];
  const asked: string[] = [];
  let answer: (changes: readonly (readonly Change[])[] | undefined) => void = () => undefined;
  const definitions = (async (task: string, text: string) => {
    asked.push(`${task} ${JSON.parse(text).length}`);
    return new Promise((resolve) => {
      answer = resolve;
    });
  }) as unknown as DefinitionTasks;
  const ports = {
    record: (event: { type: string; change: string }) => events.push(event.change),
    announce: () => undefined,
    emit: () => undefined,
    catalogOf: () => NO_CATALOG,
    mask: (text: string) => text,
    findings: NO_FINDINGS,
    classes: createDriftClasses(definitions),
  } as unknown as DriftPorts;
  const long = toolOf('get_issue', { description: 'a b. '.repeat(200_000) });
  const short = toolOf('list_issues', { title: 'All issues' });
  const runtime = {
    settings: { name: 'target', pinning: { mode: 'strict', scan: 'block' } },
    observed: () => observedOf([long, short]),
    lock: () => lockOf([pinOf(toolOf('get_issue')), pinOf(toolOf('list_issues'))]),
    firstUse: NO_FIRST_USE,
    scan: { found: () => [] },
  } as unknown as UpstreamRuntime;
  const version = { settings: { upstreams: new Map() } } as unknown as Version;
  const report = createDriftReport(ports);
  void report.report(runtime, version);
  // Known to be different from the first moment on.
  expect(report.describe(runtime.settings)[0]).toContain('tool "get_issue", tool "list_issues"');
  expect(events).toEqual(['description']);
  await expect.poll(() => asked).toEqual(['classes 1']);
  answer([['new-cue', 'description']]);
  await expect.poll(() => events).toEqual(['description', 'new-cue']);
  void report.report(runtime, version);
  expect(asked).toHaveLength(1);
});

it('[G-06] reports at once, without classes, what comes while many classifications are under way', async () => {
  const jobs: string[] = [];
  const definitions = ((_task: string, text: string) => {
    jobs.push(text);
    return new Promise(() => undefined);
  }) as unknown as DefinitionTasks;
  const classes = createDriftClasses(definitions);
  const lock = lockOf([pinOf(toolOf('get_issue'))]);
  const classifyForm = (form: number) => {
    const description = `${form} ${'a b. '.repeat(200_000)}`;
    const observed = observedOf([toolOf('get_issue', { description })]);
    return classes.classify('target', classes.find(lock, observed));
  };
  const open = new Set([1, 2, 3, 4, 5]);
  for (const form of open) void classifyForm(form).then(() => open.delete(form));
  await expect.poll(() => jobs).toHaveLength(1);
  expect([...open]).toEqual([1, 2, 3]);
  expect(await classifyForm(6)).toMatchObject([{ name: 'get_issue', change: 'unclassified' }]);
});

it('[G-06] looks for the states of an observation no longer once there is another', async () => {
  let looked = 0;
  const catalog = {
    ...NO_CATALOG,
    statusOf() {
      looked += 1;
      return { state: 'unpinned', pinned: undefined };
    },
  };
  const turns: (() => void)[] = [];
  const waitForTurn = () => new Promise<void>((resolve) => turns.push(resolve));
  const ports = {
    record: () => undefined,
    announce: () => undefined,
    emit: () => undefined,
    catalogOf: () => catalog,
    mask: (text: string) => text,
    findings: NO_FINDINGS,
    classes: createDriftClasses(async () => undefined),
    loopScheduler: { waitForTurn, recordTime: () => 0 },
  } as unknown as DriftPorts;
  const manyOf = (title: string) =>
    observedOf(Array.from({ length: 1_000 }, (_, index) => toolOf(`tool_${index}`, { title })));
  let observed = manyOf('before');
  const runtime = {
    settings: { name: 'target', pinning: { mode: 'off' } },
    observed: () => observed,
    lock: () => undefined,
    firstUse: NO_FIRST_USE,
    scan: { found: () => [] },
  } as unknown as UpstreamRuntime;
  const version = { settings: { upstreams: new Map() } } as unknown as Version;
  const { report } = createDriftReport(ports);
  void report(runtime, version);
  observed = manyOf('after');
  void report(runtime, version);
  while (turns.length > 0) {
    turns.shift()?.();
    await new Promise(setImmediate);
  }
  expect(looked).toBe(1_000);
});

it('[G-06] finds the drift of thousands of definitions in turns, and of each observation in its order', async () => {
  const events: string[] = [];
  const turns: (() => void)[] = [];
  const ports = {
    record: ({ name, change }: { name: string; change: string }) => events.push(`${change} ${name}`),
    announce: () => undefined,
    emit: () => undefined,
    catalogOf: () => NO_CATALOG,
    mask: (text: string) => text,
    findings: NO_FINDINGS,
    classes: createDriftClasses(async () => undefined),
    loopScheduler: {
      waitForTurn: () => new Promise<void>((resolve) => turns.push(resolve)),
      recordTime: () => 0,
    },
  } as unknown as DriftPorts;
  const tools = Array.from({ length: 1_000 }, (_, index) => toolOf(`tool_${index}`));
  const withTitle = (changed: string) =>
    observedOf(tools.map((tool) => (tool['name'] === changed ? { ...tool, title: 'New' } : tool)));
  let observed = withTitle('tool_998');
  const lock = lockOf(tools.map((tool) => pinOf(tool)));
  const runtime = {
    settings: { name: 'target', pinning: { mode: 'strict', scan: 'block' } },
    observed: () => observed,
    lock: () => lock,
    firstUse: NO_FIRST_USE,
    scan: { found: () => [] },
  } as unknown as UpstreamRuntime;
  const version = { settings: { upstreams: new Map() } } as unknown as Version;
  const { report } = createDriftReport(ports);
  const first = report(runtime, version);
  // What is no longer offered when its turn comes is reported all the same.
  observed = withTitle('tool_999');
  void report(runtime, version);
  let isOver = false;
  void first?.then(() => {
    isOver = true;
  });
  expect(events).toEqual([]);
  while (!isOver) {
    turns.shift()?.();
    await new Promise(setImmediate);
  }
  expect(events).toEqual(['description tool_998', 'description tool_999']);
});

const STRICT = { name: 'target', pinning: { mode: 'strict', scan: 'block' } };

/** A report of an upstream with a thousand pins, whose slices are run by hand. */
function rig() {
  const events: string[] = [];
  const gauges = new Map<string, number>();
  const errors: unknown[] = [];
  const turns: (() => void)[] = [];
  const tools = Array.from({ length: 1_000 }, (_, index) => toolOf(`tool_${index}`));
  const current = {
    observed: observedOf(tools),
    lock: lockOf(tools.map((tool) => pinOf(tool))),
    announce: (): void => undefined,
  };
  const versionNow = () => ({ settings: { upstreams: new Map() }, lock: current.lock });
  const { emit } = createEvents(
    [
      {
        toolsCounted({ states }) {
          for (const [state, count] of states) gauges.set(state, count);
        },
        driftUnreported: ({ error }) => void errors.push(error),
      },
    ],
    () => undefined,
  );
  const record = ({ type, ...event }: SecurityEvent) => {
    events.push(`${type} ${'name' in event ? event.name : ''}`);
    return 0;
  };
  const ports = {
    record,
    announce: () => current.announce(),
    emit,
    catalogOf: (_runtime: unknown, { lock }: ReturnType<typeof versionNow>) => {
      const names = (kind: 'tool') => [...lock.pins[kind].keys()];
      return { ...NO_CATALOG, names };
    },
    mask: (text: string) => text,
    findings: createFindingReport({ record, emit }),
    classes: createDriftClasses(async () => undefined),
    loopScheduler: {
      waitForTurn: () => new Promise<void>((resolve) => turns.push(resolve)),
      recordTime: () => 0,
    },
  } as unknown as DriftPorts;
  const found = (observed: Observed | undefined) => {
    const isNamed = observed?.listings[0]?.seen.tool.has('poisoned') === true;
    return isNamed ? [{ kind: 'tool', name: 'poisoned', content: 'c', findings: [], isFailed: true }] : [];
  };
  const runtime = {
    settings: STRICT,
    observed: () => current.observed,
    lock: () => current.lock,
    firstUse: NO_FIRST_USE,
    scan: { found },
  } as unknown as UpstreamRuntime;
  const { report } = createDriftReport(ports);
  async function takeTurns(beforeEach: () => void = () => undefined): Promise<void> {
    while (turns.length > 0) {
      beforeEach();
      turns.shift()?.();
      await new Promise(setImmediate);
    }
  }
  const withTool = (name: string) => observedOf([...tools, toolOf(name)]);
  const reportNow = () => report(runtime, versionNow() as unknown as Version);
  return { current, events, gauges, errors, takeTurns, withTool, reportNow };
}

it('[G-06] records what the scan found in what was offered when the report was asked for', async () => {
  const { current, events, takeTurns, withTool, reportNow } = rig();
  const before = current.observed;
  current.observed = withTool('poisoned');
  void reportNow();
  current.observed = before;
  void reportNow();
  await takeTurns();
  expect(events).toContain('pin.finding poisoned');
});

it('[G-06] counts the states of thousands of definitions although pages change what is offered all the time', async () => {
  const { current, gauges, takeTurns, withTool, reportNow } = rig();
  void reportNow();
  const shown = [withTool('first'), withTool('second')];
  await takeTurns(() => {
    current.observed = shown.reverse()[0] ?? current.observed;
  });
  expect(gauges.get('unpinned')).toBe(1_001);
});

it('[G-06] counts the states under the version in force, not those of a slower report before it', async () => {
  const { current, gauges, takeTurns, reportNow } = rig();
  const few = [toolOf('tool_0'), toolOf('tool_1')];
  current.observed = observedOf(few);
  void reportNow();
  current.lock = lockOf(few.map((tool) => pinOf(tool)));
  void reportNow();
  await takeTurns();
  expect(gauges.get('unpinned')).toBe(2);
});

it('[G-06] makes further reports after one that failed', async () => {
  const { current, events, errors, takeTurns, withTool, reportNow } = rig();
  current.announce = () => {
    current.announce = () => undefined;
    throw new Error('a stream is broken');
  };
  current.observed = withTool('first');
  const ended = reportNow();
  current.observed = withTool('second');
  void reportNow();
  await takeTurns();
  await ended;
  expect(errors).toHaveLength(1);
  expect(events).toEqual(['pin.drift first', 'pin.drift second']);
  current.observed = withTool('third');
  void reportNow();
  await takeTurns();
  expect(events).toContain('pin.drift third');
});
