// A server that gives back what the gateway shows it: no caller ever reads a credential of the gateway's own,
// wherever it stands and however it is written, and nothing that the gateway writes holds one.

import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { body, jsonBody, progressThenResult, resultFor, stream } from '../support/hostile-acts.js';
import { type Act, type HostileRequest, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { makeSecret, makeSecretFiles, type SecretFiles } from '../support/secrets.js';
import { startTokenServer } from '../support/tokens.js';
import { callStateless, requestStateless } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

/** Every detector off: what removes these credentials is no matter of the profile. */
const OFF =
  'inspection: {profiles: {open: {request: {secrets: off}, result: {secrets: off, pii: {action: off}, activeContent: off, invisible: off, injection: off}}}}\n';

const NAMES = ['static', 'phrase', 'basic', 'client', 'exchange'] as const;
type Name = (typeof NAMES)[number];

let files: SecretFiles;
/** What must never come back, by upstream. */
const configured: { [name in Name]: string[] } = {
  static: [makeSecret()],
  // Nothing about it looks random.
  phrase: ['open-the-gate-please'],
  basic: [`robot-${makeSecret()}`],
  client: [makeSecret()],
  exchange: [makeSecret()],
};

const upstream = shared(() => startHostileUpstream());
const server = shared(() => startTokenServer());
afterAll(async () => {
  await files?.close();
});
const gateway = sharedGateway(async () => {
  files = await makeSecretFiles();
  const [token = '', phrase = '', password = '', client = '', exchanger = ''] = NAMES.map(
    (name) => configured[name][0],
  );
  const pair = Buffer.from(`robot:${password}`).toString('base64');
  configured.basic.push(pair);
  const fixed = async (name: string, header: string, value: string): Promise<string> =>
    `{type: static, header: ${header}, value: {file: ${await files.write(name, value)}}}`;
  const issued = async (type: string, name: string, secret: string): Promise<string> =>
    `{type: ${type}, tokenEndpoint: ${JSON.stringify(server.url)}, network: loopback, clientId: ${name}, clientSecret: {file: ${await files.write(name, secret)}}, resource: ${JSON.stringify(upstream.url)}}`;
  const own = await fixed('own', 'X-Own', makeSecret());
  const credentials: { readonly [name in Name]: string } = {
    static: await fixed('static', 'Authorization', `Bearer ${token}`),
    phrase: await fixed('phrase', 'X-Key', phrase),
    basic: await fixed('basic', 'Authorization', `Basic ${pair}`),
    client: await issued('client-credentials', 'client', client),
    exchange: await issued('token-exchange', 'exchange', exchanger),
  };
  return {
    policies: { open: ALLOW_ALL, questions: grantQuestions() },
    more: OFF,
    upstreams: NAMES.map((name) => ({
      name,
      url: `${upstream.url}?for=${name}`,
      more: [
        'inspect: open',
        'identity: {}',
        `credentials: ${credentials[name]}`,
        `pinning: {mode: off, maxAge: 10m, credentials: ${own}}`,
      ],
    })),
  };
});
afterEach(() => upstream.repent());

async function accessTo(name: Name): Promise<{ readonly url: string; readonly token: string }> {
  return { url: gateway.url(name), token: await gateway.token(name) };
}

/** The credential and the assertion that a request carried. */
function shownIn({ headers }: HostileRequest): readonly string[] {
  const shown = [headers['authorization'], headers['x-key'], headers['sallyport-assertion']];
  return shown.filter((value) => value !== undefined).map((value) => value.replace(/^\w+ /, ''));
}

const percentOf = (value: string): string =>
  [...value].map((unit, at) => (at % 2 === 0 ? `%${unit.charCodeAt(0).toString(16)}` : unit)).join('');

const SPELLINGS: readonly ((value: string) => string)[] = [
  (value) => value,
  (value) => Buffer.from(value).toString('hex'),
  (value) => Buffer.from(value).toString('hex').toUpperCase(),
  (value) => Buffer.from(`a${value}!`).toString('base64'),
  (value) => Buffer.from(`\u0000\u0001${value}`).toString('base64'),
  (value) => Buffer.from(`????${value}`).toString('base64url'),
  percentOf,
  (value) => `Bearer ${value}`,
];

/** What the upstream can spell of what it saw and of what is configured. */
function spelt(request: HostileRequest, name: Name): readonly string[] {
  return [...shownIn(request), ...configured[name]].flatMap((value) => SPELLINGS.map((spell) => spell(value)));
}

const read = { id: 'one' };

type Echo = (request: HostileRequest, forms: readonly string[]) => Act;

const ECHOES: readonly (readonly [where: string, echo: Echo])[] = [
  [
    'a text',
    (request, forms) => jsonBody(resultFor(request, { content: [{ type: 'text', text: forms.join(' and ') }] })),
  ],
  [
    'an error',
    (request, forms) =>
      jsonBody({
        jsonrpc: '2.0',
        id: request.id ?? 0,
        error: { code: -32000, message: forms.join(' '), data: { headers: forms } },
      } as JsonObject),
  ],
  [
    'an error of HTTP',
    (request, forms) =>
      jsonBody(
        {
          jsonrpc: '2.0',
          id: request.id ?? 0,
          error: { code: -32603, message: forms.join(' ') },
        } as JsonObject,
        500,
      ),
  ],
  [
    'structured content, names too',
    (request, forms) =>
      jsonBody(
        resultFor(request, {
          content: [],
          structuredContent: Object.fromEntries(
            // Names that differ in their case alone are no valid message.
            forms.filter((one) => one !== one.toUpperCase()).map((one, at) => [one, [at, one]]),
          ),
        }),
      ),
  ],
  [
    'a cursor and metadata',
    (request, forms) =>
      jsonBody(
        resultFor(request, {
          content: [],
          nextCursor: forms.join(),
          _meta: { 'com.example/a': forms.join() },
        }),
      ),
  ],
  ['a notification', (request, forms) => progressThenResult(request, forms)],
  [
    'a log message in a stream',
    (request, forms) =>
      stream([
        {
          jsonrpc: '2.0',
          method: 'notifications/message',
          params: { level: 'info', data: { forms } },
        } as JsonObject,
        resultFor(request, { content: [] }),
      ]),
  ],
  [
    'a long text, beside the event loop',
    (request, forms) =>
      body(
        JSON.stringify(
          resultFor(request, {
            content: [{ type: 'text', text: `${'quiet words '.repeat(8000)}${forms.join(' ')}` }],
          }),
        ),
      ),
  ],
];

/** Nothing of what was shown or configured stands in what the gateway wrote. */
async function expectNothingWritten(forms: readonly string[]): Promise<void> {
  for (const text of [gateway.log(), JSON.stringify(await gateway.audit())]) {
    expect(forms.filter((one) => text.includes(one))).toEqual([]);
  }
}

const META = { progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'debug' };

describe.each(NAMES)('an upstream with %s credentials', (name) => {
  it('[CRD-14] gives them back in every place and spelling, and no caller reads them', async () => {
    const access = await accessTo(name);
    const all: string[] = [];
    for (const [where, echo] of ECHOES) {
      let forms: readonly string[] = [];
      upstream.obey((request) => {
        if (request.method !== 'tools/call') return undefined;
        forms = spelt(request, name);
        return echo(request, forms);
      });
      const { text } = await callStateless(access, 'read_record', read, META);
      expect([where, forms.length > SPELLINGS.length]).toEqual([where, true]);
      expect([where, forms.filter((one) => text.includes(one))]).toEqual([where, []]);
      expect([where, text]).toEqual([where, expect.stringContaining('upstream-credential')]);
      all.push(...forms);
    }
    await expectNothingWritten(all);
  });

  it('[CRD-14] gives them back in a list, and no caller reads them', async () => {
    const access = await accessTo(name);
    let forms: readonly string[] = [];
    upstream.obey((request) => {
      if (request.method !== 'resources/list') return undefined;
      forms = spelt(request, name);
      const resources = forms.map((title, at) => ({ uri: `file:///${at}`, name: `r${at}`, title }));
      return jsonBody(resultFor(request, { resources }));
    });
    const { text } = await requestStateless(access, 'resources/list');
    expect(forms.filter((one) => text.includes(one))).toEqual([]);
    expect(text).toContain('upstream-credential');
  });
});

describe("the gateway's credentials", () => {
  it('[CRD-14] that were issued for one caller come back to no other', async () => {
    const one = await accessTo('exchange');
    let first: readonly string[] = [];
    upstream.obey((request) => {
      if (request.method !== 'tools/call') return undefined;
      if (first.length === 0) first = spelt(request, 'exchange');
      return jsonBody(resultFor(request, { content: [{ type: 'text', text: first.join(' ') }] }));
    });
    await callStateless(one, 'read_record', read);
    const sub = `other-${randomBytes(4).toString('hex')}`;
    const token = await gateway.token('exchange', { sub });
    const { text } = await callStateless({ url: one.url, token }, 'read_record', read);
    expect(first.filter((each) => text.includes(each))).toEqual([]);
    expect(text).toContain('[redacted:upstream-credential#');
  });

  it('[CRD-14] stand in no question of a server', async () => {
    const { url, token } = await accessTo('static');
    const session = await openRawSession(url, { token, capabilities: ALL_QUESTIONS });
    let forms: readonly string[] = [];
    upstream.obey((request) => {
      if (request.method !== 'tools/call') return undefined;
      forms = spelt(request, 'static');
      const requestedSchema = { type: 'object', properties: { a: { type: 'string' } } };
      const params = { message: forms.join(' '), requestedSchema };
      return askThenAnswer(request, [{ id: 'q', method: 'elicitation/create', params }], 5);
    });
    const asked = await session.ask(9, 'tools/call', { name: 'read_record', arguments: read });
    const text = JSON.stringify(asked.messages);
    expect(asked.messages[0]).toMatchObject({ method: 'elicitation/create' });
    expect(forms.filter((each) => text.includes(each))).toEqual([]);
    expect(text).toContain('[redacted:upstream-credential#');
  });
});
