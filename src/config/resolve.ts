// Turns a validated gateway file into settings. schema/declarations.ts resolves what a key says by itself: units,
// secrets, files. Here is what depends on other keys or on the place of the file: paths, audiences, issuers,
// credentials that stand for others. Checks nothing; a value that is missing here is a bug and throws.
// docs/reference/configuration.md; the result is settings.ts, frozen.

import { dirname, resolve } from 'node:path';
import { includedScopes } from './checks/gateway.js';
import { backendsOf, ownAudiences } from './checks/upstreams.js';
import { readKeyText, readWebhookSecret } from './key-material.js';
import { BUILT_IN_PROFILES } from './profiles.js';
import { memberOf } from './schema/declarations.js';
import { type GatewayConfig, PII_KINDS } from './schema/gateway.js';
import type { ListenerTls } from './secrets.js';
import type {
  AdminSettings,
  AggregateSettings,
  ArgumentSettings,
  AuditSettings,
  ClientAuthentication,
  ContentSettings,
  DeliverySettings,
  GatewayKey,
  InspectionProfile,
  IssuerSettings,
  ListenerSettings,
  LockSigning,
  OwnCredentials,
  Settings,
  TlsSettings,
  TokenRequestSettings,
  TracingSettings,
  UpstreamCredentials,
  UpstreamSettings,
  UpstreamTls,
  WebhookSettings,
} from './settings.js';

type IssuerFile = GatewayConfig['issuers'][string];
type UpstreamFile = GatewayConfig['upstreams'][string];
type CredentialsFile = UpstreamFile['credentials'];
type AggregateFile = GatewayConfig['endpoints'][string];

export type CompileInput = {
  /** Absolute path of the file. */
  readonly file: string;
  /** Checked, with everything that it refers to. */
  readonly gateway: GatewayConfig;
  readonly tls: ListenerTls;
  readonly signing: LockSigning | undefined;
  /** Absolute paths. */
  readonly watchedFiles: readonly string[];
  /** SHA-256 of the file, lower-case hex. */
  readonly hash: string;
};

/** The folders of policies and of lock files, as absolute paths. */
export function policyFoldersOf(
  file: string,
  { policies, pins }: GatewayConfig,
): Pick<Settings, 'policiesDir' | 'pinsDir'> {
  const folder = dirname(file);
  const policiesDir = resolve(folder, policies.dir);
  return { policiesDir, pinsDir: pins?.dir === undefined ? resolve(policiesDir, 'pins') : resolve(folder, pins.dir) };
}

/**
 * The settings of a gateway file.
 *
 * @throws Error if something is missing because the input was not checked before.
 */
export function compileSettings({ file, gateway, tls, signing, watchedFiles, hash }: CompileInput): Settings {
  const folder = dirname(file);
  const { listeners, state, startup, shutdown, metrics, audit, admin } = gateway;
  const publicBase = gateway.publicUrl.replace(/\/$/, '');
  const own = { base: publicBase, audiences: [...ownAudiences(gateway)] };
  const { tls: _, ...data } = listeners.data;
  return freezeDeep({
    file,
    publicUrl: new URL(gateway.publicUrl),
    publicBase,
    listeners: {
      data: { ...data, ...compileListener(data, tls.data) },
      ops: compileListener(listeners.ops, tls.ops),
    },
    keys: (gateway.keys ?? []).map(compileKey),
    issuers: mapOf(gateway.issuers, compileIssuer),
    upstreams: mapOf(gateway.upstreams, (name, upstream) => compileUpstream(name, upstream, own, folder)),
    aggregates: mapOf(gateway.endpoints, (name, aggregate) =>
      compileAggregate(name, aggregate, publicBase, gateway.upstreams),
    ),
    ...policyFoldersOf(file, gateway),
    signing,
    profiles: new Map([
      ...BUILT_IN_PROFILES.map((profile) => [profile.name, profile] as const),
      ...mapOf(gateway.inspection.profiles, compileProfile),
    ]),
    state,
    startup,
    shutdown,
    audit: {
      sinks: audit.sinks.flatMap((sink): AuditSettings['sinks'] => {
        if (sink.type === 'file') return [{ type: sink.type, path: resolve(folder, sink.path) }];
        return sink.type === 'stdout' ? [{ type: sink.type }] : [];
      }),
      deliveries: audit.sinks.flatMap((sink) =>
        sink.type === 'file' || sink.type === 'stdout' ? [] : [compileDelivery(sink)],
      ),
      durability: audit.durability,
      onFailure: audit.onFailure,
      checkpointEveryMs: audit.checkpoint.everyMs,
      rotate: audit.rotate,
      retainMs: audit.retainMs,
      minFree: audit.minFree,
    },
    metrics,
    admin: admin && compileAdmin(admin, compileListener(listeners.admin, tls.admin)),
    webhooks: Object.entries(gateway.approvals.webhooks).map(([name, webhook]) => compileWebhook(name, webhook)),
    tracing: gateway.tracing && compileTracing(gateway.tracing),
    watchedFiles,
    hash,
  });
}

