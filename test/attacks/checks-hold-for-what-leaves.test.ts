// A check that comes before the last normalisation reads another thing than what leaves. Whatever a rule or a detector
// forbids is written here in many spellings, in every carrier and every way, and what really left the gateway is read
// again, by readers that are more lenient than ours: nothing that is forbidden may stand in it. What left passes a second
// time as it is, to the byte, and so do the harmless neighbours of each. `LEAVING_SEED` and `LEAVING_ROUNDS` ask for
// other spellings and for more of them.

import { posix } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { memberSpans, spanOf } from '../../src/protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../src/protocol/jsonrpc.js';
import { createRandom, type Random } from '../support/active-content.js';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { connectIn, type EraCaller } from '../support/eras.js';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import { EVERY_WAY, type LawWorld, type Left, startWorld } from '../support/law-worlds.js';
import {
  hostsReadIn,
  PATH_READERS,
  readingsOf,
  resourcesReadIn,
  textsIn,
  valuesAt,
} from '../support/lenient-readers.js';
import { ambiguousStyle, faithfulStyle, writerOf } from '../support/spelt-json.js';
import { combinedSpellings } from '../support/uri-spellings.js';
import { awsKey, githubToken, noise } from '../unit/inspection/samples.js';

/** Every run tries the same spellings; a failure names its own. */
const SEED = Number(process.env['LEAVING_SEED'] ?? 20_261_128);
/** Spellings of each thing in each carrier and way. */
const ROUNDS = Number(process.env['LEAVING_ROUNDS'] ?? 3);
/** Hundreds of requests on a busy machine. */
const TIMEOUT_MS = 60_000 + ROUNDS * 20_000;

const OWN_TOKEN = noise('what the upstream is shown', 43);
const OPEN = 'memo://vault/open/one';
const DENIED = 'memo://vault/keys/root';
const DENIED_BELOW = 'memo://vault/shut/door';
const BLOCKED = 'memo://vault/held/one';
const FORBIDDEN = [DENIED, DENIED_BELOW, BLOCKED];
const TEMPLATE = 'memo://vault/{x}';

const text = { type: 'string' };
const TOOLS: readonly JsonObject[] = [
  {
    name: 'work',
    description: 'Does the work.',
    inputSchema: {
      type: 'object',
      properties: {
        ...{ owner: text, path: text, link: text, note: text, data: {}, list: {} },
        size: { type: 'integer' },
      },
    },
  },
  {
    name: 'erase',
    description: 'Erases what it is told.',
    inputSchema: {
      type: 'object',
      properties: { mode: { type: 'string', default: 'delete' } },
      required: ['mode'],
    },
  },
];

const ALL = 'who: {anyone: true}';
const policyOf = (upstream: string): string => `version: 1
policy: laws
rules:
  - {id: all, effect: allow, ${ALL}, what: {upstreams: [${upstream}], tools: ["*"], prompts: ["*"], resources: ["**", "**#**"], templates: ["${TEMPLATE}"]}}
  - {id: resources, effect: deny, ${ALL}, what: {upstreams: ["*"], resources: ["${DENIED}", "${DENIED_BELOW}/**"]}}
  - {id: owner, effect: deny, ${ALL}, what: {tools: [work]}, args: {owner: {const: forbidden}}}
  - {id: any, effect: deny, ${ALL}, what: {tools: [work]}, when: 'anyArg(a, a.contains("DROP TABLE"))'}
  - {id: path, effect: deny, ${ALL}, what: {tools: [work]}, when: 'has(args.path) && !path.under(args.path, "reports/")'}
  - {id: link, effect: deny, ${ALL}, what: {tools: [work]}, when: 'has(args.link) && url.host(args.link) != "a.example"'}
  - {id: size, effect: deny, ${ALL}, what: {tools: [work]}, when: 'has(args.size) && args.size > 5.0 && args.size < 90.0'}
  - {id: mode, effect: deny, ${ALL}, what: {tools: [erase]}, when: 'args.mode == "delete"'}
`;

const MEMBERS = [
  'arguments: {coerce: true, drop: [task_progress]}',
  'inspect: both',
  'limits: {concurrencyPerCaller: 100}',
];
const PROFILES = `inspection: {profiles: {both: {request: {secrets: block, marks: block}}}}\n${ADMINS}`;

