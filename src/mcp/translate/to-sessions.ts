// What a client of the stateless era says, as a server of sessions is told it, and that server's answers
// as the client is told them. Pure: text in, text out; who may say it was decided before, and what comes
// back is judged afterwards, in the client's own form.
// Source: MCP 2025-11-25; MCP 2026-07-28, results, caching, multi-round-trip requests.

import type { Admitted, TextEdit } from '../admitted.js';
import { applyEdits, spanOf } from '../json.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../message.js';
import { STATELESS_VERSIONS } from '../versions.js';
import { changeMembers, memberEdits } from './members.js';

/** Under what a request is sent within an upstream session, and what its client gave it. */
export type SentAs = {
  readonly method: string;
  /** The id of the client's request, and the one under which it was sent. */
  readonly id: RequestId;
  readonly sentId: number;
  /** The client's progress token, where it gave one; sent is `sentId`. */
  readonly progressToken: RequestId | undefined;
};

const META = 'io.modelcontextprotocol/';
const ENVELOPE: ReadonlySet<string> = new Set([
  `${META}protocolVersion`,
  `${META}clientCapabilities`,
  `${META}clientInfo`,
  `${META}logLevel`,
]);
const INPUT_RETRY_PARAMS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);
/** Results that say how long, and for whom, they may be kept. */
const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);
const COMPLETE = { resultType: 'complete' } as const;
const UNCACHED = { ...COMPLETE, ttlMs: 0, cacheScope: 'private' } as const;
const LINK_REQUIRED = -32042;

/** What an admitted request is sent as: its id and token are of the upstream session, not the client's. */
export function sentAs(admitted: Admitted, sentId: number): SentAs {
  const { message, rule } = admitted;
  if (message.kind !== 'request') throw new Error('only requests are answered');
  const meta = message.params?.['_meta'];
  const token = isObject(meta) ? meta['progressToken'] : undefined;
  const progressToken = typeof token === 'string' || typeof token === 'number' ? token : undefined;
  return { method: rule.method, id: message.id, sentId, progressToken };
}

/** The body of an admitted stateless request as one of a session. */
export function sessionBody(admitted: Admitted, { sentId, progressToken }: SentAs): string {
  const text = applyEdits(admitted.text, admitted.edits);
  const id = spanOf(text, ['id']);
  const edits: TextEdit[] = id === undefined ? [] : [{ ...id, text: String(sentId) }];
  const set = progressToken === undefined ? {} : { progressToken: sentId };
  edits.push(...memberEdits(text, { path: ['params', '_meta'], cut: ENVELOPE, set }));
  const body = applyEdits(
    text,
    edits.sort((one, other) => one.start - other.start),
  );
  return changeMembers(body, { path: ['params'], cut: INPUT_RETRY_PARAMS });
}

/** A message of a server of sessions as its stateless client gets it; `undefined` for what is not told. */
export function toStatelessMessage(text: string, value: Json, sent: SentAs): string | undefined {
  if (!isObject(value)) return text;
  if (value['method'] === 'notifications/progress') return toStatelessProgress(text, value, sent);
  if (value['id'] !== sent.sentId || 'method' in value) return text;
  const { error, result } = value;
  if (isObject(error) && error['code'] === LINK_REQUIRED) return toUrlElicitation(error, sent);
  const id = spanOf(text, ['id']);
  const edits: TextEdit[] = id === undefined ? [] : [{ ...id, text: JSON.stringify(sent.id) }];
  if (isObject(result)) {
    const set = CACHEABLE.has(sent.method) ? UNCACHED : COMPLETE;
    edits.push(...memberEdits(text, { path: ['result'], set }));
  }
  return applyEdits(
    text,
    edits.sort((one, other) => one.start - other.start),
  );
}

function toStatelessProgress(
  text: string,
  { params }: JsonObject,
  { sentId, progressToken }: SentAs,
): string | undefined {
  const isOurs = isObject(params) && params['progressToken'] === sentId;
  if (!isOurs || progressToken === undefined) return undefined;
  return changeMembers(text, { path: ['params'], set: { progressToken } });
}

/** A session's demand for visits to links is a question here. */
function toUrlElicitation({ data }: JsonObject, { id }: SentAs): string {
  const asked = isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : [];
  const inputRequests: Record<string, Json> = {};
  for (const [index, one] of asked.entries()) {
    if (!isObject(one)) continue;
    const { elicitationId: _, ...params } = one;
    inputRequests[`link${index + 1}`] = {
      method: 'elicitation/create',
      params: { ...params, mode: 'url' },
    };
  }
  const result = { resultType: 'input_required', inputRequests };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** A request of a server in mid-call, as the result that asks; `state` brings the answer back to it. */
export function inputRequiredResult(
  id: RequestId,
  key: string,
  { method, params }: { readonly method: string; readonly params: JsonObject | undefined },
  state: string,
): string {
  const asked: JsonObject = { method, params: params ?? {} };
  const result = {
    resultType: 'input_required',
    inputRequests: { [key]: asked },
    requestState: state,
  };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** The answer to server/discover, from what the server said when a session was opened with it. */
export function discoverResult(id: RequestId, handshake: JsonObject): string {
  const { capabilities, instructions, serverInfo } = handshake as {
    readonly [name: string]: Json | undefined;
  };
  const result = {
    ...UNCACHED,
    supportedVersions: STATELESS_VERSIONS,
    capabilities: capabilities ?? {},
    ...(instructions === undefined ? {} : { instructions }),
    ...(serverInfo === undefined ? {} : { _meta: { [`${META}serverInfo`]: serverInfo } }),
  };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}
