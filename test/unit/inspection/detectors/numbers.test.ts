// Numbers that are no cards although digits and check fit: parts of other numbers, and values under another name. And
// the law that ordinary numbers, in the forms in which tools write them, are neither changed nor withheld.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasLuhnDigit } from '../../../../src/inspection/detectors/pii.js';
import { findSensitive } from '../../../../src/inspection/detectors/text-sanitizer.js';
import { inspectMessage } from '../../../../src/inspection/responses.js';
import { cardNumber, ssn } from '../../../support/seeded-values.js';
import { profile } from '../samples.js';

const PERSONAL = { secrets: false, pii: ['card', 'iban', 'ssn'] } as const;
const card = cardNumber('numbers');
const other = cardNumber('others', '53');

function kinds(text: string, name?: string): string[] {
  return findSensitive(text, PERSONAL, name).map((hit) => hit.kind);
}

const fours = (digits: string, separator: string): string => digits.replace(/(\d{4})(?=\d)/g, `$1${separator}`);

/** Such a decimal has the digits of a card on one side of its point. */
const decimal = `3.${card}`;
const uuid = `${card.slice(0, 8)}-${card.slice(8, 12)}-${card.slice(12)}-a111-0123456789ab`;

describe('cards', () => {
  it.each([
    ['in a sentence', `They paid with ${card}.`],
    ['behind a label of prose', `My number: ${card}`],
    ['behind a cue and a dash', `card-${card}`],
    ['behind an escaped line end', `card\\n${card}`],
    ['as the member card', `{"card": "${card}"}`],
    ['as a number under that name', `{"cardNumber": ${card}}`],
    ['as a member in camel case', `{"creditCardNo": "${card}", "id": 1}`],
    ['in a list under that name', `{"cards": ["${card}"]}`],
    ['in a member for prose', `{"note": "${card}"}`],
    ['in the middle of a member', `{"id": "order of ${card}, paid"}`],
    ['as a column', `id,card_number\n7,${card}`],
    ['as the column of a Markdown table', `| id | PAN |\n| --- | --- |\n| 7 | ${card} |`],
    ['beside a cell that says so', `kind,value\nvisa,${card}`],
    ['as an element', `<cardNumber>${card}</cardNumber>`],
    ['behind a tag', `<script> ${card}`],
    ['behind an element without content', `<img src="a.png">${card}`],
    ['in its groups under any name', `{"id": "${fours(card, ' ')}"}`],
    ['behind a key that says so', `card: ${card}\nsize: 1`],
    ['behind a key of prose', `id: 7\nnote: ${card}`],
    ['in a pair that says so', `level=info pan=${card} took 3 ms`],
    ['in a pair, beside a cue', `visa id=${card} accepted`],
    ['in an aligned column that says so', `ID  CARD NO\n7   ${card}`],
    ['behind a short cue', `cc ${card}`],
    ['with a date of expiry', `${fours(card, ' ')} 0728`],
    ['in a row of cards', `${fours(card, ' ')} ${fours(other, ' ')}`],
  ])('%s are found', (_how, text) => {
    expect(new Set(kinds(text))).toEqual(new Set(['card']));
  });

  it.each([
    ['a decimal', decimal],
    ['a decimal with many digits before its point', `${card}.25`],
    ['a decimal under a name', `{"card_score": ${decimal}}`],
    ['a fraction without its zero', `-.${card}`],
    ['an exponent', `${card}e12 and 1e${card}`],
    ['a UUID', `card ${uuid}`],
    ['a hexadecimal digest', `a${card}f`],
    ['an identifier', `run_${card} step-${card}-b`],
    ['a unit', `${card}ns`],
    ['an amount', `$${card}`],
    ['a phone number', `+${card}`],
    ['a path', `https://example.com/status/${card}`],
    ['a longer number', `${card}${card}`],
    ['a row of numbers', `1000 ${fours(card, ' ')} 2000`],
    ['single digits in a row', `7 ${[...card].join(' ')} 7`],
    ['a member that is an id', `{"id": "${card}"}`],
    ['a number without a name', `[${card}, ${other}]`],
    ['a number under a name', `{"order_id": ${card}, "at": 1}`],
    ['items under a name', `{"ids": ["${card}", "${other}"]}`],
    ['cut JSON', `Result: {"trace": "${card}", "spans": ["${other}", "4`],
    ['JSON in JSON', JSON.stringify(JSON.stringify({ id: card }))],
    ['a key of a line', `order_id: ${card}\nTracking number: ${other}`],
    ['a key of a line, whatever it is called', `- parent: ${card}\n  user: ${other}`],
    ['pairs of a log', `12:00 INFO user=${card} took 3 ms, parent="${other}" done`],
    ['aligned columns', `USER               AGE\n${card}   3d\n${other}   4d`],
    [
      'a column behind a word that is cut where cues are looked for',
      `uuid\tuser\tsize\n${'a'.repeat(8)}-0000-4000-8000-${'0'.repeat(10)}cc\t${'1'.repeat(29)}\t${card}`,
    ],
    ['a query', `?id=${card}&session=${other}`],
    ['an element', `<id>${card}</id>`],
    ['a column', `id,total\n${card},3.50\n${other},4.50`],
    ['a column of tabs', `at\tid\n1\t${card}\n2\t${other}`],
    ['a column of Markdown', `| id | n |\n|---|---|\n| ${card} | 1 |`],
    ['an identifier behind the mark of a card', `[redacted:card#abcd] run_${card}`],
    ['the only column', `order_id\n${card}\n${other}`],
  ])('are not seen in %s', (_what, text) => {
    expect(kinds(text)).toEqual([]);
  });

  it('are told by the name of the member that holds the whole text', () => {
    expect(kinds(card, 'id')).toEqual([]);
    expect(kinds(card, 'pan')).toEqual(['card']);
    expect(kinds(card, 'number')).toEqual(['card']);
    expect(kinds(`paid with ${card}`, 'id')).toEqual(['card']);
  });
});

