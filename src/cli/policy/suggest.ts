// Makes a policy for one group from what its members were allowed and refused: exact names, as few rules as upstreams
// and scopes permit. A target of which the record does not tell allowed from refused calls is left out and named. Pure.
// docs/contract.md §1 (replay).

import type { RecordedCall } from '../../audit/recorded.js';
import { compilePolicies } from '../../policy/compile/compile.js';
import type { PolicyDocument, RuleDocument } from '../../policy/compile/documents.js';
import { writtenRules } from '../../policy/explain.js';
import { isExactPattern } from '../../policy/patterns.js';
import { allRules, matchesTarget, matchesUpstream } from '../../policy/rules.js';
import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import { quoteYaml } from '../../text/escaping.js';
import { groupBy } from '../../text/grouping.js';
import { evaluate, type Workspace } from './workspace.js';

/** A target, and what was recorded of it. */
type Use = {
  readonly issuer: string;
  readonly upstream: string;
  readonly kind: string;
  readonly name: string;
  readonly allowed: RecordedCall[];
  readonly refused: RecordedCall[];
};

/** Something to know about the calls of a target. */
export type Remark = Pick<Use, 'upstream' | 'kind' | 'name'> & {
  readonly calls: number;
  readonly why: string;
};

export type Suggestion = {
  /** The policy file. */
  readonly text: string;
  readonly document: PolicyDocument;
  /** What no rule was made for, and why. */
  readonly apart: readonly Remark[];
  /** Refusals of what the policy grants, of which the record does not say whether they would be repeated. */
  readonly unknown: readonly Remark[];
  /** Names that rules grant to the group, and that nobody of it used. */
  readonly unused: readonly { readonly rule: string; readonly names: readonly string[] }[];
};

/** What tells allowed from refused calls. */
type Condition = {
  readonly scopes: readonly string[];
  readonly args: Readonly<Record<string, JsonObject>>;
};
type Grant = Use & Condition;

const WHAT = {
  tool: 'tools',
  prompt: 'prompts',
  resource: 'resources',
  template: 'templates',
} as const;

function isNamedKind(kind: string): kind is keyof typeof WHAT {
  return Object.hasOwn(WHAT, kind);
}

/** Suggests a policy for the calls of one group. */
export function suggestPolicy(
  group: string,
  calls: readonly RecordedCall[],
  workspace: Workspace,
): Suggestion {
  const apart: Remark[] = [];
  const leave = (use: Use, why: string): void => {
    const { upstream, kind, name, allowed, refused } = use;
    apart.push({ upstream, kind, name, calls: allowed.length + refused.length, why });
  };
  const grants = usesOf(calls).flatMap((use): Grant[] => {
    if (use.allowed.length === 0) return [];
    const obstacle = obstacleOf(use);
    const grant =
      obstacle === undefined
        ? conditionsFor(use)
            .map((condition) => ({ ...use, ...condition }))
            .find((one) => keepsRecord(group, one, workspace))
        : undefined;
    if (grant !== undefined) return [grant];
    leave(use, obstacle ?? 'it was allowed and refused, and the record does not tell why');
    return [];
  });
  const document = documentOf(group, grants);
  const unused = findUnused(group, calls, workspace);
  const unknown = grants.flatMap(({ upstream, kind, name, refused }): Remark[] => {
    if (refused.length === 0) return [];
    const rules = compileFor(document, workspace);
    const open = refused.filter((call) => evaluate(call, rules)?.verdict === 'unknown');
    const why =
      'refused, and the record does not say whether the definition or a rule refused them';
    return open.length === 0 ? [] : [{ upstream, kind, name, calls: open.length, why }];
  });
  return { text: render(group, document), document, apart, unknown, unused };
}

function usesOf(calls: readonly RecordedCall[]): readonly Use[] {
  const uses = new Map<string, Use>();
  for (const call of calls) {
    const { caller, upstream, kind, name } = call;
    const key = JSON.stringify([caller.issuer, upstream, kind, name]);
    const use = uses.get(key) ?? {
      ...{ issuer: caller.issuer, upstream, kind, name },
      ...{ allowed: [], refused: [] },
    };
    uses.set(key, use);
    (call.verdict === 'allow' ? use.allowed : use.refused).push(call);
  }
  return [...uses.values()];
}

