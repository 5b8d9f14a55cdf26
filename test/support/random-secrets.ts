// Values made at random from the pattern of a secret's format: of every repeat as many as it asks for at least,
// or some more.

import { randomInt } from 'node:crypto';

type Part = () => string;

const PRINTABLE = Array.from({ length: 0x5f }, (_, at) => String.fromCharCode(0x20 + at));
const DIGITS = [...'0123456789'];

/** Randomness that a test can repeat: a number below `bound`. */
export type Pick = (bound: number) => number;

/** Makes values that a pattern of secret-formats.ts takes. Knows what stands in those patterns, and no more. */
export function randomValues(pattern: RegExp, pick: Pick = (bound) => randomInt(bound)): Part {
  const { source } = pattern;
  let at = 0;

  function alternatives(): Part {
    const choices: Part[] = [sequence()];
    while (source[at] === '|') {
      at++;
      choices.push(sequence());
    }
    return () => choices[choices.length === 1 ? 0 : pick(choices.length)]?.() ?? '';
  }

  function sequence(): Part {
    const parts: Part[] = [];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') parts.push(repeated());
    return () => parts.map((part) => part()).join('');
  }

  function repeated(): Part {
    const part = atom();
    const [bounds, least = '1', , most] = /^\{(\d+)(,(\d+))?\}/.exec(source.slice(at)) ?? [];
    if (bounds !== undefined) {
      at += bounds.length;
      const min = Number(least);
      const span = Math.min(Number(most ?? least) - min, 4);
      return () => {
        let text = '';
        for (let left = min + pick(span + 1); left > 0; left--) text += part();
        return text;
      };
    }
    if (source[at] !== '?') return part;
    at++;
    return () => (pick(2) === 0 ? '' : part());
  }

  function atom(): Part {
    const unit = source[at++];
    if (unit === '(') return group();
    if (unit === '[') return set();
    if (unit === '\\') return escaped(source[at++] ?? '');
    return () => unit ?? '';
  }

  function group(): Part {
    const looks = /^\?<?[=!]/.exec(source.slice(at));
    const mark = looks ?? /^\?:/.exec(source.slice(at));
    at += mark?.[0].length ?? 0;
    const inner = alternatives();
    at++;
    return looks === null ? inner : () => '';
  }

  function set(): Part {
    const end = /^(?:[^\]\\]|\\.)*/.exec(source.slice(at))?.[0].length ?? 0;
    const members = new RegExp(`[${source.slice(at, at + end)}]`);
    at += end + 1;
    const units = PRINTABLE.filter((unit) => members.test(unit));
    return () => units[pick(units.length)] ?? '';
  }

  function escaped(unit: string): Part {
    if (unit === 'd') return () => DIGITS[pick(10)] ?? '';
    return () => (unit === 's' ? ' ' : unit);
  }

  return alternatives();
}
