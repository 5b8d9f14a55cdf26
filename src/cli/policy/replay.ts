// `sallyport replay`: which recorded decisions would be others under the policies of a folder, and of whom: known
// changes, and apart from them what the record does not tell. Reads files only; the chain is verified first, and
// nothing is concluded from audit files that were altered. With `--suggest`, the policy for one group that keeps what
// its members were allowed and refused: exact names, as few rules as upstreams and scopes permit. A target of which
// the record does not tell allowed from refused calls is left out and named; this part, at the end of the file, is
// pure.
// docs/reference/commands.md#test-explain-and-replay; docs/reference/audit.md.

import { InvalidArgumentError } from 'commander';
import type { AuditRecord } from '../../audit/chain.js';
import { createEventJoiner } from '../../audit/query.js';
import {
  bothNames,
  type GroupsByToken,
  isDecision,
  isKnownForm,
  isUnapproved,
  noteGroups,
  type RecordedCall,
  readCall,
} from '../../audit/recorded.js';
import type { ChainVerdict } from '../../audit/verify.js';
import { compilePolicies } from '../../policy/compile/compile.js';
import type { PolicyDocument, RuleDocument } from '../../policy/compile/documents.js';
import { type KnownVerdict, writtenRules } from '../../policy/explain.js';
import { isExactPattern } from '../../policy/patterns.js';
import { allRules, matchesTarget, matchesUpstream } from '../../policy/rules.js';
import { type Json, type JsonObject, parseObject } from '../../protocol/jsonrpc.js';
import { makeVisible, quoteYaml, toVisibleJson } from '../../text/escaping.js';
import { groupBy } from '../../text/grouping.js';
import { countOf } from '../../text/wording.js';
import { readKeys, readLog, verifyLog } from '../audit/read.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  UsageError,
  withConfigOption,
  withUsage,
} from '../program.js';
import { renderVerdict } from './explain.js';
import { adviceFor, describeCauses, MISSING_TEXTS, renderAdvice } from './missing-facts.js';
import {
  evaluate,
  evaluateAgain,
  LOG_OPTION,
  logOf,
  openWorkspace,
  type Workspace,
  type WorkspacePorts,
} from './workspace.js';

type LogOptions = {
  /** Audit files, the oldest first, or folders of them; by default those of the gateway file. */
  readonly log?: readonly string[];
  /** Public keys that checkpoints have to be signed with. */
  readonly key?: readonly string[];
};

type VerifiedLog = {
  readonly groups: GroupsByToken;
  /** Milliseconds since the epoch: the time of the last decision. */
  readonly lastMs: number;
  /** Every decision with all its members, in order. */
  decisions(): AsyncGenerator<AuditRecord>;
};

/**
 * Verifies the files as one chain, and says on stderr what could not be checked.
 *
 * @throws UsageError if the chain is damaged or a file cannot be read.
 */
async function openLog(
  { log, key = [] }: LogOptions & { readonly log: readonly string[] },
  io: CliIo,
): Promise<VerifiedLog> {
  const groups = new Map<string, Set<string>>();
  let lastMs = 0;
  const publicKeys = await readKeys(key, io.cwd).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : 'unreadable';
    throw new UsageError(`error: ${makeVisible(why)}\n`);
  });
  const verdict = await verifyLog(log, publicKeys.length === 0 ? {} : { publicKeys }, io.cwd, (line) => {
    const record = parseObject(line);
    if (record === undefined || !isDecision(record)) return;
    noteGroups(record, groups);
    lastMs = Math.max(lastMs, Date.parse(String(record['time'])) || 0);
  });
  const [damage] = verdict.faults;
  if (damage !== undefined) throw new UsageError(damageOf(damage));
  for (const text of verdict.unchecked) io.stderr(`note: not checked: ${makeVisible(text)}\n`);
  return { groups, lastMs, decisions: () => readDecisions(log, io.cwd) };
}

