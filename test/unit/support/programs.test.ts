import { expect, it } from 'vitest';
import { run } from '../../system/programs.js';

it('lets a program end without reading its input', async () => {
  const input = 'x'.repeat(1_000_000);
  const finished = await run(process.execPath, ['-e', 'process.exit(3)'], { input });
  expect(finished).toEqual({ code: 3, stdout: '', stderr: '' });
});
