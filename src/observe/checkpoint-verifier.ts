// Verifies the checkpoints of one chain: that each is signed by a known key and states the line before it,
// that none is of an older form than those before it, and that no more follows one than two intervals
// allow. A checkpoint under a key that nobody named is neither good nor bad: it could not be checked.

import type { ChainLine } from './chain.js';
import type { ChainErrorKind, LinePosition } from './chain-verifier.js';
import {
  type Checkpoint,
  type CheckpointBounds,
  isSignedBy,
  MAX_LINES_BETWEEN_CHECKPOINTS,
  readCheckpoint,
} from './checkpoint.js';
import { CheckpointInterval, INTERVALS_ALLOWED } from './checkpoint-interval.js';

/** What is assumed after a checkpoint that states no bounds, for a note. */
const ASSUMED: CheckpointBounds = { everyMs: 30_000, everyLines: MAX_LINES_BETWEEN_CHECKPOINTS };

/** Pauses are noted up to this many. */
const MAX_PAUSES = 20;

/** Ids of keys that nobody named are kept up to this many. */
const MAX_UNKNOWN = 20;

const MS_PER_SECOND = 1000;

export type CheckpointFindings = {
  readonly error: (position: LinePosition, kind: ChainErrorKind, message: string) => void;
  readonly note: (text: string) => void;
};

/** `known`: by a key that counts; `unknown`: by a key that nobody named; `bad`: by none. */
type Signer = 'known' | 'unknown' | 'bad';

/** What follows a checkpoint, and the checkpoint. */
type Following = {
  readonly interval: CheckpointInterval;
  readonly isBound: boolean;
  readonly seq: number;
  isReported: boolean;
};

/** Takes the lines of a chain in their order. */
export class CheckpointVerifier {
  readonly #given: readonly string[] | undefined;
  readonly #findings: CheckpointFindings;
  /** Keys that lines of the files name, by their id. */
  readonly #named = new Map<string, string>();
  /** The id of the key that the last start named: the run signs with no other. */
  #keyOfRun: string | undefined;
  /** The last key that was named without an id. */
  #withoutId: string | undefined;
  readonly #knownIds = new Set<string>();
  /** Where checkpoints under keys that nobody named begin, by the ids that they state. */
  readonly #unknown = new Map<string, LinePosition>();
  #unknownCount = 0;
  #following: Following | undefined;
  #stopped: LinePosition | undefined;
  #hasBounds = false;
  #pauses = 0;
  #count = 0;

  constructor(given: readonly string[] | undefined, findings: CheckpointFindings) {
    this.#given = given;
    this.#findings = findings;
  }

  /** Checkpoints of this chain under a key that counts. */
  get count(): number {
    return this.#count;
  }

  /** Says which checkpoints are under a key that nobody named; `undefined` where there are none. */
  get hasUnknownKeys(): string | undefined {
    const [first] = this.#unknown;
    if (first === undefined) return undefined;
    const [keyId, { file, line }] = first;
    return `${file}:${line}: checkpoints from here on (${this.#unknownCount} in all) are signed by a key that was not given (${keyId}); if it is none of this gateway's, they and what follows are forged`;
  }

  /** True when the line is a checkpoint that vouches for all before it. */
  take(line: ChainLine, position: LinePosition): boolean {
    if (line.type === 'lifecycle') this.#takeLifecycle(line, position);
    if (line.type === 'checkpoint' && this.#takeCheckpoint(line, position)) return true;
    this.#takeLine(line, position);
    return false;
  }

  /** Ends the check. */
  end(): void {
    if (this.#stopped !== undefined) {
      this.#findings.error(
        this.#stopped,
        'unsigned',
        'the run ended here and no checkpoint follows: the end was taken out, or could not be written',
      );
    }
    if (this.#given === undefined) return;
    // A key that was given cannot have made only some of the checkpoints that state its id.
    for (const [keyId, position] of this.#unknown)
      if (this.#knownIds.has(keyId)) this.#findings.error(position, 'signature', BAD_SIGNATURE);
  }

  #takeLifecycle({ detail }: ChainLine, position: LinePosition): void {
    const { event, public_key: key, key_id: id } = detail;
    if (event === 'stopped') this.#stopped = position;
    if (typeof key !== 'string') return;
    if (typeof id === 'string') {
      this.#keyOfRun = id;
      this.#named.set(id, key);
    } else this.#withoutId = key;
  }

  #takeCheckpoint(line: ChainLine, position: LinePosition): boolean {
    const point = readCheckpoint(line.detail);
    const signer = point === undefined ? 'bad' : this.#signerOf(point);
    if (point === undefined || signer === 'bad') {
      this.#findings.error(position, 'signature', BAD_SIGNATURE);
      return false;
    }
    // A checkpoint of this chain states the line before it; one of another chain is kept here as a witness.
    if (point.epoch !== line.epoch) return false;
    if (point.seq !== line.seq - 1 || point.hash !== line.prev) {
      this.#findings.error(
        position,
        'signature',
        'the checkpoint states another chain than the one it stands in',
      );
      return false;
    }
    this.#stopped = undefined;
    if (signer === 'known') this.#follow(point, line, position);
    else this.#takeUnknown(point, position);
    return signer === 'known';
  }

