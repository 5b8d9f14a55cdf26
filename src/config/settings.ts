// The configuration after reading: validated, defaults filled in, units resolved, secrets read, frozen.
// Nothing behind this line sees YAML. docs/contract.md §3 has the keys and their meaning.

/** Where an origin may resolve. */
export type Network = 'public' | 'private' | 'loopback';

/** TLS of a listener: PEM texts, and the files that they came from. */
export type TlsSettings = {
  readonly cert: string;
  readonly key: string;
  /** Whose client certificates are asked for. */
  readonly clientCa: string | undefined;
  /** Of the certificate, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
  readonly files: readonly string[];
};

export type ListenerSettings = {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsSettings;
};

/** Proofs of possession at the data listener (RFC 9449). */
export type ProofSettings = { readonly nonce: 'off' | 'required'; readonly maxAgeMs: number };

/** How the tokens of an issuer are introspected (RFC 7662). */
export type IntrospectionSettings = {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly authentication: 'client_secret_basic' | 'client_secret_post';
  /** Absent: where the issuer's metadata says. */
  readonly endpoint: URL | undefined;
  readonly cacheTtlMs: number;
  readonly maxPerSecond: number;
};

export type IssuerSettings = {
  readonly name: string;
  /** The issuer identifier, exactly as tokens carry it in `iss`. */
  readonly issuer: string;
  readonly network: Network;
  /** Empty where tokens are introspected. */
  readonly algorithms: readonly string[];
  /** The `typ` that access tokens carry (RFC 9068 §2.1); `none` where they carry none. */
  readonly tokenType: string;
  readonly maxLifetimeMs: number;
  /** How long the last good keys serve while no others can be had. */
  readonly keysMaxAgeMs: number;
  /** Present: no token is verified by a signature, each is asked for. */
  readonly introspection: IntrospectionSettings | undefined;
  /** Claim names or, where they begin with `/`, JSON Pointers; the first present wins. */
  readonly claims: {
    readonly client: readonly string[];
    readonly scope: readonly string[];
    readonly groups: readonly string[];
  };
  /** Every scope that a broader one includes, by the broader one, through all steps. */
  readonly impliedScopes: { readonly [scope: string]: readonly string[] };
};

export type UpstreamLimits = {
  readonly requestTimeoutMs: number;
  readonly streamIdleMs: number;
  /** Of an exchange from its first byte to its last, progress or not. */
  readonly exchangeMaxMs: number;
  readonly keepAliveMs: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  readonly maxStreamBytesPerMinute: number;
  readonly maxListingBytesPerMinute: number;
  readonly maxValues: number;
  readonly concurrency: number;
  readonly listTtlMs: number;
};

/** How the gateway proves itself to an authorization server. The key is PKCS #8 in PEM, or a JWK as JSON. */
export type ClientAuthentication =
  | { readonly method: 'client_secret_basic' | 'client_secret_post'; readonly secret: string }
  | { readonly method: 'private_key_jwt'; readonly key: string };

/** A token that is asked for at an authorization server, and what it must be for. */
export type TokenRequestSettings = {
  readonly server:
    | { readonly kind: 'issuer'; readonly url: string }
    | { readonly kind: 'token-endpoint'; readonly url: string };
  /** Where the server's origin may resolve. */
  readonly network: Network;
  readonly clientId: string;
  readonly authentication: ClientAuthentication;
  readonly scopes: readonly string[];
  /** At least one of both is there; the token must carry each that is. */
  readonly resource: string | undefined;
  readonly audience: string | undefined;
  /**
   * Audiences of the gateway itself, and `publicUrl`, under which all of its resources lie: a token that
   * carries one of them is refused.
   */
  readonly own: { readonly audiences: readonly string[]; readonly base: string };
};

export type ActorToken = { readonly token: string; readonly type: 'jwt' | 'access_token' };

/** What may be shown where no caller is. `static` sends one header with a secret value. */
export type OwnCredentials =
  | { readonly type: 'none' }
  | { readonly type: 'static'; readonly header: string; readonly value: string }
  | { readonly type: 'client-credentials'; readonly request: TokenRequestSettings };

/** `token-exchange`: a token issued for the caller's (RFC 8693). */
export type UpstreamCredentials =
  | OwnCredentials
  | {
      readonly type: 'token-exchange';
      readonly request: TokenRequestSettings;
      readonly actor: ActorToken | undefined;
    };

/** Certificates and keys are PEM texts; pins are SHA-256 of SubjectPublicKeyInfo, lower-case hex. */
export type UpstreamTls = {
  readonly ca: string | undefined;
  readonly client: { readonly cert: string; readonly key: string } | undefined;
  readonly serverName: string | undefined;
  readonly pins: readonly string[];
};

/** How the upstream is told who calls. */
export type UpstreamIdentity = {
  /** Lower-case. */
  readonly header: string;
  readonly ttlMs: number;
  /** The `url` of the upstream, as it is written. */
  readonly audience: string;
};

export type PinningSettings = {
  readonly mode: 'strict' | 'off';
  readonly maxAgeMs: number;
  readonly onDrift: 'hide-tool' | 'stop-upstream';
  /** Used when the gateway lists for itself; the upstream's own where the file gives none. */
  readonly credentials: OwnCredentials;
};

export type UpstreamSettings = {
  readonly name: string;
  readonly url: URL;
  readonly transport: 'streamable-http' | 'http-sse';
  /** Path on the data listener, starts with `/`, no trailing slash. */
  readonly path: string;
  /** `publicUrl + path`: the audience a token must carry, compared exactly. */
  readonly resource: string;
  readonly network: Network;
  /** `required`: a verified token. `none`: loopback only (docs/contract.md §3). */
  readonly authentication: 'required' | 'none';
  /** Names of issuers that may vouch for callers here. */
  readonly issuers: readonly string[];
  /** Accepted audiences by issuer name; `[resource]` unless the configuration maps others. */
  readonly audiences: { readonly [issuer: string]: readonly string[] };
  /** What tokens must be bound to here; a bound token must prove it in any case. */
  readonly binding: 'none' | 'any' | 'dpop' | 'mtls';
  readonly scopesSupported: readonly string[];
  readonly credentials: UpstreamCredentials;
  /** Hosts may declare the Apps extension, and the gateway's own listing does. */
  readonly apps: boolean;
  readonly tls: UpstreamTls;
  /** `undefined` where it is not told. */
  readonly identity: UpstreamIdentity | undefined;
  readonly pinning: PinningSettings;
  /** Name of an inspection profile. */
  readonly inspect: string;
  readonly limits: UpstreamLimits;
};

/** One upstream of an endpoint. */
export type BackendSettings = {
  readonly upstream: string;
  /** Stands before the names of its tools and prompts; none is the beginning of another's. */
  readonly prefix: string;
};

/** Several upstreams under one path: a resource of its own, whose members keep all their settings. */
export type AggregateSettings = Pick<
  UpstreamSettings,
  'name' | 'path' | 'resource' | 'authentication' | 'issuers' | 'audiences' | 'binding'
> & {
  /** Those of all members. */
  readonly scopesSupported: readonly string[];
  /** In the order of the file. */
  readonly backends: readonly BackendSettings[];
};

/** What a detector family does with a finding. */
export type InspectionAction = 'off' | 'flag' | 'redact' | 'neutralize' | 'strip' | 'block';

/** Personal data that can be detected; the first three are the default. */
export type PiiKind = 'card' | 'iban' | 'ssn';

export type InspectionProfile = {
  readonly name: string;
  readonly request: { readonly secrets: 'off' | 'flag' | 'block' };
  readonly result: {
    readonly secrets: 'off' | 'flag' | 'redact' | 'block';
    readonly pii: {
      readonly action: 'off' | 'flag' | 'redact' | 'block';
      readonly kinds: readonly PiiKind[];
    };
    readonly activeContent: 'off' | 'flag' | 'neutralize' | 'block';
    readonly invisible: 'off' | 'flag' | 'strip' | 'block';
    readonly injection: 'off' | 'flag' | 'block';
  };
};

/** The gateway's own keys: 32 bytes each. The first seals and signs, all open and verify. */
export type GatewayKey = { readonly id: string; readonly bytes: Uint8Array };

export type AuditSettings = {
  readonly sinks: readonly (
    | { readonly type: 'file'; readonly path: string }
    | { readonly type: 'stdout' }
  )[];
  readonly onFailure: 'block' | 'continue';
  readonly checkpointEveryMs: number;
};

/** Where what replicas share lives: in this process alone, or in a store that all of them reach. */
export type StateSettings =
  | { readonly type: 'memory' }
  | {
      readonly type: 'redis';
      /** With its credentials: never shown. */
      readonly url: string;
      readonly prefix: string;
      readonly commandTimeoutMs: number;
      readonly maxAgeMs: number;
    };

export type AdminSettings = {
  readonly listener: ListenerSettings;
  readonly issuers: {
    readonly [issuer: string]: {
      readonly audience: string;
      /** Groups that hold each role. */
      readonly roles: {
        readonly viewer: readonly string[];
        readonly reviewer: readonly string[];
        readonly admin: readonly string[];
      };
    };
  };
  /** A token that opens the admin listener when no issuer can be reached. */
  readonly breakGlassToken: string | undefined;
};

export type Settings = {
  /** Absolute path of the configuration file; relative paths were resolved against its folder. */
  readonly file: string;
  readonly publicUrl: URL;
  /** `publicUrl` without a trailing slash, as it stands before every path. */
  readonly publicBase: string;
  readonly listeners: {
    readonly data: ListenerSettings & {
      readonly allowedOrigins: readonly string[];
      readonly trustedProxies: readonly string[];
      readonly dpop: ProofSettings;
    };
    readonly ops: ListenerSettings;
  };
  /** Empty only on loopback, where the run makes a key for itself. */
  readonly keys: readonly GatewayKey[];
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  /** No name of an endpoint is that of an upstream. */
  readonly aggregates: ReadonlyMap<string, AggregateSettings>;
  readonly policiesDir: string;
  readonly pinsDir: string;
  readonly profiles: ReadonlyMap<string, InspectionProfile>;
  readonly state: StateSettings;
  readonly audit: AuditSettings;
  readonly metrics: { readonly toolLabel: boolean; readonly maxSeries: number };
  readonly admin: AdminSettings | undefined;
  /** Files that were read into upstreams' settings and are watched besides: certificates and their keys. */
  readonly watchedFiles: readonly string[];
  /** SHA-256 of the configuration file's bytes, lower-case hex. Secrets are not part of it. */
  readonly hash: string;
};