function offer(server: HostileUpstream): void {
  server.offer(() => TOOLS);
  server.answerCalls(() => ({ content: [{ type: 'text', text: 'Done.' }] }));
  server.present({
    list: (kind) => {
      if (kind === 'prompts') return [{ name: 'ask', arguments: [{ name: 'note' }] }];
      if (kind === 'resourceTemplates') return [{ uriTemplate: TEMPLATE, name: 'any' }];
      return kind === 'resources' ? [{ uri: OPEN, name: 'one' }] : [];
    },
    getPrompt: () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Go on.' } }] }),
    readResource: (uri) => [{ uri, text: 'Read.' }],
  });
}

type Client = (typeof EVERY_WAY)[number][0];
/** Where a request has the thing. */
type Carrier = {
  readonly method: string;
  readonly clients?: readonly Client[];
  /** `name`: the name under which the client knows what it is. */
  params(value: Json | undefined, name: (own: string) => string): JsonObject;
  /** The member that is written twice. */
  readonly member: string;
};

const argumentOf = (argument: string, tool = 'work'): Carrier => ({
  method: 'tools/call',
  member: argument,
  params: (value, name) => ({
    name: name(tool),
    arguments: value === undefined ? {} : { [argument]: value },
  }),
});
const SESSIONS: readonly Client[] = ['sessions', 'array', 'channels'];
const WITH_URI: readonly Carrier[] = [
  { method: 'resources/read', member: 'uri', params: (uri = null) => ({ uri }) },
  ...['resources/subscribe', 'resources/unsubscribe'].map(
    (method): Carrier => ({
      ...{ method, member: 'uri', clients: SESSIONS },
      params: (uri = null) => ({ uri }),
    }),
  ),
];
const asText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));
const WITH_TEXT: readonly Carrier[] = [
  argumentOf('note'),
  argumentOf('data'),
  argumentOf('list'),
  {
    method: 'prompts/get',
    member: 'note',
    params: (note = null, name) => ({ name: name('ask'), arguments: { note } }),
  },
  {
    method: 'completion/complete',
    member: 'value',
    params: (value = null, name) => ({
      ref: { type: 'ref/prompt', name: name('ask') },
      argument: { name: 'note', value },
    }),
  },
  {
    method: 'resources/read',
    member: 'uri',
    params: (value = null) => ({
      uri: `memo://vault/open/${encodeURIComponent([value].flat().map(asText).join(''))}`,
    }),
  },
];

type Check = {
  readonly what: string;
  readonly carriers: readonly Carrier[];
  /** What it forbids, in one of its spellings. */
  spell(random: Random, token: string): Json | undefined;
  /** What is read beside it by a parser that takes the other of two members. */
  readonly beside: Json;
  /** What it does not forbid. */
  readonly harmless: readonly Json[];
  /** What a reader finds in a body that left, if the check forbids it. */
  finds(body: string, token: string): unknown;
};

const secretOf = (seed: number): string =>
  (seed % 2 === 0 ? githubToken : awsKey)(`leaving ${seed % 8}`);
const SECRETS = Array.from({ length: 8 }, (_, seed) => secretOf(seed));

const escapeAll =
  (write: (unit: string, hex: string) => string) =>
  (value: string): string =>
    value.replace(/[\s\S]/g, (unit) =>
      write(unit, unit.charCodeAt(0).toString(16).padStart(2, '0')),
    );
/** How a text is written that some reader takes for another. */
const TEXT_SPELLINGS: readonly ((value: string, random: Random) => string)[] = [
  (value) => value,
  (value, random) => escapeAll((unit, hex) => (random.below(2) === 0 ? `%${hex}` : unit))(value),
  (value) => encodeURIComponent(value),
  (value, random) => escapeAll((unit, hex) => (random.below(3) === 0 ? `&#x${hex};` : unit))(value),
  (value) => value.replace('_', '&lowbar;').replace(/\d/, (digit) => `&#${digit.charCodeAt(0)};`),
  (value) => escapeAll((_, hex) => `\\u00${hex}`)(value),
  (value) => escapeAll((_, hex) => `\\x${hex}`)(value),
  (value) => Buffer.from(`see ${value} there`).toString('base64'),
  (value) => Buffer.from(`see ${value} there`).toString('base64url'),
  (value) => Buffer.from(value).toString('hex'),
  (value, random) => {
    const at = 1 + random.below(value.length - 1);
    return (
      value.slice(0, at) + random.pick(['\u200b', '\u00ad', '\u2060', '\ufeff']) + value.slice(at)
    );
  },
  (value) => value.replace(/[A-Za-z]/g, (one) => String.fromCharCode(one.charCodeAt(0) + 0xfee0)),
  (value) => JSON.stringify({ note: value }),
  (value) => JSON.stringify(JSON.stringify([value])),
  (value) => `\`\`\`json\n${JSON.stringify({ deep: [value] }, null, 2)}\n\`\`\``,
  (value) => `<p title="${value}">see</p>`,
];

