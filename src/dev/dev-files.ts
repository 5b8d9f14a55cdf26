// Writes the configuration and policies of `dev` in front of a server (one upstream, the development issuer, one
// developer who may use what was offered at the start), and with `--save` the same as the start of a production
// setup. No file but those of the secrets, which only their owner can read, holds a secret. docs/contract.md §1, §3.

import { constants } from 'node:fs';
import { copyFile, lstat, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quoteYaml } from '../text/escaping.js';

/** The caller of the tokens that `dev` mints, and the upstream's name and path. */
export const DEVELOPER = { subject: 'developer', groups: ['developers'], scopes: [] } as const;
export const DEV_UPSTREAM = { name: 'mcp', path: '/mcp' } as const;
/** Lifetime of the token to paste, a working day; the configuration's `maxLifetime` has to allow it. */
export const DEV_TOKEN_HOURS = 8;

/** Files that hold the value of a header. */
export const HEADER_FILES = { http: 'upstream-header', stdio: 'stdio-token' } as const;

/** The header that the upstream gets, and the file that holds its value. */
export type DevHeader = {
  readonly name: string;
  readonly value: string;
  readonly file: (typeof HEADER_FILES)[keyof typeof HEADER_FILES];
};

/** The server that the gateway is put in front of. */
export type DevServer = {
  readonly url: string;
  /** The addresses that the upstream's host name may resolve to. */
  readonly network: 'public' | 'private' | 'loopback';
  /** The key `transport`, if it is not the default. */
  readonly transport?: string | undefined;
  readonly header?: DevHeader | undefined;
  /** The key `limits.requestTimeout`, if it is not the default. */
  readonly requestTimeout?: string | undefined;
};

type DevFilesInput = {
  readonly publicUrl: string;
  readonly issuer: string;
  readonly server: DevServer;
  readonly ports: { readonly data: number; readonly ops: number; readonly admin: number };
  readonly adminToken: string;
};

/** What a policy names, by kind. */
export type Offered = {
  readonly tools: readonly string[];
  readonly prompts: readonly string[];
  readonly templates: readonly string[];
  /** Names of tools and prompts that a rule would read as a pattern, so that it would grant more than them. */
  readonly patterns: readonly string[];
};

export type DevFiles = {
  readonly configFile: string;
  readonly policyFile: string;
  readonly lockFile: string;
  readonly auditFile: string;
};

const OWNER_ONLY = 0o600;
const NEW_FILE = { flag: 'wx' } as const;

function filesIn(dir: string): DevFiles {
  return {
    configFile: join(dir, 'gateway.yaml'),
    policyFile: join(dir, 'policies', `${DEV_UPSTREAM.name}.policy.yaml`),
    lockFile: join(dir, 'policies', 'pins', `${DEV_UPSTREAM.name}.lock.yaml`),
    auditFile: join(dir, 'audit.jsonl'),
  };
}

/** Writes the gateway file; the policy is written once it is known what the server offers. */
export async function writeDevFiles(dir: string, input: DevFilesInput): Promise<DevFiles> {
  const files = filesIn(dir);
  await mkdir(join(dir, 'policies', 'pins'), { recursive: true });
  await writeFile(join(dir, 'admin-token'), input.adminToken, { mode: OWNER_ONLY });
  await writeHeader(dir, input.server.header);
  await writeFile(files.configFile, devGatewayText(input));
  return files;
}

/** Lets the developers use exactly what was offered. */
export function writeDevPolicy(files: DevFiles, offered: Offered): Promise<void> {
  return writeFile(files.policyFile, policyText('dev', offered));
}

/** The first of the files that `saveDevFiles` would overwrite. */
export async function findSavedFile(dir: string): Promise<string | undefined> {
  const { configFile, policyFile, lockFile } = filesIn(dir);
  const secrets = Object.values(HEADER_FILES).map((name) => join(dir, name));
  for (const file of [configFile, policyFile, lockFile, ...secrets])
    if ((await lstat(file).catch(() => undefined)) !== undefined) return file;
  return undefined;
}

/**
 * Writes gateway file, policy, lock file and the secret of the server as the start of a production setup. Its issuer
 * is an example, because the one of `dev` ends with it. Rejects rather than write over a file or through a link: the
 * server may have taken minutes to start since `findSavedFile`.
 */
