// The audit log: writes two events per request (decision and outcome) and every other event to all sinks.
// It decides when a request may proceed: when its decision is durable in every sink, or at once if the
// configuration allows that or nothing would reach an upstream. It never delays a response for its outcome,
// and writes only what the record names (docs/reference/audit.md). What an upstream, or anyone without a token, can
// cause at will is bounded by a rate, above which events are only counted, so that nobody fills the disk. Decisions
// have no rate. Nothing that an upstream invents or repeats keeps the first drift of a pinned definition from being
// written.

import { createHash, randomUUID } from 'node:crypto';
import type { AuditSettings } from '../config/settings.js';
import type { RequestRecord } from '../policy/record.js';
import type { Admission, RecordApproval } from '../policy/security-events.js';
import { createRate, type RateBounds } from '../state/bounds.js';
import type { MaskText } from '../text/escaping.js';
import { systemErrorCode } from '../text/wording.js';
import {
  type ChainHead,
  type Checkpoint,
  type CheckpointBounds,
  checkpointBytes,
  checkpointDetail,
  epochOf,
  linkDetail,
  MAX_LINES_BETWEEN_CHECKPOINTS,
  type Predecessor,
  type ReplicaNames,
} from './chain.js';
import {
  type AuditEvent,
  approvalEvent,
  buildEvent,
  decisionEvent,
  type EventContext,
  type EventText,
  type GatewayInfo,
  outcomeEvent,
  type Versions,
} from './event.js';
import type { RecentDecisions } from './query.js';
import {
  type AuditFolder,
  AuditSink,
  type ChainWriter,
  type FileOpening,
  type OwnFile,
  type SinkResult,
  type VolumeSpace,
} from './sink.js';

type AuditSigner = {
  sign(bytes: Uint8Array): { readonly keyId: string; readonly signature: string };
  publicKeys(): readonly { readonly keyId: string; readonly publicKey: string }[];
};

/** The metrics of the audit log. */
export type AuditMeters = {
  auditEvent(sink: string, result: SinkResult | 'suppressed', count: number): void;
  auditWrite(sink: string, durationMs: number, error: string): void;
  setAuditQueue(length: number): void;
  setChainSeq(seq: number): void;
};

export type AuditPorts = {
  readonly settings: AuditSettings;
  readonly replica: ReplicaNames;
  /** Version of the program. */
  readonly version: string;
  readonly versions: Versions;
  readonly signer: AuditSigner;
  readonly now: () => number;
  readonly meters: AuditMeters;
  /** Creates the writer of a sink. */
  readonly newWriter: (sink: AuditSettings['sinks'][number]) => ChainWriter;
  /** Reports the state of the control `audit`: the error of a sink, or `undefined` if all sinks work. */
  readonly onState?: (error: string | undefined) => void;
  /** Reports what somebody should look at while all sinks work, such as another writer in the folder of a file. */
  readonly onWarning?: (warning: string | undefined) => void;
  /** Reports the space of the volume of each file sink. */
  readonly onSpace?: (sink: string, space: VolumeSpace) => void;
  /** An additional mask for text from clients and upstreams. */
  readonly mask?: MaskText;
  /**
   * True while a sink that reads audit files, such as one that delivers them to another system, still needs the file at
   * this path. `audit.retain` keeps it and all newer ones then, and it is not compressed.
   */
  readonly isUndelivered?: (path: string) => boolean | Promise<boolean>;
  /** Also gets the events of requests, where somebody may look at them; see query.ts. */
  readonly recent?: Pick<RecentDecisions, 'note'> | undefined;
};