/** Why no rule can name the target exactly. */
function obstacleOf({ kind, name, allowed, refused }: Use): string | undefined {
  if (!isNamedKind(kind)) return 'it is a server request';
  const unknown = [...allowed, ...refused].find(({ facts }) => facts === undefined);
  if (unknown !== undefined) return `the record does not give the ${unknown.missing}`;
  return kind === 'template' || isExactPattern(name) ? undefined : 'its name reads as a pattern';
}

/**
 * The conditions under which the calls that were allowed are told from those that were refused, simplest first. Refusals
 * of invalid arguments are left to the definition.
 */
function conditionsFor({ allowed, refused }: Use): readonly Condition[] {
  const disputed = refused.filter(({ reason }) => reason !== 'arguments-invalid');
  if (disputed.length === 0) return [{ scopes: [], args: {} }];
  const scopes = scopesFor(allowed, disputed);
  const captured = new Set(allowed.flatMap((call) => [...capturedOf(call).keys()]));
  const byArguments = [...captured].sort().flatMap((name): Condition[] => {
    const schema = schemaFor(
      allowed.map((call) => capturedOf(call).get(name)),
      disputed.map((call) => capturedOf(call).get(name)),
    );
    return schema === undefined ? [] : [{ scopes: [], args: { [name]: schema } }];
  });
  return [...(scopes === undefined ? [] : [{ scopes, args: {} }]), ...byArguments];
}

function capturedOf({ facts }: RecordedCall): ReadonlyMap<string, readonly Json[]> {
  return facts === undefined || 'all' in facts.args ? new Map() : facts.args.values;
}

const MAX_ENUMERATED = 20;

/** A schema that admits what was allowed: up to the largest number if all that was refused is larger, or each value. */
function schemaFor(
  allowed: readonly (readonly Json[] | undefined)[],
  refused: readonly (readonly Json[] | undefined)[],
): JsonObject | undefined {
  if (![...allowed, ...refused].every((values) => values !== undefined)) return undefined;
  const admitted = allowed.flatMap((values) => values ?? []);
  const denied = refused.flatMap((values) => values ?? []);
  const numbers = admitted.filter((value) => typeof value === 'number');
  const maximum = Math.max(...numbers);
  const isBelow = denied.every((value) => typeof value !== 'number' || value > maximum);
  if (numbers.length === admitted.length && isBelow) return { type: 'number', maximum };
  const values = [...new Set(admitted)].filter((value) => typeof value !== 'object');
  return values.length === new Set(admitted).size && values.length <= MAX_ENUMERATED
    ? { enum: values }
    : undefined;
}

/** The scopes that every call that was allowed had, and each one that was refused lacked. */
function scopesFor(
  allowed: readonly RecordedCall[],
  disputed: readonly RecordedCall[],
): readonly string[] | undefined {
  const scopesOf = (call: RecordedCall) => new Set(call.facts?.principal.scopes);
  const common = [...scopesOf(allowed[0] as RecordedCall)].filter((scope) =>
    allowed.every((call) => scopesOf(call).has(scope)),
  );
  const lacks = (call: RecordedCall, scope: string): boolean => !scopesOf(call).has(scope);
  const one = common.find((scope) => disputed.every((call) => lacks(call, scope)));
  if (one !== undefined) return [one];
  const all = disputed.every((call) => common.some((scope) => lacks(call, scope)));
  return all ? common.sort() : undefined;
}

/** Whether the rule for a target alone allows every call that was allowed, and no call that is known to be refused. */
function keepsRecord(group: string, grant: Grant, workspace: Workspace): boolean {
  const rules = compileFor(documentOf(group, [grant]), workspace);
  return [...grant.allowed, ...grant.refused].every((call) => {
    const now = evaluate(call, rules);
    const isKnown = now !== undefined && now.verdict !== 'unknown';
    return call.verdict === 'allow' ? now?.verdict === 'allow' : !isKnown || now.verdict === 'deny';
  });
}

/** Compiles a suggested policy. */
export function compileFor(
  document: PolicyDocument,
  { outline, policies }: Workspace,
): Pick<Workspace, 'policies' | 'written'> {
  const compiled = compilePolicies([document], { ...outline, hash: policies.hash });
  return { policies: compiled.policies, written: writtenRules([document]) };
}

