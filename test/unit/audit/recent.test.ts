import { describe, expect, it } from 'vitest';
import type { EventText } from '../../../src/audit/event.js';
import {
  createRecentDecisions,
  MAX_RECENT,
  MAX_RECENT_ANONYMOUS,
} from '../../../src/audit/recent.js';

/** An event as event.ts builds it: the epoch goes between both texts. */
function event(type: 'mcp.decision' | 'mcp.outcome', id: number, more = ''): EventText {
  const time = new Date(Date.UTC(2026, 0, 1) + id).toISOString();
  const head = `{"schema":"sallyport.audit/2","id":"e","time":"${time}","type":"${type}","gateway":{"epoch":"`;
  const decided = type === 'mcp.decision' ? '","config":"c","policy":"p","pins":"l"}' : '"}';
  const decision = `,"decision":{"id":"${id}","verdict":"allow"}`;
  return { before: head, after: `${decided}${decision}${more}`, timeMs: id };
}

type Shown = { decision: { id: string }; result: { status: string } | null };
const list = (recent: ReturnType<typeof createRecentDecisions>) =>
  recent.list() as unknown as readonly Shown[];

describe('the last decisions', () => {
  it('[O-77] are completed by their outcomes, newest first', () => {
    const recent = createRecentDecisions();
    for (const id of [1, 2]) recent.note(event('mcp.decision', id), true);
    recent.note(event('mcp.outcome', 1, ',"result":{"status":"ok"}'), true);
    expect(list(recent).map(({ decision, result }) => [decision.id, result?.status])).toEqual([
      ['2', undefined],
      ['1', 'ok'],
    ]);
  });

  it('[O-77] are at most a thousand, and others do not push them out', () => {
    const recent = createRecentDecisions();
    for (let id = 0; id < MAX_RECENT + 5; id += 1) {
      recent.note(event('mcp.decision', id), true);
      recent.note(event('mcp.outcome', id), true);
    }
    for (let id = 10_000; id < 15_000; id += 1) {
      recent.note(event('mcp.decision', id), false);
      recent.note(event('mcp.outcome', id), false);
    }
    const ids = list(recent).map(({ decision }) => Number(decision.id));
    expect(ids.filter((id) => id < 10_000)).toHaveLength(MAX_RECENT);
    expect(Math.min(...ids)).toBe(5);
    expect(ids.filter((id) => id >= 10_000)).toHaveLength(MAX_RECENT_ANONYMOUS);
  });

  it('[O-77] are fewer where their texts are long', () => {
    const recent = createRecentDecisions();
    const long = `,"findings":["${'x'.repeat(100_000)}"]`;
    for (let id = 0; id < 200; id += 1) recent.note(event('mcp.decision', id, long), true);
    const ids = list(recent).map(({ decision }) => Number(decision.id));
    expect(ids.length).toBeLessThan(84);
    expect(ids[0]).toBe(199);
    recent.note(event('mcp.decision', 200, `,"findings":["${'x'.repeat(9_000_000)}"]`), true);
    expect(list(recent)).toEqual([]);
  });
});
