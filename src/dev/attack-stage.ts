// The stage of the attack scenes: starts an attacker's servers on loopback, makes the same calls straight at them and through
// a gateway in front of them, compares each outcome with the expected one, and prints both with the lines of configuration
// that make the difference. What a scene is, is data (attack-scenes.ts). docs/guides/attacks-live.md.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { createPaint, hangingLines, type Paint } from '../text/terminal.js';
import type { ServerContent } from './demo-protocol.js';
import { type DevIssuer, startIssuer } from './issuer.js';
import { type CallCheck, type ScriptedServer, startScriptedServer } from './scripted-server.js';
import { stripControls } from './tour.js';
import { type Endpoint, requestStateless, type WireResponse } from './tour-client.js';
import { valueAt } from './tour-scenes.js';

/** Straight at the servers, or through a gateway. */
export type Side = 'without' | 'with';

/** One outcome that is observed on both sides: what is expected is the text, or a part of it. */
export type Step = { readonly what: string } & { readonly [side in Side]: string | RegExp };

/** A server of a scene. One that is not scripted is started by the scene itself. */
export type SceneServer = Pick<ScriptedServer, 'url' | 'seen' | 'close'>;

export type World = {
  readonly side: Side;
  /** Where the servers stand; the gateway has the URL on which `at` puts them. */
  readonly servers: { readonly [name: string]: SceneServer };
  /** The URL of a server, or of the name of an endpoint, and the token of this caller for it. */
  at(name: string, caller?: string): Promise<Endpoint>;
  readonly issuer: DevIssuer;
};

export type AttackScene = {
  readonly name: string;
  readonly title: string;
  /** What the attacker does, in a sentence or two. */
  readonly story: string;
  /** The attacker's servers and those beside them, by name; `folder` is the scene's own. */
  start(side: Side, folder: string, issuer: DevIssuer): Promise<{ readonly [name: string]: SceneServer }>;
  /**
   * The lines of the gateway file that matter; a line `NAME:` below `upstreams` gets the address and the issuer of that
   * server.
   */
  readonly gateway: string;
  /** The lines of the policy. */
  readonly policy: string;
  /** What `pin fetch --approve` makes of the servers before the gateway starts, where the scene rests on it. */
  readonly approval?: string;
  /** The groups of each caller. */
  readonly callers: { readonly [name: string]: readonly string[] };
  /** Makes the calls; what was observed, in the order of the steps. */
  attack(world: World): Promise<readonly string[]>;
  readonly steps: readonly Step[];
  /** What these lines do not cover. */
  readonly open: string;
  /** Something about the servers that a reader should know, once they run. */
  remark?(): string;
};

type StartedGateway = { readonly gateway: { close(): Promise<void> } } | { readonly why: string };

export type ScenePorts = {
  /** A folder of the scene's own. */
  readonly folder: string;
  /** A free port. */
  readonly port: number;
  /** Pins what the servers of a gateway file offer, and approves what the scan has nothing against. */
  pin(file: string): Promise<void>;
  start(file: string): Promise<StartedGateway>;
  write(text: string): void;
  readonly hasColor: boolean;
  /** Changes a file before it is written. */
  amend?(text: string): string;
};

/** Narrow enough for a picture that is read on a phone. */
const WIDTH = 66;
const LABEL = 26;
const INDENT = '  ';
const ISSUER = 'dev';

/** Plays a scene. The exit code is 0 if every outcome was as expected, else 1. */
export async function runScene(scene: AttackScene, ports: ScenePorts): Promise<0 | 1> {
  const paint = createPaint(ports.hasColor);
  ports.write(`${paint.bold(scene.title)}\n${wrapped(scene.story, '')}\n`);
  let failed = 0;
  for (const side of ['without', 'with'] as const) {
    const seen = await playSide(scene, side, ports);
    ports.write(`\n${paint.bold(`${side} the gateway`)}\n`);
    for (const [index, step] of scene.steps.entries()) {
      const observed = stripLines(seen[index] ?? 'nothing was observed');
      const isExpected = matches(observed, step[side]);
      if (!isExpected) failed += 1;
      ports.write(printStep(paint, step, side, observed, isExpected));
    }
  }
  ports.write(`\n${paint.bold('an excerpt of gateway.yaml')}\n${indented(scene.gateway)}`);
  ports.write(`${paint.bold('and of policies/scene.policy.yaml')}\n${indented(scene.policy)}`);
  if (scene.approval !== undefined)
    ports.write(`${paint.bold('sallyport pin fetch --approve')}\n${wrapped(scene.approval, INDENT)}\n`);
  const remark = scene.remark?.();
  if (remark !== undefined) ports.write(`\n${paint.bold('on this machine')}\n${wrapped(remark, INDENT)}\n`);
  ports.write(`\n${paint.bold('not covered')}\n${wrapped(scene.open, INDENT)}\n`);
  const total = 2 * scene.steps.length;
  const summary =
    failed === 0
      ? `${paint.good('✓')} ${paint.bold(`${total} of ${total} outcomes as expected`)}`
      : paint.bad(`${failed} of ${total} outcomes differ`);
  ports.write(`\n${summary}\n`);
  return failed === 0 ? 0 : 1;
}

