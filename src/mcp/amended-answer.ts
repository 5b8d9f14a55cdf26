// An upstream's answer told in another way: what is not told otherwise is asked of the answer itself.

import type { UpstreamAnswer } from './transport.js';

type Amendments = Partial<Pick<UpstreamAnswer, 'status' | 'headers' | 'whole' | 'next'>>;

/** The same answer but for what is given. */
export function amendAnswer(answer: UpstreamAnswer, changes: Amendments): UpstreamAnswer {
  return {
    kind: 'answer',
    status: changes.status ?? answer.status,
    headers: changes.headers ?? answer.headers,
    whole: changes.whole ?? ((maxBytes, withinMs) => answer.whole(maxBytes, withinMs)),
    next: changes.next ?? (() => answer.next()),
    hold: (bytes) => answer.hold?.(bytes),
    release: () => answer.release(),
    abort: () => answer.abort(),
  };
}
