// Which events about definitions are written, and which are only counted, when an upstream causes as many as it can.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { AuditEvent } from '../../../src/audit/event.js';
import {
  AUTH_FAILURES_PER_SECOND,
  createEventRate,
  DEFINITION_EVENTS,
  FIRST_EVENT_MS,
} from '../../../src/audit/event-rate.js';

const { burst } = DEFINITION_EVENTS;

function rig() {
  const clock = { ms: 1_000_000 };
  const sink = { hasRoom: true };
  const admitInto = createEventRate(() => clock.ms);
  return { clock, sink, admit: (event: AuditEvent) => admitInto(event, () => sink.hasRoom) };
}

type Drift = Extract<AuditEvent, { type: 'pin.drift' }>;
type Finding = Extract<AuditEvent, { type: 'pin.finding' }>;

function driftOf(name: string, more: Partial<Drift> = {}): Drift {
  const digests = { before: 'pinned', after: 'offered' };
  return {
    ...{ type: 'pin.drift', upstream: 'github', kind: 'tool', name, change: 'description' },
    ...{ ...digests, ...more },
  };
}

/** A definition that no lock file has. */
function inventedOf(name: string): Drift {
  return driftOf(name, { before: undefined, change: 'new-tool' });
}

function findingOf(name: string, isPinned: boolean, found = 'secrecy'): Finding {
  return {
    ...{ type: 'pin.finding', upstream: 'github', kind: 'tool', name, isPinned },
    ...{ finding: 'f1', found, tier: 'block', pointer: '', evidence: '', action: 'withhold' },
  };
}

/** How many of these events are written. */
function countWritten(admit: (event: AuditEvent) => unknown, events: readonly AuditEvent[]) {
  return events.filter((event) => admit(event) !== undefined).length;
}

function times<Item>(count: number, item: (index: number) => Item): readonly Item[] {
  return Array.from({ length: count }, (_, index) => item(index));
}

it('[O-85] bounds what one definition causes that changes all the time', () => {
  const { admit, clock } = rig();
  expect(
    countWritten(
      admit,
      times(10_000, () => driftOf('flapping')),
    ),
  ).toBe(burst);
  clock.ms += 1_000;
  expect(admit(driftOf('flapping'))).toBe(10_000 - burst);
  expect(admit(driftOf('flapping'))).toBeUndefined();
  clock.ms += 1_000;
  expect(admit(driftOf('flapping'))).toBe(1);
});

it('[O-85] writes the first drift of each pinned definition, whatever the others and invented names cause', () => {
  const { admit } = rig();
  for (const event of times(20_000, (index) => driftOf(`tool ${index % 2}`))) admit(event);
  for (const event of times(20_000, (index) => inventedOf(`invented ${index}`))) admit(event);
  const all = times(10_000, (index) => driftOf(`other ${index}`));
  expect(countWritten(admit, all)).toBe(10_000);
  expect(countWritten(admit, all)).toBe(0);
  expect(admit(driftOf('other 1', { change: 'input-widened' }))).toBe(10_000);
  expect(admit(findingOf('other 1', true))).toBe(0);
  expect(admit(findingOf('other 1', true, 'exfiltration'))).toBe(0);
  expect(admit(findingOf('other 1', true))).toBeUndefined();
  expect(admit({ ...findingOf('other 1', true), tier: 'review' })).toBe(1);
});

it('[O-85] takes a drift as the first again after an hour, and after another approval', () => {
  const { admit, clock } = rig();
  for (const event of times(5_000, () => driftOf('flapping'))) admit(event);
  expect(admit(driftOf('later'))).toBeDefined();
  expect(admit(driftOf('later'))).toBeUndefined();
  expect(admit(driftOf('later', { before: 'approved since' }))).toBeDefined();
  for (const passed of [FIRST_EVENT_MS, -2 * FIRST_EVENT_MS]) {
    clock.ms += passed;
    for (const event of times(5_000, () => driftOf('flapping'))) admit(event);
    expect(admit(driftOf('later'))).toBeDefined();
    expect(admit(driftOf('later'))).toBeUndefined();
  }
});

it('[O-85] bounds what invented names cause, and keeps half of it for those that are new', () => {
  const { admit } = rig();
  const flapping = times(10_000, () => inventedOf('flapping'));
  expect(countWritten(admit, flapping)).toBe(burst / 2);
  const others = times(10_000, (index) => inventedOf(`other ${index}`));
  expect(countWritten(admit, others)).toBe(burst / 2);
  expect(admit(findingOf('other', false))).toBeUndefined();
});

it('[O-85] counts each upstream apart, and each type', () => {
  const { admit, clock } = rig();
  for (const event of times(3_000, () => driftOf('flapping'))) admit(event);
  for (const event of times(5_000, () => findingOf('flapping', false))) admit(event);
  expect(admit(driftOf('flapping', { upstream: 'other' }))).toBe(0);
  clock.ms += 1_000;
  expect(admit(driftOf('flapping'))).toBe(3_000 - burst);
  expect(admit(findingOf('new', false))).toBe(5_000 - burst / 2);
});

it('[O-85] holds no name whose length the upstream chose', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { admit } = rig();
  const longName = (index: number) => `${index}${Buffer.alloc(500_000, 'x').toString('latin1')}`;
  collect();
  const before = process.memoryUsage().heapUsed;
  const written = times(100, (index) => [
    admit(inventedOf(longName(index))),
    admit(driftOf(longName(index))),
  ]);
  expect(written.flat()).not.toContain(undefined);
  collect();
  // The names were 100 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  expect(admit(driftOf('next'))).toBe(0);
});

it('[O-85] takes nothing for written that no sink had room for', () => {
  const { admit, clock, sink } = rig();
  for (const event of times(3_000, () => driftOf('flapping'))) admit(event);
  sink.hasRoom = false;
  // The rate is used up, so that the process log has a bound as well.
  expect(admit(driftOf('other'))).toBeUndefined();
  sink.hasRoom = true;
  expect(admit(driftOf('other'))).toBe(3_000 - burst + 1);
  expect(admit(driftOf('other'))).toBeUndefined();
  clock.ms += 2_000;
  sink.hasRoom = false;
  expect(admit(driftOf('third'))).toBe(1);
  sink.hasRoom = true;
  expect(admit(driftOf('third'))).toBe(1);
});

it('[O-85] keeps the number of failed logins until an event that says it is written', () => {
  const { admit, clock, sink } = rig();
  const failure: AuditEvent = {
    ...{ type: 'auth.failure', upstream: 'github', reason: 'token-missing', decisionId: 'd' },
    ip: '::1',
  };
  for (const event of times(AUTH_FAILURES_PER_SECOND + 7, () => failure)) admit(event);
  clock.ms += 1_000;
  sink.hasRoom = false;
  expect(admit(failure)).toBe(7);
  sink.hasRoom = true;
  expect(admit(failure)).toBe(7);
  expect(admit(failure)).toBe(0);
});

it('[O-85] bounds nothing that operators cause, or that is written once', () => {
  const { admit } = rig();
  const events: readonly AuditEvent[] = [
    { type: 'config.reload', result: 'applied', faults: 0 },
    { type: 'pin.first-use', upstream: 'github', kind: 'tool', name: 'x', digest: 'd' },
    { type: 'admin.action', subject: 'ann', action: 'show-controls', status: 200, ip: '::1' },
  ];
  for (const event of events)
    expect(
      countWritten(
        admit,
        times(2_000, () => event),
      ),
    ).toBe(2_000);
});
