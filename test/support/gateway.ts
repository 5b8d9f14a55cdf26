// One running gateway, alone or in front of a hostile upstream, with its pins and its policies, and what an attack must
// prove of it: what the client got, that the upstream saw nothing, and what the audit says.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { AUTH_FAILURES_PER_SECOND } from '../../src/audit/audit.js';
import { createEventJoiner } from '../../src/audit/query.js';
import { observeOnce } from '../../src/cli/command-ports.js';
import type { PinPorts } from '../../src/cli/pin/lock-files.js';
import { runPinFetch } from '../../src/cli/pin/pin-command.js';
import type { Diagnostic } from '../../src/config/diagnostics.js';
import { DISK_FILES } from '../../src/config/files.js';
import { type Gateway, type GatewayStart, startGateway } from '../../src/gateway/gateway.js';
import { approvePin, type PinChange, pendingOf } from '../../src/pins/approval.js';
import { updateFile } from '../../src/pins/file-update.js';
import { writeLock } from '../../src/pins/lock.js';
import { readLock } from '../../src/pins/lock-reader.js';
import type { Reason } from '../../src/policy/reasons.js';
import { createLog } from '../../src/telemetry/log.js';
import { followAudit } from './audit-chain.js';
import { canary } from './canary.js';
import { onlyIn, type UpstreamEra } from './hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from './hostile-upstream.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { type LegacySseFront, startLegacySseFront } from './legacy-sse-front.js';
import { findFreePort } from './processes.js';
import { startTestIssuer, type TestIssuer } from './tokens.js';
import { type Access, callStateless, type OpenSession, openSession, type Reply } from './wire-client.js';

// Pins what the upstreams of a gateway file offer now, by the program's own command.

/**
 * Runs `pin fetch --approve`; throws with what it printed when it fails. What the scan leaves out is approved by hand:
 * the tests ask what the gateway does with hostile definitions that somebody accepted. Without `byHand` it stays pending.
 */
export async function fetchPins(
  file: string,
  env: Readonly<Record<string, string>> = {},
  { byHand = true }: { readonly byHand?: boolean } = {},
): Promise<void> {
  let printed = '';
  const print = (text: string): void => {
    printed += text;
  };
  const io = { stdout: print, stderr: print, env, cwd: dirname(file), isTty: false };
  const ports = {
    files: DISK_FILES,
    updateFile,
    observe: (...[upstream, gateway]: Parameters<PinPorts['observe']>) => observeOnce(upstream, gateway, '0.0.0-test'),
    now: Date.now,
  };
  const code = await runPinFetch({ config: file, approve: true, by: 'test', note: 'test' }, io, ports);
  const isLeftOut = printed.includes('not approved, because the scan found in');
  if (code !== 0 && !isLeftOut) throw new Error(`pin fetch ended with ${code}: ${printed}`);
  if (isLeftOut && byHand) await approvePending(join(dirname(file), 'policies/pins'));
}

async function approvePending(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    let { lock } = readLock(name, await readFile(path, 'utf8'));
    const pending = lock === undefined ? [] : pendingOf(lock);
    const together = pending.map(({ digest }) => digest);
    for (const pin of pending) {
      const approval = { by: 'test', at: new Date().toISOString(), note: 'test' };
      const order = { pin, digest: pin.digest, approval, observed: undefined, together };
      const change: PinChange | undefined = lock && approvePin({ lock, ...order });
      if (change?.ok) lock = change.lock;
    }
    if (lock !== undefined) await writeFile(path, writeLock(lock));
  }
}

// One real gateway in this process, from files in a folder of its own, on free ports of loopback, with a
// real issuer. Everything a test changes, it changes as an operator would: by writing files.

export type UpstreamUnderTest = {
  readonly name: string;
  readonly url: string;
  /** Further YAML members of the upstream, in flow style: `pinning: {maxAge: 1s}`. */
  readonly more?: readonly string[];
};

