import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withConfigOption } from '../../../src/cli/config-file.js';
import { buildProgram, type Command } from '../../../src/cli/program.js';
import { terminal } from './console.js';

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
async function run(
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
  const note = (file: string, why: string) => `note: the gateway file is ${file} (${why})\n`;

  it('is the one that -c names, and nothing is said', async () => {
    const env = { SALLYPORT_CONFIG: '' };
    expect(await run(both, ['-c', 'other.yaml'], env)).toEqual([0, 'other.yaml', '']);
  });

  it('is else that of the variable, sallyport.yaml, or config/gateway.yaml, and stderr says which', async () => {
    const env = { SALLYPORT_CONFIG: '/etc/a.yaml' };
    const named = note('/etc/a.yaml', 'from SALLYPORT_CONFIG');
    expect(await run(both, [], env)).toEqual([0, '/etc/a.yaml', named]);
    const first = note('sallyport.yaml', 'no -c was given');
    expect(await run(both, [])).toEqual([0, 'sallyport.yaml', first]);
    const other = note('config/gateway.yaml', 'no -c was given');
    expect(await run(second, [])).toEqual([0, 'config/gateway.yaml', other]);
  });

  it('is an error where there is none, or where the variable is empty', async () => {
    const [code, out, err] = await run(none, []);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('sallyport.yaml and config/gateway.yaml do not exist here');
    const empty = await run(both, [], { SALLYPORT_CONFIG: '' });
    expect(empty.slice(0, 2)).toEqual([2, '']);
    expect(empty[2]).toContain('SALLYPORT_CONFIG is empty');
  });

  it('is not looked for where the arguments are enough, and may be missing where it is optional', async () => {
    const isNeeded = (args: readonly string[]) => args.length === 0;
    expect(await run(both, ['a'], {}, { isNeeded })).toEqual([0, 'none', '']);
    expect((await run(both, [], {}, { isNeeded }))[1]).toBe('sallyport.yaml');
    expect(await run(none, [], {}, { isOptional: true })).toEqual([0, 'none', '']);
    expect((await run(both, [], { SALLYPORT_CONFIG: '' }, { isOptional: true }))[0]).toBe(2);
  });
});
