// Which types an Accept header takes.
// Headers that are written from a body say what the body says, to the one reader that compares them.

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  acceptsType,
  compareParamHeaders,
  decodeHeaderValue,
  encodeHeaderValue,
  matchesName,
  mirroredParameters,
  readParamHeaders,
  statelessHeaders,
} from '../../../src/protocol/headers.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';

function encoded(text: string): string {
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

describe('values of headers', () => {
  test('[M-12] any text survives encoding and decoding', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(decodeHeaderValue(encoded(text))).toBe(text);
      }),
    );
  });

  test('[M-12] optional whitespace is trimmed, nothing else is', () => {
    expect(decodeHeaderValue(' \t name \t')).toBe('name');
    expect(decodeHeaderValue('\u00a0name')).toBeUndefined();
    expect(decodeHeaderValue(encoded(' name '))).toBe(' name ');
  });

  test.each([
    ['no padding', '=?base64?YQ?='],
    ['spare bits', '=?base64?YR==?='],
    ['the URL alphabet', '=?base64?_-8=?='],
    ['a blank inside', '=?base64?Y Q==?='],
    ['padding in the middle', '=?base64?YQ==YQ==?='],
    ['invalid UTF-8', '=?base64?wyg=?='],
    ['raw UTF-8', 'caf\u00c3\u00a9'],
    ['a control character', 'a\u0007b'],
    ['a tab inside', 'a\tb'],
    ['DEL', 'a\u007f'],
  ])('[M-12] %s makes a value malformed', (_what, value) => {
    expect(decodeHeaderValue(value)).toBeUndefined();
  });

  test('[M-12] the form is exact: another case of it is literal', () => {
    expect(decodeHeaderValue('=?BASE64?YQ==?=')).toBe('=?BASE64?YQ==?=');
    expect(decodeHeaderValue('=?base64?=')).toBe('=?base64?=');
    expect(decodeHeaderValue('=?base64??=')).toBe('');
  });

  test('[M-12] a name matches exactly, and never with control characters', () => {
    expect(matchesName('get_issue', 'get_issue')).toBe(true);
    expect(matchesName(' get_issue ', 'get_issue')).toBe(true);
    expect(matchesName('Get_Issue', 'get_issue')).toBe(false);
    expect(matchesName(undefined, 'get_issue')).toBe(false);
    expect(matchesName(encoded('größe'), 'größe')).toBe(true);
    expect(matchesName(encoded('a\r\nb'), 'a\r\nb')).toBe(false);
    expect(matchesName(encoded('a\u0085b'), 'a\u0085b')).toBe(false);
    expect(matchesName(encoded('a'), encoded('a'))).toBe(false);
    expect(matchesName(encoded(encoded('a')), encoded('a'))).toBe(true);
  });
});

