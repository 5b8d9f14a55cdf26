// Writes an answer to the client's socket. Decides nothing; a client that is gone is no error here.

import type { ServerResponse } from 'node:http';
import type { Outgoing } from '../mcp/transport.js';

const NO_CONTENT = 204;

/** An `Outgoing` over one response of node:http. */
export function createOutgoing(response: ServerResponse): Outgoing {
  let hasBody = false;
  return {
    get isClosed() {
      return response.destroyed || response.writableEnded;
    },
    also(name, value) {
      if (!response.headersSent) response.setHeader(name, value);
    },
    send(status, headers, body) {
      if (response.headersSent || response.destroyed) return;
      const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
      // An answer that cannot have a body has no length either (RFC 9110 §8.6).
      if (status === NO_CONTENT) response.writeHead(status, headers);
      else response.writeHead(status, { ...headers, 'content-length': length });
      response.end(body);
    },
    open(status, headers) {
      if (response.headersSent || response.destroyed) return;
      response.writeHead(status, headers);
      // A stream may be silent for long, so headers leave in this turn, with what else it has to write.
      setImmediate(() => {
        if (!hasBody && !response.destroyed && !response.writableEnded) response.flushHeaders();
      });
    },
    write(bytes) {
      hasBody = true;
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
    },
    end() {
      if (!response.writableEnded) response.end();
    },
    cut() {
      response.destroy();
    },
  };
}
