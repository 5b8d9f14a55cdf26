import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readKeyText, writeKeyText } from '../../../src/config/keys.js';
import { createTaskPort, MAX_TASK_TTL_MS, TASK_GRACE_MS } from '../../../src/gateway/ports.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { TaskFacts } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/keys.js';
import { createKnownTasks, MAX_TASKS_PER_CALLER } from '../../../src/state/replica-tables.js';

const key = readKeyText(writeKeyText(new Uint8Array(32).fill(7)));
if (key === undefined) throw new Error('a key that was made can be read');
const ring = createKeyRing([key]);

const TASK: TaskFacts = {
  id: 'the server’s own',
  era: '2026',
  tool: 'compute',
  maxResultBytes: 1024,
  profiles: ['strict'],
};
const OWNER = { issuerUrl: 'https://issuer.test', subject: 'ada', client: 'desk' };

function scopeOf(who: Partial<typeof OWNER> = {}, upstream = 'one') {
  return { upstream, principal: { ...OWNER, ...who } as Principal };
}

describe('the id of a task', () => {
  test('[TSK-01] opens on any replica, for the very caller at the very upstream', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 });
    const facts = fc.record({
      id: text,
      era: fc.constantFrom('2025' as const, '2026' as const),
      tool: text,
      maxResultBytes: fc.option(fc.nat(), { nil: undefined }),
      profiles: fc.array(text, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(facts, (task) => {
        const sealed = createTaskPort(ring, () => 0).seal(task, 1000, scopeOf()) ?? '';
        const other = createTaskPort(ring, () => 0);
        expect(other.open(sealed, scopeOf())).toEqual(task);
        for (const scope of [
          scopeOf({ subject: 'eve' }),
          scopeOf({ client: 'phone' }),
          scopeOf({ issuerUrl: 'https://other.test' }),
          scopeOf({}, 'two'),
        ])
          expect(other.open(sealed, scope)).toBeUndefined();
      }),
    );
  });

  test('[TSK-02] lives as long as its task and a little longer, and never past the bound', () => {
    let now = 0;
    const ports = createTaskPort(ring, () => now);
    for (const [ttlMs, livesMs] of [
      [60_000, 60_000 + TASK_GRACE_MS],
      [null, MAX_TASK_TTL_MS],
      [undefined, MAX_TASK_TTL_MS],
      [10 * MAX_TASK_TTL_MS, MAX_TASK_TTL_MS],
    ] as const) {
      now = 0;
      const task = { ...TASK, id: `${ttlMs}` };
      const sealed = ports.seal(task, ttlMs, scopeOf()) ?? '';
      now = livesMs - 1;
      expect(ports.open(sealed, scopeOf())).toEqual(task);
      now = livesMs;
      expect(ports.open(sealed, scopeOf())).toBeUndefined();
    }
  });

  test('[TSK-01] is the same when the task is told again, and not when it is another', () => {
    const ports = createTaskPort(ring, () => 0);
    const sealed = ports.seal(TASK, 1000, scopeOf());
    expect(ports.seal(TASK, 1000, scopeOf())).toBe(sealed);
    const stricter = { ...TASK, profiles: [] };
    const other = ports.seal(stricter, 1000, scopeOf()) ?? '';
    expect(other).not.toBe(sealed);
    expect(ports.open(other, scopeOf())).toEqual(stricter);
  });

  test('[TSK-01] is none where it would be too long for a header', () => {
    const ports = createTaskPort(ring, () => 0);
    expect(ports.seal({ ...TASK, tool: 'x'.repeat(5000) }, 1000, scopeOf())).toBeUndefined();
  });
});

describe('what is remembered of tasks', () => {
  test('[TSK-08] is what a caller was given or has shown, and nobody else’s', () => {
    const ports = createTaskPort(ring, () => 0);
    const sealed = ports.seal(TASK, 1000, scopeOf()) ?? '';
    expect(ports.recall(TASK.id, scopeOf())).toEqual({ ...TASK, sealed });
    expect(ports.recall(TASK.id, scopeOf({ subject: 'eve' }))).toBeUndefined();
    expect(ports.recall(TASK.id, scopeOf({}, 'two'))).toBeUndefined();
    const replica = createTaskPort(ring, () => 0);
    expect(replica.recall(TASK.id, scopeOf())).toBeUndefined();
    replica.open(sealed, scopeOf());
    expect(replica.recall(TASK.id, scopeOf())?.sealed).toBe(sealed);
  });

  test('[TSK-08] is bounded: the oldest of a caller goes first', () => {
    const given = createKnownTasks();
    for (let index = 0; index <= MAX_TASKS_PER_CALLER; index += 1)
      given.add('ada', { ...TASK, id: `t${index}`, sealed: `s${index}` });
    expect(given.find('ada', 't0')).toBeUndefined();
    expect(given.find('ada', 't1')?.sealed).toBe('s1');
    expect(given.find('eve', 't1')).toBeUndefined();
    const small = createKnownTasks(3);
    for (const [caller, id] of [
      ['ada', 'a1'],
      ['ada', 'a2'],
      ['eve', 'e1'],
      ['eve', 'e1'],
      ['bob', 'b1'],
      ['bob', 'b2'],
    ] as const)
      small.addCreated(caller, { ...TASK, id, sealed: id });
    const found = ['a1', 'a2'].map((id) => small.find('ada', id));
    expect(found).toEqual([undefined, undefined]);
    expect(small.find('eve', 'e1')?.sealed).toBe('e1');
    expect(small.find('bob', 'b2')?.sealed).toBe('b2');
  });

  test('[TSK-07] a question is known once it was put, until its task begins anew', () => {
    const given = createKnownTasks();
    given.addCreated('ada', { ...TASK, sealed: 's' });
    const asked = given.inputRequestsOf('ada', TASK.id);
    expect(asked.has('q')).toBe(false);
    asked.add('q');
    expect(given.inputRequestsOf('ada', TASK.id).has('q')).toBe(true);
    expect(given.inputRequestsOf('eve', TASK.id).has('q')).toBe(false);
    given.addCreated('ada', { ...TASK, sealed: 't' });
    expect(given.inputRequestsOf('ada', TASK.id).has('q')).toBe(false);
    given.inputRequestsOf('ada', 'unknown').add('q');
    expect(given.inputRequestsOf('ada', 'unknown').has('q')).toBe(false);
  });
});