export interface Audit {
  /** Opens all sinks and writes their first line. Resolves with whether every one of them could be written. */
  start(): Promise<boolean>;
  /**
   * Records the decision. For an allow under `onFailure: block` it resolves with true when every sink has it durably, or
   * with false if one will not have it; otherwise with true at once. Never rejects. `isAwaited: false`: nothing will
   * leave because of it, and it is kept while a sink cannot be written.
   */
  decision(record: RequestRecord, isAwaited?: boolean): Promise<boolean>;
  /** Records the outcome; `totalMs` is the total time in milliseconds. Does not wait. */
  outcome(record: RequestRecord, totalMs: number): void;
  /**
   * Records a refusal that precedes authentication as a decision and an outcome. Anyone can cause them, so those above a
   * rate are only counted, and the next that is written says how many. Does not wait. While nothing is open yet, nothing
   * is written: it returns how many were only counted before this one, which the process log has to have instead.
   */
  edgeRefusal(record: RequestRecord): Admission;
  /**
   * Records any other event. One that is above its rate is counted and not written, and whoever logs the event must not
   * log it then.
   */
  event(event: AuditEvent): Admission;
  /**
   * Records what becomes of an approval; no rate holds for it. A yes and its use are awaited like the decision of an
   * allowed request; anything else is kept while a sink cannot be written, and resolves with true at once.
   */
  approval: RecordApproval;
  /** Sets the versions that events carry from now on. */
  setVersions(versions: Versions): void;
  /** The file that the first file sink writes. */
  ownFile(): OwnFile | undefined;
  /** True if every sink can be written. */
  isWritable(): boolean;
  /** Writes a signed checkpoint to every chain, and a copy to every other sink. */
  checkpoint(): void;
  /** Writes the queued events and closes the sinks; waits a bounded time. */
  close(): Promise<void>;
}

/** The longest delay of a platform timer; a longer one would fire continuously. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const DURABLE = Promise.resolve(true);
/** A decision and an outcome. */
const EVENTS_PER_REQUEST = 2;

export function sinkNames(settings: Pick<AuditSettings, 'sinks'>): readonly string[] {
  const counts = new Map<string, number>();
  return settings.sinks.map(({ type }) => {
    const count = (counts.get(type) ?? 0) + 1;
    counts.set(type, count);
    return count === 1 ? type : `${type}-${count}`;
  });
}

/** Combines the states of all sinks: the first error, with the name of its sink. */
function createSinkStates(onState: (error: string | undefined) => void) {
  const errors = new Map<string, string>();
  return (sink: string, error: string | undefined): void => {
    if (error === undefined) errors.delete(sink);
    else errors.set(sink, `${sink}: ${error}`);
    onState(errors.values().next().value);
  };
}

type EventBuilder = {
  context(): EventContext;
  lifecycle(event: string, detail: Readonly<Record<string, string | number>>): EventText;
  opening(event: 'started' | 'continued', opening: FileOpening | undefined): EventText;
  checkpoint(head: ChainHead): EventText;
  /** The checkpoint that says that a file will be removed. */
  removal(old: Predecessor): EventText;
  setVersions(versions: Versions): void;
};

function createEventBuilder(ports: AuditPorts): EventBuilder {
  const { signer, now, mask } = ports;
  const bounds = boundsOf(ports.settings);
  let gateway: GatewayInfo = {
    ...ports.replica,
    version: ports.version,
    ...ports.versions,
  };
  const context = (): EventContext => ({ gateway, nowMs: now(), mask });
  const lifecycle: EventBuilder['lifecycle'] = (event, detail) =>
    buildEvent({ type: 'lifecycle', event, detail }, context());

  function sign(head: ChainHead, more: Pick<Checkpoint, 'bounds' | 'removed'>): Checkpoint {
    const point = { ...head, time: new Date(now()).toISOString(), ...more };
    return { ...point, ...signer.sign(checkpointBytes(point)) };
  }
  const signed = (head: ChainHead, more: Pick<Checkpoint, 'bounds' | 'removed'>): EventText =>
    buildEvent({ type: 'checkpoint', detail: checkpointDetail(sign(head, more)) }, context());

  return {
    context,
    setVersions(versions) {
      gateway = { ...gateway, ...versions };
    },
    lifecycle,
    opening(event, opening) {
      const after = opening?.after && { ...opening.after, checkpoint: sign(opening.after.head, { bounds }) };
      const link = opening === undefined ? {} : linkDetail(opening.file, after, opening.skipped);
      const why = opening?.why === undefined ? {} : { why: opening.why };
      const key = event === 'started' ? signer.publicKeys()[0] : undefined;
      const keys = key === undefined ? {} : { key_id: key.keyId, public_key: key.publicKey };
      return lifecycle(event, { ...why, ...link, ...keys });
    },
    checkpoint: (head) => signed(head, { bounds }),
    removal: ({ head, file }) => signed(head, { bounds: undefined, removed: file }),
  };
}

