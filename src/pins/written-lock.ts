// Reads the values of a lock file in the very form in which this program writes it (lock.ts), some fifty times faster than
// as YAML, of which that form is a small part. It keeps no positions: what is in any other form, or has a mistake, is left
// to the YAML reader, which then says where. INVARIANT: what is read here is what the YAML reader would read.

import type { Json } from '../protocol/jsonrpc.js';

/** Thrown where a text is in another form; never leaves this file. */
class OtherForm extends Error {}

type Lines = { readonly lines: string[]; at: number };
type Members = { [name: string]: Json };

/** Unquoted text that is a string in every version of YAML. */
const BARE = /^[A-Za-z_][A-Za-z0-9_./-]*$/;
const RESERVED: ReadonlySet<string> = new Set(['yes', 'no', 'on', 'off', 'y', 'n', 'true', 'false', 'null']);
const LITERALS: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
/** Numbers as JSON has them, without those that are not held exactly. */
const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,14})?$/;
/** A quoted text with nothing that JSON and YAML could read differently. */
const QUOTED = /^"(?:[^"\\\t]|\\["\\bfnrt]|\\u[0-9a-f]{4})*"/;
const STEP = 2;

/** @returns `undefined` for a text in another form. `maxDepth`: of maps and lists. */
export function readWrittenLines(text: string, maxDepth: number): Json | undefined {
  const lines = text.split('\n');
  // The empty text behind the last line end.
  if (lines.pop() !== '') return undefined;
  const reading: Lines = { lines, at: 0 };
  try {
    const value = readBlock(reading, 0, maxDepth);
    return reading.at === lines.length ? value : undefined;
  } catch (error) {
    if (error instanceof OtherForm) return undefined;
    throw error;
  }
}

/** The lines from here on that are indented as far. */
function readBlock(reading: Lines, indent: number, depth: number): Json {
  if (depth < 1) throw new OtherForm();
  return startsItem(reading, indent) ? readItems(reading, indent, depth) : readMembers(reading, indent, depth);
}

/** Whether the next line is indented this far and no further. */
function isAt({ lines, at }: Lines, indent: number): boolean {
  const line = lines[at];
  if (line === undefined) return false;
  for (let index = 0; index < indent; index += 1) if (line.charCodeAt(index) !== SPACE) return false;
  return line.charCodeAt(indent) !== SPACE;
}

const SPACE = 0x20;

function startsItem({ lines, at }: Lines, indent: number): boolean {
  return lines[at]?.startsWith('- ', indent) === true;
}

function readItems(reading: Lines, indent: number, depth: number): Json {
  const items: Json[] = [];
  while (isAt(reading, indent) && startsItem(reading, indent)) {
    const line = reading.lines[reading.at] ?? '';
    const rest = line.slice(indent + STEP);
    if (isInline(rest)) {
      items.push(readInline(rest));
      reading.at += 1;
    } else {
      // The first line of the block stands behind the dash.
      reading.lines[reading.at] = ' '.repeat(indent + STEP) + rest;
      items.push(readBlock(reading, indent + STEP, depth - 1));
    }
  }
  return items;
}

/** Whether what stands behind a dash is a value, and no member or item. */
function isInline(rest: string): boolean {
  if (rest.startsWith('"')) return QUOTED.exec(rest)?.[0].length === rest.length;
  return !rest.startsWith('- ') && !rest.includes(':');
}

function readMembers(reading: Lines, indent: number, depth: number): Json {
  const members: Members = {};
  let count = 0;
  while (isAt(reading, indent)) {
    const line = reading.lines[reading.at] ?? '';
    const key = keyAt(line, indent);
    const name = readText(key);
    const end = indent + key.length + 1;
    if (name === '__proto__' || Object.hasOwn(members, name)) throw new OtherForm();
    reading.at += 1;
    if (line.length === end) members[name] = readNested(reading, indent + STEP, depth - 1);
    else if (line.charCodeAt(end) === SPACE) members[name] = readInline(line.slice(end + 1));
    else throw new OtherForm();
    count += 1;
  }
  if (count === 0) throw new OtherForm();
  return members;
}

/** The block of a member, which has at least one line. */
function readNested(reading: Lines, indent: number, depth: number): Json {
  if (!isAt(reading, indent)) throw new OtherForm();
  return readBlock(reading, indent, depth);
}

/** A YAML implicit key ends within 1024 characters (YAML 1.2.2 §8.2.2). */
const MAX_KEY = 1000;

/** The key of a line, as it is written. */
function keyAt(line: string, indent: number): string {
  const rest = line.slice(indent);
  const length = rest.startsWith('"') ? (QUOTED.exec(rest)?.[0].length ?? 0) : rest.indexOf(':');
  if (length <= 0 || length > MAX_KEY || rest[length] !== ':') throw new OtherForm();
  return rest.slice(0, length);
}

function readInline(text: string): Json {
  if (text === '[]') return [];
  if (text === '{}') return {};
  const literal = LITERALS.get(text);
  if (literal !== undefined) return literal;
  if (NUMBER.test(text) && text !== '-0') return Number(text);
  return readText(text);
}

function readText(text: string): string {
  if (!text.startsWith('"')) {
    if (BARE.test(text) && !RESERVED.has(text.toLowerCase())) return text;
    throw new OtherForm();
  }
  if (QUOTED.exec(text)?.[0].length !== text.length) throw new OtherForm();
  return text.includes('\\') ? JSON.parse(text) : text.slice(1, -1);
}
