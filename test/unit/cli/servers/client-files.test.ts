import { describe, expect, it } from 'vitest';
import { plainJson, readClientFile } from '../../../../src/cli/servers/client-files.js';
import { type ImportPlan, planImport } from '../../../../src/cli/servers/import-plan.js';
import { makeSecret } from '../../../support/secrets.js';

function plansOf(file: object | string, taken: readonly string[] = []): readonly ImportPlan[] {
  const read = readClientFile(typeof file === 'string' ? file : JSON.stringify(file));
  if ('error' in read) throw new Error(read.error);
  return planImport(read.servers, taken);
}

/** What a server of a file of Claude Desktop becomes. */
const planOf = (server: object, name = 'tools'): ImportPlan | undefined =>
  plansOf({ mcpServers: { [name]: server } })[0];
const refusalOf = (server: object): string => {
  const plan = planOf(server);
  return plan !== undefined && 'refused' in plan ? plan.refused : `not refused: ${JSON.stringify(plan)}`;
};

describe('[C-29] the file of a client', () => {
  it('may have comments, a byte order mark and commas behind the last item, and strings that look like them', () => {
    const text = '\uFEFF{ // one\n "a": "// no, \\" /* no */ ,}", /* two\n , */ "b": [1, 2, /* three */ ], \n}';
    expect(JSON.parse(plainJson(text))).toEqual({ a: '// no, " /* no */ ,}', b: [1, 2] });
    expect(plainJson(text).length).toBe(text.length);
    expect(readClientFile('{"mcpServers": {')).toEqual({ error: expect.stringContaining('not JSON') });
    expect(readClientFile('[]')).toEqual({ error: expect.stringContaining('no object') });
    expect(readClientFile('{"theme": "dark"}')).toEqual({ error: expect.stringContaining('no servers') });
  });

  it('is read in the form of each client', () => {
    const url = { url: 'https://a.example/mcp' };
    const names = (file: object) => plansOf(file).map(({ written }) => written);
    expect(names({ mcpServers: { desktop: { command: 'x' }, cursor: url } })).toEqual(['desktop', 'cursor']);
    expect(names({ servers: { code: url }, inputs: [] })).toEqual(['code']);
    expect(names({ 'editor.fontSize': 12, mcp: { servers: { settings: url } } })).toEqual(['settings']);
    expect(readClientFile(`${'{"mcp":'.repeat(20_000)}{}${'}'.repeat(20_000)}`)).toMatchObject({
      error: expect.any(String),
    });
    expect(names({ mcpServers: { user: url }, projects: { '/srv': { mcpServers: { local: url } } } })).toEqual([
      'user',
      'local',
    ]);
  });

  it('costs an odd server itself, and each is named', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => `"s${at}": {"command": "x"}`).join(',');
    const odd = [
      '"first": {"command": "x", "args": ["y"]}',
      '"first": {"command": "z"}',
      '"__proto__": {"command": "x"}',
      '"日本": {"command": "x"}',
      '"My Server": {"command": "x"}',
      '"my-server": {"command": "x"}',
      '"number": {"command": 7}',
      '"list": ["x"]',
      '"args": {"command": "x", "args": "-y"}',
      '"both": {"command": "x", "url": "https://a.example"}',
      '"twice": {"command": "x", "command": "y"}',
      '"hidden": {"command": "x", "__proto__": {}}',
      '"none": {}',
    ];
    const plans = plansOf(`{"mcpServers": {${[...odd, many].join(',')}}}`, ['taken']);
    expect(plans.length).toBe(1_013);
    expect(
      plans.slice(0, 13).map((plan) => ('refused' in plan ? `${plan.written}: ${plan.refused}` : plan.name)),
    ).toEqual([
      'first',
      'first: the file has this name twice',
      'proto__',
      '日本: no valid name can be made of its name; rename it in a copy of the file',
      'my-server',
      'my-server: another server of the file has this name',
      'number: its command is no text',
      'list: it is no object',
      'args: its "args" is no list of texts',
      'both: it has a command and a URL',
      'twice: it has two members of one name',
      'hidden: it has a member named __proto__',
      'none: it has neither a command nor a URL',
    ]);
    expect(plansOf({ mcpServers: { taken: { command: 'x' } } }, ['taken'])[0]).toMatchObject({
      refused: expect.stringContaining('already'),
    });
  });
});

