// `sallyport explain`: why a call is or was decided as it is. `explain call` asks about a call that is described on the
// command line, `explain decision` about one in an audit file. Reads files only.
// docs/reference/commands.md#test-explain-and-replay; docs/reference/policies.md.

import { relative, resolve } from 'node:path';
import { Option } from 'commander';
import type { AuditRecord } from '../../audit/chain.js';
import { createEventJoiner, hasId } from '../../audit/query.js';
import {
  bothNames,
  isDecision,
  noteGroups,
  type OtherRefusal,
  type RecordedCall,
  readCall,
  readOtherRefusal,
} from '../../audit/recorded.js';
import { decodeUtf8 } from '../../config/files.js';
import { type ApprovalTerms, describeTerms } from '../../policy/approval-terms.js';
import { type BlockTarget, blockedIdentity, blocksAt, callerBlock, refuseBlocked } from '../../policy/blocks.js';
import { decideRequest } from '../../policy/decide.js';
import { approvalOf, type Decision } from '../../policy/decision.js';
import { explainRules, type KnownVerdict, type RuleExplanation, verdictOf } from '../../policy/explain.js';
import type { Flow, SensitiveField } from '../../policy/information-flow.js';
import { isReason, REASONS } from '../../policy/reasons.js';
import { type PolicyQuery, type PolicySet, TARGET_KINDS, type TargetKind } from '../../policy/rules.js';
import { isObject, type JsonObject, parseObject, type Target } from '../../protocol/jsonrpc.js';
import { makeVisible, toVisibleJson } from '../../text/escaping.js';
import { countOf, describeReadError, fullDurationText } from '../../text/wording.js';
import { readLog } from '../audit/read.js';
import {
  type CliIo,
  type Command,
  didYouMean,
  EXIT_FAILED,
  EXIT_FINE,
  UsageError,
  withConfigOption,
  withUsage,
} from '../program.js';
import { type CallerOptions, callerOf, withCallerOptions } from './callers.js';
import { adviceFor, describeCauses, MISSING_TEXTS, renderAdvice } from './missing-facts.js';
import {
  describeGiven,
  type GivenArguments,
  LOG_OPTION,
  logOf,
  openWorkspace,
  otherNameOf,
  presentationAt,
  principalOf,
  readCaller,
  readGiven,
  readTarget,
  type Workspace,
  type WorkspacePorts,
} from './workspace.js';

export type ExplainCallOptions = CallerOptions & {
  readonly target: string;
  readonly config: string;
  readonly policies?: string;
  readonly kind?: TargetKind;
  /** JSON. */
  readonly args?: string;
  /** A file with the output of `block list --json`. */
  readonly blocks?: string;
  readonly json?: boolean;
};

/** Prints why a call would be allowed or refused. Exit 0 whatever the verdict. */
export function runExplainCall(options: ExplainCallOptions, io: CliIo, ports: WorkspacePorts): Promise<number> {
  return withUsage(io, async () => {
    const caller = readCaller(callerOf(options));
    const workspace = await openWorkspace(options, io, ports);
    const { upstream, target } = readTarget(options.target, options.kind, workspace);
    noteUnpinned(upstream, target, workspace, io);
    const given = readGiven(['--args', options.args ?? '{}'], upstream, target, workspace);
    const { args } = given;
    const principal = principalOf(caller, workspace, ports);
    const blocks = readBlocks(options.blocks, io, ports);
    const { policies, written, catalogOf } = workspace;
    const query = { principal, upstream, target, catalog: catalogOf(upstream, target), args };
    const rules = explainRules(policies, written, { ...query, args: { all: args } });
    const decision = decideUnder(blocks ?? NO_BLOCKS, policies, query);
    const tool = target.kind === 'tool' ? target.name : undefined;
    const shownAs = tool && otherNameOf(workspace.outline, upstream, 'tool', tool);
    const sensitive = tool === undefined ? undefined : policies.sensitive?.of(upstream, tool);
    const shown = {
      ...describeDecision(decision),
      ...(shownAs && { shownAs }),
      ...argumentsOf(given),
      rules: place(rules, workspace, io),
      flows: flowsOf(policies, query),
      areBlocksKnown: blocks !== undefined,
      ...(sensitive && {
        sensitive: [...sensitive.results, ...sensitive.arguments].map(describeField),
      }),
    };
    io.stdout(options.json ? `${toVisibleJson(shown)}\n` : renderCall(shown));
    return EXIT_FINE;
  });
}

