// Compiles one rule and reports what is wrong with it on its own: empty lists, unknown names, patterns,
// schemas and expressions that do not compile, conditions that could never hold.
// docs/reference/policies.md#what-validate-reports.

import type { ServerRequestGrants } from '../../protocol/server-requests.js';
import { makeVisible, unseenCharacters } from '../../text/escaping.js';
import { stepsOf } from '../../text/json-members.js';
import { nearestCandidate } from '../../text/wording.js';
import { compileCost, compileExpression, type Expression, type ExpressionReads } from '../cel.js';
import { ANY_TOOL } from '../cel-types.js';
import { clausesOf } from '../clauses.js';
import { collectReads } from '../conditions.js';
import { compileSchema } from '../json-schema/validator.js';
import { compilePattern, isExactPattern, type Pattern, type PatternSpace } from '../patterns.js';
import { textOf } from '../rule-text.js';
import {
  type AllowRule,
  matchesAll,
  matchesUpstream,
  type Rule,
  type RuleBudget,
  readsAnnotations,
  readsFindings,
  TARGET_KINDS,
  type TargetKind,
  whoClauses,
} from '../rules.js';
import { hostOfLink, type LinkHost, type ServerRequestTerms } from '../server-request-content.js';
import { normalizeUriPattern, restrictionsOf } from '../uris.js';
import { compileApproval } from './approval.js';
import type {
  LimitsDocument,
  PolicyContext,
  PolicyDiagnostic,
  ReportDiagnostic,
  RuleDocument,
  WhatDocument,
  WhoDocument,
} from './documents.js';

/** The keys of `what` by kind. */
export const WHAT_KEYS = {
  tool: 'tools',
  prompt: 'prompts',
  resource: 'resources',
  template: 'templates',
} as const satisfies { readonly [kind in TargetKind]: keyof WhatDocument };

/** The keys of `what` that name server requests and tasks. */
const GRANT_KEYS = ['sampling', 'elicitation', 'roots', 'tasks'] as const satisfies readonly (keyof WhatDocument)[];

/** Compiles one rule. Parts with an error are left empty, because the caller then discards the set. */
export function compileRule(
  policy: string,
  written: RuleDocument,
  context: PolicyContext,
  report: ReportDiagnostic,
): Rule {
  checkEmpty(written, [], report);
  checkWho(written.who, context, report);
  checkUpstreamNames(written.what.upstreams ?? [], context, report);
  const when = written.when === undefined ? undefined : compileWhen(written.when, report);
  const limits = compileLimits(`${policy}/${written.id}`, written, report);
  const expressions = [when?.reads, limits.budget?.cost.reads].filter((one) => one !== undefined);
  const who = whoClauses(written.who, written.effect);
  const args = compileArguments(written.args ?? {}, report);
  const base = {
    id: `${policy}/${written.id}`,
    policy,
    rule: written.id,
    text: textOf(policy, written),
    matchesWho: matchesAll(who),
    groups: written.who.groups,
    upstreams: written.what.upstreams && compilePatterns(written.what.upstreams, 'name', ['what', 'upstreams'], report),
    targets: compileTargets(written, report),
    grants: compileGrants(written.what),
    terms: compileTerms(written, report),
    tasks: written.what.tasks ?? [],
    args,
    when,
    reads: collectReads(written.args ?? {}, ...expressions),
    valueReads: collectReads(written.args ?? {}, ...expressions.map(withoutTests)),
    ...clausesOf({
      effect: written.effect,
      ...{ who, args, when },
      namesUpstreams: written.what.upstreams !== undefined,
      scopes: written.effect === 'allow' ? (written.scopes ?? []) : [],
      hasCost: limits.budget !== undefined,
    }),
  };
  const rule = addEffect(base, limits, written, context, report);
  checkConditions(rule, report);
  checkTaskLimits(rule, report);
  checkIssuers(rule, written.who, context, report);
  return rule;
}

function withoutTests({ valuePaths }: ExpressionReads): Parameters<typeof collectReads>[1] {
  return { valuePaths, testedPaths: [] };
}

