// Where the spans of traces go: one export for the receiver that is configured, replaced at a reload, over a connection
// under the address rules of everything that the gateway connects to. docs/reference/traces.md.

import { randomBytes } from 'node:crypto';
import type { TracingSettings } from '../config/settings.js';
import type { Emit, GatewayEvents } from '../policy/events.js';
import type { KeyRing } from '../state/derived-keys.js';
import type { Build } from '../telemetry/metrics.js';
import { createSpanExport, type PostOutcome, type SpanExport } from '../telemetry/span-export.js';
import type { GuardedFetch } from '../upstream/safe-fetch.js';

type TraceExportPorts = {
  /** Makes the client of a receiver whose certificate these authorities, or those of the system, have signed. */
  readonly open: (ca: string | undefined) => Pick<GuardedFetch, 'postMessage' | 'close'>;
  readonly emit: Emit;
  readonly ring: Pick<KeyRing, 'hmac'>;
  readonly build: Build;
  /** Which gateway this is, as in the audit log. */
  readonly replica: { readonly instance: string; readonly host: string };
};

export type TraceExport = {
  add(event: GatewayEvents['traced']): void;
  /** Exports so from now on; undefined: not at all. What waits for a receiver that is as before is kept. */
  use(settings: TracingSettings | undefined): void;
  /** Why spans do not arrive; undefined while they do. */
  error(): string | undefined;
  close(): Promise<void>;
};

/** Of the hash by which spans tell callers apart. */
const CALLER_PURPOSE = 'trace-caller';
const SPAN_ID_BYTES = 8;
/** Nothing in the body of a response is read. */
const NO_BODY = 0;
/** Whose key is that of no receiver. */
const NO_RECEIVER = { sampling: 0, callerSampledPerSecond: 0 };
/** What would fail again in the same way. */
const LASTING: ReadonlySet<string> = new Set(['refused-address', 'redirect', 'invalid']);

export function createTraceExport(ports: TraceExportPorts): TraceExport {
  let current: { readonly key: string; readonly spans: SpanExport; close(): Promise<void> } | undefined;

  function create(key: string, settings: TracingSettings): NonNullable<typeof current> {
    const { emit, ring, build, replica } = ports;
    const { callers, otlp } = settings;
    const connection = ports.open(otlp.ca);
    const spans = createSpanExport({
      emit,
      post: (body) => postSpans(connection, otlp, body),
      newSpanId: () => randomBytes(SPAN_ID_BYTES).toString('hex'),
      hashCaller:
        callers === 'hashed'
          ? (issuer, subject) => ring.hmac(CALLER_PURPOSE, JSON.stringify([issuer, subject]))
          : undefined,
      resource: {
        'service.name': 'sallyport',
        'service.version': build.version,
        'service.instance.id': replica.instance,
        'host.name': replica.host,
      },
      version: build.version,
    });
    return {
      key,
      spans,
      async close() {
        await spans.close();
        await connection.close();
      },
    };
  }

  return {
    add: ({ record, totalMs }) => current?.spans.add(record, totalMs),
    use(settings) {
      const { sampling: _, callerSampledPerSecond: __, ...receiver } = settings ?? NO_RECEIVER;
      const key = JSON.stringify(receiver);
      if (current?.key === key) return;
      void current?.close();
      current = settings === undefined ? undefined : create(key, settings);
    },
    error: () => current?.spans.error(),
    async close() {
      await current?.close();
      current = undefined;
    },
  };
}

async function postSpans(
  { postMessage }: Pick<GuardedFetch, 'postMessage'>,
  { url, headers, network, plaintext, timeoutMs }: TracingSettings['otlp'],
  body: string,
): Promise<PostOutcome> {
  const message = { headers: { ...headers, 'content-type': 'application/json' }, body };
  const outcome = await postMessage(url, message, { network, plaintext, maxBytes: NO_BODY, timeoutMs });
  if (outcome.ok) return outcome;
  // Where a redirect leads may repeat the URL, in which there may be a key.
  const detail = outcome.why === 'redirect' ? 'answered with a redirect' : outcome.detail;
  return { ok: false, isLasting: LASTING.has(outcome.why), detail };
}
