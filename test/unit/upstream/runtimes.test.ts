// How often what an upstream offers is reported, and that nothing that it showed goes unreported.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import {
  MAX_MESSAGES_PER_OWNER,
  type SessionMessage,
} from '../../../src/upstream/adapters/session-over-stateless/session-state.js';
import { createSingleUpstreamResources } from '../../../src/upstream/connection.js';
import {
  createPacedReport,
  createRuntimes,
  createSessionBuses,
  type UpstreamRuntime,
} from '../../../src/upstream/runtimes.js';
import { startListingUpstream, toolNamed } from '../../support/mcp-servers.js';
import { LOCAL, settingsOf } from '../config/reading.js';

const COST_MS = 10;
const PAGES = 1_000;
let reports = 0;

function createCostlyReport() {
  reports = 0;
  return createPacedReport(() => {
    reports += 1;
    vi.advanceTimersByTime(COST_MS);
  });
}

function showPages(report: ReturnType<typeof createCostlyReport>): void {
  for (let page = 0; page < PAGES; page += 1) report.sendPaced();
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('reports at once what a page shows, and what a thousand show after it together', () => {
  const report = createCostlyReport();
  showPages(report);
  expect(reports).toBe(1);
  vi.advanceTimersByTime(COST_MS);
  expect(reports).toBe(1);
  vi.runAllTimers();
  expect(reports).toBe(2);
});

it('reports what pages show before a listing may remove it, and once', () => {
  const report = createCostlyReport();
  showPages(report);
  report.flush();
  expect(reports).toBe(2);
  report.flush();
  vi.runAllTimers();
  expect(reports).toBe(2);
});

it('reports what pages show no sooner because the report before is made in slices', async () => {
  let started = 0;
  let end: () => void = () => undefined;
  const report = createPacedReport(() => {
    started += 1;
    return new Promise((resolve) => {
      end = resolve;
    });
  });
  report.sendPaced();
  vi.advanceTimersByTime(COST_MS);
  for (let page = 0; page < PAGES; page += 1) {
    report.sendPaced();
    vi.advanceTimersByTime(1);
  }
  expect(started).toBe(1);
  let isSettled = false;
  const settled = report.settled().then(() => {
    isSettled = true;
  });
  await Promise.resolve();
  expect(isSettled).toBe(false);
  end();
  await settled;
  expect(started).toBe(1);
  vi.advanceTimersByTime(PAGES);
  expect(started).toBe(1);
  vi.runAllTimers();
  expect(started).toBe(2);
});

it('keeps what pages show for no more than ten seconds, however long the report before waited', () => {
  let reports = 0;
  const report = createPacedReport(() => {
    reports += 1;
    vi.advanceTimersByTime(60_000);
    return undefined;
  });
  report.sendPaced();
  report.sendPaced();
  vi.advanceTimersByTime(10_000);
  expect(reports).toBe(2);
});

it('reports what pages have shown last when the upstream goes, and nothing of it from then on', () => {
  const report = createCostlyReport();
  showPages(report);
  report.close();
  expect(reports).toBe(2);
  report.send();
  report.sendPaced();
  vi.runAllTimers();
  expect(reports).toBe(2);
});

it('takes in no listing before what the one before it showed is reported', async () => {
  vi.useRealTimers();
  const upstream = await startListingUpstream();
  upstream.script.speaks.sessions = false;
  const events: string[] = [];
  let endReport: () => void = () => undefined;
  let scans = 0;
  const runtimes = createRuntimes({
    ...createSingleUpstreamResources(),
    sessionBusOf: createSessionBuses({
      self: 'one',
      send: () => false,
      publish: () => undefined,
    } as never),
    scanDefinitions: async () => {
      scans += 1;
      return [];
    },
    lockOf: () => undefined,
    now: Date.now,
    isOwnListener: () => false,
    emit: () => undefined,
    onReachable: () => undefined,
    onObserved(runtime: UpstreamRuntime) {
      const [listing] = runtime.observed()?.listings ?? [];
      events.push(`reports ${[...(listing?.seen.tool.keys() ?? [])]}`);
      return new Promise<void>((resolve) => {
        endReport = () => {
          events.push('reported');
          resolve();
        };
      });
    },
  } as unknown as Parameters<typeof createRuntimes>[0]);
  const text = LOCAL.replace('http://127.0.0.1:3001/mcp', upstream.url);
  const verify = '    pinning: {verify: before-call}\npolicies:';
  runtimes.replace(settingsOf(text.replace('policies:', verify)));
  await expect.poll(() => events).toEqual(['reports first,second']);
  upstream.script.tools = [[toolNamed('third')]];
  const listed = runtimes.get('demo')?.refreshListing();
  await expect.poll(() => scans).toBe(2);
  for (let round = 0; round < 10; round += 1) await new Promise(setImmediate);
  endReport();
  await listed;
  expect(events).toEqual(['reports first,second', 'reported', 'reports third']);
  endReport();
  await runtimes.close();
  await upstream.close();
});

// What is said of sessions names their upstream, and one owner says no more of all of them than its share.
describe('replica bus', () => {
  beforeEach(() => void vi.useRealTimers());

  const messageOf = (owner: string): SessionMessage => ({
    session: 'session',
    owner,
    news: { kind: 'log-level', level: 'debug' },
  });

  /** Words that are on their way until they are heard. */
  function slowBus() {
    const sentMessages: Json[] = [];
    const released: (() => void)[] = [];
    const publish = (word: Json) => {
      sentMessages.push(word);
      return new Promise<'delivered'>((resolve) => released.push(() => resolve('delivered')));
    };
    const send = (_replica: string, word: Json) => publish(word);
    const busFor = createSessionBuses({
      self: 'here',
      send,
      publish,
      onMessage: () => undefined,
    });
    return { sentMessages, released, busFor };
  }

  describe('[Y-12] words about sessions', () => {
    it('name their upstream, to one replica and to all', async () => {
      const { sentMessages, released, busFor } = slowBus();
      const bus = busFor('search');
      const sent = [bus.send('there', messageOf('ann')), bus.publish(messageOf('ann'))];
      for (const release of released) release();
      expect(await Promise.all(sent)).toEqual(['delivered', 'delivered']);
      expect(sentMessages).toEqual([
        { upstream: 'search', ...messageOf('ann') },
        { upstream: 'search', ...messageOf('ann') },
      ]);
    });

    it('are one share of their owner, over all upstreams and after a reload', async () => {
      const { released, busFor } = slowBus();
      const upstreams = ['search', 'files'].map(busFor);
      const sent = Array.from({ length: MAX_MESSAGES_PER_OWNER }, (_, at) =>
        upstreams[at % upstreams.length]?.publish(messageOf('ann')),
      );
      expect(released.length).toBe(MAX_MESSAGES_PER_OWNER);
      for (const bus of [...upstreams, busFor('search')]) sent.push(bus.publish(messageOf('ann')));
      expect(released.length).toBe(MAX_MESSAGES_PER_OWNER);
      sent.push(upstreams[0]?.publish(messageOf('bob')));
      expect(released.length).toBe(MAX_MESSAGES_PER_OWNER + 1);
      for (const release of released.splice(0)) release();
      await new Promise((resolve) => setImmediate(resolve));
      for (const release of released.splice(0)) release();
      expect(new Set(await Promise.all(sent))).toEqual(new Set(['delivered']));
    });
  });
});
