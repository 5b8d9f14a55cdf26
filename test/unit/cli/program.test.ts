import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { buildProgram, type Command, mayColor } from '../../../src/cli/program.js';
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
    [['srve'], 'error: unknown command \'srve\'; did you mean "serve"?'],
    [
      ['serve', '-c', 'x', '--strcit'],
      'error: unknown option \'--strcit\'; did you mean "--strict"?',
    ],
    [['serve'], "error: required option '-c, --config <file>' not specified"],
    [['serve', '-c', 'x', 'more'], 'error: too many arguments'],
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
  const texts = [
    'plain',
    '',
    "it's",
    'a b',
    '$(id)',
    '`id`',
    '\\',
    "\\';touch x;'",
    '=ls',
    '*',
    '~',
  ];

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