function addEffect(
  base: Omit<Rule, 'effect'>,
  limits: RuleLimits,
  written: RuleDocument,
  context: PolicyContext,
  report: ReportDiagnostic,
): Rule {
  switch (written.effect) {
    case 'allow':
      return { ...base, effect: 'allow', scopes: written.scopes ?? [], ...limits };
    case 'deny':
      return { ...base, effect: 'deny', advice: written.reason };
    case 'require': {
      const { inspect, maxResultBytes, audit } = written;
      if (inspect !== undefined) checkName(inspect, ['inspection profile', context.profiles], ['inspect'], report);
      const captures = audit?.capture ?? [];
      const captureReads = collectReads({}, { valuePaths: [], testedPaths: captures.map(stepsOf) });
      const approval = compileApproval(written, base.when, context, report);
      const more = { profile: inspect, maxResultBytes, captures, captureReads, approval };
      return { ...base, effect: 'require', ...limits, ...more };
    }
  }
}

type NameKind = 'upstream' | 'issuer' | 'inspection profile';

/** Reports a name that is not among those known; where none is near and they are few, lists them. */
function checkName(
  name: string,
  [kind, known]: readonly [NameKind, readonly string[]],
  path: readonly (string | number)[],
  report: ReportDiagnostic,
): void {
  if (known.includes(name)) return;
  const suggestion = nearestCandidate(name, known);
  const isShown = suggestion === undefined && known.length > 0 && known.length <= MAX_KNOWN;
  const list = isShown ? `; known ${kind.replace(/^.* /, '')}s: ${known.join(', ')}` : '';
  report(path, 'error', `no ${kind} is named "${name}"${list}`, suggestion);
}

const MAX_KNOWN = 8;

type RuleLimits = Pick<AllowRule, 'limit' | 'budget'>;

function compileLimits(rule: string, written: RuleDocument, report: ReportDiagnostic): RuleLimits {
  const limits = written.effect === 'deny' ? undefined : written.limits;
  if (limits === undefined) return { limit: undefined, budget: undefined };
  const { rate, per, budget } = limits;
  if (rate === undefined && budget === undefined)
    report(['limits'], 'error', 'nothing is limited: write rate, budget or both');
  return {
    limit: rate === undefined ? undefined : { rule, ...rate, per },
    budget: budget === undefined ? undefined : compileBudget(budget, report),
  };
}

function compileBudget(
  { cost, withinMs, ...rest }: NonNullable<LimitsDocument['budget']>,
  report: ReportDiagnostic,
): RuleBudget | undefined {
  const compiled = compileCost(cost);
  const path = ['limits', 'budget', 'cost'];
  if (!compiled.ok) {
    report(path, 'error', compiled.why, compiled.suggestion);
    return undefined;
  }
  const why = compiled.cost.typeError(ANY_TOOL);
  if (why !== undefined) report(path, 'error', why);
  return { ...rest, windowMs: withinMs, cost: compiled.cost };
}

/** Reports lists and mappings that are written but empty, at any depth above schemas. */
function checkEmpty(value: unknown, path: readonly (string | number)[], report: ReportDiagnostic): void {
  if (typeof value !== 'object' || value === null) return;
  const keys = Object.keys(value);
  if (keys.length === 0 && path[0] !== 'who' && path[0] !== 'what') {
    report(path, 'error', Array.isArray(value) ? 'the list is empty' : 'nothing is named here');
  } else if (keys.length === 0 && path.length > 1) {
    report(path, 'error', 'the list is empty');
  }
  if (path[0] === 'args' || Array.isArray(value)) return;
  for (const [key, member] of Object.entries(value)) checkEmpty(member, [...path, key], report);
}

/** A deny rule for the group "eng-*" would deny nobody, and neither would one for a name with something that no reviewer sees. */
function warnOfIdentities(who: WhoDocument, report: ReportDiagnostic): void {
  for (const key of ['groups', 'subjects', 'clients', 'actors'] as const) {
    for (const [index, text] of (who[key] ?? []).entries()) {
      const odd = isExactPattern(text) ? unseenIn(text) : 'looks like a pattern';
      if (odd === undefined) continue;
      warnOfIdentity(text, odd, ['who', key, index], report);
    }
  }
}

/** The same of values of claims. */
function warnOfClaims({ claims = {} }: WhoDocument, report: ReportDiagnostic): void {
  for (const [name, values] of Object.entries(claims)) {
    for (const [index, value] of values.entries()) {
      const odd = typeof value === 'string' ? unseenIn(value) : undefined;
      if (odd !== undefined) warnOfIdentity(String(value), odd, ['who', 'claims', name, index], report);
    }
  }
}

