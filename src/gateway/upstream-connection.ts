// How an upstream is reached and listed, by the transport that it speaks. Nothing connects before it is used.

import type { UpstreamSettings } from '../config/settings.js';
import { CHANNEL_VERSION } from '../mcp/versions.js';
import { createBridge } from '../upstream/bridge/sessions.js';
import { createChannelRequest } from '../upstream/channel-listing.js';
import {
  createUpstreamClient,
  type SessionUpstream,
  type UpstreamClient,
} from '../upstream/client.js';
import { connectOptionsFor } from '../upstream/connect.js';
import type { ListingRequest } from '../upstream/listing-call.js';
import { createListingRequest } from '../upstream/listing-port.js';

export type UpstreamConnection = {
  readonly client: UpstreamClient;
  readonly sessions: SessionUpstream;
  /** The port of a lister. */
  readonly request: ListingRequest;
  /** Versions of sessions on this transport; `undefined` for those of streamable HTTP. */
  readonly sessionVersions: readonly string[] | undefined;
};

/** Makes the connections of an upstream. Whoever makes them closes the client. */
export function connectUpstream(settings: UpstreamSettings, now: () => number): UpstreamConnection {
  const { url, credentials, limits, network, pinning, transport } = settings;
  const connect = connectOptionsFor(network);
  const client = createUpstreamClient({ url, credentials, limits, connect });
  switch (transport) {
    case 'streamable-http':
      return {
        client,
        sessions: client,
        request: createListingRequest(client, pinning.credentials),
        sessionVersions: undefined,
      };
    case 'http-sse':
      return {
        client,
        sessions: createBridge({ client, credentials, ...limits, now }),
        request: createChannelRequest(client, pinning.credentials),
        sessionVersions: [CHANNEL_VERSION],
      };
  }
}
