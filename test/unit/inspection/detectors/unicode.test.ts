// Invisible characters and terminal sequences go; spelling stays. Names that look alike have one form.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  confusableForm,
  isInvisible,
  stripInvisible,
  stripTerminalSequences,
} from '../../../../src/inspection/detectors/unicode.js';

const stripped = (text: string): string => stripInvisible(text).text;
const tags = [...'hidden']
  .map((unit) => String.fromCodePoint(0xe0000 + unit.charCodeAt(0)))
  .join('');
const selectors = [...'hidden']
  .map((unit) => String.fromCodePoint(0xe0100 + unit.charCodeAt(0) - 16))
  .join('');

describe('invisible characters', () => {
  it.each([
    ['zero width', 'a\u200bb\u200cc\u200dd\ufeffe', 'abcde'],
    ['bidi', 'a\u202eb\u202cc\u2066d\u2069\u200e', 'abcd'],
    ['tags', `a${tags}b`, 'ab'],
    ['variation selectors', `\u{1f600}${selectors}b`, '\u{1f600}b'],
    ['soft hyphens and fillers', 'a\u00adb\u3164c\u115fd\uffa0e', 'abcde'],
    ['invisible operators', 'a\u2062b\u2064c\u206fd', 'abcd'],
    ['controls', 'a\u0000b\u0008c\u007fd\u0085e', 'abcde'],
    ['an emoji selector after a letter', 'a\ufe0fb', 'ab'],
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
    '\u00e9 \u4e2d\u6587 \ud55c\uad6d\uc5b4',
  ])('[I-14] that spelling needs stay: %j', (text) => {
    expect(stripped(text)).toBe(text);
  });

  it('[I-14] law: what is left shows, twice is once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const once = stripped(text);
        expect(stripped(once)).toBe(once);
        const kept = new Set(['\ufe0e', '\ufe0f', '\u200c', '\u200d']);
        for (const unit of once) {
          expect(isInvisible(unit.codePointAt(0) ?? 0) && !kept.has(unit)).toBe(false);
        }
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
