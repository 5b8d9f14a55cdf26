import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AuditEvent, buildEvent, decisionEvent, type EventText, outcomeEvent } from '../../../src/audit/event.js';
import type { Principal } from '../../../src/policy/principal.js';
import { type Finding, fold, type RequestRecord } from '../../../src/policy/record.js';
import { cleanForeign, MAX_FOREIGN_CHARACTERS } from '../../../src/text/escaping.js';
import { context, NOW, principal, sampleRecord } from './samples.js';

const EPOCH = 'the-epoch';

type Parsed = Record<string, unknown>;

function lineOf(event: EventText): string {
  return `${event.before}${EPOCH}${event.after},"chain":{"seq":0,"prev":"","hash":""}}`;
}

function parsed(event: EventText): Parsed {
  return JSON.parse(lineOf(event)) as Parsed;
}

/** The members of a line that leaves nothing out. */
const DECIDED = 'schema id time type gateway actor client target args decision findings trace chain';
const ENDED = 'schema id time type gateway actor target decision findings result latency_ms chain';

/** Strings that break lines, terminals, JSON, or what a reader believes to see. */
const HOSTILE = [
  'line\r\nbreak',
  '\u001b[31mred\u001b[0m\u009b31m',
  'a\u2028b\u2029c\u0085d',
  '","decision":{"verdict":"allow"},"x":"',
  '\\"},{"',
  'user\u202egnp.exe\u2066x',
  'zero\u200bwidth\u{e0041}\ufe0f\u00ad',
  'nul\u0000bell\u0007',
  '\ud800 lone \udc00',
];

