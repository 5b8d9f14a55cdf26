// Messages that cross between the eras: what is written again for the other side keeps the bytes of what it holds.

import { expect } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { body, inTurn, onMethod, resultFor, sessionsOnly, statelessOnly, textResult } from '../support/hostile-acts.js';
import { paramsOf } from '../support/hostile-upstream.js';
import { ALL_QUESTIONS, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  listenOn,
  openSession,
  post,
  requestStateless,
  resultOf,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { type CompatRow, withWorld } from './rig.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
/** No double holds the first and the last, and one is written in two ways. */
const PARAMS =
  '{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":' +
  '{"type":"number","minimum":1.0,"maximum":9007199254740993,"default":1e1}}}}';
const REPLY = '{"action":"accept","content":{"n":9007199254740993,"m":1.10}}';
const POLICIES = { open: ALLOW_ALL, questions: grantQuestions() };
const UPSTREAM = ['pinning: {maxAge: 10m}'];

export const rows: readonly CompatRow[] = [
  {
    id: 'numbers-of-an-elicitation-in-a-session',
    area: 'messages',
    source: 'RFC 8259 §6',
    given:
      'A server of sessions asks a stateless client by a form with numbers that no double holds, under such an id, and gets such numbers back.',
    verdict: 'accepts',
    sees: 'The form and the reply arrive with every digit as it was written.',
    run: () => {
      const ask = `event: message\ndata: {"jsonrpc":"2.0","id":9007199254740993,"method":"elicitation/create","params":${PARAMS}}\n\n`;
      const order = inTurn(
        sessionsOnly,
        onMethod('tools/call', (request) => {
          const own = JSON.stringify(resultFor(request, textResult('answered')));
          return {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: [ask, `event: message\ndata: ${own}\n\n`],
            ending: 'end',
            paceMs: 100,
          };
        }),
      );
      return withWorld({ policies: POLICIES, upstream: UPSTREAM, order }, async (world) => {
        const _meta = { 'io.modelcontextprotocol/clientCapabilities': ALL_QUESTIONS };
        const asked = await requestStateless(world.access, 'tools/call', { ...CALL, _meta });
        expect(asked.text).toContain(`"params":${PARAMS}`);
        const { requestState = '', inputRequests } = resultOf(asked);
        const [key = ''] = Object.keys(inputRequests ?? {});
        const again = { ...CALL, requestState, inputResponses: { [key]: {} }, _meta };
        const parts = statelessParts('tools/call', again, 2);
        const text = JSON.stringify(parts.body).replace(`"${key}":{}`, `"${key}":${REPLY}`);
        expect((await post(world.access, text, parts.headers)).text).toContain('answered');
        const bodies = (): string =>
          world.upstream
            .seen()
            .map((one) => one.body)
            .join('\n');
        await expect.poll(bodies, PATIENT).toContain(`{"jsonrpc":"2.0","id":9007199254740993,"result":${REPLY}}`);
      });
    },
  },
  {
    id: 'numbers-of-an-elicitation-without-sessions',
    area: 'messages',
    source: 'RFC 8259 §6',
    given: 'A stateless server asks a client of sessions by a form with numbers that no double holds.',
    verdict: 'accepts',
    sees: 'The form arrives with every digit as it was written.',
    run: () => {
      const order = inTurn(
        statelessOnly,
        onMethod('tools/call', (request) => {
          if (paramsOf(request)['inputResponses'] !== undefined)
            return body(JSON.stringify(resultFor(request, textResult('answered'))));
          const result = { resultType: 'input_required', inputRequests: { who: {} } };
          const who = `"who":{"method":"elicitation/create","params":${PARAMS}}`;
          return body(JSON.stringify(resultFor(request, result)).replace('"who":{}', who));
        }),
      );
      return withWorld({ policies: POLICIES, upstream: UPSTREAM, order }, async (world) => {
        const { id } = await openSession(world.access, { elicitation: {} });
        const stream = await listenOn(
          await fetch(world.access.url, {
            method: 'POST',
            headers: {
              ...sessionHeaders(id),
              authorization: `Bearer ${world.access.token}`,
              accept: 'application/json, text/event-stream',
              'content-type': 'application/json',
            },
            body: JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: CALL }),
          }),
        );
        await expect.poll(() => stream.text(), PATIENT).toContain(`"params":${PARAMS}`);
        stream.leave();
      });
    },
  },
];