function warnOfIdentity(text: string, odd: string, path: PolicyDiagnostic['path'], report: ReportDiagnostic): void {
  const quoted = makeVisible(JSON.stringify(text.slice(0, MAX_QUOTED_PATTERN)));
  report(path, 'warning', `${quoted} ${odd}, but identities are compared exactly`);
}

/** A question that is put to a group of such a name is put to nobody. */
export function warnOfReviewerGroups(groups: readonly string[] | undefined, report: ReportDiagnostic): void {
  for (const [index, group] of (groups ?? []).entries()) {
    const odd = unseenIn(group);
    if (odd !== undefined) warnOfIdentity(group, odd, ['approval', 'reviewers', 'groups', index], report);
  }
}

/** What of an identity its reader does not see; undefined where nothing is unseen. */
function unseenIn(text: string): string | undefined {
  if (unseenCharacters(text).size > 0) return 'has characters that are not shown';
  if (text.trim() !== text) return 'has blanks around it';
  return text.normalize('NFC') === text ? undefined : 'is not in the usual form of Unicode (NFC)';
}

function checkWho(who: WhoDocument, context: PolicyContext, report: ReportDiagnostic): void {
  const keys = Object.keys(who);
  if (keys.length === 0) report(['who'], 'error', 'nobody is named; for every caller, anyone: true');
  if (who.anyone === true && keys.length > 1) {
    report(['who', 'anyone'], 'warning', 'adds nothing: the other keys must match as well');
  }
  for (const [index, issuer] of (who.issuers ?? []).entries()) {
    checkName(issuer, ['issuer', context.issuers], ['who', 'issuers', index], report);
  }
  warnOfIdentities(who, report);
  warnOfClaims(who, report);
  const named = (['groups', 'subjects', 'clients', 'actors', 'claims'] as const).filter((key) => who[key]);
  if (context.issuers.length > 1 && named.length > 0 && who.issuers === undefined) {
    const keysNamed = named.join(', ');
    report(['who'], 'error', `with several issuers, ${keysNamed} mean nothing without issuers`);
  }
}

type KnownUpstreams = PolicyContext['upstreams'];

/** The place of each upstream, by its name. */
const places = new WeakMap<KnownUpstreams, ReadonlyMap<string, number>>();

function placesOf(upstreams: KnownUpstreams): ReadonlyMap<string, number> {
  const known = places.get(upstreams);
  if (known !== undefined) return known;
  const made = new Map(upstreams.map(({ name }, index) => [name, index]));
  places.set(upstreams, made);
  return made;
}

/** The upstreams that a rule names, in their order: thousands of rules may name hundreds of upstreams one by one. */
export function namedUpstreams(rule: Rule, upstreams: KnownUpstreams): readonly KnownUpstreams[number][] {
  const { upstreams: patterns } = rule;
  if (patterns?.every(({ kind }) => kind === 'exact') !== true)
    return upstreams.filter(({ name }) => matchesUpstream(rule, name));
  const known = placesOf(upstreams);
  const found = new Set(patterns.flatMap(({ text }) => known.get(text) ?? []));
  return [...found].sort((one, other) => one - other).flatMap((place) => upstreams[place] ?? []);
}

export function isUpstream(name: string, upstreams: KnownUpstreams): boolean {
  return placesOf(upstreams).has(name);
}

function checkUpstreamNames(upstreams: readonly string[], context: PolicyContext, report: ReportDiagnostic): void {
  for (const [index, upstream] of upstreams.entries()) {
    if (!isExactPattern(upstream) || isUpstream(upstream, context.upstreams)) continue;
    const names = context.upstreams.map(({ name }) => name);
    checkName(upstream, ['upstream', names], ['what', 'upstreams', index], report);
  }
}

function compileTargets(
  { what, effect }: Pick<RuleDocument, 'what' | 'effect'>,
  report: ReportDiagnostic,
): Rule['targets'] {
  const kinds = [...TARGET_KINDS.map((kind) => WHAT_KEYS[kind]), ...GRANT_KEYS];
  if (!kinds.some((key) => what[key] !== undefined)) {
    const keys = kinds.join(', ');
    report(['what'], 'error', `no kind is named: ${keys}`);
  }
  const { tools = [], prompts = [], templates = [] } = what;
  return {
    tool: compilePatterns(tools, 'name', ['what', 'tools'], report),
    prompt: compilePatterns(prompts, 'name', ['what', 'prompts'], report),
    resource: compileResources(what.resources ?? [], effect, report),
    template: templates.map((text) => ({ kind: 'exact', text })),
  };
}

