// What a caller gets to see of something that was allowed and is still held, once the ground of it is gone: its token,
// its session, the rule, the upstream. The rows are those of docs/reference/access-leases.md.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DENY_ALL, endSession, startChangingRig } from '../support/changing-rig.js';
import { ALLOW_ALL } from '../support/gateway.js';
import {
  EVERY_KIND,
  type Held,
  HOLD_ALL,
  holdEach,
  type Kind,
  messagesOf,
  outcomesOf,
  placeOf,
} from '../support/held-access.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { bearer, sessionHeaders } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const rig = shared(() => startChangingRig());

/** How something that was held ended, or that it did not. */
type Ending = {
  readonly says: string;
  readonly isOver: boolean;
  /** The messages that came last, but for changes of lists. */
  readonly messages: readonly JsonObject[];
  /** Of its last outcome; absent where it has none yet, or where two ends race for it. */
  readonly outcome?: { readonly action: string; readonly reasons: readonly string[] };
};

const CLOSED = { isOver: true, messages: [] } as const;
/** The stream closes without a word, and the reason is on record. */
const withheld = (reason: string): Ending => ({
  ...{ ...CLOSED, says: `closes without a message, on record as ${reason}` },
  outcome: { action: 'withheld', reasons: [reason] },
});
/** The last event of the stream is a refusal. */
const refused = (code: number, reason: string): Ending => ({
  ...{ isOver: true, says: `closes with the error ${code}, on record as ${reason}` },
  messages: [{ error: expect.objectContaining({ code }) }],
  outcome: { action: 'withheld', reasons: [reason] },
});
const closed: Ending = {
  ...{ ...CLOSED, says: 'closes without a message, and nothing of it is on record' },
  outcome: { action: 'forwarded', reasons: [] },
};
/** MCP 2026-07-28, subscriptions: a server that ends one answers its request. */
const completed: Ending = {
  ...{ isOver: true, says: 'closes with a complete result' },
  messages: [{ result: expect.objectContaining({ resultType: 'complete' }) }],
  outcome: { action: 'forwarded', reasons: [] },
};
/** Two timers or listeners fire in one turn of the event loop: which of them is recorded is left open. */
const dropped: Ending = { says: 'closes without its result', isOver: true, messages: [] };
const open: Ending = { says: 'stays open', isOver: false, messages: [] };

type Expected = readonly (readonly [row: string, kind: Kind, ending: Ending])[];

let held: ReadonlyMap<Kind, Held>;
function heldOf(kind: Kind): Held {
  const one = held.get(kind);
  if (one === undefined) throw new Error(`nothing is held of the kind ${kind}`);
  return one;
}

/** Which row asks when the files change. */
function rowOf(kind: Kind): number {
  if (kind.includes('subscription')) return 9;
  if (kind === 'resumed response') return 8;
  return kind.includes('response') ? 2 : 4;
}

function methodOf(kind: Kind): string {
  if (kind.includes('subscription')) return 'subscriptions/listen';
  return kind.includes('response') ? 'tools/call' : 'GET';
}

/** The call whose response broke off and was resumed has an outcome of its own, which comes before. */
const outcomesBefore = (kind: Kind): number => (kind === 'resumed response' ? 1 : 0);

async function lastOutcome(kind: Kind): Promise<Ending['outcome']> {
  const find = () => outcomesOf(rig.gateway, heldOf(kind), methodOf(kind));
  await expect.poll(async () => (await find()).length, PATIENT).toBeGreaterThan(outcomesBefore(kind));
  const { action, reasons } = (await find()).at(-1)?.['decision'] ?? {};
  return { action, reasons };
}

async function expectEnding(kind: Kind, { isOver, messages, outcome }: Ending): Promise<void> {
  const one = heldOf(kind);
  expect(one.listening.isOver()).toBe(isOver);
  if (outcome === undefined && isOver) {
    expect(messagesOf(one).filter((message) => 'result' in message)).toEqual([]);
    return;
  }
  expect(messagesOf(one)).toEqual(messages.map((message) => expect.objectContaining(message)));
  if (outcome !== undefined) expect(await lastOutcome(kind)).toEqual(outcome);
}

