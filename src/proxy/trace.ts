// The trace of a request: whose ids it has, what it is linked to, and under which it goes on to the upstream. The trace of
// a caller is continued where its issuer is trusted to name one. Elsewhere the request begins a trace of its own, with a
// link to the caller's; so it does before an upstream where a flow ends, because an id that its caller chose could
// carry what the flow keeps from it. What is exported is up to the configuration: the mark of a caller counts only where
// its issuer is trusted with that too, and within a bound. Nothing of this runs while tracing is not configured.
// docs/reference/traces.md.

import { randomBytes } from 'node:crypto';
import { type AuthorizedRequest, replaceAdmitted } from '../policy/obligations.js';
import type { Caller, Principal } from '../policy/principal.js';
import { fold, type RequestRecord } from '../policy/record.js';
import type { Json } from '../protocol/jsonrpc.js';
import {
  readTraceparent,
  type TraceContext,
  type TraceLink,
  type TraceParent,
  traceparentOf,
} from '../protocol/trace-context.js';
import { withTraceparent } from '../protocol/trace-meta.js';
import type { Incoming } from '../protocol/transport.js';
import type { Snapshot, TraceTerms } from './ports.js';

/** What decides about the trace of a request. */
type Traced = { readonly incoming: Incoming; readonly record: RequestRecord };

/** Begins a trace, with which the request is recorded until its caller is known. */
export function beginTrace({ incoming, record }: Traced, { sampling }: TraceTerms): void {
  const { partOf } = incoming.trace ?? {};
  fold(record, {
    trace: partOf === undefined ? rootTrace(sampling, linksTo(readHeader(incoming))) : partTrace(partOf, []),
  });
}

/**
 * Continues the trace of a caller that may name one, or of the request that this is a part of. `inMeta`: the
 * `traceparent` of the message, which counts more than the header of its transport (OpenTelemetry, MCP conventions).
 */
export function continueTrace(
  { incoming, record }: Traced,
  { issuer }: Pick<Principal, 'issuer'>,
  terms: TraceTerms,
  { inMeta, snapshot }: { readonly inMeta?: Json | undefined; readonly snapshot?: Snapshot } = {},
): void {
  const { partOf, isPassedOn = false } = incoming.trace ?? {};
  const ofMessage = isPassedOn ? undefined : readTraceparent(inMeta);
  const ofHeader = partOf === undefined ? readHeader(incoming) : undefined;
  const named = ofMessage ?? ofHeader;
  const isFree = snapshot === undefined || !endsFlow(snapshot);
  const links = linksTo(ofMessage, ofHeader);
  const isContinued = named !== undefined && isFree && terms.trusted.has(issuer);
  const trace = isContinued
    ? callersTrace(named, isExported({ incoming, record }, named, issuer, terms), links)
    : ownTrace(terms.sampling, partOf, isFree, links);
  fold(record, { trace });
}

/**
 * Whether a trace of a caller is exported: as it is marked where its issuer is trusted with that, and otherwise as was
 * chosen when the request came. The id decides nothing, because the caller has chosen it.
 */
function isExported({ record }: Traced, named: TraceParent, issuer: string, terms: TraceTerms): boolean {
  const { trace } = record;
  if (!terms.mayMark.has(issuer)) return trace?.isSampled ?? isChosen(newId(TRACE_ID_BYTES), terms.sampling);
  // What header and message name of one request is taken from the bound once.
  return named.isSampled && ((trace?.isCallers === true && trace.isSampled) || terms.takeMarked());
}

/**
 * Begins a trace of the gateway in place of its caller's, where a reload has brought a flow that ends at the upstream while
 * the request waited.
 */
