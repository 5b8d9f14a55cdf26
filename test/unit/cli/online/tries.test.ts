import { describe, expect, it } from 'vitest';
import {
  checkCertificate,
  checkClock,
  checkPins,
  countTries,
  remedyFor,
  renderTries,
  type Try,
  triesAsDiagnostics,
} from '../../../../src/cli/online/tries.js';
import type { ItemDifference } from '../../../../src/pins/lock-differences.js';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const DAY = 24 * 60 * 60 * 1000;

describe('[E-64] a clock', () => {
  const clock = (statedMs: number, answeredMs = NOW) =>
    checkClock('issuer corp', { statedMs, resolutionMs: 1000, askedMs: NOW, answeredMs });

  it('agrees where the stated time lies within the request, however long that took, or a few seconds beside it', () => {
    for (const statedMs of [NOW - 5_900, NOW, NOW + 4_900]) expect(clock(statedMs).state).toBe('ok');
    expect(clock(NOW + 30_000, NOW + 40_000).state).toBe('ok');
  });

  it.each([
    [NOW + 9_000, 'is 9s ahead of this machine'],
    [NOW - 10_000, 'is 9s behind this machine'],
    [NOW + 3_600_000, 'is 1h ahead of this machine'],
  ])('%d is a warning', (statedMs, cause) => {
    expect(clock(statedMs)).toMatchObject({ what: 'clock of issuer corp', state: 'warning', cause });
  });

  it('was not tried where no time was stated', () => {
    expect(checkClock('store', undefined).state).toBe('not tried');
  });
});

describe('[E-64] a certificate', () => {
  it.each([
    [{ expiresAtMs: NOW - 1 }, 'failed', 'expired on 2026-03-01'],
    [{ expiresAtMs: NOW + 13 * DAY }, 'warning', 'expires on 2026-03-14'],
    [{ expiresAtMs: NOW + 90 * DAY }, 'ok', 'is valid until 2026-05-30'],
    [
      { expiresAtMs: NOW + 90 * DAY, missingHost: 'mcp.example.com' },
      'warning',
      'does not name mcp.example.com, the host of publicUrl',
    ],
  ])('%j is %s', (certificate, state, cause) => {
    expect(checkCertificate('listener data', certificate, NOW)).toMatchObject({ state, cause });
  });
});

describe('[E-64] pins', () => {
  const difference = (name: string, change: ItemDifference['change']): ItemDifference => ({
    ...{ kind: 'tool', name, change, changes: [change], before: 'a', after: 'b' },
    ...{ beforeDefinition: undefined, afterDefinition: undefined },
  });

  it('that differ are named, and how many others there are', () => {
    const differences = Array.from({ length: 10 }, (_, index) => difference(`t${index}`, 'new-tool'));
    const checked = checkPins('github', { differences, pending: 0, firstUse: 0 });
    expect(checked.state).toBe('failed');
    expect(checked.cause).toMatch(/^10 differences: tool t0 \(new-tool\), .*tool t7 \(new-tool\) and 2 more$/);
  });

  it('that wait for a person are said, and are no drift', () => {
    expect(checkPins('github', { differences: [], pending: 2, firstUse: 1 })).toEqual({
      ...{ what: 'pins of github', state: 'ok' },
      cause: 'no drift, 2 pending approval, 1 not reviewed (trust on first use)',
    });
    expect(checkPins('github', { differences: [], pending: 0, firstUse: 0 }).cause).toBe('as pinned');
  });
});

describe('[E-64] what is printed', () => {
  const tries: readonly Try[] = [
    { what: 'issuer corp', state: 'ok', cause: 'metadata and keys' },
    { what: 'store', state: 'failed', cause: 'no connection (ECONNREFUSED)', remedy: 'start it' },
    { what: 'upstream \u001b[31m', state: 'not tried', cause: 'none' },
  ];

  it('is a line for each try, what failed first, with nothing that a terminal would obey', () => {
    expect(renderTries(tries).split('\n')).toEqual([
      'failed    store: no connection (ECONNREFUSED); start it',
      String.raw`not tried upstream \u{1b}[31m: none`,
      'ok        issuer corp: metadata and keys',
      '',
    ]);
    expect(countTries(tries)).toBe('1 failed, 1 not tried, 1 ok');
  });

  it('is a diagnostic of the gateway file where a program asks, except for what is well', () => {
    expect(triesAsDiagnostics(tries, '/srv/gateway.yaml').map(({ severity, message }) => [severity, message])).toEqual([
      ['error', 'store: no connection (ECONNREFUSED); start it'],
      ['note', String.raw`upstream \u{1b}[31m: none`],
    ]);
  });

  it.each([
    [
      'it cannot be reached, or answered that it is not available (ENOTFOUND)',
      'correct the host name under upstreams.a',
    ],
    ['it cannot be reached (DEPTH_ZERO_SELF_SIGNED_CERT)', 'let it be verified'],
    ['the metadata does not resolve to a public address', 'correct the host under upstreams.a'],
    ['the token endpoint refused with invalid_client', 'correct the client id'],
    ['the metadata could not be reached (ECONNREFUSED)', 'start it'],
    ['something else', 'correct what is written under upstreams.a'],
  ])('%s has a remedy', (cause, remedy) => {
    expect(remedyFor(cause, 'upstreams.a')).toContain(remedy);
  });
});
