// Decides policy queries, for lists, calls and server requests alike: a list is a query with unknown arguments, and a
// server request (sampling, elicitation, roots) one without any. The order of the checks is in decision-order.ts, the texts
// of refusals in reasons.ts. Uses no store and no clock. An error is a deny.

import type { JsonObject, ServerRequestName, Target } from '../protocol/jsonrpc.js';
import type { ServerRequestGrants } from '../protocol/server-requests.js';
import type { ApprovalRequirement } from './approval-terms.js';
import type { Outcome } from './clauses.js';
import {
  type ArgumentRefusal,
  annotationsOf,
  costFor,
  type EvaluationInput,
  holdsFor,
  holdsForAllow,
  readsInexact,
  refuseAlternatives,
  refuseByDefinition,
  unreadable,
} from './conditions.js';
import type { Allow, Decision, Deny, Obligation } from './decision.js';
import { deny, type ListingOutcomes, type Outcomes, refuseUnlisted, ruleOnCall } from './decision-order.js';
import type { Catalog } from './definitions.js';
import {
  evaluationInputOf,
  isUnpinnedName,
  itemNameOf,
  NOT_PINNED,
  type PolicyTarget,
  readPolicyTarget,
  targetPinOf,
} from './policy-target.js';
import type { Principal } from './principal.js';
import { digestOfTexts } from './rule-text.js';
import {
  type AllowRule,
  type Candidates,
  evaluateAnnotated,
  findCandidates,
  findServerRequestRules,
  findTaskRules,
  type PolicyQuery,
  type PolicySet,
  type RequireRule,
  type Rule,
  readsArguments,
  readsContent,
  readsFindings,
  rulesFor,
} from './rules.js';
import type { ServerRequestContent } from './server-request-content.js';

const NO_OBLIGATIONS: readonly Obligation[] = Object.freeze([]);
const NO_POINTERS: readonly string[] = Object.freeze([]);

/**
 * The obligations of an allow: the limits and the budget of the alternative that is recorded, and what every matching
 * require rule adds. The strictest apply: the smallest number of bytes, all profiles, all captures, all
 * rates. Their order depends on the rules alone. docs/contract.md, law 3.
 */
function collectObligations(
  alternative: AllowRule,
  requires: readonly RequireRule[],
  input: EvaluationInput,
  isPending = false,
): readonly Obligation[] {
  const { limit, budget } = alternative;
  if (limit === undefined && budget === undefined && requires.length === 0 && !isPending) return NO_OBLIGATIONS;
  const rules = [alternative, ...requires];
  const [soft, hard] = [requires.filter(isSoft), rules.filter((rule) => !isSoft(rule))];
  const obligations: Obligation[] = hard.flatMap(rateOf);
  obligations.push(...hard.flatMap((rule) => chargeOf(rule, input)));
  const caps = requires.flatMap(({ maxResultBytes }) => maxResultBytes ?? []);
  if (caps.length > 0) obligations.push({ kind: 'max-result-bytes', bytes: Math.min(...caps) });
  const profiles = new Set(requires.flatMap(({ profile }) => profile ?? []));
  for (const profile of [...profiles].sort()) obligations.push({ kind: 'inspect', profile });
  const pointers = pointersOf(requires);
  if (pointers.length > 0) obligations.push({ kind: 'capture', pointers });
  const requirements = requires.filter((rule) => !isSoft(rule)).flatMap(requirementOf);
  const beyond = soft.flatMap((rule) =>
    requirementOf(rule).map((requirement) => ({ requirement, limits: [...rateOf(rule), ...chargeOf(rule, input)] })),
  );
  if (requirements.length > 0 || beyond.length > 0 || isPending) {
    const text = digestOfTexts(rules.map((rule) => rule.text));
    obligations.push({ kind: 'approval', requirements, beyond, rules: text, isPending });
  }
  return obligations;
}

/** Whether a person is asked about what the limits of a rule would refuse. */
function isSoft(rule: AllowRule | RequireRule): boolean {
  return rule.effect === 'require' && rule.approval?.isBeyondLimits === true;
}

