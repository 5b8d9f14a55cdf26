// A plain tools/call runs nothing that belongs to a feature: counted by V8 in a running gateway, once it is warm.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { buildProgram } from '../support/processes.js';

const SCRIPT = join(import.meta.dirname, '../../scripts/warm-call.mjs');

beforeAll(buildProgram);

it('[D-10] runs no file of a feature but the table of features, in a session or without', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT]).catch(
    (failed: { stdout: string }) => failed,
  );
  expect(stdout).toContain('of features without a session: none');
  expect(stdout).toContain('of features in a session: none');
}, 120_000);