function boundsOf({ checkpointEveryMs }: AuditSettings): CheckpointBounds {
  return { everyMs: checkpointEveryMs, everyLines: MAX_LINES_BETWEEN_CHECKPOINTS };
}

function createSinks(ports: AuditPorts, builder: EventBuilder, isClosing: () => boolean): readonly AuditSink[] {
  const { settings, meters } = ports;
  const names = sinkNames(settings);
  const setSinkState = createSinkStates(ports.onState ?? (() => undefined));
  const sinks: AuditSink[] = settings.sinks.map((sink, index) => {
    const name = names[index] ?? sink.type;
    return new AuditSink(name, ports.newWriter(sink), {
      lifecycle: builder.lifecycle,
      opening: builder.opening,
      checkpoint: builder.checkpoint,
      bounds: boundsOf(settings),
      newEpoch: (isStream) => epochOf(randomUUID(), isStream),
      // The duration of a write is not measured by the wall clock, which may jump.
      monotonicMs: () => performance.now(),
      onResult: (result, count) => meters.auditEvent(name, result, count),
      onWrite: (durationMs, error) => meters.auditWrite(name, durationMs, error),
      onWritten(head) {
        meters.setAuditQueue(Math.max(...sinks.map((each) => each.queueLength)));
        if (index === 0) meters.setChainSeq(head.seq);
      },
      onCheckpoint(event) {
        if (isClosing()) return;
        for (const other of sinks) if (other.name !== name) other.enqueue(event, false);
      },
      onState: (error) => setSinkState(name, error),
    });
  });
  return sinks;
}

/** Other writers are looked for at this interval. */
const LOOK_EVERY_MS = 5_000;
/** Files to compress are looked for at this interval. */
const COMPRESS_EVERY_MS = 60_000;
/** Old files are looked for at this interval. */
const REMOVE_EVERY_MS = 3_600_000;
/** A clock that jumps further makes files look old that are not. */
const MAX_JUMP_MS = 86_400_000;

function reasonOf(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.message : 'unknown');
}

/** Looks after the folders of files: reports other writers, and removes what is older than is configured. */
function watchFolders(
  sinks: readonly AuditSink[],
  { settings, now, onWarning, onSpace, isUndelivered = () => false }: AuditPorts,
  builder: EventBuilder,
  checkpoint: () => void,
): { start(): void; end(): void } {
  const timers: NodeJS.Timeout[] = [];
  let isWarned = false;
  let removalError: string | undefined;
  let compressionError: string | undefined;
  const ending = new AbortController();
  let isCompressing = false;

  async function measure({ name, folder }: AuditSink): Promise<void> {
    const space = await folder?.measureSpace().catch(() => undefined);
    if (space !== undefined) onSpace?.(name, space);
  }

  async function compressFinished({ folder }: AuditSink): Promise<void> {
    for (const path of (await folder?.findFinished()) ?? []) {
      const isNeeded = await isUndelivered(path);
      if (!isNeeded) await folder?.compress(path, ending.signal);
    }
  }

  /** One file at a time, however long it takes. */
  async function compressAll(): Promise<void> {
    if (isCompressing) return;
    isCompressing = true;
    compressionError = undefined;
    for (const sink of sinks)
      await compressFinished(sink).catch((error: unknown) => {
        compressionError = `a file of ${sink.name} could not be compressed: ${reasonOf(error)}`;
      });
    isCompressing = false;
  }

  async function look(): Promise<void> {
    await Promise.all(sinks.map(measure));
    const found = await Promise.all(sinks.map(({ folder }) => folder?.findWarnings().catch(() => []) ?? []));
    const [warning] = [...found.flat(), removalError, compressionError].filter((text) => text !== undefined);
    // A line tells another gateway at once that this one writes too.
    if (warning !== undefined && !isWarned) checkpoint();
    isWarned = warning !== undefined;
    onWarning?.(warning);
  }

  /** Resolves with the name of the first old file that is still needed, at which it ends. */
  async function removeFiles(sink: AuditSink, folder: AuditFolder, keptMs: number): Promise<string | undefined> {
    for await (const old of folder.findOld(keptMs)) {
      if (await isUndelivered(folder.pathOf(old.file))) return old.file;
      // INVARIANT: what is removed is recorded first.
      await sink.append(builder.removal(old));
      await folder.remove(old.file);
    }
    return undefined;
  }

  async function removeOld(sink: AuditSink, keptMs: number): Promise<void> {
    const { folder } = sink;
    if (folder === undefined) return;
    removalError = undefined;
    try {
      const needed = await removeFiles(sink, folder, keptMs);
      if (needed !== undefined) removalError = `audit.retain keeps ${needed}, which is not delivered yet`;
    } catch (error) {
      removalError = `audit.retain could not remove old files of ${sink.name}: ${reasonOf(error)}`;
    }
  }

  let aheadMs = now() - performance.now();

  function hasJumped(): boolean {
    const beforeMs = aheadMs;
    aheadMs = now() - performance.now();
    return Math.abs(aheadMs - beforeMs) > MAX_JUMP_MS;
  }

  function removeAllOld(keptMs: number): void {
    if (hasJumped()) return;
    for (const sink of sinks) void removeOld(sink, keptMs);
  }

  return {
    start() {
      const { retainMs } = settings;
      void look();
      timers.push(setInterval(() => void look(), LOOK_EVERY_MS));
      if (retainMs !== undefined) {
        removeAllOld(retainMs);
        timers.push(setInterval(() => removeAllOld(retainMs), REMOVE_EVERY_MS));
      }
      if (settings.rotate.compress === 'gzip') {
        void compressAll();
        timers.push(setInterval(() => void compressAll(), COMPRESS_EVERY_MS));
      }
      for (const timer of timers) timer.unref();
    },
    end() {
      for (const timer of timers) clearInterval(timer);
      ending.abort();
    },
  };
}

