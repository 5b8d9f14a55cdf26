// Decides policy queries, for lists, calls and server requests alike: a list is a query with unknown arguments, and a
// server request (sampling, elicitation, roots) one without any. The checks are in the order of docs/contract.md §6,
// and whether something is hidden is determined before any pin is read. Uses no store and no clock. An error is a
// deny.

import type { JsonObject, ServerRequestName, Target } from '../protocol/jsonrpc.js';
import type { ServerRequestGrants } from '../protocol/server-requests.js';
import { blockRule } from './blocks.js';
import {
  costFor,
  type EvaluationInput,
  holdsFor,
  holdsForAllow,
  prepareEvaluation,
  readsInexact,
  refuseAlternatives,
  refuseInvalid,
  refuseUndeclared,
  unreadable,
} from './conditions.js';
import type { Allow, Decision, Deny, Obligation } from './decision.js';
import {
  approvedFormFor,
  type Catalog,
  type DefinitionStatus,
  definitionOf,
  findUndeclared,
  type PinKind,
  type PinnedDefinition,
  type PinState,
} from './definitions.js';
import type { Principal } from './principal.js';
import type { Reason } from './reasons.js';
import {
  type AllowRule,
  type Candidates,
  findCandidates,
  findServerRequestRules,
  findTaskRules,
  isUnconditional,
  type PolicyQuery,
  type PolicySet,
  type RequireRule,
  type Rule,
  readsArguments,
  readsContent,
  rulesFor,
  type TargetKind,
} from './rules.js';
import type { ServerRequestContent } from './server-request-content.js';
import { isAppUri, readUri, type UriReadings } from './uris.js';

const NO_OBLIGATIONS: readonly Obligation[] = Object.freeze([]);
const NO_POINTERS: readonly string[] = Object.freeze([]);

/** The alternative with the fewest open obligations; of those, the first, which has the smallest id. */
function chooseAlternative(satisfied: readonly AllowRule[]): AllowRule | undefined {
  const open = ({ limit, budget }: AllowRule): number => (limit === undefined ? 0 : 1) + (budget === undefined ? 0 : 1);
  return satisfied.reduce<AllowRule | undefined>(
    (best, rule) => (best === undefined || open(rule) < open(best) ? rule : best),
    undefined,
  );
}

/**
 * The obligations of an allow: the limits and the budget of the alternative that is recorded, and what every matching
 * require rule adds. The strictest apply: the smallest number of bytes, all profiles, all captures, all
 * rates. Their order depends on the rules alone. docs/contract.md §4, law 3.
 */
function collectObligations(
  alternative: AllowRule,
  requires: readonly RequireRule[],
  input: EvaluationInput,
): readonly Obligation[] {
  const { limit, budget } = alternative;
  if (limit === undefined && budget === undefined && requires.length === 0) return NO_OBLIGATIONS;
  const rules = [alternative, ...requires];
  const obligations: Obligation[] = rules.flatMap((rule) =>
    rule.limit === undefined ? [] : [{ kind: 'rate', limit: rule.limit }],
  );
  obligations.push(...rules.flatMap((rule) => chargeOf(rule, input)));
  const caps = requires.flatMap(({ maxResultBytes }) => maxResultBytes ?? []);
  if (caps.length > 0) obligations.push({ kind: 'max-result-bytes', bytes: Math.min(...caps) });
  const profiles = new Set(requires.flatMap(({ profile }) => profile ?? []));
  for (const profile of [...profiles].sort()) obligations.push({ kind: 'inspect', profile });
  const pointers = pointersOf(requires);
  if (pointers.length > 0) obligations.push({ kind: 'capture', pointers });
  return obligations;
}

