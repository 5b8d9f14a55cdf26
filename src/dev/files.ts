// Writes the files of `dev`: with `--demo` the configuration and policies of the demo; in front of a server, those
// of one upstream, the development issuer, and one developer who may use what was offered at the start; and with
// `--save` the same as the start of a production setup. The gateway reads them like any other, and its own code
// fetches the pins. No file but those of the secrets, which only their owner can read, holds a secret.
// docs/reference/commands.md#dev; docs/reference/configuration.md; docs/reference/policies.md.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quoteYaml } from '../text/escaping.js';

/** The name and path of the demo's upstream, and the scopes that its policy requires. */
export const DESK = {
  name: 'desk',
  path: '/desk',
  issuer: 'dev',
  scopes: ['tickets:read', 'customers:read'],
} as const;

/** The two callers of the demo: the claims that the development issuer puts into their tokens. */
export const DEMO_USERS = {
  engineer: { subject: 'engineer', groups: ['engineering'], scopes: ['tickets:read'] },
  support: { subject: 'support', groups: ['support'], scopes: ['tickets:read', 'customers:read'] },
} as const;

export type DemoUser = keyof typeof DEMO_USERS;

type DemoFilesInput = {
  /** The gateway's public URL, on loopback, without a path. */
  readonly publicUrl: string;
  readonly issuer: string;
  readonly upstreamUrl: string;
  readonly ports: { readonly data: number; readonly ops: number; readonly admin: number };
  /** The token of the admin listener; without it the listener is not opened. */
  readonly adminToken?: string;
};

export type DemoFiles = {
  readonly configFile: string;
  readonly policiesDir: string;
  readonly pinsDir: string;
  readonly auditFile: string;
  /** `publicUrl` and the path of the upstream: the MCP endpoint, and the audience of tokens. */
  readonly resource: string;
};

const OWNER_ONLY = 0o600;

function adminSection(input: DemoFilesInput): string {
  if (input.adminToken === undefined) return '';
  return '\nadmin:\n  breakGlass: {token: {file: ./admin-token}}\n';
}

function demoGatewayText(input: DemoFilesInput): string {
  const { data, ops, admin } = input.ports;
  return `# The demo of Sallyport: one upstream, one issuer, everything on loopback.
version: 1
publicUrl: ${JSON.stringify(input.publicUrl)}

listeners:
  data: {host: 127.0.0.1, port: ${data}}
  ops: {host: 127.0.0.1, port: ${ops}}
  admin: {host: 127.0.0.1, port: ${admin}}

issuers:
  ${DESK.issuer}:
    issuer: ${JSON.stringify(input.issuer)}
    network: loopback
    algorithms: [ES256]

upstreams:
  ${DESK.name}:
    url: ${JSON.stringify(input.upstreamUrl)}
    path: ${DESK.path}
    network: loopback
    issuers: [${DESK.issuer}]
    scopesSupported: ["${DESK.scopes[0]}"]
    pinning: {mode: strict, maxAge: 10s, onDrift: hide-tool}

policies: {dir: ./policies}
pins: {dir: ./policies/pins}

audit:
  sinks: [{type: file, path: ./audit.jsonl}]
  onFailure: block
${adminSection(input)}`;
}

const DEMO_POLICY = `# Who may do what at the help desk. Nothing is allowed that no rule allows.
version: 1
policy: ${DESK.name}
owner: demo@example.com
rules:
  # Engineers read the tickets of their projects; any other project is refused by its argument.
  - id: engineers-read-tickets
    effect: allow
    who: {issuers: [${DESK.issuer}], groups: [engineering]}
    what: {upstreams: [${DESK.name}], tools: [get_ticket, list_tickets]}
    args: {project: {enum: [web, mobile]}}

  # Export is theirs too, five times a minute.
  - id: engineers-export
    effect: allow
    who: {issuers: [${DESK.issuer}], groups: [engineering]}
    what: {upstreams: [${DESK.name}], tools: [export_all]}
    limits: {rate: 5/min, per: subject}

  # Support reads customers, with a token that says so. What leaks there is redacted on the way.
  - id: support-reads-customers
    effect: allow
    who: {issuers: [${DESK.issuer}], groups: [support]}
    what: {upstreams: [${DESK.name}], tools: [get_customer]}
    scopes: ["customers:read"]

  # Support answers tickets: it reads them and writes comments that everyone can read.
  - id: support-answers-tickets
    effect: allow
    who: {issuers: [${DESK.issuer}], groups: [support]}
    what: {upstreams: [${DESK.name}], tools: [get_ticket, post_comment]}

  # The handbook is for everybody; internal pages are not in it.
  - id: everyone-reads-the-handbook
    effect: allow
    who: {anyone: true}
    what:
      upstreams: [${DESK.name}]
      tools: [search_docs]
      prompts: [triage_ticket]
      resources: ["desk://handbook/**"]
      templates: ["desk://handbook/{page}"]

  # No result of the desk is longer than this, whoever allows the call.
  - id: small-results
    effect: require
    who: {anyone: true}
    what: {upstreams: [${DESK.name}], tools: ["*"]}
    maxResultBytes: 64KiB

  # Deny wins over every allow, today's and tomorrow's.
  - id: nobody-deletes
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["delete_*"]}
    reason: Tickets are closed, not deleted.

# Everyone may open a ticket, so what stands in one is untrusted, like every result that is not labelled trusted.
labels:
  ${DESK.name}/get_customer: [sensitive, trusted]
  ${DESK.name}/post_comment: [egress]

# Whoever has read both a ticket and a customer publishes nothing for a while: the ticket may have asked for it.
flows:
  - {id: no-customers-in-public, from: [untrusted, sensitive], to: egress, within: 10m, effect: deny}
`;

