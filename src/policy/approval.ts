// Approvals: what a yes is bound to, who may give one, and the record of one. Pure. What rules ask for is in
// approval-terms.ts; src/approvals/ keeps the records and takes the answers; proxy/approval.ts asks for them.
// docs/reference/approvals.md.

import type { JsonObject } from '../protocol/jsonrpc.js';
import type { ApprovalDemand, ApprovalParty, ApprovalProof } from './approval-terms.js';
import type { Identity } from './principal.js';
import type { Finding } from './record.js';

export type {
  ApprovalDemand,
  ApprovalParty,
  ApprovalProof,
  ApprovalRequirement,
  ApprovalTerms,
  RememberTerms,
} from './approval-terms.js';

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
  readonly actors: readonly Identity[];
};

/** What a yes is for. Another call is another question; the same call under another pin or rule is a mismatch. */
export type ApprovalSubject = {
  readonly caller: ApprovalCaller;
  readonly upstream: string;
  readonly method: string;
  /** The tool, prompt or URI; the kind of a server request. */
  readonly name: string;
  /** Keyed digest of the arguments as they would be forwarded. */
  readonly args: string;
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
  /** What this caller has received before, by label. */
  readonly labels: readonly string[];
  readonly findings: readonly Finding[];
  /** JSON pointers into `args`, whose values are masked unless the person asks for them. */
  readonly sensitive: readonly string[];
};

export type ApprovalState = 'waiting' | 'granted' | 'denied' | 'used' | 'expired' | 'void';

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

/** The state at a time. */
export function stateOf({ state, expiresAtMs, usableUntilMs }: Approval, nowMs: number): ApprovalState {
  if (state === 'waiting' && nowMs >= expiresAtMs) return 'expired';
  if (state === 'granted' && nowMs >= (usableUntilMs ?? 0)) return 'expired';
  return state;
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
export type ReviewerRefusal = 'is-caller' | 'is-actor' | 'answered-before' | 'not-in-group';

/**
 * Whether somebody may answer as a reviewer: never the caller, whoever acts for the caller, or the same person twice. Two
 * identities are one person if they are equal, or if their `match` is.
 */
export function refuseReviewer(
  { subject: { caller }, demand, answers }: Pick<Approval, 'subject' | 'demand' | 'answers'>,
  person: ApprovalPerson,
  groups: readonly string[],
): ReviewerRefusal | undefined {
  if (isSamePerson(caller, person)) return 'is-caller';
  if (caller.actors.some((actor) => isSameIdentity(actor, person))) return 'is-actor';
  if (answers.some((answer) => isSamePerson(answer.person, person))) return 'answered-before';
  const lists = demand.reviewer?.groups ?? [];
  return lists.every((list) => list.some((group) => groups.includes(group))) ? undefined : 'not-in-group';
}

function isSameIdentity(one: Identity, other: Identity): boolean {
  return one.issuer === other.issuer && one.subject === other.subject;
}

/** One person: the same identity, or the same value of the claim that `match` names. */
export function isSamePerson(
  one: Identity & { readonly match: string | undefined },
  other: Identity & { readonly match: string | undefined },
): boolean {
  return isSameIdentity(one, other) || (one.match !== undefined && one.match === other.match);
}

/** What the stage asks about a call that needs an approval. */
export type ApprovalQuestion = Pick<Approval, 'subject' | 'demand' | 'decisionId'> & {
  /** Made only where somebody has to be asked. */
  readonly content: () => ApprovalContent | Promise<ApprovalContent>;
  /** Identifies the caller, whose open questions are bounded. */
  readonly owner: string;
};

/**
 * What became of it. `granted`: this request may pass, once. `waiting`: a question stands; `isNew` if this request asked
 * it. `late`: the yes was not used in time, and the question is asked anew. `crowded`: too many of this caller, or of all
 * callers, wait. `too-large`: nobody could be shown the arguments.
 */
export type ApprovalOutcome =
  | { readonly kind: 'granted'; readonly approval: Approval; readonly isRemembered: boolean }
  | { readonly kind: 'waiting'; readonly approval: Approval; readonly isNew: boolean; readonly isLate: boolean }
  | { readonly kind: 'denied' | 'mismatch'; readonly approval: Approval }
  | { readonly kind: 'crowded' | 'too-large' | 'unavailable' };

/** The approvals, as the pipeline uses them. */
export type ApprovalPort = {
  /** Looks for a yes and uses it, or asks. Never rejects. */
  consult(question: ApprovalQuestion): Promise<ApprovalOutcome>;
};

/** How an answer was taken. */
export type AnswerOutcome =
  | { readonly kind: 'taken'; readonly approval: Approval }
  | { readonly kind: 'refused'; readonly why: ReviewerRefusal | 'not-the-caller' | 'not-asked' }
  /** Answered, used, void or expired before; or unknown. */
  | { readonly kind: 'over'; readonly approval: Approval | undefined }
  | { readonly kind: 'unavailable' };

/** Whoever answers, and for a reviewer the groups by which they may. */
export type ApprovalVoice = Omit<ApprovalAnswer, 'atMs' | 'verdict'> & { readonly groups: readonly string[] };

/** The approvals, as pages, the admin API and forms use them. None rejects. */
export type ApprovalDesk = {
  find(id: string): Promise<ShownApproval | 'unknown' | 'unavailable'>;
  /** The newest first: what waits, and what became of the others for as long as it is kept. */
  list(): Promise<readonly Approval[] | 'unavailable'>;
  answer(id: string, verdict: ApprovalAnswer['verdict'], voice: ApprovalVoice): Promise<AnswerOutcome>;
};
