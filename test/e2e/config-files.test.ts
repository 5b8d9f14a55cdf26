// Every gateway file in config/ passes `validate --strict` once the pins of its upstreams are fetched: with the real
// server where the project has it, and with the published definitions of the others served by a stand-in.

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fetchPins } from '../support/gateway.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { buildProgram, runSallyport } from '../support/processes.js';
import { startEverything } from '../support/sdk-servers.js';
import { makeSecret } from '../support/secrets.js';
import { shared } from '../support/with-gateway.js';

const ROOT = join(import.meta.dirname, '../..');
const FILES = (await readdir(join(ROOT, 'config'))).filter((name) => name.endsWith('.yaml'));
const LONG = 120_000;

function toolOf(name: string, required: readonly string[], optional: readonly string[] = []) {
  const properties = Object.fromEntries([...required, ...optional].map((one) => [one, { type: 'string' }]));
  return {
    name,
    description: `${name.replaceAll('_', ' ')}.`,
    inputSchema: { type: 'object', properties, required: [...required] },
  } satisfies JsonObject;
}

/** Names and arguments as the GitHub MCP server publishes them; some tools that write have no owner. */
const GITHUB: readonly JsonObject[] = [
  toolOf('get_me', []),
  toolOf('get_file_contents', ['owner', 'repo'], ['path', 'ref', 'sha']),
  toolOf('list_issues', ['owner', 'repo'], ['state']),
  toolOf('search_code', ['query'], ['sort']),
  toolOf('create_branch', ['owner', 'repo', 'branch'], ['from_branch']),
  toolOf('create_pull_request', ['owner', 'repo', 'title', 'head', 'base'], ['body']),
  toolOf('update_pull_request', ['owner', 'repo'], ['title', 'body', 'state']),
  toolOf('create_repository', ['name'], ['description', 'organization']),
  toolOf('create_gist', ['filename', 'content'], ['description']),
  toolOf('delete_file', ['owner', 'repo', 'path', 'message', 'branch']),
];
const WEB: readonly JsonObject[] = [toolOf('fetch', ['url'], ['max_length', 'start_index', 'raw'])];

let folder: string;
const servers: HostileUpstream[] = [];
const secret = makeSecret();

async function serve(tools: readonly JsonObject[]): Promise<string> {
  const server = await startHostileUpstream();
  server.offer(() => tools);
  servers.push(server);
  return server.url;
}

/** A copy of the files in which the secrets of the machine stand beside them; everything else stays as it is. */
afterAll(async () => {
  for (const server of servers) await server.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});
const everything = shared(async () => {
  await buildProgram();
  return startEverything();
});
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-e2e-config-'));
  for (const part of ['config', 'policies']) await cp(join(ROOT, part), join(folder, part), { recursive: true });
  const key = await runSallyport(['keys', 'new']);
  await writeFile(join(folder, 'sallyport-key'), key.stdout, { mode: 0o600 });
  for (const name of ['break-glass', 'sallyport-login']) await writeFile(join(folder, name), secret, { mode: 0o600 });
  const served = {
    'https://github-mcp.internal/mcp': await serve(GITHUB),
    'https://web-mcp.internal/mcp': await serve(WEB),
    'http://127.0.0.1:3001/mcp': everything.url,
  };
  for (const name of FILES) {
    const path = join(folder, 'config', name);
    const text = (await readFile(path, 'utf8')).replaceAll('/run/secrets/', `${folder}/`);
    await writeFile(path, text);
    // The pins of the teams are in the tree.
    if (name === 'teams.yaml') continue;
    let local = text.replaceAll('network: private', 'network: loopback');
    for (const [url, standIn] of Object.entries(served)) local = local.replaceAll(url, standIn);
    const fetching = join(folder, 'config', `fetching-${name}`);
    await writeFile(fetching, local);
    await fetchPins(fetching, { WEB_MCP_AUTHORIZATION: `Bearer ${secret}` });
  }
}, LONG);

it('are there', () => expect(FILES.length).toBeGreaterThan(2));

it.each(FILES)(
  'config/%s passes validate --strict',
  async (name) => {
    const file = join(folder, 'config', name);
    const { code, stdout } = await runSallyport(['validate', '--strict', '-c', file], {
      env: { WEB_MCP_AUTHORIZATION: `Bearer ${secret}` },
    });
    expect(stdout.split('\n').filter((line) => / (?:error|warning) /.test(line))).toEqual([]);
    expect(code).toBe(0);
  },
  LONG,
);
