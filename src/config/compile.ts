// Turns a gateway file that is known to be right into settings: units resolved, paths absolute, secrets
// in place, everything frozen. Judges nothing; a value that is missing here is a bug, and throws.
// Contract §3; the result is settings.ts.

import { dirname, resolve } from 'node:path';
import { ownAudiences } from './checks-resources.js';
import {
  type CredentialContext,
  compileCredentials,
  compileIdentity,
  compileOwnCredentials,
  compileTls,
  watchedFilesOf,
} from './compile-credentials.js';
import { compileAggregate, compileVouchers } from './compile-endpoint.js';
import { compileIssuer } from './compile-issuer.js';
import type { FilePath } from './fault.js';
import { freezeDeep } from './freeze.js';
import type {
  AdminFile,
  GatewayFile,
  ListenerFile,
  ProfileFile,
  StateFile,
  UpstreamFile,
} from './gateway-file.js';
import { readKeyText } from './keys.js';
import type { ListenerTls } from './listener-certificates.js';
import { requireSecret, type Secrets } from './secrets.js';
import type {
  AdminSettings,
  GatewayKey,
  InspectionProfile,
  ListenerSettings,
  OwnCredentials,
  PiiKind,
  Settings,
  StateSettings,
  TlsSettings,
  TokenRequestSettings,
  UpstreamSettings,
} from './settings.js';
import { readSizeBytes, requireDurationMs } from './units.js';

export type CompileInput = {
  /** Absolute path of the file. */
  readonly file: string;
  readonly root: GatewayFile;
  readonly secrets: Secrets;
  readonly tls: ListenerTls;
  /** SHA-256 of the file, lower-case hex. */
  readonly hash: string;
};

/**
 * Settings of a gateway file.
 *
 * @throws Error where the input was not checked before: a secret or a quantity is missing.
 */
export function compileSettings(input: CompileInput): Settings {
  const { root, file, secrets } = input;
  const folder = dirname(file);
  const publicUrl = new URL(root.publicUrl);
  const publicBase = root.publicUrl.replace(/\/$/, '');
  const policiesDir = resolve(folder, root.policies.dir);
  const pinsDir = root.pins?.dir;
  const audiences = [...ownAudiences(root)];
  return freezeDeep({
    file,
    publicUrl,
    publicBase,
    listeners: {
      data: {
        ...compileListener(root.listeners.data, input.tls.data),
        allowedOrigins: [...root.listeners.data.allowedOrigins],
        trustedProxies: [...root.listeners.data.trustedProxies],
        dpop: {
          nonce: root.listeners.data.dpop.nonce,
          maxAgeMs: requireDurationMs(root.listeners.data.dpop.maxAge),
        },
      },
      ops: compileListener(root.listeners.ops, input.tls.ops),
    },
    keys: (root.keys ?? []).map((_, index) => compileKey(secrets, index)),
    issuers: mapOf(root.issuers, (name, issuer) =>
      compileIssuer(name, issuer, {
        secretAt: (path) => requireSecret(secrets, path),
        durationMs: requireDurationMs,
      }),
    ),
    upstreams: mapOf(root.upstreams, (name, upstream) =>
      compileUpstream(name, upstream, { base: publicBase, audiences }, secrets),
    ),
    aggregates: mapOf(root.endpoints, (name, aggregate) => compileAggregate(name, aggregate, root)),
    policiesDir,
    pinsDir: pinsDir === undefined ? resolve(policiesDir, 'pins') : resolve(folder, pinsDir),
    profiles: mapOf(root.inspection.profiles, compileProfile),
    state: compileState(root.state, secrets),
    audit: {
      sinks: root.audit.sinks.map((sink) =>
        sink.type === 'file'
          ? { type: 'file', path: resolve(folder, sink.path) }
          : { type: 'stdout' },
      ),
      onFailure: root.audit.onFailure,
      checkpointEveryMs: requireDurationMs(root.audit.checkpoint.every),
    },
    metrics: { toolLabel: root.metrics.toolLabel, maxSeries: root.metrics.maxSeries },
    admin:
      root.admin &&
      compileAdmin(root.admin, compileListener(root.listeners.admin, input.tls.admin), secrets),
    watchedFiles: watchedFilesOf(root, folder),
    hash: input.hash,
  });
}

function mapOf<From, To>(
  entries: Readonly<Record<string, From>>,
  compile: (name: string, value: From) => To,
): ReadonlyMap<string, To> {
  return new Map(Object.entries(entries).map(([name, value]) => [name, compile(name, value)]));
}

function compileListener(
  { host, port }: ListenerFile,
  tls: TlsSettings | undefined,
): ListenerSettings {
  return tls === undefined ? { host, port } : { host, port, tls };
}

