// Whether the gateway is ready: whether a balancer should send it requests. Before it is ready for the first time it
// waits for the shared store, and for a limited time for the keys of issuers and for required upstreams; later those
// never count. Whether it is alive depends on nothing here. docs/reference/listeners.md#readiness.

import type { ReadinessReport } from '../http/internal-server.js';
import type { Emit } from '../policy/events.js';
import type { StoreStatus } from '../state/memory.js';
import { countOf } from '../text/wording.js';

/** `starting` until the start is complete, `stopping` from the beginning of the end. */
export type Phase = 'starting' | 'serving' | 'stopping';

/** The names of what a start waits for and has not seen yet. */
export type Awaited = { readonly issuers: readonly string[]; readonly upstreams: readonly string[] };

export type ReadinessSources = {
  readonly phase: Phase;
  readonly isAuditWritable: boolean;
  readonly store: StoreStatus & { readonly isReady: boolean };
  readonly awaited: Awaited;
  /** How long the start waits for what is awaited. */
  readonly waitMs: number;
};

/** What is remembered between two looks. */
export type StartupProgress = {
  /** When the start was complete, of a monotonic clock in milliseconds; `undefined` before. */
  readonly servingSinceMs: number | undefined;
  /** Whether it has been ready once; issuers and upstreams no longer count then. */
  readonly hasBeenReady: boolean;
};

export type Readiness = ReadinessReport & {
  /** Whether it still waits for issuers or upstreams. */
  readonly isWaiting: boolean;
};

type Look = Readiness & {
  readonly progress: StartupProgress;
  /** The same as `reasons` with names, for the log. */
  readonly detail: string;
  /** Every start and every end passes through this. */
  readonly isExpected: boolean;
};

/** What the probe may read, which names nothing, or what the log says. */
function describeAwaited({ issuers, upstreams }: Awaited, isNamed: boolean): string {
  const named = (names: readonly string[]): string => (isNamed ? ` (${names.join(', ')})` : '');
  const parts = [
    ...(issuers.length === 0 ? [] : [`the keys of ${countOf(issuers.length, 'issuer')}${named(issuers)}`]),
    ...(upstreams.length === 0 ? [] : [`${countOf(upstreams.length, 'required upstream')}${named(upstreams)}`]),
  ];
  return parts.join(' and ');
}

/** What keeps it from being ready whenever it is so. */
function listBlocking({ phase, isAuditWritable, store }: ReadinessSources): readonly string[] {
  // Until it has started, what it needs is not there.
  if (phase === 'starting') return ['the gateway is starting'];
  return [
    ...(phase === 'stopping' ? ['the gateway is stopping'] : []),
    ...(isAuditWritable ? [] : ['the audit log cannot be written']),
    ...(store.isReady ? [] : [`the shared store: ${store.reason}`]),
  ];
}

function listRefusing({ isReady, refusesCallers, reason }: ReadinessSources['store']): readonly string[] {
  return isReady && refusesCallers === true ? [`the shared store: ${reason}`] : [];
}

/** Decides from what is known now and at the look before. */
export function assessReadiness(sources: ReadinessSources, before: StartupProgress, nowMs: number): Look {
  const { phase, store, awaited, waitMs } = sources;
  const isServing = phase === 'serving';
  const servingSinceMs = before.servingSinceMs ?? (isServing ? nowMs : undefined);
  const isMissing = isServing && awaited.issuers.length + awaited.upstreams.length > 0;
  const isWaitOver = before.hasBeenReady || nowMs - (servingSinceMs ?? nowMs) >= waitMs;
  const blocking = listBlocking(sources);
  const describe = (isNamed: boolean): readonly string[] => {
    const what = isWaitOver ? 'started without' : 'waiting for';
    const missing = isMissing ? [`${what} ${describeAwaited(awaited, isNamed)}`] : [];
    return [...blocking, ...listRefusing(store), ...missing];
  };
  const isReady = blocking.length === 0 && (!isMissing || isWaitOver);
  return {
    isReady,
    isWaiting: isMissing && !isWaitOver,
    reasons: describe(false),
    detail: describe(true).join('; '),
    isExpected: !isServing || (blocking.length === 0 && !isReady),
    progress: { servingSinceMs, hasBeenReady: before.hasBeenReady || isReady },
  };
}

/** Looks anew at each call, and reports what has changed since the last. */
export function createReadiness(
  sources: () => ReadinessSources,
  { emit, nowMs = () => performance.now() }: { readonly emit: Emit; readonly nowMs?: () => number },
): () => Readiness {
  let progress: StartupProgress = { servingSinceMs: undefined, hasBeenReady: false };
  let reported: string | undefined;
  return () => {
    const look = assessReadiness(sources(), progress, nowMs());
    const { isReady, detail, isExpected } = look;
    progress = look.progress;
    const report = `${isReady} ${detail}`;
    if (report !== reported) emit('readinessChanged', { isReady, detail, isExpected });
    reported = report;
    return look;
  };
}
