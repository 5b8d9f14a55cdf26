import { describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../../src/policy/record.js';
import { createLogListeners } from '../../../src/telemetry/event-log.js';
import { createLog, type LogFields } from '../../../src/telemetry/log.js';
import { sampleRecord } from '../audit/samples.js';

function capture(level?: Parameters<typeof createLog>[1]) {
  const lines: string[] = [];
  return { lines, log: createLog((line) => lines.push(line), level) };
}

describe('createLog', () => {
  it('[O-50] writes one JSON line with the named fields only', () => {
    const { lines, log } = capture();
    const fields = { upstream: 'github', line: 8080, authorization: 'Bearer x', headers: { a: 1 } };
    log.write('info', 'listening', fields as LogFields);
    expect(lines).toHaveLength(1);
    const { time, ...rest } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    expect(rest).toEqual({ level: 'info', upstream: 'github', line: 8080, event: 'listening' });
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  it('[O-50] lets nothing break a line, act on a terminal, or leak a token', () => {
    const { lines, log } = capture();
    const jwt = ['eyJhbGciOiJFUzI1NiJ9', 'eyJzdWIiOiJhIn0', 'c2ln'].join('.');
    log.write('warn', 'fault', { detail: `a\r\nb\u001b[31m\u2028\u202e{"level":"x"} ${jwt}` });
    const text = lines.join('');
    expect(text.match(/\n/g)).toHaveLength(1);
    for (const bad of ['\u001b', '\u2028', '\u202e']) expect(text).not.toContain(bad);
    expect(text).not.toContain(jwt);
    expect(JSON.parse(text)).toMatchObject({
      detail: 'a\\u{d}\\u{a}b\\u{1b}[31m\\u{2028}\\u{202e}{"level":"x"} [redacted]',
    });
  });

  it('[O-50] is silent below its level, and logs a refusal at the level of its reason', () => {
    const { lines, log } = capture('warn');
    log.write('info', 'quiet');
    const { decision } = sampleRecord();
    const { ended } = createLogListeners(log, (text) => text);
    const end = (record: RequestRecord) => ended?.({ record, totalMs: 1, suppressed: 0 });
    const refuse = (reason: 'tool-changed' | 'no-matching-allow'): void =>
      end(sampleRecord({ decision: { ...decision, verdict: 'deny', reasons: [reason] } }));
    refuse('no-matching-allow');
    refuse('tool-changed');
    end(sampleRecord());
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      event: 'request refused',
      reason: 'tool-changed',
    });
  });

  it('[O-50] writes one line of text for a terminal, with the same fields and as safely', () => {
    const lines: string[] = [];
    const log = createLog((line) => lines.push(line), 'info', 'text');
    log.write('debug', 'below the level');
    log.write('info', 'upstream is reachable', {
      ...{ upstream: 'github', url: 'https://mcp.example.com/github', pinned: 12 },
      ...({ authorization: 'Bearer x' } as LogFields),
    });
    log.write('warn', 'definition differs from its pin', {
      name: 'a b="c"',
      detail: 'd\r\n\u001b[31m\u202e level=error',
    });
    log.write('error', 'gateway stopped');
    const times = lines.map((line) => line.slice(0, line.indexOf(' ')));
    for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(lines.map((line) => line.slice(line.indexOf(' ') + 1))).toEqual([
      'info  upstream is reachable upstream=github url=https://mcp.example.com/github pinned=12\n',
      'warn  definition differs from its pin name="a b=\\"c\\"" detail="d\\\\u{d}\\\\u{a}\\\\u{1b}[31m\\\\u{202e} level=error"\n',
      'error gateway stopped\n',
    ]);
  });
});
