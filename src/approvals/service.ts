// What becomes of an approval: asked for by a call, answered by a person, used once, expired. Every step is a change of one
// shared record that takes effect only on what was read, so that any replica serves it and of two uses one succeeds; and
// a yes counts only once the audit log has it. Who may answer is decided in policy/approval.ts.
// docs/reference/approvals.md.

import { createHash, randomBytes } from 'node:crypto';
import {
  type AnswerOutcome,
  type Approval,
  type ApprovalAnswer,
  type ApprovalContent,
  type ApprovalDesk,
  type ApprovalOutcome,
  type ApprovalParty,
  type ApprovalPort,
  type ApprovalQuestion,
  type ApprovalSubject,
  type ApprovalUse,
  type ApprovalVoice,
  MAX_SHOWN_CHARACTERS,
  openParties,
  refuseAnswer,
  stateOf,
} from '../policy/approval.js';
import type { Emit } from '../policy/events.js';
import type { LimitStore, ReplayStore } from '../policy/obligations.js';
import type { ApprovalEvent } from '../policy/security-events.js';
import { BoundedMap } from '../state/bounds.js';
import type { Kept, RecordTimes, SharedTable } from '../state/shared-table.js';

export type ApprovalTable = SharedTable<Approval, ApprovalContent>;

export type ApprovalServicePorts = {
  readonly table: ApprovalTable;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Writes the change to the audit log; false if it cannot be made durable. */
  readonly record: (change: ApprovalEvent) => Promise<boolean>;
  readonly emit: Emit;
  /** True once for each key, whose uses count per owner. */
  readonly useOnce: ReplayStore['useOnce'];
  readonly limits: LimitStore;
  /** Whether any rule or flow in force asks for an approval. */
  readonly isAsked: () => boolean;
};

export type ApprovalService = Pick<ApprovalPort, 'consult'> &
  ApprovalDesk & {
    /** Whether it waits for an answer; false where that is not known. */
    isWaiting(id: string): Promise<boolean>;
    /** Ends what expired unanswered or unused, and counts what waits; `start` has it done from time to time. */
    review(): Promise<void>;
    start(): void;
    close(): void;
  };

/** How long an approval is listed after its end. */
const HISTORY_MS = 24 * 60 * 60 * 1000;
/** Bounds of the table of approvals, in memory and in the store. */
export const APPROVAL_BOUNDS = {
  maxOpen: 5_000,
  maxOpenPerOwner: 20,
  maxKept: 10_000,
  maxBody: MAX_SHOWN_CHARACTERS,
  maxBodies: 128 * 1024 * 1024,
  madeAtMs: ({ createdAtMs }: Approval): number => createdAtMs,
} as const;
/** Approvals that a list returns besides those that are open. */
const MAX_LISTED = 1_000;
const MAX_OVERDUE = 100;
const MAX_SPENT = 10_000;
const REVIEW_EVERY_MS = 10_000;
/** Questions that one person may cause. */
const MAX_ASKED = 120;
const ASKED_WITHIN_MS = 60 * 60 * 1000;
/** How long the rounds of one request may take, behind the time in which its yes could be used. */
const ROUNDS_MS = 15 * 60 * 1000;
const ID_BYTES = 16;
/** Other requests may change a record between reading and writing it; more often than this is not chance. */
const MAX_TRIES = 5;

type KeptApproval = Kept<Approval>;

