import { describe, expect, it } from 'vitest';
import { type AssurePorts, assureCommand } from '../../../../src/cli/assure/assure-command.js';
import { NO_LEVEL } from '../../../../src/cli/assure/report.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { terminal } from '../console.js';

const CONTROLS = [
  { control: 'policy', state: 'armed', reason: '' },
  { control: 'pins:github', state: 'degraded', reason: 'changed: tool a|b\u001b[31m' },
  { control: 'tls:data', state: 'off', reason: 'not configured' },
];

async function assure(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  more: Partial<AssurePorts> = {},
) {
  const io = terminal({ env });
  const asked: string[] = [];
  const ports: AssurePorts = {
    files: { readFile: () => Buffer.from('') },
    now: () => Date.parse('2026-03-01T12:00:00Z'),
    version: '9.9.9',
    configured: () => Promise.resolve({ controls: CONTROLS, diagnostics: [] }),
    ask(url) {
      asked.push(url);
      return Promise.resolve({ status: 200, text: JSON.stringify({ controls: [...CONTROLS, 'odd'] }) });
    },
    ...more,
  };
  const code = await buildProgram(io, [assureCommand(io, ports)]).run(['assure', ...args]);
  return { code, out: io.out(), err: io.err(), asked };
}

const CONFIG = ['-c', 'gateway.yaml'];
const LIVE = ['--url', 'https://gw.example.com:9090'];
const TOKEN = { SALLYPORT_ADMIN_TOKEN: 'token' };

describe('[E-65] assure', () => {
  it('shows each control of a row with its state and reason, and says that no gateway was asked', async () => {
    const { code, out, err, asked } = await assure([...CONFIG, '--source', 'whitepaper']);
    expect([code, asked]).toEqual([0, []]);
    expect(out).toContain('As gateway.yaml configures it at 2026-03-01T12:00:00.000Z: no gateway was asked');
    const head = '\n3 controls: 1 armed, 1 degraded, 1 off.\n';
    expect(out).toContain(String.raw`${head}  pins:github: degraded (changed: tool a|b\u{1b}[31m)${'\n'}`);
    expect(out).toContain(NO_LEVEL);
    const [row = ''] = out.split('\n\n').filter((part) => part.startsWith('whitepaper W1:'));
    expect(row).toContain(String.raw`  control   pins:github: degraded (changed: tool a|b\u{1b}[31m)`);
    expect(row).toContain('  control   policy: armed');
    expect(row).toContain('  tests     test/attacks/changed-definitions.test.ts');
    expect(row).toMatch(/\n {2}open {6}\w/);
    expect(out).toContain('  control   budgets: nothing of this kind is configured');
    expect(err).toContain('no gateway was asked');
  });

  it('asks a running gateway with a token, and never shows the files in its place', async () => {
    const { code, out, asked } = await assure([...LIVE, '--json', '--source', 'cosai'], TOKEN);
    expect([code, asked]).toEqual([0, ['https://gw.example.com:9090/api/controls']]);
    const report = JSON.parse(out);
    expect(report).toMatchObject({ basis: { kind: 'live', origin: 'https://gw.example.com:9090' }, version: '9.9.9' });
    expect(report.rows).toHaveLength(12);
    expect(report.rows[1].controls).toEqual([{ kind: 'policy', states: [CONTROLS[0]] }]);
    const away = await assure(LIVE, TOKEN, { ask: () => Promise.reject(new Error('away')) });
    expect([away.code, away.out]).toEqual([2, '']);
    const other = await assure(LIVE, TOKEN, { ask: () => Promise.resolve({ status: 200, text: '{}' }) });
    expect([other.code, other.err]).toEqual([2, 'error: what answers is not the admin listener of a gateway\n']);
  });

  it('writes a table of Markdown that no reason breaks', async () => {
    const { out } = await assure([...CONFIG, '--format', 'markdown', '--source', 'owasp']);
    const rows = out.split('\n').filter((line) => line.startsWith('| MCP'));
    expect(rows).toHaveLength(10);
    for (const row of rows) expect(row.replaceAll(String.raw`\|`, '').split('|')).toHaveLength(8);
    expect(out).not.toContain('\u001b');
    expect(out).not.toContain('Google');
    expect(out).toContain('1 degraded, 1 off.\n\n- pins:github: degraded (changed: ');
  });

  it('prints the errors of the files and nothing else', async () => {
    const configured: AssurePorts['configured'] = () =>
      Promise.resolve({
        controls: undefined,
        diagnostics: [
          { file: '/srv/gateway.yaml', line: 3, column: 1, severity: 'error', rule: 'yaml', message: 'broken' },
        ],
      });
    const { code, out, err } = await assure(CONFIG, {}, { configured });
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('gateway.yaml:3:1 error broken');
  });
});
