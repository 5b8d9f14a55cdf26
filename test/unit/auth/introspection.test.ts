// Tokens that their issuer is asked about: what its answers prove, how often it is asked, what happens
// while it cannot be.

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createIntrospectionBudget } from '../../../src/auth/introspection.js';
import type { IntrospectionSettings } from '../../../src/config/settings.js';
import { makeSecret } from '../../support/secrets.js';
import { type Misbehaviour, startTestIssuer, type TestIssuer } from '../../support/tokens.js';
import { ACCEPTANCE, makeAuthenticator, makeClock, RESOURCE } from './fixture.js';

const TOKEN = `opaque-${makeSecret()}`;
const SETTINGS: IntrospectionSettings = {
  clientId: 'gateway:1',
  clientSecret: `${makeSecret()}%:+`,
  authentication: 'client_secret_basic',
  endpoint: undefined,
  cacheTtlMs: 30_000,
  maxPerSecond: 100,
};

let issuer: TestIssuer;
let clock: ReturnType<typeof makeClock>;
const closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  issuer = await startTestIssuer();
  clock = makeClock();
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await issuer.close();
});

const seconds = (): number => Math.floor(clock.now() / 1000);

function answer(changed: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const good = {
    active: true,
    iss: issuer.issuer,
    sub: 'alice',
    aud: RESOURCE,
    client_id: 'ide',
    scope: 'notes:read',
    token_type: 'Bearer',
    iat: seconds(),
    exp: seconds() + 600,
  };
  return Object.fromEntries(Object.entries({ ...good, ...changed }).filter(([, value]) => value !== undefined));
}

function make(changed: Partial<IntrospectionSettings> = {}) {
  const introspection = { ...SETTINGS, ...changed };
  const settings = issuer.settings({ algorithms: [], introspection });
  const authenticator = makeAuthenticator([settings], clock);
  closers.push(authenticator.close);
  return authenticator;
}

const questions = (): number => issuer.hits.get('/introspect') ?? 0;

/** RFC 6749 §2.3.1: both halves are form-encoded before they are joined. */
function readBasic(authorization: string | undefined): readonly string[] | undefined {
  if (authorization === undefined) return undefined;
  const pair = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString();
  return pair.split(':').map(decodeURIComponent);
}

type Case = readonly [string, string, () => unknown];
const responseOf = (changed: Readonly<Record<string, unknown>>) => () => answer(changed);

describe('[TOK-01] an answer about a token', () => {
  it.each<Case>([
    ['that is good', 'ok', responseOf({})],
    ['without iss', 'ok', responseOf({ iss: undefined })],
    ['without iat', 'ok', responseOf({ iat: undefined })],
    ['with the audience in a list of one', 'ok', responseOf({ aud: [RESOURCE] })],
    ['with a token type in capitals', 'ok', responseOf({ token_type: 'BEARER' })],
    ['that it is not active', 'token-signature', () => ({ active: false })],
    ['not active, whatever else it says', 'token-signature', responseOf({ active: false })],
    ['of another issuer', 'token-issuer', responseOf({ iss: 'https://other.example' })],
    ['with a slash at the issuer', 'token-issuer', () => answer({ iss: `${issuer.issuer}/` })],
    ['without an audience', 'token-audience', responseOf({ aud: undefined })],
    ['for another audience', 'token-audience', responseOf({ aud: `${RESOURCE}/` })],
    ['for ours among others', 'token-audience', responseOf({ aud: [RESOURCE, 'https://b.example'] })],
    ['without an end', 'token-malformed', responseOf({ exp: undefined })],
    ['with an end that is text', 'token-malformed', () => answer({ exp: String(seconds() + 60) })],
    ['that has ended', 'token-expired', () => answer({ exp: seconds() - 1 })],
    ['that lives too long', 'token-lifetime', () => answer({ exp: seconds() + 4000 })],
    [
      'that has too long to live, whenever it began',
      'token-lifetime',
      () => answer({ iat: undefined, exp: seconds() + 4000 }),
    ],
    ['for later', 'token-not-yet-valid', () => answer({ nbf: seconds() + 90 })],
    ['without a subject', 'token-malformed', responseOf({ sub: undefined })],
    ['without a client', 'token-malformed', responseOf({ client_id: undefined })],
    ['that it is bound to a key', 'token-binding', responseOf({ cnf: { jkt: 'x' } })],
    ['that it is a DPoP token', 'token-binding', responseOf({ token_type: 'DPoP' })],
    ['that it is a refresh token', 'token-type', responseOf({ token_type: 'refresh_token' })],
    ['that its kind is another', 'token-type', responseOf({ typ: 'Refresh' })],
    ['with the nonce of an identity token', 'token-type', responseOf({ nonce: 'n' })],
    ['with a scope that is none', 'token-malformed', responseOf({ scope: 'a\tb' })],
  ])('%s', async (_title, verdict, respond) => {
    const { verdict: verify } = make();
    issuer.answerAbout(() => respond());
    expect(await verify(TOKEN)).toBe(verdict);
  });

  it('makes the principal that it describes', async () => {
    issuer.answerAbout(() => answer({ groups: ['eng'], act: { sub: 'agent' } }));
    const outcome = await make().ask(TOKEN);
    expect(outcome).toMatchObject({
      subject: 'alice',
      client: 'ide',
      scopes: ['notes:read'],
      groups: ['eng'],
      actors: [{ subject: 'agent' }],
    });
    expect(JSON.stringify(outcome)).not.toContain(TOKEN);
  });
});

