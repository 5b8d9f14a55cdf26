// Approvals for those who review them: which are listed, what is shown of one as JSON, and whether somebody may answer.
// The desk behind it keeps the records and checks again who a reviewer may not be. docs/reference/approvals.md#reviewers.

import { maskArguments } from '../approvals/masking.js';
import {
  type AnswerOutcome,
  type Approval,
  type ApprovalCaller,
  type ApprovalDesk,
  type ApprovalVoice,
  openParties,
  refuseReviewer,
  type ShownApproval,
  stateOf,
} from '../policy/approval.js';
import type { Identity } from '../policy/principal.js';
import { groupBy } from '../text/grouping.js';
import type { AdminCaller } from './api-response.js';
import { BREAK_GLASS_SUBJECT, MAX_AUTH_AGE_SECONDS } from './sessions.js';

/** How far the issuer's clock may be ahead. */
const CLOCK_TOLERANCE_MS = 30_000;
const MS_PER_SECOND = 1_000;

/** No issuer has this identifier. */
const BREAK_GLASS_ISSUER = 'urn:sallyport:break-glass';

/** Why somebody may not grant, whatever the approval is. */
export type GrantRefusal = 'break-glass' | 'acted-for' | 'without-match' | 'pairwise' | 'not-authenticated-recently';

/**
 * Whether somebody may grant: a person of whom the token, or the login at the console, states that the authentication was a
 * moment ago. A token that states nothing may be a machine's (RFC 9068 §2.2.1), and a session may be an unattended browser's.
 */
export function refuseToGrant({ holder }: AdminCaller, nowMs: number): GrantRefusal | undefined {
  if (holder === undefined) return 'break-glass';
  if (holder.hasActors) return 'acted-for';
  // Whoever asks for a token without the claim could otherwise review what they asked for elsewhere.
  if (holder.untold !== undefined) return holder.untold === 'by-token' ? 'without-match' : 'pairwise';
  const { authenticatedAtMs: atMs } = holder;
  const isRecent =
    atMs !== undefined && atMs > nowMs - MAX_AUTH_AGE_SECONDS * MS_PER_SECOND && atMs <= nowMs + CLOCK_TOLERANCE_MS;
  return isRecent ? undefined : 'not-authenticated-recently';
}

/** What keeps somebody from granting one approval; `undefined` where nothing is known to. */
export function obstacleOf(
  caller: AdminCaller,
  approval: ShownApproval,
  nowMs: number,
): Exclude<ReviewOutcome, { readonly kind: 'taken' }> | undefined {
  const why = refuseToGrant(caller, nowMs) ?? (approval.content === undefined ? 'not-shown' : undefined);
  if (why !== undefined) return { kind: 'not-granted', why };
  const { holder } = caller;
  const refusal = holder && refuseReviewer(approval, holder.person, holder.groups);
  return refusal === undefined ? undefined : { kind: 'refused', why: refusal };
}

export type ReviewOutcome =
  | AnswerOutcome
  | { readonly kind: 'not-granted'; readonly why: GrantRefusal | 'not-shown' }
  | { readonly kind: 'unknown' };

/** Answers one approval for a reviewer, whose role was checked before. */
export async function answerApproval(
  { id, verdict }: { readonly id: string; readonly verdict: 'granted' | 'denied' },
  caller: AdminCaller,
  desk: ApprovalDesk,
  nowMs: number,
): Promise<ReviewOutcome> {
  const why = verdict === 'granted' ? refuseToGrant(caller, nowMs) : undefined;
  if (why !== undefined) return { kind: 'not-granted', why };
  const approval = await desk.find(id);
  if (approval === 'unavailable') return { kind: 'unavailable' };
  if (approval === 'unknown') return { kind: 'unknown' };
  // Nobody grants what nobody can be shown.
  if (verdict === 'granted' && approval.content === undefined) return { kind: 'not-granted', why: 'not-shown' };
  return desk.answer(id, verdict, voiceOf(caller, nowMs));
}

function voiceOf(caller: AdminCaller, nowMs: number): ApprovalVoice {
  const { holder } = caller;
  const limits = refuseToGrant(caller, nowMs) === undefined ? {} : { mayOnlyDeny: true as const };
  if (holder !== undefined)
    return { party: 'reviewer', person: holder.person, proof: holder.proof, groups: holder.groups, ...limits };
  const person = { issuer: BREAK_GLASS_ISSUER, subject: BREAK_GLASS_SUBJECT, match: undefined };
  return { party: 'reviewer', person, proof: 'token', groups: 'any', ...limits };
}

