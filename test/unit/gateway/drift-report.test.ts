// What the report of a drift tells open streams.

import { expect, it } from 'vitest';
import type { Version } from '../../../src/gateway/config-version.js';
import { NO_FIRST_USE } from '../../../src/gateway/first-use.js';
import { createDriftReport } from '../../../src/gateway/observability.js';
import type { UpstreamRuntime } from '../../../src/gateway/upstreams.js';

type DriftPorts = Parameters<typeof createDriftReport>[0];

it('[G-06] announces each list that may have changed once, those of resources and templates too', () => {
  const announced: string[] = [];
  const ports = {
    streams: { announce: (_upstream: string, method: string) => announced.push(method) },
    metrics: { setTools: () => undefined },
    snapshotOf: () => ({ catalogFor: () => ({ names: () => [] }) }),
    now: () => 0,
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
  createDriftReport(ports).report(runtime, version);
  expect(announced.sort()).toEqual([
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/tools/list_changed',
  ]);
});
