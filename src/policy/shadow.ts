// Policies that are evaluated and decide nothing: those with `mode: shadow`, and with `policies.mode: observe` the rules
// that would otherwise be in force. Says what would have been decided, for the record alone. Runs only where a version
// has such policies; a decision never depends on it. Pure. docs/reference/policies.md#policies-that-are-not-enforced.

import { NO_GRANTS } from '../protocol/server-requests.js';
import type { RuleClauses } from './clauses.js';
import { capturedBy, decideRequest } from './decide.js';
import { approvalOf, type Decision } from './decision.js';
import { compilePattern, type Pattern } from './patterns.js';
import type { ShadowDecision } from './record.js';
import type { PolicyQuery, PolicySet, Rule } from './rules.js';

/** The rule that is recorded for what `policies.mode: observe` lets pass. No file may use the name of the policy. */
const OBSERVE = { policy: 'builtin', rule: 'observe' } as const;

/** Anything, in any kind of target. */
function anything(): readonly Pattern[] {
  // A pattern grants a fragment only if it has one.
  return ['**', '**#**'].map((text) => {
    const compiled = compilePattern(text, 'path');
    if (!compiled.ok) throw new Error(compiled.why);
    return compiled.pattern;
  });
}

const NO_TARGETS: Rule['targets'] = { tool: [], prompt: [], resource: [], template: [] };
const NO_CLAUSES: RuleClauses = { clauses: [], callerTerms: [], itemTerms: [], conditions: [] };

/**
 * The rules that decide under `policies.mode: observe`: everything that is pinned and valid is allowed, and the
 * inspection that require rules ask for stays, whatever their conditions, so that none of them can refuse. What servers
 * request of clients is decided by the rules as ever: such a request has no record of what would have happened.
 */
export function observedRules(rules: readonly Rule[]): readonly Rule[] {
  const all = anything();
  const allow: Rule = {
    ...OBSERVE,
    id: `${OBSERVE.policy}/${OBSERVE.rule}`,
    effect: 'allow',
    matchesWho: () => true,
    text: '',
    groups: undefined,
    upstreams: undefined,
    targets: { tool: all, prompt: all, resource: all, template: all },
    grants: NO_GRANTS,
    tasks: [],
    args: [],
    when: undefined,
    reads: undefined,
    valueReads: undefined,
    ...NO_CLAUSES,
    scopes: [],
    limit: undefined,
    budget: undefined,
  };
  const kept = rules.flatMap((rule): Rule[] => {
    const forServers: Rule = { ...rule, targets: NO_TARGETS, tasks: [] };
    if (rule.effect !== 'require' || rule.profile === undefined) return [forServers];
    const inspecting: Rule = {
      ...rule,
      ...{ id: `${rule.id}/inspect`, grants: NO_GRANTS, args: [], when: undefined },
      ...{
        reads: undefined,
        valueReads: undefined,
        ...NO_CLAUSES,
        limit: undefined,
        budget: undefined,
        maxResultBytes: undefined,
        captures: [],
        captureReads: undefined,
        approval: undefined,
      },
    };
    return [forServers, inspecting];
  });
  return [allow, ...kept];
}

type Shadowed = {
  readonly shadow: readonly ShadowDecision[];
  /** The pointers to arguments that are recorded under `policies.mode: observe`. */
  readonly captures: readonly string[] | undefined;
};

/** What would have been decided; `decision` is what was. A shadowed policy that changes nothing is left out. */
export function decideShadows({ shadow }: PolicySet, query: PolicyQuery, decision: Decision): Shadowed {
  const unenforced = shadow?.unenforced && decideRequest(shadow.unenforced, query);
  const before = unenforced ?? decision;
  const differing = (shadow?.policies ?? []).flatMap(({ policy, set }) => {
    const after = decideRequest(set, query);
    return isSame(before, after) ? [] : [describe(after, policy)];
  });
  return {
    shadow: [...(unenforced === undefined ? [] : [describe(unenforced, undefined)]), ...differing],
    captures: unenforced && capturedBy(unenforced),
  };
}

/** A request that needs an approval is refused until somebody says yes. */
function describe(decision: Decision, policy: string | undefined): ShadowDecision {
  const { verdict, rule } = decision;
  const asker = verdict === 'allow' ? approvalOf(decision)?.requirements[0] : undefined;
  if (asker !== undefined) return { policy, rule: asker.rule, verdict: 'deny', reason: 'approval-required' };
  return {
    policy,
    rule: rule === undefined ? undefined : `${decision.policy}/${rule}`,
    verdict,
    reason: decision.verdict === 'deny' ? decision.reason : undefined,
  };
}

function isSame(one: Decision, other: Decision): boolean {
  const [a, b] = [describe(one, undefined), describe(other, undefined)];
  return a.verdict === b.verdict && a.reason === b.reason && a.rule === b.rule;
}