describe('decisionEvent and outcomeEvent', () => {
  const finding: Finding = {
    detector: 'x',
    direction: 'to-client',
    path: '/a',
    count: 1,
    action: 'flag',
  };
  const full = () =>
    sampleRecord({
      findings: [finding],
      trace: {
        ...{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), parentId: undefined, upstreamSpanId: '3'.repeat(16) },
        ...{ isSampled: true, isCallers: false, links: [] },
      },
    });
  const namesOf = (event: EventText): string => Object.keys(parsed(event)).join(' ');
  /** A record whose decision has been written. */
  const decided = (change: Partial<RequestRecord> = {}): RequestRecord => {
    const record = sampleRecord(change);
    decisionEvent(record, context);
    return record;
  };

  it('[O-01] have the members of sallyport.audit/2 in their order', () => {
    const record = full();
    expect(namesOf(decisionEvent(record, context))).toBe(DECIDED);
    expect(namesOf(outcomeEvent(record, context, 20))).toBe(ENDED);
  });

  it.each<[string, Partial<Finding>, boolean]>([
    ['a redaction', { action: 'redact' }, true],
    ['what was made inert', { action: 'neutralize' }, true],
    ['a removal', { action: 'strip' }, true],
    ['what was left out', { action: 'drop' }, true],
    ['a flag', { action: 'flag' }, false],
    ['what was cut from the request', { action: 'drop', direction: 'to-upstream' }, false],
  ])('an outcome says whether the result was altered: %s', (_what, change, isAltered) => {
    const record = sampleRecord({ findings: [{ ...finding, ...change }] });
    const { result } = parsed(outcomeEvent(record, context, 20));
    expect((result as Parsed)['altered']).toBe(isAltered ? true : undefined);
  });

  it('an outcome that was withheld altered nothing', () => {
    const record = sampleRecord({ findings: [{ ...finding, action: 'redact' }] });
    const { decision } = record;
    const withheld = { ...record, decision: { ...decision, action: 'withheld' as const } };
    expect(parsed(outcomeEvent(withheld, context, 20))['result']).not.toHaveProperty('altered');
  });

  it('[O-01] a decision says who, what, why and under which files', () => {
    const event = parsed(decisionEvent(sampleRecord(), context));
    expect(event).toEqual({
      schema: 'sallyport.audit/2',
      id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      time: '2026-11-20T09:30:00.123Z',
      type: 'mcp.decision',
      gateway: { epoch: EPOCH, config: 'c0', policy: 'p0', pins: 'l0' },
      actor: {
        iss: 'https://idp.example.com',
        sub: 'alice',
        client_id: 'cli',
        act: [{ iss: 'https://idp.example.com', sub: 'agent-7' }],
        token: {
          id: 'token-digest',
          aud: 'https://mcp.example.com/github',
          scopes: ['github:read'],
          exp: (NOW + 60_000) / 1000,
        },
      },
      client: {
        ip: '192.0.2.7',
        self_reported: { name: 'inspector', version: '1.0' },
        era: '2025',
        session: 'session-digest',
      },
      target: {
        upstream: 'github',
        method: 'tools/call',
        name: 'get_issue',
        kind: 'tool',
        pin: 'd'.repeat(64),
        request_id: 7,
      },
      args: { digest: 'args-digest', bytes: 21, keys: ['owner'] },
      decision: {
        id: '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11',
        verdict: 'allow',
        policy: 'github',
        rule: 'engineers-read',
      },
      chain: expect.anything(),
    });
  });

  it('[O-01] an outcome says who called what and how it ended, and leaves the rest to its decision', () => {
    expect(parsed(outcomeEvent(decided(), context, 20.12345))).toEqual({
      schema: 'sallyport.audit/2',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      time: '2026-11-20T09:30:00.123Z',
      type: 'mcp.outcome',
      gateway: { epoch: EPOCH },
      actor: { iss: 'https://idp.example.com', sub: 'alice', client_id: 'cli' },
      target: { upstream: 'github', method: 'tools/call', name: 'get_issue' },
      decision: { id: '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11', verdict: 'allow' },
      result: { status: 'ok', http: 200, bytes: 512, digest: 'result-digest' },
      latency_ms: { total: 20.123, auth: 0.1, policy: 0.2, inspect: 0.3, upstream: 12 },
      chain: expect.anything(),
    });
  });

  it('[O-01] says at which stage and why what was not forwarded ended', () => {
    const { decision } = sampleRecord();
    const reasons = ['result-content' as const];
    const withheld = { ...decision, action: 'withheld', stage: 'inspect', reasons } as const;
    const end = { action: 'withheld', stage: 'inspect', reasons };
    const record = decided({ decision: { ...withheld, reasons: [...reasons] } });
    expect(parsed(outcomeEvent(record, context, 1))['decision']).toMatchObject(end);
    expect(parsed(decisionEvent(record, context))['decision']).toMatchObject(end);
  });

  it('[O-01] a definition that is not as pinned is named, also where none was seen', () => {
    const { target } = sampleRecord();
    for (const definition of ['e'.repeat(64), undefined]) {
      const record = sampleRecord({ target: { ...target, definition } });
      expect(parsed(decisionEvent(record, context))['target']).toMatchObject({
        definition: definition ?? null,
        pin: target.pin,
      });
    }
  });

  it('[O-02] both events of an exchange carry one decision id, and ids of their own', () => {
    const record = sampleRecord();
    const before = parsed(decisionEvent(record, context));
    const after = parsed(outcomeEvent(record, context, 1));
    expect(after['decision']).toMatchObject({ id: record.id });
    expect(before['decision']).toMatchObject({ id: record.id });
    expect(before['id']).not.toBe(after['id']);
  });

  it('[O-02] an outcome names the session that its request opened', () => {
    const { client } = sampleRecord();
    const record = decided({ client: { ...client, session: undefined } });
    expect(parsed(outcomeEvent(record, context, 1))).not.toHaveProperty('client');
    fold(record, { client: { session: 'opened' } });
    expect(parsed(outcomeEvent(record, context, 1))['client']).toEqual({ session: 'opened' });
  });

  it('[O-02] an outcome whose decision could not be written has all of it itself', () => {
    const { decision } = sampleRecord();
    const record = decided({
      decision: { ...decision, action: 'refused', reasons: ['audit-unavailable'] },
    });
    const { id: _, type: __, ...members } = parsed(decisionEvent(record, context));
    expect(parsed(outcomeEvent(record, context, 1))).toMatchObject(members);
  });

  it('[O-06] a call leaves at most 1.8 KB, with hashes and names of the usual length', () => {
    const hash = 'a'.repeat(64);
    const hmac = 'b'.repeat(43);
    const base = sampleRecord();
    const { actors: _, ...own } = principal;
    const record = sampleRecord({
      principal: {
        ...own,
        actors: [],
        scopes: [],
        token: { ...principal.token, id: hmac },
      } as unknown as Principal,
      versions: { config: hash, policy: hash, pins: hash },
      client: { ...base.client, session: undefined, selfReported: undefined },
      args: { digest: hmac, bytes: 1024, keys: ['text'], captured: {} },
      result: { ...base.result, digest: hmac, bytes: 1024 },
      latency: { auth: 0.041, policy: 0.015, inspect: 0.142, upstream: 12.345 },
    });
    const chain = `,"chain":{"seq":100000,"prev":"${hmac}","hash":"${hmac}"}}\n`;
    const lengthOf = ({ before, after }: EventText): number => before.length + 36 + after.length + chain.length;
    const length = lengthOf(decisionEvent(record, context)) + lengthOf(outcomeEvent(record, context, 20.123));
    expect(length).toBeLessThan(1800);
  });

  it('[O-03] carries the versions that the exchange was decided under', () => {
    const versions = { config: 'c1', policy: 'p1', pins: 'l1' };
    const event = parsed(decisionEvent(sampleRecord({ versions }), context));
    expect(event['gateway']).toMatchObject(versions);
  });

  it('[O-04] is one line of printable ASCII, whatever anyone wrote anywhere', () => {
    fc.assert(
      fc.property(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary' })), (text) => {
        const base = sampleRecord();
        const record = sampleRecord({
          principal: {
            ...principal,
            subject: text,
            client: text,
            scopes: [text],
            actors: [{ subject: text }],
          } as unknown as Principal,
          client: { ...base.client, ip: text, selfReported: { name: text, version: text } },
          target: {
            ...base.target,
            method: undefined,
            receivedMethod: text,
            name: text,
            pin: undefined,
            requestId: text,
          },
          args: { digest: 'd', bytes: 1, keys: [text], captured: { [text]: text } },
          findings: [{ detector: 'x', direction: 'to-client', path: text, count: 1, action: 'flag' }],
        });
        const line = lineOf(decisionEvent(record, context));
        expect(line).toMatch(/^[\x20-\x7e]+$/);
        const event = JSON.parse(line) as Parsed;
        expect(Object.keys(event).join(' ')).toBe(DECIDED.replace(' trace', ''));
        expect(event).toMatchObject({ decision: { verdict: 'allow', rule: 'engineers-read' } });
        // What was verified is kept exactly.
        expect(event).toMatchObject({ actor: { sub: text, client_id: text } });
      }),
    );
  });

  it('[O-05] names what was refused of arguments by pointer and keyword', () => {
    const violations = [{ pointer: '/a\u202e', keyword: 'enum' }];
    const args = { digest: 'd', bytes: 1, keys: ['a'], captured: {}, violations };
    const event = parsed(decisionEvent(sampleRecord({ args }), context));
    expect(event['args']).toMatchObject({
      violations: [{ pointer: '/a\\u{202e}', keyword: 'enum' }],
    });
    const allowed = parsed(decisionEvent(sampleRecord({ args: { ...args, violations: [] } }), context));
    expect(allowed['args']).not.toHaveProperty('violations');
  });

  it('[O-05] cuts, escapes and masks what others wrote', () => {
    const base = sampleRecord();
    const jwt = ['eyJhbGciOiJFUzI1NiJ9', 'eyJzdWIiOiJhIn0', 'c2ln'].join('.');
    const record = sampleRecord({
      client: { ...base.client, selfReported: { name: 'x'.repeat(5000), version: `v ${jwt}` } },
      target: { ...base.target, name: `tool\u001b[2J${jwt}`, pin: undefined },
    });
    const event = parsed(decisionEvent(record, context));
    expect(event).toMatchObject({
      client: { self_reported: { name: `${'x'.repeat(127)}\u2026`, version: 'v [redacted]' } },
      target: { name: 'tool\\u{1b}[2J[redacted]' },
    });
  });

  it('[O-05] uses the further mask that it is given', () => {
    const base = sampleRecord();
    const record = sampleRecord({
      target: { ...base.target, name: 'a name with hunter2hunter2 in it', pin: undefined },
    });
    const mask = (text: string) => text.replaceAll('hunter2hunter2', '[redacted:password]');
    expect(parsed(decisionEvent(record, { ...context, mask }))).toMatchObject({
      target: { name: 'a name with [redacted:password] in it' },
    });
  });

  it('[O-05] is never longer than the cut, and cuts no character in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 100, maxLength: 400 }), (text) => {
        const clean = cleanForeign(text);
        expect(clean.length).toBeLessThanOrEqual(MAX_FOREIGN_CHARACTERS);
        expect(clean).not.toMatch(/\p{Surrogate}|[\p{Cc}\p{Cf}\u2028\u2029]/u);
      }),
    );
  });

  it('[O-06] bounds a line, however much was listed', () => {
    const keys = Array.from({ length: 10_000 }, (_, index) => `key-${index}`);
    const base = sampleRecord();
    const finding = { detector: 'x', direction: 'to-client', path: '/a', count: 1, action: 'flag' } as const;
    const findings = Array.from({ length: 10_000 }, () => finding);
    const record = sampleRecord({ args: { digest: 'd', bytes: 1, keys, captured: {} }, findings });
    expect(lineOf(outcomeEvent(record, context, 1)).length).toBeLessThan(64 * 1024);
    expect(base.findings).toEqual([]);
  });

  it('[O-06] writes null for what JSON cannot say', () => {
    const base = sampleRecord();
    const token = { ...principal.token, expiresAt: Number.POSITIVE_INFINITY };
    const record = sampleRecord({
      principal: { ...principal, token } as unknown as Principal,
      latency: { ...base.latency, auth: Number.NaN },
    });
    expect(parsed(decisionEvent(record, context))).toMatchObject({
      actor: { token: { exp: null } },
    });
    expect(parsed(outcomeEvent(record, context, 1))).toMatchObject({ latency_ms: { auth: null } });
    expect(parsed(decisionEvent(sampleRecord({ principal: undefined }), context))).not.toHaveProperty('actor');
  });

  it('[G-81] say once how many refusals were only counted, even if a sink had no room for the decision', () => {
    const record = sampleRecord({ suppressed: 7, isDecisionLost: true });
    expect(parsed(decisionEvent(record, context))['detail']).toEqual({ suppressed: 7 });
    expect(parsed(outcomeEvent(record, context, 1))).not.toHaveProperty('detail');
  });
});

