import { createHash, randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AdminAccess, createAdminServer } from '../../../src/admin/admin-server.js';
import type { AdminCaller } from '../../../src/admin/api-response.js';
import { createSessions, MAX_SESSIONS_PER_SUBJECT, type SessionPorts } from '../../../src/admin/sessions.js';
import { ATTEMPTS_PER_MINUTE } from '../../../src/http/browser.js';
import type { HttpListener } from '../../../src/http/internal-server.js';
import { listDesk } from '../../support/approvals.js';

const secret = randomUUID();
const callers = new Map<string, AdminCaller>([
  ['Bearer viewer-token', { subject: 'ann', roles: ['viewer'] }],
  ['Bearer no-role-token', { subject: 'bob', roles: [] }],
]);
const row = {
  control: 'policy',
  state: 'armed',
  reason: '',
  since: '2026-11-20T09:30:00.000Z',
} as const;

/** Cookies that are only encoded: what seals them is tested with sealed tokens. */
const sessionPorts: SessionPorts = {
  isSecure: true,
  sealSession: (session) => Buffer.from(JSON.stringify(session)).toString('base64url'),
  openSession: (sealed) => JSON.parse(Buffer.from(sealed, 'base64url').toString()),
  sealLogin: (login) => Buffer.from(JSON.stringify(login)).toString('base64url'),
  openLogin: (sealed) => JSON.parse(Buffer.from(sealed, 'base64url').toString()),
  formToken: (id) => `form-of-${id}`,
  useState: () => Promise.resolve(storeState),
  endSession: (id) => ended.add(id),
  isEnded: ({ id }) => ended.has(id),
  rolesOf: ({ issuer, groups }) => (issuer === undefined || groups.includes('sec') ? ['viewer'] : []),
  isBreakGlass: (token) => token === secret,
  logins: {
    names: () => ['corp'],
    get(issuer) {
      if (issuer !== 'corp') return undefined;
      return {
        begin: async () => ({ url: 'https://idp.example.com/auth', checks: LOGIN_CHECKS }),
        finish: async () => ({
          ...{ kind: 'verified' as const, subject: 'ann', groups: ['sec'], actors: [], issuedAtMs: 0 },
        }),
      };
    },
  },
  now: () => nowMs,
};
const LOGIN_CHECKS = { state: 'state', nonce: 'nonce', verifier: 'verifier' };
let storeState: boolean | 'unavailable' = true;
let ended = new Set<string>();
let nowMs = 0;

let server: HttpListener;
let port = 0;
let accesses: AdminAccess[] = [];

beforeEach(async () => {
  accesses = [];
  ended = new Set();
  storeState = true;
  nowMs = Date.parse('2026-11-20T09:30:00Z');
  server = createAdminServer(
    { host: '127.0.0.1', port: 0 },
    {
      breakGlassToken: secret,
      hosts: ['console.example.com'],
      authenticateAdmin({ authorization }) {
        if (authorization === 'Bearer broken') return Promise.reject(new Error('down'));
        if (authorization === 'Bearer untold') return Promise.resolve('unavailable' as const);
        return Promise.resolve(callers.get(authorization ?? ''));
      },
      approvals: listDesk([], () => nowMs),
      now: () => nowMs,
      holderOf: () => undefined,
      controls: () => [row],
      revocations: {
        list: () => [],
        revoke: () => Promise.resolve({ kind: 'full' }),
        lift: () => Promise.resolve('unknown'),
      },
      onAccess: (access) => accesses.push(access),
      sessions: createSessions(sessionPorts),
      upstreams: () => [],
      review: { items: () => [], rows: async () => new Map(), unlisted: () => 0, detail: async () => undefined },
      decisions: () => [],
      explain: () => undefined,
      guide: () => undefined,
      knownNames: () => ({ upstreams: ['desk'], issuers: ['corp'] }),
    },
  );
  ({ port } = await server.start());
});

afterEach(() => server.close());

type Answer = { status: number; headers: Record<string, unknown>; body: string };

function ask(
  path: string,
  headers: Record<string, string | string[]> = {},
  method = 'GET',
  sent = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    request.on('error', reject);
    request.end(sent);
  });
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

