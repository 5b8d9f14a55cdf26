import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../../src/cli/program.js';
import {
  runValidate,
  SCHEMAS,
  schemaCommand,
  type ValidateOptions,
  type ValidatePorts,
  validateCommand,
} from '../../../src/cli/validate.js';
import type { PolicyContext } from '../../../src/policy/compile/documents.js';
import { filesOf, GOOD, KEY_HEX } from '../config/reading.js';
import { terminal } from './console.js';

const POLICY = `version: 1
policy: p
rules:
  - id: a
    effect: allow
    who: {anyone: true}
    what: {upstreams: [github], tools: ["*"]}
`;
const FILES = { '/srv/config/gateway.yaml': GOOD, '/srv/config/policies/p.policy.yaml': POLICY };

type Case = {
  readonly files?: Readonly<Record<string, string>>;
  readonly options?: Partial<ValidateOptions>;
  readonly ports?: Partial<ValidatePorts>;
  readonly env?: Readonly<Record<string, string>>;
};

async function validate({ files = {}, options = {}, ports = {}, env = { KEY: KEY_HEX } }: Case) {
  const io = terminal({ env });
  const code = await runValidate({ config: 'config/gateway.yaml', ...options }, io, {
    files: filesOf({ ...FILES, ...files }),
    compilePolicies: () => ({ diagnostics: [] }),
    loadLocks: () => Promise.resolve({ upstreams: [], diagnostics: [] }),
    ...ports,
  });
  return { code, out: io.out(), err: io.err() };
}

