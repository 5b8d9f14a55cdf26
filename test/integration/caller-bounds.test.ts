// What a gateway keeps for its callers is bounded: who is over a bound is refused, or forgets its own, and nothing
// of anybody else is forgotten or let through for it. The bounds are small here; how large they are is said where
// they stand.

import { describe, expect, it } from 'vitest';
import { ADMINS, adminsOf, idOf, startMergedRig } from '../support/deployments.js';
import { UPSTREAM } from '../support/gateway.js';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import { replace } from '../support/seams.js';
import { makeSecret } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { makeProofHolder, type ProofHolder, proofHeaders } from '../support/tokens.js';
import {
  type Access,
  callStateless,
  errorOf,
  post,
  type Reply,
  requestStateless,
  statelessParts,
} from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

/** Requests with one token that may wait for its one verification. */
const MAX_JOINED = 256;
const few = { uses: 8, revocations: 3, uris: 8, urisOfOne: 4 };
/** The part of all proofs that one key may have: a quarter. */
const USES_OF_ONE = few.uses / 4;

replace('memory', {
  createMemoryState: (real, ports) => ({
    ...real.createMemoryState(ports),
    replays: real.createMemoryReplays(ports.now, few.uses),
  }),
});
replace('revocations', {
  createRevocationSet(real, ...given) {
    const known = real.createRevocationSet(...given);
    return { ...known, hasCapacity: () => known.list().length < few.revocations };
  },
});
replace('aggregates', {
  createListedResources: (real) => real.createListedResources({ maxUris: few.uris, maxUrisPerCaller: few.urisOfOne }),
});

const CALL = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });

describe('proofs that were used', () => {
  const rig = sharedGateway({ listener: ['dpop: {maxAge: 20s}'] });

  let aheadSeconds = 0;
  type Proved = { send(): Promise<Reply>; again(): Promise<Reply> };

  /** A request with a proof of its own, which can be sent again as it is. */
  async function prove(holder: ProofHolder, token: string): Promise<Proved> {
    const { url } = rig.access;
    const iat = Math.floor(Date.now() / 1000) + aheadSeconds;
    const headers = await proofHeaders(holder, { url, token }, { claims: { iat } });
    const send = (): Promise<Reply> =>
      post({ url, token: undefined }, JSON.stringify(CALL.body), { ...CALL.headers, ...headers });
    return { send, again: send };
  }

  it('[BND-29] are kept up to a bound of their key, past which no proof passes that could be one of them', async () => {
    const [greedy, modest] = [await makeProofHolder(), await makeProofHolder()];
    const tokenOf = (holder: ProofHolder, sub: string): Promise<string> =>
      rig.gateway.token(UPSTREAM, { sub, cnf: { jkt: holder.thumbprint } });
    const token = await tokenOf(greedy, 'greedy');
    const used: Proved[] = [];
    for (let use = 0; use < USES_OF_ONE; use += 1) {
      const proved = await prove(greedy, token);
      expect((await proved.send()).status).toBe(200);
      used.push(proved);
    }
    const over = await prove(greedy, token);
    for (const reply of [await over.send(), await over.again()]) {
      expect(reply.status).toBe(503);
      expect(errorOf(reply)).toMatchObject({ code: 1509 });
    }
    for (const proved of used) expect((await proved.again()).status).toBe(401);
    expect(rig.upstream.uses()).toHaveLength(USES_OF_ONE);
    const other = await prove(modest, await tokenOf(modest, 'modest'));
    expect((await other.send()).status).toBe(200);
    // What has been used cannot be used again, so it need not be kept.
    aheadSeconds = 30;
    rig.passTime(aheadSeconds * 1000);
    expect((await (await prove(greedy, token)).send()).status).toBe(200);
    expect((await used[0]?.again())?.status).toBe(401);
  });
});

describe('the revocations', () => {
  const rig = sharedGateway({ more: ADMINS });

  it('[REV-18] are bounded: one more is refused, none is forgotten, and one that is lifted makes room', async () => {
    const admins = adminsOf(rig.gateway);
    const tokens: string[] = [];
    for (let at = 0; at <= few.revocations; at += 1)
      tokens.push(await rig.gateway.token(UPSTREAM, { sub: `caller-${at}` }));
    const statuses = async (): Promise<readonly number[]> => {
      const replies = tokens.map((token) => callStateless(rig.as(token), 'read_record', { id: 'x' }));
      return (await Promise.all(replies)).map(({ status }) => status);
    };
    const revoke = (token: string) => admins.revoke({ token: { issuer: 'test', jti: idOf(token) } });
    const revoked = tokens.slice(0, few.revocations);
    const last = tokens[few.revocations] ?? '';
    for (const token of revoked) expect((await revoke(token)).status).toBe(201);
    expect((await revoke(last)).status).toBe(409);
    expect(await statuses()).toEqual([...revoked.map(() => 401), 200]);
    const platform = await admins.token('platform');
    const { body } = await admins.ask('GET', '/api/revocations', { token: platform });
    expect(body.revocations).toHaveLength(few.revocations);
    // The newest comes first.
    const [{ id }] = body.revocations;
    const lifted = await admins.ask('DELETE', `/api/revocations/${id}`, { token: platform });
    expect(lifted.status).toBe(204);
    expect((await revoke(last)).status).toBe(201);
    expect((await statuses()).filter((status) => status === 401)).toHaveLength(few.revocations);
    expect((await statuses()).at(-1)).toBe(401);
  });
});