export function createApprovalService({
  table,
  now,
  record,
  emit,
  isAsked,
  useOnce,
  limits,
}: ApprovalServicePorts): ApprovalService {
  let timer: NodeJS.Timeout | undefined;
  /** What was used or refused here, so that a store that has gone back to an older state does not bring a yes back. */
  const spent = new BoundedMap<string, true>(MAX_SPENT);
  /** Whether something waited when it was last counted, so that an end is counted too. */
  let hasWaiting = false;

  /** Records a change and tells of it. */
  async function note(change: ApprovalEvent): Promise<boolean> {
    const isRecorded = await record(change);
    emit('approval', change);
    return isRecorded;
  }

  function timesOf({ state, expiresAtMs, usableUntilMs = expiresAtMs }: Approval): RecordTimes {
    const isOpen = state === 'waiting' || state === 'granted';
    const openUntilMs = state === 'granted' ? usableUntilMs : expiresAtMs;
    return { openUntilMs: isOpen ? openUntilMs : undefined, keptUntilMs: Math.max(openUntilMs, now()) + HISTORY_MS };
  }

  const change = (kept: KeptApproval, head: Approval) => table.replace(kept, head, timesOf(head));

  /** Ends an approval. Whoever does so first, of all replicas, records it. */
  async function end(kept: KeptApproval, state: 'expired' | 'void'): Promise<void> {
    const ended = { ...kept.head, state };
    if ((await change(kept, ended)) === true) await note({ change: state, approval: ended });
  }

  /** INVARIANT: of two uses at once, on whatever replicas, one succeeds. */
  async function use(kept: KeptApproval, { decisionId }: ApprovalQuestion): Promise<ApprovalUse> {
    const approval: Approval = { ...kept.head, state: 'used' };
    if (spent.has(kept.id)) return 'taken';
    if (stateOf(kept.head, now()) !== 'granted') return 'taken';
    const done = await change(kept, approval);
    if (done === 'unavailable') return 'unavailable';
    if (!done) return 'taken';
    spent.set(kept.id, true);
    const isRecorded = await note({ change: 'used', approval, decisionId, isRemembered: false });
    return isRecorded ? 'used' : 'unrecorded';
  }

  /** An earlier yes that counts again for this call. */
  async function recall({ subject, decisionId }: ApprovalQuestion): Promise<ApprovalOutcome | undefined> {
    const key = rememberKeyOf(subject);
    if (key === undefined) return undefined;
    const found = await table.findByKey(key);
    if (found === 'unavailable') return { kind: 'unavailable' };
    if (found === undefined || !isRemembered(found.head, now())) return undefined;
    const approval = found.head;
    return {
      kind: 'granted',
      approval,
      async use() {
        if (!isRemembered(approval, now())) return 'taken';
        return (await note({ change: 'used', approval, decisionId, isRemembered: true })) ? 'used' : 'unrecorded';
      },
    };
  }

  /**
   * Counts a question, or with an amount of 0 says whether another may be asked: whoever answers their own at once could
   * otherwise ask without end.
   */
  async function takeQuestion(owner: string, amount: 0 | 1): Promise<boolean | 'unavailable'> {
    const window = { count: amount === 0 ? MAX_ASKED - 1 : MAX_ASKED, windowMs: ASKED_WITHIN_MS, amount };
    const taken = await limits.take(`approvals ${owner}`, window);
    return taken === 'unavailable' ? taken : taken.ok;
  }

  async function ask(
    { subject, demand, decisionId, content, owner }: ApprovalQuestion,
    before: KeptApproval | undefined,
    isLate: boolean,
  ): Promise<ApprovalOutcome | 'changed'> {
    const mayAsk = await takeQuestion(owner, 0);
    if (mayAsk !== true) {
      if (mayAsk === false) emit('approvalCrowded', { parties: openParties({ demand, answers: [] }) });
      return { kind: mayAsk === false ? 'crowded' : 'unavailable' };
    }
    const body = await content();
    const approval: Approval = {
      ...{ id: randomBytes(ID_BYTES).toString('hex'), subject, demand, decisionId },
      shown: createHash('sha256')
        .update(JSON.stringify([body, demand]))
        .digest('hex'),
      createdAtMs: now(),
      expiresAtMs: now() + demand.expiresMs,
      answers: [],
      state: 'waiting',
      usableUntilMs: undefined,
      rememberedUntilMs: undefined,
    };
    const { id } = approval;
    const entry = { id, head: approval, body, key: keyOf(subject), owner, replaces: before?.id, ...timesOf(approval) };
    const added = await table.add(entry);
    switch (added) {
      case 'changed':
        return 'changed';
      case 'full':
        emit('approvalCrowded', { parties: openParties(approval) });
        return { kind: 'crowded' };
      case 'too-large':
      case 'unavailable':
        return { kind: added };
      case 'added':
        await takeQuestion(owner, 1);
    }
    if (await note({ change: 'requested', approval })) return { kind: 'waiting', approval, isNew: true, isLate };
    await change({ id, head: approval, revision: 1 }, { ...approval, state: 'void' });
    return { kind: 'unrecorded' };
  }

  /** A yes or a question that stands for this call. */
  async function meet(found: KeptApproval, question: ApprovalQuestion): Promise<ApprovalOutcome | 'changed'> {
    const approval = found.head;
    if (!isSameUnderRules(approval.subject, question.subject)) {
      await end(found, 'void');
      return { kind: 'mismatch', approval };
    }
    return stateOf(approval, now()) === 'granted'
      ? { kind: 'granted', approval, use: () => use(found, question).catch(() => 'unavailable' as const) }
      : { kind: 'waiting', approval, isNew: false, isLate: false };
  }

  async function consultOnce(question: ApprovalQuestion): Promise<ApprovalOutcome | 'changed'> {
    const found = await table.findByKey(keyOf(question.subject));
    if (found === 'unavailable') return { kind: 'unavailable' };
    if (question.isRoundOnly === true) return onlyRoundOf(found, question);
    if (found === undefined) return begin(question, undefined, false);
    switch (stateOf(found.head, now())) {
      case 'waiting':
      case 'granted':
        return meet(found, question);
      case 'denied':
        return now() < found.head.expiresAtMs
          ? { kind: 'denied', approval: found.head }
          : begin(question, found, false);
      case 'expired':
        await endOverdue(found);
        return begin(question, found, found.head.usableUntilMs !== undefined);
      case 'used':
        return roundOf(found.head, question) ?? begin(question, found, false);
      case 'void':
        return begin(question, found, false);
    }
  }

  function onlyRoundOf(found: KeptApproval | undefined, question: ApprovalQuestion): ApprovalOutcome {
    const isUsed = found !== undefined && stateOf(found.head, now()) === 'used';
    return (isUsed ? roundOf(found.head, question) : undefined) ?? { kind: 'unseen' };
  }

  async function begin(question: ApprovalQuestion, before: KeptApproval | undefined, isLate: boolean) {
    return (await recall(question)) ?? ask(question, before, isLate);
  }

  function roundOf(approval: Approval, question: ApprovalQuestion): ApprovalOutcome | undefined {
    if (question.round === undefined || !isRoundOf(approval, question.subject, now())) return undefined;
    return { kind: 'granted', approval, use: () => useRound(question) };
  }

  /** A round of a request whose yes is used up. What its server gave for it is good for one round. */
  async function useRound({ round = '', owner }: ApprovalQuestion): Promise<ApprovalUse> {
    const isFirst = await useOnce(round, now() + ROUNDS_MS, owner);
    if (isFirst === 'unavailable') return 'unavailable';
    return isFirst ? 'used' : 'taken';
  }

  async function endOverdue(found: KeptApproval): Promise<void> {
    if (found.head.state !== 'expired') await end(found, 'expired');
  }

  async function answerOnce(
    id: string,
    verdict: ApprovalAnswer['verdict'],
    voice: ApprovalVoice,
  ): Promise<AnswerOutcome | 'changed'> {
    const found = await table.find(id);
    if (found === 'unavailable') return { kind: 'unavailable' };
    if (found === undefined) return { kind: 'over', approval: undefined };
    const state = stateOf(found.head, now());
    if (state === 'expired') await endOverdue(found);
    if (state !== 'waiting' || spent.has(id)) return { kind: 'over', approval: { ...found.head, state } };
    const why = refuseAnswer(found.head, verdict, voice);
    if (why !== undefined) return { kind: 'refused', why };
    const { party, person, proof } = voice;
    return take(found, { party, person, proof, verdict, atMs: now() });
  }

  /**
   * Takes an answer. INVARIANT: the yes that completes an approval can be used only once the audit log has it, so that it
   * waits until then; a no stands even where it is not recorded.
   */
  async function take(found: KeptApproval, answer: ApprovalAnswer): Promise<AnswerOutcome | 'changed'> {
    const { head } = found;
    const state = answer.verdict === 'granted' ? head.state : 'denied';
    const approval: Approval = { ...head, answers: [...head.answers, answer], state };
    const done = await change(found, approval);
    if (done === 'unavailable') return { kind: 'unavailable' };
    if (!done) return 'changed';
    if (answer.verdict === 'denied') spent.set(found.id, true);
    const isRecorded = await note({ change: answer.verdict, approval, answer });
    const kept = { id: found.id, head: approval, revision: found.revision + 1 };
    if (answer.verdict === 'granted') return settle(kept, isRecorded, answer.atMs);
    return isRecorded ? { kind: 'taken', approval } : { kind: 'unrecorded' };
  }

  /** Ends an approval in which a yes stands that the audit log does not have, whatever others do to it meanwhile. */
  async function withdraw(id: string): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const found = await table.find(id);
      if (found === 'unavailable' || found === undefined) return;
      if ((await change(found, { ...found.head, state: 'void' })) === true) return;
    }
  }

  /** After a yes: waits for the others, can be used, or is void. */
  async function settle(kept: KeptApproval, isRecorded: boolean, atMs: number): Promise<AnswerOutcome> {
    const { head } = kept;
    if (!isRecorded) {
      await withdraw(kept.id);
      return { kind: 'unrecorded' };
    }
    return openParties(head).length > 0 ? { kind: 'taken', approval: head } : complete(kept, atMs);
  }

  async function complete(kept: KeptApproval, atMs: number): Promise<AnswerOutcome> {
    const { demand, subject } = kept.head;
    const forMs = demand.caller?.remember?.forMs;
    const approval: Approval = {
      ...kept.head,
      state: 'granted',
      usableUntilMs: atMs + demand.useMs,
      rememberedUntilMs: forMs === undefined ? undefined : atMs + forMs,
    };
    const done = await change(kept, approval);
    if (done === 'unavailable') return { kind: 'unavailable' };
    // Somebody has refused it in the meantime.
    if (!done) return { kind: 'over', approval: kept.head };
    const key = rememberKeyOf(subject);
    if (key !== undefined && approval.rememberedUntilMs !== undefined)
      await table.alias(key, approval.id, approval.rememberedUntilMs);
    return { kind: 'taken', approval };
  }

  async function review(): Promise<void> {
    if (!isAsked() && !hasWaiting) return;
    const overdue = await table.overdue(MAX_OVERDUE);
    if (overdue === 'unavailable') return;
    for (const kept of overdue) if (stateOf(kept.head, now()) === 'expired') await end(kept, 'expired');
    const open = await table.open(APPROVAL_BOUNDS.maxOpen);
    if (open === 'unavailable') return;
    const waiting = open.map(({ head }) => head).filter((head) => stateOf(head, now()) === 'waiting');
    hasWaiting = waiting.length > 0;
    emit('approvalsCounted', {
      waiting: { caller: countFor('caller', waiting), reviewer: countFor('reviewer', waiting) },
    });
  }

  function countFor(party: ApprovalParty, waiting: readonly Approval[]) {
    const asked = waiting.filter((one) => openParties(one).includes(party));
    return { count: asked.length, oldestMs: Math.max(0, ...asked.map(({ createdAtMs }) => now() - createdAtMs)) };
  }

  /**
   * What is open is listed however many others are newer, so that nobody crowds out the questions of others; and as many
   * of the others however much is open, so that nobody crowds out the history.
   */
  async function list(): Promise<readonly Approval[] | 'unavailable'> {
    const open = await table.open(APPROVAL_BOUNDS.maxOpen);
    if (open === 'unavailable') return 'unavailable';
    const newest = await table.list(MAX_LISTED + open.length);
    if (newest === 'unavailable') return 'unavailable';
    const all = new Map([...open, ...newest].map(({ id, head }) => [id, head]));
    return [...all.values()]
      .map((head) => ({ ...head, state: stateOf(head, now()) }))
      .sort((one, other) => other.createdAtMs - one.createdAtMs);
  }

  return {
    consult: (question) =>
      retried(
        () => consultOnce(question),
        () => ({ kind: 'unavailable' }),
      ),
    async isWaiting(id) {
      const found = await table.find(id);
      return found !== undefined && found !== 'unavailable' && stateOf(found.head, now()) === 'waiting';
    },
    async find(id) {
      const found = await table.find(id);
      if (found === 'unavailable') return 'unavailable';
      if (found === undefined) return 'unknown';
      const content = await table.bodyOf(id);
      if (content === 'unavailable') return 'unavailable';
      return { ...found.head, state: stateOf(found.head, now()), content };
    },
    list,
    answer: (id, verdict, voice) =>
      retried(
        () => answerOnce(id, verdict, voice),
        () => ({ kind: 'unavailable' }),
      ),
    review,
    start() {
      timer = setInterval(() => void review().catch(() => undefined), REVIEW_EVERY_MS).unref();
    },
    close: () => clearInterval(timer),
  };
}