function damageOf({ file, line, kind, message }: ChainVerdict['faults'][number]): string {
  const what = 'the audit files are damaged, so nothing is concluded from them';
  return `error: ${what}: ${makeVisible(`${file}:${line} ${kind}: ${message}`)}\n`;
}

/** Nothing is concluded from what another version may mean otherwise. */
function checkForm({ schema }: AuditRecord): void {
  if (isKnownForm(schema)) return;
  const named = typeof schema === 'string' ? ` (${makeVisible(schema)})` : '';
  throw new UsageError(
    `error: the audit files have lines of a form that this version does not know${named}; replay them with the version that wrote them\n`,
  );
}

async function* readDecisions(log: readonly string[], cwd: string): AsyncGenerator<AuditRecord> {
  const join = createEventJoiner();
  for await (const line of readLog(log, cwd)) {
    const record = parseObject(line);
    if (record !== undefined) checkForm(record);
    if (record !== undefined && isDecision(record)) yield join(record, line.length).record;
  }
}

/** Equal decisions of one caller about one target. */
type DecisionGroup = {
  readonly caller: RecordedCall['caller'];
  readonly upstream: string;
  readonly kind: string;
  readonly name: string;
  /** The name by which clients called it, where that was another. */
  readonly shownAs?: string;
  readonly before: string;
  readonly after: string;
  count: number;
  /** The id of the last of them. */
  example: string;
};

type Tally = {
  decisions: number;
  unchanged: number;
  readonly changed: Map<string, DecisionGroup>;
  /** Those that are still allowed, and of which a person is asked first. */
  readonly asked: Map<string, DecisionGroup>;
  readonly unknown: Map<string, DecisionGroup>;
  /** How the facts that are missing would be recorded, one line each. */
  readonly advice: Set<string>;
};

/** Where a decision is counted that is not the same as before. */
function groupsFor(
  call: RecordedCall,
  now: KnownVerdict | undefined,
  { changed, asked, unknown }: Tally,
): Map<string, DecisionGroup> | undefined {
  if (now === undefined || now.verdict === 'unknown') return unknown;
  const isAsked = now.verdict === 'allow' && now.askers !== undefined;
  if (isAsked) return call.verdict === 'allow' || isUnapproved(call) ? asked : changed;
  return now.verdict === call.verdict ? undefined : changed;
}

/** Counts one decision. */
function countDecision(call: RecordedCall, now: KnownVerdict | undefined, tally: Tally): void {
  tally.decisions += 1;
  const groups = groupsFor(call, now, tally);
  if (groups === undefined) {
    tally.unchanged += 1;
    return;
  }
  if (now?.verdict === 'unknown') for (const line of adviceFor(now)) tally.advice.add(line);
  const { caller, upstream, kind, name, shownAs } = call;
  const before = call.verdict === 'allow' ? `allow by ${call.rule}` : `deny: ${call.reason}`;
  const after = `${describeVerdict(now, call.missing)}${describeDropped(call)}`;
  const key = JSON.stringify([caller, upstream, kind, name, shownAs, before, after]);
  const known = groups.get(key);
  const other = shownAs === undefined ? {} : { shownAs };
  if (known === undefined)
    groups.set(key, { caller, upstream, kind, name, ...other, before, after, count: 1, example: call.id });
  else {
    known.count += 1;
    known.example = call.id;
  }
}

function describeVerdict(now: KnownVerdict | undefined, missing: RecordedCall['missing']): string {
  if (now === undefined) return missing === undefined ? '' : MISSING_TEXTS[missing];
  return now.verdict === 'unknown' ? describeCauses(now) : renderVerdict(now);
}

/** What the gateway would drop of the arguments before it decides. */
function describeDropped({ facts }: RecordedCall): string {
  const dropped = facts !== undefined && 'names' in facts.args ? (facts.args.dropped ?? []) : [];
  return dropped.length === 0 ? '' : ` (the arguments ${dropped.join(', ')} are dropped)`;
}

