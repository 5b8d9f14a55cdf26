// Work on large lock files is done in jobs of bounded size, with the same result as in place.

import { expect, it } from 'vitest';
import { createLockWork } from '../../../src/gateway/lock-work.js';
import { type DefinitionOutcomes, type DefinitionTask, runDefinitionTask } from '../../../src/inspection/jobs.js';
import { createDefinitionCompiler } from '../../../src/pins/catalog.js';
import { writeLock } from '../../../src/pins/lock.js';
import { readLock } from '../../../src/pins/lock-reader.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import { mirroredParameters } from '../../../src/protocol/headers.js';
import { lockOf, pinOf, toolOf } from '../pins/samples.js';

const FILE = 'github.first-use.yaml';
const USABLE = Array.from({ length: 30 }, (_, at) => toolOf(`tool_${at}`, { description: 'long '.repeat(1_000) }));
const LOCK = lockOf(
  [...USABLE, toolOf('broken', { inputSchema: { type: 'object', properties: 7 } })].map((tool) => pinOf(tool)),
);

/** `fails`: the tasks whose jobs do not finish. */
function workOf(fails: readonly DefinitionTask[] = []) {
  const sizes: number[] = [];
  const compiled: unknown[] = [];
  const compile = createDefinitionCompiler({
    compileSchema(...given) {
      compiled.push(given);
      return compileSchema(...given);
    },
    mirroredParameters,
  });
  const definitions = async <Task extends DefinitionTask>(task: Task, text: string) => {
    sizes.push(text.length);
    return fails.includes(task) ? undefined : (runDefinitionTask({ task, text }) as DefinitionOutcomes[Task]);
  };
  return { work: createLockWork({ definitions, compile, formatsAt: () => undefined }), compile, compiled, sizes };
}

it('[L-55] reads and writes as in place', async () => {
  const { work, sizes } = workOf();
  const text = await work.write(LOCK);
  expect(text).toBe(writeLock(LOCK));
  expect(await work.read('github', FILE, text)).toEqual(readLock(FILE, text));
  expect(sizes.length).toBeGreaterThan(3);
  expect(Math.max(...sizes)).toBeLessThan(80_000);
});

it('[L-55] rejects where a job does not finish', async () => {
  const { work } = workOf(['lock', 'pins']);
  await expect(work.write(LOCK)).rejects.toThrow('the thread for it ended');
  await expect(work.read('github', FILE, writeLock(LOCK))).rejects.toThrow('the thread for it ended');
});

it.each([
  ['finds out which definitions can be used, and compiles none here', [], 0],
  ['leaves to their first use what it could not find out', ['usable'], LOCK.pins.tool.size],
] as const)('[L-46] %s', async (_what, fails, times) => {
  const { work, compile, compiled } = workOf(fails);
  await work.check(LOCK);
  const usable = [...LOCK.pins.tool].filter(([name, version]) => compile('tool', name, version) !== undefined);
  expect([usable.length, compiled.length]).toEqual([USABLE.length, times]);
});
