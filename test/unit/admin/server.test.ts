import { createHash, randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AdminCaller } from '../../../src/admin/revocations.js';
import { type AdminAccess, createAdminServer } from '../../../src/admin/server.js';
import type { HttpListener } from '../../../src/http/internal-server.js';

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

let server: HttpListener;
let port = 0;
let accesses: AdminAccess[] = [];

beforeEach(async () => {
  accesses = [];
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
      controls: () => [row],
      revocations: {
        list: () => [],
        revoke: () => Promise.resolve({ kind: 'full' }),
        lift: () => Promise.resolve('unknown'),
      },
      onAccess: (access) => accesses.push(access),
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
    request.end();
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

  it('[O-72] the page allows its own script and style by hash, and nothing else', async () => {
    const { status, headers, body } = await ask('/');
    expect(status).toBe(200);
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    for (const tag of ['script', 'style']) {
      const parts = [...body.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))];
      expect(parts).toHaveLength(1);
      const hash = createHash('sha256')
        .update(parts[0]?.[1] ?? '')
        .digest('base64');
      expect(policy).toContain(`${tag}-src 'sha256-${hash}'`);
    }
    expect(body).not.toMatch(/\son\w+=|src=|href=|style=|innerHTML|policy/);
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
