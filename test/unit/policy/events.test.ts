import { describe, expect, it } from 'vitest';
import { createEvents } from '../../../src/policy/events.js';

const DRIFT = { upstream: 'desk', kind: 'tool', name: 'get', change: 'output', isPinned: true, suppressed: 0 };

describe('an event', () => {
  it('[O-40] reaches every listener, also behind one that throws, whose errors are counted and reported once', () => {
    const found: string[] = [];
    const reported: unknown[] = [];
    const broken = new Error('a bug');
    const { emit, errors } = createEvents(
      [
        {
          drifted() {
            throw broken;
          },
        },
        { drifted: ({ name }) => void found.push(name), listed: ({ upstream }) => void found.push(upstream) },
      ],
      (event, error) => reported.push([event, error]),
    );
    emit('drifted', DRIFT);
    emit('drifted', DRIFT);
    emit('listed', { upstream: 'desk' });
    emit('stopped', {});
    expect(found).toEqual(['get', 'get', 'desk']);
    expect(reported).toEqual([['drifted', broken]]);
    expect([...errors()]).toEqual([['drifted', 2]]);
  });

  it('[O-40] that cannot even be reported changes nothing for who emits it', () => {
    const { emit } = createEvents(
      [
        {
          listed() {
            throw new Error('a bug');
          },
        },
      ],
      () => {
        throw new Error('the log is broken too');
      },
    );
    expect(() => emit('listed', { upstream: 'desk' })).not.toThrow();
  });
});
