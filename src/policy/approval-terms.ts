// What rules and flows ask of a person before a request is forwarded, each for itself and all of them together. Pure.
// docs/reference/approvals.md.

import { durationText } from '../text/wording.js';

/** The requests of clients that a person may be asked about. What else names the same items passes without. */
export const APPROVABLE_METHODS: ReadonlySet<string> = new Set(['tools/call', 'resources/read', 'prompts/get']);

/** Who answers: the person on whose behalf the call is made, or somebody else. */
export type ApprovalParty = 'caller' | 'reviewer';

/**
 * How it is known that the caller is the person who answers: by a login at the issuer a moment before, or not at all,
 * because a client answers a form.
 */
export type ApprovalProof = 'login' | 'client';

/** A yes that counts again, for as long as nothing but other arguments changes. */
export type RememberTerms = {
  readonly forMs: number;
  /** JSON pointers to the arguments that must be equal; undefined: all of them. */
  readonly same: readonly string[] | undefined;
};

/** What one rule or flow asks for, with its defaults. */
export type ApprovalTerms = {
  /** How long the question stands. */
  readonly expiresMs: number;
  /** How long a yes may be used. */
  readonly useMs: number;
} & (
  | { readonly by: 'caller'; readonly proof: ApprovalProof; readonly remember: RememberTerms | undefined }
  | { readonly by: 'reviewer'; readonly groups: readonly string[] | undefined; readonly count: number }
);

/** In words: `by reviewer of group ops, 2 people, within 10m`. Names of groups and pointers are quoted as they are. */
export function describeTerms(terms: ApprovalTerms): string {
  const within = `within ${durationText(terms.expiresMs)}`;
  if (terms.by === 'reviewer') {
    const { groups = [], count } = terms;
    const who = groups.length === 0 ? 'by reviewer' : `by reviewer of group ${groups.join(' or ')}`;
    return [who, ...(count > 1 ? [`${count} people`] : []), within].join(', ');
  }
  const { proof, remember } = terms;
  const how = proof === 'login' ? 'after a login' : 'answered by the client, perhaps without a person';
  const parts = ['by the caller', how, within];
  if (remember === undefined) return parts.join(', ');
  const same = remember.same?.join(' and ') ?? 'all arguments';
  return [...parts, `remembered for ${durationText(remember.forMs)} while ${same} stay equal`].join(', ');
}

/** One rule or flow that asks, as it is kept beside a decision. */
export type ApprovalRequirement = {
  /** `policy/rule` or `policy/flow`. */
  readonly rule: string;
  /** SHA-256 of what the rule says, lower-case hex: a yes is void where it changes. */
  readonly text: string;
  /** What the rule tells the person. */
  readonly reason: string | undefined;
  readonly terms: ApprovalTerms;
};

/** What all requirements together ask for: the strictest of each. A call that needs both parties needs a yes of each. */
export type ApprovalDemand = {
  /** Sorted. */
  readonly rules: readonly string[];
  readonly reasons: readonly string[];
  readonly caller: { readonly proof: ApprovalProof; readonly remember: RememberTerms | undefined } | undefined;
  /** `groups`: the reviewer must be in one group of every list. */
  readonly reviewer: { readonly groups: readonly (readonly string[])[]; readonly count: number } | undefined;
  readonly expiresMs: number;
  readonly useMs: number;
};

/** Of several requirements, one demand; undefined without any. */
export function demandOf(requirements: readonly ApprovalRequirement[]): ApprovalDemand | undefined {
  if (requirements.length === 0) return undefined;
  const sorted = [...requirements].sort((one, other) => (one.rule < other.rule ? -1 : 1));
  const terms = sorted.map((requirement) => requirement.terms);
  const callers = terms.filter((one) => one.by === 'caller');
  const reviewers = terms.filter((one) => one.by === 'reviewer');
  const [first] = callers;
  return {
    rules: sorted.map(({ rule }) => rule),
    reasons: [...new Set(sorted.flatMap(({ reason }) => reason ?? []))],
    caller: first && {
      proof: callers.some(({ proof }) => proof === 'login') ? 'login' : 'client',
      // What a reviewer is asked as well is asked each time.
      remember: reviewers.length > 0 ? undefined : callers.map(({ remember }) => remember).reduce(shorter),
    },
    reviewer:
      reviewers.length === 0
        ? undefined
        : {
            groups: reviewers.flatMap(({ groups }) => (groups === undefined ? [] : [groups])),
            count: Math.max(...reviewers.map(({ count }) => count)),
          },
    expiresMs: Math.min(...terms.map(({ expiresMs }) => expiresMs)),
    useMs: Math.min(...terms.map(({ useMs }) => useMs)),
  };
}

/** What holds of a yes that two rules ask for: remembered if both say so, for the shorter time, for what is equal in both. */
function shorter(one: RememberTerms | undefined, other: RememberTerms | undefined): RememberTerms | undefined {
  if (one === undefined || other === undefined) return undefined;
  const same = one.same && other.same && [...new Set([...one.same, ...other.same])].sort();
  return { forMs: Math.min(one.forMs, other.forMs), same };
}
