// Explains recorded decisions for the console as `sallyport explain decision` does: which rules are about the target,
// and which clause of each does not hold. Found when somebody looks, by the policies and definitions in force then.
// docs/reference/listeners.md#the-console; docs/reference/policies.md.

import type { DecisionExplanation } from '../admin/pages.js';
import { type AuditRecord, valueAt } from '../audit/chain.js';
import { noteGroups, readCall } from '../audit/recorded.js';
import { supposePrincipal } from '../auth/principal.js';
import { NO_CATALOG } from '../policy/decide.js';
import { explainRules } from '../policy/explain.js';
import { PLAIN_SESSION } from '../protocol/versions/session.js';
import type { Version } from './config-version.js';
import type { SnapshotOf } from './snapshot.js';
import type { Runtimes } from './upstreams.js';

type ExplanationSources = {
  readonly version: () => Version;
  readonly runtimes: Pick<Runtimes, 'get'>;
  readonly snapshotOf: SnapshotOf;
};

/** Explains one of these records; `undefined` if rules did not decide it, or the record does not say enough. */
export function createDecisionExplainer({ version, runtimes, snapshotOf }: ExplanationSources) {
  return (record: AuditRecord, all: readonly AuditRecord[]): DecisionExplanation | undefined => {
    const current = version();
    const { policies, written, hashes } = current;
    const groups = new Map<string, Set<string>>();
    for (const one of all) noteGroups(one, groups);
    const catalogOf = (upstream: string) => {
      const runtime = runtimes.get(upstream);
      return runtime === undefined
        ? { ...NO_CATALOG, upstream }
        : snapshotOf(runtime, current).catalogFor(PLAIN_SESSION);
    };
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