function compileGrants({ sampling, elicitation, roots }: WhatDocument): ServerRequestGrants {
  const modes = isList(elicitation) ? elicitation : Object.keys(elicitation ?? {});
  return {
    sampling: sampling !== undefined,
    elicitation: { form: modes.includes('form'), url: modes.includes('url') },
    roots: roots === true,
  };
}

export function isList(elicitation: WhatDocument['elicitation']): elicitation is readonly ('form' | 'url')[] {
  return Array.isArray(elicitation);
}

/** The conditions on the content of server requests; undefined if the rule has none. */
function compileTerms(
  { effect, what: { sampling, elicitation } }: RuleDocument,
  report: ReportDiagnostic,
): ServerRequestTerms | undefined {
  const { includeContext, tools } = typeof sampling === 'object' ? sampling : {};
  const hosts = elicitation === undefined || isList(elicitation) ? undefined : elicitation.url;
  if (tools === false && effect !== 'allow') report(['what', 'sampling', 'tools'], 'error', NO_TOOLS);
  if (includeContext === undefined && tools === undefined && hosts === undefined) return undefined;
  return {
    linkHosts: hosts?.flatMap((host, index) => compileHost(host, index, report)),
    includeContext: includeContext && new Set(includeContext),
    tools: tools === false ? 'none' : tools && compilePatterns(tools, 'name', ['what', 'sampling', 'tools'], report),
  };
}

const NO_TOOLS =
  'only allow rules take tools: false; a deny or require rule lists the tools that it applies to, such as ["*"] for requests with any tool';

/** A host as it stands in the normal form of a URL, or `*.` and such a host for all names below it. */
function compileHost(written: string, index: number, report: ReportDiagnostic): readonly LinkHost[] {
  const isSuffix = written.startsWith('*.');
  const host = isSuffix ? written.slice(2) : written;
  const link = host.includes('://') ? host : `https://${host}/`;
  const normal = hostOfLink(link);
  if (normal !== undefined && normal === host) {
    return [{ text: isSuffix ? `.${host}` : host, isSuffix }];
  }
  const message =
    written === '*'
      ? 'this is not a host; to name links to any host, write elicitation: [url]'
      : 'this is not a host in normal form: write a name in lower case and Punycode, or an IP address, with the port unless it is 443';
  const suggestion = normal === undefined ? undefined : `${isSuffix ? '*.' : ''}${normal}`;
  report(['what', 'elicitation', 'url', index], 'error', message, suggestion);
  return [];
}

function compileResources(
  resources: readonly string[],
  effect: RuleDocument['effect'],
  report: ReportDiagnostic,
): readonly Pattern[] {
  return resources.flatMap((written, index) => {
    const path = ['what', 'resources', index];
    const texts = normalizeUriPattern(written);
    if (texts === undefined) {
      report(path, 'error', 'no valid URI can match this');
      return [];
    }
    const [pattern, ...decoded] = texts.flatMap((text) => compileOne(text, 'path', path, report));
    if (pattern === undefined) return [];
    // What a rule denies, it denies in every reading; what it allows, it allows as it is written.
    if (effect !== 'allow') return restrictionsOf([pattern, ...decoded]);
    return [decoded.length === 0 ? pattern : { ...pattern, decoded }];
  });
}

const MAX_QUOTED_PATTERN = 64;

function compilePatterns(
  texts: readonly string[],
  space: PatternSpace,
  path: readonly string[],
  report: ReportDiagnostic,
): readonly Pattern[] {
  return texts.flatMap((text, index) => compileOne(text, space, [...path, index], report));
}

function compileOne(
  text: string,
  space: PatternSpace,
  path: readonly (string | number)[],
  report: ReportDiagnostic,
): readonly Pattern[] {
  const compiled = compilePattern(text, space);
  if (compiled.ok) return [compiled.pattern];
  const quoted = JSON.stringify(text.slice(0, MAX_QUOTED_PATTERN));
  report(path, 'error', compiled.why.replace(/^the (?:pattern|glob)/, quoted));
  return [];
}

