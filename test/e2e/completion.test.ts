// Completion of commands and options by a real shell. docs/reference/commands.md.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildProgram, runSallyport } from '../support/processes.js';

const shell = promisify(execFile);

beforeAll(() => buildProgram());

describe('[E-41] completion', () => {
  let bash: string;
  beforeAll(async () => {
    bash = (await runSallyport(['completion', 'bash'])).stdout;
  });

  /** What bash offers at the end of a command line. */
  async function offered(line: string): Promise<readonly string[]> {
    const args = line.split(' ').map((word) => `'${word}'`);
    const script = `${bash}
COMP_WORDS=(${args.join(' ')}); COMP_CWORD=${args.length - 1}
_sallyport; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout: replies } = await shell('bash', ['-euc', script]);
    return replies.split('\n').filter((reply) => reply !== '');
  }

  it.each([
    ['sallyport pi', ['pin']],
    ['sallyport pin ', ['fetch', 'diff', 'verify', 'approve', 'block', 'sign']],
    ['sallyport pin approve github --kind pro', ['prompt']],
    ['sallyport pin approve --by pin --di', ['--digest']],
    ['sallyport completion ', ['bash', 'zsh', 'fish']],
    ['sallyport serve -c ', []],
    ['sallyport nothing ', ['serve']],
  ])('of "%s" offers %j', async (line, expected) => {
    const found = await offered(line);
    if (line.includes('nothing')) expect(found).toEqual(expect.arrayContaining(expected));
    else expect(found).toEqual(expected);
  });

  it('names every command and option to the other shells', async () => {
    for (const name of ['zsh', 'fish']) {
      const { code, stdout } = await runSallyport(['completion', name]);
      expect(code).toBe(0);
      for (const word of ['healthcheck', 'approve', 'digest', 'sarif']) expect(stdout).toContain(word);
    }
    const wrong = await runSallyport(['completion', 'bsh']);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('Allowed choices are bash, zsh, fish.');
  });
});
