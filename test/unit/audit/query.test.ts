import { describe, expect, it } from 'vitest';
import { createEventJoiner } from '../../../src/audit/query.js';

const LINE = 1000;

function event(type: 'mcp.decision' | 'mcp.outcome', id: string) {
  return { type, decision: { id, ...(type === 'mcp.decision' ? { rule: 'r' } : {}) } };
}

describe('[O-16] the joiner of events', () => {
  it('keeps so many decisions, and no more characters of them than it may', () => {
    for (const [count, length] of [
      [10_000, LINE],
      [16, 4 * 1024 * 1024],
    ] as const) {
      const join = createEventJoiner();
      for (let index = 0; index <= count; index += 1)
        join(event('mcp.decision', `${index}`), length);
      const isAlone = (id: string) => join(event('mcp.outcome', id), LINE).isAlone;
      expect([isAlone('0'), isAlone('1'), isAlone(`${count}`)]).toEqual([true, false, false]);
    }
  });

  it('joins one outcome with a decision, and the last of several decisions of one id', () => {
    const join = createEventJoiner();
    for (const rule of ['first', 'last'])
      join({ type: 'mcp.decision', decision: { id: 'x', rule } }, LINE);
    expect(join(event('mcp.outcome', 'x'), LINE)).toMatchObject({
      record: { decision: { rule: 'last' } },
      isAlone: false,
    });
    expect(join(event('mcp.outcome', 'x'), LINE).isAlone).toBe(true);
  });
});