describe('[C-29] the plan of a server', () => {
  it('moves the values of variables and of a header to files, and makes references of inputs and variables', () => {
    const key = makeSecret();
    expect(
      planOf({ command: 'npx', args: ['-y', 'server@1'], env: { API_KEY: key, REGION: '${env:REGION}', PORT: 8 } }),
    ).toMatchObject({
      shown: 'npx -y server@1',
      command: {
        argv: ['npx', '-y', 'server@1'],
        env: new Map<string, object>([
          ['API_KEY', { value: key }],
          ['REGION', { env: 'REGION' }],
          ['PORT', { value: '8' }],
        ]),
      },
      notes: [
        'API_KEY goes to secrets/tools.API_KEY',
        'REGION is read from REGION, which has to be set: the variable REGION',
        'PORT goes to secrets/tools.PORT',
      ],
      variables: ['REGION'],
      hasSecrets: true,
    });
    const inputs = [{ id: 'api-token', description: 'Token of the API' }];
    const servers = {
      gh: { type: 'http', url: 'https://a.example/mcp', headers: { Authorization: 'Bearer ${input:api-token}' } },
    };
    expect(plansOf({ inputs, servers })[0]).toMatchObject({
      header: { name: 'Authorization', from: { env: 'GH_AUTHORIZATION' } },
      notes: [
        'header Authorization is read from GH_AUTHORIZATION, which has to be set: "Bearer" and the input api-token (Token of the API)',
      ],
    });
    expect(planOf({ type: 'sse', url: 'https://a.example/sse', headers: { 'X-Key': key } })).toMatchObject({
      transport: 'http-sse',
      header: { name: 'X-Key', from: { file: 'secrets/tools-header', value: key } },
    });
    expect(planOf({ url: `https://user:${key}@a.example/mcp` })).toMatchObject({
      url: 'https://a.example/mcp',
      header: { name: 'Authorization', from: { value: `Basic ${Buffer.from(`user:${key}`).toString('base64')}` } },
    });
    expect(
      planOf({ command: 'docker', args: ['run', '-i', '-e', `GITHUB_TOKEN=${key}`, 'image', 'A=b'] }),
    ).toMatchObject({
      command: {
        argv: ['docker', 'run', '-i', '-e', 'GITHUB_TOKEN', 'image', 'A=b'],
        env: new Map([['GITHUB_TOKEN', { value: key }]]),
      },
    });
  });

  it('refuses a secret that cannot leave the command line or the URL, and says where it is and not what', () => {
    const key = makeSecret();
    for (const [server, place] of [
      [{ command: 'npx', args: ['server', '--api-key', key] }, 'argument 3 holds a secret'],
      [{ command: 'npx', args: ['server', `--token=${key}`] }, 'argument 2 holds a secret'],
      [{ command: 'sh', args: ['-c', `curl -H "Authorization: Bearer ${key}" x`] }, 'argument 2 holds a secret'],
      [{ command: 'npx', args: ['server', `postgres://app:${key}@db/app`] }, 'argument 2 holds a secret'],
      [{ command: 'npx', args: ['${workspaceFolder}/server'] }, 'argument 1 has ${workspaceFolder}'],
      [{ command: 'npx', args: ['--key', '${input:key}'] }, 'argument 2 has ${input:key}'],
      [{ command: 'npx', args: ['server', `--secret-key=/${key}`] }, 'argument 2 holds a secret'],
      [{ command: 'npx', args: ['server', '--password', `-${key}`] }, 'argument 3 holds a secret'],
      [{ command: 'npx', args: ['server', '--header', 'X-API-Key: house'] }, 'argument 3 holds a secret'],
      [{ command: 'npx', args: ['server', '--header=Authorization: Bearer house'] }, 'argument 2 holds a secret'],
      [{ command: 'npx', args: ['server', 'postgresql://app:app@db/app'] }, 'argument 2 holds a secret'],
      [{ command: 'npx', args: [`\${KEY:-${key}}`] }, 'argument 1 has ${KEY:-…}'],
      [{ url: `https://a.example/\${KEY:-${key}}` }, 'its URL has ${KEY:-…}'],
      [{ command: 'x', env: { npm_config_registry: `https://a:${key}@b.example` } }, 'npm_config_registry decides'],
      [{ url: `https://a.example/mcp?api_key=${key}` }, 'a secret in the parameter api_key'],
      [{ url: `https://a.example/mcp?k=${key}` }, 'a secret in'],
      [{ url: 'https://a.example/mcp', headers: { A: 'b', C: 'd' } }, 'it has 2 headers (A, C)'],
      [{ url: 'ftp://a.example' }, 'must be https or http'],
      [{ command: 'x', cwd: 'sub' }, 'its "cwd" is sub'],
      [{ command: 'x', env: { 'A-B': 'c' } }, 'A-B is no name of a variable'],
    ] as const) {
      const why = refusalOf(server);
      expect(why).toContain(place);
      expect(why).not.toContain(key);
    }
    for (const args of [
      ['server', '--token-file', '/run/token', '--max-tokens', '8000'],
      [
        '--password',
        '/run/secrets/db',
        '--secret=~/key',
        '--token',
        '--port',
        '-v',
        'https://a.example/b?page=overview',
      ],
      ['mcp-remote', 'https://a.example/mcp', '--header', 'X-Region: europe-west', 'postgresql://db/app', 'a@b:c'],
    ])
      expect(planOf({ command: 'npx', args })).toMatchObject({ name: 'tools' });
  });

  it('shows each value that decides what is loaded, and the parts of a URL that mislead', () => {
    const env = {
      NODE_OPTIONS: '--require=/tmp/a.js',
      npm_config_registry: 'https://b.example',
      PATH: '/tmp\u200b',
      A: '1',
    };
    expect(planOf({ command: 'npx', env: { ...env, PLUGIN: './c.js' } })).toMatchObject({
      notes: [
        'NODE_OPTIONS (--require=/tmp/a.js) goes to secrets/tools.NODE_OPTIONS',
        'npm_config_registry (https://b.example) goes to secrets/tools.npm_config_registry',
        'PATH (/tmp\\u{200b}) goes to secrets/tools.PATH',
        'A goes to secrets/tools.A',
        'PLUGIN (./c.js) goes to secrets/tools.PLUGIN',
      ],
    });
    expect(planOf({ url: 'https://\u0430pple.example/mcp' })).toMatchObject({
      notes: ['its host is xn--pple-43d.example'],
    });
    expect(planOf({ url: `https://a.example/s/${makeSecret()}/mcp` })).toMatchObject({
      notes: ['its path has a part that may be a secret, and that will stand in the gateway file'],
    });
    expect(planOf({ url: 'https://a.example/v1/organisation-settings/mcp?region=europe-west' })).toMatchObject({
      notes: [],
    });
  });

  it('shows what cannot be seen', () => {
    const odd = refusalOf({ command: 'x', env: { 'a\u001b[2J': {} } });
    expect(odd).toBe('"a\\u{1b}[2J" of its "env" is no text');
    const plan = planOf({ command: 'npx', args: ['ser\u200bver', 'a\u001b[2Kb', 'x\ny', '\u202egnp'] }, 'na\u202eme');
    expect(plan).toMatchObject({ name: 'na-me', shown: "npx 'ser\\u{200b}ver' 'a\\u{1b}[2Kb' 'x\\ny' '\\u{202e}gnp'" });
  });
});