describe('parameter headers', () => {
  test('[M-13] all of them are kept, unknown ones too, under lower-case names', () => {
    const headers = { 'mcp-param-region': ' eu ', 'mcp-param-x': encoded('ä'), accept: '*/*' };
    const read = readParamHeaders(headers, new Set());
    expect({ ...read }).toEqual({ 'mcp-param-region': 'eu', 'mcp-param-x': encoded('ä') });
  });

  test('[M-13] one that is repeated or malformed is refused', () => {
    const headers = { 'mcp-param-region': 'eu' };
    expect(readParamHeaders(headers, new Set(['mcp-param-region']))).toBeUndefined();
    expect(readParamHeaders({ 'mcp-param-a': '=?base64?x?=' }, new Set())).toBeUndefined();
    expect(readParamHeaders({ 'mcp-param-__proto__': 'x' }, new Set())).toBeDefined();
  });

  const mirrored = [
    { header: 'Region', path: ['region'] },
    { header: 'Count', path: ['page', 'count'] },
    { header: 'Dry-Run', path: ['dry'] },
  ];

  test.each<[JsonObject, { [name: string]: string }, boolean]>([
    [{}, {}, true],
    [{ region: 'eu' }, { 'mcp-param-region': 'eu' }, true],
    [{ region: 'eu' }, {}, false],
    [{ region: 'eu' }, { 'mcp-param-region': 'us' }, false],
    [{ region: 'eu' }, { 'mcp-param-region': 'EU' }, false],
    [{ region: null }, {}, true],
    [{ region: null }, { 'mcp-param-region': 'null' }, false],
    [{}, { 'mcp-param-region': '' }, false],
    [{ region: '' }, { 'mcp-param-region': '' }, true],
    [{ region: 'zürich\n' }, { 'mcp-param-region': encoded('zürich\n') }, true],
    [{ page: { count: 42 } }, { 'mcp-param-count': '42' }, true],
    [{ page: { count: 42 } }, { 'mcp-param-count': '42.0' }, true],
    [{ page: { count: 42 } }, { 'mcp-param-count': '43' }, false],
    [{ page: { count: 42 } }, { 'mcp-param-count': '0x2a' }, false],
    [{ page: { count: 42 } }, { 'mcp-param-count': '4.2e1' }, false],
    [{ page: { count: 0 } }, { 'mcp-param-count': '' }, false],
    [{ page: [{ count: 42 }] }, {}, true],
    [{ page: 'x' }, { 'mcp-param-count': '42' }, false],
    [{ dry: true }, { 'mcp-param-dry-run': 'true' }, true],
    [{ dry: false }, { 'mcp-param-dry-run': 'False' }, false],
    [{ dry: { a: 1 } }, {}, true],
    [{ dry: { a: 1 } }, { 'mcp-param-dry-run': '[object Object]' }, false],
    [{}, { 'mcp-param-other': 'anything' }, true],
  ])('[M-13] arguments %j with headers %j agree: %s', (args, headers, isEqual) => {
    expect(compareParamHeaders(mirrored, args, headers)).toBe(isEqual);
  });

  test('[M-13] an inherited member is no argument', () => {
    const inherited = [{ header: 'C', path: ['constructor', 'name'] }];
    expect(compareParamHeaders(inherited, {}, {})).toBe(true);
    expect(compareParamHeaders(inherited, {}, { 'mcp-param-c': 'Object' })).toBe(false);
  });
});

describe('x-mcp-header in a schema', () => {
  const text = { type: 'string', 'x-mcp-header': 'Region' };

  test('[M-14] is read where properties alone lead to it', () => {
    const schema = {
      type: 'object',
      properties: {
        region: text,
        'x-mcp-header': { type: 'string' },
        page: {
          type: 'object',
          properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } },
        },
        dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run', default: { 'x-mcp-header': 1 } },
        list: { type: 'array', items: { type: 'object', properties: { 'x-mcp-header': true } } },
      },
      $defs: { 'x-mcp-header': { type: 'string' } },
    };
    expect(mirroredParameters(schema)).toEqual({
      valid: true,
      mirrored: [
        { header: 'Region', path: ['region'] },
        { header: 'Count', path: ['page', 'count'] },
        { header: 'Dry-Run', path: ['dry'] },
      ],
    });
    expect(mirroredParameters({ type: 'object' })).toEqual({ valid: true, mirrored: [] });
    expect(mirroredParameters(true)).toEqual({ valid: true, mirrored: [] });
  });

  test.each<[string, Json]>([
    ['an empty name', { properties: { a: { type: 'string', 'x-mcp-header': '' } } }],
    ['a name with CR and LF', { properties: { a: { type: 'string', 'x-mcp-header': 'a\r\nb' } } }],
    ['a name with a blank', { properties: { a: { type: 'string', 'x-mcp-header': 'a b' } } }],
    ['a name that is no string', { properties: { a: { type: 'string', 'x-mcp-header': 1 } } }],
    ['two names equal but for case', { properties: { a: text, b: { type: 'string', 'x-mcp-header': 'REGION' } } }],
    ['a number', { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } }],
    ['an object', { properties: { a: { type: 'object', 'x-mcp-header': 'A' } } }],
    ['several types', { properties: { a: { type: ['string', 'null'], 'x-mcp-header': 'A' } } }],
    ['no type', { properties: { a: { 'x-mcp-header': 'A' } } }],
    ['the root', { type: 'string', 'x-mcp-header': 'A' }],
    ['items', { properties: { a: { items: text } } }],
    ['prefixItems', { properties: { a: { prefixItems: [text] } } }],
    ['properties within items', { properties: { a: { items: { properties: { b: text } } } } }],
    ['oneOf', { oneOf: [{ properties: { a: text } }] }],
    ['anyOf', { properties: { a: { anyOf: [text] } } }],
    ['allOf', { allOf: [{ properties: { a: text } }] }],
    ['not', { not: { properties: { a: text } } }],
    ['if', { if: { properties: { a: text } } }],
    ['a definition', { $defs: { a: text }, properties: { a: { $ref: '#/$defs/a' } } }],
    ['a definition called like data', { $defs: { default: text } }],
    ['patternProperties', { patternProperties: { a: text } }],
    ['additionalProperties', { additionalProperties: text }],
    ['an unknown keyword', { properties: { a: { custom: { deep: text } } } }],
    ['beside a reference', { properties: { a: { ...text, $ref: '#/$defs/x' } } }],
  ])('[M-14] on %s makes the tool invalid', (_where, schema) => {
    expect(mirroredParameters(schema)).toMatchObject({ valid: false });
  });

  test('[M-14] a schema too deep to search is invalid', () => {
    let schema: Json = { type: 'string' };
    for (let depth = 0; depth < 5000; depth++) schema = { properties: { a: schema } };
    expect(mirroredParameters(schema)).toMatchObject({ valid: false });
    let other: Json = { type: 'string' };
    for (let depth = 0; depth < 5000; depth++) other = { not: other };
    expect(mirroredParameters(other)).toMatchObject({ valid: false });
  });
});

