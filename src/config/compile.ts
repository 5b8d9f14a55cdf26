// Turns a gateway file that is known to be right into settings: units resolved, paths absolute, secrets
// in place, everything frozen. Judges nothing; a value that is missing here is a bug, and throws.
// Contract §3; the result is settings.ts.

import { dirname, resolve } from 'node:path';
import { compileIssuer } from './compile-issuer.js';
import type { FilePath } from './fault.js';
import { freezeDeep } from './freeze.js';
import type {
  AdminFile,
  CredentialsFile,
  GatewayFile,
  ListenerFile,
  ProfileFile,
  UpstreamFile,
} from './gateway-file.js';
import { readKeyText } from './keys.js';
import type { ListenerTls } from './listener-certificates.js';
import { type Secrets, secretAt } from './secrets.js';
import type {
  AdminSettings,
  GatewayKey,
  InspectionProfile,
  ListenerSettings,
  PiiKind,
  Settings,
  TlsSettings,
  UpstreamCredentials,
  UpstreamSettings,
} from './settings.js';
import { readDurationMs, readSizeBytes } from './units.js';

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
          maxAgeMs: durationMs(root.listeners.data.dpop.maxAge),
        },
      },
      ops: compileListener(root.listeners.ops, input.tls.ops),
    },
    keys: (root.keys ?? []).map((_, index) => compileKey(secrets, index)),
    issuers: mapOf(root.issuers, (name, issuer) =>
      compileIssuer(name, issuer, {
        secretAt: (path) => requireSecret(secrets, path),
        durationMs,
      }),
    ),
    upstreams: mapOf(root.upstreams, (name, upstream) =>
      compileUpstream(name, upstream, publicBase, secrets),
    ),
    policiesDir,
    pinsDir: pinsDir === undefined ? resolve(policiesDir, 'pins') : resolve(folder, pinsDir),
    profiles: mapOf(root.inspection.profiles, compileProfile),
    audit: {
      sinks: root.audit.sinks.map((sink) =>
        sink.type === 'file'
          ? { type: 'file', path: resolve(folder, sink.path) }
          : { type: 'stdout', durability: sink.durability },
      ),
      onFailure: root.audit.onFailure,
      checkpointEveryMs: durationMs(root.audit.checkpoint.every),
    },
    metrics: { toolLabel: root.metrics.toolLabel, maxSeries: root.metrics.maxSeries },
    admin:
      root.admin &&
      compileAdmin(root.admin, compileListener(root.listeners.admin, input.tls.admin), secrets),
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
  publicBase: string,
  secrets: Secrets,
): UpstreamSettings {
  const at: FilePath = ['upstreams', name];
  const path = file.path ?? `/${name}`;
  const resource = publicBase + path;
  const issuers = [...(file.issuers ?? [])];
  const audiences: Record<string, readonly string[]> = Object.create(null);
  for (const issuer of issuers) {
    const mapped = Object.hasOwn(file.audiences, issuer) ? file.audiences[issuer] : undefined;
    audiences[issuer] = mapped === undefined ? [resource] : [...mapped];
  }
  const credentials = compileCredentials(file.credentials, [...at, 'credentials'], secrets);
  const own = file.pinning.credentials;
  return {
    name,
    url: new URL(file.url),
    transport: file.transport,
    path,
    resource,
    network: file.network,
    authentication: file.authentication,
    issuers,
    audiences,
    binding: file.binding,
    scopesSupported: [...file.scopesSupported],
    credentials,
    pinning: {
      mode: file.pinning.mode,
      maxAgeMs: durationMs(file.pinning.maxAge),
      onDrift: file.pinning.onDrift,
      credentials:
        own === undefined
          ? credentials
          : compileCredentials(own, [...at, 'pinning', 'credentials'], secrets),
    },
    inspect: file.inspect,
    limits: {
      requestTimeoutMs: durationMs(file.limits.requestTimeout),
      streamIdleMs: durationMs(file.limits.streamIdle),
      exchangeMaxMs: durationMs(file.limits.exchangeMax),
      keepAliveMs: durationMs(file.limits.keepAlive),
      maxRequestBytes: sizeBytes(file.limits.maxRequestBytes),
      maxResponseBytes: sizeBytes(file.limits.maxResponseBytes),
      concurrency: file.limits.concurrency,
      listTtlMs: durationMs(file.limits.listTtl),
    },
  };
}

function compileCredentials(
  file: CredentialsFile,
  at: FilePath,
  secrets: Secrets,
): UpstreamCredentials {
  switch (file.type) {
    case 'none':
      return { type: 'none' };
    case 'static':
      return {
        type: 'static',
        header: file.header.toLowerCase(),
        value: requireSecret(secrets, [...at, 'value']),
      };
  }
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

function requireSecret(secrets: Secrets, path: FilePath): string {
  const secret = secretAt(secrets, path);
  if (secret === undefined) throw new Error('a secret was not read before use');
  return secret;
}

function durationMs(text: string): number {
  const ms = readDurationMs(text);
  if (ms === undefined) throw new Error('a duration was not checked before use');
  return ms;
}

function sizeBytes(text: string): number {
  const bytes = readSizeBytes(text);
  if (bytes === undefined) throw new Error('a size was not checked before use');
  return bytes;
}
