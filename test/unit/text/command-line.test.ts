// The words of a line are those that sh makes of it, wherever no more than quoting is needed.

import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitCommandLine } from '../../../src/text/command-line.js';
import { quoteForShell } from '../../../src/text/escaping.js';

/** The words that sh passes to a program. */
function splitBySh(line: string): readonly string[] {
  const { stdout, status } = spawnSync('sh', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8', cwd: '/proc/self' });
  return status === 0 ? stdout.split('\0').slice(0, -1) : ['failed'];
}

describe('the words of a line', () => {
  const lines = [
    `npx -y '@scope/server' "a b" c\\ d`,
    `'it'"'"'s' "say \\"hi\\" \\$x \\n \\\\" ''`,
    `a'b\\\\c'"d" x=\\'y\\' "a\\\nb" c\\\nd`,
    `'a  b'\t"c	d" "" e`,
    `"$" a$ '\`id\`' '$HOME' "it's"`,
  ];
  it.each(lines)('are those of sh: %s', (line) => {
    expect(splitCommandLine(line)).toEqual({ argv: splitBySh(line) });
  });

  it('are those that were quoted', () => {
    const lists = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 6 });
    fc.assert(
      fc.property(lists, (all) => {
        expect(splitCommandLine(all.map(quoteForShell).join(' '))).toEqual({ argv: all });
      }),
    );
  });

  it.each([
    [`npx 'x`, `a quote (') is not closed`],
    ['npx "x', 'a quote (") is not closed'],
    ['npx \\', 'nothing follows'],
    ['npx $HOME/x', '$HOME is not replaced'],
    ['npx "$(id)"', '$( is not replaced'],
    ['npx `id`', '` is not replaced'],
    ['npx ~/x', '~ has no meaning'],
    ['npx a | b', '| has no meaning'],
    ['npx a;b', '; has no meaning'],
    ['npx # x', '# has no meaning'],
  ])('are none where a shell would do more: %s', (line, error) => {
    expect(splitCommandLine(line)).toEqual({ error: expect.stringContaining(error) });
  });
});
