// The id under which a client sees an event of a stream: the upstream's own id and what the stream answers,
// sealed and bound to the upstream, the caller and the session. Whoever resumes is judged by what is in it,
// on any replica (contract §10; MCP 2025-11-25, resumability and redelivery).

import type { EventFacts, RequestFacts } from '../mcp/admitted.js';
import type { Target } from '../mcp/message.js';
import { SERVER_REQUEST_NAMES } from '../mcp/questions.js';
import type { KeyRing } from './key-ring.js';
import type { ServerRequestBinding } from './question-seal.js';
import { open, seal } from './seal.js';
import { bindings } from './session-seal.js';

const PURPOSE = 'event';
/** An event whose id would grow past this gets none: headers are bounded, and the stream goes on without. */
const MAX_PAYLOAD_CHARACTERS = 4096;

/** Makes the id of an event; `undefined` where what it must carry is too long for a header. */
export function sealEvent(
  ring: KeyRing,
  binding: ServerRequestBinding,
  { upstreamId, request, requestedAt }: EventFacts,
  expiresAtMs: number,
): string | undefined {
  const plan = request === undefined ? null : writeRequest(request);
  const payload = JSON.stringify(
    plan === null ? [upstreamId, plan] : [upstreamId, plan, requestedAt],
  );
  if (payload.length > MAX_PAYLOAD_CHARACTERS) return undefined;
  return seal(ring, PURPOSE, [...bindings(binding), binding.session], payload, expiresAtMs);
}

/** Opens the id of an event; `undefined` for whatever was not given out in this session of this caller. */
export function openEvent(
  ring: KeyRing,
  binding: ServerRequestBinding,
  sealed: string,
  nowMs: number,
): EventFacts | undefined {
  const bound = [...bindings(binding), binding.session];
  const payload = open(ring, PURPOSE, bound, sealed, nowMs);
  if (payload === undefined) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8'));
  if (!Array.isArray(value)) return undefined;
  const [upstreamId, plan, requestedAt]: readonly unknown[] = value;
  if (typeof upstreamId !== 'string') return undefined;
  if (plan === null) return { upstreamId, request: undefined };
  const request = Array.isArray(plan) ? readRequest(plan) : undefined;
  if (request === undefined) return undefined;
  return typeof requestedAt === 'number'
    ? { upstreamId, request, requestedAt }
    : { upstreamId, request };
}

/** A request as it stands in a sealed value. */
export function writeRequest(request: RequestFacts): readonly unknown[] {
  const { id, method, target, maxResultBytes, profiles } = request;
  const { progressToken = null, mayDefer = false, task = null } = request;
  const plan = [id, method, target.kind, nameIn(target), maxResultBytes ?? null, profiles];
  const isPlain = progressToken === null && task === null && !mayDefer;
  return isPlain ? plan : [...plan, progressToken, mayDefer, task];
}

/** Reads what `writeRequest` wrote; `undefined` for anything else. */
export function readRequest(plan: readonly unknown[]): RequestFacts | undefined {
  const [id, method, kind, name, maxResultBytes, profiles, token, mayDefer, task] = plan;
  const target = targetOf(kind, name);
  if (typeof id !== 'string' && typeof id !== 'number') return undefined;
  if (typeof method !== 'string' || target === undefined || !Array.isArray(profiles)) {
    return undefined;
  }
  return {
    id,
    method,
    target,
    maxResultBytes: typeof maxResultBytes === 'number' ? maxResultBytes : undefined,
    profiles: profiles.filter((one): one is string => typeof one === 'string'),
    ...(typeof token === 'string' || typeof token === 'number' ? { progressToken: token } : {}),
    ...(mayDefer === true ? { mayDefer } : {}),
    ...(typeof task === 'string' ? { task } : {}),
  };
}

function nameIn(target: Target): string {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
    case 'question':
      return target.name;
    case 'resource':
      return target.uri;
    case 'template':
      return target.uriTemplate;
    case 'task':
      return target.tool ?? '';
    case 'none':
      return '';
  }
}

function targetOf(kind: unknown, name: unknown): Target | undefined {
  if (typeof name !== 'string') return undefined;
  switch (kind) {
    case 'tool':
    case 'prompt':
      return { kind, name };
    case 'resource':
      return { kind, uri: name };
    case 'template':
      return { kind, uriTemplate: name };
    case 'task':
      return { kind, tool: name };
    case 'none':
      return { kind };
    default: {
      const serverRequest = SERVER_REQUEST_NAMES.find((one) => one === name);
      return kind === 'question' && serverRequest !== undefined
        ? { kind, name: serverRequest }
        : undefined;
    }
  }
}
