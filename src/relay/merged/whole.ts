// A request on the path of an endpoint, as the parts of relay/merged/ share it, and how it is refused before
// any member is asked. What a member is asked is an exchange of its own, with a record of its own.

import type { Aggregate, Ports } from '../../exchange-ports.js';
import type { Admitted } from '../../mcp/admitted.js';
import type { Incoming, Outgoing } from '../../mcp/transport.js';
import type { Principal } from '../../policy/principal.js';
import type { RequestRecord } from '../../policy/record.js';
import { type Refusal, refuseWith, renderRefusal } from '../../policy/refusal.js';
import { noteAdmitted, presentedScheme } from '../call.js';

/** How a member's part is run: src/exchange.ts. */
export type HandleRequest = (incoming: Incoming, outgoing: Outgoing, ports: Ports) => Promise<void>;

/** One request of a client to an endpoint. */
export type AggregateContext = {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly ports: Ports;
  readonly run: HandleRequest;
  readonly aggregate: Aggregate;
  /** Written only where no member is asked. */
  readonly record: RequestRecord;
  admitted: Admitted | undefined;
  /** Members were asked: what is to be recorded, they record. */
  isPassedOn: boolean;
};

/** A request whose caller is known. */
export type Verified = { readonly context: AggregateContext; readonly principal: Principal };

const NO_TARGET = { kind: 'none' } as const;

/** What a caller gets for what does not exist here, and for what it may not see. */
export function refuseUnknown(): Refusal {
  return refuseWith('no-matching-allow', { listed: false });
}

/** The wire form of a refusal of the endpoint's own. */
export function renderAggregateRefusal(
  { admitted, aggregate, incoming }: AggregateContext,
  refusal: Refusal,
): ReturnType<typeof renderRefusal> {
  return renderRefusal(refusal, {
    decisionId: incoming.id,
    era: admitted?.era,
    requestId: admitted?.message.kind === 'request' ? admitted.message.id : undefined,
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    challenge: (reason, scopes, proof) =>
      aggregate.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  });
}

/** Answers with a refusal of the endpoint's own, if no answer has begun, and notes it. */
export function refuseAggregate(context: AggregateContext, refusal: Refusal): void {
  const { admitted, outgoing, record } = context;
  context.isPassedOn = false;
  if (admitted !== undefined) noteAdmitted(context, admitted);
  record.decision.verdict = 'deny';
  record.decision.stage = refusal.stage;
  record.decision.reasons.push(refusal.deny.reason);
  const rendered = renderAggregateRefusal(context, refusal);
  const isAnswered = admitted === undefined || admitted.message.kind === 'request';
  const status = rendered.status === 200 && !isAnswered ? 400 : rendered.status;
  record.result.http = status;
  record.result.rpcCode = rendered.rpcCode;
  record.result.bytes = rendered.body.length;
  outgoing.send(status, rendered.headers, rendered.body);
}
