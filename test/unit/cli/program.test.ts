import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderExitCodesPage } from '../../../scripts/reference/exit-codes.js';
import {
  buildProgram,
  type Command,
  EXIT_CODES,
  exitCodesOf,
  mayColor,
  withConfigOption,
} from '../../../src/cli/program.js';
import { quoteForShell } from '../../../src/text/escaping.js';
import { terminal } from './console.js';

const SERVE: Command = {
  name: 'serve',
  summary: 'Run the gateway.',
  examples: ['sallyport serve -c config/gateway.yaml'],
  configure(command, finish) {
    command
      .requiredOption('-c, --config <file>', 'the gateway file')
      .option('--strict', 'be strict')
      .action((options: { config: string }) => finish(options.config === 'bad.yaml' ? 1 : 0));
  },
};
const BREAKING: Command = {
  name: 'break',
  summary: 'Fail.',
  examples: [],
  configure(command) {
    command.action(async () => {
      await Promise.resolve();
      throw new Error('disk on fire');
    });
  },
};

async function run(...argv: string[]) {
  const io = terminal();
  const code = await buildProgram(io, [SERVE, BREAKING], '0.1.0').run(argv);
  return { code, out: io.out(), err: io.err() };
}

describe('[C-20] the command line', () => {
  it('exits with what the command finished with', async () => {
    expect(await run('serve', '-c', 'good.yaml')).toEqual({ code: 0, out: '', err: '' });
    expect((await run('serve', '-c', 'bad.yaml')).code).toBe(1);
  });

  it('exits with 2 where a command fails by itself', async () => {
    expect(await run('break')).toEqual({ code: 2, out: '', err: 'error: disk on fire\n' });
  });

  it.each([
    [['srve'], "error: unknown command 'srve'\n(Did you mean serve?)\n"],
    [['serve', '-c', 'x', '--strcit'], "error: unknown option '--strcit'\n(Did you mean --strict?)\n"],
    [['serve', '-c', 'x', '--strcit=1'], "error: unknown option '--strcit=1'\n(Did you mean --strict?)\n"],
    [['serve', '-c', 'x', '--zzzzzzzzzz'], "error: unknown option '--zzzzzzzzzz'\n"],
    [['serve'], "error: required option '-c, --config <file>' not specified"],
    [['serve', '-c', 'x', 'more'], 'error: too many arguments'],
    [['s\r\u2028\x1b[2K'], "error: unknown command 's\\r\\u{2028}\\u{1b}[2K'"],
  ])('%j is a mistake of usage', async (argv, message) => {
    const { code, out, err } = await run(...argv);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toContain(message);
  });

  it('shows help to stdout where it was asked for, examples first', async () => {
    const { code, out, err } = await run('serve', '--help');
    expect(code).toBe(0);
    expect(err).toBe('');
    expect(out.startsWith('Examples:\n  sallyport serve -c config/gateway.yaml\n')).toBe(true);
    expect(out).toContain('--strict');
    expect((await run('--help')).out).toMatch(/serve .*Run the gateway\./);
  });

  it('shows help to stderr where nothing was asked for, and exits with 2', async () => {
    const { code, out, err } = await run();
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toContain('serve');
  });

  it('tells its version', async () => {
    expect(await run('--version')).toEqual({ code: 0, out: '0.1.0\n', err: '' });
  });

  it('can be run again: one run leaves nothing behind', async () => {
    const io = terminal();
    const program = buildProgram(io, [SERVE]);
    expect(await program.run(['serve', '-c', 'bad.yaml'])).toBe(1);
    expect(await program.run(['serve', '-c', 'good.yaml'])).toBe(0);
    expect(await program.run(['serve'])).toBe(2);
  });

  it('colours only on a terminal, and not where NO_COLOR is set', () => {
    expect(mayColor({ isTty: true, env: {} })).toBe(true);
    expect(mayColor({ isTty: true, env: { NO_COLOR: '' } })).toBe(true);
    expect(mayColor({ isTty: true, env: { NO_COLOR: '1' } })).toBe(false);
    expect(mayColor({ isTty: false, env: {} })).toBe(false);
  });
});

