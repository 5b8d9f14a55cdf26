// What the adapter reads before a start: values that are there, and the cause where one is not.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { planOfFile } from '../../../src/cli/stdio-plan.js';
import { terminal } from './console.js';

it('[STD-08] gives a server its variables, empty ones too, and says which has no value', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-plan-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'key'), 'of nobody\n');
  await writeFile(join(folder, 'empty'), '\n');
  const server = (env: string) => `{command: [run, it], env: {${env}}}`;
  const servers = [
    `good: ${server('KEY: {file: key}, NONE: {file: empty}, HERE: {env: SET}')}`,
    `lost: ${server('KEY: {file: kye}')}`,
    `unset: ${server('KEY: {env: STE}')}`,
  ];
  const text = `listen: 127.0.0.1:8090\ntoken: {file: token}\nservers:\n${servers.map((one) => `  ${one}\n`).join('')}`;
  await writeFile(join(folder, 'stdio.yaml'), text);
  const plan = await planOfFile('stdio.yaml', {}, terminal({ cwd: folder, env: { SET: '', PATH: '/bin' } }));
  if ('error' in plan) throw new Error(plan.error);
  const prepared = async (name: string) => await plan.servers.get(`/${name}`)?.prepare();
  expect(await prepared('good')).toEqual({
    ...{ command: 'run', args: ['it'], cwd: folder },
    env: { PATH: '/bin', KEY: 'of nobody', NONE: '', HERE: '' },
  });
  expect(await prepared('lost')).toEqual({
    error:
      'its variable KEY has no value: the file "kye" does not exist (its path is relative to the file that names it)',
  });
  expect(await prepared('unset')).toEqual({
    error: 'its variable KEY has no value: the environment variable "STE" is not set',
  });
});
