// The error by which a server of 2025-11-25 says that a person must open links first: its links are judged
// as those of a question are, and it passes only where such questions may be asked.
// Source: MCP 2025-11-25, elicitation, URL elicitation required error.

import { readLink } from '../inspect/elicitation.js';
import { applyEdits, spanOf } from '../mcp/json.js';
import { PLAIN_SESSION } from '../mcp/listing.js';
import { isObject, type Json, type RpcError } from '../mcp/message.js';
import { decideServerRequest } from '../policy/grants.js';
import { refuseWith } from '../policy/refusal.js';
import type { Subject, Verdict } from './subject.js';

export const URL_ELICITATION_REQUIRED = -32042;

/** Judges such an error, which was inspected before. Withheld whole where one link may not be shown. */
export function checkUrlError(
  subject: Subject,
  inspected: Verdict,
  text: string,
  error: RpcError,
): Verdict {
  if (inspected.kind !== 'own') return inspected;
  const links = linksOf(error.data);
  if (!mayElicitUrl(subject) || links === undefined) {
    return { kind: 'refused', refusal: refuseWith('elicitation-url') };
  }
  let shown = inspected.text ?? text;
  for (const [index, link] of links.entries()) {
    const span = spanOf(shown, ['error', 'data', 'elicitations', index, 'url']);
    const clean = readLink(link);
    // Where inspection has cut something out of a link, it held what may not pass.
    if (span === undefined || clean === undefined || shownAt(shown, span) !== link) {
      return { kind: 'refused', refusal: refuseWith('elicitation-url') };
    }
    if (clean !== link) shown = applyEdits(shown, [{ ...span, text: JSON.stringify(clean) }]);
  }
  return shown === text ? inspected : { ...inspected, text: shown };
}

function shownAt(text: string, { start, end }: { readonly start: number; readonly end: number }) {
  return JSON.parse(text.slice(start, end)) as unknown;
}

function linksOf(data: Json | undefined): readonly (Json | undefined)[] | undefined {
  const listed = isObject(data) ? data['elicitations'] : undefined;
  if (!Array.isArray(listed)) return undefined;
  return listed.map((one: Json) => (isObject(one) ? one['url'] : undefined));
}

function mayElicitUrl({ call, principal, era, session }: Subject): boolean {
  if (era !== '2025' || session?.allowedServerRequests?.includes('elicitation/url') !== true)
    return false;
  const { policies, upstream } = call.snapshot;
  const catalogue = call.snapshot.catalogueFor(PLAIN_SESSION);
  const asked = { principal, upstream, catalogue, name: 'elicitation/url' } as const;
  return decideServerRequest(policies, asked).verdict === 'allow';
}
