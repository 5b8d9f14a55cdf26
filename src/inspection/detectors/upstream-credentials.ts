// Finds the gateway's own upstream credentials in what that upstream sends back: as they are, in base64 at any
// offset, and in hex. Percent triplets, escapes and nested encodings are decoded before by the views of
// text-sanitizer.ts. Keeps hashes in shared memory, so that other threads can search without a copy; never returns
// a credential.
// Source: MCP security best practices; RFC 4648 §4, §5 and §8.

import type { Hit } from './hit.js';

/** The kind in placeholders and findings. */
export const OWN_CREDENTIAL = 'upstream-credential';

/** Shorter values would match ordinary text. `sallyport validate` warns about them. */
const MIN_OWN_CHARS = 12;

/** What to look for in the messages of one upstream, as plain values that threads can share. */
export type SentCredentials = {
  readonly tables: readonly Int32Array<SharedArrayBuffer>[];
  /** Spellings that the prefilter might pass as ordinary text. They are searched for separately. */
  readonly exposed: readonly string[];
};

/**
 * `configured`: searched for as long as the process runs. `issued`: a token, searched for until it has
 * certainly expired. `prefix`: the common start of a series of credentials, to which all that follows belongs.
 */
type OwnKind = 'configured' | 'issued' | 'prefix';

export type OwnCredentialStore = {
  /** Must be called before the credential is first sent. Values that are too short are ignored. */
  note(value: string, kind: OwnKind): void;
  /** What to look for now; undefined where there is nothing. */
  current(): SentCredentials | undefined;
};

/** Issued tokens are kept for an hour at most (token-endpoint.ts), and are searched for at least one hour longer. */
const GENERATION_MS = 2 * 60 * 60 * 1000;

/** A slot: hash of the last characters, hash of all, their number, the power for that length, and flags. */
const SLOT_INTS = 5;
const FLAGS = 4;
const MIN_SLOTS = 64;
/** At this size, tens of thousands of tokens, the oldest ones are dropped early. */
const MAX_SLOTS = 1 << 18;
const USED = 1;
/** The characters at both edges also hold bits of the credential. */
const HAS_EDGES = 2;
const CONTINUES = 4;

/** The credentials of one generation. `exposed`: see {@link SentCredentials}. */
type Table = {
  cells: Int32Array<SharedArrayBuffer>;
  count: number;
  readonly exposed: Set<string>;
};

/** Creates an empty store for one upstream. `now` returns milliseconds. */
export function createOwnCredentialStore(now: () => number): OwnCredentialStore {
  const configuredTable = createTable();
  let fresh = createTable();
  let stale = createTable();
  let sinceMs = now();
  const known = new Set<string>();
  let credentials: SentCredentials | undefined;

  function rebuild(): void {
    const isFull = fresh.count * 2 >= MAX_SLOTS;
    if (!isFull && now() - sinceMs < GENERATION_MS) return;
    stale = fresh;
    fresh = createTable();
    sinceMs = now();
    credentials = undefined;
  }

  function add(table: Table, value: string, more: number): void {
    for (const { text, flags } of formsOf(value)) {
      insert(table, text, flags | more);
      for (const form of exposedForms(text)) table.exposed.add(form);
    }
    credentials = undefined;
  }

  return {
    note(value, kind) {
      if (value.length < MIN_OWN_CHARS) return;
      rebuild();
      if (kind === 'issued') return add(fresh, value, 0);
      if (known.has(value)) return;
      known.add(value);
      add(configuredTable, value, kind === 'prefix' ? CONTINUES : 0);
    },
    current() {
      rebuild();
      if (credentials === undefined) {
        const tables = [configuredTable, fresh, stale].filter(({ count }) => count > 0);
        credentials = {
          tables: tables.map(({ cells }) => cells),
          exposed: tables.flatMap(({ exposed }) => [...exposed]),
        };
      }
      return credentials.tables.length === 0 ? undefined : credentials;
    },
  };
}

type Form = { readonly text: string; readonly flags: number };