function spellText(value: string, random: Random): string {
  const first = random.pick(TEXT_SPELLINGS)(value, random);
  return random.below(3) === 0 ? random.pick(TEXT_SPELLINGS)(first, random) : first;
}

/** A text in a value of any shape. */
function placeIn(value: string, random: Random): Json {
  return random.pick<Json>([
    value,
    `see ${value} there`,
    [1, [value]],
    { a: { b: [value] } },
    { [value]: true },
  ]);
}

const URI_PATHS = [
  ['params', 'uri'],
  ['params', 'ref', 'uri'],
  ['params', 'notifications', 'resourceSubscriptions', '*'],
];
const isForbiddenUri = (uri: string): boolean =>
  [...resourcesReadIn(uri)].some(
    (one) => FORBIDDEN.includes(one) || one.startsWith(`${DENIED_BELOW}/`),
  );

const valuesOf = (body: string, argument: string) =>
  valuesAt(body, ['params', 'arguments', argument]);
const findArgument =
  (argument: string, isForbidden: (value: Json | undefined) => boolean) =>
  (body: string): unknown =>
    valuesOf(body, argument).find(isForbidden);

const PATH_PARTS = [
  ...['..', '.', '/', '\\', '%2f', '%5c', '%2e', '%252e', '%', '?', '#', ';', '/../', '/..'],
  ...['reports', 'a', 'x;y', ' ', '\u200b', '\uff0e', '\uff0f', '%3f', '%c3%bc', '\u0000'],
];
const isBelowReports = (path: string): boolean =>
  Object.values(PATH_READERS).every((read) => {
    const found = posix.normalize(`/srv/${read(path)}`);
    return found === '/srv/reports' || found.startsWith('/srv/reports/');
  });
const isNumber = (value: Json | undefined): value is number => typeof value === 'number';

const TRICKS = [
  '@',
  '\\',
  '/',
  '#',
  '?',
  '%40',
  '%2f',
  '\t',
  ':80',
  '.',
  '\u3002',
  ' ',
  '%00',
  ';',
  '&',
];

