// Spans as the body of a request of OTLP over HTTP, in its JSON form: ids in hex, 64-bit numbers as text. Pure.
// Source: OpenTelemetry Protocol 1.x (OTLP/HTTP, JSON Protobuf encoding; trace/v1/trace.proto);
// docs/decisions/0031-spans-without-an-sdk.md.

import { type Attributes, attributesOf, nanosecondsOf } from '../protocol/otlp-values.js';
import type { Span } from './spans.js';

/** Of whom the spans are. */
export type Resource = Attributes;

/** `SpanKind` of trace.proto. */
const KINDS: { readonly [kind in Span['kind']]: number } = { internal: 1, server: 2, client: 3 };
const STATUS_ERROR = 2;

/** One span; {@link bodyOf} takes it. */
export function encodeSpan(span: Span): string {
  const { name, kind, traceId, spanId, parentId, startedAt, ms, error, attributes, links } = span;
  const all = error === '' ? attributes : { ...attributes, 'error.type': error };
  return JSON.stringify({
    ...{ traceId, spanId, parentSpanId: parentId, name, kind: KINDS[kind] },
    ...{ startTimeUnixNano: nanosecondsOf(startedAt), endTimeUnixNano: nanosecondsOf(startedAt + Math.max(0, ms)) },
    attributes: attributesOf(all),
    links: links.length === 0 ? undefined : links,
    status: error === '' ? undefined : { code: STATUS_ERROR },
  });
}

/** The body of a request, of spans that were encoded. */
export function bodyOf(spans: readonly string[], resource: Resource, version: string): string {
  const scope = JSON.stringify({ name: 'sallyport', version });
  const head = JSON.stringify({ attributes: attributesOf(resource) });
  return `{"resourceSpans":[{"resource":${head},"scopeSpans":[{"scope":${scope},"spans":[${spans.join(',')}]}]}]}`;
}