function rateOf({ limit }: AllowRule | RequireRule): Extract<Obligation, { kind: 'rate' }>[] {
  return limit === undefined ? [] : [{ kind: 'rate', limit }];
}

/** What a rule asks of a person, if it does. */
function requirementOf({ id, text, approval }: RequireRule): readonly ApprovalRequirement[] {
  return approval === undefined ? [] : [{ rule: id, text, reason: approval.reason, terms: approval.terms }];
}

/** What a call costs of the budget of a rule, which has found out that there is a cost. */
function chargeOf(rule: AllowRule | RequireRule, input: EvaluationInput): Extract<Obligation, { kind: 'budget' }>[] {
  if (rule.budget === undefined) return [];
  const { cost: _expression, ...terms } = rule.budget;
  const cost = costFor(rule, input);
  return cost === undefined ? [] : [{ kind: 'budget', budget: terms, rule: rule.id, cost }];
}

/** All pointers that the rules name, each once, sorted. */
function pointersOf(requires: readonly RequireRule[]): readonly string[] {
  return [...new Set(requires.flatMap(({ captures }) => captures))].sort();
}

/** The pointers to the arguments whose values the record keeps under this decision. */
export function capturedBy(decision: Decision): readonly string[] {
  if (decision.verdict === 'deny') return decision.captures ?? NO_POINTERS;
  for (const obligation of decision.obligations) if (obligation.kind === 'capture') return obligation.pointers;
  return NO_POINTERS;
}

/** Whether what rules say of the arguments was decided, and whether rates count this use. */
type Later = { readonly args: 'passed' | 'unknown'; readonly isCounted: boolean };

/** Maximum length of a name that is looked up, in characters; URIs have a bound of their own. */
const MAX_NAME_CHARS = 1024;

/**
 * Recorded when a verified principal uses the protocol itself: sessions, discovery, ping
 * (docs/contract.md, law 1).
 */
const PROTOCOL_RULE = { policy: 'builtin', rule: 'protocol', groups: undefined, text: '' } as const;

/**
 * Decides one query under one set of policies. Never throws and never waits. An allow for unknown arguments
 * means that the target is listed. It has no obligations and does not permit a call.
 * Source: docs/contract.md, laws 1 to 7; docs/reference/responses.md.
 */
export function decide(policies: PolicySet, query: PolicyQuery): Decision {
  try {
    return evaluate(policies, query);
  } catch {
    return deny('policy-error', false);
  }
}

/**
 * Decides a request that is to be forwarded. A request is never decided like a list: if its method has no
 * arguments, they are empty and not unknown, so that scopes and conditions are checked.
 */
export function decideRequest(policies: PolicySet, query: PolicyQuery): Decision {
  return query.args === 'unknown' ? decide(policies, { ...query, args: NO_ARGUMENTS }) : decide(policies, query);
}

const NO_ARGUMENTS: JsonObject = Object.freeze({});

/**
 * Decides about a request whose arguments are not known any more. `passed`: they were decided on under these policies.
 * `unknown`: under others, so that what a rule says of them may hold.
 */
export function decideWithoutArguments(
  policies: PolicySet,
  query: Omit<PolicyQuery, 'args'>,
  args: 'passed' | 'unknown',
): Decision {
  try {
    const { principal, upstream, target, catalog } = query;
    const listed = evaluate(policies, { ...query, args: 'unknown' });
    if (listed.verdict === 'deny' || target.kind === 'none') return listed;
    if (target.kind === 'task') return evaluate(policies, { ...query, args: NO_ARGUMENTS });
    const policyTarget = readPolicyTarget(target);
    if (policyTarget === undefined || policyTarget.kind === 'server-request') return deny('policy-error', false);
    const { kind, name, readings } = policyTarget;
    const candidates = findCandidates(policies, principal, upstream, kind, name, { readings });
    const pin = targetPinOf(catalog, policyTarget, 'unknown');
    const asked = { ...query, args: NO_ARGUMENTS };
    const input = evaluationInputOf(asked, policyTarget, NO_ARGUMENTS, pin);
    return evaluateLater(candidates, input, { args, isCounted: false });
  } catch {
    return deny('policy-error', false);
  }
}

