// The numbers of a parsed message whose doubles do not say what was written: 9007199254740993, 0.1000000000000000000001
// or 1e400. They are kept beside the value, by the object or array that holds them, so that what must be exact can read
// the text. A message without such a number costs nothing.
// Source: RFC 8259 §6; RFC 7493 §2.2.

import type { Span } from '../../text/span.js';
import type { Json, JsonObject } from '../jsonrpc.js';
import { skipBlank, skipScalar, skipString } from './json.js';
import { isInexact } from './number-literals.js';

/** The literals of the members or items of one container whose doubles differ from them. */
export type ExactNumbers = ReadonlyMap<string | number, string>;

const exact = new WeakMap<object, ExactNumbers>();

const NOTHING: ExactNumbers = new Map();

/**
 * The literals that an object or an array holds; empty if only something below it holds some, undefined if neither does.
 */
export function exactNumbersIn(container: object): ExactNumbers | undefined {
  return exact.get(container);
}

type Walk = { readonly text: string; at: number };

/** What one container holds; most hold none. */
type Found = { numbers: Map<string | number, string> | undefined };

/** Keeps the literals of the value at a span of valid JSON text. Returns whether there are any. Linear. */
export function keepExactNumbers(text: string, span: Span, value: Json): boolean {
  return keep({ text, at: span.start }, value, undefined, '');
}

/** Walks the value at the position of the walk, and leaves the position behind it. */
function keep(walk: Walk, value: Json, found: Found | undefined, key: string | number): boolean {
  const { text, at } = walk;
  if (typeof value === 'object' && value !== null) return keepBelow(walk, value);
  walk.at = typeof value === 'string' ? skipString(text, at) : skipScalar(text, at);
  if (typeof value !== 'number' || found === undefined) return false;
  const literal = text.slice(at, walk.at);
  if (!isInexact(literal)) return false;
  found.numbers ??= new Map();
  found.numbers.set(key, literal);
  return true;
}

function keepBelow(walk: Walk, container: readonly Json[] | JsonObject): boolean {
  const { text } = walk;
  const isList = Array.isArray(container);
  const found: Found = { numbers: undefined };
  let hasAny = false;
  const end = isList ? ']' : '}';
  walk.at = skipBlank(text, walk.at + 1);
  for (let index = 0; text[walk.at] !== end; index++) {
    const key = isList ? index : nameAt(walk);
    const hasSome = keep(walk, (container as JsonObject)[key] ?? null, found, key);
    hasAny ||= hasSome;
    const next = skipBlank(text, walk.at);
    walk.at = text[next] === ',' ? skipBlank(text, next + 1) : next;
  }
  walk.at += 1;
  if (hasAny) exact.set(container, found.numbers ?? NOTHING);
  return hasAny;
}

/** The name of the next member; the position is left at its value. */
function nameAt(walk: Walk): string {
  const { text, at } = walk;
  const end = skipString(text, at);
  const raw = text.slice(at + 1, end - 1);
  walk.at = skipBlank(text, skipBlank(text, end) + 1);
  return raw.includes('\\') ? JSON.parse(`"${raw}"`) : raw;
}

/** Keeps for a copy of a container, which holds the same numbers under the same keys, what is kept for the container. */
export function shareExactNumbers(from: object, to: object): void {
  const numbers = exact.get(from);
  if (numbers !== undefined) exact.set(to, numbers);
}

/** JSON of a value, with the numbers as they were written where their doubles differ. */
export function exactJson(value: Json): string {
  const isMarked = typeof value === 'object' && value !== null && exact.has(value);
  return isMarked ? markedJson(value) : JSON.stringify(value);
}

function markedJson(container: readonly Json[] | JsonObject): string {
  const numbers = exact.get(container);
  const jsonOf = (key: string | number, value: Json): string => numbers?.get(key) ?? exactJson(value);
  if (Array.isArray(container)) return `[${container.map((item: Json, index) => jsonOf(index, item)).join(',')}]`;
  const members = Object.entries(container as JsonObject).map(
    ([name, member]) => `${JSON.stringify(name)}:${jsonOf(name, member)}`,
  );
  return `{${members.join(',')}}`;
}
