// Who is verified for an aggregate's request when settings change while it waits, and which URIs a template names.

import { describe, expect, it } from 'vitest';
import type { Incoming, Outgoing } from '../../../../src/protocol/transport.js';
import { handleAggregateRequest, matchesTemplate } from '../../../../src/proxy/aggregate/pipeline.js';
import type { Ports } from '../../../../src/proxy/ports.js';
import { FREE_TURNS } from '../../../support/timing.js';
import { principal } from '../../policy/samples.js';

describe('a request to an aggregate during whose verification settings change', () => {
  it('[MRG-17] is verified until none has changed meanwhile', async () => {
    let changes = 0;
    let asked = 0;
    const reported: unknown[] = [];
    const sent: number[] = [];
    const aggregate = { name: 'all', backends: [], versions: {}, challenge: () => 'Bearer' };
    const token = { ...principal().token, expiresAt: Number.MAX_SAFE_INTEGER };
    const ports = {
      aggregates: { get: () => aggregate },
      leases: { countChanges: () => changes },
      identity: {
        // Each of the first two verifications sees the settings from before the change that it waits through.
        async authenticate() {
          asked += 1;
          if (changes === 2) return { reason: 'token-issuer' };
          changes += 1;
          return principal({ token });
        },
      },
      inspection: { loopScheduler: FREE_TURNS },
      audit: {
        report: (error: unknown) => void reported.push(error),
        closeRecord: () => undefined,
      },
    } as unknown as Ports;
    const incoming = {
      ...{ id: 'decision', upstream: 'all', httpMethod: 'GET', headers: {}, repeated: new Set() },
      ...{ startedMs: 0, receivedAt: 0 },
    } as unknown as Incoming;
    const outgoing = { send: (status: number) => void sent.push(status) } as unknown as Outgoing;
    await handleAggregateRequest(incoming, outgoing, ports, () => Promise.resolve());
    expect([reported, asked, sent]).toEqual([[], 3, [401]]);
  });
});

describe('[MRG-05] a URI and a template', () => {
  it.each([
    ['memo://notes/{id}', 'memo://notes/7', true],
    ['memo://notes/{id}', 'memo://notes/', true],
    ['memo://notes/{id}', 'memo://note/7', false],
    ['a://{x}/b/{y}.txt', 'a://1/b/2.txt', true],
    ['a://{x}/b/{y}.txt', 'a://1/2.txt', false],
    ['a://{x}/b', 'a://1/c', false],
    ['ab{x}bc', 'abc', false],
    ['a://fixed', 'a://fixed', true],
    ['a://fixed', 'a://other', false],
  ])('%s and %s: %s', (template, uri, fits) => {
    expect(matchesTemplate(template, uri)).toBe(fits);
  });
});
