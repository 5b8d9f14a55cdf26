// Which adapter takes a message, by what its client and its upstream speak and by the session that it belongs to.
// A client of legacy SSE whose upstream speaks something else: its stream waits until its session is initialized.

import { describe, expect, it } from 'vitest';
import type { OutboundRequest, OutboundStream } from '../../../../src/policy/obligations.js';
import type { AdmittedMessage, SessionFacts, SessionTarget } from '../../../../src/protocol/admitted-request.js';
import { LEGACY_SSE } from '../../../../src/protocol/versions/legacy-sse.js';
import type { SupportedVersions } from '../../../../src/protocol/versions/negotiation.js';
import type { ProtocolVersion } from '../../../../src/protocol/versions/revisions.js';
import { SESSION } from '../../../../src/protocol/versions/session.js';
import { STATELESS } from '../../../../src/protocol/versions/stateless.js';
import {
  createBridgeAdapter,
  createUpstreamAdapters,
  type UpstreamOffer,
} from '../../../../src/upstream/adapters/selection.js';

const SESSIONS: SupportedVersions = { sessions: ['2025-11-25'], stateless: [] };
const MODERN: SupportedVersions = { sessions: [], stateless: ['2026-07-28'] };
const BOTH: SupportedVersions = { sessions: ['2025-11-25'], stateless: ['2026-07-28'] };

const answer = (by: string) => ({ forward: () => Promise.resolve(by) });

function adaptersOf(isLegacySse: boolean) {
  const client = answer('direct');
  const parts = {
    client,
    sessions: isLegacySse ? answer('legacy sessions') : client,
    translation: {
      sessions: answer('session over stateless'),
      stateless: answer('stateless over session'),
      bridged: { hasOpened: () => false, find: () => undefined, open: () => 'bridge' },
    },
    isLegacySse,
  };
  return createUpstreamAdapters(parts as never);
}

/** What takes the message: the name of an adapter, or why no way leads to the session. */
async function takerOf(
  client: ProtocolVersion,
  supportedVersions: SupportedVersions | undefined,
  target: SessionTarget | undefined,
  isLegacySse = false,
): Promise<unknown> {
  const session: SessionFacts | undefined = target && { version: 'v', hash: 'h', target };
  const admitted = {
    protocol: client,
    session,
    message: { kind: 'request', id: 1 },
    rule: { method: 'initialize' },
    target: { kind: 'none' },
  } as unknown as AdmittedMessage;
  const offer: UpstreamOffer = {
    supportedVersions,
    catalogFor: () => expect.fail('asks for a definition'),
  };
  const request = { authorized: { admitted } } as unknown as OutboundRequest;
  const outcome: unknown = await adaptersOf(isLegacySse).forMessage(admitted, offer).forward(request, offer);
  return typeof outcome === 'object' ? (outcome as { reason: string }).reason : outcome;
}

const UPSTREAM: SessionTarget = { kind: 'upstream', id: 'u' };
const GATEWAY: SessionTarget = { kind: 'gateway' };
const BRIDGED: SessionTarget = { kind: 'bridged' };
const ENDPOINT: SessionTarget = { kind: 'legacy-sse', messageEndpoint: '/post' };

describe('a message of a stateless client', () => {
  it.each([
    [undefined, false, 'direct'],
    [MODERN, false, 'direct'],
    [BOTH, false, 'direct'],
    [SESSIONS, false, 'stateless over session'],
    [undefined, true, 'stateless over session'],
  ])('to a server of %j (HTTP+SSE: %s) goes by %s', async (carried, isLegacySse, expected) => {
    expect(await takerOf(STATELESS, carried, undefined, isLegacySse)).toBe(expected);
  });
});

describe('a message of a client with sessions', () => {
  it.each([
    [undefined, undefined, 'direct'],
    [SESSIONS, undefined, 'direct'],
    [BOTH, undefined, 'direct'],
    [MODERN, undefined, 'session over stateless'],
    [SESSIONS, UPSTREAM, 'direct'],
    [undefined, UPSTREAM, 'direct'],
    [MODERN, GATEWAY, 'session over stateless'],
    [undefined, GATEWAY, 'session over stateless'],
    // The server has changed its era since the session was opened.
    [MODERN, UPSTREAM, 'unknown-session'],
    [SESSIONS, GATEWAY, 'unknown-session'],
  ])('to a server of %j in the session %j goes by %s', async (carried, target, expected) => {
    expect(await takerOf(SESSION, carried, target)).toBe(expected);
  });

  it('goes over the streams of a server of HTTP+SSE', async () => {
    expect(await takerOf(SESSION, SESSIONS, UPSTREAM, true)).toBe('legacy sessions');
  });
});

describe('a message of a client of legacy SSE', () => {
  it.each([
    [BRIDGED, false, 'bridge'],
    [ENDPOINT, true, 'direct'],
    // The server has changed its transport since the session was opened.
    [BRIDGED, true, 'unknown-session'],
    [ENDPOINT, false, 'unknown-session'],
  ])('in the session %j to a server (HTTP+SSE: %s) goes by %s', async (target, isLegacySse, expected) => {
    expect(await takerOf(LEGACY_SSE, SESSIONS, target, isLegacySse)).toBe(expected);
  });
});

it('[LEG-03] opens its stream by what the upstream speaks once the session is initialized', async () => {
  let supportedVersions: SupportedVersions = { sessions: ['2025-11-25'], stateless: [] };
  const offers: UpstreamOffer[] = [];
  const adapter = createBridgeAdapter({
    clientSessions: {
      async waitUntilInitialized() {
        supportedVersions = { sessions: [], stateless: ['2026-07-28'] };
        return { version: 'v', hash: 'h', target: { kind: 'gateway' } } satisfies SessionFacts;
      },
    } as never,
    adapterInSession(_session, offer) {
      offers.push(offer);
      return { openStream: () => Promise.resolve({ kind: 'error', reason: 'internal' }) } as never;
    },
    adapterForKnown: () => expect.fail('asks for a lost session'),
  });
  const offer = (): UpstreamOffer => ({
    supportedVersions,
    catalogFor: () => expect.fail('asks for a definition'),
  });
  await adapter.openStream({} as OutboundStream, offer);
  expect(offers).toMatchObject([{ supportedVersions: { stateless: ['2026-07-28'] } }]);
});
