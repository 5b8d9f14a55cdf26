// Receivers that are reached by HTTP: batches of lines, signed where a key is configured, and OpenTelemetry's logs
// (OTLP/HTTP with JSON). Addresses are those that upstreams may have; redirects are not followed.
// docs/reference/audit.md#delivery; opentelemetry.io/docs/specs/otlp; standardwebhooks.com.

import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { type AuditRecord, valueAt } from '../audit/chain.js';
import type { DeliverySettings } from '../config/settings.js';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import { attributesOf, nanosecondsOf } from '../protocol/otlp-values.js';
import { webhookSigner } from '../state/derived-keys.js';
import type { FetchRule, GuardedFetch } from '../upstream/safe-fetch.js';
import type { Attempt, Line, Receiver } from './delivery.js';
import { ocsfEvent, severityOf } from './ocsf.js';

const TIMEOUT_MS = 15_000;
/** Of a response: what a receiver says of lines that it did not take. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** Statuses that say of a batch that it is not taken as it is: smaller ones, or others, may be. */
const REFUSING: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** A line as a receiver gets it. */
export function renderLine(line: Line, format: DeliverySettings['format']): string {
  return format === 'native' ? line.text : JSON.stringify(ocsfEvent(line));
}

type Post = {
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
};

function ruleOf({ network, plaintext }: DeliverySettings): FetchRule {
  return { network, plaintext, maxBytes: MAX_RESPONSE_BYTES, timeoutMs: TIMEOUT_MS };
}

function headersOf({ headers }: DeliverySettings, request: Post): Readonly<Record<string, string>> {
  return { 'content-type': request.contentType, ...request.headers, ...headers };
}

const DELIVERED: Attempt = { outcome: 'delivered' };
const LAST_SUCCESS = 299;

/** What a status says of a batch. */
function attemptOf(status: number): Attempt {
  if (status <= LAST_SUCCESS) return DELIVERED;
  const why = `answered with status ${status}`;
  return REFUSING.has(status) ? { outcome: 'refused', why } : { outcome: 'failed', why, isAnswer: true };
}

/**
 * Posts batches as lines of JSON. Each has an id that is the same when it is sent again, and with a key a signature as
 * Standard Webhooks has it.
 */
export function createHttpReceiver(settings: DeliverySettings, fetch: GuardedFetch, now: () => number): Receiver {
  const sign = settings.secret === undefined ? undefined : webhookSigner(settings.secret);
  return {
    render: (line) => renderLine(line, settings.format),
    async send(parts) {
      const body = `${parts.join('\n')}\n`;
      const id = createHash('sha256').update(body).digest('base64url');
      const own = sign?.(id, body, now()) ?? { 'webhook-id': id };
      const headers = headersOf(settings, { contentType: 'application/x-ndjson', headers: own });
      const outcome = await fetch.postMessage(settings.url, { headers, body }, ruleOf(settings));
      return outcome.ok ? attemptOf(outcome.status) : { outcome: 'failed', why: outcome.detail };
    },
    close: () => fetch.close(),
  };
}

const INFO = { severityNumber: 9, severityText: 'INFO' };
const WARN = { severityNumber: 13, severityText: 'WARN' };
const ERROR = { severityNumber: 17, severityText: 'ERROR' };
const MEDIUM = 3;

function otlpSeverity(record: AuditRecord): typeof INFO {
  const severity = severityOf(record);
  if (severity > MEDIUM) return ERROR;
  return severity === MEDIUM ? WARN : INFO;
}

/** Attributes of a log record and the members that they have. */
const ATTRIBUTES: readonly (readonly [name: string, ...path: string[]])[] = [
  ['sallyport.event.id', 'id'],
  ['sallyport.event.type', 'type'],
  ['sallyport.epoch', 'gateway', 'epoch'],
  ['sallyport.decision.id', 'decision', 'id'],
  ['sallyport.decision.verdict', 'decision', 'verdict'],
  ['sallyport.upstream', 'target', 'upstream'],
  ['mcp.method.name', 'target', 'method'],
  ['enduser.id', 'actor', 'sub'],
];

