// Verifies audit files line by line. Each run of a gateway is one chain, over one file or several: every line must match
// its hash and follow the previous one; nothing may be missing, moved or repeated. The first line of each file names the
// last line of the file before it, which must be there, or a signed checkpoint must say that the file was removed. A torn
// line is accepted only if the next line, or the file that follows, records it. Checkpoints must be signed by a known
// key, state the line before them, not fall back to an older form, and follow each other within two intervals. In a
// stream, and in a file in which a receiver stored the lines of several gateways, chains of several runs may stand between
// each other and lines may have been delivered again, which repeats.ts knows; what holds between the runs of an instance is
// checked by instances.ts. It reports two writers, and what it cannot verify: the end without a checkpoint kept elsewhere, the
// beginning without the older file. Memory use does not depend on the size of a file.

import { basename, dirname } from 'node:path';
import { countOf } from '../text/wording.js';
import {
  type ChainHead,
  type ChainLine,
  type Checkpoint,
  type CheckpointBounds,
  CheckpointInterval,
  type FileLink,
  isSignedBy,
  isStreamEpoch,
  MAX_LINES_BETWEEN_CHECKPOINTS,
  NO_PREVIOUS,
  type ReplicaNames,
  readChainLine,
  readCheckpoint,
  readLink,
  tornDigest,
  VERIFIER_MAX_INTERVALS,
} from './chain.js';
import { looksLikeAuditLine } from './container-log.js';
import { checkStreams, type InstanceVerdict, instancesOf, type RunFacts } from './instances.js';
import { type RepeatFinding, Repeats } from './repeats.js';
import { plainName, readRunName } from './run-name.js';

/** Bounds assumed after a checkpoint that states none; exceeding them gives a note. */
const ASSUMED_BOUNDS: CheckpointBounds = {
  everyMs: 30_000,
  everyLines: MAX_LINES_BETWEEN_CHECKPOINTS,
};

/** No more lines than these may lack a checkpoint, whatever the bounds are. */
const MAX_UNSIGNED_LINES = VERIFIER_MAX_INTERVALS * MAX_LINES_BETWEEN_CHECKPOINTS;

/** Maximum number of pauses in the notes. */
const MAX_PAUSES = 20;

/** Maximum number of recorded ids of unknown keys. */
const MAX_UNKNOWN = 20;

const MS_PER_SECOND = 1000;