describe('a word of a command line that is printed to be pasted', () => {
  const texts = ['plain', '', "it's", 'a b', '$(id)', '`id`', '\\', "\\';touch x;'", '=ls', '*', '~'];

  it.each(texts)('%j is one argument of a POSIX shell, as it is', (text) => {
    const script = `printf %s ${quoteForShell(text)}`;
    expect(execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' })).toBe(text);
  });

  it('has no backslash between single quotes, where fish takes it for the beginning of an escape', () => {
    expect(quoteForShell("a\\';touch x")).toBe(`'a'"\\\\"''\\'';touch x'`);
  });

  it('does not begin with =, which zsh replaces', () => {
    expect(quoteForShell('=ls')).toBe("'=ls'");
  });
});

let both: string;
let second: string;
let none: string;
beforeAll(async () => {
  [both, second, none] = (await Promise.all(
    ['both', 'second', 'none'].map((name) => mkdtemp(join(tmpdir(), `sallyport-${name}-`))),
  )) as [string, string, string];
  for (const folder of [both, second]) {
    await mkdir(join(folder, 'config'));
    await writeFile(join(folder, 'config/gateway.yaml'), '');
  }
  await writeFile(join(both, 'sallyport.yaml'), '');
});
afterAll(() => Promise.all([both, second, none].map((folder) => rm(folder, { recursive: true }))));

/** Runs a command that prints the gateway file that it got. */
async function readWith(
  folder: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
  use: Parameters<typeof withConfigOption>[2] = {},
) {
  const io = terminal({ cwd: folder, env });
  const command: Command = {
    ...{ name: 'read', summary: 'Read.', examples: [] },
    configure(commander, finish) {
      withConfigOption(commander.argument('[files...]'), io, use).action(
        (_files: string[], { config }: { config?: string }) => {
          io.stdout(config ?? 'none');
          finish(0);
        },
      );
    },
  };
  const code = await buildProgram(io, [command]).run(['read', ...argv]);
  return [code, io.out(), io.err()];
}

describe('[C-25] the gateway file of a command', () => {
  it('is the one that -c names, and nothing is said', async () => {
    const env = { SALLYPORT_CONFIG: '' };
    expect(await readWith(both, ['-c', 'other.yaml'], env)).toEqual([0, 'other.yaml', '']);
  });

  it('is else that of the variable, sallyport.yaml, or config/gateway.yaml, and nothing is said', async () => {
    const env = { SALLYPORT_CONFIG: '/etc/a.yaml' };
    expect(await readWith(both, [], env)).toEqual([0, '/etc/a.yaml', '']);
    expect(await readWith(both, [])).toEqual([0, 'sallyport.yaml', '']);
    expect(await readWith(second, [])).toEqual([0, 'config/gateway.yaml', '']);
  });

  it('is an error where there is none, or where the variable is empty', async () => {
    const [code, out, err] = await readWith(none, []);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('sallyport.yaml and config/gateway.yaml do not exist here');
    const empty = await readWith(both, [], { SALLYPORT_CONFIG: '' });
    expect(empty.slice(0, 2)).toEqual([2, '']);
    expect(empty[2]).toContain('SALLYPORT_CONFIG is empty');
  });

  it('is not looked for where the arguments are enough, and may be missing where it is optional', async () => {
    const isNeeded = (args: readonly string[]) => args.length === 0;
    expect(await readWith(both, ['a'], {}, { isNeeded })).toEqual([0, 'none', '']);
    expect((await readWith(both, [], {}, { isNeeded }))[1]).toBe('sallyport.yaml');
    expect(await readWith(none, [], {}, { isOptional: true })).toEqual([0, 'none', '']);
    expect((await readWith(both, [], { SALLYPORT_CONFIG: '' }, { isOptional: true }))[0]).toBe(2);
  });
});

const FOLDER = join(import.meta.dirname, '../../..');

it('[C-20] the page of exit codes says what the help of the commands says', async () => {
  const file = join(FOLDER, 'docs/guides/exit-codes.md');
  const text = renderExitCodesPage();
  if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, text);
  expect(await readFile(file, 'utf8')).toBe(text);
});

it('[C-20] the table names commands that exist, and every command has 0 and 2', async () => {
  const record = await readFile(join(FOLDER, 'test/golden/public-surface.json'), 'utf8');
  const { commands } = JSON.parse(record) as { commands: Record<string, unknown> };
  const unknown = Object.keys(EXIT_CODES).filter((name) => !(`sallyport ${name}` in commands));
  expect(unknown).toEqual([]);
  for (const name of Object.keys(commands)) {
    const codes = exitCodesOf(name.replace(/^sallyport ?/, '')).map(([code]) => code);
    expect(codes).toEqual(expect.arrayContaining(['0', '2']));
    expect(codes).toEqual([...codes].sort((one, other) => Number(one) - Number(other)));
  }
});
