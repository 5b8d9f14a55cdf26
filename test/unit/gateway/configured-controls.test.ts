import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readConfiguredControls } from '../../../src/gateway/configured-controls.js';

const CONFIG = join(import.meta.dirname, '../../../config');
const read = (name: string) => readConfiguredControls(join(CONFIG, name), {}, Date.now);

it('[E-65] the files alone say which controls are off by choice, and blame nothing that was not asked', async () => {
  const { controls = [] } = await read('loopback.yaml');
  const states = Object.fromEntries(controls.map(({ control, state, reason }) => [control, [state, reason]]));
  expect(states).toMatchObject({
    policy: ['armed', ''],
    'audience:everything': ['off', 'authentication: none'],
    'pins:everything': ['armed', ''],
    'upstream-connection:everything': ['armed', ''],
    'upstream-credentials:everything': ['off', 'credentials: none'],
    'tls:data': ['off', expect.stringContaining('plain HTTP')],
    store: ['off', expect.stringContaining('state.type: memory')],
    admin: ['off', 'admin is not configured'],
  });
  expect(controls.filter(({ state }) => state === 'degraded')).toEqual([]);
});

it('[E-65] files with errors have no controls', async () => {
  const { controls, diagnostics } = await read('no-such-file.yaml');
  expect([controls, diagnostics.length]).toEqual([undefined, 1]);
});
