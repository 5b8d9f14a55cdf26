// Approvals: what a yes is bound to, who may give one, and the record of one. Pure. What rules ask for is in
// approval-terms.ts; src/approvals/ keeps the records and takes the answers; proxy/approval.ts asks for them.
// docs/reference/approvals.md.

import type { JsonObject } from '../protocol/jsonrpc.js';
import type { DisconnectSignal } from '../protocol/transport.js';
import type { ApprovalDemand, ApprovalParty, ApprovalProof } from './approval-terms.js';
import type { Identity, Principal } from './principal.js';
import type { Finding } from './record.js';

export type {
  ApprovalDemand,
  ApprovalParty,
  ApprovalProof,
  ApprovalRequirement,
  ApprovalTerms,
  RememberTerms,
} from './approval-terms.js';

/** `match`: the claim by which one person is known at several issuers or clients, where one is configured. */
type Person = Identity & { readonly match?: string | undefined };

/** Whoever answers, as a verified login or token names them. */
export type ApprovalPerson = Identity & {
  /** The value of the claim by which one person is known at several issuers or clients, where one is configured. */
  readonly match: string | undefined;
};

export type ApprovalAnswer = {
  readonly party: ApprovalParty;
  readonly verdict: 'granted' | 'denied';
  readonly person: ApprovalPerson;
  /** `login`: in a browser; `token`: by the API, with a recent `auth_time`; `client`: perhaps nobody. */
  readonly proof: ApprovalProof | 'token';
  readonly atMs: number;
};

/** Who calls, as far as an approval is bound to it. */
export type ApprovalCaller = Identity & {
  /** The name of the issuer in the configuration. */
  readonly issuerName: string;
  readonly client: string;
  /** The value of the claim by which this person is known elsewhere, where one is configured. */
  readonly match: string | undefined;
  readonly actors: readonly ApprovalActor[];
};

/** Somebody who acts for the caller. */
export type ApprovalActor = Person & {
  /** It is a client by its token, and no person. */
  readonly isClient?: boolean | undefined;
};

/** What a yes is for. Another call is another question; the same call under another pin or rule is a mismatch. */
export type ApprovalSubject = {
  readonly caller: ApprovalCaller;
  readonly upstream: string;
  readonly method: string;
  /** The tool, prompt or URI; the kind of a server request. */
  readonly name: string;
  /** The name by which clients know the tool, where the operator has given it another than the server. */
  readonly shownAs?: string | undefined;
  /** The call asks for a task (MCP 2025-11-25), which is another request than the same call without. */
  readonly isTask?: boolean | undefined;
  /** Keyed digest of the arguments as they would be forwarded: for records, which never hold another. */
  readonly args: string;
  /** SHA-256 of the same, by which an approval is found: it outlives a rotation of the gateway's keys. */
  readonly digest: string;
  /** SHA-256 of those that must be equal for a yes to count again; undefined where it never does. */
  readonly remembered: string | undefined;
  readonly pin: string | undefined;
  /** Digest of the texts of the rules that decided. */
  readonly rules: string;
};

/** What the person is shown, exactly. */
export type ApprovalContent = {
  /** JSON of the arguments as they would be forwarded, or of the params of a server request. */
  readonly args: string;
  /** The approved definition; undefined where nothing is pinned. */
  readonly definition: JsonObject | undefined;
  /** What the client says of itself. */
  readonly selfReported: { readonly name: string; readonly version: string } | undefined;
  /** What this caller has received before, by label; `unknown` where nothing is kept of it, or it cannot be read. */
  readonly labels: readonly string[] | 'unknown';
  readonly findings: readonly Finding[];
  /** JSON pointers into `args`, whose values are masked unless the person asks for them. */
  readonly sensitive: readonly string[];
};

export type ApprovalState = 'waiting' | 'granted' | 'denied' | 'used' | 'expired' | 'void';

/** The most that a person is shown of one request, as JSON text. */
export const MAX_SHOWN_CHARACTERS = 1024 * 1024;

/** A question and what became of it, without what the person is shown. */
export type Approval = {
  /** Random; it is in links, and tells nothing. */
  readonly id: string;
  readonly subject: ApprovalSubject;
  readonly demand: ApprovalDemand;
  /** SHA-256 of `content` and `demand` as JSON, lower-case hex: what the person saw. */
  readonly shown: string;
  /** The decision that asked. */
  readonly decisionId: string;
  readonly createdAtMs: number;
  /** Until then it can be answered, and a no holds. */
  readonly expiresAtMs: number;
  readonly answers: readonly ApprovalAnswer[];
  /** As stored: what has just expired may still wait here; see `stateOf`. */
  readonly state: ApprovalState;
  /** Until then a yes may be used; set when the last answer grants. */
  readonly usableUntilMs: number | undefined;
  /** Until then it counts again; set with the yes where the rules say so. */
  readonly rememberedUntilMs: number | undefined;
};

