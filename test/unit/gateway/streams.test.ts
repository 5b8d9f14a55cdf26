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
  it('[G-80] gives one caller no more than its quota, and counts it until each stream has ended', () => {
    const registry = createStreamRegistry(() => undefined);
    const reserved = Array.from({ length: MAX_STREAMS_A_CALLER }, () =>
      registry.reserve('one', anna),
    );
    expect(registry.reserve('one', anna)).toBeUndefined();
    expect(registry.reserve('two', anna)).toBeDefined();
    reserved[0]?.release();
    reserved[0]?.release();
    expect(registry.size).toBe(MAX_STREAMS_A_CALLER);
    expect(registry.reserve('one', anna)).toBeDefined();
    expect(registry.reserve('one', anna)).toBeUndefined();
  });

  it('[G-80] reports a stream as open from its opening, and announces on open streams alone', () => {
    const counts: number[] = [];
    const announced: string[] = [];
    const registry = createStreamRegistry((_upstream, delta) => counts.push(delta));
    const [first, second] = [registry.reserve('one', anna), registry.reserve('one', anna)];
    registry.announce('one', 'early');
    first?.open({ ...stream('one'), announce: (method) => void announced.push(method) });
    registry.announce('one', 'open');
    first?.release();
    second?.release();
    registry.announce('one', 'late');
    expect(announced).toEqual(['open']);
    expect(counts).toEqual([1, -1]);
    expect(registry.size).toBe(0);
  });
});
