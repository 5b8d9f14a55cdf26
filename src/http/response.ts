// Writes a response to the client's socket, and renders refusals that precede authentication. Decides nothing; a
// client that has disconnected is not an error here.

import type { ServerResponse } from 'node:http';
import { REASONS } from '../policy/reasons.js';
import { refuseWith, renderRefusal } from '../policy/refusal.js';
import {
  type Body,
  isInPieces,
  type Outgoing,
  type ResponseHeaders,
  sizeOfBytes,
} from '../protocol/transport.js';
import type { EdgeRefusal } from './request-checks.js';

const NO_CONTENT = 204;

/** An `Outgoing` on top of a node:http response. */
export function createOutgoing(response: ServerResponse): Outgoing {
  return new ResponseWriter(response);
}

class ResponseWriter implements Outgoing {
  readonly #response: ServerResponse;
  #hasBody = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get isClosed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  addHeader(name: string, value: string): void {
    if (!this.#response.headersSent) this.#response.setHeader(name, value);
  }

  send(status: number, headers: ResponseHeaders, body: Body): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : sizeOfBytes(body);
    const list: (string | number)[] = [];
    for (const name in headers) list.push(name, headers[name] ?? '');
    // A response that cannot have a body has no Content-Length either (RFC 9110 §8.6).
    if (status !== NO_CONTENT) list.push('content-length', length);
    // Node accepts names and values in one list, which its types do not declare.
    response.writeHead(status, list as string[]);
    if (!isInPieces(body)) return void response.end(body);
    // Everything written in one turn of the event loop leaves as one socket write.
    for (const piece of body) response.write(piece);
    response.end();
  }

  open(status: number, headers: ResponseHeaders): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    response.writeHead(status, headers);
    // A stream may stay silent for long, so its headers are flushed in this turn, with whatever else it writes
    // in it.
    setImmediate(() => {
      if (!this.#hasBody && !response.destroyed && !response.writableEnded) response.flushHeaders();
    });
  }

  write(bytes: Uint8Array | string): void | Promise<void> {
    const response = this.#response;
    this.#hasBody = true;
    if (response.destroyed || response.writableEnded || response.write(bytes)) return;
    return new Promise((resolve) => {
      const go = (): void => {
        response.off('drain', go);
        response.off('close', go);
        resolve();
      };
      response.on('drain', go);
      response.on('close', go);
    });
  }

  end(): void {
    if (!this.#response.writableEnded) this.#response.end();
  }

  disconnect(): void {
    this.#response.destroy();
  }
}

type EdgeBody = {
  readonly headers: { readonly [name: string]: string };
  readonly text: string;
};

const TEXT_TYPE = 'text/plain; charset=utf-8';
const NOTHING: EdgeBody = { headers: {}, text: '' };

/**
 * Renders a refusal that precedes authentication: plain text that names nothing, or the JSON-RPC error of the
 * reason, so that a client of either era recognizes it as the gateway's (docs/contract.md §6). For a path or
 * method that does not exist, the body says what to use instead or is empty.
 */
export function edgeBody(
  { reason, instead }: Pick<EdgeRefusal, 'reason' | 'instead'>,
  decisionId: string,
): EdgeBody {
  if (instead !== undefined) return { headers: { 'content-type': TEXT_TYPE }, text: instead };
  if (reason === undefined) return NOTHING;
  if (REASONS[reason].visible.as !== 'error') {
    return {
      headers: { 'sallyport-decision': decisionId, 'content-type': TEXT_TYPE },
      text: REASONS[reason].text,
    };
  }
  const { headers, body } = renderRefusal(refuseWith(reason), {
    decisionId,
    protocol: undefined,
    requestId: undefined,
    target: { kind: 'none' },
    method: undefined,
    challenge: () => '',
  });
  return { headers, text: body };
}
