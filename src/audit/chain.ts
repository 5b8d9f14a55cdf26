// The hash chain over audit lines, and the signed checkpoints about it. A line ends in
// `,"chain":{"seq":n,"prev":"…","hash":"…"}}`, and hash = SHA-256(prev as it stands there + "\n" + the bytes of
// the line up to and excluding `,"hash":"…"}}`), in base64url; lines of `sallyport.audit/1` have it in hex.
// `prev` is the hash of the previous line. Line 0 of a chain has 64 zeros and is a `lifecycle` event with the instance,
// the epoch (the name of the chain) and the public key, so that its hash, the genesis, binds all later lines to them. The
// first line of a file also links the file to the one before it. The lines of one write are chained in a buffer that is
// reused, so that a line is built once and copied once. Pure: it performs no I/O.

import { createPublicKey, hash, verify } from 'node:crypto';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import type { EventText } from './event.js';

/** `prev` of the first line of a chain. */
export const NO_PREVIOUS = '0'.repeat(64);

/** The last line of a chain, or the beginning of an empty one. */
export type ChainHead = {
  /** The name of the chain: a UUID generated with its first line, behind `stream-` if the chain is one of a stream. */
  readonly epoch: string;
  /** Sequence number of the last line; -1 before the first. */
  readonly seq: number;
  readonly hash: string;
};

/** Chains of streams have epochs that begin so: their lines may stand between those of other chains. */
const STREAM_EPOCH = 'stream-';

/** The name of a new chain; `uuid` is a new one. */
export function epochOf(uuid: string, isStream: boolean): string {
  return isStream ? `${STREAM_EPOCH}${uuid}` : uuid;
}

/** True if the chain is one of a stream such as standard output. */
export function isStreamEpoch(epoch: string): boolean {
  return epoch.startsWith(STREAM_EPOCH);
}

/** Which gateway wrote a line, as lines other than those of requests state it. Earlier versions did not. */
export type ReplicaNames = {
  /** Stays the same when the gateway is restarted. */
  readonly instance: string;
  readonly host: string;
  /** This run of it. */
  readonly run: string;
};

/** A line as read: its position in a chain and what it states. */
export type ChainLine = {
  readonly epoch: string;
  readonly seq: number;
  readonly prev: string;
  readonly hash: string;
  /** The hash computed from the bytes; differs from `hash` if the line was modified. */
  readonly computed: string;
  readonly type: string;
  /** The time stated in the line, in milliseconds since the epoch; NaN if it is not a time. */
  readonly timeMs: number;
  readonly detail: AuditRecord;
  readonly names: ReplicaNames | undefined;
};

const CHAIN_MEMBER = ',"chain":{"seq":';
const CHAIN_TAIL =
  /^,"chain":\{"seq":(0|[1-9]\d{0,15}),"prev":"([0-9a-f]{64}|[\w-]{43})"(,"hash":"([0-9a-f]{64}|[\w-]{43})"\}\})$/;
const HASH = /^(?:[0-9a-f]{64}|[\w-]{43})$/;
/** Length of a hash in hex, as lines of `sallyport.audit/1` state it. */
const HEX_LENGTH = 64;

/** The head of a new, empty chain. */
export function startChain(epoch: string): ChainHead {
  return { epoch, seq: -1, hash: NO_PREVIOUS };
}

/** The hash over `prev`, a line feed, and the bytes of a line up to its hash. */
function hashBytes(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url');
}

/** The next line of the chain, up to its hash. */
function lineUpToHash(head: ChainHead, event: EventText): string {
  return `${event.before}${head.epoch}${event.after}${CHAIN_MEMBER}${head.seq + 1},"prev":"${head.hash}"`;
}

/** A JSON object as read from a file: members may be missing or of any type. */
export type AuditRecord = { readonly [name: string]: unknown };

