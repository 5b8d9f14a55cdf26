// The stages of the pipeline, each over ports of literals: their order, and that a stage which refuses or throws
// ends its request with that reason, before anything after it runs and with one record.

import { describe, expect, it } from 'vitest';
import type { Reason } from '../../../src/policy/reasons.js';
import { fold } from '../../../src/policy/record.js';
import { applyEdits } from '../../../src/protocol/json/json.js';
import type { Ports, Snapshot } from '../../../src/proxy/ports.js';
import { catalog, policiesOf, principal } from '../policy/samples.js';
import {
  CALLER,
  encode,
  GOOD_STEPS,
  type PartialPorts,
  type Replaced,
  type Run,
  requestOf,
  runRequest,
  SNAPSHOT,
  type Step,
  TOOL,
} from './pipeline-rig.js';

/** The steps up to one that ends the request, and how it ends. */
function stepsTo(last: Step): readonly Step[] {
  return [...GOOD_STEPS.slice(0, GOOD_STEPS.indexOf(last) + 1), 'send', 'close'];
}

/** That the request ended at this step with this reason alone: one response, one record. */
function expectEnd(run: Run, last: Step, reason: Reason, status: number): void {
  expect(run.steps).toEqual(stepsTo(last));
  expect(run.sent.map((one) => one.status)).toEqual([status]);
  expect(run.records).toHaveLength(1);
  // Only what was forwarded can be withheld.
  const ended = last === 'forward' ? { verdict: 'allow', action: 'withheld' } : { verdict: 'deny', action: 'refused' };
  expect(run.records[0]?.decision).toMatchObject({ ...ended, reasons: [reason] });
}

describe('a request that every stage lets pass', () => {
  it('[PIP-01] goes through them in one order, and its record is closed last', async () => {
    const { steps, sent, records, reported } = await runRequest();
    expect(steps).toEqual(GOOD_STEPS);
    expect(sent).toMatchObject([{ status: 200, body: expect.stringContaining('fine') }]);
    expect(records).toHaveLength(1);
    expect(records[0]?.decision).toMatchObject({ verdict: 'allow', action: 'forwarded' });
    expect(reported).toEqual([]);
  });

  it('keeps in its record what was cut before its arguments were mended', async () => {
    const inputSchema = { type: 'object', properties: { id: { type: 'integer' } } };
    const _meta = { progressToken: null };
    const { records } = await runRequest({
      snapshot: {
        catalogFor: () => catalog({ tools: { [TOOL]: { inputSchema } } }),
        mending: { coerce: true, drop: ['other'] },
      },
      incoming: requestOf('tools/call', { name: TOOL, arguments: { id: '5', other: 1 }, task: null, _meta }),
    });
    expect(records[0]?.findings.map(({ detector, path }) => [detector, path])).toEqual([
      ['null-members', '/params/_meta/progressToken'],
      ['null-members', '/params/task'],
      ['dropped-argument', '/params/arguments/other'],
      ['coerced-argument', '/params/arguments/id'],
    ]);
  });

  it('[PIP-01] goes through the same order where each stage has to wait', async () => {
    const later = <T>(value: T): Promise<T> => new Promise((go) => setImmediate(() => go(value)));
    const { steps, sent } = await runRequest({
      ports: {
        identity: { authenticate: () => later(CALLER) },
        limits: { take: () => later({ ok: true }) },
        audit: { recordDecision: () => later(true) },
      },
    });
    expect(steps).toEqual(GOOD_STEPS);
    expect(sent).toMatchObject([{ status: 200 }]);
  });

  it('[PIP-01] is sent on behalf of the caller who was authorized, whatever its record says', async () => {
    const callers: unknown[] = [];
    await runRequest({
      ports: {
        audit: {
          async recordDecision(record) {
            fold(record, { caller: { principal: principal({ subject: 'eve' }) } });
            return true;
          },
        },
        upstreams: {
          async forward(_upstream, { caller: by }) {
            callers.push(by.principal);
            return { kind: 'error', reason: 'upstream-unavailable' };
          },
        },
      },
    });
    expect(callers).toEqual([CALLER]);
  });

  it('[PIP-01] is for an upstream that there is: any other is unknown, and nothing runs', async () => {
    const { steps, sent } = await runRequest({
      ports: { upstreams: { snapshot: () => undefined } },
    });
    expect(steps).toEqual(['send']);
    expect(sent).toMatchObject([{ status: 404, body: '' }]);
  });
});

/** What each stage says when it refuses. */
const REFUSALS: readonly (readonly [Step, Reason, number, Replaced])[] = [
  ['authenticate', 'token-missing', 401, { ports: unverified('token-missing') }],
  ['authenticate', 'store-unavailable', 503, { ports: unverified('store-unavailable') }],
  ['slot', 'overloaded', 503, { incoming: { acquireSlot: () => undefined } }],
  ['admit', 'malformed-json', 400, { incoming: { body: encode('{') } }],
  ['admit', 'overloaded', 503, { ports: unread('overloaded') }],
  ['decide', 'tool-unpinned', 200, { snapshot: { catalogFor: () => catalog() } }],
  ['open state', 'invalid-message', 400, { ports: { requestState: { open: () => undefined } } }],
  ['inspect arguments', 'arguments-content', 200, { ports: refusingArguments() }],
  ['limits', 'rate-limited', 200, { ports: limited({ ok: false, retryAfterMs: 1 }) }],
  ['limits', 'store-unavailable', 503, { ports: limited('unavailable') }],
  ['record', 'audit-unavailable', 503, { ports: { audit: { recordDecision: async () => false } } }],
  ['forward', 'upstream-unavailable', 502, { ports: unreachable() }],
];