function matches(observed: string, expected: string | RegExp): boolean {
  return typeof expected === 'string' ? observed === expected : expected.test(observed);
}

/** A line end is no control character of an attacker. */
function stripLines(text: string): string {
  return stripControls(text.replace(/\s+/g, ' ').trim());
}

function wrapped(text: string, indent: string): string {
  return hangingLines(text, indent.length, indent.length, WIDTH)
    .map((line) => `${indent}${line}`)
    .join('\n');
}

function indented(text: string): string {
  return text
    .trim()
    .split('\n')
    .map((line) => `${INDENT}${line}\n`)
    .join('');
}

/** What differs between the sides is painted: an attack that works is as expected without the gateway, and is what it is. */
function printStep(paint: Paint, step: Step, side: Side, observed: string, isExpected: boolean): string {
  const differs = String(step.without) !== String(step.with);
  const style = !isExpected || (differs && side === 'without') ? paint.bad : paint.good;
  const mark = !isExpected ? '✗' : differs && side === 'without' ? '!' : '✓';
  const column = INDENT.length + 2 + LABEL;
  const painted = hangingLines(observed, column, column, WIDTH).map(differs ? style : (line) => line);
  const lines = painted.join(`\n${' '.repeat(column)}`);
  const expected = isExpected ? '' : `${' '.repeat(column)}expected: ${step[side]}\n`;
  return `${INDENT}${style(mark)} ${step.what.padEnd(LABEL)}${lines}\n${expected}`;
}

/** Starts what one side needs, makes the calls, and ends everything. A failure is what was observed. */
async function playSide(scene: AttackScene, side: Side, ports: ScenePorts): Promise<readonly string[]> {
  const folder = join(ports.folder, side);
  await mkdir(folder, { recursive: true });
  const issuer = await startIssuer({ users: [{ name: 'nobody', groups: [], scopes: [] }] });
  const servers = await scene.start(side, folder, issuer);
  let gateway: StartedGateway | undefined;
  try {
    if (side === 'with') {
      const file = await writeFiles(scene, folder, servers, issuer, ports);
      await ports.pin(file);
      gateway = await ports.start(file);
      if ('why' in gateway) return [`the gateway did not start: ${gateway.why}`];
    }
    return await scene.attack({ side, servers, issuer, at: addresses(scene, side, servers, issuer, ports) });
  } catch (error) {
    return [error instanceof Error ? error.message : 'an unknown failure'];
  } finally {
    if (gateway !== undefined && 'gateway' in gateway) await gateway.gateway.close();
    await Promise.all(Object.values(servers).map((server) => server.close()));
    await issuer.close();
  }
}

function addresses(
  scene: AttackScene,
  side: Side,
  servers: { readonly [name: string]: SceneServer },
  issuer: DevIssuer,
  { port }: ScenePorts,
): World['at'] {
  const [first = 'nobody'] = Object.keys(scene.callers);
  return async (name, caller = first) => {
    if (side === 'without') return { url: servers[name.split('/').at(-1) ?? '']?.url ?? '', token: undefined };
    const url = `http://127.0.0.1:${port}/${name}`;
    const groups = scene.callers[caller] ?? [];
    return { url, token: await issuer.mint({ subject: caller, groups, scopes: [], resource: url }) };
  };
}

