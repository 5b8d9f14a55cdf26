// Asks the user of a session for an approval by a form on the response stream of the call, where the rules leave the proof
// to the client. The call is held for a while, without a slot of its upstream; once it is answered, or the time is over,
// it is decided anew as a whole. The reply may come to any replica, because an approval is a shared record.
// Source: MCP 2025-11-25, elicitation; docs/reference/approvals.md.

import type { Refusal } from '../../policy/decision.js';
import { callerKeyOf, type Principal } from '../../policy/principal.js';
import { fold } from '../../policy/record.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import { renderJson } from '../../protocol/json/request-ids.js';
import { elicitationOf, type UserPrompt } from '../../protocol/responses.js';
import { isApproved } from '../../protocol/server-requests.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import { DisconnectController, type Outgoing, onAbort } from '../../protocol/transport.js';
import { createQuota } from '../../state/bounds.js';
import { authorize, passThrough, type Stages } from '../authorization.js';
import { toJsonRpcMessage } from '../legacy-sse/messages.js';
import type { AnyPort } from '../ports.js';
import type { RequestContext, VerifiedCall } from '../request-context.js';
import { STREAM_HEADERS } from '../sse-response.js';
import { registerOpenResponse } from '../stream-lifetime.js';

const METHOD = 'elicitation/create';
const NAME = 'elicitation/form';
/** The id of the gateway's own request, before an approval's. */
const OWN_ID = 'gw.approval:';
/** How long a call is held for the answer. Many clients give up after a minute. */
const HELD_MS = 50_000;
const held = createQuota({ total: 500, perOwner: 5 });

/** The approval that a reply answers; undefined for a reply to a server. */
export function approvalAnsweredBy({ message, serverRequestId }: AdmittedMessage): string | undefined {
  if (serverRequestId === undefined || (message.kind !== 'result' && message.kind !== 'error')) return undefined;
  const { id } = message;
  return typeof id === 'string' && id.startsWith(OWN_ID) ? id.slice(OWN_ID.length) : undefined;
}

/** A reply to the gateway itself is decided as any use of the protocol is, and answered once. */
const REPLY: Stages<VerifiedCall<AnyPort> & { readonly admitted: AdmittedMessage }> = {
  decide: (reply) => ({
    outcome: reply,
    facts: [{ decision: { verdict: 'allow', stage: 'record', policy: 'builtin', rule: 'protocol' } }],
  }),
  inspect: passThrough,
  enforce: passThrough,
};

/** Takes the reply to the form of the gateway. */
export async function takeFormReply(
  call: RequestContext<AnyPort>,
  principal: Principal,
  admitted: AdmittedMessage,
  approval: string,
): Promise<Refusal | undefined> {
  fold(call.record, { decision: { approval } });
  const authorized = await authorize(call, REPLY, { call, principal, admitted });
  if ('kind' in authorized) return authorized;
  const { message } = admitted;
  // An error is no answer: the question stands, and can be answered otherwise.
  if (message.kind === 'result')
    await call.ports.approvals.answerByForm(approval, principal, isApproved(message.result));
  fold(call.record, { result: { status: 'ok', http: ACCEPTED } });
  call.outgoing.send(ACCEPTED, {}, '');
  return undefined;
}

const ACCEPTED = 202;

/** Whether the client of this refused call is asked by a form on its stream. */
export function mayHold({ deny }: Refusal, admitted: AdmittedMessage): boolean {
  const { session, protocol, message, elicitation } = admitted;
  const isAsked = deny.ask?.mode === 'form' && elicitation.includes('form');
  return (
    isAsked &&
    message.kind === 'request' &&
    session !== undefined &&
    protocol.promptForm(admitted.version) !== 'input-required'
  );
}

/**
 * Sends the form and waits for the answer. The response is an event stream from then on. `left`: the client has cancelled
 * the call or is gone; `crowded`: too many calls are held, of this caller or of all, and nothing was sent.
 */
export async function holdForAnswer(
  call: RequestContext<AnyPort>,
  principal: Principal,
  admitted: AdmittedMessage,
  prompt: UserPrompt,
): Promise<'answered' | 'left' | 'crowded'> {
  const { session, message, target } = admitted;
  const owner = callerKeyOf(principal);
  if (session === undefined || message.kind !== 'request' || !held.take(owner)) return 'crowded';
  try {
    const { incoming, outgoing, ports } = call;
    const scope = { upstream: incoming.upstream, principal, session };
    const facts = { id: `${OWN_ID}${prompt.id}`, method: METHOD, name: NAME, about: target } as const;
    const id = ports.sessions.serverRequests.seal(facts, scope);
    const left = new DisconnectController();
    const leave = () => left.abort();
    onAbort(incoming.signal, leave);
    const cut = incoming.shutdown?.cut;
    if (cut !== undefined) onAbort(cut, leave);
    const unregister = registerOpenResponse(call, leave, leave);
    try {
      outgoing.open(200, STREAM_HEADERS);
      call.outgoing = onStream(outgoing, message.id);
      const request = { jsonrpc: '2.0', id, method: METHOD, params: elicitationOf(prompt) };
      await outgoing.write(encodeSseMessage(renderJson(request)));
      // Nothing runs at the upstream meanwhile.
      incoming.keepSlots?.()();
      await ports.approvals.waitForAnswer(prompt.id, HELD_MS, left);
    } finally {
      unregister();
      cut?.removeEventListener('abort', leave);
    }
    return left.aborted ? 'left' : 'answered';
  } finally {
    held.give(owner);
  }
}

/** Writes a response to a stream that is open already. */
function onStream(stream: Outgoing, id: string | number): Outgoing {
  return {
    get isClosed() {
      return stream.isClosed;
    },
    addHeader: () => undefined,
    send(status, headers, body) {
      void stream.write(encodeSseMessage(toJsonRpcMessage(id, status, headers, body)));
      stream.end();
    },
    open: () => undefined,
    write: (bytes) => stream.write(bytes),
    end: () => stream.end(),
    disconnect: () => stream.disconnect(),
  };
}
