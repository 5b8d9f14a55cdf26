// The types of the configuration after loading: validated, defaults filled in, units resolved, secrets read,
// frozen. The rest of the program reads these types and never YAML. What a key is called, means and may be
// stands in schema/; here is what the settings have beyond that.

import type { NETWORK, SettingsOf } from './schema/declarations.js';
import type {
  AUDIT,
  DELIVERED,
  DPOP,
  INTROSPECTION,
  ISSUER,
  LOGIN,
  METRICS,
  PII_ACTIONS,
  PII_KINDS,
  PROFILE,
  SHUTDOWN,
  STARTUP,
  STATE,
  TRACING,
  WEBHOOK,
} from './schema/gateway.js';
import type { CONTENT, IDENTITY, LIMITS, PINNING, UPSTREAM_SCHEMA } from './schema/upstream.js';

/** The addresses that an origin may resolve to. */
export type Network = SettingsOf<typeof NETWORK>;

/** TLS of a listener: PEM texts, and the files they were read from. */
export type TlsSettings = {
  readonly cert: string;
  readonly key: string;
  /** PEM certificates of the authorities that client certificates are verified against. */
  readonly clientCa: string | undefined;
  /** When the certificate expires, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
  readonly files: readonly string[];
};

export type ListenerSettings = {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsSettings;
};

/** DPoP proofs at the data listener (RFC 9449). */
type ProofSettings = SettingsOf<typeof DPOP>;

/** How the tokens of an issuer are introspected (RFC 7662). */
export type IntrospectionSettings = Omit<SettingsOf<typeof INTROSPECTION>, 'endpoint'> & {
  /** If absent, the endpoint of the issuer's metadata is used. */
  readonly endpoint: URL | undefined;
};

/** How people of an issuer log in with a browser. */
export type LoginSettings = SettingsOf<typeof LOGIN>;

export type IssuerSettings = Omit<
  SettingsOf<typeof ISSUER>,
  'algorithms' | 'introspection' | 'claims' | 'scopeHierarchy'
> & {
  readonly name: string;
  /** Empty if tokens are introspected. */
  readonly algorithms: readonly string[];
  /** If present, tokens are not verified by signature: each is introspected. */
  readonly introspection: IntrospectionSettings | undefined;
  /** Claim names or, if they begin with `/`, JSON Pointers; the first claim that is present is used. */
  readonly claims: {
    readonly [Claim in keyof SettingsOf<typeof ISSUER>['claims']]: readonly string[];
  };
  /** By scope, every scope that it includes, directly or indirectly. */
  readonly impliedScopes: { readonly [scope: string]: readonly string[] };
};

type UpstreamLimits = SettingsOf<typeof LIMITS> & {
  /** For calls. */
  readonly requestTimeoutMs: number;
  /** For handshakes, lists, discovery and credentials. */
  readonly handshakeTimeoutMs: number;
  /** At most `concurrency`. */
  readonly concurrencyPerCaller: number;
};

/** Client authentication to an authorization server. The key is PKCS #8 in PEM, or a JWK as JSON. */
export type ClientAuthentication =
  | { readonly method: 'client_secret_basic' | 'client_secret_post'; readonly secret: string }
  | { readonly method: 'private_key_jwt'; readonly key: string };

/** A token request to an authorization server, and the resource or audience the token must carry. */
export type TokenRequestSettings = {
  readonly server:
    | { readonly kind: 'issuer'; readonly url: string }
    | { readonly kind: 'token-endpoint'; readonly url: string };
  /** The addresses that the server's origin may resolve to, and whether it may be plain http there. */
  readonly network: Network;
  readonly plaintext: 'accepted' | undefined;
  readonly clientId: string;
  readonly authentication: ClientAuthentication;
  readonly scopes: readonly string[];
  /** At least one of `resource` and `audience` is present; the token must carry each one present. */
  readonly resource: string | undefined;
  readonly audience: string | undefined;
  /**
   * The gateway's own audiences, and `publicUrl`, under which all of its resources lie: a token that
   * carries one of them is refused.
   */
  readonly own: { readonly audiences: readonly string[]; readonly base: string };
};

export type ActorToken = { readonly token: string; readonly type: 'jwt' | 'access_token' };

/** Credentials for requests without a caller. `static` sends one header with a secret value. */
export type OwnCredentials =
  | { readonly type: 'none' }
  | { readonly type: 'static'; readonly header: string; readonly value: string }
  | { readonly type: 'client-credentials'; readonly request: TokenRequestSettings };

/** `token-exchange`: a token obtained in exchange for the caller's (RFC 8693). */
export type UpstreamCredentials =
  | OwnCredentials
  | {
      readonly type: 'token-exchange';
      readonly request: TokenRequestSettings;
      readonly actor: ActorToken | undefined;
    };

/** A person whose signatures of lock files count. */
export type LockSigner = {
  readonly name: string;
  /** RFC 7638 thumbprint of the key. */
  readonly keyId: string;
  /** SubjectPublicKeyInfo, PEM. */
  readonly publicKey: string;
};

/** Whose signatures each lock file needs. */
export type LockSigning = {
  readonly signers: readonly LockSigner[];
  /** How many different keys must have signed. */
  readonly require: number;
};

/** Certificates and keys are PEM texts; pins are SHA-256 of SubjectPublicKeyInfo, lower-case hex. */
export type UpstreamTls = {
  readonly ca: string | undefined;
  readonly client: { readonly cert: string; readonly key: string } | undefined;
  readonly serverName: string | undefined;
  readonly pins: readonly string[];
};

/** The signed assertion that names the caller to the upstream. Its header is in lower case. */
export type UpstreamIdentity = SettingsOf<typeof IDENTITY> & {
  /** The `url` of the upstream, as written in the file. */
  readonly audience: string;
};

export type PinningSettings = Omit<SettingsOf<typeof PINNING>, 'credentials'> & {
  /** For the gateway's own listing; the upstream's credentials if the file gives none. */
  readonly credentials: OwnCredentials;
};

/** What content is: how much of it is changed (src/inspection/content-kind.ts). */
export type ContentKind = SettingsOf<typeof CONTENT>['kind'];

/** The kind of what an upstream returns, and the kinds of single tools by name. */
export type ContentSettings = {
  readonly kind: ContentKind;
  readonly tools: ReadonlyMap<
    string,
    {
      readonly kind: ContentKind;
      /** The definitions that the kind was chosen for; `undefined`: whichever is approved. */
      readonly digests: readonly string[] | undefined;
    }
  >;
};

export type UpstreamSettings = Omit<
  SettingsOf<typeof UPSTREAM_SCHEMA>,
  | 'url'
  | 'socket'
  | 'path'
  | 'issuers'
  | 'credentials'
  | 'tls'
  | 'identity'
  | 'pinning'
  | 'limits'
  | 'content'
  | 'arguments'
> & {
  readonly name: string;
  readonly url: URL;
  /** Absolute path of the Unix socket that is connected to in place of the host of `url`. */
  readonly socket: string | undefined;
  /** Path on the data listener: starts with `/`, no trailing slash. */
  readonly path: string;
  /** `publicUrl + path`: the audience a token must carry, compared exactly, unless `audiences` has others. */
  readonly resource: string;
  /** Names of the issuers whose tokens are accepted, each of which `audiences` has. */
  readonly issuers: readonly string[];
  readonly credentials: UpstreamCredentials;
  readonly tls: UpstreamTls;
  /** `undefined` if no assertion is sent. */
  readonly identity: UpstreamIdentity | undefined;
  readonly pinning: PinningSettings;
  readonly arguments: ArgumentSettings;
  readonly limits: UpstreamLimits;
  readonly content: ContentSettings;
};

/** What happens to tool arguments that do not fit the input schema. */
export type ArgumentSettings = {
  readonly undeclared: 'declared' | 'observe' | 'any';
  readonly coerce: boolean;
  readonly drop: readonly string[];
};

/** One backend of an aggregate. */
export type BackendSettings = {
  readonly upstream: string;
  /** Prepended to the names of its tools and prompts; no prefix of an aggregate begins with another. */
  readonly prefix: string;
};

/** Several upstreams under one path: a resource of its own, whose backends keep all their settings. */
export type AggregateSettings = Pick<
  UpstreamSettings,
  'name' | 'path' | 'resource' | 'authentication' | 'issuers' | 'audiences' | 'binding'
> & {
  /** The union of all backends' scopes. */
  readonly scopesSupported: readonly string[];
  /** In the order of the file. */
  readonly backends: readonly BackendSettings[];
};

/** Personal data that can be detected; all of it is the default. */
export type PiiKind = (typeof PII_KINDS)[number];

type WrittenProfile = SettingsOf<typeof PROFILE>;

export type InspectionProfile = {
  readonly name: string;
  readonly request: Pick<WrittenProfile['request'], 'secrets'> & Partial<WrittenProfile['request']>;
  readonly result: Omit<WrittenProfile['result'], 'pii' | 'links'> & {
    /** Absent: `flag`. */
    readonly links?: WrittenProfile['result']['links'];
    readonly pii: {
      readonly action: (typeof PII_ACTIONS)[number];
      readonly kinds: readonly PiiKind[];
    };
    /** The kind of content that these rules are for; absent: `auto`. */
    readonly kind?: ContentKind;
  };
};

/** One of the gateway's own keys, 32 bytes. The first key seals and signs; all keys open and verify. */
export type GatewayKey = { readonly id: string; readonly bytes: Uint8Array };

export type AuditSettings = Pick<SettingsOf<typeof AUDIT>, 'durability' | 'onFailure'> & {
  readonly sinks: readonly ({ readonly type: 'file'; readonly path: string } | { readonly type: 'stdout' })[];
  /** Who gets the lines of the first file sink. */
  readonly deliveries: readonly DeliverySettings[];
  readonly checkpointEveryMs: number;
  /** When a run goes on in its next file. */
  readonly rotate: { readonly size: number; readonly ageMs: number; readonly compress?: 'none' | 'gzip' };
  /** Percent of the volume that are to be free. */
  readonly minFree?: number | undefined;
  /** How long files are kept after their last line; `undefined`: for good. */
  readonly retainMs: number | undefined;
};

/** A receiver of audit lines. */
export type DeliverySettings = Pick<SettingsOf<typeof DELIVERED>, 'type' | 'format' | 'network'> & {
  readonly plaintext: 'accepted' | undefined;
  readonly name: string;
  readonly url: URL;
  readonly tls: UpstreamTls;
  /** Secret values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly secret: Uint8Array | undefined;
  /** Bytes of a syslog message. */
  readonly maxMessage: number;
  readonly facility: Extract<SettingsOf<typeof DELIVERED>, { readonly type: 'syslog' }>['facility'];
};

/** Where the state that replicas share is kept. The `url` contains the store's credentials and is never shown. */
export type StateSettings = SettingsOf<typeof STATE>;

export type AdminSettings = {
  readonly listener: ListenerSettings;
  /** How browsers reach the listener; present wherever administrators have a login. */
  readonly publicUrl: URL | undefined;
  readonly issuers: {
    readonly [issuer: string]: {
      readonly audience: string;
      /** The groups that have each role. */
      readonly roles: {
        readonly viewer: readonly string[];
        readonly reviewer: readonly string[];
        readonly admin: readonly string[];
      };
    };
  };
  /** A token accepted by the admin listener when no issuer can be reached. */
  readonly breakGlassToken: string | undefined;
};

/** A receiver of messages about what waits for a reviewer. */
export type WebhookSettings = Omit<SettingsOf<typeof WEBHOOK>, 'url' | 'secret'> & {
  readonly name: string;
  /** Whoever knows it may write there: it is in no log. */
  readonly url: URL;
  /** The key that messages are signed with. */
  readonly secret: Uint8Array | undefined;
};

/** How requests are traced, and where their spans are sent. */
export type TracingSettings = Omit<SettingsOf<typeof TRACING>, 'otlp'> & {
  readonly otlp: Omit<SettingsOf<typeof TRACING>['otlp'], 'url' | 'headers'> & {
    readonly url: URL;
    /** By lower-case name. */
    readonly headers: Readonly<Record<string, string>>;
  };
};

export type Settings = {
  /** Absolute path of the configuration file; relative paths were resolved against its folder. */
  readonly file: string;
  readonly publicUrl: URL;
  /** `publicUrl` without a trailing slash; every path is appended to it. */
  readonly publicBase: string;
  readonly listeners: {
    readonly data: ListenerSettings & {
      readonly allowedOrigins: readonly string[];
      readonly trustedProxies: readonly string[];
      readonly dpop: ProofSettings;
    };
    readonly ops: ListenerSettings;
  };
  /** Empty only on loopback, where the process generates a key at start. */
  readonly keys: readonly GatewayKey[];
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  /** No aggregate has the name of an upstream. */
  readonly aggregates: ReadonlyMap<string, AggregateSettings>;
  readonly policiesDir: string;
  readonly pinsDir: string;
  /** `undefined`: lock files need no signature. */
  readonly signing: LockSigning | undefined;
  readonly profiles: ReadonlyMap<string, InspectionProfile>;
  readonly state: StateSettings;
  readonly startup: SettingsOf<typeof STARTUP>;
  readonly shutdown: SettingsOf<typeof SHUTDOWN>;
  readonly audit: AuditSettings;
  readonly metrics: SettingsOf<typeof METRICS>;
  readonly admin: AdminSettings | undefined;
  readonly webhooks: readonly WebhookSettings[];
  /** `undefined`: nothing is traced. */
  readonly tracing: TracingSettings | undefined;
  /** The files that the configuration file names for secrets, keys and certificates, which are watched besides it. */
  readonly watchedFiles: readonly string[];
  /**
   * SHA-256 of the configuration file's bytes, lower-case hex; where keys of it wait for a restart, that of no file.
   * Secrets are not part of it.
   */
  readonly hash: string;
};