function documentOf(group: string, grants: readonly Grant[]): PolicyDocument {
  const byRule = groupBy(grants, ({ issuer, upstream, scopes, args }) =>
    JSON.stringify([issuer, upstream, scopes, args]),
  );
  const name = idOf(group);
  const ids = new Set<string>();
  const rules = [...byRule.values()].map((all): RuleDocument => {
    const [first] = all;
    const id = uniqueId(`${name}-${first.upstream}`, ids);
    const issuers = first.issuer === 'none' ? {} : { issuers: [first.issuer] };
    const scopes = first.scopes.length === 0 ? {} : { scopes: first.scopes };
    const args = Object.keys(first.args).length === 0 ? {} : { args: first.args };
    const what = { upstreams: [first.upstream], ...targetsOf(all) };
    const who = { ...issuers, groups: [group] };
    return { id, effect: 'allow', who, what, ...scopes, ...args };
  });
  return { file: `${name}.policy.yaml`, policy: name, mode: 'enforce', rules };
}

function targetsOf(grants: readonly Grant[]): Record<string, readonly string[]> {
  const targets: Record<string, readonly string[]> = {};
  for (const [kind, key] of Object.entries(WHAT)) {
    const names = grants.filter((grant) => grant.kind === kind).map(({ name }) => name);
    if (names.length > 0) targets[key] = [...new Set(names)].sort();
  }
  return targets;
}

const MAX_ID = 48;

/** A name that policies and rules may have. */
function idOf(text: string): string {
  const id = text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, MAX_ID);
  return id === '' ? 'suggested' : id;
}

function uniqueId(wanted: string, taken: Set<string>): string {
  let id = wanted;
  for (let number = 2; taken.has(id); number += 1) id = `${wanted}-${number}`;
  taken.add(id);
  return id;
}

function render(group: string, { policy, rules }: PolicyDocument): string {
  const list = (names: readonly string[] = []): string => names.map(quoteYaml).join(', ');
  const texts = rules.map(({ id, who, what, args, ...rule }) => {
    const issuers = who.issuers === undefined ? '' : `issuers: [${list(who.issuers)}], `;
    const { upstreams, ...kinds } = what;
    const named = Object.entries(kinds).flatMap(([key, names]) => [
      `      ${key}:`,
      ...(names as readonly string[]).map((name) => `        - ${quoteYaml(name)}`),
    ]);
    return [
      `  - id: ${quoteYaml(id)}`,
      '    effect: allow',
      `    who: {${issuers}groups: [${list(who.groups)}]}`,
      '    what:',
      `      upstreams: [${list(upstreams)}]`,
      ...named,
      ...('scopes' in rule && rule.scopes !== undefined
        ? [`    scopes: [${list(rule.scopes)}]`]
        : []),
      ...(args === undefined ? [] : [`    args: ${JSON.stringify(args)}`]),
    ].join('\n');
  });
  const body = texts.length === 0 ? 'rules: []' : `rules:\n${texts.join('\n')}`;
  return `# What members of the group ${quoteYaml(group)} were allowed, by \`sallyport replay --suggest\`. Review each name.\nversion: 1\npolicy: ${quoteYaml(policy)}\n${body}\n`;
}

/** What rules grant to the group by who and what, less what was allowed to one of its members. */
function findUnused(
  group: string,
  calls: readonly RecordedCall[],
  { outline, policies, written, catalogOf }: Workspace,
): Suggestion['unused'] {
  const used = new Set(
    calls
      .filter(({ verdict }) => verdict === 'allow')
      .map(({ upstream, kind, name }) => JSON.stringify([upstream, kind, name])),
  );
  return allRules(policies).flatMap((rule) => {
    const groups = written.get(rule.id)?.rule.who.groups;
    if (rule.effect !== 'allow' || groups?.includes(group) !== true) return [];
    const names = outline.upstreams
      .filter(({ name }) => matchesUpstream(rule, name))
      .flatMap(({ name: upstream }) =>
        (['tool', 'prompt', 'template'] as const).flatMap((kind) =>
          catalogOf(upstream)
            .names(kind)
            .filter((name) => matchesTarget(rule, kind, name))
            .filter((name) => !used.has(JSON.stringify([upstream, kind, name])))
            .map((name) => `${upstream}/${name}`),
        ),
      );
    return names.length === 0 ? [] : [{ rule: rule.id, names }];
  });
}