/** What the gateway does to the arguments, where it does something. */
function argumentsOf(given: GivenArguments): Pick<ExplainedCall, 'arguments'> {
  const { added, dropped, coerced, filledIn = [] } = given;
  const isPlain = describeGiven(given).length === 0;
  return isPlain ? {} : { arguments: { ...(added.length > 0 && { added }), dropped, coerced, filledIn } };
}

/** Notes a name that is not pinned: without the note, a misspelt name looks like one that no rule allows. */
function noteUnpinned(upstream: string, target: Target, { catalogOf, outline }: Workspace, io: CliIo): void {
  if (target.kind !== 'tool' && target.kind !== 'prompt') return;
  const catalog = catalogOf(upstream);
  const known = catalog.names(target.kind);
  if (catalog.mode === 'off' || known.includes(target.name)) return;
  const presented = target.kind === 'tool' ? presentationAt(outline, upstream)?.byName.get(target.name) : undefined;
  const meant = presented === undefined ? didYouMean(target.name, known) : `; clients know "${presented.tool}" by it`;
  const note = `note: no ${target.kind} named "${target.name}" is pinned for ${upstream}${meant}`;
  io.stderr(`${makeVisible(note)}\n`);
}

type Blocks = ReadonlyMap<string, BlockTarget>;

const NO_BLOCKS: Blocks = new Map();

/**
 * The blocks of a file, by their ids. Revocations are left out, because they name tokens and sessions, which are not
 * known here.
 */
function readBlocks(file: string | undefined, io: CliIo, { files }: WorkspacePorts): Blocks | undefined {
  if (file === undefined) return undefined;
  let rows: unknown;
  try {
    rows = JSON.parse(decodeUtf8(files.readFile(resolve(io.cwd, file))) ?? '');
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not valid JSON' : describeReadError(error);
    throw new UsageError(`error: ${file} ${why}\n`);
  }
  const isRow = (row: unknown): row is JsonObject =>
    isObject(row) && typeof row['id'] === 'string' && typeof row['kind'] === 'string';
  if (!Array.isArray(rows) || !rows.every(isRow))
    throw new UsageError(`error: ${file} is not a list of blocks; write it with: sallyport block list --json\n`);
  const blocks = rows.filter((row) => row['kind'] === 'block');
  return new Map(blocks.map((row) => [String(row['id']), row as unknown as BlockTarget]));
}

/** Decides as the gateway does: callers, upstreams and everything first, then items like unknown ones. */
function decideUnder(blocks: Blocks, policies: PolicySet, query: PolicyQuery): Decision {
  const at = blocksAt(query.upstream, blocks);
  const block = at?.entire ?? callerBlock(byIdentity(blocks), query.principal);
  if (block !== undefined) return refuseBlocked(block).deny;
  const catalog = at === undefined ? query.catalog : { ...query.catalog, blockOf: at.of };
  return decideRequest(policies, { ...query, catalog });
}

/** The ids of the blocks that name an identity, by its key. */
function byIdentity(blocks: Blocks): ReadonlyMap<string, string> {
  return new Map(
    [...blocks].flatMap(([id, block]) => {
      const identity = blockedIdentity(block);
      return identity === undefined ? [] : [[identity, id] as const];
    }),
  );
}

/** The flows that may refuse the call or put it to a person, by what its caller has received before. */
function flowsOf(
  { flows }: PolicySet,
  { upstream, target }: PolicyQuery,
): readonly (Pick<Flow, 'policy' | 'id' | 'from' | 'withinMs'> & { readonly approval?: ApprovalTerms })[] {
  const all = flows?.of(upstream, target.kind, 'name' in target ? target.name : '').flows ?? [];
  return all.map(({ policy, id, from, withinMs, approval }) => {
    return { policy, id, from, withinMs, ...(approval && { approval: approval.terms }) };
  });
}

type PlacedClause = RuleExplanation['clauses'][number] & { readonly at: string };
type PlacedRule = Omit<RuleExplanation, 'clauses' | 'file' | 'index' | 'basis'> & {
  /** `file:line:column`. */
  readonly at: string;
  readonly clauses: readonly PlacedClause[];
};

