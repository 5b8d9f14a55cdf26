// Writes a response to the client's socket, and renders refusals that precede authentication. Decides nothing; a
// client that has disconnected is not an error here.

import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';
import { refuseWith, renderRefusal } from '../policy/decision.js';
import { REASONS } from '../policy/reasons.js';
import {
  type Body,
  isInPieces,
  type Outgoing,
  type Pieces,
  type ResponseHeaders,
  sizeOfBytes,
} from '../protocol/transport.js';
import type { EdgeRefusal } from './request-checks.js';

const NO_CONTENT = 204;

/**
 * Sends a complete response. INVARIANT: Fastify gets bytes, which it leaves alone: to a text it would add a charset, and
 * to an empty one a content type.
 */
export function sendBuffered(
  reply: FastifyReply,
  status: number,
  headers: ResponseHeaders,
  body: Uint8Array | string,
): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  reply.code(status).headers(headers);
  // A response that cannot have a body has no Content-Length either (RFC 9110 §8.6).
  if (status !== NO_CONTENT) reply.header('content-length', bytes.byteLength);
  reply.send(bytes.byteLength === 0 ? undefined : bytes);
}

/** An `Outgoing` on top of a Fastify reply, which is hijacked where the response is written in several pieces. */
export function createOutgoing(reply: FastifyReply): Outgoing {
  return new ResponseWriter(reply);
}

class ResponseWriter implements Outgoing {
  readonly #reply: FastifyReply;
  readonly #response: ServerResponse;
  #hasBody = false;

  constructor(reply: FastifyReply) {
    this.#reply = reply;
    this.#response = reply.raw;
  }

  get isClosed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  addHeader(name: string, value: string): void {
    if (!this.#response.headersSent) this.#response.setHeader(name, value);
  }

  send(status: number, headers: ResponseHeaders, body: Body): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    if (isInPieces(body)) this.#sendPieces(status, headers, body);
    else this.#sendBuffered(status, headers, body);
  }

  #sendPieces(status: number, headers: ResponseHeaders, pieces: Pieces): void {
    const response = this.#response;
    // Not by a spread with a further member, which would have a hidden class of its own for each response.
    response.writeHead(
      status,
      Object.assign({}, headers, { 'content-length': sizeOfBytes(pieces) }),
    );
    this.#reply.hijack();
    // Everything written in one turn of the event loop leaves as one socket write.
    for (const piece of pieces) response.write(piece);
    response.end();
  }

  #sendBuffered(status: number, headers: ResponseHeaders, body: Uint8Array | string): void {
    try {
      sendBuffered(this.#reply, status, headers, body);
    } catch (error) {
      // Fastify keeps the headers, also those that cannot be sent; they would prevent the refusal, too.
      for (const name in headers) this.#reply.removeHeader(name);
      throw error;
    }
  }

  open(status: number, headers: ResponseHeaders): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    response.writeHead(status, headers);
    this.#reply.hijack();
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
      const resume = (): void => {
        response.off('drain', resume);
        response.off('close', resume);
        resolve();
      };
      response.on('drain', resume);
      response.on('close', resume);
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

/** The bytes of a refusal for which there is no response object. */
export function encodeRefusal(refusal: EdgeRefusal, decisionId: string): string {
  const { headers, text } = edgeBody(refusal, decisionId);
  const length = Buffer.byteLength(text);
  const all = { ...headers, 'content-length': length, date: new Date().toUTCString() };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const status = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n`;
  return `${status}${lines.join('')}connection: close\r\n\r\n${text}`;
}
