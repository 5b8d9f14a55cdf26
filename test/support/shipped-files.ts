// The configurations that the package ships, in a folder of their own. What a machine has besides (secrets, a folder for
// audit files, what a pod mounts) stands beside them there. `startShipped` starts one of them as it is written but for
// what is not on this machine: its addresses, its issuers, and its servers, for which something stands in that offers
// what their lock files hold.

import { randomBytes } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { expect } from 'vitest';
import { type Document, isMap, parseDocument } from 'yaml';
import { buildProgram } from '../../src/cli/program.js';
import { stdioCommand } from '../../src/cli/stdio.js';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { canary } from './canary.js';
import { tryStart } from './gateway.js';
import { startHostileUpstream } from './hostile-upstream.js';
import type { JsonObject } from './json.js';
import { type Lock, parseLock } from './lock-files.js';
import { findFreePort } from './processes.js';
import { type ConnectedV2, connectSdkV2 } from './sdk-clients.js';
import { signalGroup } from './stdio-server.js';
import { startTestIssuer, type TestIssuer } from './tokens.js';

const ROOT = join(import.meta.dirname, '../..');
const PARTS = ['config', 'policies'];

/** The files below a folder of the package that end so, by their paths in it. */
export async function shippedFiles(folder: string, ending: string): Promise<readonly string[]> {
  const entries = await readdir(join(ROOT, folder), { recursive: true });
  return entries
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort();
}

/** Every gateway file that the package ships. None is named here, so that none is forgotten. */
export async function gatewayFiles(): Promise<readonly string[]> {
  const files = await shippedFiles('config', '.yaml');
  const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), 'utf8')));
  return files.filter((_, index) => /^publicUrl:/m.test(texts[index] ?? ''));
}

