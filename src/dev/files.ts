// Writes the files of `dev`: with `--demo` the configuration and policies of the demo; in front of a server, those
// of its servers, the development issuer, and one developer who may use what was offered at the start; and with
// `--save` the same as the start of a production setup. The gateway reads them like any other, and its own code
// fetches the pins. No file but those of the secrets, which only their owner can read, holds a secret.
// docs/reference/commands.md#dev; docs/reference/configuration.md; docs/reference/policies.md.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nameInYaml, quoteYaml } from '../text/escaping.js';

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
const OWNER_ONLY_FOLDER = 0o700;

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

/** The caller of the tokens that `dev` mints, and the name of the only server, where it was given none. */
export const DEVELOPER = { subject: 'developer', groups: ['developers'], scopes: [] } as const;
export const DEV_UPSTREAM = { name: 'mcp', path: '/mcp' } as const;
/** Lifetime of the token to paste, a working day; the configuration's `maxLifetime` has to allow it. */
export const DEV_TOKEN_HOURS = 8;

/** Files that hold the value of a header, where there is one server without a name. */
export const HEADER_FILES = { http: 'upstream-header', stdio: 'stdio-token' } as const;

/** The header that the upstream gets. */
type DevHeader = {
  readonly name: string;
  readonly value: string;
  /** Holds the value. */
  readonly file: string;
  /** The variable that a saved setup reads it from instead. */
  readonly env?: string | undefined;
};

/** A server that the gateway is put in front of. */
export type DevServer = {
  /** In the gateway file; its path is called after it. */
  readonly name: string;
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
  readonly servers: readonly DevServer[];
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
  readonly auditFile: string;
  lockFileOf(server: string): string;
};

const CONFIG_PATH = 'gateway.yaml';
const policyPath = (server: string): string => `policies/${server}.policy.yaml`;
const lockPath = (server: string): string => `policies/pins/${server}.lock.yaml`;

function filesIn(dir: string): DevFiles {
  return {
    configFile: join(dir, CONFIG_PATH),
    policyFile: join(dir, policyPath('dev')),
    auditFile: join(dir, 'audit.jsonl'),
    lockFileOf: (server) => join(dir, lockPath(server)),
  };
}

/** The name of the endpoint that serves all of them as one, where there are several. */
export function endpointOf(servers: readonly { readonly name: string }[]): string | undefined {
  if (servers.length < 2) return undefined;
  const taken = servers.map(({ name }) => name);
  return [DEV_UPSTREAM.name, 'all', 'together', 'dev-endpoint'].find((name) => !taken.includes(name));
}

/** Writes the gateway file; the policy is written once it is known what the servers offer. */
export async function writeDevFiles(dir: string, input: DevFilesInput): Promise<DevFiles> {
  const files = filesIn(dir);
  await mkdir(join(dir, 'policies', 'pins'), { recursive: true });
  await writeFile(join(dir, 'admin-token'), input.adminToken, { mode: OWNER_ONLY });
  for (const { header } of input.servers) {
    if (header === undefined) continue;
    const file = join(dir, header.file);
    await mkdir(dirname(file), { recursive: true, mode: OWNER_ONLY_FOLDER });
    await writeFile(file, `${header.value}\n`, { flag: 'wx', mode: OWNER_ONLY });
  }
  await writeFile(files.configFile, devGatewayText(input));
  return files;
}

/** Writes the gateway file again, with what the definitions of the servers decided. */
export function rewriteDevConfig(files: DevFiles, input: DevFilesInput): Promise<void> {
  return writeFile(files.configFile, devGatewayText(input));
}

/**
 * Lets the developers use everything: what is pinned and approved under any name, each resource, and what the servers
 * request of their clients.
 */
export function writeDevPolicy(
  files: DevFiles,
  servers: readonly { readonly name: string; readonly offered: Offered }[],
): Promise<void> {
  const rules = servers.map(({ name, offered: { templates } }) => {
    const everything = { tools: ['*'], prompts: ['*'], templates, patterns: [] };
    const id = servers.length === 1 ? DEV_RULE : `${DEV_RULE}-by-${name}`;
    return ruleText({ id, server: name, issuer: 'dev', offered: everything, more: SERVER_REQUESTS });
  });
  return writeFile(files.policyFile, policyText('dev', rules));
}

/** What a server may request of its clients, as lines of `what`. */
const SERVER_REQUESTS = ['sampling: true', 'elicitation: [form, url]', 'roots: true'];

/** The paths that `savedFiles` may have, whatever the setup is. */
export function savedPaths(names: readonly string[], headers: readonly string[]): readonly string[] {
  return [...headers, CONFIG_PATH, ...names.flatMap((name) => [policyPath(name), lockPath(name)])];
}

/**
 * Gateway file, policies, lock files and the secrets of the servers as the start of a production setup, relative to its
 * folder. Its issuer is an example, because the one of `dev` ends with it.
 */
export function savedFiles({ servers, port }: SavedSetup) {
  const requested = [
    '# The server may also be let request of its clients:',
    ...SERVER_REQUESTS.map((line) => `# ${line}`),
  ];
  const secrets = new Map(servers.flatMap(({ server: { header } }) => keptIn(header)));
  const own = servers.flatMap(({ server: { name }, offered, lock }) => {
    const rule = ruleText({ id: DEV_RULE, server: name, issuer: SAVED_ISSUER, offered, more: requested });
    return [
      { path: lockPath(name), text: lock, isSecret: false },
      { path: policyPath(name), text: policyText(name, [rule]), isSecret: false },
    ];
  });
  return [
    ...[...secrets].map(([path, value]) => ({ path, text: `${value}\n`, isSecret: true })),
    ...own,
    { path: CONFIG_PATH, text: savedGatewayText(servers, port), isSecret: false },
  ];
}