function describe(record: AuditRecord): readonly object[] {
  const reasons = valueAt(record, 'decision', 'reasons');
  const all: (readonly [string, unknown])[] = [
    ...ATTRIBUTES.map(([name, ...path]) => [name, valueAt(record, ...path)] as const),
    ['gen_ai.tool.name', valueAt(record, 'target', 'method') === 'tools/call' && valueAt(record, 'target', 'name')],
    ['error.type', Array.isArray(reasons) && reasons[0]],
  ];
  return attributesOf(
    Object.fromEntries(all.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : []))),
  );
}

const TRACE_ID = /^[0-9a-f]{32}$/;
const SPAN_ID = /^[0-9a-f]{16}$/;

function traceOf(record: AuditRecord): { readonly traceId?: string; readonly spanId?: string } {
  const traceId = valueAt(record, 'trace', 'trace_id');
  const spanId = valueAt(record, 'trace', 'span_id');
  if (typeof traceId !== 'string' || !TRACE_ID.test(traceId)) return {};
  return typeof spanId === 'string' && SPAN_ID.test(spanId) ? { traceId, spanId } : { traceId };
}

function logRecord(line: Line, format: DeliverySettings['format'], nowMs: number): object {
  const { record = {} } = line;
  const ms = Date.parse(String(record['time']));
  return {
    timeUnixNano: nanosecondsOf(Number.isNaN(ms) ? nowMs : ms),
    observedTimeUnixNano: nanosecondsOf(nowMs),
    ...otlpSeverity(record),
    eventName: `sallyport.${String(record['type'] ?? 'unknown')}`,
    body: { stringValue: renderLine(line, format) },
    attributes: describe(record),
    ...traceOf(record),
  };
}

/** Sends batches as OpenTelemetry logs; the line is the body. */
export function createOtlpReceiver(settings: DeliverySettings, fetch: GuardedFetch, now: () => number): Receiver {
  const resource = JSON.stringify({
    attributes: attributesOf({ 'service.name': 'sallyport', 'host.name': hostname() }),
  });
  return {
    render: (line) => JSON.stringify(logRecord(line, settings.format, now())),
    async send(parts) {
      const scopeLogs = `[{"scope":{"name":"sallyport.audit"},"logRecords":[${parts.join()}]}]`;
      const body = `{"resourceLogs":[{"resource":${resource},"scopeLogs":${scopeLogs}}]}`;
      const headers = headersOf(settings, { contentType: 'application/json' });
      const outcome = await fetch.postForm(settings.url, { headers, body }, ruleOf(settings));
      if (outcome.ok && outcome.status <= LAST_SUCCESS) return readPartialSuccess(outcome.bytes, parts.length);
      // Of a body that cannot be read, the status says enough.
      if (outcome.status !== undefined) return attemptOf(outcome.status);
      return { outcome: 'failed', why: outcome.ok ? 'no status' : outcome.detail };
    },
    close: () => fetch.close(),
  };
}

/** A receiver may take a batch but for some of its records (OTLP, partial success). */
function readPartialSuccess(bytes: Uint8Array, sent: number): Attempt {
  const answer = bytes.length === 0 ? {} : parseObject(Buffer.from(bytes).toString('utf8'));
  if (answer === undefined) return { outcome: 'failed', why: 'answered with something else than OTLP' };
  const partial = answer['partialSuccess'];
  if (!isObject(partial)) return DELIVERED;
  const refused = Math.min(Math.floor(Number(partial['rejectedLogRecords'] ?? 0)), sent);
  if (!(refused > 0)) return DELIVERED;
  const { errorMessage: why } = partial;
  return { outcome: 'delivered', refused, ...(typeof why === 'string' && { why }) };
}
