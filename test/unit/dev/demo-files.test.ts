import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DISK_FILES } from '../../../src/config/files.js';
import { loadGateway } from '../../../src/config/load.js';
import { loadPolicies } from '../../../src/config/policies.js';
import { DESK, type DemoFiles, writeDemoFiles } from '../../../src/dev/demo-files.js';

const INPUT = {
  publicUrl: 'http://127.0.0.1:8080',
  issuer: 'http://127.0.0.1:8090',
  upstreamUrl: 'http://127.0.0.1:8091/mcp',
  ports: { data: 8080, ops: 9464, admin: 9090 },
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sallyport-demo-'));
});
afterEach(() => rm(dir, { recursive: true }));

function load(files: DemoFiles) {
  return loadGateway(files.configFile, { readFile: DISK_FILES.readFile, env: {} });
}

describe('the files of the demo', () => {
  it('[D-09] are a configuration without a fault', async () => {
    const { settings, faults } = load(await writeDemoFiles(dir, INPUT));
    expect(faults).toEqual([]);
    const desk = settings?.upstreams.get(DESK.name);
    expect(desk?.resource).toBe('http://127.0.0.1:8080/desk');
    expect(desk?.url.href).toBe(INPUT.upstreamUrl);
    expect(desk?.pinning.mode).toBe('strict');
    expect(settings?.admin).toBeUndefined();
  });

  it('[D-09] open the admin listener with a token that only the owner can read', async () => {
    const adminToken = 'x'.repeat(40);
    const { settings, faults } = load(await writeDemoFiles(dir, { ...INPUT, adminToken }));
    expect(faults).toEqual([]);
    expect(settings?.admin?.breakGlassToken).toBe(adminToken);
    expect((await stat(join(dir, 'admin-token'))).mode & 0o077).toBe(0);
  });

  it('[D-09] are a policy without a fault, whose rules say what the tour shows', async () => {
    const { policiesDir } = await writeDemoFiles(dir, INPUT);
    const { documents, faults } = loadPolicies(policiesDir, {
      files: DISK_FILES,
      compile: () => ({ policies: true, faults: [] }),
    });
    expect(faults).toEqual([]);
    expect(documents[0]?.rules.map((rule) => [rule.effect, rule.id])).toEqual([
      ['allow', 'engineers-read-tickets'],
      ['allow', 'engineers-export'],
      ['allow', 'support-reads-customers'],
      ['allow', 'everyone-reads-the-handbook'],
      ['require', 'small-results'],
      ['deny', 'nobody-deletes'],
    ]);
  });
});
