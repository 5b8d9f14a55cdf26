import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readKeyText, writeKeyText } from '../../../src/config/key-material.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { TaskFacts } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { MAX_TASK_TTL_MS } from '../../../src/state/sealed-token.js';
import { createTaskIds, MAX_TASKS_PER_CALLER, TASK_GRACE_MS } from '../../../src/state/task-ids.js';

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
        const sealed = createTaskIds(ring, () => 0).seal(task, 1000, scopeOf()) ?? '';
        const other = createTaskIds(ring, () => 0);
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
    const ports = createTaskIds(ring, () => now);
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
    const ports = createTaskIds(ring, () => 0);
    const sealed = ports.seal(TASK, 1000, scopeOf());
    expect(ports.seal(TASK, 1000, scopeOf())).toBe(sealed);
    const stricter = { ...TASK, profiles: [] };
    const other = ports.seal(stricter, 1000, scopeOf()) ?? '';
    expect(other).not.toBe(sealed);
    expect(ports.open(other, scopeOf())).toEqual(stricter);
  });

  test('[TSK-01] is none where it would be too long for a header', () => {
    const ports = createTaskIds(ring, () => 0);
    expect(ports.seal({ ...TASK, tool: 'x'.repeat(5000) }, 1000, scopeOf())).toBeUndefined();
  });
});

describe('what is remembered of tasks', () => {
  test('[TSK-08] is what a caller was given or has shown, and nobody else’s', () => {
    const ports = createTaskIds(ring, () => 0);
    const sealed = ports.seal(TASK, 1000, scopeOf()) ?? '';
    expect(ports.recall(TASK.id, scopeOf())).toEqual({ ...TASK, sealed });
    expect(ports.recall(TASK.id, scopeOf({ subject: 'eve' }))).toBeUndefined();
    expect(ports.recall(TASK.id, scopeOf({}, 'two'))).toBeUndefined();
    const replica = createTaskIds(ring, () => 0);
    expect(replica.recall(TASK.id, scopeOf())).toBeUndefined();
    replica.open(sealed, scopeOf());
    expect(replica.recall(TASK.id, scopeOf())?.sealed).toBe(sealed);
  });

  test('[TSK-08] is bounded: the oldest of a caller goes first', () => {
    const begin = (ids: ReturnType<typeof createTaskIds>, id: string, subject = 'ada') =>
      ids.seal({ ...TASK, id }, 1000, scopeOf({ subject }));
    const given = createTaskIds(ring, () => 0);
    const sealed = Array.from({ length: MAX_TASKS_PER_CALLER + 1 }, (_, index) => begin(given, `t${index}`));
    expect(given.recall('t0', scopeOf())).toBeUndefined();
    expect(given.recall('t1', scopeOf())?.sealed).toBe(sealed[1]);
    expect(given.recall('t1', scopeOf({ subject: 'eve' }))).toBeUndefined();
    const small = createTaskIds(ring, () => 0, 3);
    for (const id of ['a1', 'a2']) begin(small, id, 'ada');
    for (const id of ['e1', 'e1']) begin(small, id, 'eve');
    for (const id of ['b1', 'b2']) begin(small, id, 'bob');
    const found = ['ada a1', 'ada a2', 'eve e1', 'bob b1', 'bob b2'].map((one) => {
      const [subject = '', id = ''] = one.split(' ');
      return small.recall(id, scopeOf({ subject })) !== undefined;
    });
    expect(found).toEqual([false, false, true, true, true]);
  });

  test('[TSK-07] a question is known once it was put, until its task begins anew', () => {
    const given = createTaskIds(ring, () => 0);
    const [ada, eve] = [scopeOf(), scopeOf({ subject: 'eve' })];
    given.seal(TASK, 1000, ada);
    const asked = given.inputRequestsOf(TASK.id, ada);
    expect(asked.has('q')).toBe(false);
    asked.add('q');
    expect(given.inputRequestsOf(TASK.id, ada).has('q')).toBe(true);
    expect(given.inputRequestsOf(TASK.id, eve).has('q')).toBe(false);
    given.seal({ ...TASK, tool: 'another' }, 1000, ada);
    expect(given.inputRequestsOf(TASK.id, ada).has('q')).toBe(false);
    given.inputRequestsOf('unknown', ada).add('q');
    expect(given.inputRequestsOf('unknown', ada).has('q')).toBe(false);
  });
});
