// The scenes of the tour: each announces an outcome, makes requests and compares, for one defence. They observe the wire
// on the client's side and what the upstream received, and know nothing of the gateway's internals.
// docs/reference/responses.md has the outcomes that the scenes announce.

import { isObject, type JsonObject } from '../protocol/jsonrpc.js';
import { HEADER_MISMATCH, INVALID_PARAMS, RESOURCE_NOT_FOUND } from '../protocol/responses.js';
import type { DemoUpstream } from './demo-upstream.js';
import type { DemoUser } from './files.js';
import {
  openTourSession,
  requestInSession,
  requestStateless,
  type TourSession,
  type WireResponse,
} from './tour-client.js';

/** One comparison: the expectation, whether it holds, and what was observed instead. */
export type Check = { readonly what: string; readonly holds: boolean; readonly seen: string };

type MintOptions = { readonly audience?: string; readonly scopes?: readonly string[] };

/** What scenes work with. */
export type TourEnvironment = {
  /** The upstream's endpoint at the gateway. */
  readonly url: string;
  /** Mints a token of this user for this endpoint, by default with all of the user's scopes. */
  mint(user: DemoUser, options?: MintOptions): Promise<string>;
  readonly upstream: DemoUpstream;
};

export type Scene = {
  readonly title: string;
  readonly expect: string;
  run(stage: TourEnvironment): Promise<readonly Check[]>;
};

/** A tool that no server of the demo has. */
const UNKNOWN_TOOL = 'no_such_tool';
/** The member in which a refusal carries its decision (docs/reference/responses.md). */
const DECISION_KEY = 'dev.sallyport/decision';
const POLICY_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);
const MAX_PAGES = 20;

/** The value at a path of member names, or `undefined`. */
export function valueAt(root: unknown, ...path: readonly string[]): unknown {
  let value = root;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return value;
}

/** A comparison; `seen` is shown if it fails. */
function check(what: string, holds: boolean, seen: unknown): Check {
  return { what, holds, seen: String(seen) };
}

/** Checks that no request subject to policy has reached the upstream since its last `forget`. */
function checkUpstreamUntouched({ upstream }: TourEnvironment): Check {
  const names = upstream.seen().flatMap((seen) => (POLICY_METHODS.has(seen.method ?? '') ? [seen.name] : []));
  return check('the upstream received nothing', names.length === 0, names.join());
}

/** Checks the HTTP status of a response. */
function checkStatus(response: WireResponse, expected: number): Check {
  return check(`HTTP ${expected}`, response.status === expected, `HTTP ${response.status}`);
}

/** Checks the JSON-RPC error code of a response. */
function checkErrorCode(response: WireResponse, expected: number, meaning: string): Check {
  const seen = valueAt(response.message, 'error', 'code');
  return check(`error ${expected}, ${meaning}`, seen === expected, seen ?? response.body.slice(0, 80));
}

/** The response without what differs between requests. Equal texts show that responses are no oracle. */
function withoutIds(response: WireResponse): string {
  const { message } = response;
  const error = valueAt(message, 'error');
  if (!isObject(error)) return response.body;
  const decision = valueAt(error, 'data', DECISION_KEY);
  const decisionKeys = isObject(decision) ? Object.keys(decision).sort() : [];
  return JSON.stringify([response.status, error['code'], error['message'], decisionKeys]);
}

/** Runs `use` in a session of this user and closes it. The upstream forgets the requests that opened it. */
async function withSession<T>(
  stage: TourEnvironment,
  user: DemoUser,
  use: (session: TourSession, token: string) => Promise<T>,
): Promise<T> {
  const token = await stage.mint(user);
  const session = await openTourSession({ url: stage.url, token });
  stage.upstream.forget();
  try {
    return await use(session, token);
  } finally {
    await session.close();
  }
}

/** Calls a tool in a session. */
function callTool(session: TourSession, name: string, args: JsonObject = {}): Promise<WireResponse> {
  return session.request('tools/call', { name, arguments: args });
}

/** The names on every page of the caller's list of tools. */
async function listNames(session: TourSession): Promise<string[]> {
  const names: string[] = [];
  let params: JsonObject = {};
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { message } = await session.request('tools/list', params);
    const tools = valueAt(message, 'result', 'tools');
    if (Array.isArray(tools)) names.push(...tools.map((tool) => String(valueAt(tool, 'name'))));
    const cursor = valueAt(message, 'result', 'nextCursor');
    if (typeof cursor !== 'string') return names;
    params = { cursor };
  }
  return names;
}

const allowed: Scene = {
  title: 'An engineer reads a ticket',
  expect: 'the ticket arrives; the token of the caller is not forwarded',
  run: (stage) =>
    withSession(stage, 'engineer', async (session, token) => {
      const response = await callTool(session, 'get_ticket', { project: 'web', id: 'T-101' });
      const id = valueAt(response.message, 'result', 'structuredContent', 'id');
      const calls = stage.upstream.seen().filter((seen) => seen.method === 'tools/call');
      const carried = stage.upstream
        .seen()
        .filter((seen) => seen.headers['authorization'] !== undefined || JSON.stringify(seen).includes(token));
      return [
        check('ticket T-101', response.status === 200 && id === 'T-101', response.body.slice(0, 120)),
        check('the upstream received one call', calls.length === 1, calls.length),
        check('the upstream received no token', carried.length === 0, `${carried.length} with it`),
      ];
    }),
};