describe('createAdminServer', () => {
  it('[O-70] shows the controls to a viewer and to the break-glass token', async () => {
    for (const token of ['viewer-token', secret]) {
      const answer = await ask('/api/controls', bearer(token));
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body)).toEqual({ controls: [row] });
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    expect(accesses.map(({ subject, action, status }) => [subject, action, status])).toEqual([
      ['ann', 'show-controls', 200],
      ['break-glass', 'show-controls', 200],
    ]);
  });

  it.each([
    ['nothing', {}, 401],
    ['another token', bearer('viewer-tokeN'), 401],
    ['a part of the break-glass token', bearer(secret.slice(0, -1)), 401],
    ['an empty token', { authorization: 'Bearer ' }, 401],
    ['another scheme', { authorization: `Basic ${secret}` }, 401],
    ['two credentials', { authorization: [`Bearer ${secret}`, `Bearer ${secret}`] }, 401],
    ['a token without a role', bearer('no-role-token'), 403],
    ['a verifier that fails', bearer('broken'), 503],
    ['a verifier that cannot tell', bearer('untold'), 503],
  ])('[O-70] shows nothing for %s', async (_what, headers, status) => {
    const answer = await ask('/api/controls', headers);
    expect(answer.status).toBe(status);
    expect(answer.body).not.toContain('policy');
    expect(answer.headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined);
    expect(answer.headers['retry-after']).toBe(status === 503 ? '5' : undefined);
    expect(accesses).toMatchObject([{ action: 'show-controls', status }]);
  });

  it('[O-70] counts what cannot be verified now as a guess too, but a valid token is served', async () => {
    const statuses: number[] = [];
    for (let attempt = 0; attempt <= ATTEMPTS_PER_MINUTE; attempt += 1)
      statuses.push((await ask('/api/controls', bearer('untold'))).status);
    expect(statuses.filter((status) => status === 503)).toHaveLength(ATTEMPTS_PER_MINUTE);
    expect(statuses.at(-1)).toBe(429);
    expect((await ask('/api/controls', bearer(secret))).status).toBe(200);
    expect((await ask('/api/controls', bearer('viewer-token'))).status).toBe(200);
  });

  it.each(['alice\u2028', ' ', 'x'.repeat(3_000), '\u{1f600}'])(
    '[O-70] takes every name that a token may have (case %#)',
    async (subject) => {
      const headers = { ...bearer(secret), 'content-type': 'application/json' };
      const order = JSON.stringify({ note: 'why', block: { target: 'subject', issuer: 'corp', subject } });
      // The service of this test is full.
      expect((await ask('/api/revocations', headers, 'POST', order)).status).toBe(409);
    },
  );

  it('[O-70] counts guesses by network, since whoever has one address of IPv6 has all of its network', () => {
    const { mayGuess } = createSessions(sessionPorts);
    const taken = (ip: (at: number) => string): number =>
      Array.from({ length: 100 }, (_, at) => mayGuess({ ip: ip(at) })).filter(Boolean).length;
    expect(taken((at) => `2001:db8:1:2:${at.toString(16)}::${at.toString(16)}`)).toBe(ATTEMPTS_PER_MINUTE);
    expect(taken((at) => (at % 2 === 0 ? '198.51.100.1' : '::ffff:198.51.100.1'))).toBe(ATTEMPTS_PER_MINUTE);
    expect(taken((at) => `198.51.101.${at}`)).toBe(100);
    expect(taken((at) => `2001:db8:1:${(at + 3).toString(16)}::1`)).toBe(100);
  });

  it.each([
    ['application/json', 403],
    ['APPLICATION/JSON ; charset="utf-8"', 403],
    ['application/json;charset=UTF-8;x=y', 403],
    ['text/plain', 403],
  ])('[O-70] reads JSON whatever the parameters of its type: %s', async (type, status) => {
    const headers = { ...bearer('viewer-token'), 'content-type': type };
    expect((await ask('/api/revocations', headers, 'POST', '{}')).status).toBe(status);
    const asked = { ...bearer(secret), 'content-type': type };
    expect((await ask('/api/revocations', asked, 'POST', '{}')).status).toBe(type === 'text/plain' ? 415 : 400);
  });

  it.each(['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', 'localhost@evil'])(
    '[O-71] serves no foreign Host: %s',
    async (host) => {
      const answer = await ask('/api/controls', { ...bearer(secret), host });
      expect(answer.status).toBe(421);
      expect(answer.body).not.toContain('policy');
    },
  );

  it.each(['localhost', 'LOCALHOST:9090', '127.0.0.1', '[::1]:9090', 'console.example.com'])(
    '[O-71] serves its own names: %s',
    async (host) => {
      expect((await ask('/api/controls', { ...bearer(secret), host })).status).toBe(200);
    },
  );

  it('[O-71] answers no other origin that comes after thousands of headers', async () => {
    const others = Array<string>(2_500).fill('');
    const answer = await ask('/', { a: others, origin: 'https://evil.example' });
    expect(answer.status).toBe(403);
  });

  it('[O-71] answers no other origin', async () => {
    for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${port + 1}`]) {
      const answer = await ask('/api/controls', { ...bearer(secret), origin });
      expect(answer.status).toBe(403);
    }
    const own = await ask('/api/controls', {
      ...bearer(secret),
      origin: `http://127.0.0.1:${port}`,
    });
    expect(own.status).toBe(200);
  });

  it('[O-72] the page to log in allows its own style by hash, no script, and nothing else', async () => {
    const { status, headers, body } = await ask('/');
    expect(status).toBe(401);
    const policy = String(headers['content-security-policy']);
    const style = /<style>([\s\S]*?)<\/style>/.exec(body)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(policy).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    );
    expect(headers['cache-control']).toBe('no-store');
    expect(body).not.toMatch(/<script|\son\w+=|src=|\sstyle=|javascript:/);
    expect(body).not.toContain(row.control);
  });

  it.each([
    ['GET', '/api/control'],
    ['GET', '/api/controls/'],
    ['GET', '/api/controls?token=x'],
    ['POST', '/api/controls'],
    ['GET', '/metrics'],
  ])('[O-70] answers 404 to %s %s, and tells the access without the path', async (method, path) => {
    expect((await ask(path, bearer(secret), method)).status).toBe(404);
    expect(accesses).toMatchObject([{ action: 'unknown', status: 404, subject: undefined }]);
  });
});