/** What a call costs of the budget of a rule, which has found out that there is a cost. */
function chargeOf(rule: AllowRule | RequireRule, input: EvaluationInput): Obligation[] {
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

/** The result of a restricting rule without arguments; one that reads them was evaluated for the call, or may hold. */
function evaluateWithoutArguments(
  rule: Rule,
  input: EvaluationInput,
  args: Later['args'],
): ReturnType<typeof holdsFor> {
  if (readsArguments(rule)) return args === 'passed' ? 'fails' : 'holds';
  return holdsFor(rule, input);
}

/** Whether what rules say of the arguments was decided, and whether rates count this use. */
type Later = { readonly args: 'passed' | 'unknown'; readonly isCounted: boolean };

/** Maximum length of a name that is looked up, in characters; URIs have a bound of their own. */
const MAX_NAME_CHARS = 1024;

/**
 * Recorded when a verified principal uses the protocol itself: sessions, discovery, ping
 * (docs/contract.md §4, law 1).
 */
const PROTOCOL_RULE = { policy: 'builtin', rule: 'protocol', groups: undefined } as const;

/**
 * Decides one query under one set of policies. Never throws and never waits. An allow for unknown arguments
 * means that the target is listed. It has no obligations and does not permit a call.
 * Source: docs/contract.md §4 (laws 1 to 7) and §6.
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
    if (policyTarget === undefined || policyTarget.kind === 'question') return deny('policy-error', false);
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

/** Whether the caller sees the target in a list (docs/contract.md §4, law 2). Without a catalog, by policy alone. */
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
function allow({ policy, rule, groups }: Pick<Rule, 'policy' | 'rule' | 'groups'>, obligations: readonly Obligation[]) {
  return { verdict: 'allow', policy, rule, groups, obligations: obligations } as Allow;
}

function deny(reason: Reason, listed: boolean, rule?: Rule, more?: Partial<Deny>): Deny {
  const named = rule && { policy: rule.policy, rule: rule.rule, groups: rule.groups };
  return { verdict: 'deny', reason, listed, ...named, ...more };
}

export type PolicyTarget =
  | {
      readonly kind: TargetKind;
      readonly name: string;
      /** Of a resource. */
      readonly readings?: UriReadings;
      /** Of a resource that is pinned: its URI as it is written. */
      readonly pinName?: string;
    }
  | { readonly kind: 'question'; readonly name: ServerRequestName };

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
    policyTarget.kind === 'question'
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

/** Whether no pin says which tools and prompts there are, so that a name may be another spelling of one that there is. */
function isUnpinnedName({ mode }: Catalog, { kind }: PolicyTarget): boolean {
  return mode === 'off' && (kind === 'tool' || kind === 'prompt');
}

function evaluateCandidates(candidates: Candidates, query: PolicyQuery, policyTarget: PolicyTarget): Decision {
  const { target, args } = query;
  const first = candidates.allows[0];
  const unconditional = candidates.denies.find(isUnconditional);
  if (unconditional !== undefined) return deny('denied-by-rule', false, unconditional);
  if (first === undefined) return deny('no-matching-allow', false);
  const block = blockOf(query.catalog, policyTarget);
  if (block !== undefined) return deny('blocked', false, undefined, blockRule(block));
  const pin = targetPinOf(query.catalog, policyTarget, args);
  if (pin.refusal !== undefined) return deny(pin.refusal, false);
  if (args === 'unknown') return allow(first, []);
  if (target.kind === 'task')
    return evaluateLater(candidates, evaluationInputOf(query, policyTarget, args, pin), {
      args: 'passed',
      isCounted: target.use === 'update' || target.isCounted === true,
    });
  return evaluateCall(candidates, evaluationInputOf(query, policyTarget, args, pin));
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

export function readPolicyTarget(target: Exclude<Target, { readonly kind: 'none' }>): PolicyTarget | undefined {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
      return { kind: target.kind, name: target.name };
    case 'template':
      return { kind: 'template', name: target.uriTemplate };
    case 'question':
      return target;
    // A task is subject to the rules of its tool, and to those that name its use.
    case 'task':
      return target.tool === undefined ? undefined : { kind: 'tool', name: target.tool };
    case 'resource':
      return readResource(target.uri);
  }
}

function readResource(uri: string): PolicyTarget | undefined {
  const readings = readUri(uri);
  if (readings === undefined) return undefined;
  const { normal: name } = readings;
  if (!isAppUri(name)) return { kind: 'resource', name, readings };
  // A resource that is pinned by its URI has one spelling; another spelling would bypass the pin.
  const isOdd = name !== uri && name !== `${uri}/`;
  return isOdd ? undefined : { kind: 'resource', name, readings, pinName: uri };
}

/** The block of a target. A server request is none of what can be blocked: the upstream that makes it is. */
function blockOf(catalog: Catalog, target: PolicyTarget): string | undefined {
  if (catalog.blockOf === undefined || target.kind === 'question') return undefined;
  const isUnpinned = isUnpinnedName(catalog, target);
  return catalog.blockOf(target.kind, target.name, { readings: target.readings, isUnpinned });
}

const PIN_REFUSALS: { readonly [state in PinState]: Reason | undefined } = {
  approved: undefined,
  pending: 'tool-unpinned',
  unpinned: 'tool-unpinned',
  absent: 'tool-unpinned',
  changed: 'tool-changed',
  blocked: 'tool-blocked',
  invalid: 'tool-invalid',
  shadowed: 'tool-shadowed',
  poisoned: 'tool-poisoned',
};

type TargetPin = {
  readonly refusal: Reason | undefined;
  readonly pinned: PinnedDefinition | undefined;
  /** The definition that describes the arguments. */
  readonly described: PinnedDefinition | undefined;
  /** Whether what rules read must be described. */
  readonly mustDescribe: boolean;
};

const NOT_PINNED: TargetPin = {
  refusal: undefined,
  pinned: undefined,
  described: undefined,
  mustDescribe: false,
};

/**
 * The pin of a target. Server requests and resources other than `ui://` are not pinned (docs/contract.md §5);
 * a stopped upstream stops them too.
 */
export function targetPinOf(catalog: Catalog, target: PolicyTarget, args: PolicyQuery['args']): TargetPin {
  if (catalog.isStopped) return { ...NOT_PINNED, refusal: 'tool-changed' };
  if (target.kind === 'question') return NOT_PINNED;
  const { kind, name } = target;
  if (kind === 'resource' && !isAppUri(name)) return NOT_PINNED;
  const pinName = target.pinName ?? name;
  const status = catalog.statusOf(kind satisfies PinKind, pinName);
  const { state, pinned, variants } = status;
  const form = variants === undefined || args === 'unknown' ? pinned : approvedFormFor(status, args);
  const approved = state === 'approved' ? form : undefined;
  const withheld = reasonOfWithheld(catalog.mode, status);
  if (withheld !== undefined) return { ...NOT_PINNED, refusal: withheld };
  if (catalog.mode === 'off') {
    const mustDescribe = status.observed !== undefined;
    const described = definitionOf(status);
    return { refusal: undefined, pinned: approved, described, mustDescribe };
  }
  const refusal = PIN_REFUSALS[state] ?? (approved === undefined ? 'tool-unpinned' : undefined);
  return { refusal, pinned: approved, described: approved, mustDescribe: true };
}

/** Why a target is refused before it is asked what is approved. */
function reasonOfWithheld(mode: Catalog['mode'], { state, isUnverified }: DefinitionStatus): Reason | undefined {
  if (isUnverified === true) return 'pins-stale';
  return isWithheldIn(mode, state) ? PIN_REFUSALS[state] : undefined;
}

/** States that refuse also where nothing is pinned: without a usable schema no arguments could be checked. */
function isWithheldIn(mode: Catalog['mode'], state: PinState): boolean {
  return state === 'shadowed' || state === 'poisoned' || (state === 'invalid' && mode === 'off');
}

export function evaluationInputOf(
  query: PolicyQuery,
  policyTarget: PolicyTarget,
  args: JsonObject,
  pin: TargetPin,
): EvaluationInput {
  const hasName = policyTarget.kind === 'tool' || policyTarget.kind === 'prompt';
  return prepareEvaluation({
    principal: query.principal,
    args,
    pinned: pin.pinned,
    described: pin.described,
    mustDescribe: hasName && pin.mustDescribe,
    undeclaredArguments: query.catalog.undeclaredArguments,
    upstream: query.upstream,
    name: hasName ? policyTarget.name : '',
    uri: policyTarget.kind === 'resource' ? policyTarget.name : undefined,
    readings: policyTarget.kind === 'resource' ? policyTarget.readings : undefined,
  });
}

const REASON_OF = { holds: 'denied-by-rule', error: 'policy-error' } as const;

/**
 * Decides whether a caller may still use a task, by the rules of the tool whose call created it, or have the response to
 * a request. The call was decided with its arguments. They are gone here, so conditions on them are not evaluated any more, and everything else is
 * evaluated again: caller, target, scopes, conditions on the caller. Budgets charge calls, not requests about a task;
 * of these, rates count what is no poll. The caller learns only that the task does not exist, or which scope its tool requires. docs/contract.md §4; MCP
 * 2025-11-25, tasks (security); the Tasks extension.
 */
function evaluateLater(candidates: Candidates, input: EvaluationInput, { args, isCounted }: Later): Decision {
  const entitled = candidates.allows.filter((rule) => countMissing(rule, input) === 0);
  if (entitled.length === 0) return denyForScope(candidates.allows, input);
  for (const rule of candidates.denies) {
    const result = evaluateWithoutArguments(rule, input, args);
    if (result !== 'fails') return deny(REASON_OF[result], false, rule);
  }
  const chosen = chooseAlternative(
    entitled.filter((rule) => (readsArguments(rule) ? args === 'passed' : holdsFor(rule, input) === 'holds')),
  );
  if (chosen === undefined) return deny('no-matching-allow', false);
  const binding: RequireRule[] = [];
  for (const rule of candidates.requires) {
    const result = evaluateWithoutArguments(rule, input, args);
    if (result === 'error') return deny('policy-error', false, rule);
    if (result === 'holds') binding.push(rule);
  }
  const obligations = collectObligations(chosen, binding, input).filter(
    ({ kind }) => kind === 'max-result-bytes' || kind === 'inspect' || (kind === 'rate' && isCounted),
  );
  return allow(chosen, obligations);
}

/** The caller may see the target: every refusal from here on may state its reason. */
function evaluateCall(candidates: Candidates, input: EvaluationInput): Decision {
  const entitled = candidates.allows.filter((rule) => countMissing(rule, input) === 0);
  if (entitled.length === 0) return denyForScope(candidates.allows, input);
  return (
    checkArguments(candidates, input) ??
    evaluateDenies(candidates, input) ??
    evaluateAlternatives(candidates, entitled, input)
  );
}

function checkArguments({ denies, requires }: Candidates, input: EvaluationInput): Deny | undefined {
  const errors = input.described?.input?.check(input.args) ?? [];
  if (errors.length > 0) {
    return deny('arguments-invalid', true, undefined, refuseInvalid(errors));
  }
  const undeclared = input.undeclaredArguments === 'declared' ? findUndeclared(input.described, input.args) : undefined;
  if (undeclared !== undefined) {
    return deny('arguments-invalid', true, undefined, refuseUndeclared(undeclared));
  }
  // An allow rule that reads such a member fails by itself; a restricting rule must not be bypassed.
  for (const rule of [...denies, ...requires]) {
    const refusal = unreadable(rule, input);
    if (refusal !== undefined) return deny('arguments-invalid', true, undefined, refusal);
  }
  return undefined;
}

function evaluateDenies({ denies }: Candidates, input: EvaluationInput): Deny | undefined {
  let failed: Rule | undefined;
  for (const rule of denies) {
    const result = holdsFor(rule, input);
    if (result === 'holds') {
      const advice = rule.advice === undefined ? {} : { advice: rule.advice };
      return deny('denied-by-rule', true, rule, advice);
    }
    if (result === 'error') failed ??= rule;
  }
  return failed === undefined ? undefined : deny('policy-error', true, failed);
}

function evaluateAlternatives(
  candidates: Candidates,
  entitled: readonly AllowRule[],
  input: EvaluationInput,
): Decision {
  const satisfied: AllowRule[] = [];
  let failed: Rule | undefined;
  for (const rule of entitled) {
    const result = holdsForAllow(rule, input);
    if (result === 'holds') satisfied.push(rule);
    if (result === 'error') failed ??= rule;
  }
  const chosen = chooseAlternative(satisfied);
  if (chosen !== undefined) return applyRequires(chosen, candidates.requires, input);
  if (failed !== undefined) return deny('policy-error', true, failed);
  const lacking = candidates.allows.filter(
    (rule) => countMissing(rule, input) > 0 && holdsForAllow(rule, input) === 'holds',
  );
  if (lacking.length > 0) return denyForScope(lacking, input);
  const [more = refuseAlternatives(entitled, input)] = entitled.flatMap((rule) => unreadable(rule, input) ?? []);
  return deny('arguments-invalid', true, undefined, more);
}

function applyRequires(chosen: AllowRule, requires: readonly RequireRule[], input: EvaluationInput): Decision {
  const binding: RequireRule[] = [];
  for (const rule of requires) {
    const result = holdsFor(rule, input);
    if (result === 'error') return deny('policy-error', true, rule);
    if (result === 'holds') binding.push(rule);
  }
  return allow(chosen, collectObligations(chosen, binding, input));
}

/** Refuses for missing scopes; names every scope of the alternative that lacks the fewest (RFC 6750 §3.1). */
function denyForScope(rules: readonly AllowRule[], input: EvaluationInput): Deny {
  const satisfied = rules.filter((rule) => holdsForAllow(rule, input) === 'holds');
  const [nearest] = [...(satisfied.length > 0 ? satisfied : rules)].sort(
    (a, b) => countMissing(a, input) - countMissing(b, input),
  );
  return deny('insufficient-scope', true, nearest, { scopes: nearest?.scopes ?? [] });
}

function countMissing(rule: AllowRule, { principal }: EvaluationInput): number {
  let missing = 0;
  for (const scope of rule.scopes) if (!principal.scopes.includes(scope)) missing += 1;
  return missing;
}

/** The kinds that have a list of their own. */
export type ListedKind = 'tool' | 'prompt' | 'resource';

/**
 * True if policy lists something of the kind for this caller, so that a notification about its list concerns
 * them: a pinned name, or, if the kind is not pinned by name, whatever an allow rule names. Drift is ignored:
 * a caller whose only tool is hidden for a while must learn that it is available again.
 * docs/contract.md §4, law 2; MCP 2026-07-28, subscriptions.
 */
export function listsKind(policies: PolicySet, principal: Principal, catalog: Catalog, kind: ListedKind): boolean {
  const { upstream } = catalog;
  if (kind === 'resource' || catalog.mode === 'off') {
    const kinds = kind === 'resource' ? (['resource', 'template'] as const) : ([kind] as const);
    return rulesFor(policies, principal, upstream).some(
      (rule) => rule.effect === 'allow' && kinds.some((one) => rule.targets[one].length > 0),
    );
  }
  return catalog.names(kind).some((name) => isListed(policies, principal, upstream, { kind, name }));
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
  return decide(policies, { ...rest, target: { kind: 'question', name }, args: NO_ARGUMENTS });
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
