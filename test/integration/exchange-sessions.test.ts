// Whose credential is shown where: calls, streams, their ends, the gateway's own listings, and the sessions
// that the gateway opens for callers of another era.

import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { claimsOf, type ExchangeRig, startExchangeRig } from '../support/deployments.js';
import { onlyIn, type UpstreamEra } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import { PATIENT } from '../support/timing.js';
import { honestAnswer } from '../support/tokens.js';
import { type Access, callStateless, openSession } from '../support/wire-client.js';

const CALLERS = ['bob', 'eve'];

async function rigFor(era?: UpstreamEra): Promise<ExchangeRig> {
  const rig = await startExchangeRig(era === undefined ? {} : { prepare: (upstream) => upstream.obey(onlyIn(era)) });
  rig.server.obey((request) =>
    honestAnswer(request, {
      claims: { sub: claimsOf(request.form.get('subject_token') ?? '')['sub'] },
    }),
  );
  return rig;
}

/** For whom a request was sent: the subject of what was exchanged, or the gateway. */
function sentFor({ headers }: HostileRequest): string {
  const bearer = headers['authorization'];
  if (bearer !== undefined) return String(claimsOf(bearer)['sub']);
  return headers['x-own'] === undefined ? 'nobody' : 'the gateway';
}

async function accessOf(rig: ExchangeRig, sub: string): Promise<Access> {
  return rig.as(await rig.gateway.token('target', { sub }));
}

describe.each<[string, UpstreamEra | undefined]>([
  ['of both eras', undefined],
  ['of sessions', 'sessions'],
  ['without sessions', 'stateless'],
])('an upstream %s', (_, era) => {
  let rig: ExchangeRig;
  beforeAll(async () => {
    rig = await rigFor(era);
  });
  beforeEach(() => rig.upstream.forget());
  afterAll(() => rig.close());

  it("[CRD-09] gets every caller's own token, from clients of both eras", async () => {
    for (const sub of CALLERS) {
      const access = await accessOf(rig, sub);
      rig.upstream.forget();
      expect((await callStateless(access, 'read_record', { id: sub })).status).toBe(200);
      const session = await openSession(access);
      await session.call('read_record', { id: sub });
      const gone = new AbortController();
      const headers = {
        authorization: `Bearer ${access.token}`,
        'mcp-session-id': session.id,
        accept: 'text/event-stream',
      };
      await fetch(access.url, { headers, signal: gone.signal });
      gone.abort();
      await session.end();
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(rig.upstream.uses().length).toBe(2);
      expect(new Set(rig.upstream.seen().map(sentFor))).toEqual(new Set([sub]));
    }
  });

  it('[CRD-09] never has one session for two callers', async () => {
    for (const sub of CALLERS) {
      const access = await accessOf(rig, sub);
      await callStateless(access, 'read_record', { id: sub });
      await callStateless(await accessOf(rig, sub), 'read_record', { id: sub });
    }
    const owners = new Map<string, Set<string>>();
    for (const request of rig.upstream.uses()) {
      const id = request.headers['mcp-session-id'];
      if (id === undefined) continue;
      owners.set(id, (owners.get(id) ?? new Set()).add(sentFor(request)));
    }
    for (const subjects of owners.values()) expect(subjects.size).toBe(1);
    if (era === 'sessions') expect(owners.size).toBe(CALLERS.length);
  });

  it('[CRD-09] is listed under the credential of the gateway', async () => {
    await rig.gateway.approvePins();
    expect(new Set(rig.upstream.seen().map(sentFor))).toEqual(new Set(['the gateway']));
  });
});

describe('a token that the upstream does not accept', () => {
  it('[CRD-08] costs the call, and the next one has another', async () => {
    const rig = await rigFor();
    try {
      const access = await accessOf(rig, 'bob');
      const args = { id: 'one' };
      const bad = new Set<string | undefined>();
      rig.upstream.obey((request) => {
        if (request.method !== 'tools/call') return undefined;
        if (bad.size === 0) bad.add(request.headers['authorization']);
        const challenge = { 'www-authenticate': 'Bearer error="invalid_token"' };
        return bad.has(request.headers['authorization'])
          ? { kind: 'http', status: 401, headers: challenge }
          : undefined;
      });
      const refused = await callStateless(access, 'read_record', args);
      expect(refused.status).toBe(502);
      expect(refused.headers.get('www-authenticate')).toBeNull();
      // It is not sent again by itself: nobody knows what was done before it was refused.
      expect(rig.upstream.uses()).toHaveLength(1);
      expect((await callStateless(access, 'read_record', args)).status).toBe(200);
      expect(rig.server.issued).toHaveLength(2);
      await vi.waitFor(() => expect(rig.upstream.uses()).toHaveLength(2), PATIENT);
    } finally {
      await rig.close();
    }
  });
});
