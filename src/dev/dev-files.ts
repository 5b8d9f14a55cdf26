// The configuration of `dev --upstream`: one upstream, the development issuer, one developer who may use
// what was offered at the start. Written where the gateway reads it like any other. Contract §1 and §3.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The caller that `dev` mints tokens for, and the upstream's name and path. */
export const DEVELOPER = { subject: 'developer', groups: ['developers'], scopes: [] } as const;
export const DEV_UPSTREAM = { name: 'mcp', path: '/mcp' } as const;
/** How long the pasted token lives: a working day, which the configuration then has to allow. */
export const DEV_TOKEN_HOURS = 8;

export type DevFilesInput = {
  readonly publicUrl: string;
  readonly issuer: string;
  readonly upstreamUrl: string;
  /** Where the upstream's name may resolve. */
  readonly network: 'public' | 'private' | 'loopback';
  readonly ports: { readonly data: number; readonly ops: number; readonly admin: number };
  readonly adminToken: string;
};

const OWNER_ONLY = 0o600;

/** Writes the files; resolves with the path of the gateway file and the endpoint. */
export async function writeDevFiles(
  dir: string,
  input: DevFilesInput,
): Promise<{ readonly configFile: string; readonly resource: string }> {
  const configFile = join(dir, 'gateway.yaml');
  await mkdir(join(dir, 'policies', 'pins'), { recursive: true });
  await writeFile(join(dir, 'admin-token'), input.adminToken, { mode: OWNER_ONLY });
  await writeFile(join(dir, 'policies', 'dev.policy.yaml'), POLICY);
  await writeFile(configFile, gatewayText(input));
  return { configFile, resource: `${input.publicUrl}${DEV_UPSTREAM.path}` };
}

function gatewayText({ publicUrl, issuer, upstreamUrl, network, ports }: DevFilesInput): string {
  return `version: 1
publicUrl: ${JSON.stringify(publicUrl)}
listeners:
  data: {host: 127.0.0.1, port: ${ports.data}}
  ops: {host: 127.0.0.1, port: ${ports.ops}}
  admin: {host: 127.0.0.1, port: ${ports.admin}}
issuers:
  dev: {issuer: ${JSON.stringify(issuer)}, network: loopback, algorithms: [ES256], maxLifetime: ${DEV_TOKEN_HOURS}h}
upstreams:
  ${DEV_UPSTREAM.name}:
    url: ${JSON.stringify(upstreamUrl)}
    path: ${DEV_UPSTREAM.path}
    network: ${network}
    issuers: [dev]
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
admin:
  breakGlass: {token: {file: ./admin-token}}
`;
}

const POLICY = `version: 1
policy: dev
rules:
  - id: developers-use-what-is-pinned
    effect: allow
    who: {issuers: [dev], groups: [developers]}
    what: {upstreams: ["*"], tools: ["*"], prompts: ["*"], resources: ["**"]}
`;
