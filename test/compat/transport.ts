// What clients send over HTTP that is unusual and legal.

import { expect } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Order } from '../support/hostile-upstream.js';
import { connectAsked, FORM_QUESTION, grantQuestions } from '../support/sdk-clients.js';
import { makeSecret } from '../support/secrets.js';
import { bearer, hasCompleteResponse, post, sendRaw, statelessParts } from '../support/wire-client.js';
import { type CompatRow, type World, withWorld } from './rig.js';

/** A call that waits for a reply of its client, who may have only this one in progress. */
const REQUESTING: Order = (() => {
  let reply: (() => void) | undefined;
  return (request) => {
    if (request.message !== undefined && request.method === undefined) reply?.();
    if (request.method !== 'tools/call') return undefined;
    const gate = new Promise<void>((resolve) => {
      reply = resolve;
    });
    const asked = { jsonrpc: '2.0', id: 'asked', ...FORM_QUESTION };
    const chunks = [sseEvent(asked), sseEvent(resultFor(request, textResult('answered')))];
    return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'end', gate };
  };
})();

/** Sends a good call with these headers. */
async function callWith(world: World, headers: Readonly<Record<string, string>>): Promise<number> {
  const { access } = world;
  const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
  const response = await fetch(access.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...bearer(access.token),
      ...parts.headers,
      ...headers,
    },
    body: JSON.stringify(parts.body),
  });
  await response.text();
  return response.status;
}

const ACCEPTED = [
  'application/json',
  'application/json, text/event-stream',
  'text/event-stream, application/json',
  'application/json;q=0.9, text/event-stream;q=0.8',
  '*/*',
  'application/*, text/*',
  'application/json, */*;q=0.1',
];

export const rows: readonly CompatRow[] = [
  {
    id: 'accept-of-many-clients',
    area: 'clients',
    source: 'honojs/middleware#1799, OpenLiberty#35727, typescript-sdk#1944',
    given: 'A client names the media types of a response in another order, with weights or by a wildcard.',
    verdict: 'accepts',
    sees: 'The call is answered in one of the types that the client takes.',
    run: () =>
      withWorld({}, async (world) => {
        for (const accept of ACCEPTED) expect([accept, await callWith(world, { accept })]).toEqual([accept, 200]);
      }),
  },
  {
    id: 'host-with-the-default-port',
    area: 'clients',
    source: 'RFC 9110 §4.2.3 and §7.2',
    given: 'A client or a proxy writes the default port of the scheme into `Host`.',
    verdict: 'accepts',
    sees: 'It is served as without the port; another port is refused with 421.',
    run: () =>
      withWorld({ publicUrl: 'http://localhost' }, async ({ access }) => {
        const path = '/.well-known/oauth-protected-resource/u';
        for (const [host, status] of Object.entries({ localhost: 200, 'LOCALHOST:80': 200, 'localhost:443': 421 })) {
          const text = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
          const reply = await sendRaw(Number(new URL(access.url).port), [text], hasCompleteResponse);
          expect([host, reply.status]).toEqual([host, status]);
        }
      }),
  },
  {
    id: 'issuers-that-write-null',
    area: 'clients',
    source: 'RFC 7662 §2.2; the introspection of Ory Hydra (`token_use`)',
    given: 'An issuer that is asked about a token writes `null` for what it has not, and `access_token` for its use.',
    verdict: 'accepts',
    sees: 'The caller is served, without groups and scopes.',
    run: () => {
      const issuer = ['introspection: {clientId: gateway, clientSecret: {env: CLIENT}}'];
      return withWorld({ issuer, env: { CLIENT: makeSecret() } }, async (world) => {
        world.gateway.issuer.answerAbout(() => {
          const exp = Math.floor(Date.now() / 1000) + 60;
          const absent = { groups: null, scope: null, act: undefined };
          const claims = { sub: 'ada', client_id: null, azp: 'ide', aud: world.access.url, exp, ...absent };
          return { active: true, token_type: 'Bearer', token_use: 'access_token', ...claims };
        });
        expect(await callWith(world, { authorization: `Bearer ${makeSecret()}` })).toBe(200);
      });
    },
  },
  {
    id: 'accept-of-other-types-only',
    area: 'clients',
    source: 'RFC 9110 §12.5.1',
    given: 'A client accepts neither JSON nor an event stream.',
    verdict: 'refuses',
    sees: 'The status is 406.',
    run: () =>
      withWorld({}, async (world) => {
        expect(await callWith(world, { accept: 'text/plain' })).toBe(406);
      }),
  },
  {
    id: 'reply-at-the-limit-of-requests',
    area: 'clients',
    source: 'MCP 2025-11-25, elicitation; docs/reference/limits.md#what-one-caller-may-use',
    given: 'A client has as many calls in progress as it may have, and each waits for a reply of its own.',
    verdict: 'accepts',
    sees: 'The reply is let in past the limit, and the call goes on.',
    run: () =>
      withWorld(
        {
          order: REQUESTING,
          policies: { open: ALLOW_ALL, questions: grantQuestions() },
          upstream: ['pinning: {mode: "off"}', 'limits: {concurrency: 1, concurrencyPerCaller: 1}'],
        },
        async ({ access }) => {
          const { client, asked, close } = await connectAsked(access.url, access.token ?? '');
          const result = await client.callTool({ name: 'read_record', arguments: { id: 'one' } });
          expect(JSON.stringify(result)).toContain('answered');
          expect(asked).toHaveLength(1);
          await close();
        },
      ),
  },
  {
    id: 'empty-query',
    area: 'clients',
    source: 'docs/reference/listeners.md#paths',
    given: 'A client appends a query to the path.',
    verdict: 'accepts',
    sees: 'The query is ignored.',
    run: () =>
      withWorld({}, async ({ access }) => {
        const parts = statelessParts('tools/list');
        const url = `${access.url}?session=1`;
        const reply = await post({ ...access, url }, JSON.stringify(parts.body), parts.headers);
        expect(reply.status).toBe(200);
      }),
  },
];