async function writeFiles(
  scene: AttackScene,
  folder: string,
  servers: { readonly [name: string]: SceneServer },
  { issuer }: DevIssuer,
  { port, amend = (text) => text }: ScenePorts,
): Promise<string> {
  await mkdir(join(folder, 'policies', 'pins'), { recursive: true });
  const file = join(folder, 'gateway.yaml');
  const lines = Object.entries(servers).reduce(
    (text, [name, { url }]) =>
      text.replace(
        new RegExp(`^( +)${name}:\\n`, 'm'),
        `$&$1  url: ${JSON.stringify(url)}\n$1  network: loopback\n$1  issuers: [${ISSUER}]\n`,
      ),
    `${scene.gateway.trim()}\n`,
  );
  const text = `version: 1
publicUrl: http://127.0.0.1:${port}
listeners:
  data: {host: 127.0.0.1, port: ${port}}
  ops: {host: 127.0.0.1, port: 0}
issuers:
  ${ISSUER}: {issuer: ${JSON.stringify(issuer)}, network: loopback, algorithms: [ES256]}
${lines}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
  await writeFile(file, amend(text));
  const policy = `version: 1\npolicy: scene\ndefaults: {issuers: [${ISSUER}]}\n${scene.policy.trim()}\n`;
  await writeFile(join(folder, 'policies', 'scene.policy.yaml'), amend(policy));
  return file;
}

/** A server of these tools. A call returns a text, or structured content. */
export function serverOf(
  list: () => readonly JsonObject[],
  calls: { readonly [tool: string]: (args: JsonObject) => string | JsonObject },
): ServerContent {
  return {
    serverInfo: { name: 'scene', version: '1.0.0' },
    instructions: undefined,
    pageSize: 100,
    cache: { ttlMs: 0, cacheScope: 'private' },
    list: (kind) => (kind === 'tools' ? list() : []),
    callTool(name, args) {
      const value = list().some((tool) => tool['name'] === name) ? calls[name]?.(args) : undefined;
      if (value === undefined) return undefined;
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      const structured = typeof value === 'string' ? {} : { structuredContent: value };
      return { result: { content: [{ type: 'text', text }], ...structured }, progress: [] };
    },
    getPrompt: () => undefined,
    readResource: () => undefined,
  };
}

/** Starts the scripted servers of a scene. */
export async function startServers(
  stories: { readonly [name: string]: ServerContent },
  mayCall: CallCheck | undefined = undefined,
): Promise<{ readonly [name: string]: ScriptedServer }> {
  const started = Object.entries(stories).map(
    async ([name, story]) => [name, await startScriptedServer({ story, mayCall })] as const,
  );
  return Object.fromEntries(await Promise.all(started));
}

/** A tool whose arguments are texts, of which each has a description. */
export function toolOf(name: string, description: string, args: { readonly [name: string]: string }): JsonObject {
  const properties = Object.fromEntries(
    Object.entries(args).map(([arg, about]) => [arg, { type: 'string', description: about }]),
  );
  return {
    name,
    description,
    inputSchema: { type: 'object', properties, required: Object.keys(args), additionalProperties: false },
  };
}

/** The tools that a client is listed. */
export async function listTools(endpoint: Endpoint): Promise<readonly JsonObject[]> {
  const response = await requestStateless(endpoint, 'tools/list');
  const tools = valueAt(response.message, 'result', 'tools');
  if (!Array.isArray(tools)) throw new Error(`no list: ${outcomeOf(response)}`);
  return tools;
}

/** Their names, as a person reads them. */
export function namesOf(tools: readonly JsonObject[]): string {
  return tools.length === 0 ? 'nothing' : tools.map((tool) => String(tool['name'])).join(', ');
}

/** Calls a tool. What came of it, in a few words. */
export async function callTool(endpoint: Endpoint, name: string, args: JsonObject = {}): Promise<string> {
  return outcomeOf(await requestStateless(endpoint, 'tools/call', { name, arguments: args }));
}

/** What a response says, in a few words. */
export function outcomeOf({ status, message, headers }: WireResponse): string {
  const error = valueAt(message, 'error');
  const [sentence = ''] = String(valueAt(error, 'message')).split('. ');
  if (error !== undefined) return `error ${valueAt(error, 'code')}: ${sentence}`;
  const result = valueAt(message, 'result');
  const reason = valueAt(result, '_meta', 'dev.sallyport/decision', 'reason');
  if (typeof reason === 'string') return `refused: ${reason}`;
  const [block] = [valueAt(result, 'content')].flat();
  const text = valueAt(block, 'text');
  if (typeof text === 'string') return text;
  const [, why = ''] = /error="([^"]+)"/.exec(headers['www-authenticate'] ?? '') ?? [];
  return `HTTP ${status} ${why}`.trim();
}

/** How many calls of a tool have reached a server. */
export function callsOf(server: SceneServer | undefined, tool: string): string {
  const calls = server?.seen().filter(({ method, name }) => method === 'tools/call' && name === tool) ?? [];
  return String(calls.length);
}
