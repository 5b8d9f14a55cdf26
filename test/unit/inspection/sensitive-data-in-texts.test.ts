// Sensitive fields in data that stands in a text, in the forms in which tools write it, and under names and around values
// with characters that some reader skips. Nothing of a value leaves, and what is not a field stays.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { planRedaction } from '../../../src/inspection/sensitive-fields.js';
import { fieldSteps, type SensitiveField } from '../../../src/policy/information-flow.js';
import { findData } from '../../../src/protocol/json/data-text.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { withRules } from './samples.js';

const VALUE = 'Ada Lovelace of London';
const POINTERS = ['/structuredContent/ssn', '/structuredContent/cards/*/holder'];
const FIELDS = POINTERS.map((pointer): SensitiveField => ({ pointer, effect: 'redact', steps: fieldSteps(pointer) }));
/** Nothing is removed for another reason, and what is invisible stays. */
const OFF = withRules({
  ...{ secrets: 'off', activeContent: 'off', invisible: 'off', injection: 'off' },
  pii: { action: 'off', kinds: [] },
});

/** The text that leaves, where the message holds nothing else. */
function left(result: Json, fields: readonly SensitiveField[] = FIELDS): string {
  const value = { jsonrpc: '2.0', id: 1, result };
  const sensitive = planRedaction(value, { results: fields, arguments: [], labels: [] }, undefined);
  const outcome = inspectMessage({ text: JSON.stringify(value), value, profile: OFF, sensitive });
  if (outcome.kind === 'withhold') throw new Error(outcome.reason);
  return outcome.kind === 'changed' ? outcome.text : JSON.stringify(value);
}

function textLeft(text: string, fields?: readonly SensitiveField[]): string {
  const { result } = JSON.parse(left({ content: [{ type: 'text', text }] }, fields));
  return result.content[0].text;
}

const DATA = { id: 7, ssn: VALUE, city: 'Paris' };
const json = JSON.stringify(DATA);
const redacted = JSON.stringify({ ...DATA, ssn: '[redacted:sensitive]' });

const FORMS: readonly (readonly [string, (data: string) => string])[] = [
  ['alone', (data) => data],
  ['fenced', (data) => `Here:\n\n\`\`\`json\n${data}\n\`\`\`\nDone.`],
  ['in a fence of tildes', (data) => `~~~\n${data}\n~~~`],
  ['after a word', (data) => `Customer: ${data}`],
  ['before a word', (data) => `${data} is the customer (see [1])`],
  ['as lines', (data) => `${data}\n{"id":8}\n${data}\n`],
  ['as lines in a list', (data) => `[${data},\n${data}]`],
  ['as items of a list with a word before', (data) => `rows=[${data}]`],
  ['in a string', (data) => JSON.stringify(data)],
  ['in a string after a word', (data) => `result = ${JSON.stringify(data)};`],
  ['in a string of JSON', (data) => JSON.stringify({ body: data })],
  ['in a string in a string of JSON', (data) => JSON.stringify({ a: JSON.stringify({ b: data }) })],
  ['in a string of fenced JSON', (data) => `\`\`\`\n${JSON.stringify([{ body: data }])}\n\`\`\``],
  ['behind a byte order mark', (data) => `\ufeff${data}`],
  ['with a blank that JSON has not', (data) => data.replaceAll('":', '":\u00a0')],
  ['with a zero-width space between', (data) => data.replaceAll(',', ',\u200b')],
  ['after prose with brackets', (data) => `see [the list {of} things] and "quotes" it's: ${data}`],
];

/** Of one another, these make what no reader takes for data. */
const COMMENTED: typeof FORMS = [
  ['with comments between', (data) => data.replaceAll('":', '" /* " { */ : // what\n')],
  ['with comments of YAML', (data) => data.replaceAll(',', ', # a "name": next\n')],
];

