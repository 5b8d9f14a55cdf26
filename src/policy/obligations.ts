// Enforces the obligations of an allow that must be met before a message is forwarded. Only here an AuthorizedRequest is
// made, which is all that forwarding accepts. The only stage that uses the limit store: it takes one use of each rate,
// charges each budget, and stops at the first that is exhausted without asking the store for anything else. A store can
// only restrict: it refuses, or reports that it is unavailable. Also defines the ports of the stores, which state/
// implements, and what proxy/ asks the adapters of upstream/ to send, and on whose behalf.
// docs/reference/design.md, "Types hold the order"; docs/contract.md, law 3; docs/reference/state.md.

import type { AdmittedMessage, SessionFacts, TaskFacts } from '../protocol/admitted-request.js';
import type { Message, RequestId, Target } from '../protocol/jsonrpc.js';
import type { ProgressCount } from '../protocol/params.js';
import type { DisconnectSignal } from '../protocol/transport.js';
import { after } from '../text/after.js';
import { APPROVABLE_METHODS, type ApprovalRequirement } from './approval-terms.js';
import {
  type Allow,
  adviceForYoung,
  approvalOf,
  type Budget,
  type Deny,
  type LimitedRequirement,
  type Obligation,
  type RateLimit,
} from './decision.js';
import type { Caller, Principal } from './principal.js';

/** A private member cannot be written, and a spread leaves it out, so a value is made only where the casts are. */
declare class AuthorizedBrand {
  private readonly brand: never;
}

/** The obligations of an allow that its response must meet. */
export type ResponseObligations = {
  /** The smallest of all caps, in bytes. */
  readonly maxResultBytes: number | undefined;
  /** Names of inspection profiles; all of them apply. */
  readonly profiles: readonly string[];
};

/** A message that has passed every stage. Made only here. */
export type AuthorizedRequest<M extends Message = Message> = AuthorizedBrand & {
  readonly admitted: AdmittedMessage<M>;
  readonly principal: Principal;
  readonly allow: Allow;
  readonly responseObligations: ResponseObligations;
};

/** The same authorization for a copy of its message, for an upstream that is reached in another session. */
export function replaceAdmitted(authorized: AuthorizedRequest, admitted: AdmittedMessage): AuthorizedRequest {
  return { ...authorized, admitted } as AuthorizedRequest;
}

/** A yes that was found, and is used once everything else has passed. */
export type Approved = {
  readonly isApproved?: boolean;
  /** What rules ask whose limits then do not count: {@link findBeyondLimits}. */
  readonly lifted?: readonly ApprovalRequirement[];
};

const NOTHING_LIFTED: readonly ApprovalRequirement[] = Object.freeze([]);

export type EnforcePorts = { readonly limits: LimitStore };

/**
 * Enforces the obligations of an allow: at once where it has no limits. A store that fails is a refusal. `named` allows the
 * items that the message names besides its target: each counts as a request of its own.
 */
export function enforce<M extends Message>(
  allow: Allow,
  admitted: AdmittedMessage<M>,
  principal: Principal,
  ports: EnforcePorts,
  named: readonly Allow[] = NOTHING_NAMED,
  { isApproved = false, lifted = NOTHING_LIFTED }: Approved = {},
): AuthorizedRequest<M> | Deny | Promise<AuthorizedRequest<M> | Deny> {
  if (isReply(admitted)) return authorize(allow, admitted, principal);
  const unapproved = allow.obligations.length === 0 || isApproved ? undefined : refuseUnapproved(allow, admitted);
  return after(
    unapproved ?? enforceLimits([allow, ...named], principal, ports.limits, lifted),
    (deny) => deny ?? authorize(allow, admitted, principal),
  );
}

/** Why a request that needs an approval is not forwarded. */
function refuseUnapproved(allow: Allow, { rule }: AdmittedMessage): Deny | undefined {
  const deny = requireApproval(allow);
  return deny !== undefined && APPROVABLE_METHODS.has(rule.method) ? deny : undefined;
}

