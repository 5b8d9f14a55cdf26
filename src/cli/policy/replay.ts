// `sallyport replay`: which recorded decisions would be others under the policies of a folder, and of whom; with
// `--suggest`, the policy that what a group used would need. Reads files only, and trusts no audit file that was
// altered. docs/contract.md §1.

import { InvalidArgumentError } from 'commander';
import { type RecordedCall, readCall } from '../../audit/recorded.js';
import { countOf } from '../../text/counting.js';
import { makeVisible, toVisibleJson } from '../../text/escaping.js';
import { withConfigOption } from '../config-file.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  UsageError,
  withUsage,
} from '../program.js';
import { type LogOptions, openLog, type VerifiedLog } from './log.js';
import { count, createTally, type DecisionGroup, evaluate, sortGroups } from './replay-tally.js';
import { type Remark, type Suggestion, suggestPolicy } from './suggest.js';
import { openWorkspace, type Workspace, type WorkspacePorts } from './workspace.js';

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
