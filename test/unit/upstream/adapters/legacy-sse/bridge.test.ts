// A client of legacy SSE whose upstream speaks something else: its stream waits until its session is initialized.

import { expect, it } from 'vitest';
import type { OutboundStream } from '../../../../../src/policy/outbound.js';
import type { SessionFacts } from '../../../../../src/protocol/admitted-request.js';
import type { SupportedVersions } from '../../../../../src/protocol/negotiation.js';
import { createBridgeAdapter } from '../../../../../src/upstream/adapters/legacy-sse/bridge.js';
import type { UpstreamOffer } from '../../../../../src/upstream/adapters/upstream-adapter.js';

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