/** The refusal of what needs an approval and has none. */
export function requireApproval(allow: Allow): Deny | undefined {
  const obligation = approvalOf(allow);
  const [first] = obligation?.requirements ?? [];
  if (first === undefined && obligation?.isPending !== true) return undefined;
  return { verdict: 'deny', reason: 'approval-required', listed: true, ...(first && ruleOf(first)) };
}

const NOTHING_NAMED: readonly Allow[] = Object.freeze([]);

/** A reply to a server request was counted when the request was made. */
function isReply({ message }: AdmittedMessage): boolean {
  return message.kind === 'result' || message.kind === 'error';
}

// INVARIANT: casts to AuthorizedRequest are in this file alone.
function authorize<M extends Message>(
  allow: Allow,
  admitted: AdmittedMessage<M>,
  principal: Principal,
): AuthorizedRequest<M> {
  return {
    allow,
    admitted,
    principal,
    responseObligations: responseObligationsOf(allow, admitted.task),
  } as AuthorizedRequest<M>;
}

const NO_RESPONSE_OBLIGATIONS: ResponseObligations = Object.freeze({
  maxResultBytes: undefined,
  profiles: [],
});

/**
 * Collects the obligations that the response must meet; for a request about a task, also those of the call
 * that created it.
 */
export function responseObligationsOf(
  allow: Allow,
  task?: Pick<TaskFacts, 'maxResultBytes' | 'profiles'>,
): ResponseObligations {
  if (allow.obligations.length === 0 && task === undefined) return NO_RESPONSE_OBLIGATIONS;
  let maxResultBytes = task?.maxResultBytes;
  const profiles: string[] = [...(task?.profiles ?? [])];
  for (const obligation of allow.obligations) {
    switch (obligation.kind) {
      // Approvals and limits are enforced before; captured arguments were recorded with the decision.
      case 'rate':
      case 'budget':
      case 'capture':
      case 'approval':
        break;
      case 'max-result-bytes':
        maxResultBytes = Math.min(obligation.bytes, maxResultBytes ?? obligation.bytes);
        break;
      case 'inspect':
        if (!profiles.includes(obligation.profile)) profiles.push(obligation.profile);
    }
  }
  return { maxResultBytes, profiles };
}

/** The obligations with the inspection profiles that further decisions name, about what the response contains. */
export function withProfilesOf(
  obligations: ResponseObligations | undefined,
  allows: readonly Allow[],
): ResponseObligations | undefined {
  const named = allows.flatMap((allow) => responseObligationsOf(allow).profiles);
  if (named.length === 0) return obligations;
  const profiles = [...new Set([...(obligations?.profiles ?? []), ...named])];
  return { maxResultBytes: obligations?.maxResultBytes, profiles };
}

/** The progress of a request that runs, and by what its messages are checked wherever they arrive. */
export type RunningRequest = ProgressCount & {
  readonly target: Target;
  readonly responseObligations: ResponseObligations;
};

export type OutboundRequest = {
  readonly authorized: AuthorizedRequest;
  readonly caller: Caller;
  readonly signal: DisconnectSignal | undefined;
  /** Whether a session that the upstream has lost is replaced, because the client's has others: in an aggregate. */
  readonly reopensSession?: boolean;
};

/** A session stream to be opened. */
export type OutboundStream = {
  readonly session: SessionFacts;
  readonly caller: Caller;
  readonly signal: DisconnectSignal;
  /** The upstream's own event id, if a stream is resumed after it. */
  readonly lastEventId: string | undefined;
  /** As in {@link OutboundRequest}. */
  readonly reopensSession?: boolean;
  /** Those of the resources that earlier requests in the session have named which the caller may read by now. */
  readonly readableOf: (uris: Iterable<string>) => Promise<readonly string[]>;
};

/** A request within a session, from or to the server, and the caller on whose behalf the gateway acts on it. */
export type SessionRequest = {
  readonly session: SessionFacts;
  readonly id: RequestId;
  readonly caller: Caller;
};

/** The gateway's own reply to a server request: `pong`, or the error that says why there will be no result. */
export type GatewayReply = 'pong' | { readonly code: number; readonly message: string };

