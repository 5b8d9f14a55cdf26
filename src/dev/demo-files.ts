// Writes the configuration and policies of `dev --demo` into a given folder, where the gateway reads them like any
// other. The gateway's own code fetches the pins. docs/contract.md §1, §3 and §4.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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

/** A YAML double-quoted scalar: every JSON string is one. */
function quote(value: string): string {
  return JSON.stringify(value);
}

function adminSection(input: DemoFilesInput): string {
  if (input.adminToken === undefined) return '';
  return '\nadmin:\n  breakGlass: {token: {file: ./admin-token}}\n';
}

function gatewayText(input: DemoFilesInput): string {
  const { data, ops, admin } = input.ports;
  return `# The demo of Sallyport: one upstream, one issuer, everything on loopback.
version: 1
publicUrl: ${quote(input.publicUrl)}

listeners:
  data: {host: 127.0.0.1, port: ${data}}
  ops: {host: 127.0.0.1, port: ${ops}}
  admin: {host: 127.0.0.1, port: ${admin}}

issuers:
  ${DESK.issuer}:
    issuer: ${quote(input.issuer)}
    network: loopback
    algorithms: [ES256]

upstreams:
  ${DESK.name}:
    url: ${quote(input.upstreamUrl)}
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

const POLICY = `# Who may do what at the help desk. Nothing is allowed that no rule allows.
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
  await writeFile(configFile, gatewayText(input));
  await writeFile(join(policiesDir, `${DESK.name}.policy.yaml`), POLICY);
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
