// Turns a validated gateway file into settings. schema/declarations.ts resolves what a key says by itself: units,
// secrets, files. Here is what depends on other keys or on the place of the file: paths, audiences, issuers,
// credentials that stand for others. Checks nothing; a value that is missing here is a bug and throws.
// docs/reference/configuration.md; the result is settings.ts, frozen.

import { dirname, resolve } from 'node:path';
import { includedScopes } from './checks/gateway.js';
import { backendsOf, ownAudiences } from './checks/upstreams.js';
import { readKeyText } from './key-material.js';
import { BUILT_IN_PROFILES } from './profiles.js';
import {
  findMeanings,
  type Readable,
  type Resolved,
  resolveMeanings,
  type SecretReference,
  type SettingsOf,
} from './schema/declarations.js';
import { GATEWAY_SCHEMA, type GatewayFile, PII_KINDS, type ReadableGateway } from './schema/gateway.js';
import type { AGGREGATE_SCHEMA } from './schema/upstream.js';
import { type ListenerTls, requireSecret, type Secrets, signingOf } from './secrets.js';
import type {
  AdminSettings,
  AggregateSettings,
  ArgumentSettings,
  ClientAuthentication,
  ContentSettings,
  GatewayKey,
  InspectionProfile,
  IssuerSettings,
  ListenerSettings,
  LockSigning,
  OwnCredentials,
  Settings,
  TlsSettings,
  TokenRequestSettings,
  UpstreamCredentials,
  UpstreamSettings,
  UpstreamTls,
} from './settings.js';

/** The gateway file with units and references resolved. */
type File = Resolved<GatewayFile>;
type IssuerFile = File['issuers'][string];
type UpstreamFile = File['upstreams'][string];
type CredentialsFile = UpstreamFile['credentials'];
type AggregateFile = SettingsOf<typeof AGGREGATE_SCHEMA>;

