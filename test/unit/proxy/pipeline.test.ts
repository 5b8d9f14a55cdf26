// Which view an exchange is decided under, over ports of literals: the order of the controls itself is
// proved through the running gateway.

import { describe, expect, it } from 'vitest';
import { guardArguments } from '../../../src/inspection/requests.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Catalog } from '../../../src/policy/definitions.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import { readJson, readJsonText } from '../../../src/protocol/json/json.js';
import type { Incoming, Outgoing } from '../../../src/protocol/transport.js';
import { handleRequest } from '../../../src/proxy/pipeline.js';
import type { Ports, Snapshot } from '../../../src/proxy/ports.js';
import { FREE_TURNS } from '../../support/turns.js';
import { catalogue, policiesOf, principal } from '../policy/samples.js';

const STATELESS = '2026-07-28';

function refuseUse(): never {
  throw new Error('this exchange has no use for it');
}

function snapshotOf(id: number, offered: Catalog, carried: Snapshot['carried']): Snapshot {
  return {
    id,
    upstream: 'github',
    policies: policiesOf([
      {
        id: 'all',
        effect: 'allow',
        who: { anyone: true },
        what: { upstreams: ['github'], tools: ['*'] },
      },
    ]),
    versions: { config: `config-${id}`, policy: `policy-${id}`, pins: `pins-${id}` },
    profile: {
      name: 'default',
      request: { secrets: 'block' },
      result: {
        secrets: 'redact',
        pii: { action: 'redact', kinds: [] },
        activeContent: 'neutralize',
        invisible: 'strip',
        injection: 'flag',
      },
    },
    profiles: new Map(),
    limits: {
      maxResponseBytes: 1024,
      maxStreamBytesPerMinute: 1024,
      maxValues: 100,
      listTtlMs: 0,
      requestTimeoutMs: 0,
      streamIdleMs: 0,
      exchangeMaxMs: 600_000,
      keepAliveMs: 25_000,
    },
    legacySse: { messageUrl: 'https://mcp.example.com/github/message', isDirect: false },
    carried,
    catalogueFor: () => offered,
    mayShowApps: () => false,
    // Told of now, for every view alike: the upstream has been listed meanwhile.
    isFresh: true,
    challenge: () => '',
  };
}

function incomingCall(): Incoming {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': STATELESS,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'get_issue', arguments: {}, _meta: meta };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  return {
    id: '00000000-0000-4000-8000-000000000000',
    upstream: 'github',
    httpMethod: 'POST',
    headers: {
      'mcp-protocol-version': STATELESS,
      'mcp-method': 'tools/call',
      'mcp-name': 'get_issue',
    },
    repeated: new Set(),
    query: '',
    body: new TextEncoder().encode(JSON.stringify(message)),
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    receivedAt: 0,
    enter: () => true,
    startedMs: 0,
  };
}

describe('an exchange', () => {
  it('[E-37] is decided under what was listed while its caller was verified', async () => {
    const before = snapshotOf(1, catalogue(), undefined);
    const after = snapshotOf(2, catalogue({ tools: { get_issue: {} } }), {
      sessions: [],
      stateless: [STATELESS],
    });
    let current = before;
    let forwarded = 0;
    let record: RequestRecord | undefined;
    const answers: number[] = [];
    const outgoing: Outgoing = {
      isClosed: false,
      also: () => undefined,
      send: (status) => void answers.push(status),
      open: refuseUse,
      write: refuseUse,
      end: refuseUse,
      cut: refuseUse,
    };
    const ports: Ports = {
      snapshot: () => current,
      aggregate: refuseUse,
      claimReply: refuseUse,
      sealCursor: refuseUse,
      openCursor: refuseUse,
      reportLostBackend: refuseUse,
      noteResources: refuseUse,
      recallResource: refuseUse,
      registerBackendRequest: refuseUse,
      findRunningBackends: refuseUse,
      async authenticate() {
        await Promise.resolve();
        current = after;
        return principal();
      },
      forward() {
        forwarded += 1;
        return Promise.resolve({ kind: 'fault', reason: 'upstream-unavailable' });
      },
      recordDecision: () => Promise.resolve(true),
      closeRecord(closed) {
        record = closed;
      },
      keyedHash: () => '',
      inspection: {
        message: (input) => inspectMessage(input),
        request: (input) => guardArguments(input),
      },
      readJson: (source) => (typeof source === 'string' ? readJsonText(source) : readJson(source)),
      loopScheduler: FREE_TURNS,
      limits: { take: refuseUse },
      openSession: refuseUse,
      legacySse: {
        open: refuseUse,
        sealRequest: refuseUse,
        openRequest: refuseUse,
        recallRequest: refuseUse,
        enter: refuseUse,
        find: refuseUse,
      },
      tasks: { seal: refuseUse, open: refuseUse, recall: refuseUse, inputRequestsOf: refuseUse },
      sealSession: refuseUse,
      sealServerRequest: refuseUse,
      openServerRequest: refuseUse,
      recallServerRequest: refuseUse,
      sealEvent: refuseUse,
      openEvent: refuseUse,
      newDecisionId: refuseUse,
      sealState: refuseUse,
      openState: refuseUse,
      endSession: refuseUse,
      freshen: refuseUse,
      digest: refuseUse,
      openStream: refuseUse,
      forwardSessionEnd: refuseUse,
      replyToServer: refuseUse,
      giveUp: refuseUse,
      registerProgress: refuseUse,
      keepProgress: refuseUse,
      findProgress: refuseUse,
      notePage: refuseUse,
      noteListChanged: refuseUse,
      reserveStream: refuseUse,
      registerResponse: refuseUse,
      cancelResponse: refuseUse,
      enterLease: refuseUse,
      countChanges: () => 0,
      pages: { find: refuseUse, keep: refuseUse },
      report(error) {
        throw error;
      },
    };
    await handleRequest(incomingCall(), outgoing, ports);
    expect(forwarded).toBe(1);
    expect(answers).toEqual([502]);
    expect(record?.versions?.pins).toBe('pins-2');
  });
});
