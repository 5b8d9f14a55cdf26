// A receiver of OTLP over HTTP, for tests: it keeps every request and the spans in it, and answers as it is told.
// Source: OpenTelemetry Protocol 1.x, OTLP/HTTP with JSON (ids in hex, 64-bit numbers as text).

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ReceivedSpan = {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** Nanoseconds since the epoch. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number;
  readonly resource: Readonly<Record<string, unknown>>;
};

export type OtlpReceiver = {
  readonly url: string;
  readonly port: number;
  spans(): readonly ReceivedSpan[];
  /** The spans of one trace. */
  trace(traceId: string): readonly ReceivedSpan[];
  requests(): readonly { readonly headers: IncomingHttpHeaders; readonly path: string; readonly body: string }[];
  /** Answers from now on so, in place of a 200. */
  answer(how: (response: ServerResponse) => void): void;
  forget(): void;
  close(): Promise<void>;
};

// biome-ignore lint/suspicious/noExplicitAny: the body is read by its members
type Body = any;

function plainValue(value: Body): unknown {
  if ('intValue' in value) return Number(value.intValue);
  return value.stringValue ?? value.boolValue ?? value.doubleValue;
}

function attributesOf(list: readonly Body[] = []): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, plainValue(value)]));
}

function spansOf(body: Body): ReceivedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }: Body) =>
    scopeSpans.flatMap(({ spans }: Body) =>
      spans.map((span: Body) => ({
        ...{ name: span.name, kind: span.kind, traceId: span.traceId, spanId: span.spanId },
        parentSpanId: span.parentSpanId,
        ...{ start: BigInt(span.startTimeUnixNano), end: BigInt(span.endTimeUnixNano) },
        attributes: attributesOf(span.attributes),
        links: (span.links ?? []).map(({ traceId, spanId }: Body) => ({ traceId, spanId })),
        status: span.status?.code ?? 0,
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const received: { headers: IncomingHttpHeaders; path: string; body: string }[] = [];
  let spans: ReceivedSpan[] = [];
  const accept = (response: ServerResponse): void => {
    response.setHeader('content-type', 'application/json');
    response.end('{}');
  };
  let answer = accept;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      received.push({ headers: request.headers, path: request.url ?? '', body });
      spans.push(...spansOf(JSON.parse(body)));
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    port,
    spans: () => spans,
    trace: (traceId) => spans.filter((span) => span.traceId === traceId),
    requests: () => received,
    answer(how) {
      answer = how;
    },
    forget() {
      spans = [];
      received.length = 0;
      answer = accept;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The `tracing:` block of a gateway that sends all traces there at once. */
export function tracingTo({ url }: Pick<OtlpReceiver, 'url'>, more = ''): string {
  return `tracing: {otlp: {url: "${url}", network: loopback}, sampling: 1${more}}\n`;
}
