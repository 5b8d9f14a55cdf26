// Sends spans to their receiver, in batches and one request at a time. No request waits for it: what does not fit into the
// queue is dropped and counted, and a receiver that does not take a batch is tried again a few times, with pauses. Where
// spans go, and how their connection is made, is up to who provides `post`. docs/reference/traces.md; OpenTelemetry
// Protocol 1.x, OTLP/HTTP (failures).

import type { Emit } from '../policy/events.js';
import type { RequestRecord } from '../policy/record.js';
import { bodyOf, encodeSpan, type Resource } from './otlp.js';
import { type SpanPorts, spansOf } from './spans.js';

/** What became of one request. `isLasting`: it would fail again in the same way. */
export type PostOutcome =
  | { readonly ok: true; readonly status: number }
  | { readonly ok: false; readonly isLasting: boolean; readonly detail: string };

export type SpanExportPorts = SpanPorts & {
  readonly post: (body: string) => Promise<PostOutcome>;
  readonly emit: Emit;
  readonly resource: Resource;
  /** Version of the program. */
  readonly version: string;
};

export type SpanExport = {
  /** Queues the spans of a request that is over. Throws nothing and waits for nothing. */
  add(record: RequestRecord, totalMs: number): void;
  /** Why spans do not arrive; undefined while they do. */
  error(): string | undefined;
  /** Sends what is queued, for a bounded time. */
  close(): Promise<void>;
};

const SEND_EVERY_MS = 1_000;
/** Spans that wait; a request has up to seven. */
const MAX_QUEUED = 8_192;
const MAX_BATCH = 1_024;
/** Pauses before a batch is sent again. */
const PAUSES_MS = [1_000, 5_000, 20_000];
const CLOSE_WITHIN_MS = 2_000;
const LAST_SUCCESS = 299;
/** The statuses after which a client tries again (OTLP/HTTP, retryable response codes). */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Creates the export to one receiver. Nothing is sent before there is something to send. */
export function createSpanExport(ports: SpanExportPorts): SpanExport {
  const { post, emit, resource, version } = ports;
  let queue: string[] = [];
  let failure: string | undefined;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  const closing = new AbortController();

  function schedule(): void {
    if (timer !== undefined || sending !== undefined || closing.signal.aborted) return;
    timer = setTimeout(start, queue.length >= MAX_BATCH ? 0 : SEND_EVERY_MS);
    timer.unref();
  }

  function start(): void {
    clearTimeout(timer);
    timer = undefined;
    sending = sendBatch().finally(() => {
      sending = undefined;
      if (queue.length > 0) schedule();
    });
  }

  async function sendBatch(): Promise<void> {
    const batch = queue.splice(0, MAX_BATCH);
    const body = bodyOf(batch, resource, version);
    for (let attempt = 0; ; attempt += 1) {
      const failed = failureOf(await post(body).catch(() => UNSENT));
      if (failed === undefined) return settle('exported', batch.length, undefined);
      failure = failed.detail;
      const pauseMs = PAUSES_MS[attempt];
      if (failed.isLasting || pauseMs === undefined || closing.signal.aborted)
        return settle('failed', batch.length, failed.detail);
      await pause(pauseMs, closing.signal);
    }
  }

  function settle(outcome: 'exported' | 'failed', count: number, detail: string | undefined): void {
    failure = detail;
    if (detail === undefined) dropped = 0;
    emit('spans', { outcome, count });
  }

  return {
    add(record, totalMs) {
      const spans = spansOf(record, totalMs, ports);
      if (queue.length + spans.length > MAX_QUEUED) {
        dropped += spans.length;
        emit('spans', { outcome: 'dropped', count: spans.length });
        return;
      }
      for (const span of spans) queue.push(encodeSpan(span));
      schedule();
    },
    error() {
      if (failure !== undefined) return `spans do not arrive: the receiver ${failure}`;
      return dropped > 0 ? 'spans are dropped, because more wait than are sent' : undefined;
    },
    async close() {
      closing.abort();
      clearTimeout(timer);
      const last = (async () => {
        await sending;
        while (queue.length > 0 && failure === undefined) await sendBatch();
      })();
      await Promise.race([last, pause(CLOSE_WITHIN_MS)]);
      if (queue.length > 0) emit('spans', { outcome: 'dropped', count: queue.length });
      queue = [];
    },
  };
}

const UNSENT: PostOutcome = { ok: false, isLasting: false, detail: 'could not be reached' };

type Failure = { readonly isLasting: boolean; readonly detail: string };

function failureOf(outcome: PostOutcome): Failure | undefined {
  if (!outcome.ok) return outcome;
  const { status } = outcome;
  if (status <= LAST_SUCCESS) return undefined;
  return { isLasting: !TRANSIENT_STATUSES.has(status), detail: `answered with status ${status}` };
}

/** Ends early with the signal. Keeps no process alive. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal?.addEventListener('abort', end, { once: true });
  });
}