/** The groups, the most frequent first. */
function sortGroups(groups: ReadonlyMap<string, DecisionGroup>): readonly DecisionGroup[] {
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

export type ReplayOptions = LogOptions & {
  readonly config: string;
  readonly policies?: string;
  readonly group?: string;
  readonly subject?: string;
  readonly days?: number;
  readonly suggest?: boolean;
  readonly json?: boolean;
};

const MS_PER_DAY = 86_400_000;

/** Exit 0: no known decision changes; 1: some do. With `suggest` always 0. */
export function runReplay(options: ReplayOptions, io: CliIo, ports: WorkspacePorts): Promise<number> {
  return withUsage(io, async () => {
    const { group } = options;
    if (options.suggest === true && group === undefined)
      throw new UsageError('error: --suggest needs --group, the group that the rules are for\n');
    const workspace = await openWorkspace(options, io, ports);
    const log = await openLog({ ...options, log: options.log ?? logOf(workspace) }, io);
    const calls = selectCalls(log, options, workspace, ports);
    return options.suggest === true && group !== undefined
      ? runSuggest(group, calls, workspace, options.json === true, io)
      : runCompare(calls, workspace, options.json === true, io);
  });
}

async function* selectCalls(
  log: VerifiedLog,
  { group, subject, days }: ReplayOptions,
  workspace: Workspace,
  ports: WorkspacePorts,
): AsyncGenerator<RecordedCall | undefined> {
  const sinceMs = days === undefined ? 0 : log.lastMs - days * MS_PER_DAY;
  for await (const record of log.decisions()) {
    if (Date.parse(String(record['time'])) < sinceMs) continue;
    const call = readCall(record, log.groups, workspace, ports);
    const isSelected =
      (group === undefined || call?.groups.includes(group) === true) &&
      (subject === undefined || call?.caller.subject === subject);
    if (isSelected) yield call;
  }
}

async function runCompare(
  calls: AsyncIterable<RecordedCall | undefined>,
  workspace: Workspace,
  isJson: boolean,
  io: CliIo,
): Promise<number> {
  const tally: Tally = {
    decisions: 0,
    unchanged: 0,
    changed: new Map(),
    asked: new Map(),
    unknown: new Map(),
    advice: new Set(),
  };
  let others = 0;
  for await (const call of calls) {
    if (call === undefined) others += 1;
    else countDecision(call, evaluateAgain(call, workspace), tally);
  }
  const changed = sortGroups(tally.changed);
  const asked = sortGroups(tally.asked);
  const unknown = sortGroups(tally.unknown);
  const { decisions, unchanged } = tally;
  if (isJson) {
    const advice = [...tally.advice];
    const shown = { decisions, unchanged, changed, needApproval: asked, unknown, advice, notByRules: others };
    io.stdout(`${toVisibleJson(shown)}\n`);
  } else {
    const groups = [renderGroups('would change', changed), renderGroups('need approval', asked)];
    io.stdout(`${groups.join('')}${renderGroups('not known', unknown)}${renderAdvice([...tally.advice])}`);
  }
  const sum = (groups: readonly DecisionGroup[]): number => groups.reduce((total, one) => total + one.count, 0);
  const approvals = asked.length === 0 ? '' : `${sum(asked)} need approval, `;
  io.stderr(
    `${countOf(decisions, 'decision')}: ${unchanged} unchanged, ${sum(changed)} would change, ${approvals}${sum(unknown)} not known; ${others} others are not decided by rules\n`,
  );
  return changed.length === 0 ? EXIT_FINE : EXIT_FAILED;
}

function renderGroups(title: string, groups: readonly DecisionGroup[]): string {
  return groups
    .map(({ caller, upstream, kind, before, after, count: times, example, ...names }) => {
      const what = `${title}: ${times} × ${caller.subject} (${caller.client}) ${upstream} ${kind} ${bothNames(names)}`;
      const how = title === 'not known' ? `${before}, now depends on ${after}` : `${before} -> ${after}`;
      return `${makeVisible(`${what}: ${how}  (${example})`)}\n`;
    })
    .join('');
}

async function runSuggest(
  group: string,
  calls: AsyncIterable<RecordedCall | undefined>,
  workspace: Workspace,
  isJson: boolean,
  io: CliIo,
): Promise<number> {
  const all: RecordedCall[] = [];
  for await (const call of calls) if (call !== undefined) all.push(call);
  const suggestion = suggestPolicy(group, all, workspace);
  const { text, apart, unknown, unused, document } = suggestion;
  if (isJson) io.stdout(`${toVisibleJson({ policy: text, apart, unknown, unused })}\n`);
  else io.stdout(`${text}${renderRemarks(suggestion)}`);
  const rules = countOf(document.rules.length, 'rule');
  io.stderr(`${rules} from ${countOf(all.length, 'decision')}; ${countOf(apart.length, 'target')} without a rule\n`);
  return EXIT_FINE;
}

/** As comments, so that the output is a policy file. */
function renderRemarks({ apart, unknown, unused }: Suggestion): string {
  const remark = ({ upstream, kind, name, calls, why }: Remark): string =>
    `${upstream} ${kind} ${name} (${countOf(calls, 'call')}): ${why}`;
  const left = [
    ...apart.map((one) => `not decided here: ${remark(one)}`),
    ...unknown.map((one) => `not known: ${remark(one)}`),
  ];
  const never = unused.map(({ rule, names }) => `granted by ${rule} and never used: ${names.join(', ')}`);
  return [...left, ...never].map((line) => `# ${makeVisible(line)}\n`).join('');
}

function readDays(text: string): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) === 0) throw new InvalidArgumentError('Expected a number of days.');
  return Number(text);
}