export type LimitWindow = {
  readonly count: number;
  readonly windowMs: number;
  /** How much of `count` is taken: a whole number, 1 if absent. */
  readonly amount?: number;
  /** Counted in the shared store or not at all: while it cannot be reached, no replica allows a share of its own. */
  readonly isSharedOnly?: boolean;
};

/** `unavailable`: the store could not be reached, and nothing may be concluded. */
export type LimitOutcome =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly retryAfterMs: number;
      /** What was counted before is lost, so that for so long nobody can tell what is left. */
      readonly isLost?: true;
    }
  | 'unavailable';

export interface LimitStore {
  /**
   * Counts the amount under the key, unless more than `count` would then fall within the last `windowMs` milliseconds.
   */
  take(key: string, limit: LimitWindow): LimitOutcome | Promise<LimitOutcome>;
}

/** True for the first use, false for every other; `unavailable` if that cannot be determined, which is a refusal. */
export type ReplayOutcome = boolean | 'unavailable';

/** Remembers that something was used, so that it is accepted only once: proofs of possession, by a keyed hash. */
export type ReplayStore = {
  /**
   * Records a use. `keyHash` is a keyed hash, never the value that was used; it may be forgotten after
   * `expiresAtMs` (milliseconds since the epoch). `owner` identifies whose use it is: where capacity is
   * bounded, no owner can take all of it. Of concurrent uses exactly one is the first. Never throws or
   * rejects.
   */
  useOnce(keyHash: string, expiresAtMs: number, owner: string): ReplayOutcome | Promise<ReplayOutcome>;
};

const MS_PER_SECOND = 1000;

/** What is taken under one key of the store, and how it is refused. */
type Charge = {
  readonly key: string;
  readonly window: LimitWindow;
  readonly rule: string;
  /** The name of the budget that is charged. */
  readonly budget?: string;
};

/**
 * Takes one use of every rate obligation and charges every budget, in their order. Undefined if all are met. A store that
 * is unavailable is a refusal. What was charged is not returned. Of several allows, what is taken under one key is taken
 * at once: all of it or nothing.
 */
export function enforceLimits(
  allows: readonly Pick<Allow, 'obligations'>[],
  principal: Principal,
  store: LimitStore,
  lifted: readonly ApprovalRequirement[] = NOTHING_LIFTED,
): Deny | undefined | Promise<Deny | undefined> {
  const charges = allows.flatMap(({ obligations }) =>
    obligations.flatMap((obligation): readonly Charge[] => {
      if (obligation.kind !== 'approval') return chargesOf(obligation, principal);
      const counted = obligation.beyond.filter(({ requirement }) => !lifted.includes(requirement));
      return counted.flatMap(({ limits }) => limits.flatMap((limit) => chargesOf(limit, principal)));
    }),
  );
  return charges.length === 0 ? undefined : takeAll(allows.length === 1 ? charges : addedUp(charges), store);
}

function chargesOf(obligation: Obligation, principal: Principal): readonly Charge[] {
  if (obligation.kind === 'budget') return [budgetCharge(obligation, principal)];
  if (obligation.kind !== 'rate') return [];
  const { limit } = obligation;
  const key = countKey([limit.rule], limit.per, principal);
  return [{ key, window: limit, rule: limit.rule }];
}

/**
 * What the rules ask that ask about calls beyond their limits, if this is one. Counts nothing: that is done when the call
 * goes on. A store that is unavailable is a refusal.
 */
export async function findBeyondLimits(
  beyond: readonly LimitedRequirement[],
  principal: Principal,
  store: LimitStore,
): Promise<readonly ApprovalRequirement[] | Deny> {
  const asked: ApprovalRequirement[] = [];
  for (const { requirement, limits } of beyond) {
    const charges = limits.flatMap((limit) => chargesOf(limit, principal));
    const refused = await takeAll(charges.map(withoutAmount), store);
    if (refused?.reason === 'store-unavailable') return refused;
    if (refused !== undefined) asked.push(requirement);
  }
  return asked;
}

