// JSON parsers as upstreams have them, in small: which of two members of one name counts, whether case
// matters, whether a name ends at NUL. They read valid text only and refuse nothing.
// Source: RFC 8259 §4 ("the behavior of software that receives such an object is unpredictable").

import type { Json } from './json.js';

/** A value as it stands in the text: every member, also those of one name. */
export type Node =
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, Node])[] }
  | { readonly kind: 'array'; readonly items: readonly Node[] }
  | { readonly kind: 'scalar'; readonly value: Json };

export type Parser = {
  readonly title: string;
  /** Whether this parser takes a member of the text for the one that a program asks for. */
  readonly isNamed: (found: string, wanted: string) => boolean;
  /** Which of several such members counts. */
  readonly counts: 'first' | 'last';
};

const exactly = (found: string, wanted: string): boolean => found === wanted;
const untilNul = (found: string, wanted: string): boolean => found.split('\0', 1)[0] === wanted;

/** Simple case folding as regular expressions do it (ECMA-262, Canonicalize), not as our reader does. */
function inAnyCase(found: string, wanted: string): boolean {
  return new RegExp(`^${escapeText(wanted)}$`, 'iu').test(found);
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** Parsers that are met in practice, each with both readings of two members of one name. */
export const MODEL_PARSERS: readonly Parser[] = [
  ['exact names', exactly] as const,
  ['names in any case', inAnyCase] as const,
  ['names that end at NUL', untilNul] as const,
].flatMap(([title, isNamed]) =>
  (['first', 'last'] as const).map((counts) => ({
    title: `${title}, the ${counts} counts`,
    isNamed,
    counts,
  })),
);

/** The same parser in a program that asks for names exactly as they are written. */
export function withExactCase(parser: Parser): Parser {
  return parser.isNamed === inAnyCase ? { ...parser, isNamed: exactly } : parser;
}

const TOKEN = /[{}[\]:,]|"(?:[^"\\]|\\.)*"|[^\s{}[\]:,"]+/gsu;

/** Reads valid JSON text without losing a member. */
export function readNodes(text: string): Node {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const take = (): string => tokens[at++] ?? '';
  const readValue = (): Node => {
    const token = take();
    if (token === '{') return { kind: 'object', members: readAll('}', readMember) };
    if (token === '[') return { kind: 'array', items: readAll(']', readValue) };
    return { kind: 'scalar', value: JSON.parse(token) as Json };
  };
  const readMember = (): readonly [string, Node] => {
    const name = JSON.parse(take()) as string;
    take();
    return [name, readValue()];
  };
  const readAll = <T>(close: string, read: () => T): readonly T[] => {
    const all: T[] = [];
    if (tokens[at] === close) take();
    else
      do all.push(read());
      while (take() === ',');
    return all;
  };
  return readValue();
}

/** What a program that uses this parser gets when it asks for a member. */
export function memberOf(parser: Parser, node: Node | undefined, wanted: string): Node | undefined {
  if (node?.kind !== 'object') return undefined;
  const found = node.members.filter(([name]) => parser.isNamed(name, wanted));
  return (parser.counts === 'first' ? found[0] : found.at(-1))?.[1];
}

/** True when a program that reads every member of `value` through this parser reads `value`. */
export function readsAs(parser: Parser, node: Node | undefined, value: Json | undefined): boolean {
  if (node === undefined || value === undefined) return node === value;
  if (typeof value !== 'object' || value === null) return node.kind === 'scalar' && Object.is(node.value, value);
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    return (
      node.kind === 'array' &&
      node.items.length === items.length &&
      items.every((item, index) => readsAs(parser, node.items[index], item))
    );
  }
  const members = Object.entries(value);
  return (
    node.kind === 'object' &&
    node.members.length === members.length &&
    members.every(([name, item]) => readsAs(parser, memberOf(parser, node, name), item))
  );
}
