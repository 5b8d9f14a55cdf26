// Asks several members at once and joins what they answer. A member that is down, late or refuses is missing
// from the answer and never takes the others with it; only where none answers is the whole refused, in the
// words of a member.

import type { RequestId } from '../../mcp/message.js';
import { encodeSseMessage } from '../../mcp/sse.js';
import type { Outgoing } from '../../mcp/transport.js';
import { refuseWith } from '../../policy/refusal.js';
import { STREAM_HEADERS } from '../stream-writer.js';
import { BROKEN_OFF, collectAnswer, type MemberAnswer } from './collected.js';
import { type PartOf, runPart } from './part.js';
import { refuseWhole, renderWhole, type Verified, type Whole } from './whole.js';

/** How long members that still think are waited for once another has answered. */
const PATIENCE_MS = 10_000;
const JSON_HEADERS = { 'content-type': 'application/json' } as const;
const UNAUTHORIZED = 401;
const NOT_FOUND = 404;
const FIRST_REFUSAL = 400;
const FIRST_SERVER_FAULT = 500;
/** Where a member said nothing that could be passed on. */
const BROKEN = refuseWith('upstream-protocol');

export type Answered = { readonly part: PartOf; readonly answer: MemberAnswer };

/** What came of asking: answers in the order of the members. */
export type FanOut = {
  readonly answers: readonly Answered[];
  /** Sends the joined answer, as the last event where a stream has begun. */
  send(text: string, headers?: Readonly<Record<string, string>>): void;
  /** Answers in the words of one member: of this one, or of any where nothing could be joined. */
  fail(member?: Answered): void;
};

/** Asks every part; resolves when all have answered, or those that answered have waited long enough. */
export async function askMembers(verified: Verified, parts: readonly PartOf[]): Promise<FanOut> {
  const { whole } = verified;
  const { outgoing } = whole;
  const id = requestIdOf(whole);
  let isOpen = false;
  let isOver = false;
  /** What a member says besides its answer is passed on at once: it may be a question that it waits for. */
  function passOn(text: string): void | Promise<void> {
    if (isOver) return;
    if (!isOpen) outgoing.open(200, STREAM_HEADERS);
    isOpen = true;
    return outgoing.write(encodeSseMessage(text));
  }
  const asked = parts.map(async (part): Promise<Answered> => {
    const collected = collectAnswer(id, () => isOver || outgoing.isClosed, passOn);
    // A part that ends without a word has answered nothing.
    const run = runPart(verified, { ...part, isOneOfMany: true }, collected.outgoing);
    void run.then(() => collected.outgoing.end());
    return { part, answer: await collected.answer };
  });
  const answers = await settleAll(asked);
  isOver = true;
  return {
    answers,
    send(text, headers = {}) {
      if (isOpen) finish(outgoing, text);
      else outgoing.send(200, { ...JSON_HEADERS, ...headers }, text);
    },
    fail(member) {
      const { status, headers, body, text } = member?.answer ?? chooseFailure(answers);
      if (isOpen) finish(outgoing, text ?? renderWhole(whole, BROKEN).body);
      else if (status === BROKEN_OFF) refuseWhole(whole, BROKEN);
      else outgoing.send(status, headers, body);
    },
  };
}

function requestIdOf({ admitted }: Whole): RequestId | undefined {
  return admitted?.message.kind === 'request' ? admitted.message.id : undefined;
}

function finish(outgoing: Outgoing, text: string): void {
  void outgoing.write(encodeSseMessage(text));
  outgoing.end();
}

/** All answers, or those that have come once the first good one has waited for the others. */
async function settleAll(asked: readonly Promise<Answered>[]): Promise<readonly Answered[]> {
  const settled = new Map<number, Answered>();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    for (const [index, one] of asked.entries()) {
      void one.then((answered) => {
        settled.set(index, answered);
        const { status } = answered.answer;
        if (status !== BROKEN_OFF && status < FIRST_REFUSAL)
          timer ??= setTimeout(resolve, PATIENCE_MS);
      });
    }
  });
  await Promise.race([Promise.all(asked), late]);
  clearTimeout(timer);
  return [...settled.keys()].sort((a, b) => a - b).flatMap((index) => settled.get(index) ?? []);
}

/** A member that could not answer says more than one that knows no such method. */
function chooseFailure(answers: readonly Answered[]): MemberAnswer {
  const all = answers.map(({ answer }) => answer);
  const failure = all.find(({ status }) => status >= FIRST_SERVER_FAULT) ?? all[0];
  if (failure === undefined) throw new Error('an endpoint has members');
  return failure;
}

/**
 * The answer of a member that says that the whole must be given up: the caller is not known any more, or the
 * session with this member is lost, which only a new one mends.
 */
export function findFatal(
  { whole: { endpoint, ports }, principal }: Verified,
  answers: readonly Answered[],
  hasSession: boolean,
): Answered | undefined {
  const isTold = (upstream: string): boolean => ports.tellLoss(endpoint.name, upstream, principal);
  return (
    answers.find(({ answer: { status } }) => status === UNAUTHORIZED) ??
    answers.find(
      ({ part, answer: { status } }) =>
        hasSession && status === NOT_FOUND && isTold(part.member.upstream),
    )
  );
}
