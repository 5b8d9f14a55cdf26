// Explains recorded decisions for the console as `sallyport explain decision` does: which rules are about the target,
// and which clause of each does not hold. Found when somebody looks, by the policies and definitions in force then.
// docs/reference/listeners.md#the-console; docs/reference/policies.md.

import { type AuditRecord, valueAt } from '../audit/chain.js';
import { noteGroups, readCall } from '../audit/recorded.js';
import { supposePrincipal } from '../auth/principal.js';
import type { Settings } from '../config/settings.js';
import { NO_CATALOG } from '../policy/decide.js';
import type { Catalog } from '../policy/definitions.js';
import { explainRules, type WrittenRules } from '../policy/explain.js';
import type { PolicySet } from '../policy/rules.js';
import type { DecisionExplanation } from './pages.js';

type ExplanationSources = {
  readonly version: () => {
    readonly settings: Settings;
    readonly policies: PolicySet;
    /** The rules as they were written, and facts about each issuer. */
    readonly written: WrittenRules;
    readonly issuerFacts: Parameters<typeof readCall>[2]['outline']['issuerFacts'];
    readonly hashes: { readonly policy: string };
  };
  /** The newest catalog of an upstream, as a plain client sees it; `undefined` for one that is not configured. */
  readonly catalogAt: (upstream: string) => Catalog | undefined;
};

/** Explains one of these records; `undefined` if rules did not decide it, or the record does not say enough. */
export function createDecisionExplainer({ version, catalogAt }: ExplanationSources) {
  return (record: AuditRecord, all: readonly AuditRecord[]): DecisionExplanation | undefined => {
    const current = version();
    const { policies, written, hashes } = current;
    const groups = new Map<string, Set<string>>();
    for (const one of all) noteGroups(one, groups);
    const catalogOf = (upstream: string) => catalogAt(upstream) ?? { ...NO_CATALOG, upstream };
    const outline = {
      upstreams: [...current.settings.upstreams.values()],
      issuerFacts: current.issuerFacts,
    };
    const call = readCall(record, groups, { outline, catalogOf }, { supposePrincipal });
    if (call?.facts === undefined) return undefined;
    const rules = explainRules(policies, written, call.facts)
      .filter(({ what }) => what !== 'fails')
      .map(({ id, effect, state, clauses }) => {
        const shown = clauses.map(({ path, pointer, result, text }) => {
          return { path: path.join('.'), pointer, result, text };
        });
        return { id, effect, state, clauses: shown };
      });
    // Records have the first digits of a hash.
    const decidedBy = valueAt(record, 'gateway', 'policy');
    const isCurrent = typeof decidedBy === 'string' && hashes.policy.startsWith(decidedBy);
    return { rules, isCurrent };
  };
}