/** Whether a charge would be taken, as a charge that takes nothing. */
function withoutAmount(charge: Charge): Charge {
  const { count, amount = 1 } = charge.window;
  return { ...charge, window: { ...charge.window, count: count - amount, amount: 0 } };
}

async function takeAll(charges: readonly Charge[], store: LimitStore): Promise<Deny | undefined> {
  for (const charge of charges) {
    const deny = denyFor(await take(charge, store), charge);
    if (deny !== undefined) return deny;
  }
  return undefined;
}

/** One charge for each key. */
function addedUp(charges: readonly Charge[]): readonly Charge[] {
  const sums = new Map<string, Charge>();
  for (const charge of charges) {
    const before = sums.get(charge.key);
    const amount = (before?.window.amount ?? 0) + (charge.window.amount ?? 1);
    sums.set(charge.key, { ...charge, window: { ...charge.window, amount } });
  }
  return [...sums.values()];
}

/** Budgets are counted in millionths, so that sums are exact; a fraction of one counts as one. */
const UNITS = 1_000_000;

function budgetCharge({ budget, rule, cost }: Extract<Obligation, { kind: 'budget' }>, principal: Principal): Charge {
  const { name, max, windowMs } = budget;
  // A cost beyond every budget is refused whatever was spent, and no store needs to count so far.
  const amount = Math.ceil(Math.min(cost, max + 1) * UNITS);
  return {
    key: countKey(['budget', name], budget.per, principal),
    window: { count: max * UNITS, windowMs, amount, isSharedOnly: true },
    rule,
    budget: name,
  };
}

/** A store that rejects is as unavailable as one that says so. */
async function take({ key, window }: Charge, store: LimitStore): Promise<LimitOutcome> {
  const counted = store.take(key, window);
  try {
    return await counted;
  } catch {
    return 'unavailable';
  }
}

/**
 * The key under which uses are counted together. Clients and subjects are counted within their issuer: equal names of two
 * issuers are two callers. The parts are quoted, so that none can imitate another.
 */
function countKey(
  names: readonly string[],
  per: RateLimit['per'] | Budget['per'],
  { issuerUrl, client, subject }: Principal,
): string {
  switch (per) {
    case 'rule':
    case 'all':
      return JSON.stringify([...names, per]);
    case 'client':
      return JSON.stringify([...names, per, issuerUrl, client]);
    case 'subject':
      return JSON.stringify([...names, per, issuerUrl, subject]);
  }
}

function denyFor(counted: LimitOutcome, charge: Charge): Deny | undefined {
  if (counted === 'unavailable') {
    return { verdict: 'deny', reason: 'store-unavailable', listed: true, ...ruleOf(charge) };
  }
  if (counted.ok) return undefined;
  const retryAfterSeconds = Math.max(1, Math.ceil(counted.retryAfterMs / MS_PER_SECOND));
  if (counted.isLost === true) {
    const reason = 'store-unavailable';
    const advice = adviceForYoung(retryAfterSeconds);
    return { verdict: 'deny', reason, listed: true, ...ruleOf(charge), advice, retryAfterSeconds };
  }
  const refused = {
    verdict: 'deny',
    reason: 'rate-limited',
    listed: true,
    ...ruleOf(charge),
  } as const;
  const { budget, window } = charge;
  const { amount = 1, count } = window;
  if (amount > count) {
    const advice =
      budget === undefined
        ? `This request names ${amount} items, and the rule allows ${count} in its time. Name fewer at once.`
        : `This call costs more than the whole budget "${budget}".`;
    return { ...refused, advice };
  }
  const again = `Try again in ${retryAfterSeconds} seconds.`;
  const advice = budget === undefined ? again : `The budget "${budget}" is spent. ${again}`;
  return { ...refused, advice, retryAfterSeconds };
}

/** The rule that asks or limits, which need not be the one that allows. */
function ruleOf({ rule }: Pick<Charge, 'rule'>): { readonly policy: string; readonly rule: string } {
  const slash = rule.indexOf('/');
  return { policy: rule.slice(0, slash), rule: rule.slice(slash + 1) };
}
