import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  applyEdits,
  elementSpans,
  hasInexactNumber,
  MAX_JSON_DEPTH,
  memberSpans,
  readJson,
  readJsonText,
  removalEdits,
  replaceLoneSurrogates,
  spanOf,
} from '../../../../src/protocol/json/json.js';
import type { Json } from '../../../../src/protocol/jsonrpc.js';
import { isObject } from '../../../../src/protocol/jsonrpc.js';

const encoder = new TextEncoder();

function read(text: string, maxDepth = MAX_JSON_DEPTH) {
  return readJson(encoder.encode(text), { maxDepth, maxValues: 10_000_000 });
}

function errorOf(text: string, maxDepth = MAX_JSON_DEPTH): string | undefined {
  const reading = read(text, maxDepth);
  return reading.ok ? undefined : reading.error;
}

/** JSON whose member names are distinct however a parser folds them. */
const plainJson = fc.jsonValue({ maxDepth: 5 }).filter((value) => errorOf(JSON.stringify(value)) === undefined);

const spacings = fc.constantFrom('', ' ', '\t', '\r\n');

describe('reading bytes', () => {
  test('[M-01] valid JSON is read as JSON.parse reads it, whatever its spacing', () => {
    fc.assert(
      fc.property(plainJson, spacings, (value, spacing) => {
        const text = JSON.stringify(value, undefined, spacing);
        expect(read(text)).toMatchObject({ ok: true, text, value: JSON.parse(text) });
      }),
    );
  });

  test('[M-01] what JSON.parse refuses is refused, whatever the text', () => {
    const fragments = fc.array(
      fc.constantFrom('{', '}', '[', ']', '"', 'a', '\\', '\\u', 'd800', ',', ':', '1', '-', ' ', 'e'),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(fragments, (parts) => {
        const text = parts.join('');
        let isValid = true;
        try {
          JSON.parse(text);
        } catch {
          isValid = false;
        }
        if (!isValid) expect(read(text).ok).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['a truncated sequence', [0x22, 0xc3, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
    ['UTF-16', [0x7b, 0x00, 0x7d, 0x00]],
    ['nothing', []],
  ])('[M-01] %s is malformed', (_what, bytes) => {
    expect(readJson(Uint8Array.from(bytes))).toEqual({
      ok: false,
      error: 'malformed-json',
    });
  });

  test.each([
    String.raw`"\ud800"`,
    String.raw`"\udc00"`,
    String.raw`"\uD83D\\uDE00"`,
    String.raw`"\ud83dx"`,
    String.raw`"\ud83d\ud83d\ude00"`,
    String.raw`{"\uDFFF":1}`,
    String.raw`["ok","a\n\uDBFF"]`,
  ])('[M-01] the lone surrogate in %s is refused as such, and can be replaced', (text) => {
    expect(errorOf(text)).toBe('lone-surrogate');
    const mended = replaceLoneSurrogates(text);
    expect(mended.positions.length).toBeGreaterThan(0);
    expect(mended.text).toHaveLength(text.length);
    expect(read(mended.text)).toMatchObject({ ok: true });
  });

  test('[M-01] replacing lone surrogates changes nothing but them', () => {
    const unit = fc.constantFrom('\\ud83d', '\\uDE00', '\\\\', '\\n', 'ud83d', 'a', '\\u0041', 'é');
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 12 }), (units) => {
        const text = `"${units.join('')}"`;
        const { text: mended, positions } = replaceLoneSurrogates(text);
        expect(JSON.parse(mended)).toBe(Buffer.from(String(JSON.parse(text))).toString());
        expect(positions.length === 0).toBe(mended === text);
        expect(read(mended).ok).toBe(true);
      }),
    );
  });

  test.each([String.raw`"\ud83d\ude00"`, String.raw`"\uD83D\uDE00\\ud800"`, String.raw`"\\\ud83d\ude00\""`, '"😀"'])(
    '[M-01] the text %s is read',
    (text) => {
      expect(read(text)).toMatchObject({ ok: true, value: JSON.parse(text) });
    },
  );
});

describe('duplicate members', () => {
  test.each([
    '{"name":"safe","name":"evil"}',
    '{"name":"safe","Name":"evil"}',
    String.raw`{"name":1,"n\u0061me":2}`,
    '{"a":{"b":[{"c":1,"d":{},"C":2}]}}',
    '{"set":1,"\u017fet":2}',
    '{"key":1,"\u212aey":2}',
    String.raw`{"key":1,"\u212Aey":2}`,
    '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"A":11}',
    '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"\u212a":11}',
  ])('[M-02] %s is refused', (text) => {
    expect(errorOf(text)).toBe('duplicate-key');
  });

  test.each([
    '{"a":{"a":{"a":1}},"b":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":{"b":1},"b":2}',
    '{"a":[{"b":{"c":1}}],"c":2,"b":3}',
    '{"a":["a","a"],"b":"a"}',
    '{"ß":1,"ss":2}',
    '{"":1," ":2}',
    String.raw`{"a":"\"b\":1","b":2}`,
  ])('[M-02] %s is read', (text) => {
    expect(read(text)).toMatchObject({ ok: true, value: JSON.parse(text) });
  });

  test('[M-02] any member repeated in any case anywhere is refused', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(names, fc.nat(), fc.nat({ max: 5 }), (members, pick, depth) => {
        const again = members[pick % members.length] ?? 'a';
        const body = [...members, again.toUpperCase()].map((name) => `"${name}":[1,"x"]`).join(',');
        const text = `${'{"o":['.repeat(depth)}{${body}}${']}'.repeat(depth)}`;
        expect(errorOf(text)).toBe('duplicate-key');
      }),
    );
  });

  test.each([
    '{"params":{"arguments":{"env":{"HTTP_PROXY":1,"http_proxy":2}}}}',
    '{"params":{"arguments":{"a":[{"CO":1,"Co":2}]}}}',
    '{"result":{"structuredContent":{"CO":1,"Co":2,"cO":3}}}',
    '{"result":{"_meta":{"vendor/X":1,"vendor/x":2,"v":{"A":1,"a":2}}}}',
    '{"tools":[{"inputSchema":{"properties":{"-A":{},"-a":{"properties":{"B":{},"b":{}}}}}}]}',
    '{"inputSchema":{"$defs":{"Node":{},"node":{}},"default":{"A":1,"a":2}}}',
    '{"params":{"data":{"CO":1,"Co":2}}}',
    '{"arguments":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"J":11}}',
  ])('[M-02] names of a tool that differ in case are different names: %s', (text) => {
    expect(read(text)).toMatchObject({ ok: true, value: JSON.parse(text) });
  });

  test.each([
    '{"params":{"arguments":{"a":1,"a":2}}}',
    String.raw`{"params":{"arguments":{"a":1,"\u0061":2}}}`,
    '{"arguments":{"a":1},"Arguments":{"a":2}}',
    '{"arguments":{"A":1},"name":"x","Name":"y"}',
    '{"arguments":[{"name":"x","Name":"y"}]}',
    '{"arguments":"x","a":{"b":1,"B":2}}',
    '{"_meta":{"progressToken":1,"ProgressToken":2}}',
    '{"_meta":{"io.modelcontextprotocol/x":1,"IO.modelcontextprotocol/x":2}}',
    '{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{},"Roots":{}}}}',
    String.raw`{"_meta":{"io.modelcontextprotocol\/clientCapabilities":{"roots":{},"Roots":{}}}}`,
    '{"error":{"code":1,"data":{"elicitations":[{"url":1,"URL":2}]}}}',
    '{"error":{"data":{"supported":[],"Supported":[]}}}',
    '{"content":[{"type":"text","text":"a","Text":"b"}]}',
    '{"properties":{"a":1},"result":{"x":1,"X":2}}',
  ])('[M-02] names of the protocol, and names that are equal, are duplicates: %s', (text) => {
    expect(errorOf(text)).toBe('duplicate-key');
  });

  test('[M-02] names that hash alike are compared in full', () => {
    // 31 * '0' + '~' = 31 * '1' + '_'
    expect(errorOf('{"0~":1,"1_":2,"0~x":3,"1_x":4}')).toBeUndefined();
    expect(errorOf('{"0~":1,"1_":2,"0~":3}')).toBe('duplicate-key');
  });

  test('[M-04] a name with NUL counts as a duplicate', () => {
    expect(errorOf(String.raw`{"name\u0000x":1}`)).toBe('duplicate-key');
  });

  test('[M-04] __proto__ is refused at any depth, however it is spelled, and no prototype changes', () => {
    expect(errorOf('{"__proto__":{"polluted":1}}')).toBe('prototype-member');
    expect(errorOf(String.raw`[{"_\u005fproto__":1}]`)).toBe('prototype-member');
    expect(read('{"constructor":{"prototype":{"polluted":1}},"a":"__proto__"}').ok).toBe(true);
    expect('polluted' in {}).toBe(false);
  });
});