/** Writes the files of the demo to `dir`, which must exist. Rejects if they cannot be written. */
export async function writeDemoFiles(dir: string, input: DemoFilesInput): Promise<DemoFiles> {
  const policiesDir = join(dir, 'policies');
  const pinsDir = join(policiesDir, 'pins');
  const configFile = join(dir, 'gateway.yaml');
  await mkdir(pinsDir, { recursive: true });
  await writeFile(configFile, demoGatewayText(input));
  await writeFile(join(policiesDir, `${DESK.name}.policy.yaml`), DEMO_POLICY);
  if (input.adminToken !== undefined) {
    await writeFile(join(dir, 'admin-token'), `${input.adminToken}\n`, { mode: OWNER_ONLY });
  }
  return {
    configFile,
    policiesDir,
    pinsDir,
    auditFile: join(dir, 'audit.jsonl'),
    resource: `${input.publicUrl}${DESK.path}`,
  };
}

/** The caller of the tokens that `dev` mints, and the upstream's name and path. */
export const DEVELOPER = { subject: 'developer', groups: ['developers'], scopes: [] } as const;
export const DEV_UPSTREAM = { name: 'mcp', path: '/mcp' } as const;
/** Lifetime of the token to paste, a working day; the configuration's `maxLifetime` has to allow it. */
export const DEV_TOKEN_HOURS = 8;

/** Files that hold the value of a header. */
export const HEADER_FILES = { http: 'upstream-header', stdio: 'stdio-token' } as const;

/** The header that the upstream gets, and the file that holds its value. */
type DevHeader = {
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
  /** The lines of the key `content`, if anything but the default was chosen. */
  readonly content?: readonly string[] | undefined;
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

const NEW_FILE = { flag: 'wx' } as const;

/** The files of a setup, relative to its folder. */
const SAVED = {
  config: 'gateway.yaml',
  policy: `policies/${DEV_UPSTREAM.name}.policy.yaml`,
  lock: `policies/pins/${DEV_UPSTREAM.name}.lock.yaml`,
};

function filesIn(dir: string): DevFiles {
  return {
    configFile: join(dir, SAVED.config),
    policyFile: join(dir, SAVED.policy),
    lockFile: join(dir, SAVED.lock),
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

/** Writes the gateway file again, with what the definitions of the server decided. */
export function rewriteDevConfig(files: DevFiles, input: DevFilesInput): Promise<void> {
  return writeFile(files.configFile, devGatewayText(input));
}

/**
 * Lets the developers use everything: what is pinned and approved under any name, each resource, and what the server
 * requests of their clients.
 */
export function writeDevPolicy(files: DevFiles, { templates }: Offered): Promise<void> {
  const everything = { tools: ['*'], prompts: ['*'], templates, patterns: [] };
  return writeFile(files.policyFile, policyText('dev', everything, SERVER_REQUESTS));
}

/** What a server may request of its clients, as lines of `what`. */
const SERVER_REQUESTS = ['sampling: true', 'elicitation: [form, url]', 'roots: true'];

/** The paths that `savedFiles` may have, whatever the setup is. */
export const SAVED_PATHS: readonly string[] = [...Object.values(HEADER_FILES), ...Object.values(SAVED)];

/**
 * Gateway file, policy, lock file and the secret of the server as the start of a production setup, relative to its
 * folder. Its issuer is an example, because the one of `dev` ends with it.
 */
export function savedFiles(lockText: string, { server, port, offered, note }: SavedSetup) {
  const { header } = server;
  const requested = [
    '# The server may also be let request of its clients:',
    ...SERVER_REQUESTS.map((line) => `# ${line}`),
  ];
  const policy = policyText(SAVED_ISSUER, offered, requested);
  return [
    ...(header === undefined ? [] : [{ path: header.file, text: `${header.value}\n`, isSecret: true }]),
    { path: SAVED.lock, text: lockText, isSecret: false },
    { path: SAVED.policy, text: policy, isSecret: false },
    { path: SAVED.config, text: savedGatewayText(server, port, note), isSecret: false },
  ];
}

/** The secrets of a saved setup, which a repository must not hold. */
export function ignoredFiles({ header }: DevServer): readonly string[] {
  return header === undefined ? [] : [`/${header.file}`];
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

/** What `dev` lets pass in arguments: everything that the server itself would take without loss. */
const DEV_ARGUMENTS = '{undeclared: observe, coerce: true}';

/** The upstream of a gateway file, indented below `upstreams:`. `more`: further lines. */
function upstreamText(server: DevServer, issuer: string, more: readonly string[]): string {
  const { url, network, transport, header, requestTimeout, content = [] } = server;
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
    ...content,
    ...more,
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
${upstreamText(server, 'dev', [`arguments: ${DEV_ARGUMENTS}`])}policies: {dir: ./policies}
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
${note === undefined ? '' : `  # ${note}\n`}${upstreamText(server, SAVED_ISSUER, [`# As in dev: arguments: ${DEV_ARGUMENTS}`])}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

/** `more`: further lines of `what`. */
function policyText(issuer: string, { patterns, ...kinds }: Offered, more: readonly string[]): string {
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
${named.join('')}${refused.join('')}      resources: ["**", "**#**"]
${more.map((line) => `      ${line}\n`).join('')}`;
}
