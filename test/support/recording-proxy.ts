// An HTTP proxy on loopback that forwards what comes as it comes, header by header, and keeps every request
// with its response in the order in which the requests arrived.

import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A header as it stood on the wire, in its own spelling. */
export type RawHeader = readonly [name: string, value: string];

export type RecordedExchange = {
  readonly method: string;
  readonly path: string;
  readonly requestHeaders: readonly RawHeader[];
  readonly requestBody: string;
  /** 0 until the response begins. */
  readonly status: number;
  readonly responseHeaders: readonly RawHeader[];
  /** What has come so far: a stream may be open. */
  readonly responseBody: string;
};

export type RecordingProxy = {
  readonly port: number;
  /** Where requests go from now on, on loopback. */
  forwardTo(port: number): void;
  exchanges(): readonly RecordedExchange[];
  close(): Promise<void>;
};

type Writable<T> = { -readonly [key in keyof T]: T[key] };

function pairs(rawHeaders: readonly string[]): RawHeader[] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as const] : []));
}

async function readText(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
  return text;
}

/** The value of a header, in lower-case spelling of its name. */
export function headerOf(headers: readonly RawHeader[], name: string): string | undefined {
  return headers.find(([one]) => one.toLowerCase() === name)?.[1];
}

/** Starts it on a free port. */
export async function startRecordingProxy(): Promise<RecordingProxy> {
  const recorded: Writable<RecordedExchange>[] = [];
  let target = 0;

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url = '', rawHeaders } = incoming;
    const exchange: Writable<RecordedExchange> = {
      method,
      path: url,
      requestHeaders: pairs(rawHeaders),
      requestBody: '',
      status: 0,
      responseHeaders: [],
      responseBody: '',
    };
    recorded.push(exchange);
    exchange.requestBody = await readText(incoming);
    const sent = request({
      ...{ host: '127.0.0.1', port: target, path: url, method, headers: rawHeaders },
      agent: false,
    });
    outgoing.once('close', () => sent.destroy());
    sent.once('error', () => outgoing.destroy());
    sent.end(exchange.requestBody);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    exchange.status = response.statusCode ?? 0;
    exchange.responseHeaders = pairs(response.rawHeaders);
    outgoing.writeHead(exchange.status, response.rawHeaders as never);
    outgoing.flushHeaders();
    for await (const text of response.setEncoding('utf8')) {
      exchange.responseBody += text;
      outgoing.write(text);
    }
    outgoing.end();
  }

  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    forwardTo(port) {
      target = port;
    },
    exchanges: () => recorded,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
