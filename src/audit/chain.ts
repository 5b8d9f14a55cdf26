// The hash chain over audit lines. A line ends in `,"chain":{"seq":n,"prev":"…","hash":"…"}}`, and
// hash = SHA-256(prev as 64 hex digits + "\n" + the line's bytes up to and without `,"hash":"…"}}`).
// `prev` is the hash of the line before; line 0 of a chain has 64 zeros and is a `lifecycle` event with
// the instance, the epoch (the name of this chain) and the public key, so that its hash, the genesis,
// binds all that follows to them. Pure: it reads and writes nothing.

import { createPublicKey, hash, verify } from 'node:crypto';
import type { EventText } from './event.js';

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

// What was written since a checkpoint, counted the same way by the writer, which must not exceed its
// bounds, and by the verifier, which reports it when they were exceeded.

/** The verifier allows this many intervals between two checkpoints. */
export const INTERVALS_ALLOWED = 2;

/** The writer waits for its timer this much longer than one interval before it puts a checkpoint in itself. */
const INTERVALS_WRITTEN = 1.5;

/** Lines that the writer keeps free for those that a restart puts before its checkpoint. */
const LINES_KEPT = 10;

/** The lines that follow a checkpoint. */
export class CheckpointInterval {
  readonly bounds: CheckpointBounds;
  lines = 0;
  /**
   * The lines' own time: from line to line, forwards only. A pause without lines (the machine slept, the
   * clock was set, nothing ran) counts as one interval, however long it was: it says nothing of what is
   * missing, and yet a file must not be made of pauses alone.
   */
  ownMs = 0;
  #lastMs: number;

  constructor(bounds: CheckpointBounds, timeMs: number) {
    this.bounds = bounds;
    this.#lastMs = timeMs;
  }

  copy(): CheckpointInterval {
    const same = new CheckpointInterval(this.bounds, this.#lastMs);
    same.lines = this.lines;
    same.ownMs = this.ownMs;
    return same;
  }

  /** Time since the last line. NaN, for a line that states no time, counts as none. */
  pauseBefore(timeMs: number): number {
    const pause = timeMs - this.#lastMs;
    return pause > 0 ? pause : 0;
  }

  add(timeMs: number): void {
    this.lines += 1;
    this.ownMs += Math.min(this.pauseBefore(timeMs), this.bounds.everyMs);
    if (!Number.isNaN(timeMs)) this.#lastMs = timeMs;
  }

  /** True when the writer has to put a checkpoint before a line of this time. */
  isDueBefore(timeMs: number): boolean {
    const { everyMs, everyLines } = this.bounds;
    if (this.lines + 1 > Math.max(1, everyLines - LINES_KEPT)) return true;
    const pause = Math.min(this.pauseBefore(timeMs), everyMs);
    return this.ownMs + pause > INTERVALS_WRITTEN * everyMs;
  }

  /** True when more follows than the verifier allows. */
  isExceeded(): boolean {
    const { everyMs, everyLines } = this.bounds;
    return this.lines > INTERVALS_ALLOWED * everyLines || this.ownMs > INTERVALS_ALLOWED * everyMs;
  }
}

// Signed checkpoints: which hash stood at which place of which chain, when, and how soon the next one is
// due, under the gateway's Ed25519 key. A checkpoint kept elsewhere shows that a chain was cut or
// rewritten since; the bounds show that later checkpoints were taken out.
// Signed text (RFC 8032), each part on a line: `sallyport.checkpoint/2`, epoch, seq, hash, time, the bound
// in milliseconds and the bound in lines. `sallyport.checkpoint/1`, of earlier versions, has no bounds.

/** Lines that may stand between two checkpoints. */
export const MAX_LINES_BETWEEN_CHECKPOINTS = 10_000;

/** The next checkpoint is due after so much time or so many lines, whichever comes first. */
export type CheckpointBounds = { readonly everyMs: number; readonly everyLines: number };

/** What a checkpoint states. Those of earlier versions state no bounds. */
type CheckpointText = ChainHead & {
  /** RFC 3339, UTC, milliseconds. */
  readonly time: string;
  readonly bounds: CheckpointBounds | undefined;
};

/** A checkpoint as its event carries it in `detail`. */
export type Checkpoint = CheckpointText & {
  readonly keyId: string;
  /** Ed25519, base64url. */
  readonly signature: string;
};

const HASH = /^[0-9a-f]{64}$/;

/** The bytes that are signed. */
export function checkpointBytes({ epoch, seq, hash, time, bounds }: CheckpointText): Buffer {
  const place = `${epoch}\n${seq}\n${hash}\n${time}\n`;
  return Buffer.from(
    bounds === undefined
      ? `sallyport.checkpoint/1\n${place}`
      : `sallyport.checkpoint/2\n${place}${bounds.everyMs}\n${bounds.everyLines}\n`,
  );
}

/** The `detail` of a checkpoint event. */
export function checkpointDetail(point: Checkpoint): Record<string, string | number> {
  const { epoch, seq, hash, time, bounds, keyId, signature } = point;
  const stated =
    bounds === undefined ? {} : { every_ms: bounds.everyMs, every_lines: bounds.everyLines };
  return { epoch, seq, hash, at: time, ...stated, key_id: keyId, signature };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** Reads the `detail` of a checkpoint event; `undefined` when it is none. */
export function readCheckpoint(detail: {
  readonly [name: string]: unknown;
}): Checkpoint | undefined {
  const { epoch, seq, hash, at, key_id: keyId, signature } = detail;
  const { every_ms: everyMs, every_lines: everyLines } = detail;
  if (typeof epoch !== 'string' || typeof hash !== 'string' || !HASH.test(hash)) return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return undefined;
  if (typeof at !== 'string' || typeof keyId !== 'string' || typeof signature !== 'string') {
    return undefined;
  }
  const point = { epoch, seq, hash, time: at, keyId, signature };
  if (everyMs === undefined && everyLines === undefined) return { ...point, bounds: undefined };
  if (!isCount(everyMs) || !isCount(everyLines)) return undefined;
  return { ...point, bounds: { everyMs, everyLines } };
}

/** True when one of the public keys (raw 32 bytes, base64url) made the signature. Never throws. */
export function isSignedBy(point: Checkpoint, publicKeys: readonly string[]): boolean {
  const signature = Buffer.from(point.signature, 'base64url');
  if (signature.length !== 64) return false;
  const bytes = checkpointBytes(point);
  return publicKeys.some((x) => {
    try {
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      return verify(null, bytes, key, signature);
    } catch {
      return false;
    }
  });
}
