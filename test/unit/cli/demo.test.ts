import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { demoCommand } from '../../../src/cli/demo.js';
import type { DevPorts } from '../../../src/cli/dev.js';
import { buildProgram } from '../../../src/cli/program.js';
import { ATTACK_SCENES } from '../../../src/dev/attack-scenes.js';
import { terminal } from './console.js';

async function run(...argv: readonly string[]) {
  const io = terminal();
  // Neither a list nor a name that is unknown starts anything.
  const ports = {} as DevPorts;
  const code = await buildProgram(io, [demoCommand(io, ports)]).run(['demo', ...argv]);
  return { code, out: io.out(), err: io.err() };
}

describe('[D-15] demo --scene', () => {
  it('lists the scenes with a line each', async () => {
    const { code, out, err } = await run('--scene', 'list');
    expect([code, err]).toEqual([0, '']);
    expect(out.trim().split('\n')).toEqual(
      ATTACK_SCENES.map(({ name, title }) => expect.stringMatching(`^${name} +${title.replace('+', '.')}$`)),
    );
    expect(ATTACK_SCENES).toHaveLength(10);
  });

  it('has a section of the guide for each, with its picture', async () => {
    const guide = await readFile(new URL('../../../docs/guides/attacks-live.md', import.meta.url), 'utf8');
    const found = (pattern: RegExp): readonly string[] => [...guide.matchAll(pattern)].map(([, name = '']) => name);
    const names = ATTACK_SCENES.map(({ name }) => name);
    expect(found(/^`sallyport demo --scene ([a-z-]+)`$/gm)).toEqual(names);
    expect(found(/scene-([a-z-]+)-dark\.svg/g)).toEqual(names);
    expect(found(/scene-([a-z-]+)-light\.svg/g)).toEqual(names);
    expect(found(/^## (.+)$/gm)).toEqual(ATTACK_SCENES.map(({ title }) => title));
  });

  it('says so of a name that it does not know, and lists the others', async () => {
    const { code, out, err } = await run('--scene', 'a\u001bb');
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('there is no scene a\\u{1b}b');
    expect(err).toContain('path-escape');
  });
});
