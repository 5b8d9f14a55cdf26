import { describe, expect, it } from 'vitest';
import { shownApproval, shownCaller, shownInFull } from '../../../src/admin/approvals.js';
import { approvalsCommand } from '../../../src/cli/approvals.js';
import { buildProgram } from '../../../src/cli/program.js';
import { approvalOf } from '../../support/approvals.js';
import { filesOf, GOOD } from '../config/reading.js';
import { terminal } from './console.js';

type Answer = { readonly status: number; readonly text: string };

const NOW = Date.parse('2026-11-20T09:30:00Z');
const TOKEN = 'a-token';
const API = 'http://127.0.0.1:9191/api/approvals';
const CONFIG = `${GOOD}listeners: {admin: {host: 0.0.0.0, port: 9191}}
admin: {breakGlass: {token: {env: X}}}
`;

async function run(argv: readonly string[], status: number, value: object) {
  const asked: object[] = [];
  const io = terminal({ env: { SALLYPORT_ADMIN_TOKEN: TOKEN } });
  const ports = {
    files: filesOf({ '/srv/all.yaml': CONFIG }),
    ask(url: string, request: object): Promise<Answer> {
      asked.push({ url, ...request });
      return Promise.resolve({ status, text: JSON.stringify(value) });
    },
  };
  const code = await buildProgram(io, [approvalsCommand(io, ports)]).run(['approvals', ...argv, '-c', 'all.yaml']);
  return { code, asked, out: io.out(), err: io.err() };
}

const HOSTILE = 'delete\u202e\u001b[2J\u200b<b>';
const ONE = approvalOf(NOW, {
  name: HOSTILE,
  content: { args: `{"id":"\u0430dmin","n":1.0,"note":"${'y'.repeat(5_000)}"}`, sensitive: ['/note'] },
});

describe('[APR-73] approvals', () => {
  it('lists what waits by caller, with nothing invisible', async () => {
    const callers = [{ caller: shownCaller(ONE.subject.caller), approvals: [shownApproval(ONE, NOW)], more: 7 }];
    const { code, asked, out } = await run(['list'], 200, { callers, unlisted: 3, forReviewers: 11 });
    expect([code, asked]).toEqual([0, [{ url: API, method: 'GET', token: TOKEN }]]);
    expect(out).toBe(
      `ada of https://idp.example.com by agent
  ${ONE.id} waits for reviewer: tools/call delete\\u{202e}\\u{1b}[2J\\u{200b}<b> at desk, rule records/ask, until 2026-11-20T09:40:00.000Z
  and 7 more of this caller
and 3 of other callers
`,
    );
  });

  it('says that nothing waits, and lists the history as JSON', async () => {
    expect(await run(['list'], 200, { callers: [], unlisted: 0, forReviewers: 0 })).toMatchObject({
      code: 0,
      out: '',
      err: 'note: nothing waits\n',
    });
    const value = { approvals: [shownApproval(ONE, NOW)], more: 0 };
    const { asked, out } = await run(['list', '--history', '--json'], 200, value);
    expect(asked).toMatchObject([{ url: `${API}/history` }]);
    expect(JSON.parse(out)).toEqual(value);
    for (const hidden of ['\u202e', '\u200b', '\u001b']) expect(out).not.toContain(hidden);
  });

  it('shows one with its arguments whole, what is masked, and what is outside ASCII', async () => {
    const { out, asked } = await run(['show', ONE.id], 200, { approval: shownInFull(ONE, NOW, false) });
    expect(asked).toMatchObject([{ url: `${API}/${ONE.id}`, method: 'GET' }]);
    expect(out).toContain('\n  {\n    "id": "\u0430dmin",\n    "n": 1.0,\n    "note": "[masked]"\n  }\n');
    expect(out).toContain('has characters outside ASCII: U+430');
    expect(out).toContain('masked     /note; --sensitive shows it');
    const unmasked = await run(['show', ONE.id, '--sensitive'], 200, { approval: shownInFull(ONE, NOW, true) });
    expect(unmasked.asked).toMatchObject([{ url: `${API}/${ONE.id}?show=sensitive` }]);
    expect(unmasked.out).toContain('y'.repeat(5_000));
  });

  it.each([
    ['grant', 'granted'],
    ['deny', 'denied'],
  ] as const)('%s sends the answer and prints what was answered', async (verb, state) => {
    const answered = { ...ONE, state, usableUntilMs: NOW + 1_000 };
    const { code, asked, out } = await run([verb, ONE.id], 200, { approval: shownApproval(answered, NOW) });
    expect([code, asked]).toEqual([0, [{ url: `${API}/${ONE.id}/${verb}`, method: 'POST', token: TOKEN, body: '{}' }]]);
    expect(out).toContain(`${state} ${ONE.id} ${state}: tools/call delete\\u{202e}`);
    expect(out).toContain('ada of https://idp.example.com by agent');
  });

  it('says why an answer was refused', async () => {
    const refused = await run(['grant', ONE.id], 401, { error: 'Log in again.' });
    expect(refused).toMatchObject({ code: 1, out: '', err: 'error: Log in again.\n' });
  });
});