describe('depth', () => {
  test('[M-03] the cap is exact', () => {
    const [most, more] = [MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1];
    expect(read(`${'['.repeat(most)}${']'.repeat(most)}`).ok).toBe(true);
    expect(errorOf(`${'['.repeat(more)}${']'.repeat(more)}`)).toBe('too-deep');
    expect(errorOf('{"a":[{"b":1}]}', 2)).toBe('too-deep');
    expect(read('{"a":[1],"b":[1],"c":[[]]}', 3).ok).toBe(true);
  });

  test('[M-03] a million open brackets are refused without a deep stack', () => {
    expect(errorOf('['.repeat(1_000_000))).toBe('too-deep');
    expect(errorOf('{"a":'.repeat(1_000_000))).toBe('too-deep');
    expect(errorOf(']'.repeat(1_000_000))).toBe('malformed-json');
  });

  test('[M-03] a hundred thousand members are read', () => {
    const members = Array.from({ length: 100_000 }, (_, index) => `"k${index}":${index}`);
    expect(read(`{${members.join(',')}}`).ok).toBe(true);
    expect(errorOf(`{${members.join(',')},"K99999":1}`)).toBe('duplicate-key');
  });
});

describe('spans and edits', () => {
  test('[M-05] a span holds the value, for every path of any JSON in any spacing', () => {
    fc.assert(
      fc.property(plainJson, fc.constantFrom(0, 1, '\t'), (value, spacing) => {
        const text = JSON.stringify(value, undefined, spacing);
        for (const path of pathsOf(JSON.parse(text))) {
          const span = spanOf(text, path);
          const found = span === undefined ? undefined : JSON.parse(text.slice(span.start, span.end));
          expect(found).toEqual(valueAt(JSON.parse(text), path));
        }
      }),
    );
  });

  test('[M-05] cutting any set of members leaves the object without exactly them', () => {
    const object = fc.dictionary(fc.stringMatching(/^[a-z"\\{}:,]{0,4}$/), fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(object, fc.constantFrom(0, 2), fc.func(fc.boolean()), (value, spacing, isCut) => {
        const text = JSON.stringify(value, undefined, spacing);
        const edits = removalEdits(text, { start: 0, end: text.length }, (name) => isCut(name));
        for (const [index, edit] of edits.entries()) {
          expect(edit.start).toBeGreaterThanOrEqual(edits[index - 1]?.end ?? 0);
        }
        const kept = Object.entries(JSON.parse(text)).filter(([name]) => !isCut(name));
        expect(Object.entries(JSON.parse(applyEdits(text, edits)))).toEqual(kept);
      }),
    );
  });

  test.each([
    ['{"a":1,"b":2}', ['a'], '{"b":2}'],
    ['{"a":1,"b":2}', ['b'], '{"a":1}'],
    ['{"a":1}', ['a'], '{}'],
    ['{ "x" : [ {"a" : "},", "b":null , "c":3 } ] }', ['x', 0, 'b'], '{ "x" : [ {"a" : "}," , "c":3 } ] }'],
  ])('[M-05] of %s the member %j is cut with one comma', (text, path, left) => {
    const object = spanOf(text, path.slice(0, -1));
    if (object === undefined) throw new Error('the object is there');
    const edits = removalEdits(text, object, (name) => name === path.at(-1));
    expect(applyEdits(text, edits)).toEqual(left);
  });

  test('[M-05] what is not there has no span', () => {
    const text = '{"a":[1],"b":"x"}';
    for (const path of [['c'], ['a', 1], ['a', 'x'], ['b', 0], ['b', 'length'], ['a', 0, 0]]) {
      expect(spanOf(text, path)).toBeUndefined();
    }
    expect(removalEdits(text, { start: 0, end: text.length }, (name) => name === 'c')).toEqual([]);
    expect(elementSpans(text, { start: 0, end: text.length })).toEqual([]);
    expect(memberSpans('[1]', { start: 0, end: 3 })).toEqual([]);
  });

  test('[M-05] elements keep their raw text', () => {
    const text = '[ 1.0 ,"a,]" , {"x":[1,2]},[] ]';
    const spans = elementSpans(text, { start: 0, end: text.length });
    expect(spans.map((span) => text.slice(span.start, span.end))).toEqual(['1.0', '"a,]"', '{"x":[1,2]}', '[]']);
  });
});