/** Opens what a table names, takes its ground away, and waits until what must close has closed. */
function whenLost(
  what: string,
  expected: Expected,
  lose: () => Promise<void>,
  claims: () => JsonObject = () => ({}),
): void {
  describe(what, () => {
    beforeAll(async () => {
      rig.forget();
      for (const upstream of [rig.left, rig.right]) upstream.obey(HOLD_ALL);
      const kinds = expected.map(([, kind]) => kind);
      held = await holdEach(rig, kinds, what, claims());
      await lose();
      const closing = expected.filter(([, , { isOver }]) => isOver);
      const isDone = (): boolean => closing.every(([, kind]) => heldOf(kind).listening.isOver());
      await vi.waitFor(() => expect(isDone()).toBe(true), PATIENT);
      // A response on a legacy SSE stream ends, and its stream does not.
      for (const [, kind, { messages }] of expected)
        await vi.waitFor(
          () => expect(messagesOf(heldOf(kind)).length).toBeGreaterThanOrEqual(messages.length),
          PATIENT,
        );
    });
    afterAll(async () => {
      await rig.gateway.writePolicy('open', ALLOW_ALL);
      await rig.applySettings();
      rig.left.repent();
      rig.right.repent();
    });
    it.each(expected.map(([row, kind, ending]) => [row, kind, ending.says, ending] as const))(
      '%s: %s %s',
      (_row, kind, _says, ending) => expectEnding(kind, ending),
    );
  });
}

let endsAt = 0;
whenLost(
  'when the token expires',
  [
    ['row 2', 'stateless response', withheld('token-expired')],
    ['row 2', 'session response', withheld('token-expired')],
    ['row 3', 'session stream', closed],
    ['rows 3 and 8', 'resumed response', closed],
    ['rows 3 and 9', 'subscription', completed],
    ['row 3', 'legacy SSE stream', closed],
    ['rows 2 and 3', 'response on a legacy SSE stream', dropped],
    ['rows 2 and 12', 'aggregate response', withheld('token-expired')],
    ['rows 3 and 12', 'aggregate session stream', closed],
    ['rows 3 and 12', 'aggregate subscription', completed],
  ],
  async () => expect(Date.now()).toBeLessThan(endsAt * 1000),
  () => {
    endsAt = Date.now() / 1000 + 3;
    return { exp: endsAt };
  },
);

whenLost(
  'when the caller is revoked',
  [
    ['row 2', 'stateless response', withheld('token-revoked')],
    ['row 2', 'session response', withheld('token-revoked')],
    ['row 5', 'session stream', closed],
    ['rows 5 and 8', 'resumed response', closed],
    ['rows 5 and 9', 'subscription', completed],
    ['row 5', 'legacy SSE stream', closed],
    ['rows 2 and 5', 'response on a legacy SSE stream', dropped],
    ['rows 2 and 12', 'aggregate response', withheld('token-revoked')],
    ['rows 5 and 12', 'aggregate session stream', closed],
    ['rows 5 and 12', 'aggregate subscription', completed],
  ],
  async () => {
    for (const { subject } of held.values()) await rig.revokeSubject(subject);
  },
);

whenLost(
  'when a rule denies it',
  [
    ['row 2', 'stateless response', refused(-32602, 'denied-by-rule')],
    ['row 2', 'session response', refused(-32602, 'denied-by-rule')],
    ['row 7', 'session stream', open],
    ['row 8', 'resumed response', closed],
    ['row 9', 'subscription', completed],
    ['row 7', 'legacy SSE stream', open],
    [
      'row 2',
      'response on a legacy SSE stream',
      {
        ...refused(-32602, 'denied-by-rule'),
        isOver: false,
        says: 'is refused on the stream, which stays',
      },
    ],
    ['rows 2 and 12', 'aggregate response', refused(-32602, 'denied-by-rule')],
    ['rows 7 and 12', 'aggregate session stream', open],
    ['rows 9 and 12', 'aggregate subscription', completed],
  ],
  () => rig.applyPolicy(DENY_ALL),
);

