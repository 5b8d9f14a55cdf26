// The type of the gateway file after validation, with the schema's defaults filled in.
// Types only; resolve.ts turns it into settings. Units and secret references are still as written.

import type { InspectionProfile, Network, PiiKind } from './settings.js';

export type SecretReference = { readonly env: string } | { readonly file: string };

export type ListenerFile = {
  readonly host: string;
  readonly port: number;
  readonly tls?: {
    readonly cert: string;
    readonly key: SecretReference;
    readonly clientCa?: string;
  };
};

export type TokenRequestFile = {
  readonly issuer?: string;
  readonly tokenEndpoint?: string;
  readonly network: Network;
  readonly clientId: string;
  readonly clientSecret?: SecretReference;
  readonly clientAuthentication: 'client_secret_basic' | 'client_secret_post';
  readonly privateKey?: SecretReference;
  readonly scopes: readonly string[];
  readonly resource?: string;
  readonly audience?: string;
};

export type OwnCredentialsFile =
  | { readonly type: 'none' }
  | { readonly type: 'static'; readonly header: string; readonly value: SecretReference }
  | (TokenRequestFile & { readonly type: 'client-credentials' });

export type CredentialsFile =
  | OwnCredentialsFile
  | (TokenRequestFile & {
      readonly type: 'token-exchange';
      readonly actorToken?: SecretReference;
      readonly actorTokenType: 'jwt' | 'access_token';
    });

export type UpstreamTlsFile = {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: SecretReference;
  readonly serverName?: string;
  readonly pins?: readonly string[];
};

export type IntrospectionFile = {
  readonly clientId: string;
  readonly clientSecret: SecretReference;
  readonly authentication: 'client_secret_basic' | 'client_secret_post';
  readonly endpoint?: string;
  readonly cacheTtl: string;
  readonly maxPerSecond: number;
};

export type IssuerFile = {
  readonly issuer: string;
  readonly network: Network;
  /** Absent if tokens are introspected. */
  readonly algorithms?: readonly string[];
  readonly tokenType: string;
  readonly maxLifetime: string;
  readonly keysMaxAge: string;
  readonly introspection?: IntrospectionFile;
  readonly claims: {
    readonly client: string | readonly string[];
    readonly scope: string | readonly string[];
    readonly groups: string | readonly string[];
  };
  readonly scopeHierarchy: { readonly [scope: string]: readonly string[] };
};

export type UpstreamFile = {
  readonly transport: 'streamable-http' | 'http-sse';
  readonly url: string;
  readonly path?: string;
  readonly network: Network;
  readonly authentication: 'required' | 'none';
  readonly issuers?: readonly string[];
  readonly audiences: { readonly [issuer: string]: readonly string[] };
  readonly binding: 'none' | 'any' | 'dpop' | 'mtls';
  readonly scopesSupported: readonly string[];
  readonly credentials: CredentialsFile;
  readonly apps: boolean;
  readonly tls: UpstreamTlsFile;
  readonly identity?: { readonly header: string; readonly ttl: string };
  readonly pinning: {
    readonly mode: 'strict' | 'off';
    readonly maxAge: string;
    readonly onDrift: 'hide-tool' | 'stop-upstream';
    readonly credentials?: OwnCredentialsFile;
  };
  readonly inspect: string;
  readonly limits: {
    readonly requestTimeout: string;
    readonly streamIdle: string;
    readonly exchangeMax: string;
    readonly keepAlive: string;
    readonly maxRequestBytes: string;
    readonly maxResponseBytes: string;
    readonly maxStreamBytesPerMinute: string;
    readonly maxListingBytesPerMinute: string;
    readonly maxValues: number;
    readonly concurrency: number;
    readonly concurrencyPerCaller?: number;
    readonly listTtl: string;
  };
};

export type AggregateFile = {
  readonly path?: string;
  readonly authentication: 'required' | 'none';
  readonly issuers?: readonly string[];
  readonly audiences: { readonly [issuer: string]: readonly string[] };
  readonly upstreams: { readonly [name: string]: { readonly prefix?: string } };
};

type PiiAction = InspectionProfile['result']['pii']['action'];

export type ProfileFile = {
  readonly request: InspectionProfile['request'];
  readonly result: Omit<InspectionProfile['result'], 'pii'> & {
    readonly pii: PiiAction | { readonly action: PiiAction; readonly kinds?: readonly PiiKind[] };
  };
};

export type SinkFile =
  | { readonly type: 'file'; readonly path: string }
  | { readonly type: 'stdout'; readonly durability?: 'handed-over' };

export type StateFile =
  | { readonly type: 'memory' }
  | {
      readonly type: 'redis';
      readonly url: SecretReference;
      readonly prefix: string;
      readonly commandTimeout: string;
      readonly maxAge: string;
    };

export type AdminFile = {
  readonly issuers?: {
    readonly [issuer: string]: {
      readonly audience: string;
      readonly roles: {
        readonly viewer?: readonly string[];
        readonly reviewer?: readonly string[];
        readonly admin?: readonly string[];
      };
    };
  };
  readonly breakGlass?: { readonly token: SecretReference };
};

export type GatewayFile = {
  readonly version: 1;
  readonly publicUrl: string;
  readonly listeners: {
    readonly data: ListenerFile & {
      readonly allowedOrigins: readonly string[];
      readonly trustedProxies: readonly string[];
      readonly dpop: { readonly nonce: 'off' | 'required'; readonly maxAge: string };
    };
    readonly ops: ListenerFile;
    readonly admin: ListenerFile;
  };
  readonly keys?: readonly SecretReference[];
  readonly issuers: { readonly [name: string]: IssuerFile };
  readonly upstreams: { readonly [name: string]: UpstreamFile };
  readonly endpoints: { readonly [name: string]: AggregateFile };
  readonly policies: { readonly dir: string };
  readonly pins?: { readonly dir?: string };
  readonly inspection: { readonly profiles: { readonly [name: string]: ProfileFile } };
  readonly state: StateFile;
  readonly audit: {
    readonly sinks: readonly SinkFile[];
    readonly onFailure: 'block' | 'continue';
    readonly checkpoint: { readonly every: string };
  };
  readonly metrics: { readonly toolLabel: boolean; readonly maxSeries: number };
  readonly admin?: AdminFile;
};
