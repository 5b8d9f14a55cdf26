// Icons that a client would fetch: removed wherever the protocol has icons, left where names are free.

import { describe, expect, it } from 'vitest';
import { sanitizeText } from '../../../src/inspection/detectors/text-sanitizer.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../../../src/protocol/jsonrpc.js';
import { profile } from './samples.js';

const PIXEL = `data:image/png;base64,${Buffer.from('pixel').toString('base64')}`;
/** What it is, the icons, and those that are left. */
const REMOTE: readonly (readonly [string, Json, Json?])[] = [
  ['https', [{ src: 'https://collect.example/a.png' }]],
  ['http', [{ src: 'http://collect.example/a.png' }]],
  ['one of two', [{ src: PIXEL }, { src: 'https://collect.example/a.png' }], [{ src: PIXEL }]],
  ['a data URL with script', [{ src: 'data:image/svg+xml;base64,AAAA' }]],
  ['no list', { src: 'https://collect.example/a.png' }],
  ['a bare URL', 'https://collect.example/a.png'],
  ['a list of URLs', ['https://collect.example/a.png']],
  ['no source', [{ href: 'https://collect.example/a.png' }]],
];

function link(icons: Json): JsonObject {
  return { type: 'resource_link', uri: 'memo://one', name: 'one', icons };
}

function result(members: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: 1, result: members };
}

function ask(params: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params };
}

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

const PLACES: readonly (readonly [string, (icons: Json) => JsonObject])[] = [
  ['a block', (icons) => result({ content: [link(icons)] })],
  [
    'an embedded resource',
    (icons) => result({ content: [{ type: 'resource', resource: { uri: 'x:y', text: 'x', icons } }] }),
  ],
  ['a block of an unknown type', (icons) => result({ content: [{ type: 'x', deep: [{ icons }] }] })],
  ['a message of a prompt', (icons) => result({ messages: [{ role: 'user', content: link(icons) }] })],
  ['a resource that was read', (icons) => result({ contents: [{ uri: 'x:y', text: 'x', icons }] })],
  [
    'an input request, whatever its key',
    (icons) => result({ inputRequests: { data: ask({ messages: [{ content: link(icons) }] }) } }),
  ],
  ['the result itself', (icons) => result({ content: [], icons })],
  ['a resource of a list', (icons) => result({ resources: [{ uri: 'memo://one', name: 'one', icons }] })],
  ['the server', (icons) => result({ serverInfo: { name: 'x', version: '1', icons } })],
  [
    'the server in _meta',
    (icons) => result({ content: [], _meta: { [SERVER_INFO]: { name: 'x', version: '1', icons } } }),
  ],
  [
    'a message of a question',
    (icons) => ask({ maxTokens: 1, messages: [{ role: 'user', content: [{ type: 'text' }, link(icons)] }] }),
  ],
  [
    'a result within a question',
    (icons) =>
      ask({
        maxTokens: 1,
        messages: [
          {
            role: 'user',
            content: { type: 'tool_result', toolUseId: 'x', content: [link(icons)] },
          },
        ],
      }),
  ],
  ['a tool of a question', (icons) => ask({ maxTokens: 1, messages: [], tools: [{ icons }] })],
  [
    'a question of a result',
    (icons) => result({ inputRequests: { one: { method: 'x', params: { messages: [link(icons)] } } } }),
  ],
];

const FREE: readonly (readonly [string, (icons: Json) => JsonObject])[] = [
  ['structured content', (icons) => result({ content: [], structuredContent: { icons } })],
  ['a schema', (icons) => result({ tools: [{ name: 'x', inputSchema: { properties: { icons } } }] })],
  [
    'the input of a tool',
    (icons) =>
      ask({
        maxTokens: 1,
        messages: [{ role: 'user', content: { type: 'tool_use', input: { icons } } }],
      }),
  ],
  ['another _meta', (icons) => result({ content: [], _meta: { 'example.com/x': { icons } } })],
  [
    'a log',
    (icons) => ({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: { icons } },
    }),
  ],
  ['JSON in a text', (icons) => result({ content: [{ type: 'text', text: JSON.stringify({ icons }) }] })],
];

function inspect(message: JsonObject) {
  const text = JSON.stringify(message);
  return inspectMessage({ text, value: message, profile });
}

describe('[I-36] remote icons', () => {
  const cases = PLACES.flatMap(([place, build]) =>
    REMOTE.map(([what, icons, left = []]) => [place, what, build(icons), build(left)] as const),
  );
  it.each(cases)('are gone from %s: %s', (_place, _what, message, without) => {
    const outcome = inspect(message);
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    expect(outcome.text).not.toContain('collect.example');
    expect(outcome.findings).toMatchObject([{ detector: 'remote-icons', action: 'drop' }]);
    expect(withoutFindings(outcome.value)).toEqual(without);
  });

  it.each(PLACES)('that are pictures in data URLs stay in %s', (_place, build) => {
    expect(inspect(build([{ src: PIXEL, sizes: ['48x48'] }])).kind).toBe('clean');
  });

  it.each(FREE)('are nobody else’s in %s', (_place, build) => {
    expect(inspect(build([{ src: 'https://collect.example/a.png' }])).kind).toBe('clean');
  });

  it('are gone with all that they hold, and everything beside them stays byte for byte', () => {
    const block = '{ "type":"resource_link" ,"icons" : [{"icons":["https://a.example/"] , "x":"\\u005d}"}]';
    const text = `{"jsonrpc":"2.0","id":1,"result":{"content":[${block} , "name":"one"}, ${block}}]}}`;
    const outcome = inspectMessage({ text, value: JSON.parse(text), profile });
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    const left = '{ "type":"resource_link" ,"icons":[]';
    expect(outcome.text).toContain(`"content":[${left}, "name":"one"}, ${left}}]`);
  });

  it('are gone from ten thousand blocks in one pass', () => {
    let looked = 0;
    const content = Array.from({ length: 10_000 }, () => link('https://collect.example/a.png'));
    const message = result({ content });
    const text = JSON.stringify(message);
    const count: typeof sanitizeText = (one, rules, place) => {
      looked += 1;
      return sanitizeText(one, rules, place);
    };
    const outcome = inspectMessage({ text, value: message, profile }, count);
    expect(outcome.kind).toBe('changed');
    // Once each as it came and as it leaves.
    expect(looked).toBeLessThan(content.length * 16);
  });
});

/** The message without what we tell of it. */
function withoutFindings(message: Json): Json {
  const copy = JSON.parse(JSON.stringify(message));
  const meta = isObject(copy) && isObject(copy['result']) ? copy['result']['_meta'] : undefined;
  if (!isObject(meta)) return copy;
  const { 'dev.sallyport/findings': _own, ...rest } = meta;
  if (Object.keys(rest).length > 0) copy.result._meta = rest;
  else delete copy.result._meta;
  return copy;
}
