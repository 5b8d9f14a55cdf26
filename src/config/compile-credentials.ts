// Turns what an upstream is shown, and how it is known, into settings: secrets and certificates in place,
// audiences named. Judges nothing; a value that is missing here is a bug, and throws.
// Contract §3; the result is settings.ts.

import { resolve } from 'node:path';
import type { FilePath } from './fault.js';
import type {
  CredentialsFile,
  GatewayFile,
  OwnCredentialsFile,
  TokenRequestFile,
  UpstreamFile,
} from './gateway-file.js';
import { requireSecret, type Secrets, secretAt } from './secrets.js';
import type {
  ClientAuthentication,
  OwnCredentials,
  TokenRequestSettings,
  UpstreamCredentials,
  UpstreamIdentity,
  UpstreamTls,
} from './settings.js';
import { requireDurationMs } from './units.js';

/** The place of one upstream, and what its credentials are compiled against. */
export type CredentialContext = {
  readonly at: FilePath;
  readonly secrets: Secrets;
  /** The upstream's `url`, as written. */
  readonly url: string;
  /** What tokens for the gateway itself carry as audience. */
  readonly own: TokenRequestSettings['own'];
};

/** The credentials that leave with callers' messages. */
export function compileCredentials(
  file: CredentialsFile,
  context: CredentialContext,
): UpstreamCredentials {
  if (file.type !== 'token-exchange') return compileOwnCredentials(file, context);
  const { at, secrets } = context;
  const token = secretAt(secrets, [...at, 'actorToken']);
  const actor = token === undefined ? undefined : { token, type: file.actorTokenType };
  return { type: 'token-exchange', request: compileRequest(file, context), actor };
}

/** The credentials of the gateway itself. */
export function compileOwnCredentials(
  file: OwnCredentialsFile,
  context: CredentialContext,
): OwnCredentials {
  switch (file.type) {
    case 'none':
      return { type: 'none' };
    case 'static':
      return {
        type: 'static',
        header: file.header.toLowerCase(),
        value: requireSecret(context.secrets, [...context.at, 'value']),
      };
    case 'client-credentials':
      return { type: 'client-credentials', request: compileRequest(file, context) };
  }
}

function compileRequest(file: TokenRequestFile, context: CredentialContext): TokenRequestSettings {
  const { issuer, tokenEndpoint, audience } = file;
  return {
    server:
      issuer === undefined
        ? { kind: 'token-endpoint', url: tokenEndpoint ?? '' }
        : { kind: 'issuer', url: issuer },
    network: file.network,
    clientId: file.clientId,
    authentication: compileAuthentication(file, context),
    scopes: [...file.scopes],
    resource: file.resource ?? (audience === undefined ? context.url : undefined),
    audience,
    own: context.own,
  };
}

function compileAuthentication(
  file: TokenRequestFile,
  { at, secrets }: CredentialContext,
): ClientAuthentication {
  const key = secretAt(secrets, [...at, 'privateKey']);
  if (key !== undefined) return { method: 'private_key_jwt', key };
  const secret = requireSecret(secrets, [...at, 'clientSecret']);
  return { method: file.clientAuthentication, secret };
}

/** How the upstream's connections are made. */
export function compileTls({ tls }: UpstreamFile, upstream: string, secrets: Secrets): UpstreamTls {
  const at: FilePath = ['upstreams', upstream, 'tls'];
  const cert = secretAt(secrets, [...at, 'cert']);
  const key = secretAt(secrets, [...at, 'key']);
  return {
    ca: secretAt(secrets, [...at, 'ca']),
    client: cert === undefined || key === undefined ? undefined : { cert, key },
    serverName: tls.serverName,
    pins: (tls.pins ?? []).map((pin) => pin.slice('sha256:'.length)),
  };
}

/** How the upstream is told who calls. */
export function compileIdentity({ identity, url }: UpstreamFile): UpstreamIdentity | undefined {
  if (identity === undefined) return undefined;
  const ttlMs = requireDurationMs(identity.ttl);
  return { header: identity.header.toLowerCase(), ttlMs, audience: url };
}

/** Files beside the gateway file whose change is a change of the configuration. */
export function watchedFilesOf(root: GatewayFile, folder: string): readonly string[] {
  const files = Object.values(root.upstreams).flatMap(({ tls: { ca, cert, key } }) => [
    ...(ca === undefined ? [] : [ca]),
    ...(cert === undefined ? [] : [cert]),
    ...(key !== undefined && 'file' in key ? [key.file] : []),
  ]);
  return [...new Set(files.map((file) => resolve(folder, file)))];
}
