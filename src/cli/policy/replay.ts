// `sallyport replay`: which recorded decisions would be others under the policies of a folder, and of whom: known
// changes, and apart from them what the record does not tell. With `--suggest`, the policy that what a group used would
// need. Reads files only; the chain is verified first, and nothing is concluded from audit files that were altered.
// docs/contract.md §1 and §8.

import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import type { AuditRecord } from '../../audit/chain.js';
import { createEventJoiner } from '../../audit/query.js';
import {
  type GroupsByToken,
  isDecision,
  noteGroups,
  type RecordedCall,
  readCall,
} from '../../audit/recorded.js';
import { type ChainVerdict, ChainVerifier } from '../../audit/verify.js';
import type { KnownVerdict } from '../../policy/explain.js';
import { parseObject } from '../../protocol/jsonrpc.js';
import { makeVisible, toVisibleJson } from '../../text/escaping.js';
import { countOf } from '../../text/wording.js';
import { numbered, readKeys, readLines } from '../audit/read.js';
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
import { type Remark, type Suggestion, suggestPolicy } from './suggest.js';
import { evaluate, openWorkspace, type Workspace, type WorkspacePorts } from './workspace.js';

type LogOptions = {
  /** Audit files, the oldest first. */
  readonly log: readonly string[];
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
async function openLog({ log, key = [] }: LogOptions, io: CliIo): Promise<VerifiedLog> {
  const files = log.map((file) => resolve(io.cwd, file));
  const groups = new Map<string, Set<string>>();
  let lastMs = 0;
  const publicKeys = await readKeys(key, io.cwd).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : 'unreadable';
    throw new UsageError(`error: ${makeVisible(why)}\n`);
  });
  const verifier = new ChainVerifier(publicKeys.length === 0 ? {} : { publicKeys });
  for (const [index, file] of files.entries()) {
    for await (const { line, number } of numbered(file)) {
      verifier.push(line, log[index] ?? file, number);
      const record = parseObject(line);
      if (record === undefined || !isDecision(record)) continue;
      noteGroups(record, groups);
      lastMs = Math.max(lastMs, Date.parse(String(record['time'])) || 0);
    }
  }
  const verdict = verifier.end();
  const [damage] = verdict.faults;
  if (damage !== undefined) throw new UsageError(damageOf(damage));
  for (const text of verdict.unchecked) io.stderr(`note: not checked: ${makeVisible(text)}\n`);
  return { groups, lastMs, decisions: () => readDecisions(files) };
}

function damageOf({ file, line, kind, message }: ChainVerdict['faults'][number]): string {
  const what = 'the audit files are damaged, so nothing is concluded from them';
  return `error: ${what}: ${makeVisible(`${file}:${line} ${kind}: ${message}`)}\n`;
}

async function* readDecisions(files: readonly string[]): AsyncGenerator<AuditRecord> {
  const join = createEventJoiner();
  for (const file of files) {
    for await (const line of readLines(file)) {
      const record = parseObject(line);
      if (record !== undefined && isDecision(record)) yield join(record, line.length).record;
    }
  }
}

/** Equal decisions of one caller about one target. */
type DecisionGroup = {
  readonly caller: RecordedCall['caller'];
  readonly upstream: string;
  readonly kind: string;
  readonly name: string;
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
  readonly unknown: Map<string, DecisionGroup>;
};

function createTally(): Tally {
  return { decisions: 0, unchanged: 0, changed: new Map(), unknown: new Map() };
}

/** Counts one decision; returns what became of it. */
function count(
  call: RecordedCall,
  now: KnownVerdict | undefined,
  tally: Tally,
): 'unchanged' | 'changed' | 'unknown' {
  tally.decisions += 1;
  if (now?.verdict === call.verdict) {
    tally.unchanged += 1;
    return 'unchanged';
  }
  const isUnknown = now === undefined || now.verdict === 'unknown';
  const groups = isUnknown ? tally.unknown : tally.changed;
  const { caller, upstream, kind, name } = call;
  const before = call.verdict === 'allow' ? `allow by ${call.rule}` : `deny: ${call.reason}`;
  const after = describe(now, call.missing);
  const key = JSON.stringify([caller, upstream, kind, name, before, after]);
  const known = groups.get(key);
  if (known === undefined)
    groups.set(key, { caller, upstream, kind, name, before, after, count: 1, example: call.id });
  else {
    known.count += 1;
    known.example = call.id;
  }
  return isUnknown ? 'unknown' : 'changed';
}