/** The ways in which programs write a value, except those that the views of text-sanitizer.ts decode. */
function formsOf(value: string): readonly Form[] {
  const bytes = new TextEncoder().encode(value);
  const once = escaped(value);
  const written = [value, ...formsBeyondAscii(value, bytes)];
  const sent = written.map((form) => form.replaceAll(' ', '+'));
  const spelled = new Set([...written, ...sent, once, escaped(once), hexOf(bytes)]);
  const forms: Form[] = [...spelled].map((text) => ({ text, flags: 0 }));
  for (const offset of [0, 1, 2]) {
    forms.push({ text: base64Core(bytes, offset), flags: HAS_EDGES });
  }
  return forms.filter(({ text }) => text.length >= MIN_OWN_CHARS);
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

const BEYOND_ASCII = /[^\0-\x7f]/g;

/** Views decode no percent triplets beyond ASCII, and read escaped UTF-8 bytes as Latin-1. */
function formsBeyondAscii(value: string, bytes: Uint8Array): readonly string[] {
  if (bytes.length === value.length) return [];
  const triplets = (one: Uint8Array): string => hexOf(one).replace(/../g, '%$&');
  const composed = [value.normalize('NFC'), value.normalize('NFD')];
  return [
    ...composed,
    ...composed.map((form) => form.replace(BEYOND_ASCII, (unit) => triplets(Buffer.from(unit, 'utf8')))),
    value.replace(BEYOND_ASCII, (unit) => triplets(Buffer.from(unit, 'latin1'))),
    Buffer.from(bytes).toString('latin1'),
  ];
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

const BITS_A_BYTE = 8;
const BITS_A_CHAR = 6;

/** The base64 characters that the bytes alone determine, after `offset` other bytes. */
function base64Core(bytes: Uint8Array, offset: number): string {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  const start = Math.ceil((offset * BITS_A_BYTE) / BITS_A_CHAR);
  const end = Math.floor((padded.length * BITS_A_BYTE) / BITS_A_CHAR);
  return padded.toString('base64').slice(start, end);
}

/** The spellings that the prefilter might pass. It always stops at long runs with a digit or several capitals. */
function exposedForms(form: string): readonly string[] {
  const runs = form.match(/[A-Za-z0-9+/_-]{16,}/g) ?? [];
  const isSeen = runs.some((run) => /\d/.test(run) || (run.match(/[A-Z]/g) ?? []).length >= 4);
  if (isSeen) return [];
  const once = escaped(form);
  return [form, form.replaceAll('+', '-').replaceAll('/', '_'), once, escaped(once)];
}

/** Whether a text that the prefilter calls clean holds a credential after all. */
export function isExposedIn(text: string, sentCredentials: SentCredentials | undefined): boolean {
  return sentCredentials?.exposed.some((form) => text.includes(form)) === true;
}

// Hashes are polynomials over folded characters modulo 2^32. Folding makes both cases, and both alphabets of
// base64, equal.
const BASE = 0x01000193;
const UNITS = 0x80;
const folded = new Uint8Array(UNITS);
for (let code = 0; code < UNITS; code++) {
  const unit = String.fromCharCode(code).toLowerCase().replace('-', '+').replace('_', '/');
  folded[code] = unit.charCodeAt(0);
}

function hashPower(length: number): number {
  let power = 1;
  for (let at = 0; at < length; at++) power = Math.imul(power, BASE);
  return power;
}

const ANCHOR_POWER = hashPower(MIN_OWN_CHARS);

/** Texts up to this length reuse one buffer for their hashes. */
const MAX_KEPT = 128 * 1024;
const keptSums = new Int32Array(MAX_KEPT + 1);

/** `sums[i]` is the hash of the first `i` characters. Valid until the next call. */
function sumsOf(text: string): Int32Array {
  const { length } = text;
  const sums = length <= MAX_KEPT ? keptSums : new Int32Array(length + 1);
  let sum = 0;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    sum = (Math.imul(sum, BASE) + (code < UNITS ? (folded[code] ?? 0) : code) + 1) | 0;
    sums[at + 1] = sum;
  }
  return sums;
}

function hashBetween(sums: Int32Array, start: number, end: number, power: number): number {
  return ((sums[end] ?? 0) - Math.imul(sums[start] ?? 0, power)) | 0;
}

function createTable(): Table {
  return { cells: createCells(MIN_SLOTS), count: 0, exposed: new Set() };
}

function createCells(slots: number): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(slots * SLOT_INTS * Int32Array.BYTES_PER_ELEMENT));
}

function slotOf(hash: number, slots: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((mixed ^ (mixed >>> 13)) >>> 0) & (slots - 1);
}