/**
 * Creates the audit log. Opens nothing before `start`.
 * @throws RangeError without a sink: nothing would be recorded, and everything would be allowed.
 */
export function createAudit(ports: AuditPorts): Audit {
  const { settings, now, recent } = ports;
  if (settings.sinks.length === 0) throw new RangeError('an audit needs a sink');
  const builder = createEventBuilder(ports);
  let isOpen = false;
  let isClosing = false;
  const sinks = createSinks(ports, builder, () => isClosing);
  const [singleSink] = sinks.length === 1 ? sinks : [];
  const admit = createEventRate(now);
  const admitEdgeRefusal = createEdgeRefusalRate(now);
  const timer = setInterval(checkpoint, Math.min(settings.checkpointEveryMs, MAX_TIMER_MS));
  timer.unref();
  const folders = watchFolders(sinks, ports, builder, checkpoint);

  function checkpoint(): void {
    for (const sink of sinks) sink.checkpoint();
  }

  /** Says of each sink whether it has room for the event. */
  function enqueueEverywhere(event: EventText, mayUseReserve: boolean): readonly boolean[] {
    return sinks.map((sink) => sink.enqueue(event, mayUseReserve));
  }

  /** Counts events that are above their rate. */
  function countSuppressed(count: number): void {
    for (const sink of sinks) ports.meters.auditEvent(sink.name, 'suppressed', count);
  }

  function outcome(record: RequestRecord, totalMs: number): void {
    const mayUseReserve = record.decision.verdict === 'allow';
    const event = outcomeEvent(record, builder.context(), totalMs);
    recent?.note(event, record.principal !== undefined);
    enqueueEverywhere(event, mayUseReserve);
  }

  /** Callers waiting for one group of one sink share one promise, so its result is computed once. */
  let pendingGroup: { readonly appended: Promise<unknown>; readonly isDurable: Promise<boolean> } | undefined;

  function append(event: EventText): Promise<boolean> {
    const appended =
      singleSink === undefined ? Promise.all(sinks.map((sink) => sink.append(event))) : singleSink.append(event);
    if (pendingGroup?.appended !== appended) {
      const recorded = appended.then(
        () => true,
        () => false,
      );
      pendingGroup = { appended, isDurable: recorded };
    }
    return pendingGroup.isDurable;
  }

  return {
    start: () =>
      Promise.all(sinks.map((sink) => sink.start()))
        .then(
          () => true,
          () => false,
        )
        .finally(() => {
          isOpen = true;
          folders.start();
        }),
    decision(record, isAwaited = true) {
      const event = decisionEvent(record, builder.context());
      recent?.note(event, record.principal !== undefined);
      const isAllowed = record.decision.verdict === 'allow';
      if (!isAllowed || !isAwaited || settings.onFailure === 'continue') {
        record.isDecisionLost = enqueueEverywhere(event, isAllowed).includes(false);
        return DURABLE;
      }
      return append(event);
    },
    approval(event) {
      if (event.change === 'void') return DURABLE;
      const text = approvalEvent(event, builder.context());
      const isAwaited = event.change === 'granted' || event.change === 'used';
      if (isAwaited && settings.onFailure === 'block') return append(text);
      enqueueEverywhere(text, true);
      return DURABLE;
    },
    outcome,
    edgeRefusal(record) {
      let isTried = false;
      const admission = admitEdgeRefusal((counted) => {
        isTried = true;
        if (!isOpen) return true;
        record.suppressed = counted;
        const event = decisionEvent(record, builder.context());
        recent?.note(event, false);
        const queued = enqueueEverywhere(event, false);
        record.isDecisionLost = queued.includes(false);
        outcome(record, 0);
        return queued.includes(true);
      });
      if (!isTried && isOpen) countSuppressed(EVENTS_PER_REQUEST);
      return isOpen ? undefined : admission;
    },
    event(event) {
      let isTried = false;
      const suppressed = admit(event, (counted) => {
        isTried = true;
        return enqueueEverywhere(buildEvent(event, builder.context(), counted), false).includes(true);
      });
      if (!isTried) countSuppressed(1);
      return suppressed;
    },
    setVersions: builder.setVersions,
    ownFile: () => sinks.find(({ folder }) => folder !== undefined)?.folder?.ownFile(),
    isWritable: () => sinks.every((sink) => sink.isWritable),
    checkpoint,
    async close() {
      clearInterval(timer);
      folders.end();
      if (isClosing) return;
      // Writes copies of the last checkpoints to the other sinks before they close.
      if (sinks.length > 1) checkpoint();
      await Promise.all(sinks.map((sink) => sink.drain()));
      isClosing = true;
      await Promise.all(sinks.map((sink) => sink.close()));
    },
  };
}

