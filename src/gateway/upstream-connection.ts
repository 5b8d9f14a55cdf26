// How an upstream is reached, what it is shown and how it is listed, by the transport that it speaks. Nothing
// connects before it is used.

import type { UpstreamSettings } from '../config/settings.js';
import { CHANNEL_VERSION } from '../mcp/versions.js';
import { type AssertionSigner, createAssertion } from '../upstream/assertion.js';
import { createBridge } from '../upstream/bridge/sessions.js';
import { createChannelRequest } from '../upstream/channel-listing.js';
import {
  createUpstreamClient,
  type SessionUpstream,
  type UpstreamClient,
} from '../upstream/client.js';
import { connectOptionsFor } from '../upstream/connect.js';
import { createCredentialSource } from '../upstream/credential-sources.js';
import type { NoteCredential } from '../upstream/credentials.js';
import type { GuardedFetch } from '../upstream/guarded-fetch.js';
import type { ListingRequest } from '../upstream/listing-call.js';
import { createListingRequest } from '../upstream/listing-port.js';
import { createPresenter, type Presenter } from '../upstream/presenter.js';

export type UpstreamConnection = {
  readonly client: UpstreamClient;
  readonly presenter: Presenter;
  readonly sessions: SessionUpstream;
  /** Makes the port of a lister. Two listers have two: over HTTP+SSE each holds a channel. */
  readonly openRequest: () => ListingRequest;
  /** Versions of sessions on this transport; `undefined` for those of streamable HTTP. */
  readonly sessionVersions: readonly string[] | undefined;
};

export type ConnectionPorts = {
  readonly guarded: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** Who signs assertions, and as whom: `publicUrl`. */
  readonly signer: AssertionSigner;
  readonly issuer: string;
  /** Told of each credential before the upstream gets it. */
  readonly onCredential: NoteCredential;
  /** Told in fixed words why a credential could not be had, or a connection not be made. */
  readonly onTrouble: (what: 'credentials' | 'connection', detail: string) => void;
};

/** Makes the connections of an upstream. Whoever makes them closes the client. */
export function connectUpstream(
  settings: UpstreamSettings,
  ports: ConnectionPorts,
): UpstreamConnection {
  const { url, limits, network, tls, transport } = settings;
  const onFailure = (code: string): void => ports.onTrouble('connection', code);
  const connect = connectOptionsFor(network, { tls, onFailure });
  const presenter = presenterOf(settings, ports);
  const client = createUpstreamClient({ url, presenter, limits, connect });
  switch (transport) {
    case 'streamable-http':
      return {
        client,
        presenter,
        sessions: client,
        openRequest: () => createListingRequest(client, 'gateway'),
        sessionVersions: undefined,
      };
    case 'http-sse':
      return {
        client,
        presenter,
        sessions: createBridge({ client, ...limits, now: ports.now }),
        openRequest: () => createChannelRequest(client),
        sessionVersions: [CHANNEL_VERSION],
      };
  }
}

function presenterOf(
  { credentials, identity, limits, pinning }: UpstreamSettings,
  { guarded, now, signer, issuer, onCredential, onTrouble }: ConnectionPorts,
): Presenter {
  const sources = {
    guarded,
    now,
    requestTimeoutMs: limits.requestTimeoutMs,
    onCredential,
    onFault: (detail: string) => onTrouble('credentials', detail),
  };
  const callers = createCredentialSource(credentials, sources);
  const isShared = JSON.stringify(credentials) === JSON.stringify(pinning.credentials);
  return createPresenter({
    callers,
    own: isShared ? callers : createCredentialSource(pinning.credentials, sources),
    assert:
      identity === undefined
        ? undefined
        : createAssertion({ identity, issuer, signer, now, onCredential }),
  });
}
