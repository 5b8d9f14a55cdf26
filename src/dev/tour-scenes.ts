// The scenes of the tour: what is announced, what is done, and what is compared, one defence each.
// Contract §6 has the outcomes that they announce.

import {
  callTool,
  check,
  code,
  DECISION_KEY,
  listNames,
  member,
  NOT_FOUND,
  type Scene,
  status,
  UNKNOWN_TOOL,
  untouched,
  withoutIds,
  withSession,
} from './tour-checks.js';
import { requestInSession, requestStateless } from './tour-client.js';

const RESOURCE_NOT_FOUND = -32002;
const HEADER_MISMATCH = -32020;

const allowed: Scene = {
  title: 'An engineer reads a ticket',
  expect: 'the ticket arrives; the token of the caller stays at the gate',
  run: (stage) =>
    withSession(stage, 'engineer', async (session, token) => {
      const response = await callTool(session, 'get_ticket', { project: 'web', id: 'T-101' });
      const id = member(response.message, 'result', 'structuredContent', 'id');
      const calls = stage.upstream.seen().filter((seen) => seen.method === 'tools/call');
      const carried = stage.upstream
        .seen()
        .filter(
          (seen) =>
            seen.headers['authorization'] !== undefined || JSON.stringify(seen).includes(token),
        );
      return [
        check(
          'ticket T-101',
          response.status === 200 && id === 'T-101',
          response.body.slice(0, 120),
        ),
        check('one call reached the server', calls.length === 1, calls.length),
        check('no token reached the server', carried.length === 0, `${carried.length} with it`),
      ];
    }),
};

const filtered: Scene = {
  title: 'The list shows what this caller may use, and nothing else',
  expect: 'four of six tools; get_customer and delete_ticket are not there',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const names = (await listNames(session)).sort().join(' ');
      const expected = 'export_all get_ticket list_tickets search_docs';
      return [check(expected, names === expected, names)];
    }),
};

const hidden: Scene = {
  title: 'A tool that is not for you is no tool',
  expect: 'calling delete_ticket and a tool that does not exist gives the same answer',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const forbidden = await callTool(session, 'delete_ticket', { id: 'T-101' });
      const unknown = await callTool(session, UNKNOWN_TOOL, { id: 'T-101' });
      const same = withoutIds(forbidden) === withoutIds(unknown);
      return [
        code(forbidden, NOT_FOUND, 'unknown tool'),
        check('equal but for ids', same, `${withoutIds(forbidden)} / ${withoutIds(unknown)}`),
        untouched(stage),
      ];
    }),
};

const argument: Scene = {
  title: 'The right tool with the wrong argument',
  expect: 'project finance is refused with a reason that a model can act on',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const response = await callTool(session, 'get_ticket', { project: 'finance', id: 'T-104' });
      const result = member(response.message, 'result');
      const reason = member(result, '_meta', DECISION_KEY, 'reason');
      return [
        check(
          'a result that is an error',
          member(result, 'isError') === true,
          response.body.slice(0, 120),
        ),
        check('reason arguments-invalid', reason === 'arguments-invalid', reason),
        untouched(stage),
      ];
    }),
};

const scope: Scene = {
  title: 'A token without the scope, from a stateless client',
  expect: 'a challenge that names the scope to ask for',
  run: async (stage) => {
    const token = await stage.mint('support', { scopes: ['tickets:read'] });
    stage.upstream.forget();
    const params = { name: 'get_customer', arguments: { id: 'C-7' } };
    const response = await requestStateless({ url: stage.url, token }, 'tools/call', params);
    const challenge = response.headers.get('www-authenticate') ?? '';
    const asks = challenge.includes('insufficient_scope') && challenge.includes('customers:read');
    return [
      status(response, 403),
      check('insufficient_scope, customers:read', asks, challenge),
      untouched(stage),
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
    const record = member(response.message, 'result', 'structuredContent');
    const note = String(member(record, 'note'));
    const content = JSON.stringify(member(response.message, 'result', 'content') ?? null);
    const leaks = [card, secret].filter((value) => response.body.includes(value)).length;
    return [
      check('customer C-7', member(record, 'id') === 'C-7', response.body.slice(0, 120)),
      check('neither secret anywhere in the answer', leaks === 0, `${leaks} secrets`),
      check('[redacted:…] in the structured copy', note.includes('[redacted:'), 'no placeholder'),
      check('[redacted:…] in the text', content.includes('[redacted:'), 'no placeholder'),
    ];
  },
};

/** What a client would load, hide or run: images, markup, links to script. */
const ACTIVE = /!\[[^\]]*\]\(|<img|<!--|\]\(\s*javascript:/i;
/** Control and format characters but for white space: terminal escapes, zero width, tags. */
const UNSEEN = /(?![\n\r\t])[\p{Cc}\p{Cf}]/u;

const neutralized: Scene = {
  title: 'A page that was tampered with',
  expect: 'the words arrive; images, markup, terminal escapes and invisible letters do not',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const response = await callTool(session, 'search_docs', { query: 'returns' });
      const content = member(response.message, 'result', 'content');
      const [block] = Array.isArray(content) ? content : [];
      const text = String(member(block, 'text'));
      return [
        check(
          'the words of the page',
          text.includes('within 30 days'),
          response.body.slice(0, 120),
        ),
        check('no active content', !ACTIVE.test(text), ACTIVE.exec(text)?.[0]),
        check('no escapes, no invisible letters', !UNSEEN.test(text), 'some remained'),
      ];
    }),
};

