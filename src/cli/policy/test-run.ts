// Runs cases of policy tests with `decide`, and counts which rules decided any of them. Pure. docs/contract.md §4
// (tests).

import type { PolicyTestCase } from '../../config/schema/policy-test.js';
import { decideRequest, isListed } from '../../policy/decide.js';
import type { Decision } from '../../policy/decision.js';
import { type CallFacts, explainRules } from '../../policy/explain.js';
import type { Principal } from '../../policy/principal.js';
import type { JsonObject, Target } from '../../protocol/jsonrpc.js';
import type { PolicyTests } from './test-files.js';
import { readTarget, type Workspace } from './workspace.js';

export type CaseResult = {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly name: string;
  /** Why it failed, one sentence each; empty if it passed. */
  readonly failures: readonly string[];
};

export type Coverage = {
  /** Rules that decided a case, or added an obligation to one that was allowed. */
  readonly decisive: readonly string[];
  readonly never: readonly string[];
  /** Rules about server requests and tasks alone, which no case asks about. They do not count. */
  readonly withoutCases: readonly string[];
  /** Share of decisive rules, in percent. */
  readonly percent: number;
};

export type TestRun = { readonly results: readonly CaseResult[]; readonly coverage: Coverage };

/** What a case can ask about. */
const TESTABLE = ['tools', 'prompts', 'resources', 'templates'] as const;

export function runPolicyTests(
  tests: readonly PolicyTests[],
  workspace: Workspace,
  principalFor: (file: PolicyTests, name: string) => Principal,
): TestRun {
  const decisive = new Set<string>();
  const results = tests.flatMap((file) =>
    file.cases.map((one, index): CaseResult => {
      const { line, column } = file.locate(['cases', index], 'value');
      const principal = principalFor(file, one.as);
      const failures =
        one.list === undefined
          ? runCall(one, principal, workspace, decisive)
          : runList(one.list, one, principal, workspace, decisive);
      return { file: file.file, line, column, name: one.name, failures };
    }),
  );
  const rules = [...workspace.written.keys()].sort();
  const hasCases = (id: string): boolean => {
    const what = workspace.written.get(id)?.rule.what ?? {};
    return TESTABLE.some((kind) => what[kind] !== undefined);
  };
  const all = rules.filter(hasCases);
  const withoutCases = rules.filter((id) => !hasCases(id));
  const percent = all.length === 0 ? 100 : (100 * decisive.size) / all.length;
  const never = all.filter((rule) => !decisive.has(rule));
  return { results, coverage: { decisive: [...decisive].sort(), never, withoutCases, percent } };
}

const KINDS = { call: 'tool', get: 'prompt', read: 'resource' } as const;

function questionOf({ call, get }: PolicyTestCase): keyof typeof KINDS {
  if (call !== undefined) return 'call';
  return get === undefined ? 'read' : 'get';
}

type Outcome = {
  readonly verdict: Decision['verdict'];
  readonly reason?: string;
  readonly rule?: string;
  readonly advice?: string | undefined;
};

function runCall(
  one: PolicyTestCase,
  principal: Principal,
  workspace: Workspace,
  decisive: Set<string>,
): readonly string[] {
  const { policies, written } = workspace;
  const question = questionOf(one);
  const { upstream, target } = readTarget(one[question] ?? '', KINDS[question], workspace);
  const catalog = workspace.catalogOf(upstream, target);
  const args = one.args as JsonObject;
  const decision = decideRequest(policies, { principal, upstream, target, catalog, args });
  const outcome = outcomeOf(decision, one.limits === 'exhausted');
  const involved = [`${decision.policy}/${decision.rule}`, outcome.rule ?? ''];
  if (decision.verdict === 'allow') {
    const facts = { principal, upstream, target, catalog, args: { all: args } };
    const binding = explainRules(policies, written, facts).filter(
      ({ effect, state }) => effect === 'require' && state === 'holds',
    );
    involved.push(...binding.map(({ id }) => id));
  }
  for (const rule of involved) if (written.has(rule)) decisive.add(rule);
  return compare(one, outcome);
}

