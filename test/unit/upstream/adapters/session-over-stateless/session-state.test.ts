// The notes of sessions that only the gateway knows: a caller who opens many forgets its own.

import { describe, expect, it } from 'vitest';
import {
  createSessionStates,
  MAX_SESSIONS,
  MAX_SESSIONS_PER_CALLER,
  receiveSessionMessage,
  type SessionStates,
} from '../../../../../src/upstream/adapters/session-over-stateless/session-state.js';

const ANN = 'ann';
const MORE_THAN_ALL = 10_001;

function open(book: SessionStates, who: string, count: number): void {
  for (let at = 0; at < count; at += 1) book.getOrCreate(`${who}-${at}`, who).logLevel = `l${at}`;
}

describe('[H-09] what sessions have said', () => {
  it('is not forgotten for another caller who opens many', () => {
    expect(MORE_THAN_ALL).toBeGreaterThan(MAX_SESSIONS);
    const book = createSessionStates();
    book.getOrCreate('first', ANN).logLevel = 'debug';
    open(book, 'many', MORE_THAN_ALL);
    expect(book.getOrCreate('first', ANN).logLevel).toBe('debug');
  });

  it('is forgotten in the order of its use, of one caller who opens many', () => {
    const book = createSessionStates();
    open(book, ANN, MAX_SESSIONS_PER_CALLER);
    book.getOrCreate('ann-0', ANN);
    book.getOrCreate('one-more', ANN);
    expect([
      book.find('ann-0')?.logLevel,
      book.find('ann-1'),
      book.find('ann-2')?.logLevel,
    ]).toEqual(['l0', undefined, 'l2']);
  });

  it('is bounded over all callers: the one used least lately goes', () => {
    const book = createSessionStates();
    book.getOrCreate('first', ANN).logLevel = 'debug';
    for (let at = 0; at < MAX_SESSIONS - 1; at += 1) book.getOrCreate(`s${at}`, `o${at}`);
    expect(book.find('first')?.logLevel).toBe('debug');
    book.getOrCreate('one-more', 'late');
    expect([book.find('first'), book.find('s0')]).toEqual([undefined, expect.anything()]);
  });

  it('ends with its session, whose place is free again and whose requests are given up', () => {
    const book = createSessionStates();
    open(book, ANN, MAX_SESSIONS_PER_CALLER);
    const controller = new AbortController();
    book.getOrCreate('ann-5', ANN).running.set(1, controller);
    book.forget('ann-5');
    expect(controller.signal.aborted).toBe(true);
    book.getOrCreate('one-more', ANN);
    expect([book.find('ann-5'), book.find('ann-0')?.logLevel]).toEqual([undefined, 'l0']);
  });

  it('is of its owner where another replica tells of it, too', () => {
    const book = createSessionStates();
    book.getOrCreate('first', ANN).logLevel = 'debug';
    const news = { kind: 'log-level', level: 'info' } as const;
    for (let at = 0; at < MORE_THAN_ALL; at += 1)
      receiveSessionMessage(book, { session: `s${at}`, owner: 'many', news });
    expect(book.find('first')?.logLevel).toBe('debug');
  });
});
