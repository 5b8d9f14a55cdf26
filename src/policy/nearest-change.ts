// Finds the least that would have to change for a call to be decided otherwise: the steps towards the allow rule that
// lacks the fewest, and past every rule that refuses. Each set of steps is tried with `decide` where all of them can be
// carried out here. Pure. docs/contract.md §4 and §1 (`explain`).

import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import { decide, readPolicyTarget, targetPinOf } from './decide.js';
import type { Decision } from './decision.js';
import { type Catalog, findUndeclared, type PinnedDefinition } from './definitions.js';
import { doesRefuse, type RuleExplanation, type WrittenRules } from './explain.js';
import type { Principal, PrincipalFacts } from './principal.js';
import { allRules, createPolicySet, type PolicyQuery, type PolicySet, type Rule } from './rules.js';
import { EVERYTHING } from './shadow.js';

/** One thing to change. */
type Step = {
  /** What is changed: the caller, its token, the call, a rule or a pin. */
  readonly of: 'caller' | 'token' | 'arguments' | 'rule' | 'pin';
  readonly rule?: string;
  /** JSON pointer into the arguments. */
  readonly pointer?: string;
  /** One sentence without a full stop. */
  readonly text: string;
};

export type Change = {
  /** What the call would then be. */
  readonly to: Decision['verdict'];
  readonly steps: readonly Step[];
  /** The steps were tried and lead there; otherwise they are necessary, and may not be enough. */
  readonly isTried: boolean;
};

/** Makes the principal with changed facts. */
export type RemakePrincipal = (facts: PrincipalFacts) => Principal;

type Draft = {
  facts: PrincipalFacts;
  args: JsonObject;
  rules: readonly Rule[];
  catalog: Catalog;
};
/** A step, and how it is carried out; without that it can only be named. */
type Planned = Step & { readonly apply?: (draft: Draft) => void; readonly isWider?: true };

/** The least change that alters the decision about a call; `undefined` if no rule could ever name its target. */
export function findChange(
  policies: PolicySet,
  written: WrittenRules,
  query: PolicyQuery & { readonly args: JsonObject },
  explained: readonly RuleExplanation[],
  remake: RemakePrincipal,
): Change | undefined {
  if (query.target.kind === 'none' || readPolicyTarget(query.target) === undefined) return undefined;
  const decision = decide(policies, query);
  const to = decision.verdict === 'allow' ? 'deny' : 'allow';
  const blocked = past(explained, query);
  const plans =
    decision.verdict === 'allow'
      ? [withoutRules(explained)]
      : explained
          .filter(isNear)
          .map((rule) => [...towards(rule, written, query), ...blocked])
          .sort((a, b) => costOf(a) - costOf(b));
  const least = plans[0] ?? [{ of: 'rule', text: 'write an allow rule that names it' }, ...blocked];
  const steps = least.map(({ apply: _, isWider: __, ...step }) => step);
  return { to, steps, isTried: tryPlan(least, policies, query, remake) === to };
}

/** Of a rule about other upstreams, everything would have to change. */
function isNear({ effect, clauses }: RuleExplanation): boolean {
  return effect === 'allow' && !clauses.some(({ path }) => path[1] === 'upstreams');
}

/** A rule that names more concerns more calls than this one, so any other change is smaller. */
function costOf(plan: readonly Planned[]): number {
  return plan.length + (plan.some(({ isWider }) => isWider === true) ? MANY_STEPS : 0);
}

const MANY_STEPS = 1000;

function withoutRules(explained: readonly RuleExplanation[]): readonly Planned[] {
  const rules = explained.filter(({ effect, state }) => effect === 'allow' && state === 'holds');
  return rules.map(({ id }) => ({
    of: 'rule',
    rule: id,
    text: 'it must no longer allow the call',
    apply: removing(id),
  }));
}

function removing(id: string): NonNullable<Planned['apply']> {
  return (draft) => {
    draft.rules = draft.rules.filter((rule) => rule.id !== id);
  };
}

/** The steps after which an allow rule holds. */
function towards({ id, clauses }: RuleExplanation, written: WrittenRules, query: PolicyQuery): readonly Planned[] {
  const source = written.get(id)?.rule;
  return clauses.flatMap(({ path: [part, key = ''], text, scopes, pointer }): Planned[] => {
    switch (part) {
      case 'who':
        return [callerStep(id, key, source?.who ?? {}, text)];
      case 'what':
        return [{ of: 'rule', rule: id, text: `name it under "what": ${text}`, apply: naming(id, query) }];
      case 'scopes':
        return (scopes ?? []).map((scope) => ({
          of: 'token',
          rule: id,
          text: `the scope ${scope}`,
          apply: (draft) => {
            draft.facts = { ...draft.facts, scopes: [...draft.facts.scopes, scope] };
          },
        }));
      case 'args':
        return [argumentStep(id, key, source?.args?.[key], text, pointer)];
      default:
        return [{ of: 'arguments', rule: id, text: `"when" must hold: ${text}` }];
    }
  });
}

const OWN_FACTS = { issuers: 'issuer', subjects: 'subject', clients: 'client' } as const;

