import { describe, expect, it } from 'vitest';
import { anonymousPrincipal } from '../../../src/auth/principal.js';
import { createEvents } from '../../../src/policy/events.js';
import { createLeaseRegistry } from '../../../src/proxy/lease-registry.js';
import type { OpenLease } from '../../../src/proxy/ports.js';
import { ANNOUNCED_AT_ONCE, createStreamRegistry, MAX_STREAMS_A_CALLER } from '../../../src/proxy/stream-registry.js';
import { UNSCHEDULED } from '../../../src/upstream/response-messages.js';

const anna = anonymousPrincipal({ resource: 'http://127.0.0.1/a' });

describe('the registry of streams', () => {
  it('[G-80] gives one caller no more than its quota, and counts it until each stream has ended', () => {
    const registry = createStreamRegistry(() => undefined, UNSCHEDULED);
    const reserved = Array.from({ length: MAX_STREAMS_A_CALLER }, () => registry.reserve('one', anna));
    expect(registry.reserve('one', anna)).toBeUndefined();
    expect(registry.reserve('two', anna)).toBeDefined();
    reserved[0]?.release();
    reserved[0]?.release();
    expect(registry.size()).toBe(MAX_STREAMS_A_CALLER);
    expect(registry.reserve('one', anna)).toBeDefined();
    expect(registry.reserve('one', anna)).toBeUndefined();
  });

  it('[G-80] reports a stream as open from its opening, and announces on open streams alone', () => {
    const counts: number[] = [];
    const announced: string[] = [];
    const { emit } = createEvents([{ streaming: ({ delta }) => void counts.push(delta) }], () => undefined);
    const registry = createStreamRegistry(emit, UNSCHEDULED);
    const [first, second] = [registry.reserve('one', anna), registry.reserve('one', anna)];
    registry.announce('one', 'early');
    first?.open({ announce: (method) => void announced.push(method), end: () => undefined });
    registry.announce('one', 'open');
    first?.release();
    second?.release();
    registry.announce('one', 'late');
    expect(announced).toEqual(['open']);
    expect(counts).toEqual([1, -1]);
    expect(registry.size()).toBe(0);
  });

  it('[E-43] ends what is opened after all streams were ended', () => {
    const registry = createStreamRegistry(() => undefined, UNSCHEDULED);
    const ended: string[] = [];
    const announce = () => undefined;
    const [first, second, third] = [1, 2, 3].map(() => registry.reserve('one', anna));
    first?.open({ announce, end: () => void ended.push('first') });
    expect(ended).toEqual([]);
    registry.endAll();
    second?.open({ announce, end: () => void ended.push('second') });
    const endWhenIdle = () => void ended.push('third, when idle');
    third?.open({ announce, end: () => void ended.push('third'), endWhenIdle });
    expect(ended).toEqual(['first', 'second', 'third, when idle']);
  });

  it('[G-80] announces on thousands of streams in slices, and what comes again meanwhile once more', async () => {
    const STREAMS = 1_000;
    const turns: (() => void)[] = [];
    const waitForTurn = () => new Promise<void>((resolve) => turns.push(resolve));
    const registry = createStreamRegistry(() => undefined, { ...UNSCHEDULED, waitForTurn });
    let announced = 0;
    const opened = Array.from({ length: STREAMS }, (_, at) => {
      const caller = { ...anna, subject: `caller-${at}` } as typeof anna;
      const stream = registry.reserve('one', caller);
      const announce = () => {
        announced += 1;
      };
      stream?.open({ announce, end: () => undefined });
      return stream;
    });
    for (let change = 0; change < 10; change += 1) registry.announce('one', 'changed');
    expect(announced).toBe(ANNOUNCED_AT_ONCE);
    opened.at(-1)?.release();
    while (turns.length > 0) {
      turns.shift()?.();
      await new Promise(setImmediate);
    }
    expect(announced).toBe(2 * (STREAMS - 1));
  });
});

describe('the registry of leases', () => {
  /** A lease of a session that writes down what reaches it. */
  function lease(name: string, log: string[], more: Partial<OpenLease> = {}): OpenLease {
    return {
      ...{ upstream: 'one', principal: anna, session: name },
      onChange: () => void log.push(name),
      checkSession: () => void log.push(`${name}?`),
      end: ({ deny }) => void log.push(`${name}: ${deny.reason}`),
      ...more,
    };
  }
  const NO_CHANGE = () => undefined;

  it('passes a change to every lease that is registered', () => {
    const registry = createLeaseRegistry();
    const log: string[] = [];
    const leave = ['a', 'b', 'c'].map((name) => registry.register(lease(name, log)));
    registry.emit(NO_CHANGE);
    expect(log.splice(0).sort()).toEqual(['a', 'b', 'c']);
    leave[0]?.();
    registry.emit(NO_CHANGE);
    expect(log.splice(0).sort()).toEqual(['b', 'c']);
    leave[0]?.();
    leave[2]?.();
    registry.emit(NO_CHANGE);
    expect(log.splice(0)).toEqual(['b']);
    leave[1]?.();
    registry.emit(NO_CHANGE);
    expect(log).toEqual([]);
  });

  it('passes a change to none that comes meanwhile', () => {
    const registry = createLeaseRegistry();
    const log: string[] = [];
    registry.register(
      lease('first', log, {
        onChange() {
          log.push('first');
          registry.register(lease('new', log));
        },
      }),
    );
    registry.emit(NO_CHANGE);
    expect(log.splice(0)).toEqual(['first']);
    registry.emit(NO_CHANGE);
    expect(log.sort()).toEqual(['first', 'new']);
    expect(registry.countChanges()).toBe(2);
  });

  it('[REV-33] ends what belongs to a session that has ended, or to its aggregate, and nothing else', () => {
    const registry = createLeaseRegistry();
    const log: string[] = [];
    registry.register(lease('over', log));
    registry.register(lease('open', log));
    const aggregate = { name: 'all', session: 'aggregate' };
    registry.register(lease('backend', log, { aggregate }));
    registry.endSession('over');
    registry.endSession('aggregate');
    expect(log.splice(0)).toEqual(['over: unknown-session', 'backend: unknown-session']);
    registry.checkSessions();
    expect(log).toEqual(['over?', 'open?', 'backend?']);
  });

  it('asks thousands of sessions without blocking the event loop for all of them', async () => {
    const registry = createLeaseRegistry();
    const log: string[] = [];
    for (let count = 0; count < 250; count += 1) registry.register(lease(String(count), log));
    registry.checkSessions();
    expect(log.length).toBe(100);
    await expect.poll(() => log.length).toBe(250);
    expect(new Set(log).size).toBe(250);
  });
});
