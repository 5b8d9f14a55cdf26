// The cookies of pages, and how often one may try.

import { describe, expect, it } from 'vitest';
import { ATTEMPTS_PER_MINUTE, createAttempts, createCookies } from '../../../src/http/browser.js';

describe('cookies', () => {
  it('have a name that no other host can set where the page is reached by https', () => {
    expect(createCookies(true).set('one', 'x', 300_000)).toBe(
      '__Host-one=x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=300',
    );
    expect(createCookies(false).set('one', 'x')).toBe('one=x; Path=/; HttpOnly; SameSite=Lax');
  });

  it.each([
    ['one=a', 'a'],
    ['other=b; one=a', 'a'],
    ['one=', ''],
    ['one=a; one=b', undefined],
    ['ones=a', undefined],
    ['x-one=a', undefined],
    ['', undefined],
  ])('are read from %j', (header, value) => {
    expect(createCookies(false).read({ cookies: [header] }, 'one')).toBe(value);
  });

  it('are named by how they begin, with the prefix that they were set with', () => {
    const sent = { cookies: ['__Host-one-a=1; one-b=2; __Host-two=3; one'] };
    expect(createCookies(true).namesOf(sent, 'one')).toEqual(['one-a']);
    expect(createCookies(false).namesOf(sent, 'one')).toEqual(['one-b']);
  });
});

describe('attempts', () => {
  it('are counted by network, and come back with time', () => {
    let now = 0;
    const mayTry = createAttempts(() => now);
    const all = (key: string) => Array.from({ length: ATTEMPTS_PER_MINUTE + 1 }, () => mayTry(key));
    expect(all('2001:db8::1').filter(Boolean)).toHaveLength(ATTEMPTS_PER_MINUTE);
    expect(mayTry('2001:db8::2')).toBe(false);
    expect(mayTry('2001:db8:1::2')).toBe(true);
    expect(mayTry('192.0.2.1')).toBe(true);
    now = 2_000;
    expect(mayTry('2001:db8::1')).toBe(true);
    expect(mayTry('2001:db8::1')).toBe(false);
  });
});