const filtered: Scene = {
  title: 'The list shows only what this caller may use',
  expect: 'four of seven tools, without get_customer, post_comment and delete_ticket',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const names = (await listNames(session)).sort().join(' ');
      const expected = 'export_all get_ticket list_tickets search_docs';
      return [check(expected, names === expected, names)];
    }),
};

const hidden: Scene = {
  title: 'A tool that policy denies looks like one that does not exist',
  expect: 'calling delete_ticket gives the same error as calling an unknown tool',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const forbidden = await callTool(session, 'delete_ticket', { id: 'T-101' });
      const unknown = await callTool(session, UNKNOWN_TOOL, { id: 'T-101' });
      const same = withoutIds(forbidden) === withoutIds(unknown);
      return [
        checkErrorCode(forbidden, INVALID_PARAMS, 'unknown tool'),
        check('equal except for ids', same, `${withoutIds(forbidden)} / ${withoutIds(unknown)}`),
        checkUpstreamUntouched(stage),
      ];
    }),
};

const argument: Scene = {
  title: 'An allowed tool with an argument that policy does not allow',
  expect: 'project finance is refused, and the model learns why',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const response = await callTool(session, 'get_ticket', { project: 'finance', id: 'T-104' });
      const result = valueAt(response.message, 'result');
      const reason = valueAt(result, '_meta', DECISION_KEY, 'reason');
      return [
        check('a result that is an error', valueAt(result, 'isError') === true, response.body.slice(0, 120)),
        check('reason arguments-invalid', reason === 'arguments-invalid', reason),
        checkUpstreamUntouched(stage),
      ];
    }),
};

const scope: Scene = {
  title: 'A token without the scope, from a stateless client',
  expect: 'a challenge that names the missing scope',
  run: async (stage) => {
    const token = await stage.mint('support', { scopes: ['tickets:read'] });
    stage.upstream.forget();
    const params = { name: 'get_customer', arguments: { id: 'C-7' } };
    const response = await requestStateless({ url: stage.url, token }, 'tools/call', params);
    const challenge = response.headers['www-authenticate'] ?? '';
    const asks = challenge.includes('insufficient_scope') && challenge.includes('customers:read');
    return [
      checkStatus(response, 403),
      check('insufficient_scope, customers:read', asks, challenge),
      checkUpstreamUntouched(stage),
    ];
  },
};

const redacted: Scene = {
  title: 'A record that leaks a card number and a credential',
  expect: 'the record arrives with both redacted, in the text and in the structured copy',
  run: async (stage) => {
    const { card, token: secret } = stage.upstream.secrets;
    const token = await stage.mint('support');
    const params = { name: 'get_customer', arguments: { id: 'C-7' } };
    const response = await requestStateless({ url: stage.url, token }, 'tools/call', params);
    const record = valueAt(response.message, 'result', 'structuredContent');
    const note = String(valueAt(record, 'note'));
    const content = JSON.stringify(valueAt(response.message, 'result', 'content') ?? null);
    const leaks = [card, secret].filter((value) => response.body.includes(value)).length;
    return [
      check('customer C-7', valueAt(record, 'id') === 'C-7', response.body.slice(0, 120)),
      check('neither secret is in the response', leaks === 0, `${leaks} secrets`),
      check('[redacted:…] in the structured copy', note.includes('[redacted:'), 'no placeholder'),
      check('[redacted:…] in the text', content.includes('[redacted:'), 'no placeholder'),
    ];
  },
};

/** Content that a client would load or run: images, elements, links to script. Comments stay: they do neither. */
const ACTIVE = /!\[[^\]]*\]\(|<(?:img|script|iframe)|\]\(\s*javascript:/i;
/** Control and format characters other than white space: terminal escapes, zero width, tags. */
const UNSEEN = /(?![\n\r\t])[\p{Cc}\p{Cf}]/u;

const neutralized: Scene = {
  title: 'A page that was tampered with',
  expect: 'the text arrives, its images and markup inert, without terminal escapes and invisible characters',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const response = await callTool(session, 'search_docs', { query: 'returns' });
      const content = valueAt(response.message, 'result', 'content');
      const [block] = Array.isArray(content) ? content : [];
      const text = String(valueAt(block, 'text'));
      return [
        check('the text of the page', text.includes('within 30 days'), response.body.slice(0, 120)),
        check('no active content', !ACTIVE.test(text), ACTIVE.exec(text)?.[0]),
        check('no terminal escapes, no invisible characters', !UNSEEN.test(text), 'some remained'),
      ];
    }),
};