/** A catalog without pins, for callers of `isListed` that have none. */
export const NO_CATALOG: Omit<Catalog, 'upstream'> = {
  mode: 'off',
  undeclaredArguments: 'declared',
  isStopped: false,
  statusOf: () => ({ state: 'unpinned', pinned: undefined, observed: undefined }),
  names: () => [],
  instructions: undefined,
};

/** Whether the caller sees the target in a list (docs/contract.md, law 2). Without a catalog, by policy alone. */
export function isListed(
  policies: PolicySet,
  principal: Principal,
  upstream: string,
  target: Target,
  catalog: Catalog = { ...NO_CATALOG, upstream },
): boolean {
  const query: PolicyQuery = { principal, upstream, target, args: 'unknown', catalog };
  return decide(policies, query).verdict === 'allow';
}

// INVARIANT: the only cast to Allow in the program.
function allow(
  { policy, rule, groups, text }: Pick<Rule, 'policy' | 'rule' | 'groups' | 'text'>,
  obligations: readonly Obligation[],
) {
  return { verdict: 'allow', policy, rule, groups, text, obligations } as Allow;
}

function evaluate(policies: PolicySet, query: PolicyQuery): Decision {
  const { principal, upstream, target, args } = query;
  if (target.kind === 'none') return allow(PROTOCOL_RULE, []);
  const policyTarget = readPolicyTarget(target);
  if (policyTarget === undefined) return deny(target.kind === 'task' ? 'unknown-task' : 'resource-forbidden', false);
  if (policyTarget.kind !== 'resource' && policyTarget.name.length > MAX_NAME_CHARS) {
    return deny('no-matching-allow', false);
  }
  const isUnpinned = isUnpinnedName(query.catalog, policyTarget);
  const candidates =
    policyTarget.kind === 'server-request'
      ? findServerRequestRules(policies, query, policyTarget.name)
      : target.kind === 'task'
        ? findTaskRules(policies, query, policyTarget.name, target.use)
        : findCandidates(policies, principal, upstream, policyTarget.kind, policyTarget.name, {
            readings: policyTarget.readings,
            isUnpinned,
          });
  const decision = evaluateCandidates(candidates, query, policyTarget);
  return decision.verdict === 'deny' && args !== 'unknown'
    ? captureRefused(decision, candidates.requires, () => evaluationInputOf(query, policyTarget, args, NOT_PINNED))
    : decision;
}

/** What comes out of rules for a call that is known in full. */
class CallOutcomes implements Outcomes {
  /** Whether a rule reads what inspection has not found yet. */
  isPending = false;
  readonly #input: EvaluationInput;

  constructor(input: EvaluationInput) {
    this.#input = input;
  }

