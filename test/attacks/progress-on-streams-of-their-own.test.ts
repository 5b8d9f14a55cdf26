// Progress of a call is checked by what holds for this call wherever the server sends it: beside the response, on the
// stream of the session, or on a channel of HTTP+SSE. Its labels count too. Source: docs/reference/flows.md.

import { describe, expect, it } from 'vitest';
import { ALLOW_ALL, type AttackRig, UPSTREAM } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, stream, textResult } from '../support/hostile-acts.js';
import type { Act, Order } from '../support/hostile-upstream.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, sendRaw } from '../support/raw-mcp.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { type Access, callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const VALUE = 'C-77-4711-Lovelace';
const TOKEN = 'of-the-call';
const CALL = { name: 'read_record', arguments: { id: 'one' }, _meta: { progressToken: TOKEN } };
const POLICY = `${ALLOW_ALL}  - {id: strictly, effect: require, who: {subjects: [strict]}, what: {tools: [read_record]}, inspect: closed}
sensitive: {${UPSTREAM}/read_record: [/structuredContent/code]}
labels: {${UPSTREAM}: [trusted], ${UPSTREAM}/read_record: [private], ${UPSTREAM}/write_record: [egress]}
flows: [{id: no-leak, from: private, to: egress, effect: deny}]
`;

/** Sends progress that says this. */
const progressOf = (token: unknown, message: string): JsonObject => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: token as string, progress: 1, message },
});
const LAST = 'the last message';

/** Makes the call, which is never answered; all that the client received up to the last message. */
type Way = (rig: AttackRig, access: Access, message: string) => Promise<string>;

async function readUntilLast(response: Response): Promise<string> {
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes(LAST)) break;
  }
  return text;
}

function log(data: string): JsonObject {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } };
}

function held(...messages: readonly JsonObject[]): Act {
  return events('hold', messages);
}

function events(ending: 'hold' | 'end', messages: readonly JsonObject[]): Act {
  return {
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: messages.map((message) => sseEvent(message)),
    ending,
  };
}

/** The token as the server knows it: another one on a channel of HTTP+SSE. */
function tokenIn(request: { readonly message?: JsonObject | undefined }): unknown {
  const { _meta } = (request.message?.['params'] ?? {}) as { readonly _meta?: JsonObject };
  return _meta?.['progressToken'];
}

const besideResponse: Way = async (rig, { token = '' }, message) => {
  rig.upstream.obey(onMethod('tools/call', (one) => held(progressOf(tokenIn(one), message), log(LAST))));
  const { headers } = await openRawSession(rig.access.url, { token });
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: CALL };
  const gone = new AbortController();
  const text = await readUntilLast(await sendRaw(rig.access.url, body, { headers, signal: gone.signal }));
  gone.abort();
  return text;
};

const onSessionStream: Way = async (rig, { token = '' }, message) => {
  const hold: Order = (request) => {
    if (request.method === 'tools/call') return held();
    return request.httpMethod === 'GET' ? held(progressOf(TOKEN, message), log(LAST)) : undefined;
  };
  rig.upstream.obey(hold);
  const { headers } = await openRawSession(rig.access.url, { token });
  const gone = new AbortController();
  const { signal } = gone;
  rig.upstream.forget();
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: CALL };
  sendRaw(rig.access.url, body, { headers, signal }).catch(() => undefined);
  const isThere = () => rig.upstream.seen().some(({ method }) => method === 'tools/call');
  await expect.poll(isThere, PATIENT).toBe(true);
  const accept = 'text/event-stream';
  const response = await fetch(rig.access.url, { headers: { ...headers, accept }, signal });
  const text = await readUntilLast(response);
  gone.abort();
  return text;
};

// The front of a server with HTTP+SSE passes on what has ended.
const onChannel: Way = async (rig, access, message) => {
  rig.upstream.obey(
    onMethod('tools/call', (request) => events('end', [progressOf(tokenIn(request), message), log(LAST)])),
  );
  const { channel, request } = await openChannelCaller(access);
  request('tools/call', CALL).catch(() => undefined);
  await expect.poll(channel.text, PATIENT).toContain(LAST);
  channel.leave();
  return channel.text();
};

describe.each<[string, 'sessions' | 'channels', Way]>([
  ['beside the response', 'sessions', besideResponse],
  ['on the stream of its session', 'sessions', onSessionStream],
  ['on a channel of HTTP+SSE', 'channels', onChannel],
  ['on a channel before a server with sessions', 'sessions', onChannel],
])('the progress of a call %s', (_name, upstream, way) => {
  const rig = sharedGateway({
    era: upstream,
    policies: { open: POLICY },
    more: 'inspection: {profiles: {closed: {result: {secrets: block}}}}',
  });

  const as = async (sub: string): Promise<Access> => rig.as(await rig.gateway.token(UPSTREAM, { sub }));

  it('comes without the sensitive fields of the tool', async () => {
    const text = await way(rig, await as('reader'), JSON.stringify({ code: VALUE, place: 'here' }));
    expect(text).toContain('place');
    expect(text).not.toContain(VALUE);
  });

  it('is inspected under the profile that a rule demands', async () => {
    const message = `A token: ${makeGithubToken()}`;
    expect(await way(rig, await as('lenient'), message)).toContain('A token');
    expect(await way(rig, await as('strict'), message)).not.toContain('A token');
  });

  it('counts for the labels of the tool', async () => {
    const access = await as('labelled');
    expect(await way(rig, access, 'a private word')).toContain('a private word');
    rig.upstream.obey(onMethod('tools/call', (request) => stream([resultFor(request, textResult('written'))])));
    const reply = await callStateless(access, 'write_record', { id: 'one', text: 'x' });
    expect(reply.text).toContain('tainted-flow');
  });
});