describe('[C-21] validate', () => {
  it('prints the first of thousands of mistakes, and in every other format all', async () => {
    const keys = Array.from({ length: 5_000 }, (_, index) => `key_${index}: 1\n`).join('');
    const files = { '/srv/config/gateway.yaml': `${GOOD}${keys}` };
    const { code, out, err } = await validate({ files });
    expect([code, out.split('\n').length]).toEqual([1, 501]);
    expect(err).toBe('and 4500 more, all of them with --format json\n5000 errors, 0 warnings\n');
    const json = await validate({ files, options: { format: 'json' } });
    expect(JSON.parse(json.out).faults).toHaveLength(5_000);
    expect(json.err).toBe('5000 errors, 0 warnings\n');
  });

  it('[E-64] tries nothing while the files have errors or secrets are unread, and fails where a try does', async () => {
    const tried: string[] = [];
    const online = (state: 'ok' | 'warning' | 'failed', options: Partial<ValidateOptions> = {}, files = {}) =>
      validate({
        files,
        options: { online: true, ...options },
        ports: {
          tryOnline: ({ file }) => {
            tried.push(file);
            return Promise.resolve([{ what: 'store', state, cause: 'said' }]);
          },
        },
      });
    const broken = { '/srv/config/gateway.yaml': `${GOOD}unknown: 1\n` };
    const [unread, wrong] = [await online('ok', { secrets: false }), await online('ok', {}, broken)];
    expect([unread.code, wrong.code, tried]).toEqual([2, 1, []]);
    expect(wrong.err).toContain('online: nothing was tried, because the files have errors\n');
    expect(await online('ok')).toMatchObject({ code: 0, out: 'ok        store: said\n' });
    expect([(await online('failed')).code, (await online('warning')).code]).toEqual([1, 0]);
    expect((await online('warning', { strict: true })).code).toBe(1);
    const json = JSON.parse((await online('failed', { format: 'json' })).out);
    expect(json).toEqual({ faults: [], tries: [{ what: 'store', state: 'failed', cause: 'said' }] });
    expect(tried).toHaveLength(5);
  });

  it('says nothing where nothing is wrong', async () => {
    expect(await validate({})).toEqual({ code: 0, out: '', err: '0 errors, 0 warnings\n' });
  });

  it('finds mistakes of shape in gateway file and policies in one run', async () => {
    const { code, out } = await validate({
      files: {
        '/srv/config/gateway.yaml': GOOD.replace('issuers: [corp]', 'isuers: [corp]'),
        '/srv/config/policies/p.policy.yaml': POLICY.replace('allow', 'alow'),
      },
    });
    expect(code).toBe(1);
    expect(out.split('\n')).toEqual([
      'config/gateway.yaml:11:5 error unknown key "isuers"; did you mean "issuers"?',
      'config/policies/p.policy.yaml:5:13 error "alow" is not one of allow, deny, require; did you mean "allow"?',
      '',
    ]);
  });

  it('finds mistakes of meaning, of policies and of lock files in one run', async () => {
    const { code, out } = await validate({
      files: {
        '/srv/config/gateway.yaml': GOOD.replace('issuers: [corp]', 'issuers: [crop]'),
        '/srv/config/policies/p.policy.yaml': POLICY.replace('allow', 'alow'),
      },
      ports: {
        loadLocks: (folder) =>
          Promise.resolve({
            upstreams: ['githb'],
            diagnostics: [
              {
                ...{ file: `${folder}/github.lock.yaml`, line: 4, column: 9 },
                ...{ severity: 'error', rule: 'lock', message: 'the digest differs' },
              },
            ],
          }),
      },
    });
    expect(code).toBe(1);
    expect(out.split('\n')).toEqual([
      'config/gateway.yaml:11:15 error unknown issuer "crop"; did you mean "corp"?',
      'config/policies/p.policy.yaml:5:13 error "alow" is not one of allow, deny, require; did you mean "allow"?',
      'config/policies/pins/githb.lock.yaml:1:1 warning the gateway file has no upstream named "githb"; did you mean "github"?',
      'config/policies/pins/github.lock.yaml:4:9 error the digest differs',
      '',
    ]);
  });

  it('judges policies against what the gateway file names, though it has mistakes', async () => {
    let seen: PolicyContext | undefined;
    const text = GOOD.replace('[corp]', '[corp]\n    pinning: {mode: off}').replace('https://github', 'http://github');
    await validate({
      files: { '/srv/config/gateway.yaml': text.replace('mode: off', 'mode: "off"') },
      ports: {
        compilePolicies: (_, context) => {
          seen = context;
          return { diagnostics: [] };
        },
      },
    });
    expect(seen).toMatchObject({
      upstreams: [{ name: 'github', issuers: ['corp'], strict: false }],
      issuers: ['corp'],
      profiles: ['default', 'strict', 'developer'],
    });
  });

  it('lets warnings pass, and fails them with --strict', async () => {
    const ports: Partial<ValidatePorts> = {
      compilePolicies: (documents) => ({
        diagnostics: documents.map(({ file }) => ({
          ...{ file, path: ['rules', 0, 'what', 'tools', 0], severity: 'warning' as const },
          message: 'matches nothing',
        })),
      }),
    };
    const lax = await validate({ ports });
    expect(lax).toEqual({
      code: 0,
      out: 'config/policies/p.policy.yaml:7:41 warning matches nothing\n',
      err: '0 errors, 1 warning\n',
    });
    const strict = await validate({ ports, options: { strict: true } });
    expect(strict.code).toBe(1);
    expect(strict.out).toContain('error matches nothing');
  });

  it('exits with 2 where a file cannot be read', async () => {
    const missing = await validate({ options: { config: 'elsewhere.yaml' } });
    expect(missing.code).toBe(2);
    expect(missing.out).toBe('elsewhere.yaml:1:1 error the gateway file cannot be read; name another with -c\n');
    const noFolder = GOOD.replace('dir: policies', 'dir: nowhere');
    expect((await validate({ files: { '/srv/config/gateway.yaml': noFolder } })).code).toBe(2);
  });

  it('reads secrets, unless it is told that they are not here', async () => {
    const { code, out } = await validate({ env: {} });
    expect(code).toBe(1);
    expect(out).toContain('3:14 error the environment variable "KEY" is not set');
    expect((await validate({ env: {}, options: { secrets: false } })).code).toBe(0);
  });

  it('prints JSON and SARIF', async () => {
    const files = { '/srv/config/gateway.yaml': `${GOOD}bogus: 1\n` };
    const json = await validate({ files, options: { format: 'json' } });
    expect(JSON.parse(json.out).faults).toHaveLength(1);
    const sarif = await validate({ files, options: { format: 'sarif' } });
    expect(JSON.parse(sarif.out).runs[0].results[0].ruleId).toBe('unknown-key');
    expect(sarif.code).toBe(1);
    expect(JSON.parse((await validate({ options: { format: 'json' } })).out)).toEqual({
      faults: [],
    });
  });

  it('is a command with the options of the contract', async () => {
    const io = terminal({ env: {} });
    const ports: ValidatePorts = {
      files: filesOf(FILES),
      compilePolicies: () => ({ diagnostics: [] }),
      loadLocks: () => Promise.resolve({ upstreams: [], diagnostics: [] }),
    };
    const program = buildProgram(io, [validateCommand(io, ports)]);
    const argv = ['validate', '-c', 'config/gateway.yaml'];
    expect(await program.run(argv)).toBe(1);
    expect(await program.run([...argv, '--no-secrets', '--strict', '--format', 'json'])).toBe(0);
    expect(await program.run([...argv, '--format', 'xml'])).toBe(2);
    expect(await program.run(['validate'])).toBe(2);
  });
});

describe('[C-13] schema', () => {
  it.each([...SCHEMAS.keys()])('prints %s', async (name) => {
    const io = terminal();
    expect(await buildProgram(io, [schemaCommand(io)]).run(['schema', name])).toBe(0);
    expect(io.out()).toBe(`${JSON.stringify(SCHEMAS.get(name), null, 2)}\n`);
    expect(io.err()).toBe('');
  });

  it('says what was meant by another name', async () => {
    const io = terminal();
    expect(await buildProgram(io, [schemaCommand(io)]).run(['schema', 'gatway'])).toBe(2);
    expect(io.out()).toBe('');
    expect(io.err()).toBe(
      'error: unknown schema; did you mean "gateway"? Known: gateway, policy, policy-test, lock, stdio, audit.\n',
    );
  });
});
