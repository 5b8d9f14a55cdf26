import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { deriveDemoSecrets } from '../../../src/dev/demo-content.js';
import { type DemoUpstream, startDemoUpstream } from '../../../src/dev/demo-upstream.js';
import { openTourSession, requestStateless, type TourSession } from '../../../src/dev/tour-client.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';

let desk: DemoUpstream;
beforeAll(async () => {
  desk = await startDemoUpstream({ seed: 'unit' });
});
afterEach(() => {
  desk.behave();
  desk.forget();
});
afterAll(() => desk.close());

const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

function post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(desk.url, { method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body: text });
}

async function withSession<T>(use: (session: TourSession) => Promise<T>): Promise<T> {
  const session = await openTourSession({ url: desk.url, token: undefined });
  const result = await use(session);
  await session.close();
  return result;
}

function resultOf(message: JsonObject | undefined): JsonObject {
  return message?.['result'] as JsonObject;
}

async function callText(name: string, args: JsonObject = {}): Promise<string> {
  const answer = await requestStateless({ url: desk.url, token: undefined }, 'tools/call', {
    name,
    arguments: args,
  });
  return answer.body;
}

async function listTools(): Promise<JsonObject[]> {
  return withSession(async (session) => {
    const tools: JsonObject[] = [];
    let params: JsonObject = {};
    for (;;) {
      const result = resultOf((await session.request('tools/list', params)).message);
      tools.push(...(result['tools'] as JsonObject[]));
      if (result['nextCursor'] === undefined) return tools;
      params = { cursor: result['nextCursor'] };
    }
  });
}

describe('sessions', () => {
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

  it('[D-05] refuses a missing session with 400, an unknown and an ended one with 404', async () => {
    expect((await post(list)).status).toBe(400);
    expect((await post(list, { 'mcp-session-id': 'invented' })).status).toBe(404);
    const session = await openTourSession({ url: desk.url, token: undefined });
    expect((await session.request('tools/list')).status).toBe(200);
    await session.close();
    expect((await session.request('tools/list')).status).toBe(404);
    const get = await fetch(desk.url, { headers: { 'mcp-session-id': session.id } });
    expect(get.status).toBe(404);
  });

  it('[D-05] answers 405 to GET without a session and 404 to any other path', async () => {
    expect((await fetch(desk.url)).status).toBe(405);
    expect((await fetch(`${desk.url}/`)).status).toBe(404);
  });

  it('[D-05] accepts a notification with 202 and an empty body', async () => {
    await withSession(async (session) => {
      const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
      const answer = await post(note, { 'mcp-session-id': session.id });
      expect([answer.status, await answer.text()]).toEqual([202, '']);
    });
  });

  it('[D-05] refuses what is no message: text, arrays, responses', async () => {
    expect(await (await post('{')).json()).toMatchObject({ error: { code: -32700 } });
    expect(await (await post([list])).json()).toMatchObject({ error: { code: -32600 } });
    const response = { jsonrpc: '2.0', id: 1, result: {} };
    expect(await (await post(response)).json()).toMatchObject({ error: { code: -32600 } });
  });
});

describe('the stateless era', () => {
  const META = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const CALL = { name: 'list_tickets', arguments: { project: 'web' } };
  const HEADERS = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'list_tickets',
  };

  async function call(meta: object, headers: Record<string, string>, method = 'tools/call'): Promise<unknown[]> {
    const body = { jsonrpc: '2.0', id: 9, method, params: { ...CALL, _meta: meta } };
    const answer = await post(body, headers);
    const message = (await answer.json()) as { error?: { code: number; data?: unknown } };
    return [answer.status, message.error?.code];
  }

  it('[D-06] answers a request that keeps the rules, with resultType and serverInfo', async () => {
    expect(await call(META, HEADERS)).toEqual([200, undefined]);
    const discover = await requestStateless({ url: desk.url, token: undefined }, 'server/discover');
    expect(resultOf(discover.message)).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      cacheScope: 'private',
    });
  });

  it('[D-06] takes an encoded Mcp-Name', async () => {
    const encoded = `=?base64?${Buffer.from('list_tickets').toString('base64')}?=`;
    expect(await call(META, { ...HEADERS, 'mcp-name': encoded })).toEqual([200, undefined]);
  });

  const { 'mcp-name': _name, ...withoutName } = HEADERS;
  it.each([
    ['another Mcp-Name', { ...HEADERS, 'mcp-name': 'export_all' }],
    ['no Mcp-Name', withoutName],
    ['another Mcp-Method', { ...HEADERS, 'mcp-method': 'tools/list' }],
    ['another version header', { ...HEADERS, 'mcp-protocol-version': '2025-11-25' }],
  ])('[D-06] refuses %s with 400 and -32020', async (_title, headers) => {
    expect(await call(META, headers)).toEqual([400, -32020]);
    // Refused requests are remembered too: "saw nothing" must mean nothing.
    expect(desk.seen().at(-1)).toMatchObject({ method: 'tools/call', name: 'list_tickets' });
  });

  it('[D-06] refuses a missing key with -32602 and a foreign version with -32022', async () => {
    const { 'io.modelcontextprotocol/clientCapabilities': _, ...less } = META;
    expect(await call(less, HEADERS)).toEqual([400, -32602]);
    expect(await call({}, HEADERS)).toEqual([400, -32602]);
    const other = { ...META, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' };
    expect(await call(other, HEADERS)).toEqual([400, -32022]);
  });

  it('[D-06] refuses removed and unknown methods with 404 and -32601', async () => {
    for (const method of ['ping', 'initialize', 'tools/Call']) {
      expect(await call(META, { ...HEADERS, 'mcp-method': method }, method)).toEqual([404, -32601]);
    }
  });

  it('[D-06] answers an unknown tool with 200 and -32602', async () => {
    const answer = await requestStateless({ url: desk.url, token: undefined }, 'tools/call', {
      name: 'nothing',
    });
    expect([answer.status, answer.message?.['error']]).toMatchObject([200, { code: -32602 }]);
  });
});