describe('numbers', () => {
  test.each([
    '9007199254740993',
    '1e400',
    '-1e400',
    '1e-400',
    '0.1000000000000000055',
    '[1,{"a":12345678901234567891}]',
  ])('[M-06] %s loses value in a double', (text) => {
    expect(hasInexactNumber(text, { start: 0, end: text.length })).toBe(true);
    expect(readJsonText(text)).toMatchObject({ ok: true, suspectNumbers: true });
  });

  test.each([
    '0.1',
    '1.0',
    '1e2',
    '-0',
    '0e999999999',
    '9007199254740992',
    '1E+2',
    '123.4560',
    '0.30000000000000004',
    '"9007199254740993"',
    '{"1e400":[]}',
  ])('[M-06] %s keeps its value', (text) => {
    expect(hasInexactNumber(text, { start: 0, end: text.length })).toBe(false);
  });

  test('[M-06] every double keeps its value in its own spelling', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = JSON.stringify(value);
        expect(hasInexactNumber(text, { start: 0, end: text.length })).toBe(false);
      }),
    );
  });

  test('[M-06] an integer is inexact exactly when a double spells it otherwise', () => {
    // Below 1e21 a double spells integers without an exponent.
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (value) => {
        const text = value.toString();
        const isInexact = String(Number(text)) !== text;
        expect(hasInexactNumber(text, { start: 0, end: text.length })).toBe(isInexact);
      }),
    );
  });

  test('[M-06] the reading marks every text that holds an inexact number', () => {
    const literal = fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$/);
    fc.assert(
      fc.property(fc.array(literal, { minLength: 1 }), (literals) => {
        const text = `[${literals.join(' ,')}]`;
        const reading = readJsonText(text);
        const isInexact = hasInexactNumber(text, { start: 0, end: text.length });
        expect(reading.ok).toBe(true);
        if (reading.ok && isInexact) expect(reading.suspectNumbers).toBe(true);
      }),
    );
  });
});

