// What names many URIs, or URIs with many readings, takes turns of the event loop: each is decided once, in a turn of its
// own, so that neither a caller nor a server holds up all others.

import { describe, expect, it } from 'vitest';
import { takeTurn } from '../../../src/protocol/json/incremental.js';
import { eachInTurn } from '../../support/timing.js';
import { policiesOf } from '../policy/samples.js';
import {
  eventResponse,
  joinPorts,
  jsonResponse,
  type PartialPorts,
  requestOf,
  resultText,
  runRequest,
} from './pipeline-rig.js';

const COUNT = 100;
/** Encoded dot segments, parameters and letters of several forms: a dozen readings and hundreds of spellings. */
const hostile = (at: number): string => `memo://vault/${at}/${'%252e%252e/e%CC%81;v/%2520+/'.repeat(3)}`;
const HOSTILE = Array.from({ length: COUNT }, (_, at) => hostile(at));
const ID = 'io.modelcontextprotocol/subscriptionId';

/** Everybody may read everything, but for one folder. */
const policies = policiesOf([
  { id: 'all', effect: 'allow', who: { anyone: true }, what: { upstreams: ['github'], resources: ['**'] } },
  {
    id: 'no',
    effect: 'deny',
    who: { anyone: true },
    what: { upstreams: ['github'], resources: ['memo://vault/closed/**'] },
  },
]);
const snapshot = { policies };
const STREAMS: PartialPorts = { streams: { reserve: () => ({ open: () => undefined, release: () => undefined }) } };

/** Ports whose scheduler lets nothing go on without a turn. */
function inTurns(...more: readonly PartialPorts[]) {
  const loopScheduler = eachInTurn();
  return { taken: loopScheduler.taken, ports: joinPorts({ inspection: { loopScheduler } }, STREAMS, ...more) };
}

function answering(text: string): PartialPorts {
  return { upstreams: { forward: () => Promise.resolve(jsonResponse(text)) } };
}

it('charges work that throws for its time, too', () => {
  const charged: number[] = [];
  const loopScheduler = {
    recordTime: (startedMs: number) => charged.push(startedMs),
    waitForTurn: () => undefined,
    pace: () => undefined,
  };
  const fail = (): never => {
    throw new Error('unreadable');
  };
  expect(() => takeTurn({ upstream: 'github', loopScheduler }, fail)).toThrow('unreadable');
  expect(charged).toHaveLength(1);
});

describe('the URIs of a subscription', () => {
  const notifications = { resourceSubscriptions: HOSTILE };

  it('are decided in turns, and once each until its stream is open', async () => {
    const acknowledged = {
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications, _meta: { [ID]: 1 } },
    };
    const text = JSON.stringify({ jsonrpc: '2.0', ...acknowledged });
    const { taken, ports } = inTurns({ upstreams: { forward: () => Promise.resolve(eventResponse(text)) } });
    const { sent, reported } = await runRequest({
      snapshot,
      ports,
      incoming: requestOf('subscriptions/listen', { notifications }),
    });
    expect(reported).toEqual([]);
    expect(sent[0]?.body).toContain(hostile(COUNT - 1));
    expect(taken.length).toBeGreaterThanOrEqual(COUNT);
    expect(taken.length).toBeLessThan(2 * COUNT);
  });

  it('are decided in turns where updates of them come in', async () => {
    const listened = { resourceSubscriptions: ['memo://vault'] };
    const messages = [
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: listened, _meta: { [ID]: 1 } } },
      ...HOSTILE.map((uri) => ({ method: 'notifications/resources/updated', params: { uri, _meta: { [ID]: 1 } } })),
    ];
    const stream = messages.map((message) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    const { taken, ports } = inTurns({
      upstreams: { forward: () => Promise.resolve(eventResponse(...stream.map((text) => text.slice(6, -2)))) },
    });
    await runRequest({ snapshot, ports, incoming: requestOf('subscriptions/listen', { notifications: listened }) });
    expect(taken.length).toBeGreaterThanOrEqual(2 * COUNT);
  });
});

describe('the resources of a list', () => {
  it('are decided in turns however short the page is', async () => {
    const resources = HOSTILE.map((uri) => ({ uri, name: 'one' }));
    const { taken, ports } = inTurns(answering(resultText({ resources, ttlMs: 0, cacheScope: 'private' })));
    const { sent } = await runRequest({ snapshot, ports, incoming: requestOf('resources/list', {}) });
    expect(sent[0]?.body).toContain(hostile(COUNT - 1));
    expect(taken.length).toBeGreaterThanOrEqual(COUNT);
  });
});

describe('the URI of a request', () => {
  it('is decided in a turn', async () => {
    const contents = [{ uri: hostile(1), text: 'fine' }];
    const ofUri = inTurns(answering(resultText({ contents, ttlMs: 0, cacheScope: 'private' })));
    const { records } = await runRequest({
      ...{ snapshot, ports: ofUri.ports, incoming: requestOf('resources/read', { uri: hostile(1) }) },
    });
    expect(records[0]?.decision.action).toBe('forwarded');
    const ofTool = inTurns(answering(resultText({ content: [] })));
    await runRequest({ ports: ofTool.ports });
    expect(ofUri.taken.length).toBe(ofTool.taken.length + 1);
  });
});