function compileKey(secrets: Secrets, index: number): GatewayKey {
  const key = readKeyText(requireSecret(secrets, ['keys', index]));
  if (key === undefined) throw new Error('a gateway key was not checked before use');
  return key;
}

function compileUpstream(
  name: string,
  file: UpstreamFile,
  own: TokenRequestSettings['own'],
  secrets: Secrets,
): UpstreamSettings {
  const at: FilePath = ['upstreams', name];
  const path = file.path ?? `/${name}`;
  const resource = own.base + path;
  const credentialContext = { secrets, url: file.url, own };
  return {
    name,
    url: new URL(file.url),
    transport: file.transport,
    path,
    resource,
    network: file.network,
    authentication: file.authentication,
    ...compileVouchers(file, resource),
    binding: file.binding,
    scopesSupported: [...file.scopesSupported],
    credentials: compileCredentials(file.credentials, {
      ...credentialContext,
      at: [...at, 'credentials'],
    }),
    apps: file.apps,
    tls: compileTls(file, name, secrets),
    identity: compileIdentity(file),
    pinning: {
      mode: file.pinning.mode,
      maxAgeMs: requireDurationMs(file.pinning.maxAge),
      onDrift: file.pinning.onDrift,
      credentials: compilePinningCredentials(file, at, credentialContext),
    },
    inspect: file.inspect,
    limits: {
      requestTimeoutMs: requireDurationMs(file.limits.requestTimeout),
      streamIdleMs: requireDurationMs(file.limits.streamIdle),
      exchangeMaxMs: requireDurationMs(file.limits.exchangeMax),
      keepAliveMs: requireDurationMs(file.limits.keepAlive),
      maxRequestBytes: sizeBytes(file.limits.maxRequestBytes),
      maxResponseBytes: sizeBytes(file.limits.maxResponseBytes),
      maxStreamBytesPerMinute: sizeBytes(file.limits.maxStreamBytesPerMinute),
      maxListingBytesPerMinute: sizeBytes(file.limits.maxListingBytesPerMinute),
      maxValues: file.limits.maxValues,
      concurrency: file.limits.concurrency,
      listTtlMs: requireDurationMs(file.limits.listTtl),
    },
  };
}

/** The file may leave them out where the upstream's own need no caller. */
function compilePinningCredentials(
  { credentials, pinning }: UpstreamFile,
  at: FilePath,
  context: Omit<CredentialContext, 'at'>,
): OwnCredentials {
  if (pinning.credentials !== undefined) {
    const own = { ...context, at: [...at, 'pinning', 'credentials'] };
    return compileOwnCredentials(pinning.credentials, own);
  }
  if (credentials.type === 'token-exchange')
    throw new Error('the credentials of pinning were not checked before use');
  return compileOwnCredentials(credentials, { ...context, at: [...at, 'credentials'] });
}

const ALL_PII_KINDS: readonly PiiKind[] = ['card', 'iban', 'ssn'];

function compileProfile(name: string, file: ProfileFile): InspectionProfile {
  const { pii, ...rest } = file.result;
  const { action, kinds = ALL_PII_KINDS } = typeof pii === 'string' ? { action: pii } : pii;
  return {
    name,
    request: { ...file.request },
    result: { ...rest, pii: { action, kinds: [...kinds] } },
  };
}

function compileState(file: StateFile, secrets: Secrets): StateSettings {
  switch (file.type) {
    case 'memory':
      return { type: 'memory' };
    case 'redis':
      return {
        type: 'redis',
        url: requireSecret(secrets, ['state', 'url']),
        prefix: file.prefix,
        commandTimeoutMs: requireDurationMs(file.commandTimeout),
        maxAgeMs: requireDurationMs(file.maxAge),
      };
  }
}

function compileAdmin(
  file: AdminFile,
  listener: ListenerSettings,
  secrets: Secrets,
): AdminSettings {
  const issuers: Record<string, AdminSettings['issuers'][string]> = Object.create(null);
  for (const [name, { audience, roles }] of Object.entries(file.issuers ?? {})) {
    issuers[name] = {
      audience,
      roles: {
        viewer: [...(roles.viewer ?? [])],
        reviewer: [...(roles.reviewer ?? [])],
        admin: [...(roles.admin ?? [])],
      },
    };
  }
  return {
    listener,
    issuers,
    breakGlassToken: file.breakGlass && requireSecret(secrets, ['admin', 'breakGlass', 'token']),
  };
}

function sizeBytes(text: string): number {
  const bytes = readSizeBytes(text);
  if (bytes === undefined) throw new Error('a size was not checked before use');
  return bytes;
}