/** The file of a header, unless a variable has its value. */
function keptIn(header: DevHeader | undefined): readonly (readonly [string, string])[] {
  return header === undefined || header.env !== undefined ? [] : [[header.file, header.value]];
}

/** The secrets of a saved setup, which a repository must not hold. */
export function ignoredFiles(servers: readonly DevServer[]): readonly string[] {
  const files = servers.flatMap(({ header }) => keptIn(header).map(([file]) => file));
  return [...new Set(files.map((file) => (file.includes('/') ? `/${dirname(file)}/` : `/${file}`)))];
}

export type SavedSetup = {
  readonly servers: readonly {
    readonly server: DevServer;
    readonly offered: Offered;
    /** The text of its lock file. */
    readonly lock: string;
    /** A line of the gateway file about the upstream. */
    readonly note?: string | undefined;
  }[];
  /** The port of the endpoint: clients keep its URL. */
  readonly port: number;
};

const SAVED_ISSUER = 'corp';

/** What `dev` lets pass in arguments: everything that the server itself would take without loss. */
const DEV_ARGUMENTS = '{undeclared: observe, coerce: true}';

/** The upstream of a gateway file, indented below `upstreams:`. `more`: further lines. */
function upstreamText(server: DevServer, issuer: string, isSaved: boolean, more: readonly string[]): string {
  const { name, url, network, transport, header, requestTimeout, content = [] } = server;
  const reference =
    header &&
    (isSaved && header.env !== undefined ? `{env: ${header.env}}` : `{file: ${quoteYaml(`./${header.file}`)}}`);
  const keys = [
    `url: ${quoteYaml(url)}`,
    `path: /${name}`,
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
  return `  ${nameInYaml(name)}:\n${keys.map((key) => `    ${key}\n`).join('')}`;
}

/** All servers as one, where there are several. */
function endpointsText(servers: readonly { readonly name: string }[], issuer: string): string {
  const name = endpointOf(servers);
  if (name === undefined) return '';
  const members = servers.map((server) => `${nameInYaml(server.name)}: {}`).join(', ');
  return `endpoints:\n  ${name}: {issuers: [${issuer}], upstreams: {${members}}}\n`;
}

function devGatewayText({ publicUrl, issuer, servers, ports }: DevFilesInput): string {
  const upstreams = servers.map((server) => upstreamText(server, 'dev', false, [`arguments: ${DEV_ARGUMENTS}`]));
  return `version: 1
publicUrl: ${JSON.stringify(publicUrl)}
listeners:
  data: {host: 127.0.0.1, port: ${ports.data}}
  ops: {host: 127.0.0.1, port: ${ports.ops}}
  admin: {host: 127.0.0.1, port: ${ports.admin}}
issuers:
  dev: {issuer: ${JSON.stringify(issuer)}, network: loopback, algorithms: [ES256], maxLifetime: ${DEV_TOKEN_HOURS}h}
upstreams:
${upstreams.join('')}${endpointsText(servers, 'dev')}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
admin:
  breakGlass: {token: {file: ./admin-token}}
`;
}

function savedGatewayText(servers: SavedSetup['servers'], port: number): string {
  const all = servers.map(({ server }) => server);
  const upstreams = servers.map(({ server, note }) => {
    const text = upstreamText(server, SAVED_ISSUER, true, [`# As in dev: arguments: ${DEV_ARGUMENTS}`]);
    return note === undefined ? text : `  # ${note}\n${text}`;
  });
  return `# Written by \`sallyport dev --save\`. Before you use it, put in your own values:
#   issuers     the authorization server of your organization
#   publicUrl   the address that clients use; https needs TLS on the listener or a proxy in front of it, and \`keys\`
#   policies/   the groups that may use the ${servers.length === 1 ? 'server' : 'servers'}
version: 1
publicUrl: http://127.0.0.1:${port}
listeners:
  data: {host: 127.0.0.1, port: ${port}}
  ops: {host: 127.0.0.1, port: 9464}
issuers:
  ${SAVED_ISSUER}: {issuer: https://idp.example.com, algorithms: [ES256, RS256]}
upstreams:
${upstreams.join('')}${endpointsText(all, SAVED_ISSUER)}policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

/** The id of the rule that grants everything, or how it begins where there are several servers. */
export const DEV_RULE = 'developers-use-what-was-offered';

type RuleInput = {
  readonly id: string;
  readonly server: string;
  readonly issuer: string;
  readonly offered: Offered;
  /** Further lines of `what`. */
  readonly more: readonly string[];
};

function ruleText({ id, server, issuer, offered: { patterns, ...kinds }, more }: RuleInput): string {
  const named = Object.entries(kinds)
    .filter(([, names]) => names.length > 0)
    .map(([kind, names]) => `      ${kind}: [${names.map(quoteYaml).join(', ')}]\n`);
  const refused = patterns.map(
    (name) => `      # No rule can name ${quoteYaml(name)} exactly: it reads as a pattern.\n`,
  );
  return `  - id: ${id}
    effect: allow
    who: {issuers: [${issuer}], groups: [${DEVELOPER.groups.join(', ')}]}
    what:
      upstreams: [${nameInYaml(server)}]
${named.join('')}${refused.join('')}      resources: ["**", "**#**"]
${more.map((line) => `      ${line}\n`).join('')}`;
}

function policyText(name: string, rules: readonly string[]): string {
  return `version: 1
policy: ${nameInYaml(name)}
rules:
${rules.join('')}`;
}
