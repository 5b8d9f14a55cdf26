// An upstream's answer told in another way: what is not told otherwise is asked of the answer itself.

import type { UpstreamResponse } from './transport.js';

type Amendments = Partial<Pick<UpstreamResponse, 'status' | 'headers' | 'readBody' | 'next'>>;

/** The same answer but for what is given. */
export function amendResponse(response: UpstreamResponse, changes: Amendments): UpstreamResponse {
  return {
    kind: 'answer',
    status: changes.status ?? response.status,
    headers: changes.headers ?? response.headers,
    readBody: changes.readBody ?? ((maxBytes, withinMs) => response.readBody(maxBytes, withinMs)),
    next: changes.next ?? (() => response.next()),
    hold: (bytes) => response.hold?.(bytes),
    release: () => response.release(),
    abort: () => response.abort(),
  };
}