const CHECKS: readonly Check[] = [
  {
    what: 'a deny rule or a block of a resource',
    carriers: WITH_URI,
    spell: (random) => {
      const uri = random.pick([DENIED, `${DENIED_BELOW}/one`, BLOCKED]);
      return fc.sample(combinedSpellings(uri), { seed: random.below(1e9), numRuns: 1 })[0];
    },
    beside: OPEN,
    harmless: [
      OPEN,
      'memo://vault/open/caf%C3%A9%20noir?q=a+b',
      'memo://vault/keys',
      'memo://vault/KEYS/Root',
    ],
    finds: (body) =>
      URI_PATHS.flatMap((path) => valuesAt(body, path)).find(
        (uri) => typeof uri === 'string' && isForbiddenUri(uri),
      ),
  },
  {
    what: 'a deny rule on a constant argument',
    carriers: [argumentOf('owner')],
    spell: () => 'forbidden',
    beside: 'acme',
    harmless: ['acme', 'forbidden?', 'Straße \u200b "\\u0041"'],
    finds: findArgument('owner', (value) => value === 'forbidden'),
  },
  {
    what: 'a deny rule on any argument',
    carriers: [argumentOf('note'), argumentOf('data'), argumentOf('list')],
    // Names of members are not read.
    spell: (random) =>
      random.pick<Json>(['a; DROP TABLE b', [1, ['DROP TABLE']], { a: ['xDROP TABLE'] }]),
    beside: 'SELECT',
    harmless: ['drop the table', '\u0000\u001f\ud83d\ude00'],
    finds: (body) =>
      valuesAt(body, ['params', 'arguments'])
        .flatMap((args) => textsIn(JSON.stringify(args ?? null)))
        .find((one) => one.includes('DROP TABLE')),
  },
  {
    what: 'a folder that a path has to be below',
    carriers: [argumentOf('path')],
    spell: (random) => {
      const parts = Array.from({ length: 1 + random.below(7) }, () => random.pick(PATH_PARTS));
      return `reports/${parts.join('')}`;
    },
    beside: 'reports/a',
    harmless: ['reports/a', 'reports/2024/b c.txt'],
    finds: findArgument('path', (path) => typeof path === 'string' && !isBelowReports(path)),
  },
  {
    what: 'the host of a URL',
    carriers: [argumentOf('link')],
    spell: (random) => {
      const more = Array.from({ length: random.below(4) }, () =>
        random.pick([...TRICKS, 'evil.example', 'a.example']),
      );
      return `${random.pick(['https:', 'HTTPS:', 'http:'])}${random.pick(['//', '//', '/', '\\\\'])}${random.pick(['a.example', 'evil.example', '\uff41.example'])}${more.join('')}`;
    },
    beside: 'https://a.example/',
    harmless: ['https://a.example/x?y=@z#w'],
    finds: findArgument(
      'link',
      (link) => typeof link === 'string' && hostsReadIn(link).some((host) => host !== 'a.example'),
    ),
  },
  {
    what: 'a bound of a number that is coerced',
    carriers: [argumentOf('size')],
    spell: (random) =>
      random.pick<Json>([
        6,
        '6',
        '6.0',
        '6e0',
        ' 6',
        '0x6',
        '\uff16',
        '+6',
        '6\u0000',
        '\u0666',
        '06',
        '60e-1',
        ['6'],
        '\u200b6',
        '"6"',
        '[6]',
      ]),
    beside: 90,
    harmless: [5, 90, 4],
    finds: findArgument('size', (size) => isNumber(size) && size > 5 && size < 90),
  },
  {
    what: 'an argument whose default is forbidden',
    carriers: [argumentOf('mode', 'erase')],
    spell: (random) => [undefined, null, 'delete'][random.below(3)],
    beside: 'read',
    harmless: ['read', 'Delete', ''],
    finds: (body) =>
      valuesAt(body, ['params', 'arguments', 'mode'])
        .map((mode) => mode ?? 'delete')
        .find((mode) => mode === 'delete'),
  },
  {
    what: 'a secret',
    carriers: WITH_TEXT,
    spell: (random) => placeIn(spellText(random.pick(SECRETS), random), random),
    beside: 'x',
    harmless: ['see the token there', 'caf\u00e9 &amp; %20 \\u0041'],
    finds: (body) =>
      textsIn(body)
        .flatMap((one) => [...readingsOf(one, 3)])
        .find((one) => SECRETS.some((secret) => one.includes(secret))),
  },
  {
    what: 'the token of the caller',
    carriers: WITH_TEXT,
    spell: (random, token) => {
      const third = Math.floor(token.length / 3);
      if (random.below(3) === 0)
        return [token.slice(0, third), token.slice(third, 2 * third), token.slice(2 * third)];
      return placeIn(spellText(token, random), random);
    },
    beside: 'x',
    harmless: ['Bearer'],
    finds: (body, token) =>
      textsIn(body)
        .flatMap((one) => [...readingsOf(one, 3)])
        .find((one) => one.includes(token.slice(0, token.lastIndexOf('.')))),
  },
];

const METHODS = new Set([
  ...CHECKS.flatMap(({ carriers }) => carriers.map(({ method }) => method)),
  'subscriptions/listen',
]);
/** What a decision reads of a request, besides its name. */
const READ = ['uri', 'ref', 'argument', 'arguments'];

function messageOf(body: string): JsonObject {
  return body === '' ? {} : (JSON.parse(body) as JsonObject);
}

/** What a decision reads of a request, as it is written. */
function written(body: string, prefix = ''): Readonly<Record<string, string>> {
  const params = spanOf(body, ['params']);
  if (params === undefined) return {};
  const members = memberSpans(body, params).filter(({ name }) => READ.includes(name));
  return Object.fromEntries(
    members.map(({ name, value }) => {
      const json = body.slice(value.start, value.end);
      // An endpoint names what it refers to in its own way.
      return [name, name === 'ref' ? JSON.stringify(JSON.parse(json)).replace(prefix, '') : json];
    }),
  );
}

