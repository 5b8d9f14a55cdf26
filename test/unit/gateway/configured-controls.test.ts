import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readConfiguredControls } from '../../../src/gateway/configured-controls.js';

const CONFIG = join(import.meta.dirname, '../../../config');
const read = (name: string) => readConfiguredControls(join(CONFIG, name), Date.now);

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

it('[E-65] the files alone need no secret, and none of what lies where the gateway runs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-shown-'));
  try {
    const text = await readFile(join(CONFIG, 'loopback.yaml'), 'utf8');
    const placed = text.replace('../policies/loopback', join(CONFIG, '../policies/loopback'));
    const secrets = [
      'admin: {publicUrl: "https://admin.example", breakGlass: {token: {env: TOKEN}}}',
      'keys: [{file: /nowhere/key}, {env: OTHER_KEY}]',
      'state: {type: redis, url: {env: REDIS_URL}}',
      'listeners: {ops: {tls: {cert: /nowhere/tls.crt, key: {file: /nowhere/tls.key}}}}',
      'approvals: {webhooks: {team: {url: {env: HOOK}, secret: {env: HOOK_KEY}}}}',
    ];
    const file = join(folder, 'gateway.yaml');
    await writeFile(file, `${placed}\n${secrets.join('\n')}\n`);
    const { controls = [], diagnostics } = await readConfiguredControls(file, Date.now);
    expect(diagnostics.flatMap(({ severity, message }) => (severity === 'error' ? [message] : []))).toEqual([]);
    expect(controls).toContainEqual(expect.objectContaining({ control: 'store', state: 'armed' }));
  } finally {
    await rm(folder, { recursive: true });
  }
});
