// Judges what a server of HTTP+SSE says on a channel: an answer by the plan that its sealed id holds, under the
// client's own id again; everything else like on the stream of a session. Each answer has a record of its
// own, because the exchange that asked for it ended when it was posted, on whichever replica.
// Source: MCP 2024-11-05, transports; architecture, "how a response finds its plan".

import type { SentFacts, SessionFacts } from '../mcp/admitted.js';
import { applyEdits, readJsonText, spanOf } from '../mcp/json.js';
import { readEnvelope } from '../mcp/jsonrpc.js';
import { encodeSseMessage } from '../mcp/sse.js';
import { openRecord } from '../policy/open-record.js';
import type { Principal } from '../policy/principal.js';
import { refuseWith } from '../policy/refusal.js';
import { type Answered, maySee, planOf } from './answered.js';
import { type Call, nameOf } from './call.js';
import { gatherWrites } from './gathered-writes.js';
import { createJudge } from './judge.js';
import { writeFailure, writeVerdict } from './stream-writer.js';
import { drop, type Verdict } from './subject.js';
import { createUnaskedJudge } from './unowned.js';

/** Requests whose second answer is known as such; of older ones clients know it themselves. */
const MAX_ANSWERED = 1024;

type Channel = {
  readonly call: Call;
  readonly principal: Principal;
  session: SessionFacts;
  judgeUnasked: (data: string) => Promise<string | undefined>;
  readonly answered: Set<string>;
};

/** Writes what may pass of each message of a channel, one at a time and in order. */
export function createChannelWriter(
  call: Call,
  principal: Principal,
  session: SessionFacts,
): (data: string) => Promise<void> {
  const channel: Channel = {
    call,
    principal,
    session,
    judgeUnasked: createUnaskedJudge(call, principal, session),
    answered: new Set(),
  };
  return async (data) => {
    const sent = readAnswered(channel, data);
    if (sent !== undefined) return writeAnswer(channel, sent, data);
    const text = await channel.judgeUnasked(data);
    if (text !== undefined) await call.outgoing.write(encodeSseMessage(text));
  };
}

/** What a message answers, if it answers anything that was asked in this session. */
function readAnswered(channel: Channel, data: string): SentFacts | undefined {
  const { call, principal, session, answered } = channel;
  const reading = readJsonText(data);
  const envelope = reading.ok ? readEnvelope(reading.value) : undefined;
  if (envelope?.kind !== 'result' && envelope?.kind !== 'error') return undefined;
  const { id } = envelope;
  if (typeof id !== 'string' || answered.has(id)) return undefined;
  const { upstream } = call.incoming;
  const sent = call.ports.channels.openRequest(id, { upstream, principal, session });
  if (sent === undefined) return undefined;
  const [oldest] = answered;
  if (answered.size >= MAX_ANSWERED && oldest !== undefined) answered.delete(oldest);
  answered.add(id);
  return sent;
}

async function writeAnswer(channel: Channel, sent: SentFacts, data: string): Promise<void> {
  const { call, principal, session } = channel;
  const plan = planOf(sent, session, principal);
  const span = spanOf(data, ['id']);
  if (plan === undefined || span === undefined) return drop(call, 'foreign-message');
  const text = applyEdits(data, [{ ...span, text: JSON.stringify(sent.id) }]);
  const answering = openAnswering(call, plan, sent);
  const writes = gatherWrites(call.outgoing);
  try {
    const verdict = await judge(answering, plan, text);
    if (verdict.kind === 'own' && !verdict.isError && sent.method === 'initialize')
      learnAskable(channel, sent);
    writeVerdict({ call: answering, writes }, verdict, text, undefined);
  } catch (error) {
    call.ports.report(error, answering.record.id);
    writeFailure(answering, refuseWith('internal'), writes);
  } finally {
    call.ports.closeRecord(answering.record);
  }
  await writes.flush();
}

/** Judged under the version that stands now: who may no longer see a thing gets no more of it. */
async function judge(call: Call, plan: Answered, text: string): Promise<Verdict> {
  if (!maySee(plan.admitted.target, plan.principal, call.view))
    return { kind: 'refused', refusal: refuseWith('no-matching-allow', { listed: false }) };
  return createJudge(call, plan, undefined).judgeText(text);
}

/** What a server may ask was declared by whoever opened the session, and granted when it was sent. */
function learnAskable(channel: Channel, { askable }: SentFacts): void {
  const { call, principal, session } = channel;
  channel.session = { ...session, askable };
  channel.judgeUnasked = createUnaskedJudge(call, principal, channel.session);
}

/** The exchange of the answer: it was allowed when it was asked for, and its record begins then. */
function openAnswering(call: Call, { admitted, principal }: Answered, sent: SentFacts): Call {
  const waitedMs = Math.max(0, Date.now() - sent.sentAt);
  const incoming = {
    ...call.incoming,
    id: call.ports.newDecisionId(),
    receivedAt: sent.sentAt,
    startedMs: performance.now() - waitedMs,
  };
  const record = openRecord(incoming);
  record.versions = call.view.versions;
  record.principal = principal;
  record.client = { ...call.record.client };
  record.target.method = admitted.rule.method;
  record.target.kind = admitted.target.kind;
  record.target.name = nameOf(admitted.target);
  record.target.requestId = sent.id;
  record.decision.verdict = 'allow';
  record.decision.stage = 'record';
  record.decision.action = 'forwarded';
  record.latency.upstream = waitedMs;
  return { ...call, incoming, record, admitted };
}
