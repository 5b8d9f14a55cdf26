// Verifies audit files line by line: every line must match its hash and follow the previous one; nothing may be
// missing, moved, repeated or from another chain. A torn line is accepted only if the next line records it.
// Checkpoints must be signed by a known key, state the line before them, not fall back to an older form, and
// follow each other within two intervals. It reports what it cannot verify: the end without a checkpoint kept
// elsewhere, the origin of the chain without the older file. Memory use is constant for any file size.

import {
  type ChainHead,
  type ChainLine,
  type Checkpoint,
  type CheckpointBounds,
  CheckpointInterval,
  isSignedBy,
  MAX_LINES_BETWEEN_CHECKPOINTS,
  NO_PREVIOUS,
  readChainLine,
  readCheckpoint,
  tornDigest,
  VERIFIER_MAX_INTERVALS,
} from './chain.js';

/** Bounds assumed after a checkpoint that states none; exceeding them gives a note. */
const ASSUMED_BOUNDS: CheckpointBounds = {
  everyMs: 30_000,
  everyLines: MAX_LINES_BETWEEN_CHECKPOINTS,
};

/** Maximum number of pauses in the notes. */
const MAX_PAUSES = 20;

/** Maximum number of recorded ids of unknown keys. */
const MAX_UNKNOWN = 20;

const MS_PER_SECOND = 1000;

type CheckpointReport = {
  readonly error: (position: LinePosition, kind: ChainErrorKind, message: string) => void;
  readonly note: (text: string) => void;
};

/** `known`: signed by a trusted key; `unknown`: by a key that was not given or named; `bad`: invalid. */
type Signer = 'known' | 'unknown' | 'bad';

/** The last checkpoint, and what follows it. */
type SinceCheckpoint = {
  readonly interval: CheckpointInterval;
  readonly isBound: boolean;
  readonly seq: number;
  isReported: boolean;
};

/** Verifies the checkpoints of one chain. Takes all its lines in order. */
class CheckpointVerifier {
  readonly #given: readonly string[] | undefined;
  readonly #findings: CheckpointReport;
  /** Keys named by lines of the files, by their id. */
  readonly #named = new Map<string, string>();
  /** The id of the key named by the last start: that run signs with no other. */
  #keyOfRun: string | undefined;
  /** The last key that was named without an id. */
  #withoutId: string | undefined;
  readonly #knownIds = new Set<string>();
  /** Position of the first checkpoint under each unknown key, by the key id that it states. */
  readonly #unknown = new Map<string, LinePosition>();
  #unknownCount = 0;
  #following: SinceCheckpoint | undefined;
  #stopped: LinePosition | undefined;
  #hasBounds = false;
  #pauses = 0;
  #count = 0;

  constructor(publicKeyTexts: readonly string[] | undefined, findings: CheckpointReport) {
    this.#given = publicKeyTexts;
    this.#findings = findings;
  }

  /** The number of checkpoints of this chain signed by a trusted key. */
  get count(): number {
    return this.#count;
  }

  /** Describes the checkpoints signed by unknown keys; `undefined` if there are none. */
  describeUnknownKeys(): string | undefined {
    const [first] = this.#unknown;
    if (first === undefined) return undefined;
    const [keyId, { file, line }] = first;
    return `${file}:${line}: checkpoints from here on (${this.#unknownCount} in all) are signed by a key that was not given (${keyId}); if the key does not belong to this gateway, they and what follows are forged`;
  }

  /** Returns true if the line is a valid checkpoint, which covers all lines before it. */
  verifyLine(line: ChainLine, position: LinePosition): boolean {
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
    // A trusted key cannot have made only some of the checkpoints that state its id.
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
    // A checkpoint of this chain states the line before it; one of another chain is a copy kept here.
    if (point.epoch !== line.epoch) return false;
    if (point.seq !== line.seq - 1 || point.hash !== line.prev) {
      this.#findings.error(position, 'signature', 'the checkpoint states another chain than the one it stands in');
      return false;
    }
    this.#stopped = undefined;
    if (signer === 'known') this.#follow(point, line, position);
    else this.#takeUnknown(point, position);
    return signer === 'known';
  }