const lie: Scene = {
  title: 'A header that says search_docs over a body that says delete_ticket',
  expect: 'refused before anybody believes either',
  run: async (stage) => {
    const token = await stage.mint('engineer');
    stage.upstream.forget();
    const params = { name: 'delete_ticket', arguments: { id: 'T-101' } };
    const endpoint = { url: stage.url, token };
    const response = await requestStateless(endpoint, 'tools/call', params, {
      'mcp-name': 'search_docs',
    });
    return [
      status(response, 400),
      code(response, HEADER_MISMATCH, 'header mismatch'),
      untouched(stage),
    ];
  },
};

const resource: Scene = {
  title: 'An internal page beside the handbook',
  expect: 'the handbook can be read; the internal page does not exist',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const secret = await session.request('resources/read', { uri: 'desk://internal/salaries' });
      const away = untouched(stage);
      const page = await session.request('resources/read', { uri: 'desk://handbook/returns' });
      return [
        code(secret, RESOURCE_NOT_FOUND, 'resource not found'),
        away,
        check('the handbook page', page.body.includes('30 days'), page.body.slice(0, 120)),
      ];
    }),
};

const stolen: Scene = {
  title: 'A session id in other hands',
  expect: 'with a valid token of somebody else it is as unknown as an invented one',
  run: (stage) =>
    withSession(stage, 'engineer', async (session) => {
      const endpoint = { url: stage.url, token: await stage.mint('support') };
      const theft = await requestInSession(endpoint, session.id, 'tools/list');
      const invented = await requestInSession(
        endpoint,
        `${session.id.slice(0, -2)}AA`,
        'tools/list',
      );
      const same = withoutIds(theft) === withoutIds(invented);
      return [
        status(theft, 404),
        check('equal to an invented id', same, `${withoutIds(theft)} / ${withoutIds(invented)}`),
        untouched(stage),
      ];
    }),
};

const audience: Scene = {
  title: 'A good token for another server',
  expect: '401, and the way to a token for this one',
  run: async (stage) => {
    const token = await stage.mint('engineer', { audience: `${stage.url}-other` });
    stage.upstream.forget();
    const response = await requestStateless({ url: stage.url, token }, 'tools/list');
    const challenge = response.headers.get('www-authenticate') ?? '';
    const shows = challenge.includes('resource_metadata=') && challenge.includes('invalid_token');
    const tokenUses = stage.upstream.seen().filter((seen) => JSON.stringify(seen).includes(token));
    return [
      status(response, 401),
      check('invalid_token, resource_metadata', shows, challenge),
      check('the token went nowhere', tokenUses.length === 0, `${tokenUses.length} with it`),
    ];
  },
};

const drifted: Scene = {
  title: 'The server changes what a reviewed tool says',
  expect: 'get_ticket disappears for everyone until it is reviewed again or restored',
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
        code(call, NOT_FOUND, 'unknown tool'),
        check('equal to a tool that does not exist', same, withoutIds(call)),
        untouched(stage),
      ];
    }),
};

/** The tour, in its order. The drift comes last, because it outlives its scene. */
export const SCENES: readonly Scene[] = [
  allowed,
  filtered,
  hidden,
  argument,
  scope,
  redacted,
  neutralized,
  lie,
  resource,
  stolen,
  audience,
  drifted,
];