function unverified(reason: Reason): PartialPorts {
  return { identity: { authenticate: () => ({ reason }) } };
}

function unread(error: 'overloaded'): PartialPorts {
  return { inspection: { readJson: () => ({ ok: false, error }) } };
}

function refusingArguments(): PartialPorts {
  const refused = { kind: 'refuse', reason: 'arguments-content', findings: [] } as const;
  return { inspection: { request: () => refused } };
}

function limited(outcome: ReturnType<Ports['limits']['take']>): PartialPorts {
  return { limits: { take: () => outcome } };
}

function unreachable(): PartialPorts {
  return {
    upstreams: { forward: async () => ({ kind: 'error', reason: 'upstream-unavailable' }) },
  };
}

describe('a stage that refuses', () => {
  it.each(REFUSALS)('[PIP-02] %s: %s ends the request there', async (step, reason, status, by) => {
    const run = await runRequest(by);
    expectEnd(run, step, reason, status);
    expect(run.reported).toEqual([]);
  });

  it('[PIP-02] decide: pins-stale ends the request there, after it was tried to list again', async () => {
    let freshened = 0;
    const run = await runRequest({
      snapshot: { isFresh: false },
      ports: {
        upstreams: {
          async refreshListing() {
            freshened += 1;
            return false;
          },
        },
      },
    });
    expectEnd(run, 'decide', 'pins-stale', 503);
    expect(freshened).toBe(1);
  });

  it('[PIP-02] a caller beyond its streams is refused before a subscription is forwarded', async () => {
    const params = { notifications: { toolsListChanged: true } };
    const run = await runRequest({
      incoming: requestOf('subscriptions/listen', params),
      ports: { streams: { reserve: () => undefined } },
    });
    expect(run.steps).toEqual(['authenticate', 'admit', 'decide', 'send', 'close']);
    expect(run.sent).toMatchObject([{ status: 503 }]);
    expect(run.records[0]?.decision).toMatchObject({ action: 'refused', reasons: ['overloaded'] });
  });

  it.each(['GET', 'DELETE'] as const)('[PIP-02] %s needs a caller before all else', async (verb) => {
    const run = await runRequest({
      incoming: { httpMethod: verb, headers: { 'mcp-session-id': 'sealed' }, body: encode('') },
      ports: unverified('token-expired'),
    });
    expectEnd(run, 'authenticate', 'token-expired', 401);
  });
});

/** The port or the table on which each stage depends, broken. */
const BROKEN: readonly (readonly [Step, (fail: () => never) => Replaced])[] = [
  ['authenticate', (fail) => ({ ports: { identity: { authenticate: fail } } })],
  ['slot', (fail) => ({ incoming: { acquireSlot: fail } })],
  ['admit', (fail) => ({ ports: { inspection: { readJson: fail } } })],
  ['decide', (fail) => ({ snapshot: { catalogFor: fail } })],
  ['open state', (fail) => ({ ports: { requestState: { open: fail } } })],
  ['inspect arguments', (fail) => ({ ports: { inspection: { request: fail } } })],
  ['limits', (fail) => ({ ports: { limits: { take: fail } } })],
  ['record', (fail) => ({ ports: { audit: { recordDecision: fail } } })],
  ['forward', (fail) => ({ ports: { upstreams: { forward: fail } } })],
];

/** The same for what may have to be waited for. */
const REJECTING: readonly (readonly [Step, (fail: () => Promise<never>) => Replaced])[] = [
  ['authenticate', (fail) => ({ ports: { identity: { authenticate: fail } } })],
  ['admit', (fail) => ({ ports: { inspection: { readJson: fail } } })],
  [
    'decide',
    (fail) => ({
      ports: { upstreams: { refreshListing: fail } },
      snapshot: { supportedVersions: undefined, isFresh: false },
    }),
  ],
  ['inspect arguments', (fail) => ({ ports: { inspection: { request: fail } } })],
  ['record', (fail) => ({ ports: { audit: { recordDecision: fail } } })],
  ['forward', (fail) => ({ ports: { upstreams: { forward: fail } } })],
];