const STREAM = 'text/event-stream';

describe('[LEG-12] an Accept header', () => {
  it.each([
    [undefined, true],
    ['', true],
    ['*/*', true],
    ['text/*', true],
    ['application/json, text/event-stream', true],
    ['TEXT/Event-Stream; charset=utf-8', true],
    ['text/event-stream;q=0.1', true],
    ['application/json', false],
    ['text/html', false],
    ['text/event-stream;q=0', false],
    ['text/event-stream;q=0.000, */*', false],
    ['*/*, text/*;q=0', false],
    ['text/*;q=0, text/event-stream', true],
  ])('%j takes a stream: %j', (accept, isTaken) => {
    expect(acceptsType(accept, STREAM)).toBe(isTaken);
  });

  it('takes what it names, whatever else it says (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 8 }), (others) => {
        const ranges = others.map((one) => one.replace(/,/g, '')).filter((one) => !/event/i.test(one));
        expect(acceptsType([STREAM, ...ranges].join(','), STREAM)).toBe(true);
      }),
    );
  });
});

const graphemes = fc.string({ unit: 'grapheme' });

describe('a header that is written from a value', () => {
  it('[Y-08] decodes to that value, in visible ASCII', () => {
    fc.assert(
      fc.property(graphemes, (value) => {
        const encoded = encodeHeaderValue(value);
        expect(encoded).toMatch(/^[\x20-\x7e]*$/);
        expect(decodeHeaderValue(encoded)).toBe(value);
      }),
    );
  });

  it.each(['=?base64?eA==?=', ' led', 'trailed ', 'grüße', 'a\nb', ''])(
    '[Y-08] is told from its own encoding: %j',
    (value) => {
      const encoded = encodeHeaderValue(value);
      expect(encoded.startsWith('=?base64?')).toBe(true);
      expect(decodeHeaderValue(encoded)).toBe(value);
    },
  );

  it('[Y-08] agrees with the arguments that it mirrors', () => {
    const mirrored = [
      { header: 'Region', path: ['region'] },
      { header: 'Count', path: ['inner', 'count'] },
      { header: 'Flag', path: ['flag'] },
    ];
    const args = fc.record(
      {
        region: fc.oneof(graphemes, fc.constant(null)),
        inner: fc.record({ count: fc.oneof(fc.maxSafeInteger(), fc.constant(null)) }),
        flag: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(args, (given) => {
        const params = { name: 'tool', arguments: given };
        const headers = statelessHeaders('2026-07-28', 'tools/call', params, mirrored);
        const written = Object.fromEntries(headers);
        expect(compareParamHeaders(mirrored, given, written)).toBe(true);
        expect(matchesName(written['mcp-name'], 'tool')).toBe(true);
      }),
    );
  });
});