/** Failed authentications written per second; the others are counted in the next event that is written. */
export const AUTH_FAILURES_PER_SECOND = 50;

/**
 * Requests written per second that were refused at the edge, before a token was looked at; the others are only counted.
 */
export const EDGE_REFUSALS_PER_SECOND = 50;

/** Events about definitions of one upstream: of those in its lock file, and again of all others. */
export const DEFINITION_EVENTS: RateBounds = { burst: 1_000, perSecond: 1 };

/** What is left of the rate of other definitions for those that were not written lately. */
const KEPT_FOR_FIRST = DEFINITION_EVENTS.burst / 2;

/** After this time an event counts as the first of its definition and kind again. Milliseconds. */
export const FIRST_EVENT_MS = 3_600_000;

/** Queues the event with the number of those that were only counted. False if no sink has room: the event is lost. */
type WriteEvent = (suppressed: number) => boolean;

type DefinitionEvent = Extract<AuditEvent, { readonly type: 'pin.drift' | 'pin.finding' }>;

/** What was written about the definitions of one upstream since `sinceMs`, and how many events were not. */
type WrittenEvents = {
  sinceMs: number;
  readonly pinned: Set<string>;
  readonly others: Set<string>;
  readonly suppressed: Map<string, number>;
};

/**
 * Creates the function that writes each event, or only counts it. What is lost uses up the rate, but was not written: the
 * number of those that were only counted stays, and the next event of its definition and kind is still the first.
 * `now` is in milliseconds.
 */
