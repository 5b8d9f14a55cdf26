// Turns a validated gateway file into settings: units resolved, paths absolute, secrets and certificates
// inserted, audiences filled in, everything frozen. Checks nothing; a value that is missing here is a bug and
// throws. docs/contract.md §3; the result is settings.ts.

import { dirname, resolve } from 'node:path';
import { includedScopes } from './checks/issuers.js';
import { ownAudiences } from './checks/resources.js';
import { defaultPrefix } from './checks/upstreams.js';
import type { FilePath } from './diagnostics.js';
import type {
  AdminFile,
  AggregateFile,
  CredentialsFile,
  GatewayFile,
  IntrospectionFile,
  IssuerFile,
  ListenerFile,
  OwnCredentialsFile,
  ProfileFile,
  StateFile,
  TokenRequestFile,
  UpstreamFile,
} from './gateway-file.js';
import { readKeyText } from './keys.js';
import { requireSecret, type Secrets, secretAt } from './secrets.js';
import type {
  AdminSettings,
  AggregateSettings,
  ClientAuthentication,
  GatewayKey,
  InspectionProfile,
  IntrospectionSettings,
  IssuerSettings,
  ListenerSettings,
  OwnCredentials,
  PiiKind,
  Settings,
  StateSettings,
  TlsSettings,
  TokenRequestSettings,
  UpstreamCredentials,
  UpstreamIdentity,
  UpstreamSettings,
  UpstreamTls,
} from './settings.js';
import type { ListenerTls } from './tls.js';
import { readSizeBytes, requireDurationMs } from './units.js';

/** The path of one credential in the file, and what it is resolved with. */
type CredentialContext = {
  readonly at: FilePath;
  readonly secrets: Secrets;
  /** The upstream's `url`, as written. */
  readonly url: string;
  /** The gateway's own audiences, which no requested token may carry. */
  readonly own: TokenRequestSettings['own'];
};

/** The credentials sent with callers' messages. */
function compileCredentials(
  file: CredentialsFile,
  context: CredentialContext,
): UpstreamCredentials {
  if (file.type !== 'token-exchange') return compileOwnCredentials(file, context);
  const { at, secrets } = context;
  const token = secretAt(secrets, [...at, 'actorToken']);
  const actor = token === undefined ? undefined : { token, type: file.actorTokenType };
  return { type: 'token-exchange', request: compileRequest(file, context), actor };
}