describe('the resources that were listed', () => {
  const rig = shared(() => startMergedRig());

  it('[H-09] are forgotten of the caller who lists too many, and of nobody else', async () => {
    const callerOf = async (sub: string): Promise<Access> => ({
      ...rig.access,
      token: await rig.gateway.token('all', { sub }),
    });
    const [modest, greedy] = [await callerOf('modest'), await callerOf('greedy')];
    const list = async (caller: Access, uris: readonly string[]): Promise<void> => {
      const listing = (resources: readonly string[]) =>
        onMethod('resources/list', (request) =>
          jsonBody(resultFor(request, { resources: resources.map((uri) => ({ uri, name: 'one' })) })),
        );
      rig.left.obey(listing([]));
      rig.right.obey(listing(uris));
      expect((await requestStateless(caller, 'resources/list')).status).toBe(200);
    };
    const read = (caller: Access): Promise<Reply> => requestStateless(caller, 'resources/read', { uri: 'memo://one' });
    await list(modest, ['memo://one']);
    for (let round = 0; round < few.uris; round += 1) {
      const uris = Array.from({ length: few.urisOfOne }, (_, at) => `memo://${round}-${at}`);
      await list(greedy, round === 0 ? ['memo://one', ...uris.slice(1)] : uris);
      if (round === 0) expect((await read(greedy)).text).toContain('One.');
    }
    expect((await read(modest)).text).toContain('One.');
    expect(errorOf(await read(greedy))['message']).toContain('Several servers');
  });
});

describe('requests that wait for an issuer', () => {
  const secret = makeSecret();
  const rig = sharedGateway(() => {
    const client = 'clientId: gateway, clientSecret: {env: CLIENT}';
    return {
      issuer: [`introspection: {${client}, cacheTtl: 1s, maxPerSecond: 1000}`],
      env: { CLIENT: secret },
      upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 1000}'],
    };
  });

  const good = (): object => {
    const exp = Math.floor(Date.now() / 1000) + 600;
    return { active: true, sub: 'ada', client_id: 'ide', aud: rig.access.url, exp };
  };
  /** A call that every verified caller may make and that reaches no upstream: there is no such tool. */
  const call = (token: string): Promise<number> =>
    callStateless(rig.as(token), 'no_such_tool').then(({ status }) => status);

  /** Sends a call with each token at once; the statuses so far, in the order in which they came. */
  function sendAll(tokens: readonly string[]) {
    const statuses: number[] = [];
    const sent = tokens.map((token) => call(token).then((status) => statuses.push(status)));
    return { statuses, done: Promise.all(sent) };
  }

  function holdAnswers(): () => void {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    rig.gateway.issuer.answerAbout(() => held.then(good));
    return release;
  }

  it('[ACH-05] for the verdict on one token are bounded, and all of them get it', async () => {
    const release = holdAnswers();
    const token = makeSecret();
    const over = 4;
    const waiting = 1 + MAX_JOINED;
    const { statuses, done } = sendAll(Array.from({ length: waiting + over }, () => token));
    await expect.poll(() => statuses.length, PATIENT).toBe(over);
    expect(new Set(statuses)).toEqual(new Set([503]));
    release();
    await done;
    expect(statuses.filter((status) => status === 200)).toHaveLength(waiting);
    expect(rig.gateway.issuer.hits.get('/introspect')).toBe(1);
    expect(await call(token)).toBe(200);
  });

  it('[ACH-07] hold up no caller who was verified before, though the issuer answers them never', async () => {
    const known = makeSecret();
    rig.gateway.issuer.answerAbout(good);
    expect(await call(known)).toBe(200);
    // What is remembered of it has to be asked for anew.
    rig.passTime(2_000);
    const asked = rig.gateway.issuer.hits.get('/introspect') ?? 0;
    const release = holdAnswers();
    const unknown = Array.from({ length: 33 }, makeSecret);
    const { statuses, done } = sendAll(unknown);
    await expect.poll(() => statuses, PATIENT).toEqual([503]);
    rig.gateway.issuer.answerAbout(good);
    expect(await call(known)).toBe(200);
    expect(rig.gateway.issuer.hits.get('/introspect')).toBe(asked + 33);
    release();
    await done;
    expect(statuses.filter((status) => status === 200)).toHaveLength(32);
  });
});