export type GatewayUnderTest = {
  readonly upstreams: readonly UpstreamUnderTest[];
  /** Policy files by name without suffix. Default: everyone may use everything. */
  readonly policies?: { readonly [name: string]: string };
  /** Fetch and approve the pins of every upstream before the start. Default true. */
  readonly pin?: boolean;
  /** Further top-level YAML, such as `inspection:` or `admin:` blocks. */
  readonly more?: string;
  /** The `audit:` block. Default: a file in the folder. */
  readonly audit?: string;
  /** Members of the issuer `test`, in flow style, in place of `algorithms`. */
  readonly issuer?: readonly string[];
  /** Further issuers, a line each: `other: {issuer: …}`. */
  readonly issuers?: readonly string[];
  /** Addresses of the listeners; 127.0.0.1 where absent. */
  readonly hosts?: { readonly [listener in 'data' | 'ops' | 'admin']: string };
  /** What a sink of type stdout writes. */
  readonly writeStdout?: (text: string) => void;
  /** What secret references may name. */
  readonly env?: Readonly<Record<string, string>>;
  /** Identifier of an issuer that is trusted in place of the test's own, which then mints in vain. */
  readonly issuerUrl?: string;
  /** Further YAML members of the data listener, in flow style: `allowedOrigins: [...]`. */
  readonly listener?: readonly string[];
  /** Files beside the gateway file, by name, written before it is read. */
  readonly files?: Readonly<Record<string, string>>;
  /** Further YAML members of the ops and of the admin listener. */
  readonly ops?: readonly string[];
  readonly admin?: readonly string[];
  /** Port of the admin listener, where logins have to return to it; any free one where absent. */
  readonly adminPort?: number;
  /** Port of the data listener, where logins have to return to it; any free one where absent. */
  readonly dataPort?: number;
  /** Certificate and key of the data listener, which then speaks TLS; `clientCa` asks clients for theirs. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
  /** `publicUrl` of replicas behind one address; that of the data listener where absent. */
  readonly publicUrl?: string;
  /** Path of `publicUrl`, which a proxy before the gateway would strip. */
  readonly publicPath?: string;
  /** The clock of the gateway, in milliseconds since the epoch; that of its tokens' issuer stays. */
  /** The version of Node that the gateway takes itself to run on. */
  readonly node?: string;
  readonly now?: () => number;
};

export const ALLOW_ALL = `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], prompts: ["*"], resources: ["**"], templates: []}
`.replace(', templates: []', '');

