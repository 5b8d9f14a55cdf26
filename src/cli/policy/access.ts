// `sallyport access`: which callers may use which tools, by the rules that grant, as text, CSV or JSON. Decided by the
// function that the gateway lists and decides by, for a caller of each group that a rule names, or for one that is
// described. Reads files only. docs/reference/commands.md#access.

import { Option } from 'commander';
import { compilePattern, isExactPattern, matchesPattern, type Pattern } from '../../policy/patterns.js';
import { toVisibleJson } from '../../text/escaping.js';
import {
  type CliIo,
  type Command,
  didYouMean,
  EXIT_FINE,
  UsageError,
  withConfigOption,
  withUsage,
} from '../program.js';
import { type AccessReport, csvText, tableText } from './access-text.js';
import {
  type CallerOptions,
  callerOf,
  type GroupCaller,
  groupCallers,
  isCallerGiven,
  toolAccess,
  withCallerOptions,
} from './callers.js';
import {
  openWorkspace,
  otherNameOf,
  principalOf,
  readCaller,
  type Workspace,
  type WorkspacePorts,
} from './workspace.js';

type AccessOptions = CallerOptions & {
  readonly config: string;
  readonly policies?: string;
  readonly tool?: readonly string[];
  readonly format: 'text' | 'csv' | 'json';
};

async function runAccess(options: AccessOptions, io: CliIo, ports: WorkspacePorts): Promise<number> {
  const { config, policies, tool = [], format } = options;
  const described = isCallerGiven(options) ? readCaller(callerOf(options)) : undefined;
  const workspace = await openWorkspace(
    { config, areModesKept: true, ...(policies === undefined ? {} : { policies }) },
    io,
    ports,
  );
  const callers: readonly GroupCaller[] =
    described === undefined ? groupCallers(workspace, ports) : [asOne(principalOf(described, workspace, ports))];
  const tools = toolsOf(workspace, tool, io).map(({ upstream, name }) => {
    const shownAs = otherNameOf(workspace.outline, upstream, 'tool', name);
    return {
      ...{ upstream, tool: name, ...(shownAs === undefined ? {} : { shownAs }) },
      access: callers.map((caller) => toolAccess(upstream, name, caller, workspace, ports)),
    };
  });
  const report: AccessReport = {
    callers: callers.map(({ issuer, group }) => ({ issuer, ...(group === undefined ? {} : { group }) })),
    isOne: described !== undefined,
    tools,
  };
  if (format === 'json') io.stdout(`${toVisibleJson(jsonOf(report))}\n`);
  else io.stdout(format === 'csv' ? csvText(report) : tableText(report));
  if (described === undefined) noteGroupsInExpressions(workspace, io);
  return EXIT_FINE;
}

function asOne(principal: GroupCaller['principal']): GroupCaller {
  return { issuer: principal.issuer, principal, isAnyone: false };
}

function jsonOf({ callers, tools }: AccessReport): object {
  return {
    tools: tools.map(({ access, ...tool }) => ({
      ...tool,
      callers: access.map((one, index) => ({ ...callers[index], ...one })),
    })),
  };
}

type NamedTool = { readonly upstream: string; readonly name: string };

/** The tools that are asked about, sorted. */
function toolsOf(workspace: Workspace, asked: readonly string[], io: CliIo): readonly NamedTool[] {
  const all = workspace.outline.upstreams.flatMap(({ name }) => knownTools(name, workspace, io));
  const chosen = asked.length === 0 ? all : asked.flatMap((text) => toolsMatching(text, all, workspace));
  const byName = new Map(chosen.map((tool) => [`${tool.upstream}/${tool.name}`, tool]));
  return [...byName.values()].sort((a, b) => compare(a.upstream, b.upstream) || compare(a.name, b.name));
}

/** Those of the lock file; where nothing has to be pinned, also those that rules name. */
function knownTools(upstream: string, { catalogOf, written }: Workspace, io: CliIo): readonly NamedTool[] {
  const catalog = catalogOf(upstream);
  const pinned = catalog.names('tool');
  if (catalog.mode !== 'off') return pinned.map((name) => ({ upstream, name }));
  io.stderr(`note: the tools of ${upstream} need no pin: only those are shown that its lock file or a rule names\n`);
  const named = [...written.values()].flatMap(({ rule: { what } }) => {
    const isHere = (what.upstreams ?? ['*']).some((text) => matchesPattern(patternOf(text, text), upstream));
    return isHere ? (what.tools ?? []).filter(isExactPattern) : [];
  });
  return [...new Set([...pinned, ...named])].map((name) => ({ upstream, name }));
}

/** `UPSTREAM/TOOL` or `TOOL` at every upstream, with the patterns of rules. */
function toolsMatching(text: string, all: readonly NamedTool[], { outline }: Workspace): readonly NamedTool[] {
  const slash = text.startsWith('re:') ? -1 : text.indexOf('/');
  const [at, of] = slash < 0 ? ['*', text] : [text.slice(0, slash), text.slice(slash + 1)];
  const known = outline.upstreams.map(({ name }) => name);
  if (isExactPattern(at) && !known.includes(at))
    throw new UsageError(`error: --tool ${text}: no upstream is named "${at}"${didYouMean(at, known)}\n`);
  const [upstream, name] = [patternOf(at, text), patternOf(of, text)];
  const found = all.filter((tool) => matchesPattern(upstream, tool.upstream) && matchesPattern(name, tool.name));
  if (found.length > 0) return found;
  const names = all.map((tool) => (slash < 0 ? tool.name : `${tool.upstream}/${tool.name}`));
  throw new UsageError(`error: --tool ${text}: there is no such tool${didYouMean(text, names)}\n`);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function patternOf(pattern: string, text: string): Pattern {
  const compiled = compilePattern(pattern, 'name');
  if (!compiled.ok) throw new UsageError(`error: --tool ${text}: ${compiled.why}\n`);
  return compiled.pattern;
}

/** What a caller who is in one group alone cannot show. */
function noteGroupsInExpressions({ written }: Workspace, io: CliIo): void {
  const reading = [...written].flatMap(([id, { rule }]) => (/\bprincipal\.groups\b/.test(rule.when ?? '') ? [id] : []));
  if (reading.length > 0)
    io.stderr(`note: the groups that ${reading.join(', ')} may read in "when" are no columns; ask with --as\n`);
}

export function accessCommand(io: CliIo, ports: WorkspacePorts): Command {
  return {
    name: 'access',
    summary: 'Show which groups may use which tools, with the rule that grants.',
    examples: [
      'sallyport access',
      `sallyport access --as '{"groups":["eng"],"scopes":["github:read"]}' --tool 'github/*'`,
      'sallyport access --tool "delete_*" --format csv > access.csv',
    ],
    configure(command, finish) {
      withCallerOptions(withConfigOption(command, io))
        .option('--tool <tool...>', 'only these: UPSTREAM/TOOL or TOOL, with the patterns of rules')
        .option('--policies <folder>', 'policies other than those that the gateway file names')
        .addOption(new Option('--format <format>', 'output format').choices(['text', 'csv', 'json']).default('text'))
        .action(async (options: AccessOptions) => finish(await withUsage(io, () => runAccess(options, io, ports))));
    },
  };
}
