// How messages reach an upstream: the interface of every way there is. selection.ts chooses one for each message
// and each session; nothing else asks how an upstream is reached. Only types.

import type { Catalog } from '../../policy/definitions.js';
import type {
  GatewayReply,
  OutboundRequest,
  OutboundStream,
  SessionRequest,
} from '../../policy/outbound.js';
import type { Caller } from '../../policy/principal.js';
import type { SessionFacts } from '../../protocol/admitted-request.js';
import type { ClientTraits } from '../../protocol/listings.js';
import type { SupportedVersions } from '../../protocol/negotiation.js';
import type { ForwardOutcome, RoutedOutcome } from '../../protocol/transport.js';

/** What is known of the upstream when a message is sent. */
export type UpstreamOffer = {
  /** The versions that it speaks; `undefined` before the first listing. */
  readonly supportedVersions: SupportedVersions | undefined;
  catalogFor(client: ClientTraits): Pick<Catalog, 'statusOf'>;
};

export type UpstreamAdapter = {
  forward(request: OutboundRequest, offer: UpstreamOffer): Promise<RoutedOutcome>;
  /** The offer is read when the stream is opened, because a session that is not initialized is waited for. */
  openStream(stream: OutboundStream, currentOffer: () => UpstreamOffer): Promise<ForwardOutcome>;
  endSession(session: SessionFacts, caller: Caller): Promise<ForwardOutcome>;
  replyToServer(serverRequest: SessionRequest, reply: GatewayReply): void;
  /** Notifies the server of a session that the response to this request is no longer awaited. */
  cancelAtServer(request: SessionRequest): void;
};