export type RunningGateway = {
  readonly folder: string;
  readonly publicUrl: string;
  readonly opsUrl: string;
  readonly issuer: TestIssuer;
  readonly gateway: Gateway;
  /** The endpoint of an upstream, which is also the audience of its tokens. */
  url(upstream: string): string;
  /** A good token for an upstream. */
  token(upstream: string, claims?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Every event of the audit file so far, an outcome together with what its decision says. */
  audit(): Promise<readonly AuditLine[]>;
  /** The process log so far. */
  log(): string;
  metrics(): Promise<string>;
  writePolicy(name: string, text: string): Promise<void>;
  /** Fetches and approves the pins of every upstream as they are offered now. */
  approvePins(): Promise<void>;
  reload(): Promise<readonly Diagnostic[]>;
  close(): Promise<void>;
};

// biome-ignore lint/suspicious/noExplicitAny: lines are read by their members in tests
export type AuditLine = { readonly [member: string]: any };

/** Longer than the gateway keeps a line that nobody waits for before it writes it. */
const UNAWAITED_LINE_MS = 8;

/** Waits for the lines that are written a moment after a reply: until none has come for as long as one is kept. */
async function lastLines(count: () => number): Promise<void> {
  for (let known = -1; known !== count(); await sleep(UNAWAITED_LINE_MS)) known = count();
}

const TLS_FILES = 'cert: ./data.crt, key: {file: ./data.key}';

/** The members of the data listener besides its address. */
function listenerText({ listener = [], tls }: GatewayUnderTest): string {
  const clientCa = tls?.clientCa === undefined ? '' : ', clientCa: ./clients.crt';
  const secure = tls === undefined ? [] : [`tls: {${TLS_FILES}${clientCa}}`];
  return flowText([...listener, ...secure]);
}

function flowText(members: readonly string[] = []): string {
  return members.map((member) => `, ${member}`).join('');
}

function schemeOf({ tls }: GatewayUnderTest): string {
  return tls === undefined ? 'http' : 'https';
}

/** Writes what stands beside the gateway file; again where certificates are renewed. */
export async function writeFilesBeside(
  folder: string,
  { files = {}, tls }: Pick<GatewayUnderTest, 'files' | 'tls'>,
): Promise<void> {
  const named = tls && { 'data.crt': tls.cert, 'data.key': tls.key, 'clients.crt': tls.clientCa };
  for (const [name, text] of Object.entries({ ...files, ...named }))
    if (text !== undefined) await writeFile(join(folder, name), text);
}

const LOCAL_HOSTS = { data: '127.0.0.1', ops: '127.0.0.1', admin: '127.0.0.1' };

function gatewayText(options: GatewayUnderTest, issuer: string, data: number, ops: number): string {
  const upstreams = options.upstreams.map(({ name, url, more = [] }) => {
    const hasIssuers = more.some((line) => /^(authentication|issuers):/.test(line));
    const auth = hasIssuers ? [] : ['issuers: [test]'];
    const network = more.some((line) => /^network:/.test(line)) ? [] : ['network: loopback'];
    const members = [`url: ${JSON.stringify(url)}`, ...network, ...auth, ...more];
    return `  ${name}:\n${members.map((member) => `    ${member}\n`).join('')}`;
  });
  const keys = options.issuer ?? ['algorithms: [ES256, RS256]'];
  const hasNetwork = keys.some((key) => key.startsWith('network:'));
  const verification = [...(hasNetwork ? [] : ['network: loopback']), ...keys].join(', ');
  const { hosts = LOCAL_HOSTS } = options;
  const origin = options.publicUrl ?? `${schemeOf(options)}://127.0.0.1:${data}`;
  return `version: 1
publicUrl: ${origin}${options.publicPath ?? ''}
listeners:
  data: {host: ${hosts.data}, port: ${data}${listenerText(options)}}
  ops: {host: ${hosts.ops}, port: ${ops}${flowText(options.ops)}}
  admin: {host: ${hosts.admin}, port: ${options.adminPort ?? 0}${flowText(options.admin)}}
issuers:
  test: {issuer: ${JSON.stringify(issuer)}, ${verification}}
${(options.issuers ?? []).map((line) => `  ${line}\n`).join('')}upstreams:
${upstreams.join('')}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
${options.audit ?? 'audit: {sinks: [{type: file, path: ./audit.jsonl}]}'}
${options.more ?? ''}
`;
}

/** Whatever a gateway wrote, the audit above all. */
async function recordFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((one) => one.isFile())) {
    const text = await readFile(join(entry.parentPath, entry.name), 'utf8');
    canary.recordSeen(`the file ${entry.name}`, text);
  }
}

