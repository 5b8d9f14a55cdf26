import { describe, expect, it } from 'vitest';
import type { EventText } from '../../../src/audit/event.js';
import {
  createEventJoiner,
  createRecentDecisions,
  createRowPrinter,
  isMatch,
  MAX_RECENT,
  MAX_RECENT_ANONYMOUS,
  renderAuditRecord,
  renderAuditRow,
} from '../../../src/audit/query.js';

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
      for (let index = 0; index <= count; index += 1) join(event('mcp.decision', `${index}`), length);
      const isAlone = (id: string) => join(event('mcp.outcome', id), LINE).isAlone;
      expect([isAlone('0'), isAlone('1'), isAlone(`${count}`)]).toEqual([true, false, false]);
    }
  });

  it('joins one outcome with a decision, and the last of several decisions of one id', () => {
    const join = createEventJoiner();
    for (const rule of ['first', 'last']) join({ type: 'mcp.decision', decision: { id: 'x', rule } }, LINE);
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
    expect(renderAuditRow({ ...outcome, result: { status: 'error' } })).toMatch(/ error in 1\.3 ms$/);
    expect(renderAuditRow({ ...outcome, result: { status: 'none' } })).toMatch(/x {2}in 1\.3 ms$/);
    expect(renderAuditRow(event('mcp.outcome', 'x'))).toMatch(/ x$/);
  });

  it('say what was altered in a result, and are found by it', () => {
    const outcome = {
      ...event('mcp.outcome', 'x'),
      findings: [
        { detector: 'secret:npm-token', direction: 'to-client', count: 2, action: 'redact' },
        { detector: 'invisible\u001b', direction: 'to-client', count: 1, action: 'strip' },
        { detector: 'active:html', direction: 'to-client', count: 1, action: 'flag' },
      ],
      result: { status: 'ok', altered: true },
    };
    expect(renderAuditRow(outcome)).toMatch(
      / {2}altered: redacted secret:npm-token \(2\), removed invisible\\u\{1b\}$/,
    );
    expect(isMatch(outcome, { altered: true })).toBe(true);
    expect(isMatch({ ...outcome, result: { status: 'ok' } }, { altered: true })).toBe(false);
    expect(isMatch({ ...outcome, result: { status: 'ok' } }, {})).toBe(true);
  });

  it('selects the requests of a trace, also by an outcome whose decision names it', () => {
    const complete = createEventJoiner();
    const trace = { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', span_id: '00f067aa0ba902b7' };
    const [decided, ended] = ['mcp.decision', 'mcp.outcome'].map(
      (type, at) => complete({ type, decision: { id: 'd-1' }, ...(at === 0 && { trace }) }, 100).record,
    );
    for (const record of [decided, ended]) {
      expect(isMatch(record ?? {}, { trace: trace.trace_id })).toBe(true);
      expect(isMatch(record ?? {}, { trace: trace.span_id })).toBe(false);
    }
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

/** An event as event.ts builds it: the epoch goes between both texts. */
function eventText(type: 'mcp.decision' | 'mcp.outcome', id: number, more = ''): EventText {
  const time = new Date(Date.UTC(2026, 0, 1) + id).toISOString();
  const head = `{"schema":"sallyport.audit/2","id":"e","time":"${time}","type":"${type}","gateway":{"epoch":"`;
  const decided = type === 'mcp.decision' ? '","config":"c","policy":"p","pins":"l"}' : '"}';
  const decision = `,"decision":{"id":"${id}","verdict":"allow"}`;
  return { before: head, after: `${decided}${decision}${more}`, timeMs: id };
}

type Shown = { decision: { id: string }; result: { status: string } | null };
const list = (recent: ReturnType<typeof createRecentDecisions>) => recent.list() as unknown as readonly Shown[];

describe('the last decisions', () => {
  it('[O-77] are completed by their outcomes, newest first', () => {
    const recent = createRecentDecisions();
    for (const id of [1, 2]) recent.note(eventText('mcp.decision', id), true);
    recent.note(eventText('mcp.outcome', 1, ',"result":{"status":"ok"}'), true);
    expect(list(recent).map(({ decision, result }) => [decision.id, result?.status])).toEqual([
      ['2', undefined],
      ['1', 'ok'],
    ]);
  });

  it('[O-77] are at most a thousand, and others do not push them out', () => {
    const recent = createRecentDecisions();
    for (let id = 0; id < MAX_RECENT + 5; id += 1) {
      recent.note(eventText('mcp.decision', id), true);
      recent.note(eventText('mcp.outcome', id), true);
    }
    for (let id = 10_000; id < 15_000; id += 1) {
      recent.note(eventText('mcp.decision', id), false);
      recent.note(eventText('mcp.outcome', id), false);
    }
    const ids = list(recent).map(({ decision }) => Number(decision.id));
    expect(ids.filter((id) => id < 10_000)).toHaveLength(MAX_RECENT);
    expect(Math.min(...ids)).toBe(5);
    expect(ids.filter((id) => id >= 10_000)).toHaveLength(MAX_RECENT_ANONYMOUS);
  });

  it('[O-77] are fewer where their texts are long', () => {
    const recent = createRecentDecisions();
    const long = `,"findings":["${'x'.repeat(100_000)}"]`;
    for (let id = 0; id < 200; id += 1) recent.note(eventText('mcp.decision', id, long), true);
    const ids = list(recent).map(({ decision }) => Number(decision.id));
    expect(ids.length).toBeLessThan(84);
    expect(ids[0]).toBe(199);
    // One that is longer than all together may be is not kept, and pushes out none.
    recent.note(eventText('mcp.decision', 200, `,"findings":["${'x'.repeat(9_000_000)}"]`), true);
    expect(list(recent).map(({ decision }) => Number(decision.id))).toEqual(ids);
  });
});

describe('a complete event', () => {
  it('is printed without characters that end a line or move the cursor, in names too', () => {
    const odd = 'x\r\u0085\u2028\x1b[2Ky';
    const text = renderAuditRecord({ detail: { [odd]: odd } });
    expect(text.split('\n')).toHaveLength(5);
    for (const end of ['\r', '\u0085', '\u2028', '\x1b']) expect(text).not.toContain(end);
    expect(JSON.parse(text)).toEqual({ detail: { [odd]: odd } });
  });
});
