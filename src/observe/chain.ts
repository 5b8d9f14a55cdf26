// The hash chain over audit lines. A line ends in `,"chain":{"seq":n,"prev":"…","hash":"…"}}`, and
// hash = SHA-256(prev as 64 hex digits + "\n" + the line's bytes up to and without `,"hash":"…"}}`).
// `prev` is the hash of the line before; line 0 of a chain has 64 zeros and is a `lifecycle` event with
// the instance, the epoch (the name of this chain) and the public key, so that its hash, the genesis,
// binds all that follows to them. Pure: it reads and writes nothing.

import { hash } from 'node:crypto';
import type { EventText } from './audit-event.js';

/** `prev` of the first line of a chain. */
export const NO_PREVIOUS = '0'.repeat(64);

/** The last line of a chain, or where one begins. */
export type ChainHead = {
  /** The name of the chain: a UUID made with its first line. */
  readonly epoch: string;
  /** Number of the last line; -1 before the first. */
  readonly seq: number;
  readonly hash: string;
};

/** A line as found: its place in a chain and what it says of itself. */
export type ChainLine = {
  readonly epoch: string;
  readonly seq: number;
  readonly prev: string;
  readonly hash: string;
  /** The hash computed from the bytes; differs from `hash` when the line was changed. */
  readonly computed: string;
  readonly type: string;
  /** The time that it states, in milliseconds since the epoch; NaN where that is none. */
  readonly timeMs: number;
  readonly detail: { readonly [name: string]: unknown };
};

const CHAIN_MEMBER = ',"chain":{"seq":';
const CHAIN_TAIL =
  /^,"chain":\{"seq":(0|[1-9]\d{0,15}),"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}\}$/;

/** Length of `,"hash":"` + 64 digits + `"}}`. */
export const HASH_TAIL_LENGTH = 9 + 64 + 3;

/** Length of the hash before and the line end, with which what is hashed begins. */
export const PREFIX_LENGTH = 64 + 1;

/** Where a new chain begins. */
export function startChain(epoch: string): ChainHead {
  return { epoch, seq: -1, hash: NO_PREVIOUS };
}

/** The hash over `prev`, a line end, and the bytes of a line up to its hash. */
export function hashBytes(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}

function hashOf(prev: string, bytes: string): string {
  return hashBytes(Buffer.from(`${prev}\n${bytes}`, 'latin1'));
}

/** The next line of the chain up to its hash. */
export function openLine(head: ChainHead, event: EventText): string {
  return `${event.before}${head.epoch}${event.after}${CHAIN_MEMBER}${head.seq + 1},"prev":"${head.hash}"`;
}

/** The next line of the chain, without its line end, and the head that it makes. */
export function linkLine(
  head: ChainHead,
  event: EventText,
): { readonly line: string; readonly head: ChainHead } {
  const open = openLine(head, event);
  const linked = hashOf(head.hash, open);
  return {
    line: `${open},"hash":"${linked}"}}`,
    head: { epoch: head.epoch, seq: head.seq + 1, hash: linked },
  };
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/**
 * Reads a line given as Latin-1 text, one character a byte, without its line end. `undefined` when it is
 * no line of a chain at all; a line that was changed is returned with `computed` unequal to `hash`.
 */
export function readChainLine(line: string): ChainLine | undefined {
  const at = line.lastIndexOf(CHAIN_MEMBER);
  const tail = at < 0 ? null : CHAIN_TAIL.exec(line.slice(at));
  const value = tail === null ? undefined : parse(line);
  if (tail === null || value === undefined) return undefined;
  const [, seq = '', prev = '', stated = ''] = tail;
  const epoch = member(member(value, 'gateway'), 'epoch');
  const type = member(value, 'type');
  const time = member(value, 'time');
  const detail = member(value, 'detail');
  return {
    epoch: typeof epoch === 'string' ? epoch : '',
    seq: Number(seq),
    prev,
    hash: stated,
    computed: hashOf(prev, line.slice(0, line.length - HASH_TAIL_LENGTH)),
    type: typeof type === 'string' ? type : '',
    timeMs: typeof time === 'string' ? Date.parse(time) : Number.NaN,
    detail:
      typeof detail === 'object' && detail !== null
        ? Object.fromEntries(Object.entries(detail))
        : {},
  };
}

/** What stands at the end of a file: the last whole line, and what was torn off after it. */
export type ChainTail = {
  readonly head: ChainHead | undefined;
  /** Bytes after the last whole line, as Latin-1 text without a line end at its end; empty when there are none. */
  readonly torn: string;
  readonly isLineEnded: boolean;
};

/** Digest of torn bytes (Latin-1 text), as the record of a recovery carries it. */
export function tornDigest(torn: string): string {
  return hash('sha256', Buffer.from(torn, 'latin1'), 'hex');
}

/**
 * Finds the last whole line of a chain in the end of a file, given as Latin-1 text. What follows it was
 * torn off by a crash in the middle of a write: the last line's bytes are returned so that they can be recorded.
 */
export function readTail(text: string): ChainTail {
  const isLineEnded = text === '' || text.endsWith('\n');
  const lines = (isLineEnded ? text.slice(0, -1) : text).split('\n');
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const found = readChainLine(lines[index] ?? '');
    if (found === undefined || found.computed !== found.hash) continue;
    // A whole line that lacks only its line end is a whole line.
    const torn = index === lines.length - 1 ? '' : (lines.at(-1) ?? '');
    return { head: { epoch: found.epoch, seq: found.seq, hash: found.hash }, torn, isLineEnded };
  }
  return { head: undefined, torn: lines.at(-1) ?? '', isLineEnded };
}