/** Starts issuer and gateway. Close it in `afterAll`; everything it made goes with it. */
export async function startTestGateway(options: GatewayUnderTest): Promise<RunningGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-test-'));
  const issuer = await startTestIssuer();
  const [data, ops] = [options.dataPort ?? (await findFreePort()), await findFreePort()];
  const publicUrl = `${schemeOf(options)}://127.0.0.1:${data}`;
  canary.watchGateway(data, ops);
  const file = join(folder, 'gateway.yaml');
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFilesBeside(folder, options);
  await writeFile(file, gatewayText(options, options.issuerUrl ?? issuer.issuer, data, ops));
  const writePolicy = (name: string, text: string): Promise<void> =>
    writeFile(join(folder, `policies/${name}.policy.yaml`), text);
  for (const [name, text] of Object.entries(options.policies ?? { open: ALLOW_ALL })) await writePolicy(name, text);
  const approvePins = (): Promise<void> => fetchPins(file, options.env);
  if (options.pin !== false) await approvePins();
  let logged = '';
  const started = await startGateway({
    file,
    env: options.env ?? {},
    log: createLog((line) => {
      logged += line;
    }, 'debug'),
    build: { version: '0.0.0-test', node: options.node ?? 'v24.0.0' },
    writeStdout: async (text) => options.writeStdout?.(text),
    ...(options.now === undefined ? {} : { now: options.now }),
  });
  if (started.kind === 'refused')
    throw new Error(`the gateway refused its files: ${JSON.stringify(started.diagnostics, null, 2)}`);
  if (started.kind === 'failed') throw new Error(`the gateway did not start: ${started.message}`);
  const { gateway } = started;
  canary.watchGateway(...gateway.listening.map(({ port }) => port));
  const url = (upstream: string): string => `${publicUrl}/${upstream}`;
  const audit = followAudit(join(folder, 'audit.jsonl'), () => {
    const complete = createEventJoiner();
    return (line) => complete(JSON.parse(line), line.length).record as AuditLine;
  });
  return {
    folder,
    publicUrl,
    opsUrl: `http://127.0.0.1:${ops}`,
    issuer,
    gateway,
    url,
    token: (upstream, claims) =>
      issuer.mint(`${publicUrl}${options.publicPath ?? ''}/${upstream}`, claims === undefined ? {} : { claims }),
    async audit() {
      await lastLines(() => audit().length);
      return audit();
    },
    log: () => logged,
    metrics: async () => (await fetch(`http://127.0.0.1:${ops}/metrics`)).text(),
    writePolicy,
    approvePins,
    reload: () => gateway.reload(),
    async close() {
      const measured = await fetch(`http://127.0.0.1:${ops}/metrics`).catch(() => undefined);
      canary.recordSeen('the metrics', (await measured?.text()) ?? '');
      await gateway.close();
      await issuer.close();
      canary.recordSeen('the process log', logged);
      await recordFiles(folder);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type { GatewayStart };

/** Starts a gateway from files that a test has written, which may not succeed. Who starts it closes it. */
export function tryStart({
  env = {},
  onLine = () => undefined,
  ...given
}: {
  readonly file: string;
  /** Gets each line of the process log. */
  readonly onLine?: (line: string) => void;
  readonly env?: Readonly<Record<string, string>>;
  readonly writeStdout?: (text: string) => Promise<void>;
  readonly now?: () => number;
}): Promise<GatewayStart> {
  const build = { version: '0.0.0-test', node: 'v24.0.0' };
  return startGateway({ log: createLog(onLine), build, writeStdout: async () => undefined, ...given, env });
}

// A policy that lets every verified caller use everything an upstream offers. Templates are named one by
// one, because a policy matches them exactly (docs/reference/policies.md).

/** The templates of the reference server "everything". */
export const EVERYTHING_TEMPLATES: readonly string[] = [
  'demo://resource/dynamic/text/{resourceId}',
  'demo://resource/dynamic/blob/{resourceId}',
];

/** Everyone may use everything; of templates, these. */
export function writeOpenPolicy(templates: readonly string[]): string {
  const named = templates.map((template) => JSON.stringify(template)).join(', ');
  return `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], prompts: ["*"], resources: ["**"], templates: [${named}]}
`;
}

// A running gateway in front of a hostile upstream, and what every attack must prove: what the client
// got, that the upstream saw nothing of it, and that the audit has its lines with the right reason.

/** Sessions of the newest revision that has them are `sessions`; `channels` is HTTP+SSE of 2024-11-05. */
export type Era = 'channels' | UpstreamEra;

export const UPSTREAM = 'target';

/** A listing that is under way asks the next thing within these turns, on a busy machine too. */
const QUIET_MS = 60;
const QUIET_TURNS = 3;

export type AttackRig = {
  readonly gateway: RunningGateway;
  readonly upstream: HostileUpstream;
  /** Where it was asked for. */
  readonly front: LegacySseFront | undefined;
  readonly port: number;
  readonly path: string;
  /** A good caller. */
  readonly access: Access;
  /** The same endpoint with another token. */
  as(token: string | undefined): Access;
  /** A session of the good caller. */
  openSession(): Promise<OpenSession>;
  /** Sets the clock of the gateway forward: what it keeps grows older at once. Its timers run on as before. */
  passTime(ms: number): void;
  close(): Promise<void>;
};

export type RigOptions = Partial<Omit<GatewayUnderTest, 'upstreams'>> & {
  /** Of the upstream. */
  readonly name?: string;
  /** Members of the upstream. Default: verified so seldom that a test sees no listing of the gateway's own. */
  readonly upstream?: readonly string[];
  /** Orders given before the pins are fetched. */
  readonly prepare?: (upstream: HostileUpstream) => void;
  /** The upstream is reached over HTTP+SSE. */
  readonly behindChannels?: boolean;
  /** What the upstream speaks, and nothing else; `channels` is HTTP+SSE. */
  readonly era?: Era;
};

/** Starts both and waits until the definitions were verified; then the upstream forgets what it saw. */
export async function startRig(options: RigOptions = {}): Promise<AttackRig> {
  const { name = UPSTREAM, upstream: members = ['pinning: {maxAge: 10m}'], prepare, era, ...others } = options;
  const { behindChannels = era === 'channels', ...rest } = others;
  const upstream = await startHostileUpstream();
  if (era !== undefined) upstream.obey(onlyIn(era === 'channels' ? 'sessions' : era));
  prepare?.(upstream);
  const front = behindChannels ? await startLegacySseFront(upstream.url) : undefined;
  const more = front === undefined ? members : [...members, 'transport: http-sse'];
  let aheadMs = 0;
  const gateway = await startTestGateway({
    now: () => Date.now() + aheadMs,
    ...rest,
    upstreams: [{ name, url: front?.url ?? upstream.url, more }],
  });
  await settleListings(gateway, [upstream]);
  if (rest.issuerUrl === undefined && rest.issuer === undefined && rest.now === undefined) await awaitKeys(gateway);
  upstream.forget();
  const url = gateway.url(name);
  const access = { url, token: await gateway.token(name) };
  return {
    gateway,
    upstream,
    front,
    port: Number(new URL(url).port),
    path: new URL(url).pathname,
    access,
    as: (token) => ({ url, token }),
    openSession: () => openSession(access),
    passTime(ms) {
      aheadMs += ms;
    },
    async close() {
      await gateway.close();
      await front?.close();
      await upstream.close();
    },
  };
}

/** Waits for the keys of the issuer, which a busy machine may not have fetched in time at first. */
async function awaitKeys(gateway: RunningGateway): Promise<void> {
  const keys = /^sallyport_jwks_last_success_timestamp_seconds\{issuer="test"\}/m;
  await vi.waitFor(async () => expect(await gateway.metrics()).toMatch(keys), { timeout: 30_000, interval: 50 });
}

/** Waits for the gateway's own first listings, in both eras, so that none of them comes during a test. */
export async function settleListings(gateway: RunningGateway, upstreams: readonly HostileUpstream[]): Promise<void> {
  await vi.waitFor(
    async () =>
      expect((await gateway.metrics()).match(/^sallyport_upstream_up\{[^}]*\} [01]$/gm)?.length).toBeGreaterThanOrEqual(
        upstreams.length,
      ),
    { timeout: 10_000, interval: 10 },
  );
  const count = (): number => upstreams.reduce((sum, one) => sum + one.seen().length, 0);
  let seen = -1;
  for (let quiet = 0; quiet < QUIET_TURNS; await sleep(QUIET_MS)) {
    quiet = seen === count() ? quiet + 1 : 0;
    seen = count();
  }
}

/**
 * The id of the decision about a message: of a refusal in `data`, or in `_meta` of a result; of all else in a header, which
 * of an array and of a joined response names the request instead.
 */
export function decisionOf(reply: Reply): { readonly id: string; readonly reason?: string } {
  const error = reply.message?.['error'];
  const result = reply.message?.['result'];
  const holder = isObject(error) ? error['data'] : isObject(result) ? result['_meta'] : undefined;
  const decision = isObject(holder) ? holder['dev.sallyport/decision'] : undefined;
  if (isObject(decision)) return decision as { readonly id: string; readonly reason?: string };
  const header = reply.headers.get('sallyport-decision');
  if (header === null) throw new Error(`no decision in ${reply.status} ${reply.text}`);
  return { id: header };
}

/** The lines of one decision, once there are as many as a test waits for. */
export async function linesOf(gateway: RunningGateway, id: string, count: number): Promise<readonly AuditLine[]> {
  const find = async (): Promise<readonly AuditLine[]> =>
    (await gateway.audit()).filter((line) => line['decision']?.id === id);
  await expect.poll(async () => (await find()).length, { timeout: 5_000, interval: 10 }).toBeGreaterThanOrEqual(count);
  return find();
}

/** A refusal of a message writes its decision and its outcome, both refused for this reason. */
export async function expectRefusedLines(
  rig: Pick<AttackRig, 'gateway'>,
  reply: Reply,
  reason: Reason,
): Promise<readonly AuditLine[]> {
  const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
  expect(lines.map((line) => line['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
  for (const line of lines) {
    expect(line['decision']).toMatchObject({ verdict: 'deny', action: 'refused' });
    expect(line['decision'].reasons).toContain(reason);
  }
  return lines;
}

/** A refusal before anyone is known writes one line, for one of these reasons. */
export async function expectLoginLine(
  rig: AttackRig,
  reply: Pick<Reply, 'headers'>,
  ...reasons: readonly Reason[]
): Promise<void> {
  const id = reply.headers.get('sallyport-decision') ?? '';
  const lines = await linesOf(rig.gateway, id, 1);
  expect(lines.map((line) => line['type'])).toEqual(['auth.failure']);
  expect(reasons).toContain(lines[0]?.['decision'].reasons[0]);
}

/** A refusal at the edge is recorded like every other, with the id that stands in its header. */
export async function expectEdgeLines(rig: AttackRig, reply: Pick<Reply, 'headers'>, reason: Reason): Promise<void> {
  const id = reply.headers.get('sallyport-decision') ?? '';
  const lines = await linesOf(rig.gateway, id, 2);
  expect(lines.map((line) => line['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
  for (const line of lines) {
    expect(line['decision']).toMatchObject({ verdict: 'deny', stage: 'edge', reasons: [reason] });
  }
}

/** What came back was withheld: allowed, forwarded, and then not passed on. */
export async function expectWithheldLines(rig: AttackRig, reply: Reply, reason: Reason): Promise<void> {
  const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
  const [decision, outcome] = lines;
  expect(decision?.['decision']).toMatchObject({ verdict: 'allow', action: 'forwarded' });
  expect(outcome?.['decision']).toMatchObject({ action: 'withheld' });
  expect(outcome?.['decision'].reasons).toContain(reason);
}

export function expectNothingForwarded(rig: AttackRig): void {
  expect(rig.upstream.seen().map((request) => request.body)).toEqual([]);
}

/** A good call of both eras passes: an attack before it has broken nothing. */
export function textOf(result: JsonObject): string {
  const content = result['content'];
  if (!Array.isArray(content)) return '';
  return (content as readonly Json[]).map((block) => (isObject(block) ? String(block['text'] ?? '') : '')).join('');
}

// A token that the running gateway must refuse: what its caller gets, what the audit says, and that the
// upstream saw nothing.

const WRITTEN_EVERY_MS = 1000 / AUTH_FAILURES_PER_SECOND;

/** A call with this token is a 401 for one of these reasons. */
export async function expectLoginRefused(rig: AttackRig, token: string, ...reasons: readonly Reason[]): Promise<Reply> {
  rig.upstream.forget();
  // Refused logins past a rate are counted and not written; each of these must be seen written.
  rig.passTime(WRITTEN_EVERY_MS);
  const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
  expect(reply.status).toBe(401);
  expect(reply.headers.get('www-authenticate')).toContain('error="invalid_token"');
  await expectLoginLine(rig, reply, ...reasons);
  expectNothingForwarded(rig);
  return reply;
}

/** A call with this token passes, and reaches the upstream. */
export async function expectCallPasses(rig: AttackRig, token: string): Promise<Reply> {
  rig.upstream.forget();
  const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
  expect(reply.status).toBe(200);
  expect(reply.message).toHaveProperty('result');
  expect(rig.upstream.seen().length).toBeGreaterThan(0);
  return reply;
}
