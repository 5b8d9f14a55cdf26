// What a refusal of the edge says on the wire: a bare text that names nothing, or the JSON-RPC error of
// the reason, so that a client of either era knows it for the gateway's own (contract §6).

import { REASONS } from '../policy/reasons.js';
import { refuseWith, renderRefusal } from '../policy/refusal.js';
import type { EdgeRefusal } from './request.js';

export type EdgeBody = {
  readonly headers: { readonly [name: string]: string };
  readonly text: string;
};

const TEXT_TYPE = 'text/plain; charset=utf-8';
const NOTHING: EdgeBody = { headers: {}, text: '' };

/** Headers and body for a reason; for a path or method that does not exist what to use instead, or nothing at all. */
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
    era: undefined,
    requestId: undefined,
    target: { kind: 'none' },
    method: undefined,
    challenge: () => '',
  });
  return { headers, text: body };
}
