import { describe, expect, it } from 'vitest';
import { createEventJoiner, createRowPrinter, renderAuditRow } from '../../../src/audit/query.js';

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

describe('[O-16] the rows of audit query', () => {
  it('have the result of what was forwarded, and of a refusal only how long it took', () => {
    const outcome = { ...event('mcp.outcome', 'x'), latency_ms: { total: 1.26 } };
    expect(renderAuditRow({ ...outcome, result: { status: 'error' } })).toMatch(
      / error in 1\.3 ms$/,
    );
    expect(renderAuditRow({ ...outcome, result: { status: 'none' } })).toMatch(/x {2}in 1\.3 ms$/);
    expect(renderAuditRow(event('mcp.outcome', 'x'))).toMatch(/ x$/);
  });

  const rowsOf = (events: readonly (readonly [ReturnType<typeof event>, boolean])[]) => {
    const rows: string[] = [];
    const printer = createRowPrinter((row) => rows.push(row));
    for (const [one, isChosen] of events) printer.add(one, isChosen);
    const before = rows.length;
    printer.end();
    return { rows: rows.map((row) => row.replace(/^- {2}mcp\./, '')), before };
  };

  it('are one for each request: its outcome, or the decision that has none', () => {
    const { rows, before } = rowsOf([
      [event('mcp.decision', 'a'), true],
      [event('mcp.decision', 'b'), true],
      [event('mcp.decision', 'c'), true],
      [event('mcp.outcome', 'b'), true],
      [event('mcp.outcome', 'a'), false],
    ]);
    expect(rows.map((row) => row.split('  ').filter((part) => /^[a-z]/.test(part)))).toEqual([
      ['outcome', 'b'],
      ['decision', 'a'],
      ['decision', 'c'],
    ]);
    expect(before).toBe(2);
  });

  it('keep a bounded number of decisions back', () => {
    const many = Array.from({ length: 10_005 }, (_, index) => event('mcp.decision', `${index}`));
    const { rows, before } = rowsOf(many.map((one) => [one, true] as const));
    expect([before, rows.length]).toEqual([5, 10_005]);
  });
});
