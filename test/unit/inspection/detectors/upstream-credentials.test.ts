// The gateway's own credentials are found in every spelling, at every place, on the clean path too.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findSensitive } from '../../../../src/inspection/detectors/text-sanitizer.js';
import {
  createOwnCredentialStore,
  type SentCredentials,
} from '../../../../src/inspection/detectors/upstream-credentials.js';
import { inspectMessage } from '../../../../src/inspection/responses.js';
import type { Json } from '../../../../src/protocol/jsonrpc.js';

import { jwt, noise } from '../../../support/seeded-values.js';
import { resultOf, textResult, withRules } from '../samples.js';

const HOUR_MS = 60 * 60 * 1000;
/** No detector but this one is at work. */
const OFF = withRules({
  secrets: 'off',
  pii: { action: 'off', kinds: [] },
  activeContent: 'off',
  invisible: 'off',
  injection: 'off',
});

function ownOf(...values: readonly string[]): SentCredentials {
  const store = createOwnCredentialStore(() => 0);
  for (const value of values) store.note(value, 'configured');
  const own = store.current();
  if (own === undefined) throw new Error('nothing was noted');
  return own;
}

function textOf(message: ReturnType<typeof resultOf>, own: SentCredentials, tail = ''): string {
  const outcome = inspectMessage({ ...message, profile: OFF, own, previousTail: tail });
  if (outcome.kind === 'withhold') return outcome.reason;
  return outcome.kind === 'changed' ? outcome.text : message.text;
}

function percent(value: string, isEscaped: (at: number) => boolean): string {
  return [...Buffer.from(value)]
    .map((byte, at) => {
      const hex = byte.toString(16).padStart(2, '0');
      return isEscaped(at) ? `%${at % 3 === 0 ? hex.toUpperCase() : hex}` : String.fromCharCode(byte);
    })
    .join('');
}

const VALUES: readonly (readonly [what: string, value: string])[] = [
  ['an opaque token', noise('own', 40)],
  ['a JWT', jwt('own')],
  ['a token without digits or capitals', 'correcthorse'],
  ['a value with signs', 'p#ss w!rd, q?'],
  ['a value with quotes', 'ab"cd\\ef"gh\\ij'],
  ['digits', '482910573364'],
];

const SPELLINGS: readonly (readonly [how: string, spell: (value: string) => string])[] = [
  ['as it is', (value) => value],
  ['in capitals of hex', (value) => Buffer.from(value).toString('hex').toUpperCase()],
  ['in hex behind a digit', (value) => `7${Buffer.from(value).toString('hex')}`],
  ...[0, 1, 2].flatMap((offset): [string, (value: string) => string][] => [
    [`in base64 at ${offset}`, (value) => Buffer.from(`${'\u0000'.repeat(offset)}${value}\u0000`).toString('base64')],
    [`in base64url at ${offset}`, (value) => Buffer.from(`${'~'.repeat(offset)}${value}~`).toString('base64url')],
  ]),
  ['in percent triplets', (value) => percent(value, () => true)],
  ['in some percent triplets', (value) => percent(value, (at) => at % 2 === 0)],
  ['percent-encoded as a URL does', (value) => encodeURIComponent(value)],
  [
    'escaped twice',
    (value) =>
      percent(
        percent(value, (at) => at % 4 === 0),
        () => true,
      ),
  ],
  ['as a form is sent', (value) => new URLSearchParams({ a: value }).toString()],
  ['in JSON in JSON', (value) => JSON.stringify({ a: JSON.stringify({ b: value }) })],
  ['with what nobody sees', (value) => [...value].join('\u200b')],
];

