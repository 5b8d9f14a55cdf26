// What the features of the gateway report as it happens, for whoever watches it: metrics and the process log listen
// (src/telemetry/), and a feature knows neither. An event decides nothing, and a listener that throws changes nothing
// for the feature or for the other listeners. The audit log does not listen: what it has to record passes through
// src/audit/audit.ts, which can refuse.

import type { ApprovalParty } from './approval.js';
import type { PinState } from './definitions.js';
import type { RequestRecord } from './record.js';
import type { ApprovalEvent, FileHashes } from './security-events.js';

export type ControlState = 'armed' | 'degraded' | 'off';

/** One more, or one fewer. */
type Delta = 1 | -1;
type AtUpstream = { readonly upstream: string };
type Item = AtUpstream & { readonly kind: string; readonly name: string };
/**
 * Of an event that is also in the audit log, how many like it were only counted since the last that was written;
 * `undefined` if this one is only counted itself, and is not logged then.
 */
type Recorded = { readonly suppressed: number | undefined };
type Names = { has(name: string): boolean; keys(): Iterable<string> };
/** How long something took that the gateway waited for. `error`: one of few types; empty if it succeeded. */
export type Measured = { readonly durationMs: number; readonly error: string };
/** `oldestMs`: how long the oldest has waited; 0 if none waits. */
type WaitingCount = { readonly count: number; readonly oldestMs: number };