/** The command `replay`. */
export function replayCommand(io: CliIo, ports: WorkspacePorts): Command {
  return {
    name: 'replay',
    summary: 'Show which recorded decisions other policies would change, or suggest rules.',
    examples: [
      'sallyport replay --policies next/',
      'sallyport replay --suggest --group eng --days 30 > eng.policy.yaml',
    ],
    configure(command, finish) {
      withConfigOption(command, io)
        .option('--log <file...>', LOG_OPTION)
        .option('--policies <folder>', 'policies other than those that the gateway file names')
        .option('--key <public...>', 'public key that checkpoints must be signed with')
        .option('--group <group>', 'only decisions about callers who are known to be in it')
        .option('--subject <subject>', 'only decisions about this caller')
        .option('--days <number>', 'only this many days before the last decision', readDays)
        .option('--suggest', 'print the policy that keeps what the group was allowed')
        .option('--json', 'print JSON')
        .action(async (options: ReplayOptions) => finish(await runReplay(options, io, ports)));
    },
  };
}

/** A target, and what was recorded of it. */
type TargetUse = {
  readonly issuer: string;
  readonly upstream: string;
  readonly kind: string;
  readonly name: string;
  readonly allowed: readonly RecordedCall[];
  readonly refused: readonly RecordedCall[];
};

/** Something to know about the calls of a target. */
type Remark = Pick<TargetUse, 'upstream' | 'kind' | 'name'> & {
  readonly calls: number;
  readonly why: string;
};