/** The value at a path of own members, or `undefined`. */
export function valueAt(record: AuditRecord, ...path: readonly string[]): unknown {
  let value: unknown = record;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** The text at a path; `undefined` if there is none. */
export function textAt(record: AuditRecord, ...path: readonly string[]): string | undefined {
  const value = valueAt(record, ...path);
  return typeof value === 'string' ? value : undefined;
}

/** The text at a path; empty if there is none. */
export function requiredText(record: AuditRecord, ...path: readonly string[]): string {
  return textAt(record, ...path) ?? '';
}

/** The texts of the list at a path; none if there is no list. */
export function textsAt(record: AuditRecord, ...path: readonly string[]): readonly string[] {
  const value = valueAt(record, ...path);
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

/** The names that a line states; `undefined` for lines of requests and of earlier versions. */
export function namesOf(record: AuditRecord): ReplicaNames | undefined {
  const [instance, host, run] = ['instance', 'host', 'run'].map((name) => textAt(record, 'gateway', name));
  return instance === undefined || host === undefined || run === undefined ? undefined : { instance, host, run };
}

/**
 * Reads a line given as Latin-1 text, one character per byte, without its line feed. `undefined` if it is
 * not a line of a chain; a line that was modified is returned with `computed` different from `hash`.
 */
export function readChainLine(line: string): ChainLine | undefined {
  const at = line.lastIndexOf(CHAIN_MEMBER);
  const tail = at < 0 ? null : CHAIN_TAIL.exec(line.slice(at));
  const record = tail === null ? undefined : parseObject(line);
  if (tail === null || record === undefined) return undefined;
  const [, seq = '', prev = '', end = '', stated = ''] = tail;
  const hashed = Buffer.from(`${prev}\n${line.slice(0, -end.length)}`, 'latin1');
  const epoch = valueAt(record, 'gateway', 'epoch');
  const [type, time, detail] = ['type', 'time', 'detail'].map((name) => valueAt(record, name));
  return {
    epoch: typeof epoch === 'string' ? epoch : '',
    seq: Number(seq),
    prev,
    hash: stated,
    computed: stated.length === HEX_LENGTH ? hash('sha256', hashed, 'hex') : hashBytes(hashed),
    type: typeof type === 'string' ? type : '',
    timeMs: typeof time === 'string' ? Date.parse(time) : Number.NaN,
    detail: isObject(detail) ? detail : {},
    names: namesOf(record),
  };
}

/** The end of a file: the last complete line, and the torn bytes after it. */
export type ChainTail = {
  readonly head: ChainHead | undefined;
  /** Bytes after the last complete line, as Latin-1 text without a final line feed; empty if there are none. */
  readonly torn: string;
  /** Milliseconds since the epoch: the time stated in the last complete line; NaN if there is none. */
  readonly timeMs: number;
};

/** Digest of torn bytes (Latin-1 text), as recorded in the event of a recovery. */
export function tornDigest(torn: string): string {
  return hash('sha256', Buffer.from(torn, 'latin1'), 'hex');
}

/**
 * Finds the last complete line of a chain in the end of a file, given as Latin-1 text. Bytes after it were
 * torn off by a crash during a write; those of the last line are returned so that they can be recorded.
 */
export function readTail(text: string): ChainTail {
  const lines = text.replace(/\n$/, '').split('\n');
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const found = readChainLine(lines[index] ?? '');
    if (found === undefined || found.computed !== found.hash) continue;
    // A line that lacks only its line feed is complete.
    const torn = index === lines.length - 1 ? '' : (lines.at(-1) ?? '');
    const { epoch, seq, hash, timeMs } = found;
    return { head: { epoch, seq, hash }, torn, timeMs };
  }
  return { head: undefined, torn: lines.at(-1) ?? '', timeMs: Number.NaN };
}

/** The verifier tolerates this many intervals between two checkpoints. */
export const VERIFIER_MAX_INTERVALS = 2;

/** If the timer has written no checkpoint for this many intervals, the writer inserts one itself. */
const WRITER_MAX_INTERVALS = 1.5;

/** Lines that the writer reserves for those that a restart writes before its checkpoint. */
const RESERVED_LINES = 10;

/**
 * Counts the lines after a checkpoint. The writer, which must not exceed the bounds, and the verifier, which
 * reports where they were exceeded, count in the same way.
 */
export class CheckpointInterval {
  readonly bounds: CheckpointBounds;
  lines = 0;
  /**
   * The time between the lines, forwards only. A pause without lines (the machine slept, the clock was set,
   * nothing ran) counts as at most one interval: it does not show that lines are missing, but a file must
   * not consist of pauses alone.
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

  /** Time since the last line. NaN, for a line that states no time, counts as zero. */
  pauseBefore(timeMs: number): number {
    const pause = timeMs - this.#lastMs;
    return pause > 0 ? pause : 0;
  }

  add(timeMs: number): void {
    this.lines += 1;
    this.ownMs += Math.min(this.pauseBefore(timeMs), this.bounds.everyMs);
    if (!Number.isNaN(timeMs)) this.#lastMs = timeMs;
  }

  /** True if the writer has to insert a checkpoint before a line of this time. */
  isDueBefore(timeMs: number): boolean {
    const { everyMs, everyLines } = this.bounds;
    if (this.lines + 1 > Math.max(1, everyLines - RESERVED_LINES)) return true;
    const pause = Math.min(this.pauseBefore(timeMs), everyMs);
    return this.ownMs + pause > WRITER_MAX_INTERVALS * everyMs;
  }

  /** True if more lines or time follow than the verifier tolerates. */
  isExceeded(): boolean {
    const { everyMs, everyLines } = this.bounds;
    return this.lines > VERIFIER_MAX_INTERVALS * everyLines || this.ownMs > VERIFIER_MAX_INTERVALS * everyMs;
  }
}

/** Maximum number of lines between two checkpoints. */
export const MAX_LINES_BETWEEN_CHECKPOINTS = 10_000;

/** The next checkpoint is due after this time or this many lines, whichever comes first. */
export type CheckpointBounds = { readonly everyMs: number; readonly everyLines: number };

/** The statement of a checkpoint. Those of earlier versions have no bounds. */
type CheckpointStatement = ChainHead & {
  /** RFC 3339, UTC, milliseconds. */
  readonly time: string;
  readonly bounds: CheckpointBounds | undefined;
  /** Present if this says that a file was removed whose last line is the one at this position: the name of the file. */
  readonly removed?: string;
};

/**
 * A checkpoint as its event carries it in `detail`: the hash at a position of a chain, the time, and when the
 * next checkpoint is due, signed with the gateway's Ed25519 key. A checkpoint kept elsewhere proves whether
 * a chain was truncated or rewritten since; the bounds show whether later checkpoints were removed.
 */
export type Checkpoint = CheckpointStatement & {
  readonly keyId: string;
  /** Ed25519, base64url. */
  readonly signature: string;
};

/**
 * The bytes that are signed (RFC 8032), one part per line: `sallyport.checkpoint/2`, epoch, seq, hash, time,
 * the bound in milliseconds and the bound in lines. `sallyport.checkpoint/1`, of earlier versions, has no
 * bounds. `sallyport.removal/1`, with the name of the file before the epoch and without bounds, signs that a file was
 * removed, so that no other signature can be taken for that.
 */
export function checkpointBytes({ epoch, seq, hash, time, bounds, removed }: CheckpointStatement): Buffer {
  const position = `${epoch}\n${seq}\n${hash}\n${time}\n`;
  if (removed !== undefined) return Buffer.from(`sallyport.removal/1\n${removed}\n${position}`);
  return Buffer.from(
    bounds === undefined
      ? `sallyport.checkpoint/1\n${position}`
      : `sallyport.checkpoint/2\n${position}${bounds.everyMs}\n${bounds.everyLines}\n`,
  );
}

/** The `detail` of a checkpoint event. */
export function checkpointDetail(checkpoint: Checkpoint): Record<string, string | number> {
  const { epoch, seq, hash, time, bounds, keyId, signature, removed } = checkpoint;
  const boundsDetail = bounds === undefined ? {} : { every_ms: bounds.everyMs, every_lines: bounds.everyLines };
  const removal = removed === undefined ? {} : { event: REMOVED, file: removed };
  return { ...removal, epoch, seq, hash, at: time, ...boundsDetail, key_id: keyId, signature };
}

/** `event` of the checkpoint that says that a file was removed. */
const REMOVED = 'removed';

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** Reads the `detail` of a checkpoint event; `undefined` if it is not a checkpoint. */
export function readCheckpoint(detail: AuditRecord): Checkpoint | undefined {
  const { epoch, seq, hash, at, key_id: keyId, signature } = detail;
  const { every_ms: everyMs, every_lines: everyLines } = detail;
  if (typeof epoch !== 'string' || typeof hash !== 'string' || !HASH.test(hash)) return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return undefined;
  if (typeof at !== 'string' || typeof keyId !== 'string' || typeof signature !== 'string') {
    return undefined;
  }
  const { event, file } = detail;
  const removal = event === REMOVED && typeof file === 'string' ? { removed: file } : {};
  const checkpoint = { ...removal, epoch, seq, hash, time: at, keyId, signature };
  if (everyMs === undefined && everyLines === undefined) return { ...checkpoint, bounds: undefined };
  if (!isCount(everyMs) || !isCount(everyLines)) return undefined;
  return { ...checkpoint, bounds: { everyMs, everyLines } };
}

/** True if one of the public keys (raw 32 bytes, base64url) verifies the signature. Never throws. */
export function isSignedBy(checkpoint: Checkpoint, publicKeys: readonly string[]): boolean {
  const signature = Buffer.from(checkpoint.signature, 'base64url');
  if (signature.length !== 64) return false;
  const bytes = checkpointBytes(checkpoint);
  return publicKeys.some((x) => {
    try {
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      return verify(null, bytes, key, signature);
    } catch {
      return false;
    }
  });
}

/** The file before another, as it was found. */
export type Predecessor = {
  /** Its name, without a folder. */
  readonly file: string;
  /** Its last complete line. */
  readonly head: ChainHead;
  /** The bytes after that line, as Latin-1 text. */
  readonly torn: string;
};

/** What the first line of a file says of it and of the file before it. */
export type FileLink = {
  /** The name of the file that the line begins. */
  readonly file: string;
  /** The file before it; `undefined` if there was none. */
  readonly after: FileEnd | undefined;
  /** Files without a complete line that were passed over. */
  readonly skipped: readonly string[];
};

type FileEnd = {
  readonly file: string;
  /** The last complete line of the file, signed by the run that found it. */
  readonly checkpoint: Checkpoint;
  readonly torn: { readonly bytes: number; readonly sha256: string } | undefined;
};

const NO_FILE = 'none';

/**
 * The `detail` by which the first line of a file links it to the one before. `skipped`: files without a complete line that
 * were passed over.
 */
export function linkDetail(
  file: string,
  after: (Pick<Predecessor, 'file' | 'torn'> & { readonly checkpoint: Checkpoint }) | undefined,
  skipped: readonly string[],
): Record<string, string | number> {
  const passed = skipped.length === 0 ? {} : { skipped: skipped.join(' ') };
  if (after === undefined) return { file, after_file: NO_FILE, ...passed };
  const { epoch, seq, hash, ...signed } = checkpointDetail(after.checkpoint);
  const torn = after.torn === '' ? {} : { torn_bytes: after.torn.length, torn_sha256: tornDigest(after.torn) };
  const position = { after_epoch: epoch ?? '', after_seq: seq ?? 0, after_hash: hash ?? '' };
  return { file, after_file: after.file, ...position, ...torn, ...passed, ...signed };
}

/** Reads the `detail` of the first line of a file; `undefined` if it links no file, as in those of earlier versions. */
export function readLink(detail: AuditRecord): FileLink | undefined {
  const { file, after_file: afterFile, after_epoch: epoch, after_seq: seq, after_hash: hash } = detail;
  if (typeof file !== 'string' || typeof afterFile !== 'string') return undefined;
  const skipped = typeof detail['skipped'] === 'string' ? detail['skipped'].split(' ') : [];
  if (afterFile === NO_FILE) return { file, after: undefined, skipped };
  const checkpoint = readCheckpoint({ ...detail, event: undefined, epoch, seq, hash });
  if (checkpoint === undefined) return undefined;
  const { torn_bytes: bytes, torn_sha256: sha256 } = detail;
  const torn = typeof bytes === 'number' && typeof sha256 === 'string' ? { bytes, sha256 } : undefined;
  return { file, after: { file: afterFile, checkpoint, torn }, skipped };
}

const FIRST_CAPACITY = 64 * 1024;
/** A larger buffer is released after its group. */
const MAX_KEPT_CAPACITY = 1024 * 1024;
/** Length of `,"hash":"…"}}` and a line feed. */
const HASH_END_LENGTH = 9 + 43 + 4;

export type GroupBytes = {
  /** Starts a group after this head. */
  begin(head: ChainHead): void;
  /** Adds the next line of the chain. */
  add(event: EventText): void;
  /** The head after the lines added so far. */
  head(): ChainHead;
  /** The bytes so far; valid until the next group starts. */
  bytes(): Buffer;
};

/** Creates the buffer of one sink, which writes one group at a time. `first` is the head of its chain. */
export function createGroupBytes(first: ChainHead): GroupBytes {
  let buffer = Buffer.allocUnsafe(FIRST_CAPACITY);
  let length = 0;
  let head = first;

  function makeCapacity(more: number): void {
    if (length + more <= buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(length + more, 2 * buffer.length));
    buffer.copy(grown, 0, 0, length);
    buffer = grown;
  }

  return {
    begin(known) {
      if (buffer.length > MAX_KEPT_CAPACITY) buffer = Buffer.allocUnsafe(FIRST_CAPACITY);
      head = known;
      length = 0;
    },
    add(event) {
      // Lines are printable ASCII (text/escaping.ts), so characters and bytes are equal in number.
      const hashed = `${head.hash}\n${lineUpToHash(head, event)}`;
      makeCapacity(hashed.length + HASH_END_LENGTH);
      const end = length + buffer.write(hashed, length, 'latin1');
      const hash = hashBytes(buffer.subarray(length, end));
      // The hashed bytes start with the previous hash; the written ones do not.
      const prefixLength = head.hash.length + 1;
      buffer.copyWithin(length, length + prefixLength, end);
      length = end - prefixLength;
      length += buffer.write(`,"hash":"${hash}"}}\n`, length, 'latin1');
      head = { epoch: head.epoch, seq: head.seq + 1, hash };
    },
    head: () => head,
    bytes: () => buffer.subarray(0, length),
  };
}