describe("the gateway's own credentials", () => {
  it.each(VALUES)('[CRD-14] are removed from every member and in every spelling: %s', (_what, value) => {
    const own = ownOf(value);
    for (const [how, spell] of SPELLINGS) {
      const hidden = spell(value);
      const members: readonly Json[] = [
        { content: [{ type: 'text', text: `see ${hidden} there` }] },
        { content: [{ type: 'text', text: JSON.stringify({ inner: hidden }) }] },
        { content: [], structuredContent: { a: [hidden] } },
        { content: [], structuredContent: { [hidden]: 1 } },
        { content: [], _meta: { 'com.example/x': hidden } },
        { content: [], nextCursor: hidden },
        { contents: [{ uri: 'file:///x', blob: Buffer.from(`a ${hidden}`).toString('base64') }] },
      ];
      for (const member of members) {
        const left = textOf(resultOf(member), own);
        const read = JSON.stringify(JSON.parse(left));
        expect([how, read.includes(JSON.stringify(hidden).slice(1, -1))]).toEqual([how, false]);
        expect([how, left]).toEqual([how, expect.stringContaining('upstream-credential')]);
      }
    }
  });

  it('[CRD-14] are found in images, numbers and reviewed members, and withheld where secrets are', () => {
    const value = '482910573364';
    const own = ownOf(value, noise('image', 30));
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Uint8Array(64)]);
    const data = Buffer.concat([png, Buffer.from(noise('image', 30))]).toString('base64');
    const image = resultOf({ content: [{ type: 'image', mimeType: 'image/png', data }] });
    expect(textOf(image, own)).toContain('[redacted:upstream-credential]');
    expect(textOf(resultOf({ structuredContent: { n: Number(value) } }), own)).not.toContain(value);
    const listed = resultOf({ tools: [{ name: 'a', description: `use ${value}` }] });
    const approved = ['/result/tools'];
    const outcome = inspectMessage({ ...listed, profile: OFF, own, approved });
    expect(outcome).toMatchObject({ kind: 'changed' });
    expect(JSON.stringify(outcome)).not.toContain(value);
    const block = withRules({ secrets: 'block' });
    expect(inspectMessage({ ...listed, profile: block, own, approved })).toMatchObject({
      kind: 'withhold',
      reason: 'result-content',
    });
  });

  it('[CRD-14] are found where blocks and messages cut them, of any length', () => {
    for (const value of ['correct horse', jwt('cut'), `${noise('long', 3000)}`]) {
      const own = ownOf(value);
      for (const at of [3, value.length >> 1, value.length - 3]) {
        const [one, other] = [value.slice(0, at), value.slice(at)];
        const blocks = JSON.parse(textOf(textResult(`see ${one}`, `${other} there`), own)).result;
        const read = blocks.content.map((block: { text: string }) => block.text).join('');
        expect(read).not.toContain(one.slice(-3) + other.slice(0, 3));
        expect(read).toContain('redacted');
        const first = inspectMessage({ ...textResult(`see ${one}`), profile: OFF, own });
        const tail = first.kind === 'withhold' ? '' : first.previousTail;
        expect(textOf(textResult(`${other} there`), own, tail)).toContain('redacted');
      }
    }
  });

  it('[CRD-14] of a series are known by what each begins with, and go to their end', () => {
    const store = createOwnCredentialStore(() => 0);
    const head = noise('head', 40);
    store.note(head, 'prefix');
    const own = store.current();
    const text = `a ${head}.${noise('claims', 300)}.${noise('sign', 86)} b`;
    const [hit] = findSensitive(text, { secrets: false, pii: [], own });
    expect(hit).toMatchObject({ start: 2, end: text.length - 2 });
  });

  it('[CRD-14] are looked for while they live and for a time after, thousands of them', () => {
    let nowMs = 0;
    const store = createOwnCredentialStore(() => nowMs);
    const tokens = Array.from({ length: 3000 }, (_, index) => noise(`t${index}`, 40));
    for (const token of tokens) store.note(token, 'issued');
    const isFound = (token: string): boolean =>
      findSensitive(`x ${token} y`, { secrets: false, pii: [], own: store.current() }).length > 0;
    expect(tokens.filter(isFound).length).toBe(tokens.length);
    nowMs = 2 * HOUR_MS;
    expect(tokens.filter(isFound).length).toBe(tokens.length);
    nowMs = 5 * HOUR_MS;
    expect(tokens.filter(isFound).length).toBe(0);
  });

  it('[CRD-14] are no longer kept in clear once nobody looks for them, and configured ones are', () => {
    let nowMs = 0;
    const store = createOwnCredentialStore(() => nowMs);
    store.note('a configured value', 'configured');
    store.note('an issued credential', 'issued');
    const exposed = (text: string): boolean | undefined => store.current()?.exposed.some((form) => form.includes(text));
    expect([exposed('configured'), exposed('issued')]).toEqual([true, true]);
    nowMs = 3 * HOUR_MS;
    expect([exposed('configured'), exposed('issued')]).toEqual([true, true]);
    nowMs = 6 * HOUR_MS;
    expect([exposed('configured'), exposed('issued')]).toEqual([true, false]);
  });

  it('[CRD-14] are found beyond ASCII, in the bytes of UTF-8 and of Latin-1', () => {
    const value = 'ein l\u00e4ngeres W\u00f6rtchen';
    const own = ownOf(value);
    const utf8 = Buffer.from(value);
    for (const spelled of [
      value.normalize('NFD'),
      utf8.toString('latin1'),
      encodeURIComponent(value),
      percent(value, () => true),
      percent(
        percent(value, () => true),
        () => true,
      ),
      new URLSearchParams({ a: value }).toString(),
      [...utf8].map((byte) => `\\x${byte.toString(16)}`).join(''),
      Buffer.from(value, 'latin1').toString('hex').replace(/../g, '%$&'),
      Buffer.from(value, 'latin1').toString('base64'),
    ]) {
      expect([spelled, textOf(textResult(`see ${spelled} there`), own)]).toEqual([
        spelled,
        expect.stringContaining('upstream-credential'),
      ]);
    }
  });

  it('[CRD-14] are found in lines of base64, their ends escaped by JSON too', () => {
    const value = noise('lines', 30);
    const own = ownOf(value);
    const lines = Buffer.from(`${'a'.repeat(50)}${value}${'b'.repeat(70)}`)
      .toString('base64')
      .replace(/.{64}/g, '$&\r\n');
    for (const text of [lines, `log: ${JSON.stringify({ body: lines })}`]) {
      expect(textOf(textResult(text), own)).toContain('[redacted:upstream-credential]');
    }
  });

  it('[CRD-14] shorter than twelve characters are not looked for', () => {
    const store = createOwnCredentialStore(() => 0);
    store.note('elevenchars', 'configured');
    expect(store.current()).toBeUndefined();
  });

  it('[CRD-14] are named by no path of a finding', () => {
    const value = 'CorrectHorseBattery';
    const outcome = inspectMessage({
      ...resultOf({ content: [], structuredContent: { [value]: { password: noise('p', 12) } } }),
      profile: withRules({}),
      own: ownOf(value),
    });
    expect(JSON.stringify(outcome)).not.toContain(value);
  });

  it('[CRD-14] law: wherever one stands and whatever surrounds it, it is found', () => {
    const value = noise('law', 24);
    const own = ownOf(value);
    const spellings = fc.constantFrom(...SPELLINGS.map(([, spell]) => spell));
    fc.assert(
      fc.property(fc.string(), spellings, fc.string(), (before, spell, after) => {
        const hits = findSensitive(`${before} ${spell(value)} ${after}`, {
          secrets: false,
          pii: [],
          own,
        });
        expect(hits).not.toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });
});
