import { readdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { DISK_FILES } from '../../../src/config/files.js';
import { loadGateway, loadPolicies } from '../../../src/config/load.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import { KEY_HEX, lineOf } from './reading.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SECRETS: Readonly<Record<string, string>> = {
  '/run/secrets/sallyport-key': KEY_HEX,
  '/run/secrets/break-glass': 'break-glass-'.repeat(3),
  '/run/secrets/sallyport-login': 'login-'.repeat(6),
};

function load(name: string) {
  return loadGateway(resolve(ROOT, 'config', name), {
    readFile: (path) => {
      const secret = SECRETS[path];
      return secret === undefined ? DISK_FILES.readFile(path) : new TextEncoder().encode(secret);
    },
    env: {
      WEB_MCP_AUTHORIZATION: `Bearer ${KEY_HEX}`,
      SALLYPORT_KEY: KEY_HEX,
      REDIS_URL: 'redis://127.0.0.1:6379',
    },
  });
}

const NAMES = [
  ...readdirSync(resolve(ROOT, 'config')).filter((name) => name.endsWith('.yaml')),
  'compose/gateway/gateway.yaml',
];

describe('[C-19] the examples', () => {
  it('are there', () => {
    expect(NAMES).toEqual(expect.arrayContaining(['gateway.yaml', 'loopback.yaml']));
  });

  it.each(NAMES)('config/%s loads, and so do its policies', (name) => {
    const { settings, diagnostics } = load(name);
    expect(diagnostics.map(lineOf)).toEqual([]);
    const policies = loadPolicies(settings?.policiesDir ?? '', {
      files: DISK_FILES,
      compile: (documents, hash) =>
        compilePolicies(documents, {
          hash,
          upstreams: [...(settings?.upstreams.values() ?? [])].map((upstream) => ({
            name: upstream.name,
            issuers: upstream.issuers,
            strict: upstream.pinning.mode === 'strict',
          })),
          profiles: [...(settings?.profiles.keys() ?? [])],
          issuers: [...(settings?.issuers.keys() ?? [])],
        }),
    });
    expect(policies.diagnostics.map(lineOf)).toEqual([]);
    expect(policies.documents.length).toBeGreaterThan(0);
    const upstreams = new Set(settings?.upstreams.keys());
    const named = policies.documents.flatMap(({ rules }) => rules.flatMap(({ what }) => what.upstreams ?? []));
    for (const upstream of named) if (upstream !== '*') expect(upstreams).toContain(upstream);
  });

  it.each([
    ...NAMES.map((name) => `config/${name}`),
    ...readdirSync(resolve(ROOT, 'policies'), { recursive: true })
      .map((name) => `policies/${String(name)}`)
      .filter((name) => name.endsWith('.policy.yaml')),
  ])('%s names its schema in a modeline', (name) => {
    const text = readFileSync(resolve(ROOT, name), 'utf8');
    const modeline = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)?.[1] ?? '';
    const schema = JSON.parse(readFileSync(resolve(ROOT, dirname(name), modeline), 'utf8'));
    const kind = name.startsWith('config/') ? 'gateway' : 'policy';
    expect(schema.$id).toBe(`urn:sallyport:schema:${kind}:1`);
  });

  it('show a gateway without authentication on loopback only', () => {
    const { settings } = load('loopback.yaml');
    expect(settings?.publicUrl.hostname).toBe('127.0.0.1');
    expect([...(settings?.upstreams.values() ?? [])][0]?.authentication).toBe('none');
    expect(load('gateway.yaml').settings?.upstreams.size).toBe(2);
  });
});