const origin = (): string => `http://127.0.0.1:${port}`;
const FORM = 'application/x-www-form-urlencoded';

function cookiesOf({ headers }: Answer): readonly string[] {
  return [headers['set-cookie'] ?? []].flat().map(String);
}

function cookieOf(answer: Answer, name: string): string {
  const line = cookiesOf(answer).find((one) => one.startsWith(`__Host-sallyport-${name}=`));
  return line?.split(';')[0] ?? '';
}

/** Sends a form with these cookies, as a page of the console would. */
function submit(path: string, fields: object, cookie: string, more = {}): Promise<Answer> {
  const headers = { 'content-type': FORM, origin: origin(), cookie, ...more };
  return ask(path, headers, 'POST', new URLSearchParams({ ...fields }).toString());
}

async function openLogin(): Promise<{ cookie: string; form: string }> {
  const answer = await ask('/');
  return {
    cookie: cookieOf(answer, 'login'),
    form: /name="form" value="([^"]+)"/.exec(answer.body)?.[1] ?? '',
  };
}

/** The cookie of a session of the break-glass token. */
async function logIn(): Promise<string> {
  const { cookie, form } = await openLogin();
  return cookieOf(await submit('/login', { form, token: secret }, cookie), 'session');
}

describe('a session of the console', () => {
  it('[O-73] begins with the break-glass token, in a cookie that no script and no other site gets', async () => {
    const { cookie, form } = await openLogin();
    const answer = await submit('/login', { form, token: secret, to: '/drift' }, cookie);
    expect([answer.status, answer.headers['location']]).toEqual([303, '/drift']);
    const [session = '', login = ''] = cookiesOf(answer);
    expect(session).toMatch(/^__Host-sallyport-session=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
    expect(login).toBe('__Host-sallyport-login=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0');
    const page = await ask('/', { cookie: cookieOf(answer, 'session') });
    expect(page.status).toBe(200);
    expect(page.body).toContain(row.control);
    expect(accesses.at(-1)).toMatchObject({ subject: 'break-glass', action: 'show-page' });
  });

  it('[O-73] does not begin with another token, and the token stays out of the page', async () => {
    const { cookie, form } = await openLogin();
    const answer = await submit('/login', { form, token: `${secret}x` }, cookie);
    expect(answer.status).toBe(403);
    expect(cookieOf(answer, 'session')).toBe('');
    expect(answer.body).not.toContain(secret);
  });

  it.each([
    ['no form token', { form: '' }, {}],
    ['that of another visitor', { form: 'form-of-another' }, {}],
    ['another origin', {}, { origin: 'https://evil.example' }],
    ['the origin null', {}, { origin: 'null' }],
    ['no cookie', {}, { cookie: '' }],
  ])('[O-74] does not begin with %s', async (_what, fields, headers) => {
    const { cookie, form } = await openLogin();
    const answer = await submit('/login', { form, token: secret, ...fields }, cookie, headers);
    expect(answer.status).toBe(403);
    expect(cookieOf(answer, 'session')).toBe('');
  });

  it('[O-74] needs an origin, or the word of the browser that the page is its own', async () => {
    const { cookie, form } = await openLogin();
    const sent = new URLSearchParams({ form, token: secret }).toString();
    const headers = { 'content-type': FORM, cookie };
    expect((await ask('/login', headers, 'POST', sent)).status).toBe(403);
    const own = { ...headers, 'sec-fetch-site': 'same-origin' };
    expect((await ask('/login', own, 'POST', sent)).status).toBe(303);
    const other = { ...headers, 'sec-fetch-site': 'cross-site' };
    expect((await ask('/login', other, 'POST', sent)).status).toBe(403);
  });

  it('[O-74] leads to a page of the console and nowhere else', async () => {
    for (const to of ['https://evil.example/', '//evil.example', '/\\evil', 'javascript:1', '/x']) {
      const { cookie, form } = await openLogin();
      const answer = await submit('/login', { form, token: secret, to }, cookie);
      expect(answer.headers['location']).toBe('/');
      nowMs += 60_000;
    }
  });

  it('[O-74] is not read from two cookies, nor by the API, and bearer tokens open no page', async () => {
    const cookie = await logIn();
    expect((await ask('/', { cookie })).status).toBe(200);
    expect((await ask('/', { cookie: `${cookie}; ${cookie}` })).status).toBe(401);
    expect((await ask('/api/controls', { cookie })).status).toBe(401);
    expect((await ask('/', bearer(secret))).status).toBe(401);
  });

  it('[O-75] ends after half an hour without a request, is renewed by one, and ends after eight hours', async () => {
    let cookie = await logIn();
    // What seals the cookie ends it when idle; here its renewal is seen.
    expect(cookiesOf(await ask('/', { cookie }))).toEqual([]);
    nowMs += 2 * 60_000;
    const renewed = cookieOf(await ask('/', { cookie }), 'session');
    expect(renewed).not.toBe('');
    cookie = renewed;
    nowMs += 8 * 60 * 60_000;
    expect((await ask('/', { cookie })).status).toBe(401);
  });

  it('[O-75] ends with a logout, which needs the form of that session', async () => {
    const cookie = await logIn();
    expect((await submit('/logout', { form: 'form-of-another' }, cookie)).status).toBe(403);
    expect((await ask('/', { cookie })).status).toBe(200);
    const page = await ask('/', { cookie });
    const form = /name="form" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const answer = await submit('/logout', { form }, cookie);
    expect(answer.status).toBe(200);
    expect(cookiesOf(answer)).toEqual(['__Host-sallyport-session=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0']);
    expect((await ask('/', { cookie })).status).toBe(401);
  });

  it(`[O-75] is one of ${MAX_SESSIONS_PER_SUBJECT} at most, of which the oldest ends`, async () => {
    const cookies = [];
    for (let count = 0; count <= MAX_SESSIONS_PER_SUBJECT; count += 1) {
      cookies.push(await logIn());
      nowMs += 60_000;
    }
    const states = [];
    for (const cookie of cookies) states.push((await ask('/', { cookie })).status);
    expect(states).toEqual([401, ...Array(MAX_SESSIONS_PER_SUBJECT).fill(200)]);
  });

  it(`[O-75] is refused after ${ATTEMPTS_PER_MINUTE} wrong tokens in a minute, and never with the right one`, async () => {
    const { cookie, form } = await openLogin();
    const attempt = () => submit('/login', { form, token: 'wrong' }, cookie);
    for (let count = 0; count < ATTEMPTS_PER_MINUTE; count += 1) expect((await attempt()).status).toBe(403);
    expect((await attempt()).status).toBe(429);
    expect((await submit('/login', { form, token: secret }, cookie)).status).toBe(303);
    expect((await ask('/login/with/corp')).status).toBe(303);
    nowMs += 60_000;
    expect((await attempt()).status).toBe(403);
  });

  it(`[O-75] begins at most ${ATTEMPTS_PER_MINUTE} times a minute at an issuer`, async () => {
    for (let count = 0; count < ATTEMPTS_PER_MINUTE; count += 1)
      expect((await ask('/login/with/corp')).status).toBe(303);
    expect((await ask('/login/with/corp')).status).toBe(429);
  });

  it('[O-75] does not begin twice with one state, nor while the store cannot say whether it did', async () => {
    const states = [];
    for (storeState of [true, false, 'unavailable'] as const) {
      const begun = await ask('/login/with/corp');
      expect(begun.headers['location']).toBe('https://idp.example.com/auth');
      const cookie = cookieOf(begun, 'login');
      const answer = await ask('/login/callback?state=state&code=x', { cookie });
      states.push([answer.status, cookieOf(answer, 'session') !== '']);
    }
    expect(states).toEqual([
      [303, true],
      [400, false],
      [503, false],
    ]);
  });

  it('[O-76] of a viewer neither blocks nor lifts, and no form names a field twice', async () => {
    const cookie = await logIn();
    const page = await ask('/blocks', { cookie });
    expect(page.body).not.toContain('Block now');
    const form = /name="form" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const order = { form, target: 'upstream', upstream: 'desk', note: 'why' };
    expect((await submit('/block', order, cookie)).status).toBe(403);
    expect((await submit('/lift', { form, id: randomUUID() }, cookie)).status).toBe(403);
    const twice = `form=${form}&target=tool&target=everything&note=x`;
    const headers = { 'content-type': FORM, origin: origin(), cookie };
    expect((await ask('/block', headers, 'POST', twice)).status).toBe(400);
    expect((await ask('/block', { ...headers, 'content-type': 'text/plain' }, 'POST', twice)).status).toBe(400);
  });
});