export async function saveDevFiles(
  dir: string,
  running: DevFiles,
  { server, port, offered, note }: SavedSetup,
): Promise<DevFiles> {
  const files = filesIn(dir);
  await mkdir(join(dir, 'policies', 'pins'), { recursive: true });
  await writeHeader(dir, server.header);
  await copyFile(running.lockFile, files.lockFile, constants.COPYFILE_EXCL);
  await writeFile(files.policyFile, policyText(SAVED_ISSUER, offered), NEW_FILE);
  await writeFile(files.configFile, savedGatewayText(server, port, note), NEW_FILE);
  return files;
}

/** What a repository must not hold of a saved setup: the audit file, its lease and rotated files, and the secret. */
export function ignoredFiles({ header }: DevServer): readonly string[] {
  return ['/audit.jsonl*', ...(header === undefined ? [] : [`/${header.file}`])];
}

export type SavedSetup = {
  readonly server: DevServer;
  /** The port of the endpoint: clients keep its URL. */
  readonly port: number;
  readonly offered: Offered;
  /** A line of the gateway file about the upstream. */
  readonly note?: string | undefined;
};

const SAVED_ISSUER = 'corp';

async function writeHeader(dir: string, header: DevHeader | undefined): Promise<void> {
  if (header === undefined) return;
  const file = join(dir, header.file);
  await writeFile(file, `${header.value}\n`, { ...NEW_FILE, mode: OWNER_ONLY });
}

/** The upstream of a gateway file, indented below `upstreams:`. */
function upstreamText(server: DevServer, issuer: string): string {
  const { url, network, transport, header, requestTimeout } = server;
  const reference = header && `{file: ${quoteYaml(`./${header.file}`)}}`;
  const keys = [
    `url: ${quoteYaml(url)}`,
    `path: ${DEV_UPSTREAM.path}`,
    `network: ${network}`,
    // `--network private` is given on the command line; there is no other place to accept plain http.
    ...(network === 'private' && url.startsWith('http:') ? ['plaintext: accepted'] : []),
    `issuers: [${issuer}]`,
    ...(transport === undefined ? [] : [`transport: ${transport}`]),
    ...(header === undefined
      ? []
      : [`credentials: {type: static, header: ${quoteYaml(header.name)}, value: ${reference}}`]),
    ...(requestTimeout === undefined ? [] : [`limits: {requestTimeout: ${requestTimeout}}`]),
  ];
  return `  ${DEV_UPSTREAM.name}:\n${keys.map((key) => `    ${key}\n`).join('')}`;
}

function devGatewayText({ publicUrl, issuer, server, ports }: DevFilesInput): string {
  return `version: 1
publicUrl: ${JSON.stringify(publicUrl)}
listeners:
  data: {host: 127.0.0.1, port: ${ports.data}}
  ops: {host: 127.0.0.1, port: ${ports.ops}}
  admin: {host: 127.0.0.1, port: ${ports.admin}}
issuers:
  dev: {issuer: ${JSON.stringify(issuer)}, network: loopback, algorithms: [ES256], maxLifetime: ${DEV_TOKEN_HOURS}h}
upstreams:
${upstreamText(server, 'dev')}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
admin:
  breakGlass: {token: {file: ./admin-token}}
`;
}

function savedGatewayText(server: DevServer, port: number, note: string | undefined): string {
  return `# Written by \`sallyport dev --save\`. Before you use it, put in your own values:
#   issuers     the authorization server of your organization
#   publicUrl   the address that clients use; https needs TLS on the listener or a proxy in front of it, and \`keys\`
#   policies/   the groups that may use the server
version: 1
publicUrl: http://127.0.0.1:${port}
listeners:
  data: {host: 127.0.0.1, port: ${port}}
  ops: {host: 127.0.0.1, port: 9464}
issuers:
  ${SAVED_ISSUER}: {issuer: https://idp.example.com, algorithms: [ES256, RS256]}
upstreams:
${note === undefined ? '' : `  # ${note}\n`}${upstreamText(server, SAVED_ISSUER)}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

function policyText(issuer: string, { patterns, ...kinds }: Offered): string {
  const named = Object.entries(kinds)
    .filter(([, names]) => names.length > 0)
    .map(([kind, names]) => `      ${kind}: [${names.map(quoteYaml).join(', ')}]\n`);
  const refused = patterns.map(
    (name) => `      # No rule can name ${quoteYaml(name)} exactly: it reads as a pattern.\n`,
  );
  return `version: 1
policy: ${DEV_UPSTREAM.name}
rules:
  - id: developers-use-what-was-offered
    effect: allow
    who: {issuers: [${issuer}], groups: [${DEVELOPER.groups.join(', ')}]}
    what:
      upstreams: [${DEV_UPSTREAM.name}]
${named.join('')}${refused.join('')}      resources: ["**"]
`;
}