describe('a sensitive field in a text', () => {
  it.each([...FORMS, ...COMMENTED])('[SF-11] is redacted, and nothing else: %s', (_what, write) => {
    expect(textLeft(write(json))).toBe(write(redacted));
  });

  it.each(['[1, // see @\n 2]', '[/* @', '{"a": /* @ */ 1}', '[# @'])(
    '[SF-11] is redacted in what only some readers take for a comment: %s',
    (text) => {
      expect(textLeft(text.replace('@', json))).toBe(text.replace('@', redacted));
    },
  );

  it.each([
    ['a literal of Python behind a line end', `out: {"log":"a\\n{'ssn': '@'}"}`],
    ['a literal of Python, two strings deep', `out: {"log":"{\\"log\\":\\"{'ssn': '@'}\\"}"}`],
    ['escapes that nobody has to write', `{"log":"a\\/b \\u00e9 {\\"ssn\\":\\"@\\"}"}`],
  ])('[SF-11] is redacted in strings with escapes, which stay as they are: %s', (_what, text) => {
    expect(textLeft(text.replace('@', VALUE))).toBe(text.replace('@', '[redacted:sensitive]'));
  });

  it('[SF-11] goes with what is invisible at its ends', () => {
    for (const data of ["{'ssn': '@'}", 'x {"ssn":"@"}', '{"ssn":"@"}'])
      expect(textLeft(data.replace('@', `\u200b${VALUE}\ufeff`))).toBe(data.replace('@', '[redacted:sensitive]'));
  });

  it('[SF-11] is redacted where data goes on in the next block, wherever it is cut', () => {
    const text = `see ${JSON.stringify({ id: 7, ssn: 'Ada', city: 'Paris' })}.`;
    for (let first = 0; first <= text.length; first += 3)
      for (let second = first; second <= text.length; second += 7) {
        const parts = [text.slice(0, first), text.slice(first, second), text.slice(second)];
        const content = parts.map((part) => ({ type: 'text', text: part }));
        const { result } = JSON.parse(left({ content }));
        const joined = result.content.map((block: { text: string }) => block.text).join('');
        expect(joined.replace('"[redacted:sensitive]"', '"Ada"'), String(parts)).toBe(text);
        expect(joined, String(parts)).toContain('"[redacted:sensitive]"');
      }
  });

  it('[SF-11] leaves blocks alone in which joined texts hold no field', () => {
    const texts = ['see [1', '{"other": {"ssn": ', '"kept here"}}', 'ssn: x]'];
    const content = texts.map((text) => ({ type: 'text', text }));
    expect(JSON.parse(left({ content })).result.content).toEqual(content);
  });

  it('[SF-11] is redacted where the text is cut off, or written as other languages write it', () => {
    expect(textLeft(json.slice(0, -10))).not.toContain('Ada');
    expect(textLeft(json.slice(0, json.indexOf('London')))).not.toContain('Ada');
    const python = `{'id': 7, 'ok': True, 'ssn': '${VALUE}', 'x': None, }`;
    expect(textLeft(`record ${python}`)).toBe(`record ${python.replace(VALUE, '[redacted:sensitive]')}`);
  });

  const skipped = ['\u200b', '\u00ad', '\ufeff', '\u2060', '\u202e', '\u{e0041}', '\u001b[31m', '\u0007', '\u200d'];
  it.each(skipped.map((unit) => [JSON.stringify(unit), unit]))(
    '[SF-11] is hidden by nothing that a reader skips: %s',
    (_what, unit) => {
      const put = (text: string): string => `${text.slice(0, 1)}${unit}${text.slice(1)}`;
      const value = put(VALUE);
      const named = { id: 7, [put('ssn')]: value };
      for (const text of [
        JSON.stringify(named),
        `row: {"${put('ssn')}": "${value}"}`,
        JSON.stringify(JSON.stringify(named)),
      ]) {
        expect(textLeft(text)).not.toContain('da Lovelace');
      }
      const structured = left({
        content: [{ type: 'text', text: `for ${VALUE} and ${value}.` }],
        structuredContent: named,
      });
      expect(structured).not.toContain('da Lovelace');
    },
  );

  it('[SF-11] is redacted under a name in another case, in every form', () => {
    const named = JSON.stringify({ SSN: VALUE, Cards: [{ HOLDER: VALUE }] });
    expect(textLeft(`see ${named}`)).not.toContain('Ada');
    expect(left({ content: [], structuredContent: JSON.parse(named) })).not.toContain('Ada');
  });

  it('[SF-11] is redacted as a number, as an object and in lists', () => {
    const text = 'rows: {"ssn": 123456789} {"ssn": {"a": [1, "deep value"]}} {"cards": [{"holder": "Bob Roberts"}]}';
    expect(textLeft(text)).toBe(
      'rows: {"ssn": "[redacted:sensitive]"} {"ssn": "[redacted:sensitive]"} {"cards": [{"holder": "[redacted:sensitive]"}]}',
    );
  });

  it('[SF-11] of a list of values takes quoted texts, and no reference or index', () => {
    const fields = [
      {
        pointer: '/structuredContent/names/*',
        effect: 'redact',
        steps: fieldSteps('/structuredContent/names/*'),
      },
    ] as const;
    const shown = (text: string) => textLeft(text, fields);
    expect(shown('names: ["Ada Lovelace", "Bob"]')).toBe('names: ["[redacted:sensitive]", "[redacted:sensitive]"]');
    for (const text of ['see [1] and [a, b]', 'x["key"] = list[0]', '[redacted:sensitive]'])
      expect(shown(text)).toBe(text);
  });

  it('[SF-11] leaves text alone that only looks like data', () => {
    for (const text of [
      'ssn: [x]',
      'if (a) { ssn = [1] }',
      '[ssn](https://a.example/)',
      '{"other": {"ssn": "kept here"}}',
    ])
      expect(textLeft(text)).toBe(text);
  });

  it.each(['[', '{"ssn":[', '["', '{"a":"\\"', "['", '[[],', '{"a":1,"b":[', '[/*', '{//', '[#'])(
    '[SF-11] is looked for once in text that opens without end: %s',
    (unit) => {
      const text = unit.repeat(20_000);
      let read = 0;
      const open = [...findData(text)];
      for (let node = open.pop(); node !== undefined; node = open.pop()) {
        read++;
        for (const { value } of node.items) open.push(value);
      }
      expect(read).toBeLessThanOrEqual(text.length);
    },
  );

  it('[SF-11] law: whatever stands around the data, nothing of the value leaves', () => {
    const around = fc.stringMatching(/^[a-z .,:'"`()\n]{0,12}$/);
    const form = fc.constantFrom(...FORMS.map(([, write]) => write));
    fc.assert(
      fc.property(around, form, form, around, (before, one, other, after) => {
        const text = `${before}\n${other(one(json))}\n${after}`;
        expect(textLeft(text)).not.toContain('Lovelace');
      }),
      { numRuns: 500 },
    );
  });
});
