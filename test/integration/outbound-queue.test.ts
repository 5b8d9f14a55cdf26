// What the gateway tells a server of sessions besides calls, for clients without sessions: within bounds, and what
// is past them is refused where somebody waits for it.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL, UPSTREAM } from '../support/gateway.js';
import { inTurn, onMethod, resultFor, sessionsOnly, sseEvent, textResult } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { ALL_QUESTIONS, askThenAnswer, FORM_QUESTION, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, errorOf, type Reply, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const META = { 'io.modelcontextprotocol/clientCapabilities': ALL_QUESTIONS };
const PINGS = 400;
const QUIET_MS = 500;
/** Four of them are within a caller's share. */
const LONG = 'word '.repeat(200_000);

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, questions: grantQuestions() },
  upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 2s}'],
  prepare: (upstream) => upstream.obey(sessionsOnly),
});
afterEach(() => {
  rig.upstream.obey(sessionsOnly);
  rig.upstream.forget();
});

const answers = (): readonly HostileRequest[] =>
  rig.upstream.seen().filter(({ message }) => message !== undefined && 'result' in message);

/** A count once it has stood still for a while. */
async function settled(count: () => number): Promise<number> {
  for (let last = -1; last !== count(); await sleep(QUIET_MS)) last = count();
  return count();
}

/** Asked once, and what answers it. */
async function ask(): Promise<JsonObject> {
  const asked = resultOf(await callStateless(rig.access, 'read_record', { id: 'one' }, META));
  const [key = ''] = Object.keys(asked['inputRequests'] as JsonObject);
  const response = { action: 'accept', content: { person: LONG } };
  const requestState = asked['requestState'] ?? '';
  return { ...CALL, inputResponses: { [key]: response }, requestState, _meta: META };
}

const answer = (again: JsonObject): Promise<Reply> => requestStateless(rig.access, 'tools/call', again);

describe('[H-05] what a server of sessions is told', () => {
  it('is few answers to pings at a time; its call goes on', async () => {
    const pings = Array.from({ length: PINGS }, (_, id) =>
      sseEvent({ jsonrpc: '2.0', id: `ping-${id}`, method: 'ping' }),
    );
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', (request) => ({
          kind: 'chunks',
          contentType: 'text/event-stream',
          chunks: [pings.join('') + sseEvent(resultFor(request, textResult('done')))],
          ending: 'end',
        })),
        // None is taken, so each that is sent stays under way.
        ({ message }) => (message !== undefined && 'result' in message ? { kind: 'hold' } : undefined),
      ),
    );
    const bob = rig.as(await rig.gateway.token(UPSTREAM, { sub: 'bob' }));
    const reply = await callStateless(bob, 'read_record', { id: 'one' });
    expect(resultOf(reply)).toMatchObject(textResult('done'));
    await expect.poll(() => answers().length, PATIENT).toBeGreaterThan(0);
    expect(await settled(() => answers().length)).toBeLessThan(PINGS / 2);
  });

  it('is no more of clients than their share: past it an answer is refused, and may come again', async () => {
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', (request) =>
          askThenAnswer(request, [{ id: `asked-${request.index}`, ...FORM_QUESTION }]),
        ),
        ({ message }) => (message !== undefined && 'result' in message ? { kind: 'hold' } : undefined),
      ),
    );
    const asked = await Promise.all(Array.from({ length: 5 }, ask));
    const replies = await Promise.all(asked.map(answer));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 503]);
    const over = replies.findIndex(({ status }) => status === 503);
    const refused = replies[over] as Reply;
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect(errorOf(refused)).toMatchObject({
      data: { 'dev.sallyport/decision': { reason: 'overloaded' } },
    });
    const again = async (): Promise<number> => (await answer(asked[over] ?? {})).status;
    await expect.poll(again, PATIENT).toBe(200);
    expect(rig.upstream.uses()).toHaveLength(5);
  });
});
