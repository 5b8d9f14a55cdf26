// Invisible characters and terminal sequences go; spelling stays. Names that look alike have one form.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  confusableForm,
  stripInvisible,
  stripTerminalSequences,
} from '../../../../src/inspection/detectors/unicode.js';

const stripped = (text: string): string => stripInvisible(text).text;
const tags = [...'hidden'].map((unit) => String.fromCodePoint(0xe0000 + unit.charCodeAt(0))).join('');
const selectors = [...'hidden'].map((unit) => String.fromCodePoint(0xe0100 + unit.charCodeAt(0) - 16)).join('');

describe('invisible characters', () => {
  it.each([
    ['zero width', 'a\u200bb\u200cc\u200dd\ufeffe', 'abcde'],
    ['zero width in Cyrillic', '\u043f\u0440\u200b\u0438', '\u043f\u0440\u0438'],
    ['zero width in a row', 'a \u200b\u200c\u200b\u200d b', 'a  b'],
    ['marks in a row', 'a \u200e\u200f\u200e\u200f b', 'a  b'],
    ['bidi', 'a\u202eb\u202cc\u2067d\u2069e', 'abcde'],
    ['an override among Hebrew', '\u05d0 \u202eabc\u202c', '\u05d0 abc'],
    ['tags', `a${tags}b`, 'ab'],
    ['tags behind a flag', `\u{1f3f4}${tags}\u{e007f}b`, '\u{1f3f4}b'],
    ['variation selectors', `\u{1f600}${selectors}b`, '\u{1f600}b'],
    ['selectors behind an ideograph', `\u845b${selectors}b`, '\u845bb'],
    ['fillers', 'b\u3164c\u115fd\uffa0e', 'bcde'],
    ['soft hyphens in a row', 'a\u00ad\u00ad\u00adb', 'ab'],
    ['invisible operators', 'a\u2062b\u2064c\u206fd', 'abcd'],
    ['controls', 'a\u0000b\u0008c\u007fd\u0086e', 'abcde'],
    ['an emoji selector after a letter', 'a\ufe0fb', 'ab'],
    ['a byte order mark inside a word', 'a\ufeffb', 'ab'],
  ])('[I-14] of the kind %s are removed', (_kind, text, expected) => {
    expect(stripped(text)).toBe(expected);
  });

  it.each([
    'tab\tline\nreturn\r\n',
    '\u2764\ufe0f and \u2708\ufe0e',
    '1\ufe0f\u20e3',
    '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
    '\u2764\ufe0f\u200d\u{1f525}',
    '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
    '\u0915\u094d\u200d\u0937',
    '\u0647\u200d \u0915\u094d\u200d',
    '\u00e9 \u4e2d\u6587 \ud55c\uad6d\uc5b4',
    '\ufeffusing System;',
    'page one\n\u000cpage two',
    '\u845b\u{e0100}\u57ce\u5e02',
    '\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}',
    '\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}!',
    '\u1820\u180b\u1821',
  ])('[I-14] that spelling and files need stay: %j', (text) => {
    expect(stripInvisible(text)).toEqual({ text, count: 0, unusual: 0 });
  });

  it.each([
    ['a soft hyphen', 'Donau\u00addampf'],
    ['marks of direction', '\u05d0\u05d1 (C++)\u200e and \u200fx'],
    ['an isolate around a name', 'Hello, \u2068Anna\u2069!'],
    ['an embedding around Arabic', '\u202b\u0645\u0631\u062d\u0628\u0627 C\u202c'],
    ['a break behind a sign', '@\u200beveryone, path/\u200bto'],
    ['a break in Thai', '\u0e01\u200b\u0e02'],
  ])('[I-14] stay with a finding where they hide nothing: %s', (_what, text) => {
    const result = stripInvisible(text);
    expect(result.text).toBe(text);
    expect(result.unusual).toBeGreaterThan(0);
  });

  it('[I-14] law: twice is once, and what stays stands alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const once = stripped(text);
        expect(stripped(once)).toBe(once);
        expect(once).not.toMatch(/[\u200b\u2060-\u2064]{2}|[a-z][\u200b-\u200d][a-z]/);
      }),
    );
  });
});

describe('terminal sequences', () => {
  it.each([
    ['colours', '\u001b[31mred\u001b[0m', 'red'],
    ['hidden text becomes visible', '\u001b[8msecret\u001b[0m', 'secret'],
    ['titles', '\u001b]0;title\u0007text', 'text'],
    ['hyperlinks', '\u001b]8;;https://e.example\u001b\\text\u001b]8;;\u001b\\', 'text'],
    ['one-byte introducers', '\u009b31mred', 'red'],
    ['two-character sequences', '\u001bcreset', 'reset'],
    ['nested ones', '\u001b\u001b[0m[31mred', '[31mred'],
    ['broken ones', 'a\u001b[3', 'a3'],
    ['strings without an end', 'a\u001b]0;title', 'a0;title'],
  ])('[I-15] go: %s', (_what, text, expected) => {
    const { text: left, count } = stripTerminalSequences(text);
    expect(left).toBe(expected);
    expect(count).toBeGreaterThan(0);
    expect(stripTerminalSequences(left).count).toBe(0);
  });
});

describe('[MRG-14] what a name looks like', () => {
  it.each([
    'send_email',
    'sendEmail',
    'send-email',
    'SEND.EMAIL',
    's\u0435nd_\u0435m\u0430il',
    'send\u200b_email',
    'send_ema\u00adil',
    'ｓｅｎｄ_email',
    'se\u0301nd_email',
  ])('%s looks like send_email', (name) => {
    expect(confusableForm(name)).toBe('sendemail');
  });

  it('differs where letters differ, and tells signs apart', () => {
    expect(confusableForm('send_email')).not.toBe(confusableForm('send_emails'));
    expect(confusableForm('a1')).toBe(confusableForm('al'));
    expect(confusableForm('++')).not.toBe(confusableForm('--'));
  });

  it('is its own look', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => {
        const look = confusableForm(name);
        expect(confusableForm(look)).toBe(look);
      }),
    );
  });
});
