// Orders that hold a hostile upstream to one era: it answers the other as its specification says.

import { jsonBody } from './hostile-acts.js';
import type { Order } from './hostile-upstream.js';

export type UpstreamEra = 'sessions' | 'stateless';

const STATELESS = '2026-07-28';

/** An upstream of sessions: what claims to be stateless is no request that it knows. */
export const sessionsOnly: Order = (request) =>
  request.headers['mcp-protocol-version'] === STATELESS
    ? jsonBody(
        { jsonrpc: '2.0', id: request.id ?? 0, error: { code: -32000, message: 'Bad Request' } },
        400,
      )
    : undefined;

/** An upstream without sessions. */
export const statelessOnly: Order = (request) =>
  request.headers['mcp-protocol-version'] === STATELESS
    ? undefined
    : jsonBody(
        {
          jsonrpc: '2.0',
          id: request.id ?? 0,
          error: {
            code: -32022,
            message: 'Unsupported protocol version',
            data: { supported: [STATELESS], requested: '2025-11-25' },
          },
        },
        400,
      );

/** The order of an era. */
export function onlyIn(era: UpstreamEra): Order {
  return era === 'sessions' ? sessionsOnly : statelessOnly;
}

/** Orders of a test before the one that holds the upstream to its era: the first that gives an act counts. */
export function inTurn(era: Order, ...orders: readonly Order[]): Order {
  return (request) => {
    for (const order of [...orders, era]) {
      const act = order(request);
      if (act !== undefined) return act;
    }
    return undefined;
  };
}