/** An approval with what the person is shown; undefined where that is not kept any more. */
export type ShownApproval = Approval & { readonly content: ApprovalContent | undefined };

/** The clocks of two replicas may differ by this much; what comes from a later time was kept before a clock went back. */
const CLOCK_SKEW_MS = 60_000;

/** The state at a time. */
export function stateOf(
  { state, createdAtMs, expiresAtMs, usableUntilMs, answers }: Approval,
  nowMs: number,
): ApprovalState {
  const newestMs = answers.at(-1)?.atMs ?? createdAtMs;
  const isOver =
    newestMs > nowMs + CLOCK_SKEW_MS || nowMs >= (state === 'granted' ? (usableUntilMs ?? 0) : expiresAtMs);
  return isOver && (state === 'waiting' || state === 'granted') ? 'expired' : state;
}

/** Which parties have not said yes yet. */
export function openParties({ demand, answers }: Pick<Approval, 'demand' | 'answers'>): readonly ApprovalParty[] {
  const granted = (party: ApprovalParty): number =>
    answers.filter((answer) => answer.party === party && answer.verdict === 'granted').length;
  const open: ApprovalParty[] = [];
  if (demand.caller !== undefined && granted('caller') === 0) open.push('caller');
  if (demand.reviewer !== undefined && granted('reviewer') < demand.reviewer.count) open.push('reviewer');
  return open;
}

/** Why a person may not answer as a reviewer. */
export type ReviewerRefusal = 'is-caller' | 'is-actor' | 'answered-before' | 'not-told-apart' | 'not-in-group';

/** Why an answer is not taken. `no-proof`: the rules ask for a login, or this voice may not grant at all. */
export type AnswerRefusal = ReviewerRefusal | 'not-the-caller' | 'not-asked' | 'no-proof';

/**
 * Whether somebody may answer as a reviewer: never the caller, whoever acts for the caller, or the same person twice. Two
 * identities are one person if they are equal, or if their `match` is. A client that acts is no person, so that it is
 * told apart without `match`.
 */
export function refuseReviewer(
  { subject: { caller }, demand, answers }: Pick<Approval, 'subject' | 'demand' | 'answers'>,
  person: ApprovalPerson,
  groups: readonly string[] | 'any',
): ReviewerRefusal | undefined {
  if (isSamePerson(caller, person)) return 'is-caller';
  if (caller.actors.some((actor) => isSamePerson(actor, person))) return 'is-actor';
  if (answers.some((answer) => isSamePerson(answer.person, person))) return 'answered-before';
  const others = [
    caller,
    ...caller.actors.filter(({ isClient }) => isClient !== true),
    ...answers.map((one) => one.person),
  ];
  if (others.some((other) => areIndistinct(other, person))) return 'not-told-apart';
  return isNamed(demand, groups) ? undefined : 'not-in-group';
}

/** Whether somebody of these groups is among those whom the rules name. */
function isNamed({ reviewer }: ApprovalDemand, groups: readonly string[] | 'any'): boolean {
  const isIn = (list: readonly string[]): boolean => groups === 'any' || list.some((group) => groups.includes(group));
  return (reviewer?.groups ?? []).every(isIn);
}

function isSameIdentity(one: Identity, other: Identity): boolean {
  return one.issuer === other.issuer && one.subject === other.subject;
}

/** Only one of the tokens carries the claim by which one person is known: what a token says may depend on the scope asked for. */
function areIndistinct(one: Person, other: Person): boolean {
  return (one.match === undefined) !== (other.match === undefined);
}

/** One person: the same identity, or the same value of the claim that `match` names. */
export function isSamePerson(one: Person, other: Person): boolean {
  return isSameIdentity(one, other) || (one.match !== undefined && one.match === other.match);
}

/** What the stage asks about a call that needs an approval. */
export type ApprovalQuestion = Pick<Approval, 'subject' | 'demand' | 'decisionId'> & {
  /** Made only where somebody has to be asked. */
  readonly content: () => ApprovalContent | Promise<ApprovalContent>;
  /** Identifies the caller, whose open questions are bounded. */
  readonly owner: string;
  /**
   * Of a further round of a request that was approved, in which the caller answers what its server asked: identifies what
   * the server gave it for that, so that each round passes once.
   */
  readonly round?: string | undefined;
  /** It passes as such a round or not at all, because it carries answers that no person is shown. */
  readonly isRoundOnly?: boolean | undefined;
};

