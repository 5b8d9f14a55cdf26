// Two spellings of one number as the ids of requests that are in flight together: some servers take them for one id. The
// second is refused in every transport; one spelling twice, or after the other has its answer, is not.

import { expect, it } from 'vitest';
import { type World, withWorld } from '../compat/rig.js';
import { openRawChannel } from '../support/http-sse-clients.js';
import { bearer, openSession, post, sessionHeaders, statelessParts } from '../support/wire-client.js';

const TOOLS = ['work', 'wait'].map((name) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object' },
}));

/** Sends a call with an id as it is written; resolves with the status of the POST and its text. */
type Send = (id: string, name: string) => Promise<{ readonly status: number; readonly text: string }>;

function callText(id: string, name: string): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}"}}`;
}

const OPEN: { readonly [transport: string]: (world: World) => Promise<Send> } = {
  stateless:
    async ({ access }) =>
    (id, name) => {
      const { body, headers } = statelessParts('tools/call', { name });
      return post(access, JSON.stringify(body).replace('"id":1', `"id":${id}`), headers);
    },
  sessions: async (world) => {
    const session = await world.openSession();
    return (id, name) => post(world.access, callText(id, name), sessionHeaders(session.id));
  },
  'sessions of an aggregate': async (world) => {
    const url = world.gateway.url('all');
    const access = { url, token: await world.gateway.token('all') };
    const session = await openSession(access);
    return (id, name) => post(access, callText(id, `u_${name}`), sessionHeaders(session.id));
  },
  'HTTP+SSE': async ({ access }) => {
    const headers = bearer(access.token);
    const channel = await openRawChannel(`${access.url}/sse`, headers);
    const json = { ...headers, 'content-type': 'application/json' };
    const send = async (body: string) => {
      const response = await fetch(channel.address, { method: 'POST', headers: json, body });
      return { status: response.status, text: await response.text() };
    };
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo };
    await send(JSON.stringify({ jsonrpc: '2.0', id: 99, method: 'initialize', params }));
    await channel.answer(99);
    await send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    return async (id, name) => {
      const reply = await send(callText(id, name));
      if (reply.status !== 202) return reply;
      const answer = await channel.answer(Number(id));
      return { status: 'error' in answer ? 400 : 200, text: JSON.stringify(answer) };
    };
  },
};

it.each(Object.keys(OPEN))('[X-23] are refused, in %s', async (transport) => {
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  await withWorld(
    {
      tools: TOOLS,
      upstream: ['pinning: {maxAge: 1h}'],
      result: () => ({ content: [] }),
      more: 'endpoints:\n  all: {issuers: [test], upstreams: {u: {prefix: u_}}}\n',
    },
    async (world) => {
      const send = await OPEN[transport]?.(world);
      if (send === undefined) throw new Error('no such transport');
      world.upstream.forget();
      world.upstream.obey((request) =>
        request.body.includes('wait') ? { kind: 'honest', after: finished } : undefined,
      );
      const waiting = send('1', 'wait');
      await expect.poll(() => world.upstream.uses().length).toBe(1);
      for (const id of ['1.0', '1e0', '10e-1']) {
        const refused = await send(id, 'work');
        expect([id, refused.status]).toEqual([id, 400]);
        expect(refused.text).toContain('whose id is the same number is in progress');
      }
      expect(world.upstream.uses()).toHaveLength(1);
      for (const id of ['2', '1.5']) expect(await send(id, 'work')).toMatchObject({ status: 200 });
      finish();
      expect((await waiting).status).toBe(200);
      if (transport !== 'HTTP+SSE') expect((await send('1.0', 'work')).status).toBe(200);
    },
  );
});