function callerStep(rule: string, key: string, who: { readonly [key: string]: unknown }, text: string): Planned {
  const named = who[key];
  const first: unknown = Array.isArray(named) ? named[0] : undefined;
  const step = { of: 'caller', rule } as const;
  if (key === 'groups' && typeof first === 'string')
    return {
      ...step,
      text: `a group of ${list(named)}`,
      apply: (draft) => {
        const { areGroupsUnknown: _, ...known } = draft.facts;
        draft.facts = { ...known, groups: [...known.groups, first] };
      },
    };
  const fact = OWN_FACTS[key as keyof typeof OWN_FACTS];
  if (fact !== undefined && typeof first === 'string')
    return {
      ...step,
      text: `the ${fact} ${list(named)}`,
      apply: (draft) => {
        draft.facts = { ...draft.facts, [fact]: first };
      },
    };
  return { ...step, text: `${text}; the rule names ${JSON.stringify(named)}` };
}

function list(names: unknown): string {
  return Array.isArray(names) ? names.map((name) => JSON.stringify(name)).join(' or ') : '';
}

function argumentStep(rule: string, name: string, schema: unknown, text: string, pointer: string | undefined): Planned {
  const step = { of: 'arguments', rule, ...(pointer === undefined ? {} : { pointer }) } as const;
  const value = wantedValue(schema);
  if (value === undefined) return { ...step, text };
  return {
    ...step,
    text: `${text}; for example ${JSON.stringify(value)}`,
    apply: (draft) => {
      draft.args = { ...draft.args, [name]: value };
    },
  };
}

/** A value that the schema of a rule surely admits, if it names one. */
function wantedValue(schema: unknown): Json | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if ('const' in schema) return schema.const as Json;
  return 'enum' in schema && Array.isArray(schema.enum) ? (schema.enum[0] as Json) : undefined;
}

/** Adds the target to what a rule names. */
function naming(id: string, { upstream, target }: PolicyQuery): NonNullable<Planned['apply']> {
  return (draft) => {
    const found = target.kind === 'none' ? undefined : readPolicyTarget(target);
    if (found === undefined || found.kind === 'question') return;
    const { kind, name } = found;
    draft.rules = draft.rules.map((rule) => {
      if (rule.id !== id) return rule;
      const targets = {
        ...rule.targets,
        [kind]: [...rule.targets[kind], { kind: 'exact', text: name }],
      };
      const upstreams = rule.upstreams && [...rule.upstreams, { kind: 'exact', text: upstream } as const];
      return { ...rule, targets, upstreams };
    });
  };
}

/** The steps past what refuses whichever rule allows: the pin, the definition, and rules that deny. */
function past(
  explained: readonly RuleExplanation[],
  query: PolicyQuery & { readonly args: JsonObject },
): readonly Planned[] {
  const refusing = explained.filter(doesRefuse).map(
    ({ id }): Planned => ({
      of: 'rule',
      rule: id,
      text: 'it must not apply',
      apply: removing(id),
    }),
  );
  const found = query.target.kind === 'none' ? undefined : readPolicyTarget(query.target);
  if (found === undefined) return refusing;
  const { refusal, described } = targetPinOf(query.catalog, found, query.args);
  const pin: Planned = {
    of: 'pin',
    text: `the definition must be approved, and offered as approved (${refusal})`,
    apply(draft) {
      draft.catalog = approving(draft.catalog);
    },
  };
  const invalid = invalidArguments(query, described);
  return [...(refusal === undefined ? [] : [pin]), ...invalid, ...refusing];
}

/** What the definition does not admit, whatever the rules. */
function invalidArguments(
  query: PolicyQuery & { readonly args: JsonObject },
  described: PinnedDefinition | undefined,
): readonly Planned[] {
  const decision = decide(EVERYTHING, { ...query, catalog: approving(query.catalog) });
  if (decision.verdict === 'allow' || decision.reason !== 'arguments-invalid') return [];
  const errors = described?.input?.check(query.args) ?? [];
  if (errors.length === 0) {
    const undeclared = findUndeclared(described, query.args);
    if (undeclared === undefined) return [{ of: 'arguments', text: decision.advice ?? '' }];
    const { pointer } = undeclared;
    return [{ of: 'arguments', pointer, text: 'the definition does not declare it' }];
  }
  return errors.map(({ pointer, message }) => {
    return { of: 'arguments', pointer, text: `not valid for the definition: ${message}` };
  });
}

/** The catalog as if every pinned definition was approved and offered. */
function approving(catalog: Catalog): Catalog {
  return {
    ...catalog,
    isStopped: false,
    statusOf(kind, name) {
      const status = catalog.statusOf(kind, name);
      return status.pinned === undefined ? status : { ...status, state: 'approved' };
    },
  };
}

function tryPlan(
  plan: readonly Planned[],
  policies: PolicySet,
  query: PolicyQuery & { readonly args: JsonObject },
  remake: RemakePrincipal,
): Decision['verdict'] | undefined {
  const { principal, args, catalog } = query;
  const draft: Draft = { facts: principal, args, rules: allRules(policies), catalog };
  for (const { apply } of plan) {
    if (apply === undefined) return undefined;
    apply(draft);
  }
  const changed = createPolicySet(policies.hash, draft.rules);
  return decide(changed, {
    ...query,
    principal: remake(draft.facts),
    args: draft.args,
    catalog: draft.catalog,
  }).verdict;
}