export function createEventRate(now: () => number): (event: AuditEvent, write: WriteEvent) => Admission {
  const admitUnauthenticated = createUnauthenticatedRate(AUTH_FAILURES_PER_SECOND, now);
  const admitDefinition = createDefinitionRate(now);
  function always(write: WriteEvent): Admission {
    write(0);
    return 0;
  }
  return (event, write) => {
    switch (event.type) {
      case 'auth.failure':
        return admitUnauthenticated(true, write);
      case 'admin.action':
        return event.subject === undefined ? admitUnauthenticated(false, write) : always(write);
      case 'pin.drift':
      case 'pin.finding':
        return admitDefinition(event, write);
      // Once for each definition of one listing, or caused by operators and by the sinks themselves.
      case 'pin.first-use':
      case 'pin.approval':
      case 'pin.block':
      case 'config.reload':
      case 'lifecycle':
      case 'checkpoint':
        return always(write);
    }
  };
}

/** The same for refusals at the edge, which have a rate of their own. */
function createEdgeRefusalRate(now: () => number): (write: WriteEvent) => Admission {
  const admit = createUnauthenticatedRate(EDGE_REFUSALS_PER_SECOND, now);
  return (write) => admit(true, write);
}

/** `isCounting`: the event says how many were only counted. */
function createUnauthenticatedRate(
  perSecond: number,
  now: () => number,
): (isCounting: boolean, write: WriteEvent) => Admission {
  const rate = createRate({ burst: perSecond, perSecond }, now);
  let suppressed = 0;
  return (isCounting, write) => {
    if (rate.left() < 1) {
      suppressed += 1;
      return undefined;
    }
    rate.spend(1);
    const counted = isCounting ? suppressed : 0;
    if (write(counted)) suppressed -= counted;
    return counted;
  };
}

function noneWritten(sinceMs: number): WrittenEvents {
  return { sinceMs, pinned: new Set(), others: new Set(), suppressed: new Map() };
}

function createDefinitionRate(now: () => number): (event: DefinitionEvent, write: WriteEvent) => Admission {
  const rate = createRate(DEFINITION_EVENTS, now);
  const upstreams = new Map<string, WrittenEvents>();

  function writtenOf(upstream: string): WrittenEvents {
    const atMs = now();
    const known = upstreams.get(upstream) ?? noneWritten(atMs);
    upstreams.set(upstream, known);
    // A clock that was set back must not keep what was written from ever being forgotten.
    if (atMs - known.sinceMs >= FIRST_EVENT_MS || atMs < known.sinceMs) {
      known.sinceMs = atMs;
      known.pinned.clear();
      known.others.clear();
    }
    return known;
  }

  return (event, write) => {
    const { type, upstream } = event;
    const names = isInLock(event) ? 'pinned' : 'others';
    const { suppressed, [names]: written } = writtenOf(upstream);
    const key = definitionEventKey(event);
    const bucket = `${names} ${upstream}`;
    const left = rate.left(bucket);
    const counted = suppressed.get(type) ?? 0;
    const mayBeWritten = mayWrite(names, !written.has(key), left);
    if (mayBeWritten && left >= 1) rate.spend(1, bucket);
    if (mayBeWritten && write(counted)) {
      written.add(key);
      suppressed.set(type, 0);
      return counted;
    }
    // What is lost is logged within the rate alone: it is the first of its definition each time.
    if (mayBeWritten && left >= 1) return counted;
    suppressed.set(type, counted + 1);
    return undefined;
  };
}

/**
 * INVARIANT: the first event of a pinned definition does not depend on what is left. It is bounded all the same, because
 * the names of a lock file are not the upstream's to choose.
 */
function mayWrite(names: 'pinned' | 'others', isFirst: boolean, left: number): boolean {
  if (names === 'pinned') return isFirst || left >= 1;
  return left >= (isFirst ? 1 : KEPT_FOR_FIRST + 1);
}

/** Whether the lock file has the name: nothing else says that the upstream did not invent it. */
function isInLock(event: DefinitionEvent): boolean {
  return event.type === 'pin.drift' ? event.before !== undefined : event.isPinned;
}

/**
 * A definition and what happened to it; after another approval, a drift is another one. A digest, because it is kept, and
 * the length of the name is the upstream's.
 */
function definitionEventKey(event: DefinitionEvent): string {
  const { type, kind, name } = event;
  const what = type === 'pin.drift' ? `${event.change} ${event.before ?? ''}` : `${event.found} ${event.tier}`;
  return createHash('sha256').update(`${type} ${kind} ${what} ${name}`).digest('base64');
}
