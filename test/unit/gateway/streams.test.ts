import { describe, expect, it } from 'vitest';
import { anonymousPrincipal } from '../../../src/auth/principal.js';
import { createStreamRegistry, MAX_STREAMS_A_CALLER } from '../../../src/gateway/streams.js';

const anna = anonymousPrincipal({ resource: 'http://127.0.0.1/a' });

function stream(upstream: string, ended: string[] = []) {
  return {
    upstream,
    principal: anna,
    session: undefined,
    announce: () => undefined,
    end: () => void ended.push(upstream),
  };
}

describe('the registry of streams', () => {
  it('[G-80] gives one caller no more than its share, and the room back when streams end', () => {
    const counts: number[] = [];
    const registry = createStreamRegistry((_upstream, delta) => counts.push(delta));
    const leave = Array.from({ length: MAX_STREAMS_A_CALLER }, () =>
      registry.register(stream('one')),
    );
    expect(registry.hasCapacity('one', anna)).toBe(false);
    expect(registry.hasCapacity('two', anna)).toBe(true);
    leave[0]?.();
    leave[0]?.();
    expect(registry.hasCapacity('one', anna)).toBe(true);
    expect(counts.filter((delta) => delta === -1)).toHaveLength(1);
    expect(registry.size).toBe(MAX_STREAMS_A_CALLER - 1);
  });
});