export function leaveCallersTrace(call: {
  readonly record: RequestRecord;
  readonly snapshot: Snapshot;
  caller?: Caller;
}): void {
  const { record, snapshot, caller } = call;
  const { trace } = record;
  if (trace?.isCallers !== true || !endsFlow(snapshot)) return;
  const { traceId, parentId } = trace;
  const parent = parentId === undefined ? undefined : { traceId, spanId: parentId };
  const own = rootTrace(snapshot.tracing?.sampling ?? 0, linksTo(parent, ...trace.links));
  fold(record, { trace: own });
  if (caller !== undefined) call.caller = { ...caller, traceparent: traceparentOf(own) };
}

/** A trace under an id of the gateway's, or of a caller's that the request above has. */
function ownTrace(
  sampling: number,
  partOf: TraceContext | undefined,
  isFree: boolean,
  links: readonly TraceLink[],
): TraceContext {
  if (partOf === undefined) return rootTrace(sampling, links);
  const isKept = isFree || !partOf.isCallers;
  return isKept ? partTrace(partOf, links) : rootTrace(sampling, [...linksTo(partOf), ...links]);
}

/** The request with the trace in its message, as far as that is expected there. */
export function carryTrace({ trace }: RequestRecord, authorized: AuthorizedRequest): AuthorizedRequest {
  if (trace === undefined) return authorized;
  const admitted = withTraceparent(authorized.admitted, traceparentOf(trace));
  return admitted === authorized.admitted ? authorized : replaceAdmitted(authorized, admitted);
}

/** A header that came twice names nothing. */
function readHeader({ headers, repeated }: Incoming): TraceParent | undefined {
  const { traceparent } = headers;
  return traceparent === undefined || repeated.has('traceparent') ? undefined : readTraceparent(traceparent);
}

function endsFlow({ policies: { flows }, upstream }: Snapshot): boolean {
  return flows !== undefined && flows.anyOf(upstream).length > 0;
}

function rootTrace(sampling: number, links: readonly TraceLink[]): TraceContext {
  const traceId = newId(TRACE_ID_BYTES);
  return { ...newSpans(traceId), parentId: undefined, isSampled: isChosen(traceId, sampling), isCallers: false, links };
}

function partTrace({ traceId, spanId, isSampled, isCallers }: TraceContext, links: readonly TraceLink[]): TraceContext {
  return { ...newSpans(traceId), parentId: spanId, isSampled, isCallers, links };
}

function callersTrace({ traceId, spanId }: TraceParent, isSampled: boolean, links: readonly TraceLink[]): TraceContext {
  const others = links.filter((link) => link.spanId !== spanId || link.traceId !== traceId);
  return { ...newSpans(traceId), parentId: spanId, isSampled, isCallers: true, links: others };
}

function newSpans(traceId: string): Pick<TraceContext, 'traceId' | 'spanId' | 'upstreamSpanId'> {
  return { traceId, spanId: newId(SPAN_ID_BYTES), upstreamSpanId: newId(SPAN_ID_BYTES) };
}

function linksTo(...parents: readonly (TraceLink | undefined)[]): readonly TraceLink[] {
  const links = parents.flatMap((parent) => (parent === undefined ? [] : [parent]));
  const isNew = (link: TraceLink, at: number): boolean =>
    links.findIndex(({ spanId }) => spanId === link.spanId) === at;
  return links.filter(isNew).map(({ traceId, spanId }) => ({ traceId, spanId }));
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** Ids are taken from random bytes that are made together. */
const POOL_BYTES = 4_096;
let pool = Buffer.alloc(0);
let used = 0;

/** Random, so that an id carries nothing and nobody can guess it. All zeros, which is no id, will not come. */
function newId(bytes: number): string {
  if (used + bytes > pool.length) {
    pool = randomBytes(POOL_BYTES);
    used = 0;
  }
  used += bytes;
  return pool.toString('hex', used - bytes, used);
}

/** The last digits of an id of the gateway's decide. */
const DECIDING_DIGITS = 8;
const DECIDING_RANGE = 16 ** DECIDING_DIGITS;

function isChosen(traceId: string, sampling: number): boolean {
  return Number.parseInt(traceId.slice(-DECIDING_DIGITS), 16) < sampling * DECIDING_RANGE;
}
