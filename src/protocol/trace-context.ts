// Trace context as it crosses the wire: the value `traceparent`, and the members of `_meta` that carry it from client to
// server beside the HTTP header. What is not exactly of the form is no context and is ignored, never repaired. Pure.
// Source: W3C Trace Context §3.2 and §4.3; MCP 2026-07-28, base protocol (`_meta`).

import { foldName } from '../text/json-members.js';
import type { Json, JsonObject } from './jsonrpc.js';

/** A span of somebody else's, in which work goes on. Ids in lower-case hex. */
export type TraceParent = { readonly traceId: string; readonly spanId: string; readonly isSampled: boolean };

/** A span that a trace refers to. */
export type TraceLink = Pick<TraceParent, 'traceId' | 'spanId'>;

/** The trace in which a request is recorded, and the span of the request itself. */
export type TraceContext = TraceParent & {
  /** The span that the request came from: of its caller, if that may name one, or of the request that it is a part of. */
  readonly parentId: string | undefined;
  /** The span of the exchange with the upstream. */
  readonly upstreamSpanId: string;
  /** The caller has chosen the id of the trace. */
  readonly isCallers: boolean;
  readonly links: readonly TraceLink[];
};

/** Version, trace id, span id and flags; a later version may have more behind them. Version `ff` is forbidden. */
const FORM = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;
/** Of the version 00, to which everything is exact. */
const LENGTH = 55;
/** A later version of it may be longer, and not by much. */
const MAX_LENGTH = 256;
const SAMPLED = 1;
const ZEROS = /^0+$/;

/** The context that a value names; `undefined` if it names none. */
export function readTraceparent(value: Json | undefined): TraceParent | undefined {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) return undefined;
  const [, version, traceId = '', spanId = '', flags = ''] = FORM.exec(value) ?? [];
  if (version === undefined || (version === '00' && value.length !== LENGTH)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

/** The value that names the exchange with the upstream. */
export function traceparentOf({ traceId, upstreamSpanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${upstreamSpanId}-${isSampled ? '01' : '00'}`;
}

export const TRACEPARENT = 'traceparent';
const MEMBERS: ReadonlySet<string> = new Set([TRACEPARENT, 'tracestate', 'baggage']);

/** True for a member of `_meta` that carries trace context, in any case. */
export function isTraceMember(name: string): boolean {
  return MEMBERS.has(foldName(name));
}

/** What the client said of its trace in `_meta`, and `_meta` without it. */
export function takeTraceMembers(meta: JsonObject): {
  readonly traceparent: Json | undefined;
  readonly rest: JsonObject;
} {
  const kept = Object.entries(meta).filter(([name]) => !isTraceMember(name));
  return { traceparent: meta[TRACEPARENT], rest: Object.fromEntries(kept) };
}