/** Every event by its name, with what is known of it. */
export type GatewayEvents = {
  // Requests and streams.
  readonly inProgress: AtUpstream & { readonly delta: Delta };
  readonly streaming: AtUpstream & { readonly delta: Delta };
  /** `totalMs`: the whole duration of the request, in milliseconds. */
  readonly ended: { readonly record: RequestRecord; readonly totalMs: number } & Recorded;
  /** A sampled request is over, or one that has no record because its parts have theirs. */
  readonly traced: { readonly record: RequestRecord; readonly totalMs: number };
  /** What became of spans, or that they could not be sent. */
  readonly spans: { readonly outcome: 'exported' | 'dropped' | 'failed'; readonly count: number };
  /** A client closed its connection before the whole answer to its request was written. */
  readonly clientLeft: { readonly record: RequestRecord };
  /** The sessions that were used lately, by their revisions of MCP. */
  readonly sessionsCounted: { readonly counts: ReadonlyMap<string, number> };
  readonly unauthenticated: { readonly reason: string };
  /** A bug or an I/O error ended a request. */
  readonly failed: { readonly decision: string; readonly trace: RequestRecord['trace']; readonly error: unknown };

  // Upstreams and issuers.
  readonly listed: AtUpstream;
  /** The first listing that succeeds. `pins`: how many items are in a state; `undefined` without pinning. */
  readonly reachable: AtUpstream & {
    readonly url: string;
    readonly protocols: readonly string[];
    readonly pins: ReadonlyMap<PinState, number> | undefined;
  };
  readonly unlisted: AtUpstream & { readonly url: string; readonly detail: string };
  readonly partlyListed: AtUpstream & { readonly detail: string };
  readonly sessionReopened: AtUpstream;
  /** Whether requests of callers are refused because the upstream answers neither them nor pings. */
  readonly hanging: AtUpstream & { readonly isHanging: boolean };
  readonly connectionFailed: AtUpstream & { readonly what: 'credentials' | 'connection'; readonly detail: string };
  readonly issuerIncomplete: { readonly issuer: string; readonly detail: string };
  /** Nobody of this issuer can log in to answer for a call. */
  readonly loginImpossible: { readonly issuer: string; readonly detail: string };
  /** Somebody came back from this issuer to answer for a call, and was not logged in. `suppressed`: as in `Recorded`. */
  readonly loginRefused: { readonly issuer: string; readonly detail: string; readonly suppressed: number };
  /** `untilSeconds`: when these keys are too old, in seconds since the epoch like `atSeconds`. */
  readonly keysFetched: { readonly issuer: string; readonly atSeconds: number; readonly untilSeconds: number };
  readonly introspected: Measured & { readonly issuer: string };
  /** A token for an upstream was requested. */
  readonly tokenRequested: AtUpstream & Measured & { readonly grant: 'client_credentials' | 'token_exchange' };

  // Approvals.
  readonly approval: ApprovalEvent;
  /** Nobody was asked, because too many questions stand already; the parties that would have been. */
  readonly approvalCrowded: { readonly parties: readonly ApprovalParty[] };
  /** What waits for an answer, by the party that has not given one: over all replicas where they share a store. */
  readonly approvalsCounted: {
    readonly waiting: { readonly [party in ApprovalParty]: WaitingCount };
  };

  // Definitions.
  readonly drifted: Item & { readonly change: string; readonly isPinned: boolean } & Recorded;
  readonly serverUpdated: AtUpstream;
  /** `found`: the kind of a finding of the scan, or that a definition could not be scanned. */
  readonly found: Item & {
    readonly found: string;
    readonly isGrave: boolean;
    readonly action: 'withhold' | 'flag';
    readonly reason: string;
  } & Recorded;
  readonly unusable: Item & { readonly detail: string };
  /** When the oldest definition that may be used was approved, in seconds since the epoch. */
  readonly pinsDated: AtUpstream & { readonly oldestSeconds: number };
  readonly toolsCounted: AtUpstream & { readonly states: ReadonlyMap<PinState, number> };
  readonly driftUnreported: AtUpstream & { readonly error: unknown };

  // Approvals.
  /** What became of a message to a receiver, by its name; `detail` says why it was not delivered. */
  readonly reviewersNotified: {
    readonly webhook: string;
    readonly outcome: 'delivered' | 'failed' | 'dropped';
    readonly detail: string | undefined;
  };

  // Configuration, controls and the process.
  /** No thread for inspection can be started, or one runs again. */
  readonly workerThread: { readonly isThere: boolean };
  /** `why` a version was rejected; `undefined` if it was applied. */
  readonly reloaded: {
    readonly why: string | undefined;
    readonly diagnostics: readonly {
      readonly file: string;
      readonly line: number;
      readonly severity: 'error' | 'warning' | 'note';
      readonly message: string;
    }[];
    /** What waits for a restart, in words; `undefined` if nothing does. */
    readonly waiting: string | undefined;
  };
  /**
   * Whether the files are valid, whose lock files lack a signature that they need, the hashes of what could be read, and
   * whether something of them waits for a restart.
   */
  readonly filesRead: {
    readonly areValid: boolean;
    readonly unsigned: Iterable<string>;
    readonly hashes: Partial<FileHashes>;
    readonly isPending: boolean;
  };
  /** The version in force, and the names that labels may have from now on. */
  readonly configured: {
    readonly hashes: FileHashes;
    readonly upstreams: Names;
    readonly aggregates: Names;
    readonly issuers: Names;
  };
  /**
   * `isExpected`: it is so at every start. `isRoutine`: a start says it in sum, because it is what the configuration asks
   * for, or follows what was expected.
   */
  readonly controlChanged: {
    readonly control: string;
    readonly state: ControlState;
    readonly reason: string;
    readonly isExpected: boolean;
    readonly isRoutine: boolean;
  };
  readonly controlRemoved: { readonly control: string };
  /** Lines of the audit log that a receiver has taken, or has refused. */
  readonly auditDelivered: { readonly sink: string; readonly result: 'delivered' | 'refused'; readonly count: number };
  /** What a receiver does not have yet: bytes of files, and the age of the oldest line, 0 if it has all. */
  readonly auditSpaceChecked: { readonly sink: string; readonly freeBytes: number };
  readonly auditDeliveryChecked: { readonly sink: string; readonly waitingBytes: number; readonly lagSeconds: number };
  readonly storeChecked: { readonly isUnreachable: boolean };
  readonly storeUsed: Measured & { readonly operation: string };
  /** Every certificate that the configuration names: the one of its file that expires first. */
  readonly certificatesRead: {
    readonly certificates: readonly {
      readonly use: string;
      readonly name: string;
      readonly expiresAtSeconds: number;
    }[];
  };
  readonly blocksCounted: { readonly target: string; readonly count: number };
  /**
   * `detail` says why it is not ready, or what is weaker than it should be; empty if nothing is. `isExpected`: it is so
   * at every start and every end.
   */
  readonly readinessChanged: { readonly isReady: boolean; readonly detail: string; readonly isExpected: boolean };
  readonly started: { readonly version: string; readonly file: string };
  /** For how long requests are still accepted, and those in progress may then take. */
  readonly stopping: { readonly delayMs: number; readonly drainMs: number };
  readonly stopped: { readonly [none in never]: never };
  readonly nodeOutdated: { readonly detail: string };
  readonly storeYoung: { readonly reason: string };
  readonly filesUnwatched: { readonly error: unknown };
};

export type EventName = keyof GatewayEvents;
export type Emit = <Name extends EventName>(name: Name, event: GatewayEvents[Name]) => void;
/** A table that says for each event what becomes of it; of those that it leaves out, nothing. */
export type Listeners = { readonly [Name in EventName]?: (event: GatewayEvents[Name]) => void };

export type Events = {
  readonly emit: Emit;
  /** Listens from now on. */
  listen(listeners: Listeners): void;
  /** How often listeners have thrown, by the event. */
  errors(): ReadonlyMap<EventName, number>;
};

/** `onError` is called at the first error of a listener of each event; the others are counted. */
export function createEvents(first: readonly Listeners[], onError: (name: EventName, error: unknown) => void): Events {
  const errors = new Map<EventName, number>();
  const tables = [...first];

  function countError(name: EventName, error: unknown): void {
    const before = errors.get(name) ?? 0;
    errors.set(name, before + 1);
    if (before > 0) return;
    try {
      onError(name, error);
    } catch {
      // It is counted, which is all that can be done.
    }
  }

  return {
    emit(name, event) {
      for (const listeners of tables) {
        try {
          listeners[name]?.(event);
        } catch (error) {
          countError(name, error);
        }
      }
    },
    listen: (listeners) => tables.push(listeners),
    errors: () => errors,
  };
}
