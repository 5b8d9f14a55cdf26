// Values that the tests of observe/ share: a record of a call, a gateway, a signer, counted meters.

import { createHash } from 'node:crypto';
import type { AuditMeters } from '../../../src/audit/audit.js';
import type { EventContext } from '../../../src/audit/event.js';
import type { Approval, ApprovalAnswer } from '../../../src/policy/approval.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';

export const NOW = Date.UTC(2026, 10, 20, 9, 30, 0, 123);

export const ring = createKeyRing([{ id: 'sample', bytes: createHash('sha256').update('sample').digest() }]);

export const versions = { config: 'c0', policy: 'p0', pins: 'l0' };

export const context: EventContext = {
  gateway: { instance: 'run-1', version: '0.1.0', ...versions },
  nowMs: NOW,
};

export const principal = {
  issuer: 'corp',
  issuerUrl: 'https://idp.example.com',
  subject: 'alice',
  client: 'cli',
  groups: ['eng'],
  scopes: ['github:read'],
  claims: {},
  actors: [{ issuer: 'https://idp.example.com', subject: 'agent-7' }],
  token: {
    id: 'token-digest',
    audience: 'https://mcp.example.com/github',
    expiresAt: NOW + 60_000,
    binding: 'none',
  },
  // A test may make what only authn makes.
} as unknown as Principal;

export function sampleRecord(change: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id: '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11',
    receivedAt: NOW,
    startedMs: 0,
    upstream: 'github',
    httpMethod: 'POST',
    principal,
    client: {
      ip: '192.0.2.7',
      era: '2025',
      version: '2025-11-25',
      session: 'session-digest',
      selfReported: { name: 'inspector', version: '1.0' },
    },
    target: {
      method: 'tools/call',
      receivedMethod: 'tools/call',
      kind: 'tool',
      name: 'get_issue',
      shownAs: undefined,
      definition: 'd'.repeat(64),
      pin: 'd'.repeat(64),
      requestId: 7,
      uris: [],
    },
    args: { digest: 'args-digest', bytes: 21, keys: ['owner'], captured: {} },
    decision: {
      verdict: 'allow',
      action: 'forwarded',
      stage: 'forward',
      policy: 'github',
      rule: 'engineers-read',
      reasons: [],
      mode: 'enforce',
      shadow: [],
    },
    findings: [],
    result: {
      status: 'ok',
      http: 200,
      rpcCode: undefined,
      bytes: 512,
      digest: 'result-digest',
      list: undefined,
    },
    latency: { auth: 0.1, policy: 0.2, inspect: 0.3, upstream: 12 },
    trace: undefined,
    ...change,
  };
}

/** An approval of the call of `sampleRecord`, which a reviewer has to give. */
export function sampleApproval(change: Partial<Approval> = {}): Approval {
  return {
    id: 'approval-1',
    subject: {
      caller: {
        issuer: principal.issuerUrl,
        issuerName: 'corp',
        subject: 'alice',
        client: 'cli',
        match: undefined,
        actors: [{ issuer: principal.issuerUrl, subject: 'agent-7' }],
      },
      upstream: 'github',
      method: 'tools/call',
      name: 'get_issue',
      digest: 'digest-1',
      remembered: undefined,
      args: 'args-digest',
      pin: 'd'.repeat(64),
      rules: 'r'.repeat(64),
    },
    demand: {
      rules: ['github/ask'],
      reasons: ['it deletes'],
      caller: undefined,
      reviewer: { groups: [], count: 1 },
      expiresMs: 600_000,
      useMs: 120_000,
    },
    shown: 'e'.repeat(64),
    decisionId: '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11',
    createdAtMs: NOW,
    expiresAtMs: NOW + 600_000,
    answers: [],
    state: 'waiting',
    usableUntilMs: undefined,
    rememberedUntilMs: undefined,
    ...change,
  };
}

export function sampleAnswer(change: Partial<ApprovalAnswer> = {}): ApprovalAnswer {
  return {
    party: 'reviewer',
    verdict: 'granted',
    person: { issuer: 'https://staff.example.com', subject: 'rita', match: undefined },
    proof: 'login',
    atMs: NOW + 20_000,
    ...change,
  };
}

/** Meters that count what they are told, by `sink result`. */
export function countingMeters(): AuditMeters & {
  readonly counts: Map<string, number>;
  seq: number;
} {
  const counts = new Map<string, number>();
  return {
    counts,
    seq: -1,
    auditEvent(sink, result, count) {
      const key = `${sink} ${result}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    },
    auditWrite() {
      // What a running gateway says is in test/integration/metrics.test.ts.
    },
    setAuditQueue() {
      // The queue is asserted through the sink.
    },
    setChainSeq(seq) {
      this.seq = seq;
    },
  };
}

/** Waits until something holds; fails the test after two thousand turns of 5 ms. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2000; turn += 1) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('it never came to hold');
}
