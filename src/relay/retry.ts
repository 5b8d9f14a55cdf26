// The second leg of a dialogue (2026): a client sends its request again with answers and with the state
// that the server gave it. The state is opened for this caller and this request alone, and the upstream
// gets its own back, byte for byte; a state that does not open is a refusal.
// Source: MCP 2026-07-28, multi-round-trip requests.

import type { StateSubject } from '../exchange-ports.js';
import { amendAdmitted } from '../mcp/admit.js';
import type { Admitted, TextEdit } from '../mcp/admitted.js';
import { isOwnKey } from '../mcp/asking.js';
import { INVALID_PARAMS, protocolErrorOf } from '../mcp/faults.js';
import { removalEdits, spanOf } from '../mcp/json.js';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import { canonicalForm } from '../pins/canonical.js';
import type { Principal } from '../policy/principal.js';
import { addFinding } from '../policy/record.js';
import { type Refusal, refuseProtocolError } from '../policy/refusal.js';
import type { PlannedMessage } from './answered.js';
import { type Call, nameOf } from './call.js';

/** Members of params that differ between the legs of one dialogue. */
const CHANGING: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);
const NO_PARAMS: JsonObject = {};

/** The params of an admitted message. */
export function paramsOf({ message }: Pick<Admitted, 'message'>): JsonObject {
  return ('params' in message ? message.params : undefined) ?? NO_PARAMS;
}

/** True for a request that answers a question: its result may not be cached (MCP 2026-07-28, caching). */
export function isRetry(admitted: Pick<Admitted, 'message'>): boolean {
  const params = paramsOf(admitted);
  return params['inputResponses'] !== undefined || params['requestState'] !== undefined;
}

/** What the state of this request is bound to. */
export function stateSubject(upstream: string, admitted: PlannedMessage): StateSubject {
  const kept: Record<string, Json> = {};
  for (const [name, value] of Object.entries(paramsOf(admitted))) {
    if (!CHANGING.has(name)) kept[name] = value;
  }
  const form = canonicalForm(kept);
  if (!form.ok) throw new Error(`params without a canonical form: ${form.why}`);
  const { target, rule } = admitted;
  return {
    upstream,
    method: rule.method,
    target: `${target.kind} ${nameOf(target) ?? ''}`,
    params: form.text,
  };
}

/** The message as the upstream is to get it: its own state, and no answers under keys of ours. */
export function openRetry(
  call: Call,
  principal: Principal,
  admitted: Admitted,
): Admitted | Refusal {
  if (!isRetry(admitted)) return admitted;
  const sealed = paramsOf(admitted)['requestState'];
  const edits: TextEdit[] = [...ownInputResponses(call, admitted)];
  if (typeof sealed === 'string') {
    const subject = stateSubject(call.incoming.upstream, admitted);
    const state = call.ports.openState(sealed, subject, principal);
    const span = spanOf(admitted.text, ['params', 'requestState']);
    if (state === undefined || span === undefined) return refuseState(admitted);
    edits.push({ ...span, text: JSON.stringify(state) });
  }
  return amendAdmitted(admitted, edits);
}

function ownInputResponses(call: Call, admitted: Admitted): readonly TextEdit[] {
  const inputResponses = paramsOf(admitted)['inputResponses'];
  if (!isObject(inputResponses)) return [];
  const count = Object.keys(inputResponses).filter(isOwnKey).length;
  const span = count === 0 ? undefined : spanOf(admitted.text, ['params', 'inputResponses']);
  if (span === undefined) return [];
  addFinding(call.record.findings, {
    detector: 'reserved-key',
    direction: 'to-upstream',
    path: '/params/inputResponses',
    count,
    action: 'strip',
  });
  return removalEdits(admitted.text, span, isOwnKey);
}

/** Changed, stolen, of another request or too old: one refusal for all. */
function refuseState({ message, era }: Admitted): Refusal {
  const text = 'requestState is not valid for this request.';
  const id = message.kind === 'request' ? message.id : undefined;
  return refuseProtocolError(protocolErrorOf('invalid-message', INVALID_PARAMS, text, { era, id }));
}
