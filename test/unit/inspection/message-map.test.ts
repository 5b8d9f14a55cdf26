// The map of a message: what each string is, and what is joined. All readers of a message agree about both.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { definitionTextsAt, joinedTextsOf, placeOf } from '../../../src/inspection/message-map.js';
import { inspectFully, inspectMessage, passIfClean } from '../../../src/inspection/responses.js';
import { walkJson, walkValue } from '../../../src/protocol/json/walk.js';
import { isObject, type Json, type JsonObject } from '../../../src/protocol/jsonrpc.js';
import { awsKey, githubToken } from '../../support/seeded-values.js';
import { profile } from './samples.js';

function result(members: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: 1, result: members };
}

/** Where a host shows or joins texts: a message with these texts at one such place. */
const PLACES: readonly (readonly [string, (texts: readonly string[]) => JsonObject])[] = [
  ['content', (texts) => result({ content: texts.map((text) => ({ type: 'text', text })) })],
  [
    'content of resources',
    (texts) =>
      result({
        content: texts.map((text) => ({ type: 'resource', resource: { uri: 'file:///a', text } })),
      }),
  ],
  ['contents', (texts) => result({ contents: texts.map((text) => ({ uri: 'file:///a', text })) })],
  ['notes', (texts) => result({ notes: texts.map((text) => ({ text })) })],
  ['a list of strings', (texts) => result({ lines: [...texts] })],
  [
    'messages of a prompt',
    (texts) =>
      result({
        messages: texts.map((text) => ({ role: 'user', content: { type: 'text', text } })),
      }),
  ],
  [
    'blocks of one message of a prompt',
    (texts) =>
      result({
        messages: [{ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }],
      }),
  ],
  [
    'messages of a sampling request',
    (texts) => ({
      ...{ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage' },
      params: {
        maxTokens: 1,
        messages: texts.map((text) => ({ role: 'user', content: { type: 'text', text } })),
      },
    }),
  ],
  [
    'blocks of a sampling request',
    (texts) => ({
      ...{ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage' },
      params: {
        maxTokens: 1,
        messages: [{ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }],
      },
    }),
  ],
  [
    'data of a log entry',
    (texts) => ({
      ...{ jsonrpc: '2.0', method: 'notifications/message' },
      params: { level: 'info', data: { lines: [...texts] } },
    }),
  ],
  [
    'an error and its data',
    ([message = '', ...data]) => ({ jsonrpc: '2.0', id: 1, error: { code: -1, message, data } }),
  ],
  ['structured content', (texts) => result({ content: [], structuredContent: { list: [...texts] } })],
  [
    'lists of lists in JSON in a text',
    (texts) => result({ content: [{ type: 'text', text: JSON.stringify(texts.map((text) => [[text]])) }] }),
  ],
  [
    'lists in objects in JSON behind a word',
    (texts) => {
      const lines = JSON.stringify(texts.map((text) => ({ line: [text] })));
      return result({ content: [{ type: 'text', text: `out: ${lines}` }] });
    },
  ],
];

/** Places for one text. */
const SINGLE: readonly (readonly [string, (text: string) => JsonObject])[] = [
  ...PLACES.map(([what, build]) => [what, (text: string) => build([text])] as const),
  ['JSON in a text', (text) => result({ content: [{ type: 'text', text: JSON.stringify([text]) }] })],
  ['text', (text) => result({ content: [], text })],
  ['an unknown member', (text) => result({ content: [], note: text })],
  ['an unknown member of a block', (text) => result({ content: [{ type: 'text', text: 'a', note: text }] })],
  [
    'progress',
    (message) => ({
      ...{ jsonrpc: '2.0', method: 'notifications/progress' },
      params: { progressToken: 1, progress: 1, message },
    }),
  ],
];

function leaving(message: JsonObject): { readonly kind: string; readonly text: string } {
  const text = JSON.stringify(message);
  const outcome = inspectMessage({ text, value: message, profile, requestMethod: 'tools/call' });
  if (outcome.kind === 'withhold') return { kind: outcome.reason, text: '' };
  return { kind: outcome.kind, text: outcome.kind === 'changed' ? outcome.text : text };
}

describe('the map of a message', () => {
  it.each(PLACES)('[I-25] a secret that is cut over texts never leaves whole: %s', (_what, build) => {
    const token = githubToken('map');
    const small = Array.from({ length: 12 }, (_, at) => 3 * at + 3);
    for (const cuts of [[20], [4, 11, 18, 30], small]) {
      const starts = [0, ...cuts];
      const texts = starts.map((start, at) => token.slice(start, starts[at + 1]));
      const { kind, text } = leaving(build(texts));
      expect(kind).toBe('changed');
      for (const piece of texts) if (piece.length > 4) expect(text).not.toContain(piece);
    }
  });

  it.each(SINGLE)('[I-21] a secret is redacted, nothing withheld: %s', (_what, build) => {
    const key = awsKey('map');
    const { kind, text } = leaving(build(`see ${key} there`));
    expect(kind).toBe('changed');
    expect(text).not.toContain(key);
    expect(text).toContain('see [redacted:aws-access-key');
  });

  it.each([
    ['an address with a user', 'see https://someone@example.com/report'],
    ['code with a script in a link', 'Use `"[x](javascript:alert(1))]"` here.'],
    ['a long query', `https://a.example/?q=${'b'.repeat(20)}">t<3[c]\`${'b'.repeat(55)}`],
    ['a token that is none', 'the token: done'],
  ])('[I-21] one text meets one rule wherever it stands, and is never withheld: %s', (_what, given) => {
    for (const [, build] of SINGLE) expect(leaving(build(given)).kind).toMatch(/^(?:clean|changed)$/);
    const readers = SINGLE.filter(([what]) => !/structured|JSON|log/.test(what));
    const asWritten = JSON.stringify(given).slice(1, -1);
    const stays = readers.map(([, build]) => leaving(build(given)).text.includes(asWritten));
    expect(new Set(stays).size).toBe(1);
  });

  it.each(PLACES)('[I-18] an empty text parts nothing from what was sent before: %s', (_what, build) => {
    const texts = ['', ':0', githubToken('empty').slice(0, 9)];
    const value = build(texts);
    const text = JSON.stringify(value);
    const input = { text, value, profile, previousTail: 'password' };
    expect(passIfClean(input) === undefined || inspectFully(input).kind === 'clean').toBe(true);
  });

  it('[I-18] law: in a message that the prefilter passes a full inspection finds nothing, joined texts included', () => {
    const pieces = fc.oneof(
      fc.constantFrom('npm', '_', 'password', '=', ': ', 'bearer', 'done', '4111', ' ', 'hv9OGAXw', 'Du57'),
      fc.constantFrom('![', '[a]', '](', 'http', '://a.example/', '<', 'img', 'java', 'script:', '\n'),
      fc.constantFrom(githubToken('law').slice(0, 9), awsKey('law').slice(3, 12), 'see', 'the report'),
      fc.constantFrom('<wbr>', '<b></b>', '<i>', '</i>', '<!-- -->', '&shy', '&#0000173;', '**', '\\_', '\\147'),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...PLACES),
        fc.array(pieces, { maxLength: 6 }),
        fc.option(pieces, { nil: '' }),
        ([, build], texts, tail) => {
          const value = build(texts);
          const text = JSON.stringify(value);
          const input = {
            text,
            value,
            profile,
            requestMethod: 'tools/call',
            previousTail: tail,
          };
          if (passIfClean(input) === undefined) return;
          expect([text, tail, inspectFully(input)]).toMatchObject([text, tail, { kind: 'clean', findings: [] }]);
        },
      ),
      { numRuns: 4000 },
    );
  });

  it('[I-18] law: the map of the text is the map of its value', () => {
    const name = fc.constantFrom('text', 'content', 'data', 'note', 'message', 'uri', '_meta', 'list');
    const leaf = fc.oneof(fc.string({ maxLength: 4 }), fc.integer(), fc.constant(null));
    const { value } = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(name, tie('value'), { maxKeys: 3 }),
      ) as fc.Arbitrary<Json>,
    }));
    const holder = fc.dictionary(
      fc.constantFrom('content', 'structuredContent', 'data', 'message', 'text', 'messages'),
      value,
      { maxKeys: 3 },
    );
    fc.assert(
      fc.property(fc.constantFrom('result', 'params', 'error'), holder, (where, members) => {
        const message: JsonObject = { jsonrpc: '2.0', [where]: members as Json };
        const groups = new Map<string, string[]>();
        const continued: string[] = [];
        walkJson(JSON.stringify(message), { maxDepth: 64, maxStrings: 1e6 }, ({ kind, value: text, steps }) => {
          if (kind !== 'string') return;
          const place = placeOf(steps);
          if (place.group !== undefined) groups.set(place.group, [...(groups.get(place.group) ?? []), text]);
          if (place.isContinued) continued.push(text);
        });
        const map = joinedTextsOf(message);
        expect(map.continued).toEqual(continued);
        // The prefilter also reads the names in a structure.
        for (const [group, texts] of groups) {
          const read = map.groups.get(group) ?? [];
          expect(read.filter((text) => texts.includes(text)).length).toBeGreaterThanOrEqual(texts.length);
        }
        expect(isObject(message)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the map of a definition', () => {
  it('says of each string what it is, and which of them a model reads in a row', () => {
    const definition = {
      name: 'add',
      description: 'Adds.',
      inputSchema: {
        type: 'object',
        properties: { type: { type: 'string', title: 'Sort', enum: ['a sum', 'string'] } },
      },
      annotations: { 'x/y': true },
      arguments: [{ name: 'left' }],
    };
    const rows: unknown[] = [];
    walkValue(definition, [], (value, steps) => {
      for (const { pointer, value: text, isName, role, group } of definitionTextsAt(value, steps))
        if (group !== undefined) rows.push([pointer, text, isName, role, group]);
      return true;
    });
    expect(rows).toEqual([
      ['/name', 'add', true, 'reader', 'name'],
      ['/description', 'Adds.', false, 'reader', 'description'],
      ['/inputSchema/properties/type', 'type', true, 'reader', 'name'],
      ['/inputSchema/properties/type/title', 'Sort', false, 'value', 'title'],
      ['/inputSchema/properties/type/enum/0', 'a sum', false, 'value', 'other'],
      ['/annotations/x~1y', 'x/y', true, 'value', 'name'],
      ['/arguments/0/name', 'left', true, 'reader', 'name'],
    ]);
  });
});