type Path = readonly (string | number)[];

function pathsOf(value: Json): readonly Path[] {
  const deeper = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  return [[], ...deeper.flatMap(([step, inner]) => pathsOf(inner as Json).map((path) => [step, ...path]))];
}

function valueAt(value: Json, path: Path): Json | undefined {
  let found: Json | undefined = value;
  for (const step of path) {
    found = Array.isArray(found) ? found[Number(step)] : isObject(found) ? found[String(step)] : undefined;
  }
  return found;
}

describe('the values of a message', () => {
  function countOf(value: Json): number {
    if (typeof value !== 'object' || value === null) return 1;
    return Object.values(value as object).reduce((sum: number, one: Json) => sum + countOf(one), 1);
  }

  test('[PRF-12] law: are counted exactly, and refused past the cap alone', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(undefined, 2), (source, blanks) => {
        const value: Json = JSON.parse(source);
        const text = JSON.stringify(value, undefined, blanks);
        const values = countOf(value);
        const caps = { maxDepth: 64, maxValues: values };
        const reading = readJsonText(text, caps);
        if (!reading.ok) {
          expect(reading.error).not.toBe('too-many-values');
          return;
        }
        expect(reading.values).toBe(values);
        expect(readJsonText(text, { ...caps, maxValues: values - 1 })).toEqual({
          ok: false,
          error: 'too-many-values',
        });
      }),
      { numRuns: 2000 },
    );
  });

  test('[PRF-12] past the cap are not read on: what follows them does not matter', () => {
    const caps = { maxDepth: 64, maxValues: 10 };
    const flood = `[${'{},'.repeat(50)}`;
    expect(readJsonText(flood, caps)).toEqual({ ok: false, error: 'too-many-values' });
    expect(readJsonText(`{"a":[${'true,'.repeat(50)}`, caps)).toMatchObject({
      error: 'too-many-values',
    });
  });
});