whenLost(
  'when the session is ended by its client',
  [
    ['row 6', 'session response', refused(1404, 'unknown-session')],
    ['row 6', 'session stream', closed],
    ['rows 6 and 8', 'resumed response', closed],
    ['rows 6 and 12', 'aggregate response', refused(1404, 'unknown-session')],
    ['rows 6 and 12', 'aggregate session stream', closed],
  ],
  async () => {
    for (const { kind, token, session = '' } of held.values())
      await endSession(rig.gateway.url(placeOf(kind)), {
        ...bearer(token),
        ...sessionHeaders(session),
      });
  },
);

whenLost(
  'when the session is revoked',
  [
    ['row 2', 'session response', refused(1404, 'unknown-session')],
    ['rows 5 and 7', 'session stream', closed],
    ['rows 5 and 8', 'resumed response', closed],
    ['row 5', 'legacy SSE stream', closed],
    ['rows 2 and 5', 'response on a legacy SSE stream', dropped],
    ['rows 2 and 12', 'aggregate response', refused(1404, 'unknown-session')],
    ['rows 5, 7 and 12', 'aggregate session stream', closed],
  ],
  async () => {
    for (const { subject } of held.values()) await rig.revokeSessionOf(subject);
  },
);

whenLost(
  'when the upstream is removed',
  [
    ['row 2', 'stateless response', refused(1502, 'upstream-unavailable')],
    ['row 2', 'session response', refused(1502, 'upstream-unavailable')],
    ['row 4', 'session stream', closed],
    ['rows 4 and 8', 'resumed response', closed],
    ['rows 4 and 9', 'subscription', completed],
    ['row 4', 'legacy SSE stream', closed],
    ['rows 2 and 4', 'response on a legacy SSE stream', dropped],
    ['rows 2 and 12', 'aggregate response', refused(1502, 'upstream-unavailable')],
    ['rows 4 and 12', 'aggregate session stream', { ...open, says: 'goes on with the other' }],
    ['rows 4 and 12', 'aggregate subscription', { ...open, says: 'goes on with the other' }],
  ],
  () => rig.removeLeft(),
);

whenLost(
  'when its issuer may sign by other algorithms alone',
  [
    ['row 2', 'stateless response', withheld('token-signature')],
    ['row 2', 'session response', withheld('token-signature')],
    ['row 4', 'session stream', closed],
    ['rows 4 and 8', 'resumed response', closed],
    ['rows 4 and 9', 'subscription', completed],
    ['row 4', 'legacy SSE stream', closed],
    ['rows 2 and 4', 'response on a legacy SSE stream', dropped],
    ['rows 2 and 12', 'aggregate response', withheld('token-signature')],
    ['rows 4 and 12', 'aggregate session stream', closed],
    ['rows 4 and 12', 'aggregate subscription', completed],
  ],
  () => rig.applySettings(['algorithms: [ES256, RS256]', 'algorithms: [RS256]']),
);

whenLost(
  'when a backend is taken out of its aggregate',
  [
    ['row 12', 'session response', open],
    ['row 12', 'aggregate response', refused(1502, 'upstream-unavailable')],
    ['rows 4 and 12', 'aggregate session stream', { ...open, says: 'goes on with the other' }],
    ['rows 4 and 12', 'aggregate subscription', { ...open, says: 'goes on with the other' }],
  ],
  () => rig.applySettings(['{left: {prefix: l_}, right: {}}', '{right: {}}']),
);

whenLost(
  'when files change that are not its ground',
  EVERY_KIND.map((kind) => [`row ${rowOf(kind)}`, kind, open] as const),
  async () => {
    await rig.applyPolicy(`${ALLOW_ALL}# changed\n`);
    await rig.applySettings(['test: {issuer:', 'test: {keysMaxAge: 2h, issuer:']);
    // Whoever asks does so in the same turn; this takes many.
    await rig.gateway.metrics();
  },
);
