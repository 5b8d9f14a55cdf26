// What clients send over HTTP that is unusual and legal.

import { expect } from 'vitest';
import { bearer, post, statelessParts } from '../support/wire-client.js';
import { type CompatRow, type World, withWorld } from './rig.js';

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
    id: 'empty-query',
    area: 'clients',
    source: 'docs/contract.md, listeners and paths',
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
