// A client of HTTP+SSE at an endpoint of several upstreams: it is told what to use instead, wherever it looks.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { describe, expect, it } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { bearer } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const INSTEAD = /Use Streamable HTTP/;

const rig = shared(() => startMergedRig());

async function connect(url: string, token: string | undefined): Promise<Client> {
  const client = new Client({ name: 'old', version: '1.0.0' });
  const requestInit = { headers: bearer(token) };
  await client.connect(new SSEClientTransport(new URL(url), { requestInit }));
  return client;
}

describe('[MRG-26] a client of HTTP+SSE', () => {
  it('finds no channel at an endpoint, and one at each of its members', async () => {
    const { url, token } = rig.access;
    await expect(connect(`${url}/sse`, token)).rejects.toMatchObject({ code: 404 });
    await expect(connect(url, token)).rejects.toMatchObject({ code: 405 });
    const client = await connect(`${rig.gateway.url('left')}/sse`, await rig.gateway.token('left'));
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
    await client.close();
  });

  it.each([
    ['GET', '/sse'],
    ['POST', '/sse'],
    ['POST', '/message'],
    ['GET', '/message'],
  ])('is told what to use instead: %s %s', async (method, path) => {
    const answer = await fetch(rig.access.url + path, { method });
    expect(answer.status).toBe(404);
    expect(await answer.text()).toMatch(INSTEAD);
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  });

  it('is told so where it probes, once it is known', async () => {
    const accept = { accept: 'text/event-stream' };
    const answer = await fetch(rig.access.url, {
      headers: { ...accept, ...bearer(rig.access.token) },
    });
    expect(answer.status).toBe(405);
    expect(await answer.json()).toMatchObject({
      error: { message: expect.stringMatching(INSTEAD) },
    });
    expect((await fetch(rig.access.url, { headers: accept })).status).toBe(401);
  });

  it('reaches nothing, and every other unknown path says nothing', async () => {
    rig.forget();
    await fetch(`${rig.access.url}/sse`, { headers: bearer(rig.access.token) });
    expect([...rig.left.seen(), ...rig.right.seen()]).toEqual([]);
    for (const path of ['/sse/', '/SSE', '/sse/x', '/events']) {
      const answer = await fetch(rig.access.url + path);
      expect([path, answer.status, await answer.text()]).toEqual([path, 404, '']);
    }
  });
});