function insert(table: Table, form: string, flags: number): void {
  const sums = sumsOf(form);
  const { length } = form;
  const power = hashPower(length);
  const anchor = hashBetween(sums, length - MIN_OWN_CHARS, length, ANCHOR_POWER);
  if ((table.count + 1) * 2 > table.cells.length / SLOT_INTS) grow(table);
  put(table, [anchor, hashBetween(sums, 0, length, power), length, power, flags | USED]);
}

type Row = readonly [anchor: number, hash: number, length: number, power: number, flags: number];

function put(table: Table, row: Row): void {
  const { cells } = table;
  const slots = cells.length / SLOT_INTS;
  for (let slot = slotOf(row[0], slots); ; slot = (slot + 1) & (slots - 1)) {
    const at = slot * SLOT_INTS;
    const isSame = row.every((value, index) => cells[at + index] === value);
    if (isSame) return;
    if (cells[at + FLAGS] !== 0) continue;
    // INVARIANT: the flags are written last, because other threads read only slots with flags.
    cells.set(row, at);
    table.count++;
    return;
  }
}

function grow(table: Table): void {
  const { cells, exposed } = table;
  const bigger: Table = { cells: createCells((cells.length / SLOT_INTS) * 2), count: 0, exposed };
  for (let at = 0; at < cells.length; at += SLOT_INTS) {
    const [anchor = 0, hash = 0, length = 0, power = 0, flags = 0] = cells.subarray(at, at + SLOT_INTS);
    if (flags !== 0) put(bigger, [anchor, hash, length, power, flags]);
  }
  table.cells = bigger.cells;
  table.count = bigger.count;
}

/** Finds the credentials in a text. Linear in the text, however many there are. */
export function findSentCredentials(text: string, sentCredentials: SentCredentials | undefined): readonly Hit[] {
  if (sentCredentials === undefined || text.length < MIN_OWN_CHARS) return NO_HITS;
  const search: Search = { text, sums: sumsOf(text), hits: [], readTo: 0 };
  for (const cells of sentCredentials.tables) lookUp(search, cells);
  return search.hits;
}

const NO_HITS: readonly Hit[] = [];

type Search = {
  readonly text: string;
  readonly sums: Int32Array;
  readonly hits: Hit[];
  /** How far the text after a `prefix` was read, so that each character is read once. */
  readTo: number;
};

function lookUp(search: Search, cells: Int32Array): void {
  const { text, sums } = search;
  const slots = cells.length / SLOT_INTS;
  search.readTo = 0;
  for (let end = MIN_OWN_CHARS; end <= text.length; end++) {
    const anchor = hashBetween(sums, end - MIN_OWN_CHARS, end, ANCHOR_POWER);
    let slot = slotOf(anchor, slots);
    while (cells[slot * SLOT_INTS + FLAGS] !== 0) {
      if (cells[slot * SLOT_INTS] === anchor) compare(search, cells, slot * SLOT_INTS, end);
      slot = (slot + 1) & (slots - 1);
    }
  }
}

/** Adds a hit where all characters of the entry end here, not only its last ones. */
function compare(search: Search, cells: Int32Array, entry: number, end: number): void {
  const { text, sums, hits } = search;
  const start = end - (cells[entry + 2] ?? 0);
  if (start < 0) return;
  if (hashBetween(sums, start, end, cells[entry + 3] ?? 0) !== cells[entry + 1]) return;
  const flags = cells[entry + FLAGS] ?? 0;
  let to = end;
  if ((flags & CONTINUES) !== 0) {
    to = tokenEnd(text, Math.max(end, search.readTo));
    search.readTo = to;
  }
  const hasEdges = (flags & HAS_EDGES) !== 0;
  hits.push({
    kind: OWN_CREDENTIAL,
    start: hasEdges ? edgeBefore(text, start) : start,
    end: hasEdges ? edgeAfter(text, to) : to,
  });
}

const EDGE = /[A-Za-z0-9+/_-]/;
const TOKEN_UNIT = /[A-Za-z0-9+/_.~=%-]/;

function edgeBefore(text: string, start: number): number {
  return start > 0 && EDGE.test(text.charAt(start - 1)) ? start - 1 : start;
}

function edgeAfter(text: string, end: number): number {
  return EDGE.test(text.charAt(end)) ? end + 1 : end;
}

function tokenEnd(text: string, from: number): number {
  let end = from;
  while (end < text.length && TOKEN_UNIT.test(text.charAt(end))) end++;
  return end;
}
