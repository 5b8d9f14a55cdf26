import { describe, expect, it } from 'vitest';
import { accessCommand } from '../../../../src/cli/policy/access.js';
import { csvText, tableText } from '../../../../src/cli/policy/access-text.js';
import { runExplainCall } from '../../../../src/cli/policy/explain.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { terminal } from '../console.js';
import { PORTS, ROOT, TEAMS } from './ports.js';

async function access(...args: readonly string[]) {
  const io = terminal({ cwd: ROOT });
  const code = await buildProgram(io, [accessCommand(io, PORTS)]).run(['access', '-c', TEAMS.config, ...args]);
  return { code, out: io.out(), err: io.err() };
}

type Answers = {
  readonly tools: readonly {
    readonly upstream: string;
    readonly tool: string;
    readonly callers: readonly { readonly group?: string; readonly access: string; readonly rules: unknown }[];
  }[];
};

describe('[POL-11] access', () => {
  it('lists what each group may use where its columns do not fit, with the rules below', async () => {
    const { code, out, err } = await access();
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('support-leads\n  crm/update_customer  if ');
    expect(out).toContain('\n  none of the other 14\n');
    expect(out).toMatch(/\n\d+ +engineering\/leads-merge, if the token has the scope code:write; args\.into:\n/);
    expect(out).toMatch(/\n {4}refused by finance\/no-large-refunds, if args\.amount > 5000\.0\n/);
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('puts the groups into columns while they fit', () => {
    const reading = { id: 'p/read', effect: 'allow', conditions: [] } as const;
    const yes = { access: 'yes', rules: [reading] } as const;
    const no = { access: 'no', reason: 'no-matching-allow', rules: [] } as const;
    const denied = {
      access: 'no',
      reason: 'denied-by-rule',
      rules: [{ ...reading, id: 'p/not', effect: 'deny' }],
    } as const;
    const callers = [{ issuer: 'corp' }, { issuer: 'corp', group: 'eng' }];
    const tools = [
      { upstream: 'a', tool: 'read', shownAs: 'look', access: [no, yes] },
      { upstream: 'a', tool: 'delete', access: [denied, denied] },
    ];
    const lines = [
      ...['TOOL                    everybody  eng', 'a/read (shown as look)  -          yes 1'],
      ...['a/delete                - 2        - 2', '', '1   p/read', '2   no: denied-by-rule, by p/not', ''],
    ];
    expect(tableText({ callers, isOne: false, tools })).toBe(lines.join('\n'));
  });

  it('says of a caller what explain call says, for arguments that the definition admits', async () => {
    const as = '{"groups":["eng"],"scopes":["code:read"]}';
    const { out } = await access('--as', as, '--tool', 'code/get_file', 'code/c*', '--format', 'json');
    const { tools } = JSON.parse(out) as Answers;
    expect(tools.length).toBe(2);
    for (const { upstream, tool, callers } of tools) {
      const io = terminal({ cwd: ROOT });
      const target = `${upstream}/${tool}`;
      await runExplainCall({ ...TEAMS, target, as, args: '{}', json: true }, io, PORTS);
      const { verdict, reason } = JSON.parse(io.out());
      const [one] = callers;
      if (one?.access === 'no') expect([target, verdict]).toEqual([target, 'deny']);
      if (one?.access === 'yes') expect([target, reason ?? verdict]).toEqual([target, expect.stringMatching(/^a/)]);
    }
    const found = (name: string) => tools.find(({ tool }) => tool === name)?.callers[0];
    expect(found('get_file')).toMatchObject({ access: 'yes', rules: [{ id: 'engineering/read-code' }] });
    expect(found('create_pull_request')).toMatchObject({ access: 'no', reason: 'insufficient-scope' });
  });

  it('refuses a tool or caller that nobody knows, with the one that was probably meant', async () => {
    expect(await access('--tool', 'code/get_fil')).toMatchObject({
      code: 2,
      err: expect.stringContaining('did you mean "code/get_file"?'),
    });
    expect(await access('--tool', 'cod/get_file')).toMatchObject({ code: 2, err: expect.stringContaining('"code"') });
    expect(await access('--as', '{"group":["eng"]}')).toMatchObject({ code: 2, out: '' });
  });

  it('writes CSV in which no name is a formula, and text in which none acts on a terminal', () => {
    const report = {
      callers: [{ issuer: 'corp', group: '=HYPERLINK("x")' }],
      isOne: false,
      tools: [
        {
          upstream: 'a',
          tool: '@b\u001b[31m',
          access: [{ access: 'yes', rules: [{ id: 'p/r', effect: 'allow', conditions: [] }] }],
        },
      ],
    } as const;
    expect(csvText(report).split('\r\n')[1]).toBe(`corp,"'=HYPERLINK(""x"")",a,'@b\\u{1b}[31m,,yes,,p/r,`);
    expect(tableText(report)).toContain('\na/@b\\u{1b}[31m  yes 1\n\n1   p/r\n');
  });
});
