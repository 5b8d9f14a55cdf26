import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { followLines } from '../../../src/cli/audit/read.js';
import { clientConfigurations } from '../../../src/cli/dev.js';
import { decisionLine, type LineView } from '../../../src/cli/dev-lines.js';
import { REASONS } from '../../../src/policy/reasons.js';

function outcome(decision: object, more: object = {}): Record<string, unknown> {
  return {
    time: '2026-11-22T19:47:18.123Z',
    type: 'mcp.outcome',
    target: { upstream: 'mcp', method: 'tools/call', name: 'echo' },
    decision,
    ...more,
  };
}

function finding(detector: string, action: string, path: string, count: number): object {
  return { detector, direction: 'to-client', path, count, action };
}

const PLAIN: LineView = { hasColor: false, namesServers: false, ownRule: 'own-rule', hiddenAt: () => [] };

describe('[E-40] a line for a decision', () => {
  it.each([
    [
      'says which rule allowed it',
      outcome({ action: 'forwarded', rule: 'all', reasons: [] }),
      '19:47:18  allowed   tools/call echo                       by rule all',
    ],
    [
      'says why it was refused',
      outcome({ action: 'refused', reasons: ['denied-by-rule'] }),
      `19:47:18  refused   tools/call echo                       denied-by-rule: ${REASONS['denied-by-rule'].text}`,
    ],
    [
      'names the arguments that were refused',
      outcome(
        { action: 'refused', reasons: ['arguments-invalid'] },
        {
          args: {
            violations: [
              { pointer: '/task_progress', keyword: 'undeclared' },
              { pointer: '', keyword: 'type' },
            ],
          },
        },
      ),
      `19:47:18  refused   tools/call echo                       arguments-invalid: ${REASONS['arguments-invalid'].text.slice(0, -1)}: /task_progress (undeclared), arguments (type)`,
    ],
    [
      'names what was wrong with an answer',
      outcome({
        action: 'withheld',
        reasons: ['upstream-protocol'],
        detail: 'content-encoding: gzip\u001b[2J',
      }),
      `19:47:18  withheld  tools/call echo                       upstream-protocol: ${REASONS['upstream-protocol'].text.slice(0, -1)}: content-encoding: gzip\\u{1b}[2J`,
    ],
    [
      'says which argument became what the schema expects',
      outcome(
        { action: 'forwarded', rule: 'all', reasons: [] },
        {
          findings: [
            {
              ...finding('coerced-argument', 'coerce', '/params/arguments/count', 1),
              direction: 'to-upstream',
            },
          ],
        },
      ),
      '19:47:18  allowed   tools/call echo                       by rule all; in the request: converted coerced-argument',
    ],
    [
      'says how much of a list was shown',
      outcome(
        { action: 'forwarded', rule: 'protocol', reasons: [] },
        { target: { method: 'tools/list' }, result: { list: { advertised: 3, visible: 2 } } },
      ),
      '19:47:18  allowed   tools/list                            shows 2 of 3',
    ],
    [
      'names what of a list was left out',
      outcome(
        {
          action: 'forwarded',
          rule: 'protocol',
          reasons: [],
          detail: 'left out: tools/2: no name',
        },
        { target: { method: 'tools/list' }, result: { list: { advertised: 3, visible: 2 } } },
      ),
      '19:47:18  allowed   tools/list                            shows 2 of 3; left out: tools/2: no name',
    ],
    [
      'shows what a client wrote without acting on the terminal',
      outcome({ action: 'refused', reasons: [] }, { target: { method: 'tools/call', name: '\u001b[2Jx' } }),
      '19:47:18  refused   tools/call \\u{1b}[2Jx',
    ],
    [
      'says what was altered, and what of a request was left out',
      outcome(
        { action: 'forwarded', rule: 'all', reasons: [] },
        {
          result: { status: 'ok', altered: true },
          findings: [
            finding('secret:npm-token', 'redact', '/result/content/0/text', 2),
            finding('secret:npm-token', 'redact', '/result/content/1/text', 1),
            finding('active:image', 'neutralize', '/result/content/0/text', 1),
            finding('injection:override', 'flag', '/result/content/0/text', 1),
            { ...finding('undefined-params', 'drop', '/params/x', 1), direction: 'to-upstream' },
          ],
        },
      ),
      '19:47:18  altered   tools/call echo                       by rule all; redacted secret:npm-token (3), made inert active:image; in the request: left out undefined-params',
    ],
    [
      'says because of what a result was withheld',
      outcome(
        { action: 'withheld', reasons: ['result-content'] },
        { findings: [finding('active:html', 'withhold', '', 1)] },
      ),
      `19:47:18  withheld  tools/call echo                       result-content: ${REASONS['result-content'].text}; because of active:html`,
    ],
    [
      'is there for a definition that has changed',
      {
        time: '2026-11-22T19:47:18.123Z',
        type: 'pin.drift',
        target: { upstream: 'mcp', kind: 'tool', name: 'echo' },
        detail: { change: 'description' },
      },
      '19:47:18  changed   tool echo: description',
    ],
    ['is not there for other events', { type: 'checkpoint', time: '' }, undefined],
  ])('%s', (_, event, line) => {
    expect(decisionLine(event, PLAIN)).toBe(line);
  });

  it('names the server and what a list hides, and says nothing of the rule of dev', () => {
    const view = { ...PLAIN, namesServers: true, hiddenAt: (server: string, kind: string) => [`${server} ${kind} x`] };
    const list = {
      target: { upstream: 'files', method: 'tools/list' },
      result: { list: { advertised: 3, visible: 2 } },
    };
    expect(decisionLine(outcome({ action: 'forwarded', reasons: [] }, list), view)).toBe(
      '19:47:18  allowed   files tools/list                      shows 2 of 3; hidden: files tool x',
    );
    expect(decisionLine(outcome({ action: 'forwarded', rule: 'own-rule-by-files', reasons: [] }), view)).toBe(
      '19:47:18  allowed   mcp tools/call echo',
    );
  });

  it('is coloured by verdict, and no line is wider than the terminal', () => {
    const refused = outcome({ action: 'refused', reasons: ['denied-by-rule'], detail: 'x'.repeat(90) });
    const shown = decisionLine(refused, { ...PLAIN, hasColor: true, columns: 80 }) ?? '';
    expect(shown).toContain('\u001b[31mrefused ');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: styles have no width.
    const lines = shown.replace(/\u001b\[\d+m/g, '').split('\n');
    expect(lines.length).toBeGreaterThan(2);
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    const altered = { result: { altered: true }, findings: [finding('pii:iban', 'redact', '', 1)] };
    expect(decisionLine(outcome({ action: 'forwarded', reasons: [] }, altered), { ...PLAIN, columns: 120 })).toBe(
      '19:47:18  altered   tools/call echo                       redacted pii:iban',
    );
  });

  it('is found in what is appended, whole, and in order', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-lines-'));
    const file = join(folder, 'audit.jsonl');
    await writeFile(file, 'one\ntw');
    const lines: string[] = [];
    let isOver = false;
    const wait = (): Promise<boolean> => sleep(1).then(() => !isOver);
    const follow = async (): Promise<void> => {
      for await (const line of followLines(async () => [file], wait, true)) lines.push(line);
    };
    const following = follow();
    await expect.poll(() => lines).toEqual(['one']);
    await appendFile(file, `o\n${'x'.repeat(200_000)}\nrest`);
    isOver = true;
    await following;
    expect(lines).toEqual(['one', 'two', 'x'.repeat(200_000)]);
    await rm(folder, { recursive: true });
  });
});

describe('[E-40] the configuration of clients', () => {
  it('is a command or one JSON document for each', () => {
    const text = clientConfigurations('mcp', 'http://127.0.0.1:8080/mcp');
    const [code, desktop, editor, cursor, inspector] = text.split('\n').filter((line) => line.startsWith('  '));
    expect(code).toBe(
      '  claude mcp add --transport http mcp http://127.0.0.1:8080/mcp --header "Authorization: Bearer $TOKEN"',
    );
    expect(JSON.parse(desktop ?? '').mcpServers.mcp.env).toEqual({
      AUTHORIZATION: 'Bearer PASTE_TOKEN',
    });
    const { inputs, servers } = JSON.parse(editor ?? '');
    expect(servers.mcp.type).toBe('http');
    expect(servers.mcp.headers).toEqual({ Authorization: `Bearer \${input:${inputs[0].id}}` });
    expect(JSON.parse(cursor ?? '').mcpServers.mcp.headers).toEqual({
      Authorization: `Bearer \${env:TOKEN}`,
    });
    expect(inspector).toContain('npx @modelcontextprotocol/inspector@latest --cli http');
    expect(inspector).toContain('--transport http --header "Authorization: Bearer $TOKEN"');
  });
});
