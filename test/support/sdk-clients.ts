// Connects the two official SDKs to an MCP endpoint: v1 (sessions), v2 held to one era.
// Never falls back to another era, so that a test knows what was spoken.

import type { OAuthClientProvider as ProviderV2 } from '@modelcontextprotocol/client';
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import type { OAuthClientProvider as ProviderV1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** How a client proves who it is: a token it has, a provider that walks for one, or nothing. */
export type Access<Provider> = {
  readonly token?: string;
  readonly provider?: Provider;
  readonly headers?: Readonly<Record<string, string>>;
  /** In place of fetch: where several gateways stand for one. */
  readonly fetch?: typeof fetch;
};

export type ConnectedV1 = {
  readonly client: ClientV1;
  readonly transport: TransportV1;
  close(): Promise<void>;
};

export type ConnectedV2 = {
  readonly client: ClientV2;
  readonly transport: TransportV2;
  close(): Promise<void>;
};

const IDENTITY = { name: 'sallyport-test', version: '1.0.0' } as const;

function requestInit(access: Access<unknown>): RequestInit {
  const bearer = access.token === undefined ? {} : { authorization: `Bearer ${access.token}` };
  return { headers: { ...access.headers, ...bearer } };
}

/** A transport of SDK v1, not yet connected; the OAuth walk needs it before and after. */
export function createTransportV1(url: string, access: Access<ProviderV1> = {}): TransportV1 {
  const provider = access.provider === undefined ? {} : { authProvider: access.provider };
  return new TransportV1(new URL(url), { requestInit: requestInit(access), ...provider });
}

/** A transport of SDK v2, not yet connected. */
export function createTransportV2(url: string, access: Access<ProviderV2> = {}): TransportV2 {
  const provider = access.provider === undefined ? {} : { authProvider: access.provider };
  const own = access.fetch === undefined ? {} : { fetch: access.fetch };
  return new TransportV2(new URL(url), { requestInit: requestInit(access), ...provider, ...own });
}

/** A client of SDK v1, which speaks sessions. */
export async function connectSdkV1(
  url: string,
  access: Access<ProviderV1> = {},
  options: ConstructorParameters<typeof ClientV1>[1] = {},
): Promise<ConnectedV1> {
  const client = new ClientV1(IDENTITY, options);
  const transport = createTransportV1(url, access);
  await client.connect(transport as Transport);
  return { client, transport, close: () => client.close() };
}

/** A client of SDK v2 that speaks exactly this era (`versionNegotiation`: `legacy`, or pinned). */
export async function connectSdkV2(
  url: string,
  era: '2025' | '2026',
  access: Access<ProviderV2> = {},
  options: ConstructorParameters<typeof ClientV2>[1] = {},
): Promise<ConnectedV2> {
  const mode = era === '2025' ? 'legacy' : { pin: '2026-07-28' };
  const client = new ClientV2(IDENTITY, { ...options, versionNegotiation: { mode } });
  const transport = createTransportV2(url, access);
  await client.connect(transport);
  return { client, transport, close: () => client.close() };
}
