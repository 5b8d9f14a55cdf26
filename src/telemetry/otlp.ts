// Spans as the body of a request of OTLP over HTTP, in its JSON form: ids in hex, 64-bit numbers as text. Pure.
// Source: OpenTelemetry Protocol 1.x (OTLP/HTTP, JSON Protobuf encoding; trace/v1/trace.proto);
// docs/decisions/0031-spans-without-an-sdk.md.

import type { Attribute, Span } from './spans.js';

/** Of whom the spans are. */
export type Resource = Readonly<Record<string, Attribute | undefined>>;

/** `SpanKind` of trace.proto. */
const KINDS: { readonly [kind in Span['kind']]: number } = { internal: 1, server: 2, client: 3 };
const STATUS_ERROR = 2;
const NANOSECONDS = 1e6;

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

/** Milliseconds since the epoch in nanoseconds: full ones exactly, their fractions by a double. */
function nanosecondsOf(epochMs: number): string {
  const integer = Math.floor(epochMs);
  return String(BigInt(integer) * BigInt(NANOSECONDS) + BigInt(Math.round((epochMs - integer) * NANOSECONDS)));
}

function attributesOf(attributes: Resource): readonly object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [{ key, value: otlpValue(value) }],
  );
}

function otlpValue(value: Attribute): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