describe('account and social security numbers', () => {
  const bare = ssn('numbers').replaceAll('-', '');
  const [area, group, serial] = [bare.slice(0, 3), bare.slice(3, 5), bare.slice(5)];

  it.each([
    ['a row of numbers', `12 ${area} ${group} ${serial} 7`],
    ['an identifier', `part-${area}-${group}-${serial}`],
    ['a name that holds the letters by chance', `{"businessNumber": ${bare}}`],
    ['a UUID', '00000000-0000-4000-be68-539007547034'],
  ])('are not seen in %s', (_what, text) => {
    expect(kinds(text)).toEqual([]);
    expect(kinds(bare, 'className')).toEqual([]);
  });
});

const NAMES = ['id', 'order_id', 'ts', 'trace', 'amount', 'user', 'parent', 'lat', 'value', 'seq'];

/** Digits of 16-digit ids; every other one would pass as a card. */
const id16 = fc
  .tuple(fc.constantFrom('4', '51', '6011', '1', '9'), fc.array(fc.nat(9), { minLength: 15, maxLength: 15 }))
  .map(([prefix, digits]) => {
    const body = (prefix + digits.join('')).slice(0, 15);
    const check = [...'0123456789'].find((digit) => hasLuhnDigit(body + digit)) ?? '0';
    return body + check;
  });
const number = fc.oneof(
  id16,
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.double({ min: 0, max: 1, noNaN: true }).map((value) => value.toPrecision(17)),
  fc.integer({ min: 1_000_000_000_000, max: 1_999_999_999_999 }).map((ms) => `${ms}000`),
  fc.integer({ min: 0, max: 1_000_000 }).map((cents) => (cents / 100).toFixed(2)),
  fc.double({ min: -180, max: 180, noNaN: true }).map((degrees) => degrees.toFixed(15)),
);
const text = fc.oneof(
  number,
  fc.uuid(),
  fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((date) => date.toISOString()),
);

function json(rows: readonly (readonly string[])[], isNumber: boolean): string {
  const items = rows.map((row) => {
    const members = row.map((value, at) => {
      const isLiteral = isNumber && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(value);
      return `"${NAMES[at]}": ${isLiteral ? value : JSON.stringify(value)}`;
    });
    return `{${members.join(', ')}}`;
  });
  return `{"rows": [${items.join(',\n ')}]}`;
}