function compileArguments(args: NonNullable<RuleDocument['args']>, report: ReportDiagnostic): Rule['args'] {
  return Object.entries(args).flatMap(([name, written]) => {
    // The author of a rule means what it says: a format is asserted, and a pattern that cannot be checked is an error.
    const compiled = compileSchema(written, { formats: 'assertion' });
    const failed = compiled.ok ? compiled.unchecked[0] : compiled;
    if (compiled.ok && failed === undefined) return [{ name, schema: compiled.schema, written }];
    report(['args', name], 'error', failed?.why ?? '');
    return [];
  });
}

function compileWhen(text: string, report: ReportDiagnostic): Expression | undefined {
  const compiled = compileExpression(text);
  if (!compiled.ok) {
    report(['when'], 'error', compiled.why, compiled.suggestion);
    return undefined;
  }
  const { expression } = compiled;
  const why = expression.typeError(ANY_TOOL);
  if (why !== undefined) report(['when'], 'error', why);
  return expression;
}

/** Reports conditions that could loosen a policy, or that the targets of the rule can never meet. */
function checkConditions(rule: Rule, report: ReportDiagnostic): void {
  const { targets, when } = rule;
  if (rule.effect === 'allow' && readsAnnotations(rule)) {
    report(['when'], 'error', 'annotations may tighten only: an allow rule may not read them');
  }
  const asks = rule.effect === 'require' && rule.approval !== undefined;
  if (readsFindings(rule) && !asks) {
    report(
      ['when'],
      'error',
      'only rules with approval may read findings: what is found in arguments is known after other rules',
    );
  }
  if (when?.reads.readsUri === true && targets.resource.length === 0) {
    report(['when'], 'error', 'uri is for resources, and the rule names none');
  }
  const takesNone = targets.resource.length + targets.template.length + rule.tasks.length > 0 || grantsAny(rule.grants);
  if (takesNone) checkNoArguments(rule, report);
}

function checkNoArguments(rule: Rule, report: ReportDiagnostic): void {
  const { targets, when, tasks } = rule;
  const takesArguments = targets.tool.length + targets.prompt.length > 0;
  // The arguments of its call are no longer known when a task is asked for, so a rule that reads them would grant or
  // restrict more than it says.
  const severity = takesArguments && tasks.length === 0 ? 'warning' : 'error';
  const message = 'resources, templates, tasks and server requests have no arguments that a rule can read';
  if (rule.args.length > 0) report(['args'], severity, message);
  if (rule.effect === 'require' && rule.captures.length > 0) report(['audit', 'capture'], severity, message);
  if (when !== undefined && readsAnything(when)) report(['when'], severity, message);
}

/** Requests about tasks are not counted, so a limit of a rule for them alone would limit nothing. */
function checkTaskLimits(rule: Rule, report: ReportDiagnostic): void {
  const namesMore = TARGET_KINDS.some((kind) => rule.targets[kind].length > 0);
  if (rule.effect === 'deny' || rule.tasks.length === 0 || namesMore || grantsAny(rule.grants)) return;
  if (rule.limit !== undefined || rule.budget !== undefined)
    report(
      ['limits'],
      'error',
      'requests about tasks are not counted, so these limits have no effect; remove them, or name tools as well',
    );
}

function readsAnything({ reads: { argumentPaths, readsAnyArgument } }: Expression): boolean {
  return readsAnyArgument || argumentPaths.length > 0;
}

function grantsAny({ sampling, elicitation, roots }: ServerRequestGrants): boolean {
  return sampling || elicitation.form || elicitation.url || roots;
}

function checkIssuers(rule: Rule, who: WhoDocument, context: PolicyContext, report: ReportDiagnostic): void {
  const { issuers } = who;
  const named = context.upstreams.filter(({ name }) => matchesUpstream(rule, name));
  const areKnown = issuers?.every((issuer) => context.issuers.includes(issuer));
  if (issuers === undefined || areKnown !== true || named.length === 0) return;
  const accepts = (accepted: readonly string[] | undefined): boolean =>
    accepted === undefined || issuers.some((issuer) => accepted.includes(issuer));
  if (named.some((upstream) => accepts(upstream.issuers))) return;
  report(['who', 'issuers'], 'warning', 'no upstream of the rule accepts these issuers');
}