describe.each(EVERY_WAY)('for a client of %s, before %s', (client, behind) => {
  let world: LawWorld;
  let caller: EraCaller;
  let token = '';
  const nameOf = (own: string): string => (behind === 'endpoint' ? `l_${own}` : own);
  const carriersOf = ({ carriers }: Check): readonly Carrier[] =>
    carriers.filter(({ clients }) => clients?.includes(client) !== false);

  beforeAll(async () => {
    world = await startWorld(client, behind, {
      ...{ upstream: MEMBERS, more: PROFILES, offer, token: OWN_TOKEN },
    });
    const upstream = world.items[0]?.upstream ?? '';
    expect(await world.apply(policyOf(upstream))).toEqual([]);
    const [gateway] = world.gateways;
    if (gateway === undefined) throw new Error('a world has a gateway');
    const block = { target: 'resource', upstream, name: BLOCKED };
    // The keys of administrators are fetched with the first of their requests.
    await vi.waitFor(
      async () => expect((await adminsOf(gateway).revoke({ block })).status).toBe(201),
      { timeout: 20_000, interval: 50 },
    );
    const access = await world.access({ sub: 'ada' });
    token = access.token ?? '';
    caller = await connectIn(client, access);
  }, TIMEOUT_MS);
  afterAll(async () => {
    caller.leave();
    await world.close();
  });

  type Write = (message: JsonObject) => string;
  async function send(method: string, params: JsonObject, write: Write) {
    world.forget();
    let sent = '';
    const reply = await caller.request(method, params, {
      write(message) {
        sent = write(message);
        return sent;
      },
    });
    const left = world.left().filter(({ body }) => METHODS.has(String(messageOf(body)['method'])));
    return { sent, left, reply };
  }

  /** A server on stdio gets a message in one line. */
  function asSent(json: string): Readonly<Record<string, string>> {
    if (behind !== 'stdio') return written(json, nameOf(''));
    return written(json.replace(/\r\n|[\r\n]/g, (end) => ' '.repeat(end.length)));
  }

  /** Sends what left once more, as it left. */
  async function sendAgain({ body }: Left): Promise<readonly Left[]> {
    const { method, params } = messageOf(body);
    const { name, ...own } = isObject(params) ? params : {};
    const named = typeof name === 'string' ? { name: nameOf(name) } : {};
    const write: Write = ({ params: sent, ...rest }) => {
      const raw = Object.entries(written(body)).map(
        ([one, json]) => `${JSON.stringify(one)}:${json}`,
      );
      const meta = isObject(sent) ? sent['_meta'] : undefined;
      if (meta !== undefined) raw.push(`"_meta":${JSON.stringify(meta)}`);
      if (named.name !== undefined) raw.push(`"name":${JSON.stringify(named.name)}`);
      return JSON.stringify(rest).replace(/}$/, `,"params":{${raw.join()}}}`);
    };
    const { _meta: _, ...sent } = own;
    return (await send(String(method), { ...sent, ...named }, write)).left;
  }

  it.each(CHECKS.map((check) => [check.what, check] as const))(
    '%s holds for what leaves',
    async (what, check) => {
      const random = createRandom(SEED + CHECKS.indexOf(check));
      let refused = 0;
      for (const carrier of carriersOf(check))
        for (let round = 0; round < ROUNDS; round += 1) {
          const value = check.spell(random, token);
          const isTwin = random.below(3) === 0;
          const isBeside = isTwin && random.below(2) === 0;
          const style = isTwin
            ? ambiguousStyle(random, carrier.member, isBeside ? (value ?? null) : check.beside)
            : faithfulStyle(random);
          const params = carrier.params(isBeside ? check.beside : value, nameOf);
          const { sent, left } = await send(carrier.method, params, writerOf(style));
          for (const one of left) {
            expect([sent, check.finds(one.body, token)]).toEqual([sent, undefined]);
            if (one.headers['mcp-name'] !== undefined) expectSameName(one);
          }
          if (left.length === 0) refused += 1;
          const [first] = left;
          if (first === undefined || !/call|get|read|complete/.test(carrier.method)) continue;
          const again = await sendAgain(first);
          expect([sent, again.map(({ body }) => written(body))]).toEqual([
            sent,
            [written(first.body)],
          ]);
        }
      expect([what, refused]).not.toEqual([what, 0]);
    },
    TIMEOUT_MS,
  );

  it.each(CHECKS.map((check) => [check.what, check] as const))(
    '%s lets its neighbours pass to the byte',
    async (_what, check) => {
      const random = createRandom(SEED + CHECKS.indexOf(check));
      for (const carrier of carriersOf(check))
        for (const value of check.harmless) {
          const params = carrier.params(value, nameOf);
          const { sent, left } = await send(
            carrier.method,
            params,
            writerOf(faithfulStyle(random)),
          );
          if (carrier.method.endsWith('subscribe')) continue;
          expect([sent, left.map(({ body }) => written(body))]).toEqual([sent, [asSent(sent)]]);
        }
    },
    TIMEOUT_MS,
  );
});

/** The header names what every reader of the body finds. */
function expectSameName({ headers, body }: Left): void {
  const header = headers['mcp-name'] ?? '';
  const encoded = /^=\?base64\?(.*)\?=$/.exec(header)?.[1];
  const name = encoded === undefined ? header : Buffer.from(encoded, 'base64').toString();
  const named = ['name', 'uri', 'taskId'].flatMap((one) => valuesAt(body, ['params', one]));
  expect([...new Set(named.filter((one) => one !== undefined))]).toEqual([name]);
}