describe('a string that is most of its text', () => {
  const LONG = 'The words of a report. '.repeat(400);

  /** The bytes at an offset of a larger buffer, as a socket delivers them. */
  function bytesAt(text: string, offset: number): Uint8Array {
    const bytes = encoder.encode(text);
    const buffer = new Uint8Array(offset + bytes.length + 3);
    buffer.set(bytes, offset);
    return buffer.subarray(offset, offset + bytes.length);
  }

  /** How many characters JSON.parse was given. */
  function charactersParsed(text: string): number {
    const parse = vi.spyOn(JSON, 'parse');
    try {
      expect(read(text).ok).toBe(true);
      return parse.mock.calls.reduce((sum, [given]) => sum + given.length, 0);
    } finally {
      parse.mockRestore();
    }
  }

  test('[M-01] it is read as JSON.parse reads it, and what JSON.parse refuses is refused', () => {
    const strings = fc.constantFrom('', 'a', '\u0001', '\\u0001', '"', '\n', 'é', '\u007f', LONG, `${LONG}\t`);
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        strings,
        fc.integer(),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('1', 'a', 'b', 'text'), tie('any'), { maxKeys: 3 }),
      ),
    })).any;
    const damage = fc.constantFrom('', '', '"', ',', '}', '\\', '\n', '\u0001', '\\u0001', 'é', '"x":');
    fc.assert(
      fc.property(
        value,
        spacings,
        damage,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.nat(7),
        (content, spacing, added, where, offset) => {
          const valid = JSON.stringify({ first: content, long: LONG }, undefined, spacing);
          const at = Math.floor(where * valid.length);
          const text = valid.slice(0, at) + added + valid.slice(at);
          const caps = { maxDepth: MAX_JSON_DEPTH, maxValues: 10_000 };
          expect(readJson(bytesAt(text, offset), caps)).toEqual(readJsonText(text, caps));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('[M-01] a control character is refused wherever the string has it', () => {
    for (let code = 0; code < 0x20; code++) {
      for (const at of [0, 1, 2, 3, 4, 15, 16, 17, 5_000, LONG.length - 17, LONG.length - 1]) {
        const long = LONG.slice(0, at) + String.fromCharCode(code) + LONG.slice(at + 1);
        const reading = readJson(bytesAt(`{"text":"${long}"}`, at % 4));
        expect([code, at, reading.ok]).toEqual([code, at, false]);
      }
    }
  });

  test('it is not parsed, and neither copied', () => {
    expect(charactersParsed(JSON.stringify({ id: 1, result: [{ text: LONG }] }))).toBeLessThan(100);
    expect(charactersParsed(JSON.stringify(LONG))).toBeLessThan(100);
  });

  test('it is parsed with the rest where another string could be its placeholder', () => {
    for (const other of ['\u0001', '\u0001x']) {
      const text = JSON.stringify({ other, text: LONG, more: other });
      expect(charactersParsed(text)).toBe(text.length);
      expect(read(text)).toMatchObject({ value: { other, text: LONG, more: other } });
    }
  });
});
