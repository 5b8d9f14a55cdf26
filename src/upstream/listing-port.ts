// Joins the lister to the client of an upstream: requests for the gateway itself, or for the caller whose
// session is opened; the answer's bytes as they come. Never sees a token: whom they are for is all it knows.

import type { UpstreamClient } from './client.js';
import type { ListingError, ListingRequest } from './listing-call.js';
import type { OnBehalf } from './presenter.js';

type Outcome = Awaited<ReturnType<UpstreamClient['request']>>;
type Reason = Extract<Outcome, { readonly kind: 'fault' }>['reason'];

/** What a fault of a connection is to a listing. */
export const LISTING_ERRORS: { readonly [reason in Reason]: ListingError } = {
  overloaded: 'unavailable',
  'upstream-unavailable': 'unavailable',
  'upstream-timeout': 'timeout',
  'upstream-protocol': 'protocol',
  'upstream-credentials': 'credentials',
};

/** The port of a lister over an upstream's client. */
export function createListingRequest(
  client: Pick<UpstreamClient, 'request'>,
  by: OnBehalf,
): ListingRequest {
  return async ({ method, headers, body, timeoutMs }) => {
    const sent = body === undefined ? {} : { body };
    const outcome = await client.request({ by, method, headers, timeoutMs, ...sent });
    if (outcome.kind === 'fault') return { failure: LISTING_ERRORS[outcome.reason] };
    const chunks = iterate(outcome);
    return {
      status: outcome.status,
      headers: outcome.headers,
      body: { [Symbol.asyncIterator]: () => chunks },
    };
  };
}

function iterate(
  response: Exclude<Outcome, { readonly kind: 'fault' }>,
): AsyncIterator<Uint8Array> {
  let bytes = 0;
  return {
    async next() {
      const chunk = await response.next();
      if (typeof chunk !== 'object') response.release();
      if (chunk === undefined) return { done: true, value: undefined };
      if (typeof chunk === 'string') throw new Error(chunk);
      bytes += chunk.byteLength;
      if ((await response.hold?.(bytes)) === 'overloaded') throw new Error('overloaded');
      return { done: false, value: chunk };
    },
    async return() {
      response.abort();
      return { done: true, value: undefined };
    },
  };
}