function describe(now: KnownVerdict | undefined, missing: RecordedCall['missing']): string {
  if (now === undefined) return String(missing);
  return now.verdict === 'unknown' ? now.causes.join(', ') : renderVerdict(now);
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
export function runReplay(
  options: ReplayOptions,
  io: CliIo,
  ports: WorkspacePorts,
): Promise<number> {
  return withUsage(io, async () => {
    const { group } = options;
    if (options.suggest === true && group === undefined)
      throw new UsageError('error: --suggest needs --group, the group that the rules are for\n');
    const workspace = await openWorkspace(options, io, ports);
    const log = await openLog(options, io);
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
  const tally = createTally();
  let others = 0;
  for await (const call of calls) {
    if (call === undefined) others += 1;
    else count(call, evaluate(call, workspace), tally);
  }
  const changed = sortGroups(tally.changed);
  const unknown = sortGroups(tally.unknown);
  const { decisions, unchanged } = tally;
  if (isJson) {
    const shown = { decisions, unchanged, changed, unknown, notByRules: others };
    io.stdout(`${toVisibleJson(shown)}\n`);
  } else {
    io.stdout(`${renderGroups('would change', changed)}${renderGroups('not known', unknown)}`);
  }
  const sum = (groups: readonly DecisionGroup[]): number =>
    groups.reduce((total, one) => total + one.count, 0);
  io.stderr(
    `${countOf(decisions, 'decision')}: ${unchanged} unchanged, ${sum(changed)} would change, ${sum(unknown)} not known; ${others} others are not decided by rules\n`,
  );
  return changed.length === 0 ? EXIT_FINE : EXIT_FAILED;
}

function renderGroups(title: string, groups: readonly DecisionGroup[]): string {
  return groups
    .map(({ caller, upstream, kind, name, before, after, count: times, example }) => {
      const what = `${title}: ${times} × ${caller.subject} (${caller.client}) ${upstream} ${kind} ${name}`;
      const how =
        title === 'not known' ? `${before}, now depends on: ${after}` : `${before} -> ${after}`;
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
  else io.stdout(`${text}${renderRest(suggestion)}`);
  const rules = countOf(document.rules.length, 'rule');
  io.stderr(
    `${rules} from ${countOf(all.length, 'decision')}; ${countOf(apart.length, 'target')} without a rule\n`,
  );
  return EXIT_FINE;
}

/** As comments, so that the output is a policy file. */
function renderRest({ apart, unknown, unused }: Suggestion): string {
  const remark = ({ upstream, kind, name, calls, why }: Remark): string =>
    `${upstream} ${kind} ${name} (${countOf(calls, 'call')}): ${why}`;
  const left = [
    ...apart.map((one) => `not decided here: ${remark(one)}`),
    ...unknown.map((one) => `not known: ${remark(one)}`),
  ];
  const never = unused.map(
    ({ rule, names }) => `granted by ${rule} and never used: ${names.join(', ')}`,
  );
  return [...left, ...never].map((line) => `# ${makeVisible(line)}\n`).join('');
}

function readDays(text: string): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError('Expected a number of days.');
  return Number(text);
}

/** The command `replay`. */
export function replayCommand(io: CliIo, ports: WorkspacePorts): Command {
  return {
    name: 'replay',
    summary: 'Show which recorded decisions other policies would change, or suggest rules.',
    examples: [
      'sallyport replay --policies next/ --log audit.jsonl',
      'sallyport replay --suggest --group eng --days 30 --log audit.jsonl > eng.policy.yaml',
    ],
    configure(command, finish) {
      withConfigOption(command, io)
        .requiredOption('--log <file...>', 'audit files, oldest first')
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
