// JSON as it is written by a program that wants to be read in two ways: escapes that nobody needs, blanks, bytes before
// and behind the message, and members that are there twice. The same seed gives the same bytes.

import type { Random } from './active-content.js';
import type { Json, JsonObject } from './json.js';
import { isObject } from './json.js';

/** How a JSON text is written, where not as `JSON.stringify` does. */
export type Style = {
  readonly character: (character: string) => string;
  readonly blank: () => string;
  /** The members in place of one, as name and JSON. */
  readonly member: (name: string, json: string) => readonly (readonly [string, string])[];
  readonly frame: (json: string) => string;
};

const PLAIN: Style = {
  character: (one) => JSON.stringify(one).slice(1, -1),
  blank: () => '',
  member: (name, json) => [[name, json]],
  frame: (json) => json,
};

export function writeJson(value: Json, style: Style = PLAIN): string {
  const quote = (text: string): string => `"${text.replace(/[\s\S]/g, (unit) => style.character(unit))}"`;
  const write = (one: Json): string => {
    const { blank } = style;
    if (typeof one === 'string') return quote(one);
    if (Array.isArray(one)) return `[${one.map((item: Json) => blank() + write(item)).join(',')}]`;
    if (!isObject(one)) return JSON.stringify(one);
    const members = Object.entries(one)
      .flatMap(([name, member]) => style.member(name, write(member)))
      .map(([name, json]) => `${blank()}${quote(name)}${blank()}:${blank()}${json}`);
    return `{${members.join(',')}${blank()}}`;
  };
  return style.frame(write(value));
}

function escapeOf(unit: string, random: Random): string {
  const hex = unit.charCodeAt(0).toString(16).padStart(4, '0');
  return `\\u${random.below(2) === 0 ? hex : hex.toUpperCase()}`;
}

/** Escapes and blanks: every parser reads the same. */
export function faithfulStyle(random: Random): Style {
  const often = random.pick([1, 2, 5, 0]);
  const blanks = random.pick([[''], [''], ['', ' ', '\n', '\t', '\r\n  ']]);
  return {
    ...PLAIN,
    character: (unit) => (often > 0 && random.below(often) === 0 ? escapeOf(unit, random) : PLAIN.character(unit)),
    blank: () => random.pick(blanks),
  };
}

/** A name that some parser takes for another. */
const TWIN_NAMES: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toUpperCase(),
  (name) => name.charAt(0).toUpperCase() + name.slice(1),
  (name) => `${name}\0`,
  (name) => `${name}\0x`,
  (name) => name.replace('s', '\u017f').replace('k', '\u212a'),
];

/** Framing that some reader skips. */
const FRAMES: readonly Style['frame'][] = [
  (json) => `\ufeff${json}`,
  (json) => `${json}\0`,
  (json) => `/**/${json}`,
  (json) => json.replace(/}$/, ',}'),
  (json) => json.replace(/^\{/, '{/* " */'),
  (json) => `${json}\n{}`,
  (json) => `\r\n ${json} \t`,
];

/**
 * Also what parsers read differently: a member of this name twice, the second time with another value, or bytes around
 * the message.
 */
export function ambiguousStyle(random: Random, name: string, other: Json): Style {
  const style = faithfulStyle(random);
  if (random.below(4) === 0) return { ...style, frame: random.pick(FRAMES) };
  const rename = random.pick(TWIN_NAMES);
  const isFirst = random.below(2) === 0;
  return {
    ...style,
    member(own, json) {
      if (own !== name) return [[own, json]];
      const pair = [
        [own, json],
        [rename(own), JSON.stringify(other)],
      ] as const;
      return isFirst ? pair : pair.toReversed();
    },
  };
}

/** A writer of messages in a style. */
export function writerOf(style: Style): (message: JsonObject) => string {
  return (message) => writeJson(message, style);
}