describe('misbehaviour', () => {
  it('[D-07] leaks secrets that come from the seed, and only when told', async () => {
    expect(deriveDemoSecrets('unit')).toEqual(desk.secrets);
    expect(deriveDemoSecrets('other').card).not.toBe(desk.secrets.card);
    expect(desk.secrets.card).toMatch(/^4\d{15}$/);
    const leaking = await callText('get_customer', { id: 'C-1' });
    expect(leaking).toContain(desk.secrets.card);
    expect(leaking).toContain(desk.secrets.token);
    desk.misbehave({ leak: false });
    const clean = await callText('get_customer', { id: 'C-1' });
    expect(clean).not.toContain(desk.secrets.card);
    expect(clean).not.toContain(desk.secrets.token);
  });

  it('[D-07] makes card numbers whose check digit is right', () => {
    for (const seed of ['a', 'b', 'c', 'd']) {
      const digits = [...deriveDemoSecrets(seed).card].reverse().map(Number);
      const sum = digits.reduce((total, digit, i) => {
        const value = i % 2 === 1 ? digit * 2 : digit;
        return total + (value > 9 ? value - 9 : value);
      }, 0);
      expect(sum % 10).toBe(0);
    }
  });

  it('[D-07] serves a poisoned page: image, markup, escape, invisible letters', async () => {
    const poisoned = await callText('search_docs', { query: 'returns' });
    const text = JSON.parse(poisoned).result.content[0].text as string;
    expect(text).toMatch(/!\[status\]\(https:/);
    expect(text).toMatch(/<img /);
    expect(text.includes(String.fromCodePoint(0x1b))).toBe(true);
    expect(/[\u{e0020}-\u{e007e}]/u.test(text)).toBe(true);
    desk.misbehave({ poison: false });
    expect(await callText('search_docs', { query: 'returns' })).not.toContain('![');
  });

  it('[D-07] drifts in three ways and comes back', async () => {
    const original = await listTools();
    expect(original).toHaveLength(7);
    desk.misbehave({ drift: 'description' });
    expect(differing(await listTools(), original)).toEqual(['get_ticket']);
    desk.misbehave({ drift: 'schema' });
    expect(differing(await listTools(), original)).toEqual(['get_ticket']);
    desk.misbehave({ drift: 'new-tool' });
    expect(differing(await listTools(), original)).toEqual(['sync_mailbox']);
    desk.behave();
    expect(await listTools()).toEqual(original);
  });

  it('[D-07] streams every call on request, and forgets what it saw', async () => {
    desk.misbehave({ stream: true });
    expect(await callText('list_tickets', { project: 'web' })).toMatch(/^event: message\ndata: /);
    expect(desk.seen().at(-1)).toMatchObject({ method: 'tools/call', name: 'list_tickets' });
    desk.forget();
    expect(desk.seen()).toEqual([]);
  });
});

/** Names of the tools that are new or differ from the original. */
function differing(tools: readonly JsonObject[], original: readonly JsonObject[]): unknown[] {
  const known = new Map(original.map((tool) => [tool['name'], JSON.stringify(tool)]));
  return tools.filter((tool) => known.get(tool['name']) !== JSON.stringify(tool)).map((tool) => tool['name']);
}
