import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoUpstream, startDemoUpstream } from '../../../src/dev/demo-upstream.js';
import { printAudit, printCheck, runTour, stripControls } from '../../../src/dev/tour.js';
import { SCENES } from '../../../src/dev/tour-scenes.js';
import { createPaint } from '../../../src/text/terminal.js';

let desk: DemoUpstream;
beforeAll(async () => {
  desk = await startDemoUpstream({ seed: 'tour' });
});
afterAll(() => desk.close());

const PLAIN = createPaint(false);

describe('the tour against a server without a gateway', () => {
  it('[D-08] announces each scene before its calls, compares after, and fails', async () => {
    const printed: string[] = [];
    const callsAtAnnouncement: number[] = [];
    let calls = 0;
    const exit = await runTour({
      url: desk.url,
      mint: () => Promise.resolve('not-a-token'),
      upstream: {
        ...desk,
        seen: () => {
          calls += 1;
          return desk.seen();
        },
      },
      readAudit: () => Promise.resolve([]),
      write: (text) => {
        if (text.includes('expect')) {
          callsAtAnnouncement.push(calls);
          calls = 0;
          desk.forget();
        }
        printed.push(text);
      },
      hasColor: false,
    });
    const text = printed.join('');
    expect(exit).toBe(1);
    expect(callsAtAnnouncement).toHaveLength(SCENES.length);
    expect(callsAtAnnouncement[0]).toBe(0);
    for (const scene of SCENES) {
      const title = text.indexOf(scene.title);
      expect(title).toBeGreaterThan(-1);
      expect(text.indexOf(scene.expect)).toBeGreaterThan(title);
    }
    // Each defence is missed where it is missing: only an honest answer is as announced.
    expect(text).toMatch(/✗ the upstream received no token/);
    expect(text).toMatch(/✗ export_all get_ticket list_tickets search_docs/);
    expect(text).toMatch(/✗ neither secret is in the response — seen: 2 secrets/);
    expect(text).toMatch(/✗ no active content/);
    expect(text).toMatch(/✗ hidden from the list/);
    expect(text).toMatch(/✗ HTTP 401 — seen: HTTP 200/);
    expect(text).toMatch(/✗ HTTP 404 — seen: HTTP 200/);
    expect(text).toMatch(/✗ the upstream received nothing — seen: delete_ticket/);
    expect(text).toMatch(/13 of 13 outcomes differ/);
  });

  it('[D-08] counts a scene that cannot be played as a difference', async () => {
    const exit = await runTour({
      url: desk.url,
      mint: () => Promise.reject(new Error('the issuer is down')),
      upstream: desk,
      readAudit: () => Promise.resolve([]),
      write: () => undefined,
      hasColor: false,
    });
    expect(exit).toBe(1);
  });
});

describe('the print of the tour', () => {
  it('[D-08] shows what was seen only where a comparison fails', () => {
    expect(printCheck(PLAIN, { what: 'HTTP 404', holds: true, seen: 'HTTP 404' })).toBe('    ✓ HTTP 404\n');
    expect(printCheck(PLAIN, { what: 'HTTP 404', holds: false, seen: 'HTTP 200' })).toBe(
      '    ✗ HTTP 404 — seen: HTTP 200\n',
    );
  });

  it('[D-08] colours on a terminal and never without one', () => {
    const check = { what: 'fine', holds: true, seen: '' };
    const control = String.fromCodePoint(0x1b);
    expect(printCheck(createPaint(true), check)).toContain(control);
    expect(printCheck(PLAIN, check)).not.toContain(control);
  });

  it('[D-08] prints foreign text without control or format characters', () => {
    const hostile = `a${String.fromCodePoint(0x1b)}[2J\r\n${String.fromCodePoint(0x202e)}b`;
    expect(stripControls(hostile)).toBe('a·[2J···b');
  });

  it('[IN-06] leaves out handshakes, lists and repetitions, and shows ten rows at most', () => {
    const event = (method: string, name: string, decision: object, more: object = {}) =>
      JSON.stringify({
        type: 'mcp.outcome',
        time: '2026-11-20T10:00:00.123Z',
        actor: { sub: 'engineer' },
        target: { method, name },
        decision: { id: `${method}${name}${JSON.stringify(decision)}`, ...decision },
        ...more,
      });
    const allow = { verdict: 'allow', rule: 'a-rule', reasons: [] };
    const deny = (reason: string) => ({ verdict: 'deny', reasons: [reason] });
    const handshake = ['initialize', 'notifications/initialized', 'tools/list', 'DELETE'];
    const shown = printAudit(PLAIN, [
      ...handshake.map((method) => event(method, '', allow)),
      event('tools/call', 'one', allow),
      event('tools/call', 'two', allow),
      event('', '', deny('header-mismatch')),
      event('tools/call', 'three', deny('no-matching-allow')),
      event('tools/call', 'four', deny('no-matching-allow')),
      event('tools/list', '', { ...allow, rule: 'another' }, { findings: [{ detector: 'd', action: 'strip' }] }),
    ]);
    const names = shown.split('\n').map((line) => line.slice(27).trim().split(/ {2,}/)[0]);
    expect(names).toEqual(['one', 'three', 'tools/list', '']);
    const refusals = Array.from({ length: 20 }, (_, n) => event('tools/call', `t${n}`, deny(`r${n}`)));
    expect(printAudit(PLAIN, refusals).match(/\n/g)).toHaveLength(10);
  });

  it('[IN-06] names three kinds of findings and counts the rest', () => {
    const findings = ['a', 'b', 'c', 'd', 'e'].map((detector) => ({ detector, action: 'flag' }));
    const event = {
      type: 'mcp.outcome',
      target: { method: 'tools/call', name: 'x' },
      decision: { id: '1', verdict: 'allow', reasons: [] },
      findings,
    };
    expect(printAudit(PLAIN, [JSON.stringify(event)])).toContain('flag a, flag b, flag c and 2 more');
    // On a narrow terminal they stand below, in lines that fit.
    const lines = printAudit(PLAIN, [JSON.stringify(event)], 40).split('\n');
    expect(lines.slice(1)).toEqual(['            flag a, flag b, flag c and 2', '            more', '']);
  });

  it('[D-08] shows one row an exchange, its outcome over its decision, and other events', () => {
    const exchange = {
      type: 'mcp.decision',
      time: '2026-11-20T10:00:00.123Z',
      actor: { sub: 'support' },
      target: { method: 'tools/call', name: 'get_customer' },
      decision: { id: 'one', verdict: 'allow', rule: 'support-reads-customers', reasons: [] },
      findings: [],
    };
    const found = [{ detector: 'card', action: 'redact' }];
    const lines = [
      exchange,
      { ...exchange, type: 'mcp.outcome', findings: found },
      {
        type: 'pin.drift',
        time: exchange.time,
        target: { name: 'get_ticket' },
        detail: { change: 'description' },
      },
      {
        type: 'auth.failure',
        time: exchange.time,
        decision: { id: 'two', verdict: 'deny', reasons: ['token-audience'] },
      },
      { type: 'checkpoint', time: exchange.time },
    ].map((event) => JSON.stringify(event));
    expect(printAudit(PLAIN, [...lines, 'not json'])).toBe(
      [
        '  10:00:00  allow  support  get_customer      support-reads-customers  redact card\n',
        '  10:00:00  note   -        drift get_ticket  description\n',
        '  10:00:00  deny   -        auth.failure      token-audience\n',
      ].join(''),
    );
  });
});