export type CompileInput = {
  /** Absolute path of the file. */
  readonly file: string;
  /** What was read of the file, which is all of it, since it was validated. */
  readonly gateway: ReadableGateway;
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
export function compileSettings({ file, gateway, secrets, tls, hash }: CompileInput): Settings {
  const folder = dirname(file);
  const written = resolveMeanings(GATEWAY_SCHEMA, gateway, (path) => requireSecret(secrets, path));
  const { listeners, state, metrics, audit, admin } = written;
  const publicBase = written.publicUrl.replace(/\/$/, '');
  const policiesDir = resolve(folder, written.policies.dir);
  const pinsDir = written.pins?.dir;
  const own = { base: publicBase, audiences: [...ownAudiences(gateway)] };
  const { tls: _, ...data } = listeners.data;
  return freezeDeep({
    file,
    publicUrl: new URL(written.publicUrl),
    publicBase,
    listeners: {
      data: { ...data, ...compileListener(data, tls.data) },
      ops: compileListener(listeners.ops, tls.ops),
    },
    keys: (written.keys ?? []).map(compileKey),
    issuers: mapOf(written.issuers, compileIssuer),
    upstreams: mapOf(written.upstreams, (name, upstream) => compileUpstream(name, upstream, own, folder)),
    aggregates: mapOf(written.endpoints, (name, aggregate) =>
      compileAggregate(name, aggregate, publicBase, written.upstreams),
    ),
    policiesDir,
    pinsDir: pinsDir === undefined ? resolve(policiesDir, 'pins') : resolve(folder, pinsDir),
    signing: compileSigning(gateway, secrets),
    profiles: new Map([
      ...BUILT_IN_PROFILES.map((profile) => [profile.name, profile] as const),
      ...mapOf(written.inspection.profiles, compileProfile),
    ]),
    state,
    audit: {
      sinks: audit.sinks.map((sink) =>
        sink.type === 'file' ? { type: 'file', path: resolve(folder, sink.path) } : { type: 'stdout' },
      ),
      durability: audit.durability,
      onFailure: audit.onFailure,
      checkpointEveryMs: audit.checkpoint.everyMs,
      rotate: { size: 256 * 1024 * 1024, ageMs: 86_400_000 },
      retainMs: undefined,
    },
    metrics,
    admin: admin && compileAdmin(admin, compileListener(listeners.admin, tls.admin)),
    watchedFiles: watchedFilesOf(gateway, folder),
    hash,
  });
}

function mapOf<From, To>(
  entries: Readonly<Record<string, From>>,
  compile: (name: string, value: From) => To,
): ReadonlyMap<string, To> {
  return new Map(Object.entries(entries).map(([name, value]) => [name, compile(name, value)]));
}

function compileSigning(gateway: ReadableGateway, secrets: Secrets): LockSigning | undefined {
  const signing = signingOf(gateway, secrets);
  if (signing === 'incomplete') throw new Error('the key of a signer was not read before use');
  return signing;
}

/** Certificate and key files of upstreams and keys of signers, a change of which is a configuration change. */
function watchedFilesOf(gateway: ReadableGateway, folder: string): readonly string[] {
  const files = findMeanings(GATEWAY_SCHEMA, gateway).flatMap(({ meaning, value }) => {
    if (meaning === 'file-content') return [String(value)];
    const isWatched = meaning === 'tls-key' || meaning === 'signer-key';
    return isWatched ? ((value as Readable<SecretReference>).file ?? []) : [];
  });
  return [...new Set(files.map((file) => resolve(folder, file)))];
}

function compileListener(
  { host, port }: Pick<ListenerSettings, 'host' | 'port'>,
  tls: TlsSettings | undefined,
): ListenerSettings {
  return tls === undefined ? { host, port } : { host, port, tls };
}

function compileKey(text: string): GatewayKey {
  const key = readKeyText(text);
  if (key === undefined) throw new Error('a gateway key was not checked before use');
  return key;
}

function compileIssuer(name: string, file: IssuerFile): IssuerSettings {
  const { introspection, claims, scopeHierarchy, algorithms = [], ...rest } = file;
  const endpoint = introspection?.endpoint;
  return {
    ...rest,
    name,
    algorithms,
    introspection: introspection && {
      ...introspection,
      endpoint: endpoint === undefined ? undefined : new URL(endpoint),
    },
    claims: {
      client: [claims.client].flat(),
      scope: [claims.scope].flat(),
      groups: [claims.groups].flat(),
    },
    impliedScopes: compileHierarchy(scopeHierarchy),
  };
}

/** By scope, every scope that it includes. */
export function compileHierarchy(file: IssuerFile['scopeHierarchy']): IssuerSettings['impliedScopes'] {
  const hierarchy = new Map(Object.entries(file));
  // Scopes from tokens are looked up here, so the table has no prototype.
  const implied: Record<string, readonly string[]> = Object.create(null);
  for (const scope of hierarchy.keys()) implied[scope] = includedScopes(scope, hierarchy);
  return implied;
}

function compileUpstream(
  name: string,
  file: UpstreamFile,
  own: TokenRequestSettings['own'],
  folder: string,
): UpstreamSettings {
  const { url, socket, credentials, tls, identity, pinning, limits, content, ...rest } = file;
  const path = file.path ?? `/${name}`;
  const resource = own.base + path;
  return {
    ...rest,
    ...compileIssuersAndAudiences(file, resource),
    name,
    url: new URL(url),
    socket: socket === undefined ? undefined : resolve(folder, socket),
    path,
    resource,
    credentials: compileCredentials(credentials, url, own),
    tls: compileTls(tls),
    identity: identity && { ...identity, audience: url },
    pinning: {
      ...pinning,
      credentials: compileOwnCredentials(pinning.credentials ?? credentials, url, own),
    },
    arguments: compileArguments(file.arguments),
    limits: {
      ...limits,
      requestTimeoutMs: limits.requestTimeoutMs ?? CALL_TIMEOUT_MS,
      handshakeTimeoutMs: limits.requestTimeoutMs ?? HANDSHAKE_TIMEOUT_MS,
      concurrencyPerCaller: limits.concurrencyPerCaller ?? callerQuotaOf(file),
    },
    content: compileContent(content),
  };
}

/** Tools take their time, and clients wait for a minute or longer; what the protocol itself needs is quick. */
const CALL_TIMEOUT_MS = 120_000;
const HANDSHAKE_TIMEOUT_MS = 30_000;

function compileContent({ kind, tools }: UpstreamFile['content']): ContentSettings {
  const compiled = Object.entries(tools).map(([name, written]) => {
    const chosen = typeof written === 'string' ? { kind: written } : written;
    const { digest } = chosen;
    return [name, { kind: chosen.kind, digests: digest === undefined ? undefined : [digest].flat() }] as const;
  });
  return { kind, tools: new Map(compiled) };
}

function compileArguments(written: UpstreamFile['arguments']): ArgumentSettings {
  if (typeof written === 'string') return { undeclared: written, coerce: false, drop: [] };
  const { undeclared, coerce, drop } = written;
  return { undeclared: undeclared === 'refuse' ? 'declared' : undeclared, coerce, drop };
}

/** Without authentication all callers are one, so a quota would only make the upstream smaller. */
function callerQuotaOf({ authentication, limits: { concurrency } }: UpstreamFile): number {
  return authentication === 'none' ? concurrency : Math.ceil(concurrency / 2);
}

/** The accepted issuers of a resource (upstream or aggregate), and the accepted audiences of each. */
function compileIssuersAndAudiences(
  file: Pick<UpstreamFile, 'issuers' | 'audiences'>,
  resource: string,
): Pick<UpstreamSettings, 'issuers' | 'audiences'> {
  const issuers = file.issuers ?? [];
  const audiences: Record<string, readonly string[]> = Object.create(null);
  for (const issuer of issuers) {
    const mapped = Object.hasOwn(file.audiences, issuer) ? file.audiences[issuer] : undefined;
    audiences[issuer] = mapped ?? [resource];
  }
  return { issuers, audiences };
}

/** The credentials sent with callers' messages. */
function compileCredentials(file: CredentialsFile, url: string, own: TokenRequestSettings['own']): UpstreamCredentials {
  if (file.type !== 'token-exchange') return compileOwnCredentials(file, url, own);
  const { actorToken, actorTokenType } = file;
  const actor = actorToken === undefined ? undefined : { token: actorToken, type: actorTokenType };
  return { type: 'token-exchange', request: compileRequest(file, url, own), actor };
}

/** Credentials that need no caller. */
function compileOwnCredentials(file: CredentialsFile, url: string, own: TokenRequestSettings['own']): OwnCredentials {
  switch (file.type) {
    case 'none':
    case 'static':
      return file;
    case 'client-credentials':
      return { type: 'client-credentials', request: compileRequest(file, url, own) };
    case 'token-exchange':
      throw new Error('the credentials of pinning were not checked before use');
  }
}

type TokenRequestFile = Extract<CredentialsFile, { readonly clientId: string }>;

function compileRequest(file: TokenRequestFile, url: string, own: TokenRequestSettings['own']): TokenRequestSettings {
  const { issuer, tokenEndpoint, network, plaintext, clientId, scopes, audience } = file;
  return {
    server:
      issuer === undefined ? { kind: 'token-endpoint', url: tokenEndpoint ?? '' } : { kind: 'issuer', url: issuer },
    network,
    plaintext,
    clientId,
    authentication: compileAuthentication(file),
    scopes,
    resource: file.resource ?? (audience === undefined ? url : undefined),
    audience,
    own,
  };
}

function compileAuthentication(file: TokenRequestFile): ClientAuthentication {
  const { privateKey, clientSecret, clientAuthentication } = file;
  if (privateKey !== undefined) return { method: 'private_key_jwt', key: privateKey };
  if (clientSecret === undefined) throw new Error('a secret was not read before use');
  return { method: clientAuthentication, secret: clientSecret };
}

/** The TLS settings of connections to the upstream. */
function compileTls({ ca, cert, key, serverName, pins = [] }: UpstreamFile['tls']): UpstreamTls {
  return {
    ca,
    client: cert === undefined || key === undefined ? undefined : { cert, key },
    serverName,
    pins: pins.map((pin) => pin.slice('sha256:'.length)),
  };
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

/** The settings of an aggregate. Its checks have ensured that its backends are compatible. */
function compileAggregate(name: string, file: AggregateFile, base: string, all: File['upstreams']): AggregateSettings {
  const path = file.path ?? `/${name}`;
  const resource = base + path;
  const backends = backendsOf(file);
  const upstreams = backends.flatMap(({ upstream }) => all[upstream] ?? []);
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

function compileProfile(name: string, { request, result }: File['inspection']['profiles'][string]): InspectionProfile {
  const { pii, ...rest } = result;
  const { action, kinds = PII_KINDS } = typeof pii === 'string' ? { action: pii } : pii;
  return { name, request, result: { ...rest, pii: { action, kinds } } };
}

function compileAdmin(
  { publicUrl, issuers, breakGlass }: NonNullable<File['admin']>,
  listener: ListenerSettings,
): AdminSettings {
  const compiled: Record<string, AdminSettings['issuers'][string]> = Object.create(null);
  for (const [name, { audience, roles, login }] of Object.entries(issuers ?? {})) {
    const { viewer = [], reviewer = [], admin = [] } = roles;
    compiled[name] = { audience, roles: { viewer, reviewer, admin }, login };
  }
  return {
    listener,
    publicUrl: publicUrl === undefined ? undefined : new URL(publicUrl),
    issuers: compiled,
    breakGlassToken: breakGlass?.token,
  };
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