/** Gives every rule and clause its place in the files. */
function place(rules: readonly RuleExplanation[], { locate }: Workspace, io: CliIo): readonly PlacedRule[] {
  return rules.map(({ file, index, clauses, basis: _, ...rule }) => {
    const at = (path: readonly string[]): string => {
      const { line, column } = locate(file, ['rules', index, ...path]);
      return `${relative(io.cwd, file) || file}:${line}:${column}`;
    };
    const placed = clauses.map((clause) => ({ ...clause, at: at(clause.path) }));
    return { ...rule, at: at([]), clauses: placed };
  });
}

type DescribedDecision = {
  readonly verdict: Decision['verdict'];
  readonly reason?: string;
  readonly rule?: string;
  /** The caller sees the target in lists, and learns the reason of a refusal. */
  readonly listed: boolean;
  readonly text?: string;
  /** The rules that ask a person first. */
  readonly askers?: readonly string[];
};

function describeDecision(decision: Decision): DescribedDecision {
  const { verdict, policy, rule } = decision;
  const named = policy === undefined ? {} : { rule: `${policy}/${rule}` };
  if (decision.verdict === 'allow') {
    const askers = approvalOf(decision)?.requirements.map((one) => one.rule) ?? [];
    return { verdict, ...named, listed: true, ...(askers.length > 0 && { askers }) };
  }
  const { reason, listed, advice } = decision;
  const text = advice === undefined ? REASONS[reason].text : `${REASONS[reason].text} ${advice}`;
  return { verdict, reason, ...named, listed, text };
}

type DescribedField = {
  readonly pointer: string;
  readonly effect: SensitiveField['effect'] | 'not recorded';
};

function describeField({ pointer, effect }: SensitiveField): DescribedField {
  // Arguments are forwarded as they are: only the audit log lacks them.
  return { pointer, effect: pointer.startsWith('/arguments') ? 'not recorded' : effect };
}

type ExplainedCall = DescribedDecision & {
  readonly rules: readonly PlacedRule[];
  readonly flows: ReturnType<typeof flowsOf>;
  readonly areBlocksKnown: boolean;
  readonly sensitive?: readonly DescribedField[];
  /** The name by which clients know the tool. */
  readonly shownAs?: string;
  readonly arguments?: Pick<GivenArguments, 'dropped' | 'coerced'> & {
    readonly added?: GivenArguments['added'];
    readonly filledIn: NonNullable<GivenArguments['filledIn']>;
  };
};

function renderArguments(given: ExplainedCall['arguments']): string {
  if (given === undefined) return '';
  const lines = describeGiven({ added: [], ...given, args: {} }).map((text) => `  ${makeVisible(text)}\n`);
  return `arguments, as the gateway reads them:\n${lines.join('')}`;
}

function renderFields(fields: readonly DescribedField[] = []): string {
  const lines = fields.map(({ pointer, effect }) => `  ${effect} ${makeVisible(pointer)}\n`);
  return lines.length === 0 ? '' : `sensitive fields:\n${lines.join('')}`;
}

function renderCall(call: ExplainedCall): string {
  const { rules, flows, sensitive, areBlocksKnown, shownAs, arguments: given, ...decision } = call;
  const { verdict, reason, rule, listed, text, askers } = decision;
  const by = rule === undefined ? '' : ` by ${rule}`;
  const seen = listed ? 'listed for this caller' : 'hidden from this caller ("not found")';
  const head = verdict === 'allow' ? `allow${by}${onceApproved(askers)}\n` : `deny: ${reason}${by}, ${seen}\n`;
  const lift = reason === 'blocked' ? 'see the block: sallyport block list\n' : '';
  const unknown = areBlocksKnown ? '' : UNKNOWN_BLOCKS;
  const may = `${renderFlows(flows)}${renderFields(sensitive)}`;
  const known = shownAs === undefined ? '' : `clients know the tool as ${makeVisible(shownAs)}\n`;
  const shown = `${known}${renderArguments(given)}${renderRules(rules)}${may}${lift}${unknown}`;
  return `${head}${text === undefined ? '' : `  ${text}\n`}${shown}`;
}

/** That a person is asked first, and by which rules. */
function onceApproved(askers: readonly string[] = []): string {
  return askers.length === 0 ? '' : `, once approved: ${askers.join(', ')}`;
}

const UNKNOWN_BLOCKS =
  'blocks are not known here; to include them, give the output of "sallyport block list --json" with --blocks FILE\n';