  #takeUnknown(point: Checkpoint, position: LinePosition): void {
    this.#unknownCount += 1;
    if (this.#unknown.size < MAX_UNKNOWN && !this.#unknown.has(point.keyId)) this.#unknown.set(point.keyId, position);
    // How much may follow it is unknown too.
    this.#following = undefined;
  }

  /** Starts counting at this checkpoint. */
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
    // The checkpoint signs its own time and not that of its line.
    const statedMs = Date.parse(point.time);
    const signedTimeMs = Number.isNaN(statedMs) ? line.timeMs : statedMs;
    this.#following = {
      interval: new CheckpointInterval(point.bounds ?? ASSUMED_BOUNDS, signedTimeMs),
      isBound: this.#hasBounds,
      seq: line.seq,
      isReported: false,
    };
  }

  #signerOf(point: Checkpoint): Signer {
    const named = this.#named.get(point.keyId);
    // Only the last key without an id is tried: the files could name as many keys as they have lines.
    const stated = named ?? this.#withoutId;
    if (isSignedBy(point, this.#given ?? (stated === undefined ? [] : [stated]))) return 'known';
    if (this.#knownIds.has(point.keyId)) return 'bad';
    // A key changes only at a start, and each start names the key.
    if (this.#keyOfRun !== undefined && this.#keyOfRun !== point.keyId) return 'bad';
    // The files name the key, so a signature that it does not verify is invalid.
    if (named !== undefined && !isSignedBy(point, [named])) return 'bad';
    return 'unknown';
  }

  #takeLine(line: ChainLine, position: LinePosition): void {
    const sinceCheckpoint = this.#following;
    if (sinceCheckpoint === undefined) return;
    const { interval, isBound, seq } = sinceCheckpoint;
    const { everyMs, everyLines } = interval.bounds;
    const pause = interval.pauseBefore(line.timeMs);
    interval.add(line.timeMs);
    if (pause > VERIFIER_MAX_INTERVALS * everyMs && isBound && this.#pauses < MAX_PAUSES) {
      this.#pauses += 1;
      const seconds = Math.round(pause / MS_PER_SECOND);
      this.#findings.note(
        `${position.file}:${position.line}: ${seconds} s without a line before this one: nothing ran, or the clock was set`,
      );
    }
    if (sinceCheckpoint.isReported || !interval.isExceeded()) return;
    sinceCheckpoint.isReported = true;
    const message = `more than two intervals (of ${everyMs / MS_PER_SECOND} s or ${everyLines} lines) follow the checkpoint at ${seq}`;
    if (isBound) this.#findings.error(position, 'unsigned', `${message}: later checkpoints are missing`);
    else {
      this.#findings.note(
        `${position.file}:${position.line}: ${message}; it is of form 1, which states no bounds, so that later checkpoints may be missing or not due`,
      );
    }
  }
}

const BAD_SIGNATURE = 'the checkpoint is not signed by a known key of the gateway';

/** The kind of an error in a line. */
export type ChainErrorKind =
  | 'torn'
  | 'edited'
  | 'missing'
  | 'reordered'
  | 'replaced'
  | 'second-chain'
  | 'no-beginning'
  | 'signature'
  | 'unsigned'
  | 'downgraded'
  | 'truncated'
  | 'empty';

type ChainError = {
  readonly file: string;
  /** Line number in its file, from 1; 0 for the file as a whole. */
  readonly line: number;
  readonly kind: ChainErrorKind;
  readonly message: string;
};

export type ChainVerdict = {
  /** True if everything was checked and there is no error. */
  readonly isWhole: boolean;
  readonly faults: readonly ChainError[];
  /** What could not be checked with the given inputs. */
  readonly unchecked: readonly string[];
  /** Lines not covered by a checkpoint, and the sequence number of the first of them. */
  readonly unsigned: { readonly lines: number; readonly fromSeq: number | undefined };
  readonly notes: readonly string[];
  readonly lines: number;
  readonly checkpoints: number;
  readonly head: ChainHead | undefined;
};