describe('a token without an id', () => {
  it('is the same one however its issuer takes it to be written', async () => {
    issuer.answerAbout(() => answer());
    const { ask } = make();
    const name = TOKEN.replace(/.{8}/, 'ab-_ef-_');
    const idsOf = async (token: string): Promise<readonly string[]> => {
      const outcome = await ask(token);
      return 'reason' in outcome ? [] : [outcome.token.id, ...outcome.token.formerIds];
    };
    const [id = ''] = await idsOf(name);
    expect(id).toMatch(/^[\w-]{43}$/);
    for (const spelling of [`${name}=`, `${name}==`, name.replaceAll('-', '+'), name.replaceAll('_', '/')])
      expect((await idsOf(spelling))[0]).toBe(id);
    // What was revoked by its digest before is found by it.
    expect(await idsOf(`${name}=`)).toHaveLength(2);
    expect((await idsOf(name.toLowerCase() === name ? name.toUpperCase() : name.toLowerCase()))[0]).not.toBe(id);
  });
});

describe('[TOK-04] a token', () => {
  it.each(['client_secret_basic', 'client_secret_post'] as const)(
    'is shown by the client of the gateway: %s',
    async (authentication) => {
      let proved: readonly unknown[] = [];
      issuer.answerAbout((token, { form, authorization }) => {
        const posted = [form.get('client_id'), form.get('client_secret')];
        proved = [token, form.get('token_type_hint'), ...posted, readBasic(authorization)];
        return answer();
      });
      expect(await make({ authentication }).verdict(TOKEN)).toBe('ok');
      const pair = [SETTINGS.clientId, SETTINGS.clientSecret];
      expect(proved).toEqual(
        authentication === 'client_secret_post'
          ? [TOKEN, 'access_token', ...pair, undefined]
          : [TOKEN, 'access_token', null, null, pair],
      );
    },
  );

  it('that is a JWT of a stranger is shown to nobody', async () => {
    issuer.answerAbout(() => answer());
    const { verdict } = make();
    const foreign = await issuer.mint(RESOURCE, { claims: { iss: 'https://other.example' } });
    expect(await verdict(foreign)).toBe('token-issuer');
    expect(await verdict(await issuer.mint(RESOURCE, { claims: { iss: undefined } }))).toBe('token-issuer');
    expect(questions()).toBe(0);
    expect(await verdict(await issuer.mint(RESOURCE))).toBe('ok');
    expect(questions()).toBe(1);
  });

  it.each(['dpop+jwt', 'oauth-id-jag+jwt', 'application/logout+jwt', 'secevent+jwt'])(
    'that says it is no access token is shown to nobody: %s',
    async (typ) => {
      issuer.answerAbout(() => answer());
      expect(await make().verdict(await issuer.mint(RESOURCE, { header: { typ } }))).toBe('token-type');
      expect(questions()).toBe(0);
    },
  );

  it.each(['short', 'a'.repeat(9000), `${TOKEN} x`, `${TOKEN},x`, `=${TOKEN}`, `${TOKEN}===`, `${TOKEN}é`])(
    'that is no token is shown to nobody (case %#)',
    async (token) => {
      expect(await make().verdict(token)).toBe('token-malformed');
      expect(questions()).toBe(0);
    },
  );

  it('of an issuer with keys is verified by them, though another is asked about its own', async () => {
    const keyed = await startTestIssuer();
    closers.push(() => keyed.close());
    const both = makeAuthenticator(
      [keyed.settings(), issuer.settings({ name: 'asked', algorithms: [], introspection: SETTINGS })],
      clock,
    );
    closers.push(both.close);
    issuer.answerAbout(() => answer());
    const acceptance = { ...ACCEPTANCE, issuers: ['corp', 'asked'] };
    expect(await both.verdict(await keyed.mint(RESOURCE), acceptance)).toBe('ok');
    expect(questions()).toBe(0);
    expect(await both.verdict(TOKEN, acceptance)).toBe('ok');
    expect(await both.verdict(TOKEN)).toBe('token-malformed');
  });
});

