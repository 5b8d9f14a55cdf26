// What runs for one upstream: its connections, the gateway's own listing, and what was last seen there.
// It lives across reloads as long as its settings stay the same.

import type { UpstreamSettings } from '../config/settings.js';
import type { Listing } from '../mcp/listing.js';
import { digestOnce } from '../pins/digest.js';
import {
  dropListing,
  noteListing,
  notePage,
  type Observed,
  observeListing,
  type Page,
} from '../pins/observed.js';
import type { SessionUpstream, UpstreamClient } from '../upstream/client.js';
import { type MessageReader, runInTurn } from '../upstream/hearing.js';
import { createListingAllowance } from '../upstream/listing-allowance.js';
import type { ListingError } from '../upstream/listing-call.js';
import { createDiscoveryLister } from '../upstream/listing-faces.js';
import type { Presenter } from '../upstream/presenter.js';
import { createTranslation, type Translation } from '../upstream/translate/translation.js';
import type { SessionBusOf } from './replicas.js';
import { type ConnectionPorts, connectUpstream, messageReaderOf } from './upstream-connection.js';

export type UpstreamRuntime = {
  readonly settings: UpstreamSettings;
  readonly client: UpstreamClient;
  /** How the credentials stand. */
  readonly presenter: Pick<Presenter, 'states'>;
  /** The same upstream in sessions: over channels where it speaks HTTP+SSE. */
  readonly sessions: SessionUpstream;
  /** The same upstream, for clients of an era that it does not speak. */
  readonly translation: Translation;
  /** The newest observation, or `undefined` before the first listing. */
  observed(): Observed | undefined;
  /** Whether every page was verified within `pinning.maxAge`. */
  isFresh(): boolean;
  /** Whether the newest listing came through. */
  isUp(): boolean;
  /** Lists again where that is due; resolves whether or not it helped. */
  freshen(): Promise<void>;
  notePage(page: Omit<Page, 'atMs'>): void;
  noteListChanged(): Promise<void>;
  close(): Promise<void>;
};

export type RuntimePorts = ConnectionPorts & {
  readonly gatewayVersion: string;
  readonly sessionBusOf: SessionBusOf;
  /** What is offered differs from what was seen before. */
  readonly onObserved: (runtime: UpstreamRuntime) => void;
  readonly onListed: (runtime: UpstreamRuntime) => void;
  readonly onFailure: (runtime: UpstreamRuntime, why: ListingError) => void;
};

/** Takes the digests that an observation will ask for. */
async function digestInSlices(listing: Listing, messageReader: MessageReader): Promise<void> {
  const { tools, prompts, templates, resources } = listing;
  const lists = [
    ['tool', tools],
    ['prompt', prompts],
    ['template', templates],
    ['resource', resources],
  ] as const;
  for (const [kind, items] of lists)
    await runInTurn(messageReader, items, ({ definition, isExact }) => {
      digestOnce(kind, definition, isExact);
    });
}

/** Opens an upstream: from now on it is listed by itself. Nothing is connected before the first listing. */
export function startUpstream(settings: UpstreamSettings, ports: RuntimePorts): UpstreamRuntime {
  const { now } = ports;
  const { limits, pinning } = settings;
  const connection = connectUpstream(settings, ports);
  const { client, sessions, presenter, openRequest, sessionVersions } = connection;
  const messageReader = messageReaderOf(settings, ports);
  const translation = createTranslation({
    client: sessions,
    gatewayVersion: ports.gatewayVersion,
    maxResponseBytes: limits.maxResponseBytes,
    requestTimeoutMs: limits.requestTimeoutMs,
    messageReader,
    sessionBus: ports.sessionBusOf(settings.name),
    now,
  });
  let observed: Observed | undefined;

  function see(next: Observed | undefined): void {
    const isSame = next?.contentDigest === observed?.contentDigest;
    observed = next;
    if (!isSame) ports.onObserved(runtime);
  }

  const lister = createDiscoveryLister(
    {
      maxAgeMs: pinning.maxAgeMs,
      requestTimeoutMs: limits.requestTimeoutMs,
      gatewayVersion: ports.gatewayVersion,
      sessionVersions,
      apps: settings.apps,
    },
    {
      now,
      openRequest,
      messageReader,
      allowance: createListingAllowance(limits.maxListingBytesPerMinute, now),
      prepare: (listing) => digestInSlices(listing, messageReader),
      onListings(listings) {
        see(listings.map(observeListing).reduce(noteListing, observed));
        if (lister.isUp()) ports.onListed(runtime);
      },
      onProfileGone: (clientProfile) => see(dropListing(observed, clientProfile)),
      onFailure: (_era, why) => ports.onFailure(runtime, why),
    },
  );
  const runtime: UpstreamRuntime = {
    settings,
    client,
    presenter,
    sessions,
    translation,
    observed: () => observed,
    isUp: () => lister.isUp(),
    isFresh: () => lister.isFresh(pinning.maxAgeMs),
    async freshen() {
      await lister.ensureFresh(pinning.maxAgeMs);
    },
    notePage(page) {
      if (observed !== undefined) see(notePage(observed, { ...page, atMs: now() }));
    },
    noteListChanged: () => lister.noteListChanged(),
    async close() {
      await lister.close();
      translation.close();
      await sessions.close();
      await client.close();
    },
  };
  lister.start();
  return runtime;
}