/** Credentials that need no caller. */
function compileOwnCredentials(
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

/** The TLS settings of connections to the upstream. */
function compileTls({ tls }: UpstreamFile, upstream: string, secrets: Secrets): UpstreamTls {
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

/** The settings of the assertion that names the caller to the upstream. */
function compileIdentity({ identity, url }: UpstreamFile): UpstreamIdentity | undefined {
  if (identity === undefined) return undefined;
  const ttlMs = requireDurationMs(identity.ttl);
  return { header: identity.header.toLowerCase(), ttlMs, audience: url };
}

/** Certificate and key files besides the gateway file, a change of which is a configuration change. */
function watchedFilesOf(root: GatewayFile, folder: string): readonly string[] {
  const files = Object.values(root.upstreams).flatMap(({ tls: { ca, cert, key } }) => [
    ...(ca === undefined ? [] : [ca]),
    ...(cert === undefined ? [] : [cert]),
    ...(key !== undefined && 'file' in key ? [key.file] : []),
  ]);
  return [...new Set(files.map((file) => resolve(folder, file)))];
}

type Binding = UpstreamSettings['binding'];

/**
 * The binding that a token for an aggregate needs so that every backend accepts it; `undefined` if none
 * does. The aggregate has to require it, since nothing else enforces the bindings of its backends.
 */
function strictestBinding(bindings: readonly Binding[]): Binding | undefined {
  const demanded = new Set(bindings.filter((binding) => binding !== 'none'));
  if (demanded.has('dpop') && demanded.has('mtls')) return undefined;
  if (demanded.has('dpop')) return 'dpop';
  if (demanded.has('mtls')) return 'mtls';
  return demanded.has('any') ? 'any' : 'none';
}

/** The accepted issuers of a resource (upstream or aggregate), and the accepted audiences of each. */
function compileIssuersAndAudiences(
  file: Pick<UpstreamFile, 'issuers' | 'audiences'>,
  resource: string,
): Pick<UpstreamSettings, 'issuers' | 'audiences'> {
  const issuers = [...(file.issuers ?? [])];
  const audiences: Record<string, readonly string[]> = Object.create(null);
  for (const issuer of issuers) {
    const mapped = Object.hasOwn(file.audiences, issuer) ? file.audiences[issuer] : undefined;
    audiences[issuer] = mapped === undefined ? [resource] : [...mapped];
  }
  return { issuers, audiences };
}

/** The settings of an aggregate. Its checks have ensured that its backends are compatible. */
function compileAggregate(name: string, file: AggregateFile, root: GatewayFile): AggregateSettings {
  const path = file.path ?? `/${name}`;
  const resource = root.publicUrl.replace(/\/$/, '') + path;
  const backends = Object.entries(file.upstreams).map(([upstream, { prefix }]) => ({
    upstream,
    prefix: prefix ?? defaultPrefix(upstream),
  }));
  const upstreams = backends.flatMap(({ upstream }) => root.upstreams[upstream] ?? []);
  const binding = strictestBinding(upstreams.map((upstream) => upstream.binding));
  if (binding === undefined) throw new Error('an endpoint was not checked before use');
  const scopes = upstreams.flatMap((upstream) => upstream.scopesSupported);
  return {
    name,
    path,
    resource,
    authentication: file.authentication,
    ...compileIssuersAndAudiences(file, resource),
    binding,
    scopesSupported: [...new Set(scopes)],
    backends,
  };
}

/** What resolving an issuer needs from the rest of the file. */
type IssuerContext = {
  readonly secretAt: (path: FilePath) => string;
  readonly durationMs: (text: string) => number;
};

/**
 * The settings of one issuer.
 *
 * @throws Error if a secret or a duration was not checked before.
 */
function compileIssuer(name: string, file: IssuerFile, context: IssuerContext): IssuerSettings {
  const { client, scope, groups } = file.claims;
  const { introspection } = file;
  return {
    name,
    issuer: file.issuer,
    network: file.network,
    algorithms: [...(file.algorithms ?? [])],
    tokenType: file.tokenType,
    maxLifetimeMs: context.durationMs(file.maxLifetime),
    keysMaxAgeMs: context.durationMs(file.keysMaxAge),
    introspection: introspection && compileIntrospection(name, introspection, context),
    claims: { client: [client].flat(), scope: [scope].flat(), groups: [groups].flat() },
    impliedScopes: compileHierarchy(file.scopeHierarchy),
  };
}

function compileIntrospection(
  issuer: string,
  file: IntrospectionFile,
  { secretAt, durationMs }: IssuerContext,
): IntrospectionSettings {
  return {
    clientId: file.clientId,
    clientSecret: secretAt(['issuers', issuer, 'introspection', 'clientSecret']),
    authentication: file.authentication,
    endpoint: file.endpoint === undefined ? undefined : new URL(file.endpoint),
    cacheTtlMs: durationMs(file.cacheTtl),
    maxPerSecond: file.maxPerSecond,
  };
}

function compileHierarchy(file: IssuerFile['scopeHierarchy']): IssuerSettings['impliedScopes'] {
  const hierarchy = new Map(Object.entries(file));
  // Scopes from tokens are looked up here, so the table has no prototype.
  const implied: Record<string, readonly string[]> = Object.create(null);
  for (const scope of hierarchy.keys()) implied[scope] = includedScopes(scope, hierarchy);
  return implied;
}

/**
 * Freezes every plain object and list in a value, so that no code can change the configuration. Maps, URLs
 * and byte arrays are only typed as read-only; the values of maps are frozen.
 */
function freezeDeep<T>(value: T): T {
  if (value instanceof Map) {
    for (const element of value.values()) freezeDeep(element);
    return value;
  }
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value;
  for (const element of Object.values(value)) freezeDeep(element);
  return Object.freeze(value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Array.isArray(value);
}

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
 * The settings of a gateway file.
 *
 * @throws Error if a secret or a quantity is missing because the input was not checked before.
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
    ...compileIssuersAndAudiences(file, resource),
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
      concurrencyPerCaller: file.limits.concurrencyPerCaller ?? callerQuotaOf(file),
      listTtlMs: requireDurationMs(file.limits.listTtl),
    },
  };
}

/** Without authentication all callers are one, so a quota would only make the upstream smaller. */
function callerQuotaOf({ authentication, limits: { concurrency } }: UpstreamFile): number {
  return authentication === 'none' ? concurrency : Math.ceil(concurrency / 2);
}

/** Defaults to the upstream's own credentials, unless those need a caller. */
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