describe('[TOK-02] an issuer is asked', () => {
  it('once for many who wait, and again when the answer is old', async () => {
    issuer.answerAbout(() => answer());
    const { verdict, ask } = make();
    await Promise.all([verdict(TOKEN), verdict(TOKEN), verdict(TOKEN)]);
    expect(questions()).toBe(1);
    expect(ask(TOKEN)).not.toBeInstanceOf(Promise);
    clock.offsetMs += 29_000;
    await verdict(TOKEN);
    expect(questions()).toBe(1);
    clock.offsetMs += 2_000;
    await verdict(TOKEN);
    expect(questions()).toBe(2);
  });

  it('again before an answer is old where the token has ended', async () => {
    issuer.answerAbout(() => answer({ exp: seconds() + 5 }));
    const { verdict } = make();
    expect(await verdict(TOKEN)).toBe('ok');
    issuer.answerAbout(() => ({ active: false }));
    clock.offsetMs += 6_000;
    expect(await verdict(TOKEN)).toBe('token-signature');
  });

  it('once for one bad token that comes again and again, also for one that was good', async () => {
    issuer.answerAbout(() => answer());
    const { verdict } = make();
    expect(await verdict(TOKEN)).toBe('ok');
    issuer.answerAbout(() => ({ active: false }));
    clock.offsetMs += 31_000;
    for (let round = 0; round < 5; round += 1) {
      expect(await verdict(TOKEN)).toBe('token-signature');
    }
    expect(questions()).toBe(2);
    clock.offsetMs += 11_000;
    await verdict(TOKEN);
    expect(questions()).toBe(3);
  });

  it('no more than the rate, and known callers go on through a flood of strangers', async () => {
    issuer.answerAbout((token) => (token === TOKEN ? answer() : { active: false }));
    let nowMs = 0;
    clock.offsetMs = 0;
    const start = clock.now();
    const frozen = { offsetMs: 0, now: () => start + nowMs };
    const settings = issuer.settings({
      algorithms: [],
      introspection: { ...SETTINGS, maxPerSecond: 10 },
    });
    const { verdict, close } = makeAuthenticator([settings], frozen);
    closers.push(close);
    expect(await verdict(TOKEN)).toBe('ok');
    nowMs = 31_000;
    const verdicts: string[] = [];
    for (let round = 0; round < 20; round += 1) verdicts.push(await verdict(`stranger-${round}-xxxxx`));
    expect(verdicts.filter((one) => one === 'token-signature')).toHaveLength(5);
    expect(verdicts.filter((one) => one === 'keys-unavailable')).toHaveLength(15);
    issuer.answerAbout(() => answer({ iat: undefined, exp: Math.floor(frozen.now() / 1000) + 60 }));
    expect(await verdict(TOKEN)).toBe('ok');
    expect(questions()).toBe(7);
  });

  it('never more often than its rate, and known callers at least half of it', () => {
    const steps = fc.array(fc.record({ afterMs: fc.nat(400), isKnown: fc.boolean() }), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 50 }), steps, (perSecond, asked) => {
        let nowMs = 0;
        let strangers = 0;
        let all = 0;
        const budget = createIntrospectionBudget(perSecond, () => nowMs);
        for (const { afterMs, isKnown } of asked) {
          nowMs += afterMs;
          if (!budget.tryTake(isKnown)) continue;
          all += 1;
          if (!isKnown) strangers += 1;
        }
        const earned = (nowMs * perSecond) / 1000;
        expect(all).toBeLessThanOrEqual(perSecond + earned + 1e-6);
        expect(strangers).toBeLessThanOrEqual(perSecond / 2 + earned + 1e-6);
      }),
    );
  });
});