function renderFlows(flows: ReturnType<typeof flowsOf>): string {
  const lines = flows.map(
    ({ policy, id, from, withinMs, approval }) =>
      `  ${makeVisible(`${policy}/${id}`)}  ${approval === undefined ? 'refuses it' : makeVisible(`needs approval (${describeTerms(approval)})`)} for ${fullDurationText(withinMs)} after results labelled ${from.join(' and ')}\n`,
  );
  return lines.length === 0 ? '' : `flows, by what the caller received before:\n${lines.join('')}`;
}

const STATES = { holds: 'holds', fails: 'does not hold', error: 'error', unknown: 'not known' };

/** What a rule asks for, by what comes out of it. */
const MAY_ASK = { holds: 'needs approval', error: 'would need approval', unknown: 'may need approval' };

/** The rules about the target, then how many others there are. */
function renderRules(rules: readonly PlacedRule[]): string {
  const concerned = rules.filter(({ what }) => what !== 'fails');
  const others = rules.length - concerned.length;
  const lines = concerned.flatMap(({ id, effect, at, state, clauses, limit, approval }) => [
    `  ${effect} ${id}  ${STATES[state]}  (${at})`,
    ...clauses.map(
      ({ path, text, pointer, result, at: there }) =>
        `    ${path.join('.')}${pointer === undefined ? '' : ` ${pointer}`}: ${result === 'fails' ? '' : `${STATES[result]}: `}${text}  (${there})`,
    ),
    ...(approval === undefined || state === 'fails'
      ? []
      : [
          `    ${MAY_ASK[state]}${approval.isBeyondLimits ? ' beyond its limits' : ''} (${describeTerms(approval.terms)})`,
        ]),
    ...(limit === undefined
      ? []
      : [`    limit: ${limit.count} in ${fullDurationText(limit.windowMs)} per ${limit.per}, not counted here`]),
  ]);
  const rest = others === 0 ? '' : `  ${countOf(others, 'other rule')} about other targets\n`;
  return `rules:\n${lines.map((line) => `${makeVisible(line)}\n`).join('')}${rest}`;
}

type ExplainDecisionOptions = {
  readonly id: string;
  /** By default the audit files of the gateway file. */
  readonly log?: readonly string[];
  readonly config: string;
  readonly policies?: string;
  readonly json?: boolean;
};

/** Prints what the rules say of a recorded decision. Exit 1 if the files have none with this id. */
export function runExplainDecision(options: ExplainDecisionOptions, io: CliIo, ports: WorkspacePorts): Promise<number> {
  return withUsage(io, async () => {
    const workspace = await openWorkspace(options, io, ports);
    const call = await findCall(options, io, workspace, ports);
    if (typeof call === 'string') {
      io.stderr(call);
      return EXIT_FAILED;
    }
    const shown = 'causes' in call ? { recorded: call } : explainRecorded(call, workspace, io);
    const text = 'rules' in shown ? renderDecision(shown) : renderRefusal(shown.recorded);
    io.stdout(options.json ? `${toVisibleJson(shown)}\n` : text);
    return EXIT_FINE;
  });
}

function explainRecorded(
  { facts, missing, ...recorded }: RecordedCall,
  workspace: Workspace,
  io: CliIo,
): ExplainedDecision {
  const { policies, written } = workspace;
  const rules = facts === undefined ? [] : explainRules(policies, written, facts);
  const now = facts === undefined ? undefined : verdictOf(rules, facts);
  return { recorded, missing, now, rules: place(rules, workspace, io) };
}

/** The decision with an id, or why there is none as the complete text for stderr. */
async function findCall(
  { id, log }: ExplainDecisionOptions,
  io: CliIo,
  workspace: Workspace,
  ports: WorkspacePorts,
): Promise<RecordedCall | OtherRefusal | string> {
  const groups = new Map<string, Set<string>>();
  const join = createEventJoiner();
  let found: AuditRecord | undefined;
  for await (const line of readLog(log ?? logOf(workspace), io.cwd)) {
    const record = parseObject(line);
    if (record === undefined) continue;
    noteGroups(record, groups);
    if (isDecision(record) && hasId(record, id)) found = join(record, line.length).record;
  }
  if (found === undefined) return 'error: the audit files have no decision with this id\n';
  return (
    readCall(found, groups, workspace, ports) ??
    readOtherRefusal(found) ??
    'error: policy rules did not make this decision; see: sallyport audit show\n'
  );
}

