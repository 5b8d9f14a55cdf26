// The spans of a request, made from its record when it is over: one of the server, one of the exchange with the upstream,
// and one for each stage that took time. They say which method, tool, upstream, verdict, reason and how many bytes: no
// arguments, results, URIs, headers or names that nobody reviewed, and of the caller at most a keyed hash. Pure.
// Source: OpenTelemetry, semantic conventions for MCP (spans); docs/reference/traces.md.

import type { RequestRecord } from '../policy/record.js';
import type { Attributes } from '../protocol/otlp-values.js';
import type { TraceContext, TraceLink } from '../protocol/trace-context.js';
import { codeName, errorType, methodName, pinnedName, upstreamErrorType } from './labels.js';
import { OTHER } from './metric-table.js';

type SpanKind = 'internal' | 'server' | 'client';

export type Span = {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  /** Milliseconds since the epoch, with fractions, and how many milliseconds it lasted. */
  readonly startedAt: number;
  readonly ms: number;
  /** Empty if nothing failed. */
  readonly error: string;
  /** Those that are undefined or empty are left out. */
  readonly attributes: Attributes;
  readonly links: readonly TraceLink[];
};

export type SpanPorts = {
  /** Makes the id of a span. */
  readonly newSpanId: () => string;
  /** A keyed hash of who calls; undefined if spans say nothing of that. */
  readonly hashCaller: ((issuer: string, subject: string) => string) | undefined;
};

const NO_LINKS: readonly TraceLink[] = Object.freeze([]);

/** All spans of a sampled request; none if it is not traced. */
export function spansOf(record: RequestRecord, totalMs: number, ports: SpanPorts): readonly Span[] {
  const { trace } = record;
  if (trace === undefined) return [];
  return [serverSpan(record, trace, totalMs, ports), ...stageSpans(record, trace, ports), ...clientSpan(record, trace)];
}

function serverSpan(record: RequestRecord, trace: TraceContext, totalMs: number, { hashCaller }: SpanPorts): Span {
  const { id, partOf, principal, decision, args, result, httpMethod, aggregate, isDivided } = record;
  const { traceId, spanId, parentId, links } = trace;
  return {
    ...{ name: nameOf(record), kind: 'server', traceId, spanId, parentId, links },
    ...{ startedAt: record.receivedAt, ms: totalMs, error: isDivided === true ? '' : errorType(record) },
    attributes: {
      ...subjectOf(record),
      'mcp.protocol.version': record.client.version,
      'rpc.response.status_code': result.rpcCode === undefined ? undefined : codeName(result.rpcCode),
      'http.request.method': httpMethod,
      'http.response.status_code': result.http === 0 ? undefined : result.http,
      'user.hash': principal && hashCaller?.(principal.issuerUrl, principal.subject),
      'sallyport.endpoint': aggregate,
      'sallyport.decision.id': id,
      'sallyport.decision.part_of': partOf,
      'sallyport.decision.verdict': isDivided === true ? undefined : decision.verdict,
      'sallyport.decision.stage': decision.action === 'forwarded' || isDivided === true ? undefined : decision.stage,
      'sallyport.decision.reason': decision.reasons[0],
      'sallyport.arguments.size': args?.bytes,
      'sallyport.result.size': result.bytes,
    },
  };
}

/** What a record says of a stage: when it began, as a monotonic reading, and how many milliseconds it took. */
type StageTime = { readonly name: string; readonly startedMs: number; readonly ms: number };

function stageSpans(
  record: RequestRecord,
  { traceId, spanId }: TraceContext,
  { newSpanId }: SpanPorts,
): readonly Span[] {
  return stageTimes(record).map(({ name, startedMs, ms }) => ({
    ...{ name, kind: 'internal', traceId, spanId: newSpanId(), parentId: spanId, links: NO_LINKS, error: '' },
    ...{ startedAt: epochMs(record, startedMs), ms },
    attributes: name === 'decide' ? { 'sallyport.pinned': record.target.pin !== undefined } : {},
  }));
}

/**
 * The stages by the names that decisions have for them. A record has one time for each: what ran several times is one span
 * of their sum, and what was inspected of a response stands behind the wait for it.
 */
function stageTimes({ startedMs, decidedMs, exchange, latency }: RequestRecord): readonly StageTime[] {
  const { auth, policy, inspect, upstream } = latency;
  const afterDecision = decidedMs === undefined ? startedMs + auth : decidedMs + policy;
  const guarded = exchange?.inspectedMs ?? inspect;
  const answeredMs = exchange === undefined ? afterDecision : exchange.startedMs + upstream;
  const times = [
    { name: 'authn', startedMs, ms: auth },
    { name: 'decide', startedMs: decidedMs ?? startedMs, ms: policy },
    { name: 'guard', startedMs: afterDecision, ms: guarded },
    { name: 'inspect', startedMs: answeredMs, ms: inspect - guarded },
  ];
  return times.filter(({ ms }) => ms > 0);
}

function clientSpan(record: RequestRecord, { traceId, spanId, upstreamSpanId }: TraceContext): readonly Span[] {
  const { exchange, latency } = record;
  if (exchange === undefined) return [];
  const own = { traceId, spanId: upstreamSpanId, parentId: spanId, links: NO_LINKS };
  const time = { startedAt: epochMs(record, exchange.startedMs), ms: latency.upstream };
  const attributes = subjectOf(record);
  return [{ name: nameOf(record), kind: 'client', ...own, ...time, error: upstreamErrorType(record), attributes }];
}

/** What a request is about. */
function subjectOf(record: RequestRecord): Span['attributes'] {
  const { kind } = record.target;
  const isCall = kind === 'tool' && record.target.method === 'tools/call';
  return {
    'mcp.method.name': methodName(record),
    'gen_ai.operation.name': isCall ? 'execute_tool' : undefined,
    'gen_ai.tool.name': kind === 'tool' ? pinnedName(record) : undefined,
    'gen_ai.prompt.name': kind === 'prompt' ? pinnedName(record) : undefined,
    'network.protocol.name': 'http',
    'network.transport': 'tcp',
    'sallyport.upstream': record.upstream,
  };
}

/** The method and what it is about; a stream of a session has neither. */
function nameOf(record: RequestRecord): string {
  const { kind } = record.target;
  const method = methodName(record);
  if (method === OTHER && record.httpMethod !== 'POST') return record.httpMethod;
  const name = kind === 'tool' || kind === 'prompt' ? pinnedName(record) : OTHER;
  return name === OTHER ? method : `${method} ${name}`;
}

/** A monotonic reading of the request as milliseconds since the epoch. */
function epochMs({ receivedAt, startedMs }: RequestRecord, readingMs: number): number {
  return receivedAt + (readingMs - startedMs);
}
