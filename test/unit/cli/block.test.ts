import { describe, expect, it } from 'vitest';
import { blockCommand, unblockCommand } from '../../../src/cli/block.js';
import { buildProgram } from '../../../src/cli/program.js';
import { writeLock } from '../../../src/pins/lock.js';
import { filesOf, GOOD } from '../config/reading.js';
import { lockOf, pinOf, toolOf } from '../pins/samples.js';
import { terminal } from './console.js';

type Answer = { readonly status: number; readonly text: string };

const TOKEN = 'a-token';
const CONFIG = `${GOOD}listeners: {admin: {host: 0.0.0.0, port: 9191}}
admin: {breakGlass: {token: {env: X}}}
`;
const MADE = {
  id: 'one',
  kind: 'block',
  target: 'tool',
  upstream: 'github',
  name: 'x',
  by: 'lea',
  note: 'INC-7',
};

async function run(argv: readonly string[], answer: () => Promise<Answer>, env = {}) {
  const asked: object[] = [];
  const io = terminal({ env: { SALLYPORT_ADMIN_TOKEN: TOKEN, ...env } });
  const ports = {
    files: filesOf({
      '/srv/all.yaml': CONFIG,
      '/srv/bare.yaml': GOOD,
      '/srv/token': 'Bearer of-the-file\n',
      '/srv/empty': '\n',
      '/srv/policies/pins/wiki.lock.yaml': writeLock(lockOf([pinOf(toolOf('get_page'))])),
    }),
    ask(url: string, request: { readonly body?: string }) {
      const body = request.body === undefined ? {} : { body: JSON.parse(request.body) };
      asked.push({ url, ...request, ...body });
      return answer();
    },
  };
  const commands = [blockCommand(io, ports), unblockCommand(io, ports)];
  const code = await buildProgram(io, commands).run(argv);
  return { code, asked, out: io.out(), err: io.err() };
}

const made = (): Promise<Answer> =>
  Promise.resolve({ status: 201, text: JSON.stringify({ revocation: MADE, shared: true }) });
const note = ['-c', 'all.yaml', '--note', 'INC-7'];
const API = 'http://127.0.0.1:9191/api/revocations';

