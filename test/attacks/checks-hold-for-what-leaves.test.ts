// A check that comes before the last normalisation reads another thing than what leaves. Whatever a rule or a detector
// forbids is written here in many spellings, in every carrier and every way, and what really left the gateway is read
// again, by readers that are more lenient than ours: nothing that is forbidden may stand in it. What left passes a second
// time as it is, to the byte, and so do the harmless neighbours of each. `LEAVING_SEED` and `LEAVING_ROUNDS` ask for
// other spellings and for more of them.

import { posix } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createRandom, effectsOfText, type Random, writeDocument } from '../support/active-content.js';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { connectIn, type EraCaller } from '../support/eras.js';
import { body } from '../support/hostile-acts.js';
import { type Act, type HostileRequest, type HostileUpstream, paramsOf } from '../support/hostile-upstream.js';
import { isObject, type Json, type JsonObject } from '../support/json.js';
import { applyEdits, memberSpans, removalEdits, spanOf } from '../support/json-spans.js';
import { EVERY_WAY, type Left, startWorld } from '../support/law-worlds.js';
import {
  hostsReadIn,
  messagesIn,
  PATH_READERS,
  readingsOf,
  resourcesReadIn,
  textsIn,
  valuesAt,
} from '../support/lenient-readers.js';
import { awsKey, cardNumber, githubToken, iban, noise, ssn } from '../support/seeded-values.js';
import { ambiguousStyle, faithfulStyle, type Style, writeJson, writerOf } from '../support/spelt-json.js';
import { combinedSpellings, singleSpellings } from '../support/uri-spellings.js';
import { type HeaderLines, STATELESS_VERSION } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

/** Every run tries the same spellings; a failure names its own. */
const SEED = Number(process.env['LEAVING_SEED'] ?? 20_261_128);
/** Spellings of each thing in each carrier and way. */
const ROUNDS = Number(process.env['LEAVING_ROUNDS'] ?? 1);
/** Hundreds of requests on a busy machine. */
const TIMEOUT_MS = 60_000 + ROUNDS * 20_000;

const OWN_TOKEN = noise('what the upstream is shown', 43);
const OPEN = 'memo://vault/open/one';
const DENIED = 'memo://vault/keys/root';
const DENIED_BELOW = 'memo://vault/shut/door';
const BLOCKED = 'memo://vault/held/one';
const FORBIDDEN = [DENIED, DENIED_BELOW, BLOCKED];
const TEMPLATE = 'memo://vault/{x}';

const FIELD = 'geh\u00f6rt';
const VALUE = 'J\u00f6rg & "S\u00f6hne" 4711';
const SENSITIVE = [`/structuredContent/${FIELD}`, '/structuredContent/cards/*/number'];

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
    name: 'mirror',
    description: 'Works in a region.',
    inputSchema: {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        level: { type: 'integer', 'x-mcp-header': 'Level' },
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
sensitive: {${upstream}/work: [${SENSITIVE.join(', ')}]}
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
  /** The headers of a client without sessions. */
  headers?(value: Json | undefined): HeaderLines;
};