type ExplainedDecision = {
  readonly recorded: Omit<RecordedCall, 'facts' | 'missing'>;
  readonly missing: RecordedCall['missing'];
  readonly now: KnownVerdict | undefined;
  readonly rules: readonly PlacedRule[];
};

function renderRefusal(refusal: OtherRefusal): string {
  if (refusal.reason === 'blocked')
    return `${renderRecorded(refusal)}an administrator blocked it; who and why: sallyport block list\n`;
  const causes = refusal.causes.map((id) => `  sallyport audit show ${makeVisible(id)}\n`);
  return `${renderRecorded(refusal)}the results came from these decisions:\n${causes.join('')}`;
}

function renderDecision({ recorded, missing, now, rules }: ExplainedDecision): string {
  const current =
    now === undefined
      ? `under these policies: not known, because ${missing === undefined ? '' : MISSING_TEXTS[missing]}\n`
      : `under these policies: ${renderVerdict(now)}\n`;
  const advice = now?.verdict === 'unknown' ? adviceFor(now) : [];
  return `${renderRecorded(recorded)}${current}${now === undefined ? '' : renderRules(rules)}${renderAdvice(advice)}`;
}

/** What the audit log says of a decision. */
function renderRecorded(recorded: Omit<OtherRefusal, 'causes'> | ExplainedDecision['recorded']): string {
  const { time, caller, upstream, kind, verdict, reason, rule } = recorded;
  const text = reason !== undefined && isReason(reason) ? `  ${REASONS[reason].text}\n` : '';
  const by = rule === undefined ? '' : ` by ${rule}`;
  const head = [
    `${time}  ${caller.subject} (${caller.client})  ${upstream} ${kind} ${bothNames(recorded)}`,
    `recorded: ${verdict}${reason === undefined ? '' : `: ${reason}`}${by}`,
  ];
  const violations = 'violations' in recorded ? recorded.violations : [];
  const refused = violations.map(
    ({ pointer, keyword }) =>
      `  ${makeVisible(pointer || 'the object of arguments')} fails "${makeVisible(keyword)}"\n`,
  );
  return `${head.map((line) => `${makeVisible(line)}\n`).join('')}${text}${refused.join('')}`;
}

export function renderVerdict(now: KnownVerdict): string {
  switch (now.verdict) {
    case 'allow':
      return `allow by ${now.rule}${onceApproved(now.askers)}`;
    case 'deny':
      return `deny: ${now.reason}${now.rule === undefined ? '' : ` by ${now.rule}`}`;
    case 'unknown':
      return `not known, because the record does not give ${describeCauses(now)}`;
  }
}

/** The command `explain` with its subcommands. */
export function explainCommand(io: CliIo, ports: WorkspacePorts): Command {
  return {
    name: 'explain',
    summary: 'Show why a call is or was allowed or denied.',
    examples: [
      `sallyport explain call github/get_issue --group eng --scope github:read --args '{"owner":"acme"}'`,
      `sallyport explain call github/repo://acme/readme --as '{"subject":"ada","groups":["eng"]}'`,
      'sallyport explain decision 0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11',
    ],
    configure(command, finish) {
      const call = command.command('call').description('Explain how a call would be decided.');
      withConfigOption(call, io)
        .argument('<target>', 'UPSTREAM/TOOL, UPSTREAM/PROMPT or UPSTREAM/URI')
        .addOption(new Option('--kind <kind>', 'kind of the target').choices([...TARGET_KINDS]));
      withCallerOptions(call)
        .option('--args <json>', 'arguments of the call')
        .option('--policies <folder>', 'policies other than those that the gateway file names')
        .option('--blocks <file>', 'blocks in force, as `block list --json` prints them')
        .option('--json', 'print JSON')
        .action(async (target: string, options: Omit<ExplainCallOptions, 'target'>) =>
          finish(await runExplainCall({ ...options, target }, io, ports)),
        );
      const decision = command.command('decision').description('Explain a recorded decision under the current rules.');
      withConfigOption(decision, io)
        .argument('<id>', 'id of the decision')
        .option('--log <file...>', LOG_OPTION)
        .option('--policies <folder>', 'policies other than those that the gateway file names')
        .option('--json', 'print JSON')
        .action(async (id: string, options: Omit<ExplainDecisionOptions, 'id'>) =>
          finish(await runExplainDecision({ ...options, id }, io, ports)),
        );
    },
  };
}