describe('[REV-64] block', () => {
  it.each([
    [['tool', 'github', 'x'], { block: { target: 'tool', upstream: 'github', name: 'x' } }],
    [['resource', 'a', 'u://x'], { block: { target: 'resource', upstream: 'a', name: 'u://x' } }],
    [['upstream', 'github'], { block: { target: 'upstream', upstream: 'github' } }],
    [['subject', 'corp', 'ada'], { block: { target: 'subject', issuer: 'corp', subject: 'ada' } }],
    [['client', 'corp', 'ide'], { block: { target: 'client', issuer: 'corp', client: 'ide' } }],
    [['everything', '--for', '2h'], { block: { target: 'everything', expiresIn: 7200 } }],
    [['token', 'corp', 'id'], { token: { issuer: 'corp', jti: 'id' } }],
    [['token-digest', 'd'], { token: { digest: 'd' } }],
    [['tokens', 'corp', 'ada'], { subject: { issuer: 'corp', subject: 'ada' } }],
    [['tokens', 'corp', 'ada', '--client', 'ide'], { subject: { issuer: 'corp', subject: 'ada', client: 'ide' } }],
    [['session', 'd'], { session: { digest: 'd' } }],
  ])('%j is sent as an order', async (argv, order) => {
    const { code, asked, err } = await run(['block', ...argv, ...note], made);
    expect({ code, asked, err }).toEqual({
      ...{ code: 0, err: '' },
      asked: [{ url: API, method: 'POST', token: TOKEN, body: { note: 'INC-7', ...order } }],
    });
  });

  it('prints what was made, and warns if it is not shared', async () => {
    const order = ['block', 'tool', 'github', 'x', ...note];
    expect((await run(order, made)).out).toBe('one tool github x until lifted by lea: INC-7\n');
    const { code, out, err } = await run([...order, '--json'], () =>
      Promise.resolve({ status: 202, text: JSON.stringify({ revocation: MADE, shared: false }) }),
    );
    expect([code, JSON.parse(out).revocation]).toEqual([0, MADE]);
    expect(err).toContain('one replica only');
  });

  it('warns of a name that the lock file does not have, because such a block may stop nothing', async () => {
    const order = (target: string, name: string, upstream = 'wiki') =>
      run(['block', target, upstream, name, ...note], () => {
        const revocation = { ...MADE, target, upstream, name };
        return Promise.resolve({ status: 201, text: JSON.stringify({ revocation, shared: true }) });
      });
    expect(await order('tool', 'get_pages')).toMatchObject({
      code: 0,
      err: 'warning: the lock file of wiki has no tool "get_pages"; did you mean "get_page"? The block is in force for this name; to lift it, run: sallyport unblock one\n',
    });
    expect((await order('prompt', 'x')).err).toContain('the lock file of wiki has no prompt "x". ');
    expect((await order('tool', 'get_page')).err).toBe('');
    expect((await order('resource', 'u://x')).err).toBe('');
    expect((await order('tool', 'x', 'unpinned')).err).toBe('');
  });

  it('takes the token from a file, and the address from an option', async () => {
    const where = ['--url', 'https://mcp.example.com:9090', '--token-file', 'token'];
    const { asked, err } = await run(['block', 'list', ...where], () =>
      Promise.resolve({ status: 200, text: '{"revocations":[]}' }),
    );
    expect(asked).toEqual([
      {
        url: 'https://mcp.example.com:9090/api/revocations',
        method: 'GET',
        token: 'of-the-file',
      },
    ]);
    expect(err).toBe('note: nothing is blocked or revoked\n');
  });

  it('lists and lifts', async () => {
    const row = { ...MADE, note: 'a\u001b[2Jb', expires: '2026-11-23T00:00:00.000Z' };
    const list = await run(['block', 'list', '-c', 'all.yaml'], () =>
      Promise.resolve({ status: 200, text: JSON.stringify({ revocations: [row] }) }),
    );
    expect(list.out).toContain('one tool github x until 2026-11-23T00:00:00.000Z by lea: a');
    expect(list.out).not.toContain('\u001b');
    const lifted = await run(['unblock', 'one', 'two', '-c', 'all.yaml'], () =>
      Promise.resolve({ status: 204, text: '' }),
    );
    expect(lifted).toMatchObject({ code: 0, out: 'one lifted\ntwo lifted\n' });
    expect(lifted.asked).toMatchObject([
      { method: 'DELETE', url: `${API}/one` },
      { method: 'DELETE', url: `${API}/two` },
    ]);
  });

  it.each([
    ['403', { status: 403, text: '{"error":"Your role does not allow this."}' }, 1, 'Your role'],
    ['404', { status: 404, text: '{"error":"No such revocation"}' }, 1, 'No such'],
    ['401', { status: 401, text: 'a token is required' }, 2, 'does not accept this token'],
    ['no JSON', { status: 200, text: '<html>' }, 2, 'answered 200'],
    ['a redirect', { status: 302, text: '' }, 2, 'answered 302'],
  ])('an answer of %s is an error', async (_, answer, code, text) => {
    const ran = await run(['block', 'everything', ...note], () => Promise.resolve(answer));
    expect(ran).toMatchObject({ code, out: '' });
    expect(ran.err).toContain(text);
  });

  it.each([
    [['block', 'everything', '-c', 'all.yaml'], {}, '--note'],
    [['block', 'everything', ...note, '--for', '2'], {}, 'duration'],
    [['block', 'everything', '--note', 'x', '--url', 'ftp://x'], {}, 'origin of the admin listener'],
    [['block', 'everything', ...note], { SALLYPORT_ADMIN_TOKEN: '' }, 'SALLYPORT_ADMIN_TOKEN'],
    [['block', 'everything', ...note, '--token-file', 'empty'], {}, 'is not set or empty'],
    [['block', 'everything', ...note, '--token-file', 'gone'], {}, 'gone'],
    [['block', 'everything', '-c', 'bare.yaml', '--note', 'x'], {}, 'has no "admin"'],
    [['unblock', '-c', 'all.yaml'], {}, 'ids'],
  ])('%j with %j is not sent', async (argv, env, text) => {
    const ran = await run(argv, made, env);
    expect(ran).toMatchObject({ code: 2, asked: [] });
    expect(ran.err).toContain(text);
  });

  it('says so if nothing answers', async () => {
    const ran = await run(['block', 'everything', ...note], () => Promise.reject(new Error('x')));
    expect(ran).toMatchObject({
      code: 2,
      err: 'error: http://127.0.0.1:9191 does not answer; is the gateway running, with its admin listener there?\n',
    });
  });
});