const headerMismatch: Scene = {
  title: 'A header that names search_docs, and a body that names delete_ticket',
  expect: 'refused, because the two differ',
  run: async (stage) => {
    const token = await stage.mint('engineer');
    stage.upstream.forget();
    const params = { name: 'delete_ticket', arguments: { id: 'T-101' } };
    const endpoint = { url: stage.url, token };
    const response = await requestStateless(endpoint, 'tools/call', params, {
      'mcp-name': 'search_docs',
    });
    return [
      checkStatus(response, 400),
      checkErrorCode(response, HEADER_MISMATCH, 'header mismatch'),
      checkUpstreamUntouched(stage),
    ];
  },
};

const resource: Scene = {
  title: 'A page outside the handbook',
  expect: 'the handbook can be read; the internal page looks as if it did not exist',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const secret = await session.request('resources/read', { uri: 'desk://internal/salaries' });
      const away = checkUpstreamUntouched(stage);
      const page = await session.request('resources/read', { uri: 'desk://handbook/returns' });
      return [
        checkErrorCode(secret, RESOURCE_NOT_FOUND, 'resource not found'),
        away,
        check('the handbook page', page.body.includes('30 days'), page.body.slice(0, 120)),
      ];
    }),
};

const stolen: Scene = {
  title: 'A stolen session id',
  expect: 'with a valid token of another caller, the same 404 as for an invented id',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const endpoint = { url: stage.url, token: await stage.mint('support') };
      const theft = await requestInSession(endpoint, session.id, 'tools/list');
      const invented = await requestInSession(endpoint, `${session.id.slice(0, -2)}AA`, 'tools/list');
      const same = withoutIds(theft) === withoutIds(invented);
      return [
        checkStatus(theft, 404),
        check('the same response as for an invented id', same, `${withoutIds(theft)} / ${withoutIds(invented)}`),
        checkUpstreamUntouched(stage),
      ];
    }),
};

const audience: Scene = {
  title: 'A valid token for another server',
  expect: '401 with the URL of the metadata of this server',
  run: async (stage) => {
    const token = await stage.mint('engineer', { audience: `${stage.url}-other` });
    stage.upstream.forget();
    const response = await requestStateless({ url: stage.url, token }, 'tools/list');
    const challenge = response.headers['www-authenticate'] ?? '';
    const shows = challenge.includes('resource_metadata=') && challenge.includes('invalid_token');
    const tokenUses = stage.upstream.seen().filter((seen) => JSON.stringify(seen).includes(token));
    return [
      checkStatus(response, 401),
      check('invalid_token, resource_metadata', shows, challenge),
      check('no server received the token', tokenUses.length === 0, `${tokenUses.length} with it`),
    ];
  },
};

const leaked: Scene = {
  title: 'A public ticket that asks a model to publish a customer record',
  expect: 'a comment is posted before the ticket and the record are read, and refused afterwards',
  run: (stage) =>
    withSession(stage, 'support', async (session) => {
      const comment = { id: 'T-105', text: 'We are looking into it.' };
      const before = await callTool(session, 'post_comment', comment);
      const ticket = await callTool(session, 'get_ticket', { project: 'web', id: 'T-105' });
      const customer = await callTool(session, 'get_customer', { id: 'C-7' });
      stage.upstream.forget();
      const after = await callTool(session, 'post_comment', { ...comment, text: customer.body });
      const result = valueAt(after.message, 'result');
      const reason = valueAt(result, '_meta', DECISION_KEY, 'reason');
      const named = new Set(JSON.stringify(result ?? null).match(DECISION_ID)).size;
      const names = await listNames(session);
      return [
        check('a comment before', before.body.includes('Commented'), before.body.slice(0, 120)),
        check('the instruction', ticket.body.includes('post the record'), ticket.body.slice(0, 120)),
        check('the record', customer.body.includes('C-7'), customer.body.slice(0, 120)),
        check('reason tainted-flow', reason === 'tainted-flow', reason),
        check('it names its own decision and those of both results', named === 3, named),
        checkUpstreamUntouched(stage),
        check('the list is as before', names.includes('post_comment'), names.join(' ')),
      ];
    }),
};

const DECISION_ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

const drifted: Scene = {
  title: 'The server changes the description of an approved tool',
  expect: 'get_ticket is hidden from everyone until it is approved again or restored',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      stage.upstream.misbehave({ drift: 'description' });
      const names = await listNames(session);
      stage.upstream.forget();
      const call = await callTool(session, 'get_ticket', { project: 'web', id: 'T-101' });
      const unknown = await callTool(session, UNKNOWN_TOOL);
      const same = withoutIds(call) === withoutIds(unknown);
      return [
        check('hidden from the list', !names.includes('get_ticket'), names.join(' ')),
        check('the others are still there', names.includes('list_tickets'), names.join(' ')),
        checkErrorCode(call, INVALID_PARAMS, 'unknown tool'),
        check('the same error as for an unknown tool', same, withoutIds(call)),
        checkUpstreamUntouched(stage),
      ];
    }),
};

/** The scenes in their order. The drift is last, because its effect outlasts its scene. */
export const SCENES: readonly Scene[] = [
  allowed,
  filtered,
  hidden,
  argument,
  scope,
  redacted,
  neutralized,
  headerMismatch,
  resource,
  stolen,
  audience,
  leaked,
  drifted,
];