describe('[TOK-03] an issuer that cannot be asked', () => {
  const outages: readonly Misbehaviour[] = ['down', 'huge', 'redirect'];
  it.each<Misbehaviour>([...outages, 'error', 'html'])(
    'is no verdict on a token, shows, and is over with the next answer: %s',
    async (how) => {
      issuer.answerAbout(() => answer());
      const { verdict, introspectors } = make();
      issuer.misbehave(how, 'introspection');
      expect(await verdict(TOKEN)).toBe('keys-unavailable');
      const status = introspectors.get('corp')?.status();
      expect(status).toMatchObject({ state: 'degraded' });
      expect(status?.failure).toMatch(/^the introspection endpoint /);
      issuer.misbehave('none');
      clock.offsetMs += 1_500;
      expect(await verdict(TOKEN)).toBe('ok');
      expect(introspectors.get('corp')?.status()).toEqual({ state: 'armed', failure: undefined, isPairwise: false });
    },
  );

  it.each(outages)('is left alone for a moment: %s', async (how) => {
    issuer.answerAbout(() => answer());
    const { verdict } = make();
    issuer.misbehave(how, 'introspection');
    expect(await verdict(TOKEN)).toBe('keys-unavailable');
    issuer.misbehave('none');
    const before = questions();
    expect(await verdict(TOKEN)).toBe('keys-unavailable');
    expect(questions()).toBe(before);
  });

  it('for one token is no outage for the next', async () => {
    issuer.answerAbout((token) => (token === TOKEN ? answer() : 'what is this?'));
    const { verdict } = make();
    expect(await verdict(makeSecret())).toBe('keys-unavailable');
    expect(await verdict(TOKEN)).toBe('ok');
    issuer.misbehave('error', 'introspection');
    expect(await verdict(makeSecret())).toBe('keys-unavailable');
    issuer.misbehave('none');
    clock.offsetMs += 31_000;
    issuer.answerAbout(() => answer());
    expect(await verdict(TOKEN)).toBe('ok');
  });

  it('[ACH-07] keeps room for known callers while strangers wait', async () => {
    issuer.answerAbout(() => answer());
    const { verdict } = make({ maxPerSecond: 1000 });
    expect(await verdict(TOKEN)).toBe('ok');
    clock.offsetMs += 31_000;
    issuer.misbehave('silent', 'introspection');
    const before = questions();
    let waiting = 0;
    const strangers = Array.from({ length: 100 }, async () => {
      waiting += 1;
      const outcome = await verdict(makeSecret());
      waiting -= 1;
      return outcome;
    });
    await expect.poll(questions).toBeGreaterThan(before);
    const sentAway = await Promise.race([...strangers, verdict(makeSecret())]);
    expect(sentAway).toBe('keys-unavailable');
    issuer.misbehave('none');
    expect(await verdict(TOKEN)).toBe('ok');
    // The others have not been answered yet, and nothing of theirs was in the way.
    expect(waiting).toBeGreaterThan(16);
    issuer.hangUp();
    await Promise.all(strangers);
  }, 15_000);

  it.each([
    ['no JSON object', () => []],
    ['no word on whether it is active', () => ({ sub: 'alice' })],
    ['active as a text', () => answer({ active: 'true' })],
  ])('answers with %s', async (_title, respond) => {
    issuer.answerAbout(respond);
    expect(await make().verdict(TOKEN)).toBe('keys-unavailable');
  });

  it('is looked for in its metadata, at start and until it is found', async () => {
    issuer.misbehave('down', 'metadata');
    const introspector = make().introspectors.get('corp');
    introspector?.keepFresh();
    await expect.poll(() => introspector?.status().failure).toMatch(/^the metadata /);
    issuer.misbehave('none');
    clock.offsetMs += 1_500;
    introspector?.keepFresh();
    await expect.poll(() => introspector?.status().state).toBe('armed');
    expect(questions()).toBe(0);
  });

  it('is asked where the configuration says, if it says', async () => {
    issuer.misbehave('down', 'metadata');
    issuer.answerAbout(() => answer());
    const endpoint = new URL('/introspect', issuer.issuer);
    expect(await make({ endpoint }).verdict(TOKEN)).toBe('ok');
  });
});
