// Verifies audit files line by line: every line hashes to what it says, follows the one before, and
// nothing is missing, moved, repeated or of another chain. A torn line is accepted only where the next
// line records it. Checkpoints are checked in checkpoint-verifier.ts. What it cannot know it says: without
// a checkpoint kept elsewhere, the end; without the older file, where the chain comes from.
// It holds a constant amount of memory, whatever the size of the files.

import {
  type ChainHead,
  type ChainLine,
  type Checkpoint,
  type CheckpointBounds,
  CheckpointInterval,
  INTERVALS_ALLOWED,
  isSignedBy,
  MAX_LINES_BETWEEN_CHECKPOINTS,
  NO_PREVIOUS,
  readChainLine,
  readCheckpoint,
  tornDigest,
} from './chain.js';

// Verifies the checkpoints of one chain: that each is signed by a known key and states the line before it,
// that none is of an older form than those before it, and that no more follows one than two intervals
// allow. A checkpoint under a key that nobody named is neither good nor bad: it could not be checked.

/** What is assumed after a checkpoint that states no bounds, for a note. */
const ASSUMED: CheckpointBounds = { everyMs: 30_000, everyLines: MAX_LINES_BETWEEN_CHECKPOINTS };

/** Pauses are noted up to this many. */
const MAX_PAUSES = 20;

/** Ids of keys that nobody named are kept up to this many. */
const MAX_UNKNOWN = 20;

const MS_PER_SECOND = 1000;

type CheckpointFindings = {
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
class CheckpointVerifier {
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

/** What is wrong with a line. */
export type ChainErrorKind =
  | 'not-a-record'
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
  /** Number of the line in its file, from 1; 0 for the file as a whole. */
  readonly line: number;
  readonly kind: ChainErrorKind;
  readonly message: string;
};

export type ChainVerdict = {
  /** Everything was checked, and nothing is wrong. */
  readonly isWhole: boolean;
  readonly faults: readonly ChainError[];
  /** What could not be checked with what was given. */
  readonly unchecked: readonly string[];
  /** Lines that no checkpoint vouches for, and the number of the first of them in the chain. */
  readonly unsigned: { readonly lines: number; readonly fromSeq: number | undefined };
  readonly notes: readonly string[];
  readonly lines: number;
  readonly checkpoints: number;
  readonly head: ChainHead | undefined;
};

export type VerifyOptions = {
  /** A place known from elsewhere that the chain must contain. */
  readonly head?: ChainHead;
  /** Public keys of the gateway, raw as base64url; every checkpoint must be signed by one of them. */
  readonly publicKeys?: readonly string[];
};

/** Faults are listed up to this many; the first one is what matters. */
const MAX_ERRORS = 50;

type LinePosition = { readonly file: string; readonly line: number };

const GIVE_MORE = 'give --key or the older file';

/** Checks one chain over one or more files, in their order. */
export class ChainVerifier {
  readonly #options: VerifyOptions;
  readonly #errors: ChainError[] = [];
  readonly #notes: string[] = [];
  #head: ChainHead | undefined;
  #torn: (LinePosition & { readonly text: string }) | undefined;
  #last: LinePosition = { file: '', line: 0 };
  #lines = 0;
  /** Lines up to the last one that a checkpoint, here or kept elsewhere, vouches for. */
  #signedLines = 0;
  #unsignedFrom: number | undefined;
  #isHeadSeen = false;
  /** Set where the first line goes on with a chain of a file that was not given. */
  #continues: string | undefined;
  readonly #checkpoints: CheckpointVerifier;

  constructor(options: VerifyOptions = {}) {
    this.#options = options;
    this.#checkpoints = new CheckpointVerifier(options.publicKeys, {
      error: (position, kind, message) => this.#addError(position, kind, message),
      note: (text) => void this.#notes.push(text),
    });
  }

  /** Takes the next line, as Latin-1 text without its line end. */
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
      this.#checkPlace(line, position);
      if (this.#checkpoints.take(line, position)) this.#sign();
    }
    if (this.#signedLines < this.#lines) this.#unsignedFrom ??= line.seq;
    // The epoch of a changed line is not believed.
    const epoch = line.computed === line.hash ? line.epoch : (this.#head?.epoch ?? line.epoch);
    this.#head = { epoch, seq: line.seq, hash: line.hash };
    this.#checkHead(line, position);
  }

  /** What was read so far is vouched for. */
  #sign(): void {
    this.#signedLines = this.#lines;
    this.#unsignedFrom = undefined;
  }

  /** Ends the check. */
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

  /** A torn line is as it should be only where the very next line records its length and digest. */
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

  #checkPlace(line: ChainLine, position: LinePosition): void {
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
      this.#addError(
        position,
        'missing',
        `${count} missing before this line: ${expected} expected, ${line.seq} found`,
      );
    } else if (line.seq < expected) {
      this.#addError(
        position,
        'reordered',
        `moved or repeated: ${expected} expected, ${line.seq} found`,
      );
    } else if (line.prev !== head.hash) {
      this.#addError(
        position,
        'replaced',
        'the line before it is not the one that was written there',
      );
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
    const wanted = this.#options.head;
    if (wanted === undefined || wanted.epoch !== line.epoch || wanted.seq !== line.seq) return;
    this.#isHeadSeen = true;
    if (wanted.hash !== line.hash) {
      this.#addError(
        position,
        'replaced',
        'the checkpoint has another hash for this line: the chain was rewritten',
      );
    } else this.#sign();
  }

  /** What is said of keys; returns what could not be checked. */
  #checkKeys(): readonly string[] {
    if (this.#lines === 0) return [];
    const { count, hasUnknownKeys } = this.#checkpoints;
    const hasKey = this.#options.publicKeys !== undefined;
    if (!hasKey && count > 0) {
      this.#notes.push(
        'checkpoints were checked with the key that the file itself names: give --key',
      );
    }
    const begins = this.#continues === undefined;
    if (hasKey && count === 0 && begins) {
      this.#addError(
        this.#last,
        'signature',
        'no checkpoint of this chain is signed by the given key',
      );
      return [];
    }
    const unchecked: string[] = [];
    if (hasUnknownKeys !== undefined) unchecked.push(`${GIVE_MORE}: ${hasUnknownKeys}`);
    // A chain that goes on from elsewhere is vouched for by a key or a head, or by where it comes from.
    const isVouchedFor = begins || this.#isHeadSeen || (hasKey && count > 0);
    if (!isVouchedFor && unchecked.length === 0) unchecked.push(`${GIVE_MORE}: ${this.#continues}`);
    return unchecked;
  }

  #checkEnd(): void {
    const wanted = this.#options.head;
    if (wanted === undefined) {
      if (this.#errors.length === 0) {
        this.#notes.push(
          'whole as far as it goes; whether lines are missing at the end cannot be known without --head',
        );
      }
      return;
    }
    if (this.#isHeadSeen) return;
    const message =
      this.#head !== undefined && this.#head.epoch !== wanted.epoch
        ? `the checkpoint is of another chain (epoch ${wanted.epoch})`
        : `cut off: the checkpoint knows line ${wanted.seq}, the last line here is ${this.#head?.seq ?? 'none'}`;
    this.#addError(this.#last, 'truncated', message);
  }
}

/** Verifies lines of one file (Latin-1 text, without line ends). */
export function verifyChain(
  lines: Iterable<string>,
  options: VerifyOptions = {},
  file = 'audit',
): ChainVerdict {
  const verifier = new ChainVerifier(options);
  let number = 0;
  for (const line of lines) {
    number += 1;
    verifier.push(line, file, number);
  }
  return verifier.end();
}