export type ShippedCopy = {
  readonly root: string;
  /** What the environment of a gateway has, for each variable that some file names. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
};

const PATHS_OF_SECRETS = /file: (?<path>[^\s,}]*\bsecrets\/[\w./-]+)/g;
const VARIABLES = /\{env: (?<name>\w+)\}/g;

function makeValue(name: string): string {
  if (name === 'REDIS_URL') return 'redis://127.0.0.1:6379';
  const value = randomBytes(32).toString('base64');
  return /AUTHORIZATION|stdio\.token/.test(name) ? `Bearer ${value}` : value;
}

/** The files as they are shipped. Only folders of a machine or of a pod are others, and what is in them exists. */
export async function copyShipped(): Promise<ShippedCopy> {
  const root = await mkdtemp(join(tmpdir(), 'sallyport-shipped-'));
  for (const part of PARTS) await cp(join(ROOT, part), join(root, part), { recursive: true });
  const env: Record<string, string> = {};
  for (const name of await gatewayFiles()) {
    const file = join(root, name);
    const state = join(root, 'state', dirname(name));
    await mkdir(state, { recursive: true });
    const text = (await readFile(file, 'utf8'))
      .replaceAll('/run/secrets/', `${root}/secrets/`)
      .replaceAll('/var/lib/sallyport/', `${state}/`)
      .replaceAll('/etc/sallyport/', `${dirname(file)}/`);
    await writeFile(file, text);
    for (const { groups } of text.matchAll(PATHS_OF_SECRETS)) {
      const secret = resolve(dirname(file), groups?.['path'] ?? '');
      await mkdir(dirname(secret), { recursive: true });
      await writeFile(secret, makeValue(secret), { mode: 0o600 });
    }
    for (const { groups } of text.matchAll(VARIABLES))
      env[groups?.['name'] ?? ''] ??= makeValue(groups?.['name'] ?? '');
  }
  return { root, env, close: () => rm(root, { recursive: true, force: true }) };
}

type StandIn = { readonly url: string; received(): string; close(): Promise<void> };

export type RunningShipped = {
  readonly issuer: TestIssuer;
  /** A client of the SDK at a path, with a token for it. `claims` are `null` where it has none. */
  connect(path: string, claims: Readonly<Record<string, unknown>> | null): Promise<ConnectedV2['client']>;
  /** A token for a path. */
  token(path: string, claims: Readonly<Record<string, unknown>>): Promise<string>;
  url(path: string): string;
  readonly opsUrl: string;
  /** Everything that an upstream has received. */
  received(upstream: string): string;
  /** What stands in the audit log so far. */
  recorded(): Promise<string>;
  close(): Promise<void>;
};

/** Starts a gateway from a copied file. */
export async function startShipped({ root, env }: ShippedCopy, name: string): Promise<RunningShipped> {
  const file = join(root, name);
  const document = parseDocument(await readFile(file, 'utf8'));
  const issuer = await startTestIssuer();
  const { data, ops } = await placeListeners(document);
  canary.watchGateway(data, ops);
  for (const one of keysOf(document, 'issuers')) {
    document.setIn(['issuers', one, 'issuer'], issuer.issuer);
    document.setIn(['issuers', one, 'network'], 'loopback');
  }
  const adapter = await startAdapter(dirname(file));
  const servers = new Map<string, StandIn>();
  for (const one of keysOf(document, 'upstreams')) {
    const server = adapter?.servers.get(one) ?? (await standInFor(await lockOf(file, document, one)));
    servers.set(one, server);
    document.setIn(['upstreams', one, 'url'], server.url);
    document.setIn(['upstreams', one, 'network'], 'loopback');
  }
  await writeFile(file, document.toString());
  let stdout = '';
  const writeStdout = async (text: string): Promise<void> => {
    stdout += text;
  };
  const started = await tryStart({ file, env, writeStdout });
  const closeServers = async (): Promise<void> => {
    for (const server of servers.values()) await server.close();
    await adapter?.close();
    await issuer.close();
  };
  if (started.kind !== 'started') {
    await closeServers();
    throw new Error(`${name} was not started: ${JSON.stringify(started)}`);
  }
  const opsUrl = `http://127.0.0.1:${ops}`;
  const isReady = async (): Promise<boolean> => (await fetch(`${opsUrl}/readyz`)).ok;
  await expect.poll(isReady, { timeout: 20_000, interval: 20 }).toBe(true);
  const url = (path: string): string => `http://127.0.0.1:${data}${path}`;
  const token = (path: string, claims: Readonly<Record<string, unknown>>) => issuer.mint(url(path), { claims });
  const clients: ConnectedV2[] = [];
  return {
    ...{ issuer, url, opsUrl, token },
    async connect(path, claims) {
      const access = claims === null ? {} : { token: await token(path, claims) };
      const connected = await connectSdkV2(url(path), '2026', access);
      clients.push(connected);
      return connected.client;
    },
    received: (upstream) => servers.get(upstream)?.received() ?? '',
    async recorded() {
      const folders = [dirname(file), join(root, 'state', dirname(name))];
      const files = await Promise.all(folders.map(async (one) => (await readdir(one)).map((each) => join(one, each))));
      const logs = files.flat().filter((path) => /^audit.*\.jsonl$/.test(basename(path)));
      return stdout + (await Promise.all(logs.map((path) => readFile(path, 'utf8')))).join('');
    },
    async close() {
      for (const client of clients) await client.close();
      await started.gateway.close();
      await closeServers();
    },
  };
}

function keysOf(document: Document, member: string): readonly string[] {
  const map = document.get(member);
  return isMap(map) ? map.items.map(({ key }) => String(key)) : [];
}

async function placeListeners(document: Document): Promise<{ readonly data: number; readonly ops: number }> {
  const ports = { data: await findFreePort(), ops: await findFreePort(), admin: await findFreePort() };
  document.set('publicUrl', `http://127.0.0.1:${ports.data}`);
  for (const [listener, port] of Object.entries(ports)) {
    if (listener === 'admin' && !document.has('admin')) continue;
    document.setIn(['listeners', listener, 'host'], '127.0.0.1');
    document.setIn(['listeners', listener, 'port'], port);
  }
  return ports;
}

async function lockOf(file: string, document: Document, upstream: string): Promise<Lock> {
  const folder = resolve(dirname(file), String(document.getIn(['pins', 'dir'])));
  const path = join(folder, `${upstream}.lock.yaml`);
  return parseLock(await readFile(path, 'utf8'), relative(folder, path));
}

const LISTS = { tools: 'tool', prompts: 'prompt', resources: 'resource', resourceTemplates: 'template' } as const;

/** A server that offers what the lock file holds: for the help desk of the demo, that server itself. */
async function standInFor(lock: Lock): Promise<StandIn> {
  if (lock.server?.name === 'desk') {
    const desk = await startDemoUpstream();
    return {
      url: desk.url,
      received: () =>
        desk
          .seen()
          .map(({ body }) => body)
          .join('\n'),
      close: () => desk.close(),
    };
  }
  const server = await startHostileUpstream();
  const definitions = (kind: keyof typeof LISTS): readonly JsonObject[] =>
    [...lock.pins[LISTS[kind]].values()].map(({ definition }) => definition);
  server.offer(() => definitions('tools'));
  server.present({ list: definitions, readResource: (uri) => [{ uri, text: `This is ${uri}.` }] });
  if (lock.server !== undefined) server.introduce(JSON.parse(JSON.stringify(lock.server)));
  server.answerCalls((tool) => ({ content: [{ type: 'text', text: `${lock.upstream} did ${tool}` }] }));
  return {
    url: server.url,
    received: () =>
      server
        .uses()
        .map(({ body }) => body)
        .join('\n'),
    close: () => server.close(),
  };
}

type Adapter = { readonly servers: ReadonlyMap<string, StandIn>; close(): Promise<void> };

/** A stdio server that offers the definitions of its argument, and answers like the other stand-ins. */
const STDIO_SCRIPT = `
const { upstream, serverInfo, tools } = JSON.parse(process.argv.at(-1));
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, serverInfo, capabilities: { tools: {} } }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name }) => {
    const text = upstream + ' did ' + name;
    const hasOutput = tools.find((tool) => tool.name === name)?.outputSchema !== undefined;
    return { content: [{ type: 'text', text }], ...(hasOutput ? { structuredContent: { content: text } } : {}) };
  },
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answers[method]?.(params);
  const outcome = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
});
`;

/** Runs the adapter of the folder, if it has stdio servers, with a stand-in for the program of each. */
async function startAdapter(folder: string): Promise<Adapter | undefined> {
  const file = join(folder, 'stdio.yaml');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const document = parseDocument(text);
  const port = await findFreePort();
  document.set('listen', `127.0.0.1:${port}`);
  for (const name of keysOf(document, 'servers')) {
    const lockFile = `${name}.lock.yaml`;
    const lock = parseLock(await readFile(join(folder, 'policies/pins', lockFile), 'utf8'), lockFile);
    const offered = {
      ...{ upstream: name, serverInfo: lock.server },
      tools: [...lock.pins.tool.values()].map(({ definition }) => definition),
    };
    const command = [process.execPath, '-e', STDIO_SCRIPT, JSON.stringify(offered)];
    document.setIn(['servers', name, 'command'], command);
    // That of the package that does not run here.
    document.deleteIn(['servers', name, 'integrity']);
  }
  await writeFile(file, document.toString());
  let end = (): void => undefined;
  const untilSignal = (): Promise<number> =>
    new Promise((done) => {
      end = () => done(0);
    });
  let printed = '';
  const print = (line: string): void => {
    printed += line;
  };
  const io = { stdout: print, stderr: print, env: process.env, cwd: folder, isTty: false };
  const ports = { untilSignal, signalGroup, killMarked: async () => undefined, setUmask: (mask: number) => mask };
  const ended = buildProgram(io, [stdioCommand(io, ports)]).run(['stdio', '--config', 'stdio.yaml']);
  await expect.poll(() => printed, { interval: 10 }).toContain('listening on');
  const serverAt = (name: string): StandIn => ({
    url: `http://127.0.0.1:${port}/${name}`,
    received: () => '',
    close: async () => undefined,
  });
  return {
    servers: new Map(keysOf(document, 'servers').map((name) => [name, serverAt(name)])),
    async close() {
      end();
      await ended;
    },
  };
}