/**
 * What became of it. `granted`: this request may pass, once `use` says so. `waiting`: a question stands; `isNew` if this request asked
 * it. `late`: the yes was not used in time, and the question is asked anew. `crowded`: too many of this caller, or of all
 * callers, wait. `too-large`, `unseen`: nobody could be shown what it carries. `unrecorded`: the audit log cannot be written.
 */
export type ApprovalOutcome =
  | {
      readonly kind: 'granted';
      readonly approval: Approval;
      /** Uses it up, unless it counts again. */
      readonly use: () => Promise<ApprovalUse>;
    }
  | { readonly kind: 'waiting'; readonly approval: Approval; readonly isNew: boolean; readonly isLate: boolean }
  | { readonly kind: 'denied' | 'mismatch'; readonly approval: Approval }
  | { readonly kind: 'crowded' | 'too-large' | 'unseen' | 'unavailable' | 'unrecorded' };

/** `taken`: another request was faster. */
export type ApprovalUse = 'used' | 'taken' | 'unavailable' | 'unrecorded';

/** The approvals, as the pipeline uses them. */
export type ApprovalPort = {
  /** Looks for a yes, or asks. Never rejects. */
  consult(question: ApprovalQuestion): Promise<ApprovalOutcome>;
  /** Who calls, as an approval is bound to it. */
  callerOf(principal: Principal): ApprovalCaller;
  /** Where the caller answers, in a browser; undefined where the caller's issuer has no login. */
  linkTo(id: string, caller: ApprovalCaller): string | undefined;
  /** Takes what the client of this caller answered to the gateway's form, perhaps without a person. */
  answerByForm(id: string, principal: Principal, isGranted: boolean): Promise<AnswerOutcome>;
  /** Resolves when it no longer waits, at the latest after `withinMs` milliseconds, or when the signal is aborted. */
  waitForAnswer(id: string, withinMs: number, signal: DisconnectSignal): Promise<void>;
};

/** How an answer was taken. */
export type AnswerOutcome =
  | { readonly kind: 'taken'; readonly approval: Approval }
  | { readonly kind: 'refused'; readonly why: AnswerRefusal }
  /** It was answered before, or is over; without an approval, it is unknown. */
  | { readonly kind: 'over'; readonly approval: Approval | undefined }
  | { readonly kind: 'unavailable' | 'unrecorded' };

/** Whoever answers, and for a reviewer the groups by which they may. */
export type ApprovalVoice = Omit<ApprovalAnswer, 'atMs' | 'verdict'> & {
  /** `any`: the break-glass token, which has none. */
  readonly groups: readonly string[] | 'any';
  /** It grants nothing: the break-glass token, and a token without a recent `auth_time`. */
  readonly mayOnlyDeny?: true;
};

/** Why an answer is not taken from this voice; undefined where it is. */
export function refuseAnswer(
  approval: Pick<Approval, 'subject' | 'demand' | 'answers'>,
  verdict: ApprovalAnswer['verdict'],
  voice: ApprovalVoice,
): AnswerRefusal | undefined {
  return voice.party === 'caller' ? refuseCaller(approval, verdict, voice) : refuseVoice(approval, verdict, voice);
}

function refuseCaller(
  { demand, subject }: Pick<Approval, 'subject' | 'demand'>,
  verdict: ApprovalAnswer['verdict'],
  { person, proof }: ApprovalVoice,
): AnswerRefusal | undefined {
  if (demand.caller === undefined) return 'not-asked';
  if (!isSamePerson(subject.caller, person)) return 'not-the-caller';
  // To a no there is nothing to prove: it only keeps the caller from the caller's own request.
  if (verdict === 'denied') return undefined;
  return demand.caller.proof === 'login' && proof !== 'login' ? 'no-proof' : undefined;
}

function refuseVoice(
  approval: Pick<Approval, 'subject' | 'demand' | 'answers'>,
  verdict: ApprovalAnswer['verdict'],
  { person, groups, mayOnlyDeny }: ApprovalVoice,
): AnswerRefusal | undefined {
  if (approval.demand.reviewer === undefined) return 'not-asked';
  if (mayOnlyDeny === true && verdict === 'granted') return 'no-proof';
  // Whoever may not grant it for who they are may still stop it, if the rule names them.
  if (verdict === 'denied') return isNamed(approval.demand, groups) ? undefined : 'not-in-group';
  return refuseReviewer(approval, person, groups);
}

/** The approvals, as pages, the admin API and forms use them. None rejects. */
export type ApprovalDesk = {
  find(id: string): Promise<ShownApproval | 'unknown' | 'unavailable'>;
  /** The newest first: what waits, and what became of the others for as long as it is kept. */
  list(): Promise<readonly Approval[] | 'unavailable'>;
  answer(id: string, verdict: ApprovalAnswer['verdict'], voice: ApprovalVoice): Promise<AnswerOutcome>;
};