  #takeUnknown(point: Checkpoint, position: LinePosition): void {
    this.#unknownCount += 1;
    if (this.#unknown.size < MAX_UNKNOWN && !this.#unknown.has(point.keyId))
      this.#unknown.set(point.keyId, position);
    // How much follows it may be is not known either.
    this.#following = undefined;
  }

  /** Counts from this checkpoint on. */
  #follow(point: Checkpoint, line: ChainLine, position: LinePosition): void {
    this.#count += 1;
    this.#knownIds.add(point.keyId);
    if (this.#hasBounds && point.bounds === undefined) {
      this.#findings.error(
        position,
        'downgraded',
        'a checkpoint of form 1, which states no bounds, follows one of form 2',
      );
    }
    this.#hasBounds ||= point.bounds !== undefined;
    // The time of the line itself is not signed by it.
    const statedMs = Date.parse(point.time);
    const signedTimeMs = Number.isNaN(statedMs) ? line.timeMs : statedMs;
    this.#following = {
      interval: new CheckpointInterval(point.bounds ?? ASSUMED, signedTimeMs),
      isBound: this.#hasBounds,
      seq: line.seq,
      isReported: false,
    };
  }

  #signerOf(point: Checkpoint): Signer {
    const named = this.#named.get(point.keyId);
    // Of the keys that the files name only that one: there may be as many as there are lines.
    const stated = named ?? this.#withoutId;
    if (isSignedBy(point, this.#given ?? (stated === undefined ? [] : [stated]))) return 'known';
    if (this.#knownIds.has(point.keyId)) return 'bad';
    // Keys change with a start alone, and a start names the key.
    if (this.#keyOfRun !== undefined && this.#keyOfRun !== point.keyId) return 'bad';
    // The files name the key: it made the signature, or nobody did.
    if (named !== undefined && !isSignedBy(point, [named])) return 'bad';
    return 'unknown';
  }

  #takeLine(line: ChainLine, position: LinePosition): void {
    const following = this.#following;
    if (following === undefined) return;
    const { interval, isBound, seq } = following;
    const { everyMs, everyLines } = interval.bounds;
    const pause = interval.pauseBefore(line.timeMs);
    interval.add(line.timeMs);
    if (pause > INTERVALS_ALLOWED * everyMs && isBound && this.#pauses < MAX_PAUSES) {
      this.#pauses += 1;
      const seconds = Math.round(pause / MS_PER_SECOND);
      this.#findings.note(
        `${position.file}:${position.line}: ${seconds} s without a line before this one: nothing ran, or the clock was set`,
      );
    }
    if (following.isReported || !interval.isExceeded()) return;
    following.isReported = true;
    const message = `more than two intervals (of ${everyMs / MS_PER_SECOND} s or ${everyLines} lines) follow the checkpoint at ${seq}`;
    if (isBound)
      this.#findings.error(position, 'unsigned', `${message}: later checkpoints are missing`);
    else {
      this.#findings.note(
        `${position.file}:${position.line}: ${message}; it is of form 1, which states no bounds, so that later checkpoints may be missing or not due`,
      );
    }
  }
}

const BAD_SIGNATURE = 'the checkpoint is not signed by a known key of the gateway';