type Suggestion = {
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
type Grant = TargetUse & Condition;

/** Where a rule names targets of each kind. */
const MEMBER_OF_KIND = {
  tool: 'tools',
  prompt: 'prompts',
  resource: 'resources',
  template: 'templates',
} as const;

function isNamedKind(kind: string): kind is keyof typeof MEMBER_OF_KIND {
  return Object.hasOwn(MEMBER_OF_KIND, kind);
}

/** Suggests a policy for the calls of one group. */
export function suggestPolicy(group: string, calls: readonly RecordedCall[], workspace: Workspace): Suggestion {
  const apart: Remark[] = [];
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
    const { upstream, kind, name } = use;
    const why = obstacle ?? 'it was allowed and refused, and the record does not tell why';
    apart.push({ upstream, kind, name, calls: use.allowed.length + use.refused.length, why });
    return [];
  });
  const document = documentOf(group, grants);
  const unused = findUnused(group, calls, workspace);
  const unknown = grants.flatMap(({ upstream, kind, name, refused }): Remark[] => {
    if (refused.length === 0) return [];
    const rules = compileSuggested(document, workspace);
    const open = refused.filter((call) => evaluate(call, rules)?.verdict === 'unknown');
    const why = 'refused, and the record does not say whether the definition or a rule refused them';
    return open.length === 0 ? [] : [{ upstream, kind, name, calls: open.length, why }];
  });
  return { text: renderPolicy(group, document), document, apart, unknown, unused };
}

function usesOf(calls: readonly RecordedCall[]): readonly TargetUse[] {
  const byTarget = groupBy(calls, ({ caller, upstream, kind, name }) =>
    JSON.stringify([caller.issuer, upstream, kind, name]),
  );
  return [...byTarget.values()].map((all) => {
    const [{ caller, upstream, kind, name }] = all;
    const allowed = all.filter(({ verdict }) => verdict === 'allow');
    // What a person did not approve, rules allowed all the same.
    const refused = all.filter((call) => call.verdict !== 'allow' && !isUnapproved(call));
    return { issuer: caller.issuer, upstream, kind, name, allowed, refused };
  });
}

/** Why no rule can name the target exactly. */
function obstacleOf({ kind, name, allowed, refused }: TargetUse): string | undefined {
  if (!isNamedKind(kind)) return 'it is a server request';
  const unknown = [...allowed, ...refused].find(({ facts }) => facts === undefined);
  if (unknown !== undefined) return `the record does not give the ${unknown.missing}`;
  return kind === 'template' || isExactPattern(name) ? undefined : 'its name reads as a pattern';
}

/**
 * The conditions under which the calls that were allowed are told from those that were refused, simplest first. Refusals
 * of invalid arguments are left to the definition.
 */
function conditionsFor({ allowed, refused }: TargetUse): readonly Condition[] {
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
  return values.length === new Set(admitted).size && values.length <= MAX_ENUMERATED ? { enum: values } : undefined;
}

/** The scopes that every call that was allowed had, and each one that was refused lacked. */
function scopesFor(allowed: readonly RecordedCall[], disputed: readonly RecordedCall[]): readonly string[] | undefined {
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
  const rules = compileSuggested(documentOf(group, [grant]), workspace);
  return [...grant.allowed, ...grant.refused].every((call) => {
    const now = evaluate(call, rules);
    const isKnown = now !== undefined && now.verdict !== 'unknown';
    return call.verdict === 'allow' ? now?.verdict === 'allow' : !isKnown || now.verdict === 'deny';
  });
}

/** Compiles a suggested policy. */
export function compileSuggested(
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
  for (const [kind, key] of Object.entries(MEMBER_OF_KIND)) {
    const names = grants.filter((grant) => grant.kind === kind).map(({ name }) => name);
    if (names.length > 0) targets[key] = [...new Set(names)].sort();
  }
  return targets;
}

const MAX_ID_CHARS = 48;

/** A name that policies and rules may have. */
function idOf(text: string): string {
  const id = text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, MAX_ID_CHARS);
  return id === '' ? 'suggested' : id;
}

function uniqueId(wanted: string, taken: Set<string>): string {
  let id = wanted;
  for (let number = 2; taken.has(id); number += 1) id = `${wanted}-${number}`;
  taken.add(id);
  return id;
}

function renderPolicy(group: string, { policy, rules }: PolicyDocument): string {
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
      ...('scopes' in rule && rule.scopes !== undefined ? [`    scopes: [${list(rule.scopes)}]`] : []),
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