function outcomeOf(decision: Decision, areLimitsExhausted: boolean): Outcome {
  const named =
    decision.policy === undefined ? {} : { rule: `${decision.policy}/${decision.rule}` };
  if (decision.verdict === 'deny') {
    const { verdict, reason, advice } = decision;
    return { verdict, reason, ...named, advice };
  }
  const rated = decision.obligations.find(({ kind }) => kind === 'rate');
  if (!areLimitsExhausted || rated?.kind !== 'rate') return { verdict: 'allow', ...named };
  return { verdict: 'deny', reason: 'rate-limited', rule: rated.limit.rule };
}

/** What is not as expected; the reason and the rule only where the verdict is. */
function compare(one: PolicyTestCase, outcome: Outcome): readonly string[] {
  const { verdict, reason, rule, advice } = outcome;
  const by = rule === undefined ? '' : ` by ${rule}`;
  const why = advice === undefined ? '' : ` (${advice})`;
  const decided = verdict === 'allow' ? `allow${by}` : `deny: ${reason}${by}${why}`;
  if (one.expect !== verdict) return [`expected ${one.expect}, decided ${decided}`];
  const wrong = (['reason', 'rule'] as const).filter(
    (key) => one[key] !== undefined && one[key] !== outcome[key],
  );
  return wrong.map((key) => `expected the ${key} ${one[key]}, decided ${decided}`);
}

const LISTED_KINDS = { tools: 'tool', prompts: 'prompt', templates: 'template' } as const;

function runList(
  upstream: string,
  one: PolicyTestCase,
  principal: Principal,
  workspace: Workspace,
  decisive: Set<string>,
): readonly string[] {
  const { policies, catalogOf } = workspace;
  const catalog = catalogOf(upstream);
  const kind = LISTED_KINDS[one.kind];
  const targetOf = (name: string): Target =>
    kind === 'template' ? { kind, uriTemplate: name } : { kind, name };
  const { items, contains = [], lacks = [] } = one;
  const pinned = catalog.names(kind);
  const listed = [...new Set([...pinned, ...contains, ...(items ?? [])])].filter((name) =>
    isListed(policies, principal, upstream, targetOf(name), catalogOf(upstream, targetOf(name))),
  );
  for (const name of pinned) {
    const target = targetOf(name);
    const facts = {
      ...{ principal, upstream, target },
      ...{ catalog: catalogOf(upstream, target), args: { all: {} } },
    };
    noteListing(facts, listed.includes(name), workspace, decisive);
  }
  const missing = [...(items ?? []), ...contains].filter((name) => !listed.includes(name));
  const extra = [
    ...listed.filter((name) => items?.includes(name) === false),
    ...lacks.filter((name) => listed.includes(name)),
  ];
  return [
    ...(missing.length === 0 ? [] : [`not listed: ${quoteAll(missing)}`]),
    ...(extra.length === 0 ? [] : [`listed, but not expected: ${quoteAll(extra)}`]),
  ];
}

function quoteAll(names: readonly string[]): string {
  return [...new Set(names)].map((name) => JSON.stringify(name)).join(', ');
}

/** Lists depend on caller and target alone: an allow rule shows an item, a deny rule without conditions hides it. */
function noteListing(
  facts: CallFacts,
  isShown: boolean,
  { policies, written }: Workspace,
  decisive: Set<string>,
): void {
  for (const { id, effect, who, what } of explainRules(policies, written, facts)) {
    const { args, when } = written.get(id)?.rule ?? {};
    const isHiding = effect === 'deny' && args === undefined && when === undefined;
    const isDecisive = isHiding || (isShown && effect === 'allow');
    if (isDecisive && who === 'holds' && what === 'holds') decisive.add(id);
  }
}