const argumentOf = (argument: string, tool = 'work'): Carrier => ({
  method: 'tools/call',
  member: argument,
  params: (value, name) => ({
    name: name(tool),
    arguments: value === undefined ? {} : { [argument]: value },
  }),
});
/** An argument that a header mirrors. */
const mirrored = (argument: string): Carrier => ({
  ...argumentOf(argument, 'mirror'),
  headers: (value) => ({
    [`mcp-param-${argument}`]: `=?base64?${Buffer.from(String(value)).toString('base64')}?=`,
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

/** What a caller has, and must not send on. */
type Seen = { readonly token: string; readonly mark: string };

type Check = {
  readonly what: string;
  readonly carriers: readonly Carrier[];
  /** So many times as many spellings as of others. */
  readonly times?: number;
  /** What it forbids, in one of its spellings. */
  spell(random: Random, seen: Seen): Json | undefined;
  /** What is read beside it by a parser that takes the other of two members. */
  readonly beside: Json;
  /** What it does not forbid. */
  readonly harmless: readonly Json[];
  /** What a reader finds in a body that left, if the check forbids it. */
  finds(left: Left, seen: Seen): unknown;
};

const secretOf = (seed: number): string => (seed % 2 === 0 ? githubToken : awsKey)(`leaving ${seed % 8}`);
const SECRETS = Array.from({ length: 8 }, (_, seed) => secretOf(seed));

const escapeAll =
  (write: (unit: string, hex: string) => string) =>
  (value: string): string =>
    value.replace(/[\s\S]/g, (unit) => write(unit, unit.charCodeAt(0).toString(16).padStart(2, '0')));
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
    return value.slice(0, at) + random.pick(['\u200b', '\u00ad', '\u2060', '\ufeff']) + value.slice(at);
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
  return random.pick<Json>([value, `see ${value} there`, [1, [value]], { a: { b: [value] } }, { [value]: true }]);
}

/** Letters of a path in full width, which the normal form of compatibility folds. */
const spellLetters = (uri: string, random: Random): string =>
  uri.replace(/(?<=[a-z/])[a-z](?=[a-z]*(?:\/|$))/g, (letter) =>
    random.below(2) === 0 ? letter : encodeURIComponent(String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
  );

const URI_PATHS = [
  ['params', 'uri'],
  ['params', 'ref', 'uri'],
  ['params', 'notifications', 'resourceSubscriptions', '*'],
];
const isForbiddenUri = (uri: string): boolean =>
  [...resourcesReadIn(uri)].some((one) => FORBIDDEN.includes(one) || one.startsWith(`${DENIED_BELOW}/`));

const valuesOf = (body: string, argument: string) => valuesAt(body, ['params', 'arguments', argument]);
const findArgument =
  (argument: string, isForbidden: (value: Json | undefined) => boolean) =>
  ({ body }: Left): unknown =>
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

const TRICKS = ['@', '\\', '/', '#', '?', '%40', '%2f', '\t', ':80', '.', '\u3002', ' ', '%00', ';', '&'];

const CHECKS: readonly Check[] = [
  {
    what: 'a deny rule or a block of a resource',
    times: 4,
    carriers: WITH_URI,
    spell: (random) => {
      const uri = random.pick([DENIED, `${DENIED_BELOW}/one`, BLOCKED]);
      const [, single = uri] = random.pick(singleSpellings(uri));
      const combined = () => fc.sample(combinedSpellings(uri), { seed: random.below(1e9), numRuns: 1 })[0] ?? uri;
      return random.pick([() => single, combined, () => spellLetters(uri, random)])();
    },
    beside: OPEN,
    harmless: [OPEN, 'memo://vault/open/caf%C3%A9%20noir?q=a+b', 'memo://vault/keys', 'memo://vault/KEYS/Root'],
    finds: ({ body }) =>
      URI_PATHS.flatMap((path) => valuesAt(body, path)).find((uri) => typeof uri === 'string' && isForbiddenUri(uri)),
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
    spell: (random) => random.pick<Json>(['a; DROP TABLE b', [1, ['DROP TABLE']], { a: ['xDROP TABLE'] }]),
    beside: 'SELECT',
    harmless: ['drop the table', '\u0000\u001f\ud83d\ude00'],
    finds: ({ body }) =>
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
      const more = Array.from({ length: random.below(4) }, () => random.pick([...TRICKS, 'evil.example', 'a.example']));
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
    finds: ({ body }) =>
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
    finds: ({ body }) =>
      textsIn(body)
        .flatMap((one) => [...readingsOf(one, 2)])
        .find((one) => SECRETS.some((secret) => one.includes(secret))),
  },
  {
    what: 'a header that mirrors an argument',
    carriers: [mirrored('region'), mirrored('level')],
    spell: (random) =>
      random.pick<Json>([
        ...[' a', 'a ', 'b\u00f6c', '=?base64?YQ==?=', 'a\r\nx-evil: 1', 'a,b', '', '\u0000', 'x'.repeat(99)],
        ...[7, -0, 1e2, '7', '1.0', 9_007_199_254_740_991],
      ]),
    beside: 'a',
    harmless: [],
    finds: ({ headers, body }) =>
      ['region', 'level'].find((argument) => {
        const header = headers[`mcp-param-${argument}`];
        const values = valuesOf(body, argument).map((value) => value !== undefined && String(value));
        return header !== undefined && values.some((value) => value !== decodeHeader(header));
      }),
  },
  {
    what: 'a mark of what was redacted',
    carriers: WITH_TEXT,
    spell: (random, { mark }) =>
      placeIn(random.pick([mark, JSON.stringify({ note: mark }), JSON.stringify([JSON.stringify(mark)])]), random),
    beside: 'x',
    harmless: ['[redacted] [redacted:github-token]'],
    finds: ({ body }, { mark }) => textsIn(body).find((one) => one.includes(mark)),
  },
  {
    what: 'an argument that is dropped',
    carriers: [
      {
        ...argumentOf('task_progress'),
        params: (value = null, name) => ({
          name: name('work'),
          arguments: { note: 'x', task_progress: value },
        }),
      },
    ],
    spell: (random) => placeIn('what the client is at', random),
    beside: 'x',
    harmless: [],
    finds: ({ body }) =>
      valuesAt(body, ['params', 'arguments'])
        .flatMap((args) => Object.keys(isObject(args) ? args : {}))
        .find((name) => /^task_progre[s\u017f]+/i.test(name)),
  },
  {
    what: 'the token of the caller',
    carriers: WITH_TEXT,
    spell: (random, { token }) => {
      const third = Math.floor(token.length / 3);
      if (random.below(3) === 0) return [token.slice(0, third), token.slice(third, 2 * third), token.slice(2 * third)];
      return placeIn(spellText(token, random), random);
    },
    beside: 'x',
    harmless: ['Bearer'],
    finds: ({ body }, { token }) =>
      textsIn(body)
        .flatMap((one) => [...readingsOf(one, 2)])
        .find((one) => one.includes(token.slice(0, token.lastIndexOf('.')))),
  },
];

/** What a server answers: a result or an error, and what it says before. */
type Answer = {
  readonly result?: JsonObject;
  readonly error?: JsonObject;
  readonly before?: readonly JsonObject[];
};
/** Where an answer has the thing. */
type Answering = {
  readonly method: string;
  readonly answer: (thing: string, random: Random) => Answer;
};

const called = (answer: Answering['answer']): Answering => ({ method: 'tools/call', answer });
const ofText = (...texts: readonly string[]): JsonObject => ({
  content: texts.map((one) => ({ type: 'text', text: one })),
});
const halves = (thing: string): readonly [string, string] => {
  const middle = Math.floor(thing.length / 2);
  return [thing.slice(0, middle), thing.slice(middle)];
};
const PROGRESS_TOKEN = 7;

/** Places in answers that a client reads. */
const ANSWERS: readonly Answering[] = [
  called((thing) => ({ result: ofText(`see ${thing} there`) })),
  called((thing) => ({ result: ofText(JSON.stringify({ note: [thing] })) })),
  called((thing) => ({
    result: {
      ...ofText(JSON.stringify({ deep: [{ note: thing }] })),
      structuredContent: { deep: [{ note: thing }] },
    },
  })),
  called((thing) => ({ result: { content: [], structuredContent: { [thing]: 1 } } })),
  called((thing) => ({ result: { content: [], _meta: { 'example.org/x': { note: [thing] } } } })),
  called((thing) => ({ result: { ...ofText(`failed: ${thing}`), isError: true } })),
  called((thing) => ({
    result: { content: [{ type: 'resource', resource: { uri: OPEN, text: thing } }] },
  })),
  called((thing) => ({
    result: {
      content: [{ type: 'resource_link', uri: OPEN, name: 'x', title: thing, description: thing }],
    },
  })),
  called((thing) => ({
    result: { content: [{ type: 'text', text: 'x', annotations: { note: thing }, more: thing }] },
  })),
  called((thing) => ({ result: ofText(...halves(thing)) })),
  called((thing) => ({ error: { code: -32000, message: thing, data: { note: [thing] } } })),
  called((thing) => {
    const [message, data] = halves(thing);
    return { error: { code: -32000, message, data } };
  }),
  called((thing) => ({
    before: [
      {
        method: 'notifications/progress',
        params: { progressToken: PROGRESS_TOKEN, progress: 1, message: thing },
      },
    ],
    result: ofText('done'),
  })),
  called((thing) => ({
    before: [{ method: 'notifications/message', params: { level: 'info', data: { note: thing } } }],
    result: ofText('done'),
  })),
  {
    method: 'prompts/get',
    answer: (thing) => ({
      result: {
        description: thing,
        messages: [{ role: 'user', content: { type: 'text', text: thing } }],
      },
    }),
  },
  {
    method: 'resources/read',
    answer: (thing) => ({ result: { contents: [{ uri: OPEN, text: thing }] } }),
  },
  {
    method: 'resources/read',
    answer: (thing) => ({
      result: {
        contents: [
          {
            uri: OPEN,
            mimeType: 'text/plain',
            blob: btoa(`see ${unescape(encodeURIComponent(thing))} there`),
          },
        ],
      },
    }),
  },
  {
    method: 'completion/complete',
    answer: (thing) => ({ result: { completion: { values: ['x', thing] } } }),
  },
  {
    method: 'resources/list',
    answer: (thing) => ({
      result: { resources: [{ uri: OPEN, name: 'one', title: thing, description: thing }] },
    }),
  },
];

/** What may make of a result what a client gets, and is no part of what a server says. */
const OF_TRANSPORT = ['resultType', 'ttlMs', 'cacheScope', 'nextCursor'];

type Removal = {
  readonly what: string;
  readonly answers: readonly Answering[];
  /** A thing that no client may get, spelt somehow. */
  spell(random: Random): string;
  /** What of the texts in a message a reader takes for it. */
  finds(texts: readonly string[]): string | undefined;
};

/** A text in which some reader finds one of these. */
const findAny =
  (things: readonly string[], depth: number) =>
  (texts: readonly string[]): string | undefined =>
    texts.flatMap((one) => [...readingsOf(one, depth)]).find((one) => things.some((thing) => one.includes(thing)));

const PERSONAL = [
  // In groups, or else it may be any number.
  cardNumber('leaving').replace(/.{4}(?=.)/g, '$& '),
  iban('DE', '370400440532013000'),
  ssn('leaving'),
];
/** Only what is not shown, and forms of the same letters: data in other encodings is none of a person's writing. */
const spellPersonal = (value: string, random: Random): string =>
  random.pick<(value: string) => string>([
    (own) => own,
    (own) => own.replace(/\d/g, (digit) => String.fromCharCode(digit.charCodeAt(0) + 0xfee0)),
    (own) => `${own.slice(0, 6)}\u200b${own.slice(6)}`,
    (own) => JSON.stringify({ note: own }),
  ])(value);

/** A name that readers take for that of the field. */
const spellField = (random: Random): string =>
  random.pick([
    FIELD,
    FIELD.normalize('NFD'),
    FIELD.toUpperCase(),
    ` ${FIELD}\t`,
    `${FIELD.slice(0, 3)}\u200b${FIELD.slice(3)}`,
    `\u001b[1m${FIELD}\u001b[0m`,
  ]);
/** How programs write a value into other texts. */
const spellValue = (random: Random): string =>
  random.pick([
    VALUE,
    VALUE.normalize('NFD'),
    JSON.stringify(VALUE).slice(1, -1),
    encodeURIComponent(VALUE),
    VALUE.replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
    JSON.stringify({ note: VALUE }),
    JSON.stringify(JSON.stringify([VALUE])),
    `${VALUE.slice(0, 6)}\u00ad${VALUE.slice(6)}`,
  ]);
/** Data with the field, as tools write it into texts. */
const DATA: readonly ((name: string) => string)[] = [
  (name) => JSON.stringify({ a: 1, [name]: VALUE }),
  (name) => `It is ${JSON.stringify({ a: 1, [name]: VALUE })}.`,
  (name) => `\`\`\`json\n${JSON.stringify({ [name]: VALUE }, null, 2)}\n\`\`\``,
  (name) => JSON.stringify(JSON.stringify({ [name]: VALUE })),
  (name) => `{"a":[1],"${name}":${JSON.stringify(VALUE)},"b`,
  (name) =>
    `<pre>${JSON.stringify({ [name]: VALUE })
      .replaceAll('&', '&amp;')
      .replaceAll('"', '&quot;')}</pre>`,
  (name) => `{'a': 1, '${name}': '${VALUE}'}`,
  (name) => `[1, {"cards": [{"number": ${JSON.stringify(VALUE)}}]}] ${name}`,
];

/** Whether an answer has room for the field beside what repeats its value, which no message before it has. */
function repeats(answer: Answering['answer']): boolean {
  const { error, before } = answer('x', createRandom(0));
  return before === undefined && typeof error?.['data'] !== 'string';
}

const FIELD_ANSWERS: readonly Answering[] = [
  ...DATA.map((write) => called((_, random) => ({ result: ofText(write(spellField(random))) }))),
  ...ANSWERS.filter(({ method, answer }) => method === 'tools/call' && repeats(answer)).map(({ answer }) =>
    called((thing, random) => {
      const { result = {}, error } = answer(thing, random);
      const own = random.pick<JsonObject>([
        { [spellField(random)]: VALUE },
        { cards: [{ number: 1 }, { number: VALUE }] },
      ]);
      const within = (holder: Json | undefined) => ({
        ...own,
        ...(isObject(holder) ? holder : {}),
      });
      if (error !== undefined) return { error: { ...error, data: within(error['data']) } };
      const structuredContent = within(result['structuredContent']);
      return { result: { ...result, structuredContent } };
    }),
  ),
];

/** What some renderer of a text would load or run. */
const findEffects = (texts: readonly string[]): string | undefined =>
  texts.find((one) => effectsOfText(one).length > 0);
const TURNING = /[\u202a-\u202e\u2066-\u2069\p{Cc}\u{e0020}-\u{e007f}]/u;
/** Whether a text is turned around, hidden or styled by what is not shown of it. */
const isTurned = (one: string): boolean => TURNING.test(one.replace(/[\t\n\r]/g, ''));

/** What a detector might take for one of them, and what readers write in ways of their own. */
const HARMLESS = [
  'see the token there',
  'caf\u00e9 &amp; %20 \\u0041 \\\\u0041',
  'Bearer and so on',
  '4111 1111',
  '12-34-5678 DE37',
  'S\u00f6hne & J\u00f6rg',
  'a < b, ![ and [x](y)',
  '```\n<script>\n```',
  '\u{1f468}\u200d\u{1f469}',
  'a\tb\r\nc',
];

const REMOVALS: readonly Removal[] = [
  {
    what: 'a secret of others',
    answers: ANSWERS,
    spell: (random) => spellText(random.pick(SECRETS), random),
    finds: findAny(SECRETS, 2),
  },
  {
    what: 'the credential of the gateway',
    answers: ANSWERS,
    spell: (random) => spellText(OWN_TOKEN, random),
    finds: findAny([OWN_TOKEN], 2),
  },
  {
    what: 'personal data',
    answers: ANSWERS,
    spell: (random) => spellPersonal(random.pick(PERSONAL), random),
    finds: findAny(PERSONAL, 1),
  },
  {
    what: 'a note in the name of the gateway',
    answers: ['dev.sallyport/findings', 'Dev.Sallyport/decision', 'DEV.SALLYPORT/x'].flatMap((name) => {
      const note = (thing: string) => ({ _meta: { [name]: thing, 'example.org/x': 1 } });
      return [
        called((thing) => ({ result: { ...ofText('x'), ...note(thing) } })),
        called((thing) => ({
          result: { content: [{ type: 'text', text: 'x', ...note(thing) }] },
        })),
        called((thing) => ({
          result: {
            content: [{ type: 'resource', resource: { uri: OPEN, text: 'x', ...note(thing) } }],
          },
        })),
        called((thing) => ({ error: { code: -32000, message: 'x', data: { [name]: thing } } })),
      ];
    }),
    spell: () => 'forged-by-the-server',
    finds: findAny(['forged-by-the-server'], 0),
  },
  {
    what: 'a sensitive field',
    answers: FIELD_ANSWERS,
    spell: spellValue,
    finds: (texts) =>
      texts.flatMap((one) => [...readingsOf(one, 2)]).find((one) => one.normalize('NFC').includes(VALUE)),
  },
  {
    what: 'active content',
    // Texts that a host shows to a reader.
    answers: ANSWERS.filter((_, index) => [0, 5, 6, 9, 14, 15].includes(index)),
    spell: (random) => writeDocument(random).join('\n'),
    finds: findEffects,
  },
  {
    what: 'what turns or hides text',
    answers: ANSWERS,
    spell: (random) =>
      `one ${random.pick(['\u202e', '\u2067', '\u{e0041}\u{e0042}', '\u001b[8m', '\u009b31m', '\u200b'])}two`,
    finds: (texts) => texts.find(isTurned),
  },
];

function paramsFor(method: string, nameOf: (own: string) => string): JsonObject {
  switch (method) {
    case 'tools/call':
      return { name: nameOf('work'), arguments: {} };
    case 'prompts/get':
      return { name: nameOf('ask'), arguments: {} };
    case 'resources/read':
      return { uri: OPEN };
    case 'completion/complete':
      return {
        ref: { type: 'ref/prompt', name: nameOf('ask') },
        argument: { name: 'note', value: 'a' },
      };
    default:
      return {};
  }
}

const isStateless = ({ headers }: HostileRequest): boolean => headers['mcp-protocol-version'] === STATELESS_VERSION;
const COMPLETE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

/** An answer in this style, on one line where it is in a stream or on stdio. */
function actOf({ result, error, before = [] }: Answer, style?: Style): (request: HostileRequest) => Act {
  return (request) => {
    const outcome =
      error === undefined ? { result: { ...(isStateless(request) ? COMPLETE : {}), ...result } } : { error };
    const { _meta: meta } = paramsOf(request);
    const own = isObject(meta) ? meta['progressToken'] : undefined;
    const notes = before.map(({ params, ...rest }) => {
      const given = isObject(params) ? params : {};
      return {
        ...rest,
        params: 'progressToken' in given ? { ...given, progressToken: own ?? 0 } : given,
      };
    });
    const messages = [...notes, { id: request.id ?? 0, ...outcome }];
    const [only = '', ...more] = messages.map((message) =>
      writeJson({ jsonrpc: '2.0', ...message }, style).replace(/[\r\n]/g, ' '),
    );
    if (more.length === 0) return body(only);
    return body([only, ...more].map((one) => `data: ${one}\n\n`).join(''), 'text/event-stream');
  };
}

/** An answer as it left a gateway. */
function actAgain([member, json]: readonly [string, string]): (request: HostileRequest) => Act {
  return (request) => {
    const given = member === 'result' && isStateless(request) ? messageOf(json) : COMPLETE;
    const complete = Object.entries(COMPLETE)
      .filter(([name]) => !Object.hasOwn(given, name))
      .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)},`);
    const filled = json.replace(/^\{/, () => `{${complete.join('')}`);
    return body(`{"jsonrpc":"2.0","id":${JSON.stringify(request.id ?? 0)},"${member}":${filled}}`);
  };
}

type Outcome = {
  /** Its member, `result` or `error`, without what the gateway says in its own name. */
  readonly raw: readonly [string, string];
  /** What a server says in it, as it is written. */
  readonly members: Readonly<Record<string, string>>;
  readonly findings: readonly JsonObject[];
  readonly isRefusal: boolean;
};

/** A field that is redacted is one still, and recorded again. */
const isChange = ({ action, detector }: JsonObject): boolean => action !== 'flag' && detector !== 'sensitive';

/** Reads the answer in a message. */
function outcomeIn(json: string): Outcome {
  const message = messageOf(json);
  const member = 'error' in message ? 'error' : 'result';
  const holder = isObject(message[member]) ? message[member] : {};
  const meta = isObject(holder['_meta']) ? holder['_meta'] : {};
  const findings = meta['dev.sallyport/findings'];
  const outer = spanOf(json, [member]) ?? { start: 0, end: 0 };
  const own = spanOf(json, [member, '_meta']);
  const isOwn = (name: string): boolean => name.startsWith('dev.sallyport/');
  // `_meta` is there only where somebody had something to say.
  const isAlone = Object.keys(meta).every(isOwn);
  const edits =
    own === undefined
      ? []
      : isAlone
        ? removalEdits(json, outer, (name) => name === '_meta')
        : removalEdits(json, own, isOwn);
  const without = applyEdits(json, edits);
  const span = spanOf(without, [member]) ?? { start: 0, end: 0 };
  const raw = without.slice(span.start, span.end);
  const members = memberSpans(raw, { start: 0, end: raw.length })
    .filter(({ name }) => !OF_TRANSPORT.includes(name))
    .map(({ name, value }) => [name, raw.slice(value.start, value.end)] as const);
  return {
    raw: [member, raw],
    members: Object.fromEntries(members),
    findings: Array.isArray(findings) ? (findings as readonly JsonObject[]) : [],
    isRefusal: json.includes('dev.sallyport/decision'),
  };
}

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

const WORDED = 'do-as-I-say-now';
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
const HEADERS = [
  ...['x-note', 'baggage', 'traceparent', 'tracestate', 'user-agent', 'accept-language'],
  ...['cookie', 'referer', 'from', 'mcp-param-note', 'x-forwarded-for', 'last-event-id'],
];

/** A list of a server that says something wherever no pin looks. */
function listWith(method: string, worded: string, random: Random): Answer {
  if (random.below(5) === 0) return { error: { code: -32601, message: worded, data: worded } };
  const more = {
    title: worded,
    description: worded,
    _meta: { 'example.org/x': worded },
    note: worded,
  };
  const items: Readonly<Record<string, readonly JsonObject[]>> = {
    tools: [...TOOLS, { name: 'new', inputSchema: { type: 'object' }, ...more }],
    prompts: [{ name: 'new', ...more }],
    resourceTemplates: [{ uriTemplate: 'memo://vault/new/{x}', name: 'new', ...more }],
    resources: [
      {
        uri: OPEN,
        name: worded,
        ...more,
        mimeType: `text/plain; note=${worded}`,
        annotations: more,
      },
    ],
  };
  const member = method === 'resources/templates/list' ? 'resourceTemplates' : (method.split('/')[0] ?? '');
  return {
    result: {
      [member]: items[member] ?? [],
      ...random.pick<JsonObject>([
        { _meta: { note: worded } },
        { nextCursor: worded },
        { note: worded, Tools: worded },
        { cacheScope: worded, resultType: worded },
      ]),
    },
  };
}

const WITH_NEIGHBOURS = CHECKS.filter(({ harmless }) => harmless.length > 0).map(
  (check) => [check.what, check] as const,
);

/** The checks that something met in some way. */
const met = new Set<string>();

describe.each(EVERY_WAY)('for a client of %s, before %s', (client, behind) => {
  let caller: EraCaller;
  let seen: Seen = { token: '', mark: '' };
  /** Each way has spellings of its own. */
  const way = EVERY_WAY.findIndex(([one, other]) => one === client && other === behind);
  const seed = SEED + 1_000 * way;
  const nameOf = (own: string): string => (behind === 'endpoint' ? `l_${own}` : own);
  const carriersOf = ({ carriers }: Check): readonly Carrier[] =>
    carriers.filter(({ clients }) => clients?.includes(client) !== false);

  const world = shared(() =>
    startWorld(client, behind, {
      ...{ upstream: MEMBERS, more: PROFILES, offer, token: OWN_TOKEN },
    }),
  );
  beforeAll(async () => {
    const upstream = world.items[0]?.upstream ?? '';
    expect(await world.apply(policyOf(upstream))).toEqual([]);
    const [gateway] = world.gateways;
    if (gateway === undefined) throw new Error('a world has a gateway');
    const block = { target: 'resource', upstream, name: BLOCKED };
    // The keys of administrators are fetched with the first of their requests.
    await vi.waitFor(async () => expect((await adminsOf(gateway).revoke({ block })).status).toBe(201), {
      timeout: 20_000,
      interval: 50,
    });
    const access = await world.access({ sub: 'ada' });
    caller = await connectIn(client, access);
    const shown = await answered('tools/call', actOf({ result: ofText(githubToken('a mark')) }));
    const [mark = ''] = /\[redacted:[^\]]*\]/.exec(shown.last) ?? [];
    expect(mark).not.toBe('');
    seen = { token: access.token ?? '', mark };
  }, TIMEOUT_MS);
  afterAll(async () => {
    caller.leave();
  });

  type Write = (message: JsonObject) => string;
  async function send(method: string, params: JsonObject, write: Write, headers?: HeaderLines) {
    world.forget();
    let sent = '';
    const reply = await caller.request(method, params, {
      ...(client === 'stateless' && headers !== undefined && { headers }),
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
  async function sendAgain({ body }: Left, headers?: HeaderLines): Promise<readonly Left[]> {
    const { method, params } = messageOf(body);
    const { name, ...own } = isObject(params) ? params : {};
    const named = typeof name === 'string' ? { name: nameOf(name) } : {};
    const write: Write = ({ params: sent, ...rest }) => {
      const raw = Object.entries(written(body)).map(([one, json]) => `${JSON.stringify(one)}:${json}`);
      const meta = isObject(sent) ? sent['_meta'] : undefined;
      if (meta !== undefined) raw.push(`"_meta":${JSON.stringify(meta)}`);
      if (named.name !== undefined) raw.push(`"name":${JSON.stringify(named.name)}`);
      return JSON.stringify(rest).replace(/}$/, `,"params":{${raw.join()}}}`);
    };
    const { _meta: _, ...sent } = own;
    return (await send(String(method), { ...sent, ...named }, write, headers)).left;
  }

  it.each(CHECKS.map((check) => [check.what, check] as const))(
    '%s holds for what leaves',
    async (what, check) => {
      const random = createRandom(seed + CHECKS.indexOf(check));
      const rounds = ROUNDS * (check.times ?? 1);
      for (const carrier of carriersOf(check))
        for (let round = 0; round < rounds; round += 1) {
          const value = check.spell(random, seen);
          const isTwin = random.below(3) === 0;
          const isBeside = isTwin && random.below(2) === 0;
          const style = isTwin
            ? ambiguousStyle(random, carrier.member, isBeside ? (value ?? null) : check.beside)
            : faithfulStyle(random);
          const params = carrier.params(isBeside ? check.beside : value, nameOf);
          const headers = carrier.headers?.(isBeside ? check.beside : value);
          const { sent, left } = await send(carrier.method, params, writerOf(style), headers);
          for (const one of left) {
            expect([sent, check.finds(one, seen)]).toEqual([sent, undefined]);
            if (one.headers['mcp-name'] !== undefined) expectSameName(one);
          }
          if (left.length === 0) met.add(what);
          const [first] = left;
          if (first === undefined || !/call|get|read|complete/.test(carrier.method)) continue;
          const again = await sendAgain(first, headers);
          expect([sent, again.map(({ body }) => written(body))]).toEqual([sent, [written(first.body)]]);
        }
    },
    TIMEOUT_MS,
  );

  it.each(WITH_NEIGHBOURS)(
    '%s lets its neighbours pass to the byte',
    async (_what, check) => {
      const random = createRandom(seed + CHECKS.indexOf(check));
      for (const carrier of carriersOf(check))
        for (const value of check.harmless) {
          const params = carrier.params(value, nameOf);
          const { sent, left } = await send(carrier.method, params, writerOf(faithfulStyle(random)));
          if (carrier.method.endsWith('subscribe')) continue;
          expect([sent, left.map(({ body }) => written(body))]).toEqual([sent, [asSent(sent)]]);
        }
    },
    TIMEOUT_MS,
  );

  /** Asks for what a server answers so, and gives what the client gets: the answer last, byte for byte. */
  async function answered(method: string, act: (request: HostileRequest) => Act) {
    world.obey((request) => (request.method === method ? act(request) : undefined));
    const logLevel = client === 'stateless' ? { 'io.modelcontextprotocol/logLevel': 'debug' } : {};
    const params = {
      ...paramsFor(method, nameOf),
      _meta: { progressToken: PROGRESS_TOKEN, ...logLevel },
    };
    const reply = await caller.request(method, params);
    const all = [...reply.messages.map((one) => JSON.stringify(one)), ...messagesIn(reply.text)];
    return { all, last: all.at(-1) ?? '' };
  }

  it.each(REMOVALS.map((removal) => [removal.what, removal] as const))(
    '%s is in nothing that a client gets',
    async (what, removal) => {
      const random = createRandom(seed + REMOVALS.indexOf(removal));
      // One round takes every other carrier in each way, and two ways next to each other take all.
      const answers = removal.answers.filter((_, at) => ROUNDS > 1 || at % 2 === way % 2);
      for (const { method, answer } of answers)
        for (let round = 0; round < ROUNDS; round += 1) {
          const given = answer(removal.spell(random), random);
          const style = faithfulStyle(random);
          const { all, last } = await answered(method, actOf(given, style));
          const about = [method, JSON.stringify(given), last];
          expect([...about, removal.finds(all.flatMap(textsIn))]).toEqual([...about, undefined]);
          const left = outcomeIn(last);
          if (left.isRefusal || left.findings.some(({ action }) => action !== 'flag')) met.add(what);
          if (left.isRefusal) continue;
          const again = outcomeIn((await answered(method, actAgain(left.raw))).last);
          expect([...about, again.members]).toEqual([...about, left.members]);
          expect([...about, again.findings.filter(isChange)]).toEqual([...about, []]);
        }
    },
    TIMEOUT_MS,
  );

  it(
    'what is none of these passes to the byte',
    async () => {
      const random = createRandom(seed + REMOVALS.length);
      for (const { method, answer } of ANSWERS)
        for (let round = 0; round < 2 * ROUNDS; round += 1) {
          // The lists of an endpoint are joined, and so written anew.
          if (method.endsWith('/list') && behind === 'endpoint') continue;
          const act = actOf(answer(random.pick(HARMLESS), random), faithfulStyle(random));
          let sent = '';
          const { last } = await answered(method, (request) => {
            const done = act(request);
            sent = 'body' in done ? (messagesIn(String(done.body)).at(-1) ?? '') : '';
            return done;
          });
          expect(outcomeIn(last).members).toEqual(outcomeIn(sent).members);
        }
    },
    TIMEOUT_MS,
  );

  describe('where a flow closes a sink', () => {
    let closed: EraCaller;
    beforeAll(async () => {
      const upstream = world.items[0]?.upstream ?? '';
      const flows = `labels: {${upstream}/erase: [egress, trusted]}\nflows: [{id: f, from: untrusted, to: egress, effect: deny}]\n`;
      expect(await world.apply(policyOf(upstream) + flows)).toEqual([]);
      world.obey(() => undefined);
      closed = await connectIn(client, await world.access({ sub: 'eve' }));
      await closed.request('tools/call', { name: nameOf('work'), arguments: {} });
    }, TIMEOUT_MS);
    afterAll(() => closed.leave());

    it('nothing that its caller words reaches it beside what a request is about', async () => {
      const random = createRandom(seed + CHECKS.length);
      world.obey(() => undefined);
      for (const method of LISTS)
        for (let round = 0; round < ROUNDS; round += 1) {
          world.forget();
          const spelt = spellText(WORDED, random);
          const own = random.pick(['com.example/note', 'baggage', 'IO.modelcontextprotocol/x', WORDED]);
          const params = {
            ...{ _meta: { [own]: random.pick<Json>([spelt, { deep: [spelt] }]) } },
            ...(random.below(4) === 0 && { cursor: spelt }),
          };
          const style =
            random.below(3) === 0 ? ambiguousStyle(random, '_meta', { note: WORDED }) : faithfulStyle(random);
          const headers = { [random.pick(HEADERS)]: WORDED, [random.pick(HEADERS)]: WORDED };
          await closed.request(method, params, { headers, write: writerOf(style) });
          const left = world
            .left()
            .flatMap((one) => [
              ...textsIn(one.body === '' ? '{}' : one.body),
              ...Object.values(one.headers).map(decodeHeader),
            ]);
          expect([method, params, findAny([WORDED], 2)(left)]).toEqual([method, params, undefined]);
        }
    });

    it('is refused what the sink does, however it is written', async () => {
      const random = createRandom(seed + CHECKS.length);
      for (let round = 0; round < 4 * ROUNDS; round += 1) {
        world.forget();
        const params = {
          name: nameOf(random.pick(['erase', 'work'])),
          arguments: { mode: 'read' },
        };
        const style = ambiguousStyle(random, 'name', nameOf('erase'));
        await closed.request('tools/call', params, { write: writerOf(style) });
        const names = world.left().flatMap(({ body }) => valuesAt(body || '{}', ['params', 'name']));
        expect(names).not.toContain('erase');
      }
    });

    it('nothing that no pin holds of its source reaches a client in lists', async () => {
      const random = createRandom(seed + CHECKS.length);
      for (const method of LISTS)
        for (let round = 0; round < ROUNDS; round += 1) {
          const spelt = spellText(WORDED, random);
          const given = listWith(method, spelt, random);
          world.obey((request) =>
            request.method === method ? actOf(given, faithfulStyle(random))(request) : undefined,
          );
          const reply = await closed.request(method, {});
          const all = [...reply.messages.map((one) => JSON.stringify(one)), ...messagesIn(reply.text)];
          expect([method, given, findAny([WORDED], 2)(all.flatMap(textsIn))]).toEqual([method, given, undefined]);
        }
    });
  });
});

it('every check was met', () => {
  expect([...CHECKS, ...REMOVALS].map(({ what }) => what).filter((what) => !met.has(what))).toEqual([]);
});

/** A header as MCP 2026-07-28 writes values into it. */
function decodeHeader(header: string): string {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(header)?.[1];
  return encoded === undefined ? header : Buffer.from(encoded, 'base64').toString();
}

/** The header names what every reader of the body finds. */
function expectSameName({ headers, body }: Left): void {
  const name = decodeHeader(headers['mcp-name'] ?? '');
  const named = ['name', 'uri', 'taskId'].flatMap((one) => valuesAt(body, ['params', one]));
  expect([...new Set(named.filter((one) => one !== undefined))]).toEqual([name]);
}
