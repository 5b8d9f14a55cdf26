// A server that writes the name or the value of a sensitive field in another way than the policy does, or repeats it
// where no text is: whoever reads the result takes it for the same.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { planRedaction } from '../../../src/inspection/sensitive-fields.js';
import { fieldSteps } from '../../../src/policy/information-flow.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { profile } from './samples.js';

/** What a client gets of a result with the sensitive field of this name. */
function shown(name: string, result: JsonObject): string {
  const pointer = `/structuredContent/${name}`;
  const fields = {
    results: [{ pointer, effect: 'redact', steps: fieldSteps(pointer) }],
    arguments: [],
    labels: [],
  } as const;
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
  const sensitive = planRedaction(JSON.parse(text), fields, undefined);
  const outcome = inspectMessage({ text, value: JSON.parse(text), profile, sensitive });
  return outcome.kind === 'changed' ? JSON.stringify(outcome.value) : text;
}

const VALUE = 'Kunde-4711-Nord';
const ofText = (text: string): JsonObject => ({ content: [{ type: 'text', text }] });

const RESULTS: Readonly<Record<string, (name: string) => JsonObject>> = {
  'structured content': (name) => ({ content: [], structuredContent: { [name]: VALUE } }),
  'a text that is JSON': (name) => ofText(JSON.stringify({ [name]: VALUE })),
  'data in a text': (name) => ofText(`It is ${JSON.stringify({ a: 1, [name]: VALUE })}.`),
  'a member of _meta': (name) => ({ content: [], _meta: { 'example.org/x': { [name]: VALUE } } }),
  'a member of the _meta of a block': (name) => ({
    content: [{ type: 'text', text: 'x', _meta: { x: [{ [name]: VALUE }] } }],
  }),
};

describe.each(Object.entries(RESULTS))('a sensitive field in %s', (_where, build) => {
  it.each([
    ['as it is', 'gehört', 'gehört'],
    ['with blanks around it', 'gehört', ' gehört\t'],
    ['with an ideographic space behind it', 'gehört', 'gehört\u3000'],
    ['with a line separator behind it', 'gehört', 'gehört\u2028'],
    ['decomposed', 'gehört', 'gehört'.normalize('NFD')],
    ['composed', 'gehört'.normalize('NFD'), 'gehört'],
  ])('is found with its name %s', (_how, name, written) => {
    const result = shown(name, build(written));
    expect(result).toContain('[redacted:sensitive]');
    expect(result).not.toContain(VALUE);
  });
});

describe('data that only some readers see', () => {
  it.each([
    ['in full-width brackets', `\uff5b"gehört":"${VALUE}"\uff5d`],
    ['in HTML', `<i data-x="{&quot;gehört&quot;:&quot;${VALUE}&quot;}">`],
    ['in HTML by number', `{&#34;gehört&#34;: &#x22;${VALUE}&#34;}`],
    ['under a name without quotes', `{gehört: '${VALUE}'}`],
  ])('is read %s', (_how, text) => {
    expect(shown('gehört', ofText(text))).not.toContain(VALUE);
  });
});

const hex = (sign: string): string => sign.charCodeAt(0).toString(16);

describe('a redacted value', () => {
  it.each<[string, string, (value: string) => string]>([
    ['decomposed', 'Jörg Müller', (value) => value.normalize('NFD')],
    ['composed', 'Jörg Müller'.normalize('NFD'), (value) => value.normalize('NFC')],
    ['in a URL', 'Jörg Müller', encodeURIComponent],
    ['in HTML', 'Meier & Söhne', (value) => value.replace('&', '&amp;')],
    [
      'in a URL, in small letters',
      'Jörg Müller',
      (value) => encodeURIComponent(value).replace(/%../g, (one) => one.toLowerCase()),
    ],
    ['in a form', 'Jörg Müller', (value) => encodeURIComponent(value).replaceAll('%20', '+')],
    ['in a part of a URL', 'Jörg Müller', (value) => value.replace('ö', '%C3%B6')],
    ['in a URL, every letter', 'Kunde-4711', (value) => value.replace(/./g, (sign) => `%${hex(sign)}`)],
    ['in a URL within a URL', 'Jörg Müller', (value) => encodeURIComponent(encodeURIComponent(value))],
    ['in HTML by number', 'Kunde-4711', (value) => value.replace(/./g, (sign) => `&#x${hex(sign)};`)],
    ['in HTML, a part by number', 'Meier & Söhne', (value) => value.replace('ö', '&#246;')],
    ['in the escapes of code', 'Kunde-4711', (value) => value.replace(/./g, (sign) => `\\x${hex(sign)}`)],
  ])('is not repeated %s', (_how, value, write) => {
    const block = { type: 'resource_link', uri: 'a://b', name: `see ${write(value)}` };
    const result = shown('v', { content: [block], structuredContent: { v: value } });
    expect(result).toContain('see [redacted:sensitive]');
  });

  it.each<[string, (value: string) => string]>([
    ['as it is', (value) => value],
    ['in a URL', encodeURIComponent],
    ['in JSON', (value) => JSON.stringify({ note: value })],
  ])('is not repeated in two texts that a host joins, %s', (_how, write) => {
    const text = `see ${write('Kunde 4711/Nord')} there`;
    const cut = text.indexOf('4711') + 1;
    const content = [text.slice(0, cut), text.slice(cut)].map((one) => ({
      type: 'text',
      text: one,
    }));
    const result = shown('v', { content, structuredContent: { v: 'Kunde 4711/Nord' } });
    const { result: seen } = JSON.parse(result) as { result: { content: { text: string }[] } };
    const [one = '', other = ''] = seen.content.map((block) => block.text);
    expect(`${one}${other}`).toMatch(/^see (\{"note":")?\[redacted:sensitive\]("\})? there$/);
  });

  it('is not repeated as a name in _meta', () => {
    const result = { content: [], structuredContent: { v: VALUE }, _meta: { x: { [VALUE]: 1 } } };
    expect(shown('v', result)).not.toContain(VALUE);
  });
});

it('in HTML leaves what stands around it as it is', () => {
  const data = (value: string) => `&amp; <i data-x="{&quot;v&quot;:${value},&quot;w&quot;:1}">%20`;
  for (const [value, mark] of [
    ['&quot;one&quot;', '&quot;[redacted:sensitive]&quot;'],
    ['12', '&quot;[redacted:sensitive]&quot;'],
  ] as const)
    expect(shown('v', ofText(data(value)))).toContain(JSON.stringify(data(mark)));
});

it('what the protocol says in _meta is no field, whatever its name', () => {
  const meta = { 'io.modelcontextprotocol/related-task': { taskId: 'one' }, progressToken: 7 };
  const result = { content: [], structuredContent: { taskId: 'two' }, _meta: meta };
  const { result: seen } = JSON.parse(shown('taskId', result)) as { result: JsonObject };
  expect(seen['_meta']).toMatchObject(meta);
});