const FORMS: Readonly<Record<string, (rows: readonly (readonly string[])[]) => string>> = {
  'JSON with numbers': (rows) => json(rows, true),
  'JSON with texts': (rows) => json(rows, false),
  'JSON in a fence': (rows) => `Here:\n\`\`\`json\n${json(rows, true)}\n\`\`\``,
  CSV: (rows) => [NAMES.slice(0, rows[0]?.length), ...rows].map((row) => row.join(',')).join('\n'),
  TSV: (rows) => [NAMES.slice(0, rows[0]?.length), ...rows].map((row) => row.join('\t')).join('\n'),
  YAML: (rows) => rows.map((row) => row.map((value, at) => `  ${NAMES[at]}: ${value}`).join('\n')).join('\n'),
  logs: (rows) =>
    rows.map((row) => `INFO ${row.map((value, at) => `${NAMES[at]}=${value}`).join(' ')} done`).join('\n'),
  'aligned columns': (rows) =>
    [NAMES.slice(0, rows[0]?.length), ...rows]
      .map((row) =>
        row
          .map((value) => value.padEnd(64))
          .join(' ')
          .trimEnd(),
      )
      .join('\n'),
  Markdown: (rows) => {
    const lines = [NAMES.slice(0, rows[0]?.length), ...rows].map((row) => `| ${row.join(' | ')} |`);
    return [lines[0], `|${' --- |'.repeat(rows[0]?.length ?? 0)}`, ...lines.slice(1)].join('\n');
  },
};

/** The outcome for a result. */
function inspected(result: object): ReturnType<typeof inspectMessage> {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
  return inspectMessage({
    ...{ text, value: JSON.parse(text), profile, requestMethod: 'tools/call' },
  });
}

describe('numbers beside each other', () => {
  const [head, tail] = [card.slice(0, 8), card.slice(8)];

  it.each([
    ['members', { from: head, to: tail }],
    ['the end of an amount and a size', { price: `539,363,${card.slice(0, 3)}`, size: card.slice(3) }],
    ['items', { rows: [head, tail] }],
  ])('are no card as %s of a structure', (_how, structuredContent) => {
    const copy = { type: 'text', text: JSON.stringify(structuredContent) };
    expect(inspected({ content: [], structuredContent }).kind).toBe('clean');
    expect(inspected({ content: [copy], structuredContent }).kind).toBe('clean');
  });

  it('are one as texts of a result, which a host shows as one', () => {
    const content = [head, tail].map((text) => ({ type: 'text', text }));
    expect(inspected({ content })).toMatchObject({ kind: 'changed' });
  });

  it('take their names from their own text, whatever stands before it', () => {
    const content = [{ type: 'text', text: `parent: ${card}\n` }];
    expect(inspected({ content }).kind).toBe('clean');
    expect(inspected({ content: [{ type: 'text', text: 'Rows' }, ...content] }).kind).toBe('clean');
  });
});

describe('results full of numbers', () => {
  const rows = fc.integer({ min: 2, max: 6 }).chain((width) =>
    fc.array(fc.array(text, { minLength: width, maxLength: width }), {
      minLength: 1,
      maxLength: 6,
    }),
  );

  it.each(Object.keys(FORMS))('law: arrive unchanged as %s', (form) => {
    fc.assert(
      fc.property(rows, (values) => {
        const written = FORMS[form]?.(values) ?? '';
        const structured = form.startsWith('JSON with') ? `,"structuredContent":${written}` : '';
        const content = `[{"type":"text","text":${JSON.stringify(written)}}]`;
        const message = `{"jsonrpc":"2.0","id":1,"result":{"content":${content}${structured}}}`;
        const outcome = inspectMessage({
          text: message,
          value: JSON.parse(message),
          profile,
          requestMethod: 'tools/call',
        });
        expect(outcome).toMatchObject({ kind: 'clean', findings: [] });
      }),
      { seed: 20, numRuns: 50 },
    );
  });
});