type Report = {
  readonly error: (position: LinePosition, kind: ChainErrorKind, message: string) => void;
  readonly note: (text: string) => void;
  /** A signed checkpoint says that the file was removed that ends with this line. */
  readonly removed: (point: Checkpoint) => void;
  /** The first line of a file signs the last line of another chain. */
  readonly linked: (point: Checkpoint) => void;
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
  readonly #findings: Report;
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
  #ownCount = 0;

  constructor(publicKeyTexts: readonly string[] | undefined, findings: Report) {
    this.#given = publicKeyTexts;
    this.#findings = findings;
  }

  /** The number of checkpoints of this chain signed by a trusted key. */
  get count(): number {
    return this.#count;
  }

  /** As many of them as state a line of this chain. A link to another chain vouches for that one alone. */
  get ownCount(): number {
    return this.#ownCount;
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
    if (line.type === 'lifecycle') {
      this.#takeLifecycle(line, position);
      const point = readLink(line.detail)?.after?.checkpoint;
      if (point !== undefined && this.#takeLink(point, line, position)) return point.epoch === line.epoch;
    }
    if (line.type === 'checkpoint' && this.#takeCheckpoint(line, position)) return true;
    this.#takeLine(line, position);
    return false;
  }

  /** What was read last is signed elsewhere. */
  acceptEnd(): void {
    this.#stopped = undefined;
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
    if (point.removed !== undefined) {
      if (signer === 'known') this.#findings.removed(point);
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

  /** The first line of a file signs the last line before it, in this chain or in another. True if the key is known. */
  #takeLink(point: Checkpoint, line: ChainLine, position: LinePosition): boolean {
    const signer = this.#signerOf(point);
    if (signer === 'bad') this.#findings.error(position, 'signature', BAD_SIGNATURE);
    if (signer === 'unknown') this.#takeUnknown(point, position);
    if (signer !== 'known') return false;
    const isOwn = point.epoch === line.epoch;
    // A link that was copied into a later line must not begin a new interval there.
    if (isOwn ? point.seq !== line.seq - 1 || point.hash !== line.prev : line.seq !== 0) {
      this.#findings.error(position, 'signature', 'the link states another line than the one before it');
      return false;
    }
    if (!isOwn) this.#findings.linked(point);
    this.#follow(point, line, position);
    this.#following?.interval.add(line.timeMs);
    return true;
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
    if (point.epoch === line.epoch) this.#ownCount += 1;
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

const EDITED = 'the line was changed: its hash does not match its bytes';
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
  /** Lines not covered by a checkpoint, and the sequence number of the first of them, if they are of one chain. */
  readonly unsigned: { readonly lines: number; readonly fromSeq: number | undefined };
  readonly notes: readonly string[];
  /** Where two gateways wrote at the same time, each in its own file: no damage, but perhaps no intention either. */
  readonly twoWriters: readonly string[];
  readonly lines: number;
  readonly checkpoints: number;
  /** The last line of the chain that was read last. */
  readonly head: ChainHead | undefined;
  /** The gateways whose lines name them, and their runs. */
  readonly instances: readonly InstanceVerdict[];
};

export type VerifyOptions = {
  /** Heads known from elsewhere that the chains must contain, one a chain. */
  readonly heads?: readonly ChainHead[];
  /** Public keys of the gateway, raw as base64url; every checkpoint must be signed by one of them. */
  readonly publicKeys?: readonly string[];
};

/** Lines before the first record of a file that are kept until it is known what the file is. */
const MAX_UNDECIDED = 1_000;

/** Maximum number of listed errors; the first one is the most informative. */
const MAX_ERRORS = 50;

export type LinePosition = { readonly file: string; readonly line: number };

const GIVE_MORE = 'give --key or the older file';
const GIVE_OLDEST_FIRST = '; give the files oldest first';
const MISSING_FILE = 'that file was not given';

/** Where a chain begins here, and what its first line says of the file before it. */
type Beginning = LinePosition & { readonly seq: number; readonly link: FileLink | undefined };

const REPEAT_TEXTS: { readonly [kind in RepeatFinding['kind']]: string } = {
  replaced: 'another line of this chain and number was read before',
  reordered: 'moved or repeated: from here on stand lines again, and no later one shows that they are the same',
};

/** What is known of the end of a chain that is continued elsewhere. */
type TornEnd = LinePosition & { readonly text: string };

/** Verifies one chain over one or more files, in their order. */
class RunVerifier {
  readonly #report: Report;
  readonly #checkpoints: CheckpointVerifier;
  /** Sequence numbers whose hashes somebody wants to know, and the hashes. */
  readonly #wanted: Map<number, string | undefined>;
  readonly first: LinePosition;
  #head: ChainHead | undefined;
  #torn: TornEnd | undefined;
  #last: LinePosition;
  #lines = 0;
  /** Lines up to the last one covered by a checkpoint. */
  #signedLines = 0;
  #unsignedFrom: number | undefined;
  /** Times of the first lines, as many as may lack a checkpoint, until there is one of this chain. */
  #times: number[] = [];
  #isLinkRefused = false;
  #hasLinkedEnd = false;
  readonly #repeats = new Repeats();
  /** The lines stand between those of other chains: nothing but the lines themselves says where one begins. */
  isGathered = false;
  #names: ReplicaNames | undefined;
  #firstPosition: LinePosition | undefined;
  /** The lines that were read before this chain began, and before its last one, in all chains. */
  #order = { first: 0, last: 0 };
  #timesMs = { first: Number.NaN, last: Number.NaN };
  /** The last line that says that the run ends, and the checkpoint behind it. */
  #stopSeq: number | undefined;
  #signedStopSeq: number | undefined;
  /** What the first line says of the file before it; `undefined` for the beginning of a chain in itself. */
  #beginning: Beginning | undefined;
  /** The first line, if it is not the first one of a file or a chain. */
  #cutBeginning: Beginning | undefined;

  constructor(
    publicKeys: readonly string[] | undefined,
    report: Report,
    first: LinePosition,
    wanted = new Map<number, string | undefined>(),
  ) {
    this.#report = report;
    this.#checkpoints = new CheckpointVerifier(publicKeys, report);
    this.first = first;
    this.#last = first;
    this.#wanted = wanted;
  }

  get head(): ChainHead | undefined {
    return this.#head;
  }

  get last(): LinePosition {
    return this.#last;
  }

  get lines(): number {
    return this.#lines;
  }

  /** Lines that stood there before, which are not counted again. */
  get repeated(): number {
    return this.#repeats.count;
  }

  get names(): ReplicaNames | undefined {
    return this.#names;
  }

  get unsigned(): { readonly lines: number; readonly fromSeq: number | undefined } {
    return { lines: this.#lines - this.#signedLines, fromSeq: this.#unsignedFrom };
  }

  get checkpoints(): number {
    return this.#checkpoints.count;
  }

  /** Set if the first line continues what stands in a file that was not given before it. */
  get beginning(): Beginning | undefined {
    return this.#beginning;
  }

  /** True if the run that follows signed the end, which alone does not cover so many lines. */
  get isLinkRefused(): boolean {
    return this.#isLinkRefused;
  }

  get unknownKeys(): string | undefined {
    return this.#checkpoints.describeUnknownKeys();
  }

  get isStream(): boolean {
    return this.#head !== undefined && isStreamEpoch(this.#head.epoch);
  }

  /** True if runs of other gateways may stand between these lines. */
  get isMixed(): boolean {
    return this.isGathered || this.isStream;
  }

  /** What the other runs of an instance are compared with; `undefined` without a line of the chain. */
  get facts(): RunFacts | undefined {
    const head = this.#head;
    const first = this.#firstPosition;
    if (head === undefined || first === undefined) return undefined;
    return {
      ...{ names: this.#names, head, first, last: this.#last, order: this.#order, timesMs: this.#timesMs },
      ...{ lines: this.#lines, checkpoints: this.checkpoints, unsigned: this.unsigned },
      firstSeq: this.#beginning?.seq ?? 0,
      hasSignedEnd: this.#signedStopSeq === head.seq || (this.isGathered && this.#hasLinkedEnd),
    };
  }

  /** The hash of a line that was read; `undefined` if it was not kept. */
  hashAt(seq: number): string | undefined {
    return seq === this.#head?.seq ? this.#head.hash : this.#wanted.get(seq);
  }

  /**
   * Takes the next line, as Latin-1 text without its line feed, and as it was read. `order` is the number of lines that
   * were read before it.
   */
  push(text: string, line: ChainLine | undefined, position: LinePosition, order: number): void {
    this.#last = position;
    this.#lines += 1;
    if (line === undefined) {
      this.#reportTorn();
      this.#torn = { ...position, text };
      return;
    }
    if (line.computed !== line.hash) {
      this.#reportTorn();
      this.#report.error(position, 'edited', EDITED);
    } else {
      const { torn_bytes: bytes, torn_sha256: digest } = line.detail;
      if (line.type !== 'lifecycle' || !this.acceptTorn(bytes, digest)) this.#reportTorn();
      this.#checkPosition(line, position);
      this.#takeNames(line, position, order);
      if (this.#checkpoints.verifyLine(line, position)) this.#signAt(line);
    }
    this.#repeats.keep(line);
    this.#keepTime(line.timeMs);
    if (this.#signedLines < this.#lines) this.#unsignedFrom ??= line.seq;
    if (this.#wanted.has(line.seq)) this.#wanted.set(line.seq, line.hash);
    // The epoch of a modified line is not used.
    const epoch = line.computed === line.hash ? line.epoch : (this.#head?.epoch ?? line.epoch);
    this.#head = { epoch, seq: line.seq, hash: line.hash };
  }

  /** The same of a line that may have been delivered again: then it is compared, and the result is false. */
  pushDelivered(text: string, line: ChainLine, position: LinePosition, order: number): boolean {
    const head = this.#head;
    if (head === undefined || line.seq > head.seq || line.computed !== line.hash) {
      this.push(text, line, position, order);
      return true;
    }
    const found = this.#repeats.take(line, head, position);
    if (found !== undefined) this.#reportRepeat(found);
    return false;
  }

  #reportRepeat({ position, kind }: RepeatFinding): void {
    this.#report.error(position, kind, REPEAT_TEXTS[kind]);
  }

  /** A chain belongs to one run of one gateway, so no line of it may name another. */
  #takeNames({ names, type, detail, seq, timeMs }: ChainLine, position: LinePosition, order: number): void {
    if (this.#firstPosition === undefined) {
      this.#firstPosition = position;
      this.#order.first = order;
      this.#timesMs.first = timeMs;
    }
    this.#order.last = order;
    if (!Number.isNaN(timeMs)) this.#timesMs.last = timeMs;
    if (type === 'lifecycle' && detail['event'] === 'stopped') this.#stopSeq = seq;
    if (names === undefined) return;
    this.#names ??= names;
    const { instance, host, run } = this.#names;
    if (names.instance === instance && names.host === host && names.run === run) return;
    const message = `names the run ${names.run} of ${names.instance}, and its chain belongs to ${run} of ${instance}`;
    this.#report.error(position, 'replaced', message);
  }

  #signAt({ seq }: ChainLine): void {
    if (this.#stopSeq !== undefined && seq === this.#stopSeq + 1) this.#signedStopSeq = seq;
    this.sign();
  }

  /** Marks all lines read so far as covered. */
  sign(): void {
    this.#signedLines = this.#lines;
    this.#unsignedFrom = undefined;
  }

  /** The same, by a checkpoint in the file that follows. */
  signEnd(): void {
    this.#hasLinkedEnd = true;
    this.sign();
    this.#checkpoints.acceptEnd();
  }

  /**
   * The same under a trusted key. The run that follows signs whatever file it finds, so its word does not replace the
   * checkpoints that a run of this gateway would have written itself by then.
   */
  signEndWithin(bounds: CheckpointBounds): void {
    this.#isLinkRefused = this.#checkpoints.ownCount === 0 && this.#exceeds(bounds);
    if (!this.#isLinkRefused) this.signEnd();
  }

  #keepTime(timeMs: number): void {
    if (this.#checkpoints.ownCount > 0) this.#times = [];
    else if (this.#times.length <= MAX_UNSIGNED_LINES) this.#times.push(timeMs);
  }

  #exceeds(bounds: CheckpointBounds): boolean {
    const interval = new CheckpointInterval(bounds, this.#times[0] ?? Number.NaN);
    for (const timeMs of this.#times) interval.add(timeMs);
    return this.#times.length > MAX_UNSIGNED_LINES || interval.isExceeded();
  }

  /** A torn line is valid only if the line after it, or the file after it, records its length and digest. */
  acceptTorn(bytes: unknown, digest: unknown): boolean {
    const torn = this.#torn;
    if (torn === undefined || bytes !== torn.text.length || digest !== tornDigest(torn.text)) return false;
    this.#torn = undefined;
    this.#report.note(
      `${torn.file}:${torn.line}: ${torn.text.length} bytes that are no record, as an interrupted write leaves them; the next line records them`,
    );
    return true;
  }

  /** A later start found no complete line here, and said so. */
  passOver(): void {
    this.#torn = undefined;
    this.sign();
    this.#report.note(
      `${this.#last.file}: no record, as a start leaves it that was interrupted; a later start says so`,
    );
  }

  end(): void {
    this.#reportTorn();
    this.#checkpoints.end();
    for (const found of this.#repeats.end()) this.#reportRepeat(found);
    const beginning = this.#cutBeginning;
    if (beginning === undefined) return;
    // A log that a receiver keeps for a while begins anywhere.
    if (this.isGathered) this.#beginning = beginning;
    else this.#report.error(beginning, 'no-beginning', `${beginning.seq} is not the beginning of a chain`);
  }

  #reportTorn(): void {
    const torn = this.#torn;
    this.#torn = undefined;
    if (torn === undefined) return;
    this.#report.error(torn, 'torn', 'the line is no audit record, and the next line does not say why');
  }

  #checkPosition(line: ChainLine, position: LinePosition): void {
    const head = this.#head;
    if (head === undefined) {
      this.#checkBeginning(line, position);
      return;
    }
    if (line.epoch !== head.epoch) {
      this.#report.error(
        position,
        'second-chain',
        `another chain begins here (epoch ${line.epoch}, before it ${head.epoch})${position.line === 1 ? GIVE_OLDEST_FIRST : ''}`,
      );
      return;
    }
    const expected = head.seq + 1;
    if (line.seq > expected) {
      const count = line.seq - expected;
      this.#report.error(
        position,
        'missing',
        `${count} missing before this line: ${expected} expected, ${line.seq} found`,
      );
    } else if (line.seq < expected) {
      this.#report.error(
        position,
        'reordered',
        `moved or repeated: ${expected} expected, ${line.seq} found${position.line === 1 ? GIVE_OLDEST_FIRST : ''}`,
      );
    } else if (line.prev !== head.hash) {
      this.#report.error(position, 'replaced', 'the line before it is not the one that was written there');
    }
  }

  #checkBeginning(line: ChainLine, position: LinePosition): void {
    // A stream is kept for a while, and its older parts elsewhere: no line says where a part begins.
    if (isStreamEpoch(line.epoch) && line.seq > 0) {
      this.#beginning = { ...position, seq: line.seq, link: undefined };
      return;
    }
    const link = readLink(line.detail);
    const isFirst = line.seq === 0 && line.prev === NO_PREVIOUS && line.type === 'lifecycle';
    const isContinued = line.type === 'lifecycle' && line.detail['event'] === 'continued';
    if (isFirst ? link?.after !== undefined : isContinued) this.#beginning = { ...position, seq: line.seq, link };
    if (!isFirst && !isContinued) this.#cutBeginning = { ...position, seq: line.seq, link: undefined };
  }
}

function keyOf({ epoch, seq, hash }: ChainHead): string {
  return `${epoch}:${seq}:${hash}`;
}

/** Records without their end that are kept until a line explains them. */
const MAX_HALVES = 100;

/**
 * True if the first record of a file says that a run has written the file: the link names it, its name is that of a run, or
 * it is of an earlier version, which named no file. Anything else was stored by somebody else.
 */
export function isOriginal(line: ChainLine, link: FileLink | undefined, file: string): boolean {
  if (isStreamEpoch(line.epoch)) return false;
  const name = plainName(basename(file));
  if (link !== undefined) return link.file === name;
  return line.seq === 0 || readRunName(name) !== undefined;
}

/** A file that begins a run. */
type Start = LinePosition & { readonly link: FileLink; readonly run: RunVerifier };

/** Of two runs that follow the same, one should have followed the other. */
function whatFollowedBy({ link, file, run }: Start): string {
  if (link.after !== undefined) return keyOf(link.after.checkpoint);
  // Of gateways that have a folder each, all first runs follow no file.
  const place = run.isGathered ? `the folder of ${run.head?.epoch}` : dirname(file);
  return `${place}/${readRunName(link.file)?.configured ?? link.file}`;
}

/**
 * Verifies audit files, in their order. Where a line before the last of a file must be known to follow what another file
 * says of it, `expect` has to be called for all first lines before.
 */
export class ChainVerifier {
  readonly #options: VerifyOptions;
  readonly #errors: ChainError[] = [];
  readonly #notes: string[] = [];
  readonly #twoWriters: string[] = [];
  readonly #unchecked: string[] = [];
  /** Every chain by its epoch. */
  readonly #runs = new Map<string, RunVerifier>();
  readonly #wanted = new Map<string, Map<number, string | undefined>>();
  readonly #starts: Start[] = [];
  /** Last lines of chains that signed first lines of others name. */
  readonly #linked: Checkpoint[] = [];
  /** Last lines of files that signed checkpoints say were removed. */
  readonly #removed = new Set<string>();
  /** Files without a complete line, by their names; and the names of those that a later start has passed over. */
  readonly #unreadable = new Map<string, RunVerifier>();
  readonly #skipped = new Set<string>();
  /** The chain of the last line, which the next one continues unless it begins a file of another. */
  #run: RunVerifier | undefined;
  #last: LinePosition = { file: '', line: 0 };
  #lineCount = 0;
  /** The epochs of the chains in which a head from elsewhere was found. */
  readonly #headsSeen = new Set<string>();
  /** What stands in the current file before its first record, which tells whether the file is a stream. */
  #undecided: { readonly text: string; readonly position: LinePosition }[] = [];
  /** What the records of the current file are; `undefined` before the first. */
  #kind: 'stream' | 'file' | undefined;
  /** Lines of streams that are no records, and the first of them. */
  readonly #strays: { first: LinePosition | undefined; count: number } = { first: undefined, count: 0 };
  /** Records without their end, which a line of the run that wrote them may explain. */
  readonly #halves: { readonly text: string; readonly position: LinePosition }[] = [];
  /** False if the current file is not the one that a run has written: each of its lines belongs to the chain that it names. */
  #isOriginal: boolean | undefined;
  /** The chains of such a file. */
  #gathered = new Set<RunVerifier>();

  constructor(options: VerifyOptions = {}) {
    this.#options = options;
  }

  /** Says what the first line of a file will be, so that the line is kept that it names. */
  expect(firstLine: string): void {
    const after = readLink(readChainLine(firstLine)?.detail ?? {})?.after?.checkpoint;
    if (after === undefined) return;
    const wanted = this.#wanted.get(after.epoch) ?? new Map();
    this.#wanted.set(after.epoch, wanted.set(after.seq, undefined));
  }

  /** A file without a line. */
  noteEmpty(file: string): void {
    this.#enterFile();
    this.#last = { file, line: 0 };
    this.#notes.push(`${file}: empty, as a start leaves it that ended before its first line`);
  }

  /** Takes the next line, as Latin-1 text without its line feed. */
  push(text: string, file: string, lineNumber: number): void {
    const position = { file, line: lineNumber };
    if (file !== this.#last.file) this.#enterFile();
    this.#last = position;
    const line = readChainLine(text);
    if (line === undefined && this.#kind === undefined) this.#holdBack(text, position);
    else this.#take(text, line, position);
  }

  #enterFile(): void {
    this.#decide('file');
    this.#kind = undefined;
    this.#isOriginal = undefined;
    this.#gathered = new Set();
  }

  #holdBack(text: string, position: LinePosition): void {
    this.#undecided.push({ text, position });
    if (this.#undecided.length > MAX_UNDECIDED) this.#decide('file');
  }

  /** In a stream, what is no record was written by somebody else; in a file it is damage. */
  #decide(kind: 'stream' | 'file'): void {
    this.#kind ??= kind;
    for (const { text, position } of this.#undecided.splice(0)) this.#take(text, undefined, position);
  }

  #take(text: string, line: ChainLine | undefined, position: LinePosition): void {
    if (line !== undefined) this.#decide(isStreamEpoch(line.epoch) ? 'stream' : 'file');
    // A file that a run writes has lines of no other chain; a stream may end, and a file follow in the same input.
    const isInStream = this.#kind === 'stream' && (line === undefined || isStreamEpoch(line.epoch));
    this.#lineCount += 1;
    if (isInStream) this.#takeOfStream(text, line, position);
    else this.#takeOfFile(text, line, position);
  }

  #takeOfFile(text: string, line: ChainLine | undefined, position: LinePosition): void {
    this.#kind = 'file';
    const link = line?.type === 'lifecycle' && line.computed === line.hash ? readLink(line.detail) : undefined;
    if (line !== undefined) this.#isOriginal ??= isOriginal(line, link, position.file);
    if (line === undefined && this.#gathered.size > 1) this.#takeStray(text, position);
    else if (line !== undefined && this.#isOriginal === false) this.#takeByChain(text, line, link, position);
    else this.#takeOfRun(text, line, link, position);
  }

  /** A line of a file that a run has written. */
  #takeOfRun(text: string, line: ChainLine | undefined, link: FileLink | undefined, position: LinePosition): void {
    const run =
      link === undefined || line === undefined ? this.#continue(line, position) : this.#begin(line, link, position);
    this.#run = run;
    run.push(text, line, position, this.#lineCount);
    if (line !== undefined) this.#checkHead(line, position, run);
  }

  /** Each line of a stream goes to the chain that it names. */
  #takeOfStream(text: string, line: ChainLine | undefined, position: LinePosition): void {
    if (line === undefined) this.#takeStray(text, position);
    else this.#takeByChain(text, line, undefined, position);
  }

  #takeByChain(text: string, line: ChainLine, link: FileLink | undefined, position: LinePosition): void {
    const known = this.#runs.get(line.epoch);
    if (known === undefined && line.computed !== line.hash) {
      // The name of the chain may be what was changed; the chain that it was taken from misses a line.
      this.#addError(position, 'edited', EDITED);
      return;
    }
    const run = link === undefined ? (known ?? this.#newRun(line.epoch, position)) : this.#begin(line, link, position);
    this.#gather(run);
    this.#explainHalf(line);
    this.#run = run;
    // A head from elsewhere covers what was read up to its line for the first time.
    if (run.pushDelivered(text, line, position, this.#lineCount)) this.#checkHead(line, position, run);
  }

  /** A file with lines of several chains is none that a gateway has written. */
  #gather(run: RunVerifier): void {
    if (run.isGathered && this.#gathered.has(run)) return;
    this.#gathered.add(run);
    if (this.#gathered.size > 1) for (const one of this.#gathered) one.isGathered = true;
  }

  /** The line behind a write that was interrupted says what is left of it. */
  #explainHalf({ type, computed, hash, detail }: ChainLine): void {
    const { torn_bytes: bytes, torn_sha256: digest } = detail;
    if (type !== 'lifecycle' || computed !== hash || bytes === undefined) return;
    const at = this.#halves.findIndex(({ text }) => text.length === bytes && tornDigest(text) === digest);
    const [half] = at < 0 ? [] : this.#halves.splice(at, 1);
    if (half === undefined) return;
    const { file, line } = half.position;
    this.#notes.push(
      `${file}:${line}: ${half.text.length} bytes that are no record, as an interrupted write leaves them; a later line records them`,
    );
  }

  /** What lacks in a chain is found there. A record without its end is left by whoever was ended while writing it. */
  #takeStray(text: string, position: LinePosition): void {
    if (text === '') return;
    if (looksLikeAuditLine(text)) {
      if (this.#halves.length >= MAX_HALVES) this.#reportHalf(this.#halves.shift());
      this.#halves.push({ text, position });
      return;
    }
    this.#strays.first ??= position;
    this.#strays.count += 1;
  }

  #reportHalf(half: { readonly text: string; readonly position: LinePosition } | undefined): void {
    if (half === undefined) return;
    const { text, position } = half;
    this.#unchecked.push(
      `${position.file}:${position.line}: ${text.length} bytes of a record without its end, as a gateway leaves them that is killed while it writes: what the record said is not known`,
    );
  }

  /** The chain of a line that begins no file of its own. */
  #continue(line: ChainLine | undefined, position: LinePosition): RunVerifier {
    if (this.#run !== undefined && line === undefined && position.line === 1) {
      const run = this.#newRun(position.file, position);
      this.#unreadable.set(basename(position.file), run);
      return run;
    }
    if (this.#run !== undefined && !this.#run.isStream) return this.#run;
    return this.#runs.get(line?.epoch ?? '') ?? this.#newRun(line?.epoch ?? '', position);
  }

  /** The chain of the first line of a file. */
  #begin(line: ChainLine, link: FileLink, position: LinePosition): RunVerifier {
    const known = this.#runs.get(line.epoch);
    const run = known ?? this.#newRun(line.epoch, position);
    if (known === undefined) this.#starts.push({ ...position, link, run });
    for (const name of link.skipped) this.#skipped.add(name);
    return run;
  }

  #newRun(epoch: string, position: LinePosition): RunVerifier {
    const report: Report = {
      error: (at, kind, message) => this.#addError(at, kind, message),
      note: (text) => void this.#notes.push(text),
      removed: (point) => void this.#removed.add(keyOf(point)),
      linked: (point) => void this.#linked.push(point),
    };
    const run = new RunVerifier(this.#options.publicKeys, report, position, this.#wanted.get(epoch));
    this.#runs.set(epoch, run);
    return run;
  }

  /** Each first line of a file says what is torn at the end of the file before. */
  #acceptTornEnds(): void {
    for (const { link } of this.#starts) {
      const { checkpoint, torn } = link.after ?? {};
      if (torn !== undefined) this.#runs.get(checkpoint?.epoch ?? '')?.acceptTorn(torn.bytes, torn.sha256);
    }
  }

  #endRuns(runs: readonly RunVerifier[]): void {
    this.#acceptTornEnds();
    for (const point of this.#linked) this.#signLinked(point);
    for (const [name, run] of this.#unreadable) if (this.#skipped.has(name) && run.head === undefined) run.passOver();
    for (const run of runs) run.end();
  }

  #signLinked(point: Checkpoint): void {
    const run = this.#runs.get(point.epoch);
    if (run?.head?.seq !== point.seq || run.head.hash !== point.hash) return;
    if (this.#options.publicKeys === undefined) run.signEnd();
    else run.signEndWithin(point.bounds ?? ASSUMED_BOUNDS);
  }

  /** Ends the verification. */
  end(): ChainVerdict {
    this.#decide('file');
    const runs = [...this.#runs.values()];
    this.#endRuns(runs);
    for (const half of this.#halves) this.#reportHalf(half);
    this.#noteRepeats(runs);
    const lines = runs.reduce((sum, run) => sum + run.lines, 0);
    if (lines === 0) this.#addError(this.#last, 'empty', 'there is no record');
    this.#checkStarts();
    this.#checkEnd();
    this.#checkKeys(runs);
    this.#checkStreams(runs);
    this.#noteUnsigned(runs.filter((run) => !run.isMixed));
    const unsigned = runs.filter((run) => run.unsigned.lines > 0);
    return {
      isWhole: this.#errors.length === 0 && this.#unchecked.length === 0,
      faults: this.#errors,
      unchecked: this.#unchecked,
      unsigned: {
        lines: unsigned.reduce((sum, run) => sum + run.unsigned.lines, 0),
        fromSeq: unsigned.length === 1 ? unsigned[0]?.unsigned.fromSeq : undefined,
      },
      notes: this.#notes,
      twoWriters: this.#twoWriters,
      lines,
      checkpoints: runs.reduce((sum, run) => sum + run.checkpoints, 0),
      head: this.#run?.head,
      instances: instancesOf(runs.flatMap((run) => run.facts ?? [])),
    };
  }

  #checkStreams(runs: readonly RunVerifier[]): void {
    const { first, count } = this.#strays;
    if (first !== undefined)
      this.#notes.push(
        `${first.file}:${first.line}: ${count === 1 ? 'a line that is no record was' : `this and further lines that are no records (${count} in all) were`} passed over`,
      );
    const found = checkStreams(runs.filter((run) => run.isMixed).flatMap((run) => run.facts ?? []));
    for (const { position, message } of found.missing) this.#addError(position, 'missing', message);
    this.#unchecked.push(...found.unchecked);
    this.#twoWriters.push(...found.twoWriters);
    this.#notes.push(...found.notes);
  }

  #noteRepeats(runs: readonly RunVerifier[]): void {
    const count = runs.reduce((sum, run) => sum + run.repeated, 0);
    if (count > 0)
      this.#notes.push(
        `${countOf(count, 'line')} ${count === 1 ? 'stands' : 'stand'} here again, byte for byte, as after a second delivery; each is counted once`,
      );
  }

  #addError(position: LinePosition, kind: ChainErrorKind, message: string): void {
    if (this.#errors.length < MAX_ERRORS) this.#errors.push({ ...position, kind, message });
  }

  /** Checks what the runs say of the files before them. */
  #checkStarts(): void {
    const successors = new Map<string, Start>();
    for (const start of this.#starts) {
      const { link, file } = start;
      const key = whatFollowedBy(start);
      const other = successors.get(key);
      successors.set(key, other ?? start);
      const before = link.after === undefined ? 'no file' : link.after.file;
      if (other !== undefined) this.#twoWriters.push(`two writers: ${other.file} and ${file} both follow ${before}`);
      if (link.after !== undefined) this.#checkLink(start, link.after);
    }
  }

  #checkLink(start: Start, { file, checkpoint: point }: NonNullable<FileLink['after']>): void {
    const run = this.#runs.get(point.epoch);
    const lastSeq = run?.head?.seq;
    if (run === undefined || lastSeq === undefined || run === start.run) return;
    if (lastSeq < point.seq) {
      const count = point.seq - lastSeq;
      this.#addError(run.last, 'missing', `${count} missing after this line: ${start.file} knows ${point.seq}`);
      return;
    }
    const hash = run.hashAt(point.seq);
    if (hash !== undefined && hash !== point.hash) {
      this.#addError(start, 'replaced', `the line ${point.seq} of ${file} is not the one that was written there`);
    } else if (hash === undefined && !(run.beginning !== undefined && point.seq < run.beginning.seq)) {
      this.#unchecked.push(`give the files themselves: whether ${start.file} follows the line ${point.seq} of ${file}`);
    }
    if (lastSeq > point.seq)
      this.#twoWriters.push(`two writers: ${file} was written on after ${start.file} had begun, from ${point.seq} on`);
  }

  #checkHead(line: ChainLine, position: LinePosition, run: RunVerifier): void {
    const known = this.#options.heads?.find(({ epoch, seq }) => epoch === line.epoch && seq === line.seq);
    if (known === undefined) return;
    this.#headsSeen.add(known.epoch);
    if (known.hash !== line.hash) {
      this.#addError(position, 'replaced', 'the checkpoint has another hash for this line: the chain was rewritten');
    } else run.sign();
  }

  /** Notes which keys were used, and what could not be checked. */
  #checkKeys(runs: readonly RunVerifier[]): void {
    const hasKey = this.#options.publicKeys !== undefined;
    if (!hasKey && runs.some((run) => run.checkpoints > 0)) {
      this.#notes.push(
        'the checkpoints were checked with the key that the file itself contains; give --key to check them with a trusted one',
      );
    }
    for (const run of runs) this.#checkKeysOf(run, hasKey);
  }

  #checkKeysOf(run: RunVerifier, hasKey: boolean): void {
    const { beginning, unknownKeys, checkpoints, unsigned } = run;
    const hasNone = checkpoints === 0 && beginning === undefined && unsigned.lines > 0;
    // Checkpoints under a key that was not given, as after a change of keys, are not checked.
    if (hasKey && (run.isLinkRefused ? unknownKeys === undefined : hasNone)) {
      this.#addError(run.last, 'signature', 'no checkpoint of this chain is signed by the given key');
      return;
    }
    if (unknownKeys !== undefined) this.#unchecked.push(`${GIVE_MORE}: ${unknownKeys}`);
    const missing = beginning && this.#describeMissing(beginning, run);
    // The origin of a continued chain is verified by a trusted key or head, or by its first line being present.
    const isOriginVerified = this.#isHeadSeen(run) || (hasKey && checkpoints > 0);
    if (missing !== undefined && !isOriginVerified && unknownKeys === undefined)
      this.#unchecked.push(`${GIVE_MORE}: ${missing}`);
  }

  /** A head of one chain vouches for the files that it follows, and not for other gateways. */
  #isHeadSeen({ isMixed, head }: RunVerifier): boolean {
    return isMixed ? this.#headsSeen.has(head?.epoch ?? '') : this.#headsSeen.size > 0;
  }

  /** What the first line of a chain follows, if that is not there and no signed checkpoint says why. */
  #describeMissing({ file, line, seq, link }: Beginning, run: RunVerifier): string | undefined {
    const after = link?.after;
    if (after !== undefined && this.#runs.has(after.checkpoint.epoch) && seq === 0) return undefined;
    const place = `${file}:${line}`;
    if (after !== undefined && this.#removed.has(keyOf(after.checkpoint))) {
      this.#notes.push(`${place}: follows ${after.file}, which was removed; a signed checkpoint says so`);
      return undefined;
    }
    if (after !== undefined && !this.#isOldest(after.file, run)) {
      this.#addError({ file, line }, 'missing', `follows ${after.file}, which is missing`);
      return undefined;
    }
    const missing =
      after === undefined
        ? `${place}: continues at ${seq} what stands in an earlier file; ${MISSING_FILE}`
        : `${place}: follows ${after.file} from ${after.checkpoint.seq} on; ${MISSING_FILE}`;
    this.#notes.push(missing);
    return missing;
  }

  /** True if a file that is not there was older than all that are, of those in the same folder or of the same instance. */
  #isOldest(name: string, of: RunVerifier): boolean {
    const startMs = readRunName(name)?.startMs;
    if (startMs === undefined) return true;
    const isBeside = (run: RunVerifier): boolean =>
      of.isGathered ? run.names?.instance === of.names?.instance : dirname(run.first.file) === dirname(of.first.file);
    const runs = [...this.#runs.values()].filter(isBeside);
    const starts = this.#starts.filter(({ run }) => isBeside(run));
    const startsMs = starts.map(({ link }) => readRunName(link.file)?.startMs ?? Number.POSITIVE_INFINITY);
    return starts.some(({ run }) => run === runs[0]) && startMs < Math.min(...startsMs);
  }

  /** Which files have lines that no checkpoint covers, if several do. */
  #noteUnsigned(runs: readonly RunVerifier[]): void {
    const found = runs.filter((run) => run.unsigned.lines > 0);
    if (found.length < 2) return;
    for (const { last, unsigned } of found)
      this.#notes.push(
        `${last.file}: ${unsigned.lines} unsigned at the end, from sequence number ${unsigned.fromSeq} on`,
      );
  }

  #checkEnd(): void {
    const { heads = [] } = this.#options;
    if (heads.length === 0) {
      if (this.#errors.length === 0) {
        this.#notes.push(
          'complete up to the last line of these files; only --head can show whether lines after it are missing',
        );
      }
      return;
    }
    const removed = new Set([...this.#removed].map((key) => key.split(':', 1)[0]));
    for (const [index, head] of heads.entries()) {
      if (this.#headsSeen.has(head.epoch)) continue;
      // Of several, those of older chains may be of files that were given up long ago.
      if (this.#runs.has(head.epoch) || index === heads.length - 1) this.#reportTruncated(head);
      else if (!removed.has(head.epoch))
        this.#unchecked.push(`give the file of the chain ${head.epoch}, which --head knows up to ${head.seq}`);
    }
  }

  #reportTruncated({ epoch, seq }: ChainHead): void {
    const run = this.#runs.get(epoch);
    const message =
      run === undefined && this.#run?.head !== undefined
        ? `the checkpoint is of another chain (epoch ${epoch})`
        : `cut off: the checkpoint knows line ${seq}, the last line here is ${run?.head?.seq ?? 'none'}`;
    this.#addError(run?.last ?? this.#last, 'truncated', message);
  }
}