/** What one caller asks, the oldest first, as far as it is listed. */
export type CallerQuestions = {
  readonly caller: ApprovalCaller;
  readonly shown: readonly Approval[];
  /** How many more there are. */
  readonly more: number;
};

export type WaitingList = {
  readonly callers: readonly CallerQuestions[];
  /** How many wait of callers that are not listed. */
  readonly unlisted: number;
  /** How many wait for a reviewer at all. */
  readonly forReviewers: number;
};

/** However many requests of one caller wait, those of the others are seen. */
const SHOWN_PER_CALLER = 5;
const SHOWN_CALLERS = 100;

/** What waits at a time, by caller. */
export function waitingList(all: readonly Approval[], nowMs: number): WaitingList {
  const oldestFirst = all.filter((one) => stateOf(one, nowMs) === 'waiting').toReversed();
  const forReviewers = oldestFirst.filter(waitsForReviewer);
  // What callers have to answer themselves comes last, so that it takes no reviewer's place.
  const waiting = [...forReviewers, ...oldestFirst.filter((one) => !waitsForReviewer(one))];
  const groups = groupBy(waiting, ({ subject: { caller } }) => JSON.stringify([caller.issuer, caller.subject]));
  const callers = [...groups.values()].slice(0, SHOWN_CALLERS).map((questions) => {
    const shown = questions.slice(0, SHOWN_PER_CALLER);
    return { caller: questions[0].subject.caller, shown, more: questions.length - shown.length };
  });
  const listed = callers.reduce((sum, { shown, more }) => sum + shown.length + more, 0);
  return { callers, unlisted: waiting.length - listed, forReviewers: forReviewers.length };
}

export function waitsForReviewer(approval: Approval): boolean {
  return openParties(approval).includes('reviewer');
}

/** Of the history, the newest. */
const SHOWN_HISTORY = 200;

/** What became of the others, the newest first, and how many are not listed. */
export function historyList(
  all: readonly Approval[],
  nowMs: number,
): { readonly shown: readonly Approval[]; readonly more: number } {
  const over = all.filter((one) => stateOf(one, nowMs) !== 'waiting');
  const shown = over.slice(0, SHOWN_HISTORY);
  return { shown, more: over.length - shown.length };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function shownIdentity({ issuer, subject }: Identity): Identity {
  return { issuer, subject };
}

/** One caller as JSON. */
export function shownCaller({ client, actors, ...identity }: ApprovalCaller): object {
  return { ...shownIdentity(identity), client, actors: actors.map(shownIdentity) };
}

/** One approval as the list shows it: neither arguments nor what was learnt from them. */
export function shownApproval(approval: Approval, nowMs: number): object {
  const { id, subject, demand, decisionId, answers, usableUntilMs, rememberedUntilMs } = approval;
  const state = stateOf(approval, nowMs);
  return {
    id,
    state,
    waitsFor: state === 'waiting' ? openParties(approval) : [],
    caller: shownCaller(subject.caller),
    ...{ upstream: subject.upstream, method: subject.method, name: subject.name },
    ...(subject.shownAs === undefined ? {} : { shownAs: subject.shownAs }),
    ...{ rules: demand.rules, reasons: demand.reasons },
    reviewers: demand.reviewer === undefined ? null : { count: demand.reviewer.count, groups: demand.reviewer.groups },
    answers: answers.map(({ party, verdict, person, proof, atMs }) => ({
      ...{ party, verdict, person: shownIdentity(person), proof, at: timeOf(atMs) },
    })),
    decision: decisionId,
    created: timeOf(approval.createdAtMs),
    expires: timeOf(approval.expiresAtMs),
    usableUntil: usableUntilMs === undefined ? null : timeOf(usableUntilMs),
    rememberedUntil: rememberedUntilMs === undefined ? null : timeOf(rememberedUntilMs),
  };
}

/** One approval with what the person has to see to answer. `isUnmasked`: the person asked for the sensitive values. */
export function shownInFull(approval: ShownApproval, nowMs: number, isUnmasked: boolean): object {
  const { content, shown } = approval;
  const known = { ...shownApproval(approval, nowMs), shown: `sha256:${shown}` };
  if (content === undefined) return known;
  const { args, definition, selfReported, labels, findings, sensitive } = content;
  return {
    ...known,
    // The text itself, because a parser may change numbers and drop members.
    arguments: isUnmasked ? args : maskArguments(content),
    argumentsBytes: Buffer.byteLength(args),
    masked: isUnmasked ? [] : sensitive,
    definition: definition ?? null,
    selfReported: selfReported === undefined ? null : { name: selfReported.name, version: selfReported.version },
    labels: labels === 'unknown' ? null : labels,
    findings: findings.map(({ detector, path, count, action }) => ({ detector, path, count, action })),
  };
}
