// One real gateway in this process, from files in a folder of its own, on free ports of loopback, with a
// real issuer. Everything a test changes, it changes as an operator would: by writing files.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Diagnostic } from '../../src/config/diagnostics.js';
import { type Gateway, startGateway } from '../../src/gateway/gateway.js';
import { createLog } from '../../src/telemetry/log.js';
import { canary } from './canary.js';
import { fetchPins } from './fetch-pins.js';
import { findFreePort } from './free-port.js';
import { startTestIssuer, type TestIssuer } from './issuer.js';

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
  /** Certificate and key of the data listener, which then speaks TLS; `clientCa` asks clients for theirs. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
  /** `publicUrl` of replicas behind one address; that of the data listener where absent. */
  readonly publicUrl?: string;
  /** Path of `publicUrl`, which a proxy before the gateway would strip. */
  readonly publicPath?: string;
  /** The clock of the gateway, in milliseconds since the epoch; that of its tokens' issuer stays. */
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
  /** Every line of the audit file so far, parsed. */
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
    const members = [`url: ${JSON.stringify(url)}`, 'network: loopback', ...auth, ...more];
    return `  ${name}:\n${members.map((member) => `    ${member}\n`).join('')}`;
  });
  const verification = (options.issuer ?? ['algorithms: [ES256, RS256]']).join(', ');
  const { hosts = LOCAL_HOSTS } = options;
  const origin = options.publicUrl ?? `${schemeOf(options)}://127.0.0.1:${data}`;
  return `version: 1
publicUrl: ${origin}${options.publicPath ?? ''}
listeners:
  data: {host: ${hosts.data}, port: ${data}${listenerText(options)}}
  ops: {host: ${hosts.ops}, port: ${ops}${flowText(options.ops)}}
  admin: {host: ${hosts.admin}, port: 0${flowText(options.admin)}}
issuers:
  test: {issuer: ${JSON.stringify(issuer)}, network: loopback, ${verification}}
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
  const [data, ops] = [await findFreePort(), await findFreePort()];
  const publicUrl = `${schemeOf(options)}://127.0.0.1:${data}`;
  canary.watchGateway(data, ops);
  const file = join(folder, 'gateway.yaml');
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFilesBeside(folder, options);
  await writeFile(file, gatewayText(options, options.issuerUrl ?? issuer.issuer, data, ops));
  const writePolicy = (name: string, text: string): Promise<void> =>
    writeFile(join(folder, `policies/${name}.policy.yaml`), text);
  for (const [name, text] of Object.entries(options.policies ?? { open: ALLOW_ALL }))
    await writePolicy(name, text);
  const approvePins = (): Promise<void> => fetchPins(file, options.env);
  if (options.pin !== false) await approvePins();
  let logged = '';
  const started = await startGateway({
    file,
    env: options.env ?? {},
    log: createLog((line) => {
      logged += line;
    }, 'debug'),
    build: { version: '0.0.0-test', node: process.version },
    writeStdout: async (text) => options.writeStdout?.(text),
    ...(options.now === undefined ? {} : { now: options.now }),
  });
  if (started.kind === 'refused')
    throw new Error(
      `the gateway refused its files: ${JSON.stringify(started.diagnostics, null, 2)}`,
    );
  if (started.kind === 'failed') throw new Error(`the gateway did not start: ${started.message}`);
  const { gateway } = started;
  canary.watchGateway(...gateway.listening.map(({ port }) => port));
  const url = (upstream: string): string => `${publicUrl}/${upstream}`;
  return {
    folder,
    publicUrl,
    opsUrl: `http://127.0.0.1:${ops}`,
    issuer,
    gateway,
    url,
    token: (upstream, claims) =>
      issuer.mint(
        `${publicUrl}${options.publicPath ?? ''}/${upstream}`,
        claims === undefined ? {} : { claims },
      ),
    async audit() {
      const text = await readFile(join(folder, 'audit.jsonl'), 'utf8');
      // What stands behind the last line end is still being written.
      return text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as AuditLine);
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