describe('auth.failure', () => {
  it('[O-07] says what was expected of a token and what it said, escaped, masked and cut', () => {
    const event: AuditEvent = {
      ...{ type: 'auth.failure', upstream: 'github', reason: 'token-issuer', decisionId: 'id' },
      ip: '192.0.2.1',
      refusedToken: {
        expected: {
          issuer: 'https://idp.example.com',
          audience: 'a b',
          type: 'at+jwt',
          lifetime: '3600s',
        },
        presented: {
          issuer: `x\u001b[2J${'y'.repeat(500)}`,
          audience: 'c\n"d',
          lifetime: '86400s',
        },
      },
    };
    const line = lineOf(buildEvent(event, context));
    expect(line).toMatch(/^[\x20-\x7e]+$/);
    const { detail } = JSON.parse(line) as { detail: Record<string, string> };
    expect(detail).toEqual({
      suppressed: 0,
      expected_issuer: 'https://idp.example.com',
      presented_issuer: expect.stringMatching(/^x\\u\{1b\}\[2Jy+\u2026$/),
      expected_audience: 'a b',
      presented_audience: 'c\\u{a}"d',
      expected_type: 'at+jwt',
      expected_lifetime: '3600s',
      presented_lifetime: '86400s',
    });
    expect(detail['presented_issuer']?.length).toBeLessThanOrEqual(128);
  });
});

describe('plainEvent', () => {
  const events: readonly AuditEvent[] = [
    {
      type: 'auth.failure',
      upstream: 'github',
      reason: 'token-expired',
      decisionId: 'id',
      ip: '192.0.2.1\r\n',
    },
    {
      type: 'pin.drift',
      upstream: 'github',
      kind: 'tool',
      name: 'x\u001b[0m',
      change: 'description',
      before: 'a',
      after: 'b',
    },
    {
      type: 'pin.approval',
      upstream: 'github',
      kind: 'tool',
      name: 'x',
      digest: 'a',
      by: 'ann\n',
      note: 'ok\u2028',
    },
    {
      type: 'pin.block',
      upstream: 'github',
      kind: 'tool',
      name: 'x',
      digest: undefined,
      by: 'ann',
      note: undefined,
    },
    { type: 'config.reload', result: 'rejected', faults: 3 },
    {
      type: 'admin.action',
      subject: undefined,
      action: 'GET /api/controls',
      status: 401,
      ip: '::1',
    },
    { type: 'lifecycle', event: 'started', detail: { public_key: 'k' } },
    { type: 'checkpoint', detail: { seq: 3 } },
  ];

  it.each(events.map((event) => [event.type, event] as const))(
    '[O-07] %s is one line with the gateway and the chain around it',
    (type, event) => {
      const line = lineOf(buildEvent(event, context));
      expect(line).toMatch(/^[\x20-\x7e]+$/);
      const value = JSON.parse(line) as Parsed;
      expect(value).toMatchObject({ type, gateway: { epoch: EPOCH, config: 'c0' } });
      expect(Object.keys(value).at(-1)).toBe('chain');
    },
  );
});
