// What a refusal of the edge says on the wire: a bare text that names nothing, or the JSON-RPC error of
// the reason, so that a client of either era knows it for the gateway's own (contract §6).

import { REASONS, type Reason } from '../policy/reasons.js';
import { refuseWith, renderRefusal } from '../policy/refusal.js';

export type EdgeBody = {
  readonly headers: { readonly [name: string]: string };
  readonly text: string;
};

const NOTHING: EdgeBody = { headers: {}, text: '' };

/** Headers and body for a reason; nothing at all for a path or method that does not exist. */
export function edgeBody(reason: Reason | undefined, decisionId: string): EdgeBody {
  if (reason === undefined) return NOTHING;
  if (REASONS[reason].visible.as !== 'error') {
    const type = 'text/plain; charset=utf-8';
    return {
      headers: { 'sallyport-decision': decisionId, 'content-type': type },
      text: REASONS[reason].text,
    };
  }
  const { headers, body } = renderRefusal(refuseWith(reason), {
    decisionId,
    era: undefined,
    requestId: undefined,
    target: { kind: 'none' },
    method: undefined,
    challenge: () => '',
  });
  return { headers, text: body };
}
