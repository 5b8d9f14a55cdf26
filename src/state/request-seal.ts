// The id under which a server of HTTP+SSE knows a request: the client's own id and what the answer is judged
// by, sealed and bound to the upstream, the caller and the session, so that whichever replica holds the
// stream can judge the answer to what another one sent. Nothing is stored (contract §10).

import type { SentFacts } from '../mcp/admitted.js';
import { SERVER_REQUEST_NAMES } from '../mcp/questions.js';
import { readRequest, writeRequest } from './event-seal.js';
import type { KeyRing } from './key-ring.js';
import type { ServerRequestBinding } from './question-seal.js';
import { open, seal } from './seal.js';
import { bindings } from './session-seal.js';

const PURPOSE = 'request';
/** A request whose id would grow past this is not sent: servers keep ids, and give them back. */
const MAX_PAYLOAD_CHARACTERS = 8192;

/** Makes the id of a request, valid until `expiresAtMs`; `undefined` where what it must carry is too long. */
export function sealRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sent: SentFacts,
  expiresAtMs: number,
): string | undefined {
  const payload = JSON.stringify([writeRequest(sent), sent.allowedServerRequests, sent.sentAt]);
  if (payload.length > MAX_PAYLOAD_CHARACTERS) return undefined;
  return seal(ring, PURPOSE, [...bindings(binding), binding.session], payload, expiresAtMs);
}

/** Opens the id of an answer; `undefined` for whatever was not sent in this session of this caller. */
export function openRequest(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sealed: string,
  nowMs: number,
): SentFacts | undefined {
  const bound = [...bindings(binding), binding.session];
  const payload = open(ring, PURPOSE, bound, sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [plan, allowedServerRequests, sentAt]: readonly unknown[] = value;
  const request = Array.isArray(plan) ? readRequest(plan) : undefined;
  if (request === undefined || !Array.isArray(allowedServerRequests) || typeof sentAt !== 'number')
    return undefined;
  return {
    ...request,
    allowedServerRequests: SERVER_REQUEST_NAMES.filter((name) =>
      allowedServerRequests.includes(name),
    ),
    sentAt,
  };
}