function mapOf<From, To>(
  entries: Readonly<Record<string, From>>,
  compile: (name: string, value: From) => To,
): ReadonlyMap<string, To> {
  return new Map(Object.entries(entries).map(([name, value]) => [name, compile(name, value)]));
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

export function compileArguments(written: UpstreamFile['arguments']): ArgumentSettings {
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
    audiences[issuer] = memberOf(file.audiences, issuer) ?? [resource];
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
function compileAggregate(
  name: string,
  file: AggregateFile,
  base: string,
  all: GatewayConfig['upstreams'],
): AggregateSettings {
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

function compileProfile(
  name: string,
  { request, result }: GatewayConfig['inspection']['profiles'][string],
): InspectionProfile {
  const { pii, ...rest } = result;
  const { action, kinds = PII_KINDS } = typeof pii === 'string' ? { action: pii } : pii;
  return { name, request, result: { ...rest, pii: { action, kinds } } };
}

function compileAdmin(
  { publicUrl, issuers, breakGlass }: NonNullable<GatewayConfig['admin']>,
  listener: ListenerSettings,
): AdminSettings {
  const compiled: Record<string, AdminSettings['issuers'][string]> = Object.create(null);
  for (const [name, { audience, roles }] of Object.entries(issuers ?? {})) {
    const { viewer = [], reviewer = [], admin = [] } = roles;
    compiled[name] = { audience, roles: { viewer, reviewer, admin } };
  }
  return {
    listener,
    publicUrl: publicUrl === undefined ? undefined : new URL(publicUrl),
    issuers: compiled,
    breakGlassToken: breakGlass?.token,
  };
}

type DeliveryFile = Exclude<GatewayConfig['audit']['sinks'][number], { readonly type: 'file' | 'stdout' }>;

function compileDelivery(file: DeliveryFile): DeliverySettings {
  const { type, name = type, url, format, network, plaintext, tls } = file;
  const written = file.type === 'syslog' ? {} : file.headers;
  const headers = Object.entries(written).map(([header, value]) => [header.toLowerCase(), value] as const);
  const key = file.type === 'http' ? file.secret : undefined;
  return {
    ...{ type, name, format, network, plaintext, url: new URL(url), tls: compileTls(tls) },
    headers: Object.fromEntries(headers),
    secret: key === undefined ? undefined : readWebhookSecret(key),
    facility: file.type === 'syslog' ? file.facility : 'audit',
    maxMessage: file.type === 'syslog' ? file.maxMessage : 0,
  };
}

function compileTracing({ otlp, ...rest }: NonNullable<GatewayConfig['tracing']>): TracingSettings {
  const { url, headers = {}, ...more } = otlp;
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { ...rest, otlp: { ...more, url: new URL(url), headers: Object.fromEntries(lowered) } };
}

function compileWebhook(name: string, file: GatewayConfig['approvals']['webhooks'][string]): WebhookSettings {
  const { url, secret, ...rest } = file;
  return { ...rest, name, url: new URL(url), secret: secret === undefined ? undefined : readWebhookSecret(secret) };
}

/**
 * Freezes every plain object and list in a value, so that no code can change the configuration. Maps, URLs
 * and byte arrays are only typed as read-only; the values of maps are frozen.
 */
export function freezeDeep<T>(value: T): T {
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
