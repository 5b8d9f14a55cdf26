import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AuditEvent,
  buildEvent,
  decisionEvent,
  type EventText,
  outcomeEvent,
} from '../../../src/audit/event.js';
import type { Principal } from '../../../src/policy/principal.js';
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

const MEMBERS =
  'schema id time type gateway actor client target args decision findings result latency_ms trace chain'.split(
    ' ',
  );

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
  it('[O-01] has the members of sallyport.audit/1 in their order', () => {
    expect(Object.keys(parsed(decisionEvent(sampleRecord(), context)))).toEqual(MEMBERS);
    expect(Object.keys(parsed(outcomeEvent(sampleRecord(), context, 20)))).toEqual(MEMBERS);
  });

  it('[O-01] says who, what, why and how it ended', () => {
    const event = parsed(outcomeEvent(sampleRecord(), context, 20.12345));
    expect(event).toMatchObject({
      schema: 'sallyport.audit/1',
      time: '2026-11-20T09:30:00.123Z',
      type: 'mcp.outcome',
      gateway: {
        instance: 'run-1',
        epoch: EPOCH,
        version: '0.1.0',
        config: 'c0',
        policy: 'p0',
        pins: 'l0',
      },
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
          binding: 'none',
        },
        groups_used: [],
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
        kind: 'tool',
        name: 'get_issue',
        definition: 'd'.repeat(64),
        pin: 'd'.repeat(64),
        request_id: 7,
      },
      args: { digest: 'args-digest', bytes: 21, keys: ['owner'], captured: {} },
      decision: {
        id: '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11',
        verdict: 'allow',
        action: 'forwarded',
        mode: 'enforce',
        stage: 'forward',
        policy: 'github',
        rule: 'engineers-read',
        reasons: [],
        shadow: [],
      },
      findings: [],
      result: {
        status: 'ok',
        http: 200,
        rpc_code: null,
        bytes: 512,
        digest: 'result-digest',
        list: null,
      },
      latency_ms: { total: 20.123, auth: 0.1, policy: 0.2, inspect: 0.3, upstream: 12 },
      trace: null,
    });
    expect(event['id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it('[O-02] both events of an exchange carry one decision id, and ids of their own', () => {
    const decided = parsed(decisionEvent(sampleRecord(), context));
    const ended = parsed(outcomeEvent(sampleRecord(), context, 1));
    expect(decided['decision']).toEqual(ended['decision']);
    expect(decided['id']).not.toBe(ended['id']);
    expect(decided['result']).toBeNull();
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
          findings: [
            { detector: 'x', direction: 'to-client', path: text, count: 1, action: 'flag' },
          ],
        });
        const line = lineOf(decisionEvent(record, context));
        expect(line).toMatch(/^[\x20-\x7e]+$/);
        const event = JSON.parse(line) as Parsed;
        expect(Object.keys(event)).toEqual(MEMBERS);
        expect(event).toMatchObject({ decision: { verdict: 'allow', rule: 'engineers-read' } });
        // What was verified is kept exactly.
        expect(event).toMatchObject({ actor: { sub: text, client_id: text } });
      }),
    );
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
    const record = sampleRecord({ args: { digest: 'd', bytes: 1, keys, captured: {} } });
    record.findings = Array.from({ length: 10_000 }, () => ({
      detector: 'x',
      direction: 'to-client',
      path: '/a',
      count: 1,
      action: 'flag',
    }));
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
    expect(parsed(outcomeEvent(record, context, 1))).toMatchObject({
      actor: { token: { exp: null } },
      latency_ms: { auth: null },
    });
    expect(parsed(decisionEvent(sampleRecord({ principal: undefined }), context))).toMatchObject({
      actor: null,
    });
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