describe('a stage that breaks', () => {
  const error = new Error('broken');

  it.each(BROKEN)('[PIP-02] %s: an exception ends the request there', async (step, by) => {
    const run = await runRequest(
      by(() => {
        throw error;
      }),
    );
    expectEnd(run, step, 'internal', 500);
    expect(run.reported).toEqual([error]);
  });

  it.each(REJECTING)('[PIP-02] %s: a rejection ends the request there', async (step, by) => {
    const run = await runRequest(by(() => Promise.reject(error)));
    // To list again is no step of its own, and comes before the catalog is read.
    expectEnd(run, step === 'decide' ? 'admit' : step, 'internal', 500);
    expect(run.reported).toEqual([error]);
  });

  it('[PIP-02] limits: a store that fails is one that cannot be asked', async () => {
    const run = await runRequest({ ports: { limits: { take: () => Promise.reject(error) } } });
    expectEnd(run, 'limits', 'store-unavailable', 503);
  });
});

describe('a request whose caller took time to verify', () => {
  it('[E-37] is decided under what was listed meanwhile', async () => {
    const versionsOf = (id: number) => ({
      config: `config-${id}`,
      policy: `policy-${id}`,
      pins: `pins-${id}`,
    });
    // Both say that they are fresh: the upstream has been listed meanwhile.
    const before: Snapshot = {
      ...SNAPSHOT,
      versions: versionsOf(1),
      catalogFor: () => catalog(),
      supportedVersions: undefined,
    };
    const after: Snapshot = { ...SNAPSHOT, id: 2, versions: versionsOf(2) };
    let current = before;
    const run = await runRequest({
      ports: {
        upstreams: { snapshot: () => current, ...unreachable().upstreams },
        identity: {
          async authenticate() {
            await Promise.resolve();
            current = after;
            return CALLER;
          },
        },
      },
    });
    expectEnd(run, 'forward', 'upstream-unavailable', 502);
    expect(run.records[0]?.versions?.pins).toBe('pins-2');
  });
});

describe('a subscription whose inspection took time', () => {
  it('[T-01] leaves as the rules that hold afterwards narrow it, in the one place it has', async () => {
    const readable = (resources: readonly string[]): Snapshot => ({
      ...SNAPSHOT,
      policies: policiesOf([
        {
          ...{ id: 'all', effect: 'allow', who: { anyone: true } },
          what: { upstreams: ['github'], resources },
        },
      ]),
    });
    let current = readable(['memo://open/*']);
    let changes = 0;
    let reserved = 0;
    const forwarded: string[] = [];
    await runRequest({
      incoming: requestOf('subscriptions/listen', {
        notifications: { resourceSubscriptions: ['memo://open/one', 'memo://open/two'] },
      }),
      ports: {
        leases: { countChanges: () => changes },
        streams: {
          reserve() {
            reserved += 1;
            return { open: () => undefined, release: () => undefined };
          },
        },
        inspection: {
          async request() {
            current = readable(['memo://open/one']);
            changes += 1;
            return { kind: 'clear', findings: [] };
          },
        },
        upstreams: {
          snapshot: () => current,
          async forward(_upstream, { authorized: { admitted } }) {
            forwarded.push(applyEdits(admitted.text, admitted.edits));
            return { kind: 'error', reason: 'upstream-unavailable' };
          },
        },
      },
    });
    const sent = forwarded.map((text) => JSON.parse(text).params.notifications);
    expect(sent).toEqual([{ resourceSubscriptions: ['memo://open/one'] }]);
    expect(reserved).toBe(1);
  });
});

describe('a request to a server of HTTP+SSE that does not accept it in time', () => {
  it('[LEG-10] is not cancelled under the id of its client, which the server does not know', async () => {
    const version = '2024-11-05';
    const params = { name: TOOL, arguments: {} };
    const run = await runRequest({
      incoming: {
        headers: { 'mcp-session-id': 'sealed' },
        legacySsePath: 'message',
        body: encode(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })),
      },
      snapshot: {
        legacySse: { messageUrl: '', isDirect: true },
        supportedVersions: { sessions: [version], stateless: [] },
      },
      ports: {
        sessions: {
          open: () => ({ version, target: { kind: 'legacy-sse', messageEndpoint: '/' } }),
        },
        legacySse: {
          findClientEnd: () => undefined,
          requests: { seal: () => 'sealed-id', open: () => undefined, recall: () => undefined },
        },
        upstreams: { forward: async () => ({ kind: 'error', reason: 'upstream-timeout' }) },
      },
    });
    expect(run.sent).toMatchObject([{ status: 504 }]);
    expect(run.reported).toEqual([]);
  });
});

describe('the end of a session', () => {
  it('[PIP-01] is 204 though the upstream cannot be told', async () => {
    const ended: string[] = [];
    const run = await runRequest({
      incoming: { httpMethod: 'DELETE', headers: { 'mcp-session-id': 'sealed' }, body: encode('') },
      ports: {
        sessions: {
          open: () => ({ version: '2025-11-25', target: { kind: 'upstream', id: 's' } }),
          end: (sealed) => void ended.push(sealed),
        },
        upstreams: { endSession: async () => ({ kind: 'error', reason: 'upstream-unavailable' }) },
      },
    });
    expect(ended).toEqual(['sealed']);
    expect(run.sent).toMatchObject([{ status: 204 }]);
    expect(run.records[0]?.decision).toMatchObject({ action: 'forwarded', reasons: [] });
    expect(run.records[0]?.result).toMatchObject({ status: 'ok', http: 204 });
  });
});