/** Runs until nobody else has changed the record meanwhile. What throws, a bug or a fault, is no yes. */
async function retried<T>(run: () => Promise<T | 'changed'>, otherwise: () => T): Promise<T> {
  try {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const outcome = await run();
      if (outcome !== 'changed') return outcome;
    }
  } catch {
    return otherwise();
  }
  return otherwise();
}

/** Whether a request of this subject may be a further round of the one that used the approval. */
function isRoundOf({ subject, usableUntilMs = 0 }: Approval, other: ApprovalSubject, nowMs: number): boolean {
  return isSameUnderRules(subject, other) && nowMs < usableUntilMs + ROUNDS_MS;
}

function isRemembered(approval: Approval, nowMs: number): boolean {
  const { state, answers, rememberedUntilMs = 0 } = approval;
  const atMs = answers.at(-1)?.atMs ?? Number.POSITIVE_INFINITY;
  return (state === 'used' || state === 'granted') && atMs <= nowMs && nowMs < rememberedUntilMs;
}

/** Whether nothing but the time has passed between two requests of one call. */
function isSameUnderRules(one: ApprovalSubject, other: ApprovalSubject): boolean {
  return one.pin === other.pin && one.rules === other.rules;
}

/** The call, whatever is pinned and whatever the rules say by now. */
function keyOf({ caller, upstream, method, name, digest, isTask }: ApprovalSubject): string {
  return JSON.stringify([...callerTermsOf(caller), upstream, method, name, digest, ...taskTermsOf(isTask)]);
}

/** Without a task, the key is what it was before there were any, so that what waits is found after an update. */
function taskTermsOf(isTask: boolean | undefined): readonly string[] {
  return isTask === true ? ['task'] : [];
}

function rememberKeyOf({
  caller,
  upstream,
  method,
  name,
  isTask,
  remembered,
  pin,
  rules,
}: ApprovalSubject): string | undefined {
  if (remembered === undefined) return undefined;
  return JSON.stringify([
    'remembered',
    ...callerTermsOf(caller),
    ...[upstream, method, name, pin ?? null, rules, remembered],
    ...taskTermsOf(isTask),
  ]);
}

function callerTermsOf({ issuer, subject, client, actors }: ApprovalSubject['caller']): readonly unknown[] {
  return [issuer, subject, client, actors.map((actor) => [actor.issuer, actor.subject])];
}