export type VerifyOptions = {
  /** A head known from elsewhere that the chain must contain. */
  readonly head?: ChainHead;
  /** Public keys of the gateway, raw as base64url; every checkpoint must be signed by one of them. */
  readonly publicKeys?: readonly string[];
};

/** Maximum number of listed errors; the first one is the most informative. */
const MAX_ERRORS = 50;

type LinePosition = { readonly file: string; readonly line: number };

const GIVE_MORE = 'give --key or the older file';

/** Verifies one chain over one or more files, in their order. */
export class ChainVerifier {
  readonly #options: VerifyOptions;
  readonly #errors: ChainError[] = [];
  readonly #notes: string[] = [];
  #head: ChainHead | undefined;
  #torn: (LinePosition & { readonly text: string }) | undefined;
  #last: LinePosition = { file: '', line: 0 };
  #lines = 0;
  /** Lines up to the last one covered by a checkpoint in the files or by the given head. */
  #signedLines = 0;
  #unsignedFrom: number | undefined;
  #isHeadSeen = false;
  /** Set if the first line continues a chain from a file that was not given. */
  #continues: string | undefined;
  readonly #checkpoints: CheckpointVerifier;

  constructor(options: VerifyOptions = {}) {
    this.#options = options;
    this.#checkpoints = new CheckpointVerifier(options.publicKeys, {
      error: (position, kind, message) => this.#addError(position, kind, message),
      note: (text) => void this.#notes.push(text),
    });
  }

  /** Takes the next line, as Latin-1 text without its line feed. */
  push(text: string, file: string, lineNumber: number): void {
    const position = { file, line: lineNumber };
    this.#last = position;
    this.#lines += 1;
    const line = readChainLine(text);
    if (line === undefined) {
      this.#reportTorn();
      this.#torn = { ...position, text };
      return;
    }
    if (line.computed !== line.hash) {
      this.#reportTorn();
      this.#addError(position, 'edited', 'the line was changed: its hash does not match its bytes');
    } else {
      this.#takeTorn(line);
      this.#checkPosition(line, position);
      if (this.#checkpoints.verifyLine(line, position)) this.#sign();
    }
    if (this.#signedLines < this.#lines) this.#unsignedFrom ??= line.seq;
    // The epoch of a modified line is not used.
    const epoch = line.computed === line.hash ? line.epoch : (this.#head?.epoch ?? line.epoch);
    this.#head = { epoch, seq: line.seq, hash: line.hash };
    this.#checkHead(line, position);
  }

  /** Marks all lines read so far as covered. */
  #sign(): void {
    this.#signedLines = this.#lines;
    this.#unsignedFrom = undefined;
  }

  /** Ends the verification. */
  end(): ChainVerdict {
    this.#reportTorn();
    if (this.#lines === 0) this.#addError(this.#last, 'empty', 'there is no record');
    this.#checkpoints.end();
    this.#checkEnd();
    const unchecked = this.#checkKeys();
    return {
      isWhole: this.#errors.length === 0 && unchecked.length === 0,
      faults: this.#errors,
      unchecked,
      unsigned: { lines: this.#lines - this.#signedLines, fromSeq: this.#unsignedFrom },
      notes: this.#notes,
      lines: this.#lines,
      checkpoints: this.#checkpoints.count,
      head: this.#head,
    };
  }

  #addError(position: LinePosition, kind: ChainErrorKind, message: string): void {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push({ ...position, kind, message });
  }

  #reportTorn(): void {
    const torn = this.#torn;
    this.#torn = undefined;
    if (torn === undefined) return;
    this.#addError(torn, 'torn', 'the line is no audit record, and the next line does not say why');
  }

  /** A torn line is valid only if the very next line records its length and digest. */
  #takeTorn(line: ChainLine): void {
    const torn = this.#torn;
    const { event, torn_bytes: bytes, torn_sha256: digest } = line.detail;
    const isRecorded =
      torn !== undefined &&
      line.type === 'lifecycle' &&
      event === 'recovered' &&
      bytes === torn.text.length &&
      digest === tornDigest(torn.text);
    if (!isRecorded) {
      this.#reportTorn();
      return;
    }
    this.#torn = undefined;
    this.#notes.push(
      `${torn.file}:${torn.line}: ${torn.text.length} bytes that are no record, as an interrupted write leaves them; the next line records them`,
    );
  }

  #checkPosition(line: ChainLine, position: LinePosition): void {
    const head = this.#head;
    if (head === undefined) {
      this.#checkBeginning(line, position);
      return;
    }
    if (line.epoch !== head.epoch) {
      this.#addError(
        position,
        'second-chain',
        `another chain begins here (epoch ${line.epoch}, before it ${head.epoch})`,
      );
      return;
    }
    const expected = head.seq + 1;
    if (line.seq > expected) {
      const count = line.seq - expected;
      this.#addError(position, 'missing', `${count} missing before this line: ${expected} expected, ${line.seq} found`);
    } else if (line.seq < expected) {
      this.#addError(
        position,
        'reordered',
        `moved or repeated: ${expected} expected, ${line.seq} found${position.line === 1 ? '; give the files oldest first' : ''}`,
      );
    } else if (line.prev !== head.hash) {
      this.#addError(position, 'replaced', 'the line before it is not the one that was written there');
    }
  }

  #checkBeginning(line: ChainLine, position: LinePosition): void {
    const isFirst = line.seq === 0 && line.prev === NO_PREVIOUS && line.type === 'lifecycle';
    if (isFirst) return;
    if (line.type === 'lifecycle' && line.detail['event'] === 'continued') {
      this.#continues = `${position.file}:${position.line}: continues at ${line.seq} what stands in an earlier file; that file was not given`;
      this.#notes.push(this.#continues);
      return;
    }
    this.#addError(position, 'no-beginning', `${line.seq} is not the beginning of a chain`);
  }

  #checkHead(line: ChainLine, position: LinePosition): void {
    const expectedHead = this.#options.head;
    if (expectedHead === undefined || expectedHead.epoch !== line.epoch || expectedHead.seq !== line.seq) return;
    this.#isHeadSeen = true;
    if (expectedHead.hash !== line.hash) {
      this.#addError(position, 'replaced', 'the checkpoint has another hash for this line: the chain was rewritten');
    } else this.#sign();
  }

  /** Notes which keys were used; returns what could not be checked. */
  #checkKeys(): readonly string[] {
    if (this.#lines === 0) return [];
    const { count } = this.#checkpoints;
    const hasKey = this.#options.publicKeys !== undefined;
    if (!hasKey && count > 0) {
      this.#notes.push(
        'the checkpoints were checked with the key that the file itself contains; give --key to check them with a trusted one',
      );
    }
    const begins = this.#continues === undefined;
    if (hasKey && count === 0 && begins) {
      this.#addError(this.#last, 'signature', 'no checkpoint of this chain is signed by the given key');
      return [];
    }
    const unchecked: string[] = [];
    const unknownKeys = this.#checkpoints.describeUnknownKeys();
    if (unknownKeys !== undefined) unchecked.push(`${GIVE_MORE}: ${unknownKeys}`);
    // The origin of a continued chain is verified by a trusted key or head, or by its first line being present.
    const isOriginVerified = begins || this.#isHeadSeen || (hasKey && count > 0);
    if (!isOriginVerified && unchecked.length === 0) unchecked.push(`${GIVE_MORE}: ${this.#continues}`);
    return unchecked;
  }

  #checkEnd(): void {
    const expectedHead = this.#options.head;
    if (expectedHead === undefined) {
      if (this.#errors.length === 0) {
        this.#notes.push(
          'complete up to the last line of these files; only --head can show whether lines after it are missing',
        );
      }
      return;
    }
    if (this.#isHeadSeen) return;
    const message =
      this.#head !== undefined && this.#head.epoch !== expectedHead.epoch
        ? `the checkpoint is of another chain (epoch ${expectedHead.epoch})`
        : `cut off: the checkpoint knows line ${expectedHead.seq}, the last line here is ${this.#head?.seq ?? 'none'}`;
    this.#addError(this.#last, 'truncated', message);
  }
}