  countMissing({ scopes }: AllowRule): number {
    let missing = 0;
    for (const scope of scopes) if (!this.#input.principal.scopes.includes(scope)) missing += 1;
    return missing;
  }

  outcomeOf(rule: Rule): Outcome {
    const outcome = rule.effect === 'allow' ? holdsForAllow(rule, this.#input) : holdsFor(rule, this.#input);
    // Before inspection it is an error to read what was found.
    const isOpen = outcome === 'error' && this.#input.facts.findings === undefined && readsFindings(rule);
    return isOpen ? 'unknown' : outcome;
  }

  refuseArguments(): ArgumentRefusal | undefined {
    return refuseByDefinition(this.#input);
  }

  unreadable(rule: Rule): ArgumentRefusal | undefined {
    return unreadable(rule, this.#input);
  }

  adviseOn(rules: readonly AllowRule[]): ArgumentRefusal {
    for (const rule of rules) {
      const refusal = unreadable(rule, this.#input);
      if (refusal !== undefined) return refusal;
    }
    return refuseAlternatives(rules, this.#input);
  }

  leaveOpen(): void {
    this.isPending = true;
  }
}

const LISTING: ListingOutcomes = {
  hides(rule, { principal, upstream }, target, { pinned }) {
    return evaluateAnnotated(rule, principal, {
      upstream,
      name: itemNameOf(target),
      annotations: annotationsOf(pinned),
    });
  },
  leaveOpen() {},
};

function evaluateCandidates(candidates: Candidates, query: PolicyQuery, policyTarget: PolicyTarget): Decision {
  const { target, args } = query;
  const pin = refuseUnlisted(candidates, query, policyTarget, LISTING);
  if ('verdict' in pin) return pin;
  const [first] = candidates.allows;
  if (args === 'unknown' && first !== undefined) return allow(first, NO_OBLIGATIONS);
  const input = evaluationInputOf(query, policyTarget, args === 'unknown' ? NO_ARGUMENTS : args, pin);
  if (target.kind === 'task')
    return evaluateLater(candidates, input, {
      args: 'passed',
      isCounted: target.use === 'update' || target.isCounted === true,
    });
  const outcomes = new CallOutcomes(input);
  const ruling = ruleOnCall(candidates, outcomes);
  if ('verdict' in ruling) return ruling;
  return allow(ruling.rule, collectObligations(ruling.rule, ruling.requires, input, outcomes.isPending));
}

/**
 * A refusal is recorded as an allow would be: with the arguments that matching rules capture. A rule that
 * cannot be evaluated counts as matching, because it refuses nothing here.
 */
function captureRefused(refused: Deny, requires: readonly RequireRule[], prepare: () => EvaluationInput): Deny {
  const capturing = requires.filter(({ captures }) => captures.length > 0);
  if (capturing.length === 0) return refused;
  const input = prepare();
  const binding = capturing.filter((rule) => readsInexact(rule, input) || holdsFor(rule, input) !== 'fails');
  return binding.length === 0 ? refused : { ...refused, captures: pointersOf(binding) };
}

/**
 * What comes out of rules for a call whose arguments are not known any more. It was decided with them, so conditions on
 * them are not evaluated again, and everything else is: caller, target, scopes, conditions on the caller.
 */
class LaterOutcomes extends CallOutcomes {
  readonly #args: Later['args'];

  constructor(input: EvaluationInput, args: Later['args']) {
    super(input);
    this.#args = args;
  }

  /** An allow rule that reads arguments allows what passed it; another rule that reads them may bind what did not. */
  override outcomeOf(rule: Rule): Outcome {
    if (!readsArguments(rule)) return super.outcomeOf(rule);
    return (rule.effect === 'allow') === (this.#args === 'passed') ? 'holds' : 'fails';
  }

  override refuseArguments(): undefined {}

  override unreadable(): undefined {}

  override adviseOn(): ArgumentRefusal {
    return {};
  }
}

/**
 * Decides whether a caller may still use a task, by the rules of the tool whose call created it, or have the response to
 * a request. Budgets charge calls, not requests about a task; of these, rates count what is no poll. The caller learns
 * only that the task does not exist, or which scope its tool requires. docs/reference/policies.md; MCP 2025-11-25, tasks
 * (security); the Tasks extension.
 */
function evaluateLater(candidates: Candidates, input: EvaluationInput, { args, isCounted }: Later): Decision {
  const outcomes = new LaterOutcomes(input, args);
  const ruling = ruleOnCall(candidates, outcomes);
  if ('verdict' in ruling) {
    const isShortOfScope = candidates.allows.every((rule) => outcomes.countMissing(rule) > 0);
    if (ruling.reason === 'insufficient-scope' && isShortOfScope) return ruling;
    if (ruling.reason === 'arguments-invalid' || ruling.reason === 'insufficient-scope')
      return deny('no-matching-allow', false);
    const { advice: _advice, ...refusal } = ruling;
    return { ...refusal, listed: false };
  }
  const obligations = collectObligations(ruling.rule, ruling.requires, input).filter(
    ({ kind }) => kind === 'max-result-bytes' || kind === 'inspect' || (kind === 'rate' && isCounted),
  );
  return allow(ruling.rule, obligations);
}

/** The kinds that have a list of their own. */
export type ListedKind = 'tool' | 'prompt' | 'resource';

/**
 * True if policy lists something of the kind for this caller, so that a notification about its list concerns
 * them: a pinned name, or, if the kind is not pinned by name, whatever an allow rule names. Drift is ignored:
 * a caller whose only tool is hidden for a while must learn that it is available again.
 * docs/contract.md, law 2; MCP 2026-07-28, subscriptions.
 */
export function listsKind(policies: PolicySet, principal: Principal, catalog: Catalog, kind: ListedKind): boolean {
  const { upstream } = catalog;
  if (kind === 'resource' || catalog.mode === 'off') {
    const kinds = kind === 'resource' ? (['resource', 'template'] as const) : ([kind] as const);
    return rulesFor(policies, principal, upstream).some(
      (rule) => rule.effect === 'allow' && kinds.some((one) => rule.targets[one].length > 0),
    );
  }
  const approved: Catalog = {
    ...{ ...NO_CATALOG, upstream },
    statusOf(of, name) {
      const { pinned } = catalog.statusOf(of, name);
      return { state: pinned === undefined ? 'unpinned' : 'approved', pinned, observed: undefined };
    },
  };
  return catalog.names(kind).some((name) => isListed(policies, principal, upstream, { kind, name }, approved));
}

/**
 * Decides whether a server may request this of a caller. An allow has the obligations of its rules, limits
 * included. Never throws; an error is a deny.
 */
export function decideServerRequest(
  policies: PolicySet,
  query: Omit<PolicyQuery, 'target' | 'args'> & { readonly name: ServerRequestName },
): Decision {
  const { name, ...rest } = query;
  return decide(policies, { ...rest, target: { kind: 'server-request', name }, args: NO_ARGUMENTS });
}

/**
 * What servers may request of a caller: admission keeps only these of the capabilities that a client
 * declares. Limits are ignored, because they count the requests that are made.
 */
export function allowedServerRequestsFor(
  policies: PolicySet,
  principal: Principal,
  upstream: string,
): ServerRequestGrants {
  const catalog = { ...NO_CATALOG, upstream };
  const may = (name: ServerRequestName): boolean =>
    decideServerRequest(policies, { principal, upstream, catalog, name }).verdict === 'allow';
  const mayWith = (content: ServerRequestContent): boolean => {
    const query = { principal, upstream, catalog, name: 'sampling', content } as const;
    return decideServerRequest(policies, query).verdict === 'allow';
  };
  const sampling = may('sampling');
  return {
    sampling,
    ...(sampling && readsContent(policies, { principal, upstream }, 'sampling') && cutOfSampling(mayWith)),
    elicitation: { form: may('elicitation/form'), url: may('elicitation/url') },
    roots: may('roots'),
  };
}

/** What a client may not declare of sampling, because every request that used it would be refused. */
function cutOfSampling(
  mayWith: (content: ServerRequestContent) => boolean,
): Pick<ServerRequestGrants, 'withoutSampling'> {
  const hasContext = ['thisServer', 'allServers'].some((includeContext) => mayWith({ includeContext }));
  const withoutSampling = [
    ...(hasContext ? [] : (['context'] as const)),
    ...(mayWith({ tools: 'some' }) ? [] : (['tools'] as const)),
  ];
  return withoutSampling.length === 0 ? {} : { withoutSampling };
}

/**
 * Whether a host may declare for this caller that it shows apps: if the rules let the caller read an app that
 * is in the lock file. Decided by policy alone, regardless of what is currently offered; without pinning, the
 * rules of an app's URI decide when it is read.
 */
export function mayShowApps(
  policies: PolicySet,
  principal: Principal,
  { upstream, mode, names }: Pick<Catalog, 'upstream' | 'mode' | 'names'>,
): boolean {
  if (mode === 'off') return true;
  return names('resource').some((uri) => isListed(policies, principal, upstream, { kind: 'resource', uri }));
}
