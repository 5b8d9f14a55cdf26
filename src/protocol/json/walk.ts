// Walks JSON text and reports every name, string and number with its span and its path, so that one can be replaced
// without touching the bytes next to it; for that it builds no value and does not recurse. What needs no spans is walked
// as the value that was parsed.
// Source: RFC 8259.

import type { Json, JsonObject } from '../jsonrpc.js';

/**
 * Bounds of a walk. A walk beyond any of them ends with `too-large`. A string counts once for each {@link FREE_LEVELS}
 * levels that it is nested in, because its path may be kept.
 */
export type WalkCaps = { readonly maxDepth: number; readonly maxStrings: number };

/** One leaf. `steps` is its live path (for a name, the path of its member) and must be copied to be kept. */
export type Leaf = {
  readonly kind: 'name' | 'string' | 'number';
  /** Span of the token, quotes included. */
  readonly start: number;
  readonly end: number;
  /** The decoded string, or the literal of a number. */
  readonly value: string;
  readonly steps: readonly (string | number)[];
};

const FREE_LEVELS = 64;

type WalkState = {
  readonly text: string;
  readonly visit: (leaf: Leaf) => void;
  readonly steps: (string | number)[];
  /** Whether the innermost container is an object and the next string is a member name. */
  awaitsName: boolean;
  strings: number;
};

/** Visits the leaves in order. The text must be valid JSON. */
export function walkJson(text: string, caps: WalkCaps, visit: (leaf: Leaf) => void): 'done' | 'too-large' {
  const state: WalkState = { text, visit, steps: [], awaitsName: false, strings: 0 };
  for (let at = 0; at < text.length; ) {
    at = readToken(state, at);
    if (state.steps.length > caps.maxDepth || state.strings > caps.maxStrings) return 'too-large';
  }
  return 'done';
}

function readToken(state: WalkState, at: number): number {
  const code = state.text.charCodeAt(at);
  if (code === 0x22) return readString(state, at);
  if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return readNumber(state, at);
  if (code === 0x7b || code === 0x5b) openContainer(state, code === 0x7b);
  else if (code === 0x7d || code === 0x5d) state.steps.pop();
  else if (code === 0x2c) nextElement(state);
  return at + 1;
}

function openContainer(state: WalkState, isObjectStart: boolean): void {
  state.steps.push(isObjectStart ? '' : 0);
  state.awaitsName = isObjectStart;
}

function nextElement(state: WalkState): void {
  const last = state.steps.length - 1;
  const step = state.steps[last];
  if (typeof step === 'number') state.steps[last] = step + 1;
  state.awaitsName = typeof step === 'string';
}

function countOf({ steps }: WalkState): number {
  return 1 + Math.floor(steps.length / (FREE_LEVELS + 1));
}

function readString(state: WalkState, start: number): number {
  const { text } = state;
  const end = stringEnd(text, start);
  const raw = text.slice(start + 1, end - 1);
  const value: string = raw.includes('\\') ? JSON.parse(text.slice(start, end)) : raw;
  state.strings += countOf(state);
  const isName = state.awaitsName && typeof state.steps.at(-1) === 'string';
  if (isName) {
    state.steps[state.steps.length - 1] = value;
    state.awaitsName = false;
  }
  state.visit({ kind: isName ? 'name' : 'string', start, end, value, steps: state.steps });
  return end;
}

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - slashes - 1) === 0x5c) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

const NUMBER = /[-+0-9.eE]{1,4096}/y;

function readNumber(state: WalkState, start: number): number {
  NUMBER.lastIndex = start;
  const value = NUMBER.exec(state.text)?.[0] ?? '';
  const end = start + Math.max(1, value.length);
  state.strings += countOf(state);
  state.visit({ kind: 'number', start, end, value, steps: state.steps });
  return end;
}

type VisitValue = (value: Json, steps: readonly (string | number)[]) => boolean;

/**
 * Visits a parsed value and all values below it, each before what it holds, in the order of the text. `steps` is the live
 * path, which the walk extends. Goes below a value only where `visit` returns true; recurses as deep as it goes.
 */
export function walkValue(value: Json, steps: (string | number)[], visit: VisitValue): void {
  if (visit(value, steps) && typeof value === 'object' && value !== null) walkBelow(value, steps, visit);
}

function walkBelow(holder: Extract<Json, object>, steps: (string | number)[], visit: VisitValue): void {
  if (Array.isArray(holder)) {
    for (let index = 0; index < holder.length; index++) {
      const value = holder[index] as Json;
      steps.push(index);
      if (visit(value, steps) && typeof value === 'object' && value !== null) walkBelow(value, steps, visit);
      steps.pop();
    }
    return;
  }
  for (const name in holder) {
    const value = (holder as JsonObject)[name] as Json;
    steps.push(name);
    if (visit(value, steps) && typeof value === 'object' && value !== null) walkBelow(value, steps, visit);
    steps.pop();
  }
}

/** End of the value of the member name that ends at `nameEnd`, including the white space after it. */
export function valueEnd(text: string, nameEnd: number): number {
  let depth = 0;
  let at = nameEnd;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (depth === 0 && (code === 0x2c || code === 0x7d)) return at;
    depth += nestingOf(code);
    at = code === 0x22 ? stringEnd(text, at) : at + 1;
  }
  return at;
}

function nestingOf(code: number): number {
  if (code === 0x7b || code === 0x5b) return 1;
  return code === 0x7d || code === 0x5d ? -1 : 0;
}
