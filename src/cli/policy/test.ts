// `sallyport test`: reads the policy tests of a folder, with the place of every mistake in them, runs them with `decide`,
// and reports failed cases and the rules that no case has exercised: as text, JUnit XML or JSON. Reads files only.
// docs/reference/commands.md#test-explain-and-replay; docs/reference/policies.md#policy-tests.

import { join, relative, resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  hasErrors,
  type PathDiagnostic,
  renderDiagnostics,
  sortDiagnostics,
} from '../../config/diagnostics.js';
import type { Files } from '../../config/files.js';
import { POLICY_TEST_SCHEMA, type PolicyTestCase, type PolicyTestFile } from '../../config/schema/policy.js';
import { locateDiagnostic, readDocument } from '../../config/schema/validation.js';
import { decideRequest, isListed } from '../../policy/decide.js';
import { approvalOf, type Decision } from '../../policy/decision.js';
import { type CallFacts, explainRules } from '../../policy/explain.js';
import type { Principal } from '../../policy/principal.js';
import { REASONS } from '../../policy/reasons.js';
import { canHide } from '../../policy/rules.js';
import type { Target } from '../../protocol/jsonrpc.js';
import { makeVisible, toVisibleJson } from '../../text/escaping.js';
import { countOf, describeReadError, nearestCandidate } from '../../text/wording.js';
import type { Locate } from '../../text/yaml.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  UsageError,
  withConfigOption,
  withUsage,
} from '../program.js';
import {
  describeGiven,
  openWorkspace,
  otherNameOf,
  principalOf,
  readGiven,
  readTarget,
  type Workspace,
  type WorkspacePorts,
} from './workspace.js';

const FORMATS = ['text', 'junit', 'json'] as const;

export type TestOptions = {
  readonly folder: string;
  readonly config: string;
  readonly policies?: string;
  readonly format?: (typeof FORMATS)[number];
  /** In percent of the rules. */
  readonly minCoverage?: number;
};

/** Runs the tests of a folder. Exit 1 if a case failed or fewer rules were exercised than demanded. */
export function runTest(options: TestOptions, io: CliIo, ports: WorkspacePorts): Promise<number> {
  return withUsage(io, async () => {
    const workspace = await openWorkspace(options, io, ports);
    const folder = resolve(io.cwd, options.folder);
    const { tests, diagnostics } = readPolicyTests(folder, ports.files, workspace);
    if (hasErrors(diagnostics)) throw new UsageError(renderDiagnostics(diagnostics, 'text', io.cwd));
    const run = runPolicyTests(tests, workspace, (file, name) => {
      const caller = file.principals[name];
      if (caller === undefined) throw new UsageError(`error: no principal is named "${name}"\n`);
      return principalOf(caller, workspace, ports);
    });
    const named: TestRun = {
      ...run,
      results: run.results.map((one) => ({ ...one, file: relative(io.cwd, one.file) || one.file })),
    };
    io.stdout(renderRun(named, options.format ?? 'text'));
    const failed = run.results.filter(({ failures }) => failures.length > 0).length;
    const isCovered = run.coverage.percent >= (options.minCoverage ?? 0);
    const counts = `${countOf(run.results.length, 'case')}, ${failed} failed, ${describeCoverage(run.coverage)}`;
    io.stderr(`${counts}${isCovered ? '' : `; at least ${options.minCoverage} % are demanded`}\n`);
    return failed === 0 && isCovered ? EXIT_FINE : EXIT_FAILED;
  });
}

/** The command `test`. */
export function testCommand(io: CliIo, ports: WorkspacePorts): Command {
  return {
    name: 'test',
    summary: 'Run policy tests (*.policy.test.yaml), and list the rules that decide no case.',
    examples: [
      'sallyport test policies -c config/gateway.yaml',
      'sallyport test policies --min-coverage 100 --format junit > policies.xml',
    ],
    configure(command, finish) {
      withConfigOption(command, io)
        .argument('<folder>', 'folder of the tests')
        .option('--policies <folder>', 'policies other than those that the gateway file names')
        .option('--min-coverage <percent>', 'fail if a smaller share of the rules decides a case', readPercent)
        .addOption(new Option('--format <format>', 'output format').choices([...FORMATS]).default('text'))
        .action(async (folder: string, options: Omit<TestOptions, 'folder'>) =>
          finish(await runTest({ ...options, folder }, io, ports)),
        );
    },
  };
}

function readPercent(text: string): number {
  const percent = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(percent <= 100)) throw new InvalidArgumentError('Expected a percentage from 0 to 100.');
  return percent;
}

const TEST_SUFFIX = '.policy.test.yaml';

type PolicyTests = {
  readonly file: string;
  readonly principals: PolicyTestFile['principals'];
  readonly cases: readonly PolicyTestCase[];
  readonly locate: Locate;
};

/** What a case asks for. */
const QUESTIONS = ['call', 'get', 'read', 'list'] as const;

function readPolicyTests(
  folder: string,
  files: Files,
  workspace: Workspace,
): { readonly tests: readonly PolicyTests[]; readonly diagnostics: readonly Diagnostic[] } {
  let names: readonly string[];
  try {
    names = files.listFolder(folder);
  } catch (error) {
    const message = `the folder of the tests ${describeReadError(error)}`;
    return { tests: [], diagnostics: [fileDiagnostic(folder, 'unreadable', message)] };
  }
  const found = names.filter((name) => name.endsWith(TEST_SUFFIX) && !name.startsWith('.')).sort();
  if (found.length === 0) {
    const message = `the folder has no file whose name ends in ${TEST_SUFFIX}`;
    return { tests: [], diagnostics: [fileDiagnostic(folder, 'policy', message)] };
  }
  const read = found.map((name) => readTestFile(join(folder, name), files, workspace));
  return {
    tests: read.flatMap(({ tests }) => tests ?? []),
    diagnostics: sortDiagnostics(read.flatMap(({ diagnostics }) => diagnostics)),
  };
}

type TestFileReading = {
  readonly tests?: PolicyTests;
  readonly diagnostics: readonly Diagnostic[];
};

function readTestFile(file: string, files: Files, workspace: Workspace): TestFileReading {
  let bytes: Uint8Array;
  try {
    bytes = files.readFile(file);
  } catch (error) {
    const message = `the file ${describeReadError(error)}`;
    return { diagnostics: [fileDiagnostic(file, 'unreadable', message)] };
  }
  const document = readDocument(POLICY_TEST_SCHEMA, file, bytes);
  if (!document.ok) return document;
  const { locate } = document;
  const place = (one: PathDiagnostic) => locateDiagnostic(file, locate, one);
  const { principals, cases } = document.value;
  const wrong = [
    ...checkPrincipals(principals, workspace),
    ...cases.flatMap((one, index) => checkCase(one, ['cases', index], principals, workspace)),
  ];
  return { tests: { file, principals, cases, locate }, diagnostics: wrong.map(place) };
}

function wrongValue(path: FilePath, message: string, suggestion?: string): PathDiagnostic {
  return { path, at: 'value', severity: 'error', rule: 'wrong-value', message, suggestion };
}

function unknownName(path: FilePath, what: string, name: string, known: readonly string[]): readonly PathDiagnostic[] {
  if (known.includes(name)) return [];
  const suggestion = nearestCandidate(name, known);
  const choice = suggestion === undefined && known.length > 0 ? `; known: ${known.join(', ')}` : '';
  return [wrongValue(path, `no ${what} is named "${name}"${choice}`, suggestion)];
}

function checkPrincipals(
  principals: PolicyTestFile['principals'],
  { outline: { issuers } }: Workspace,
): readonly PathDiagnostic[] {
  return Object.entries(principals).flatMap(([name, { issuer }]) => {
    if (issuer !== undefined) return unknownName(['principals', name, 'issuer'], 'issuer', issuer, issuers);
    if (issuers.length < 2) return [];
    const message = `name the issuer of this caller: ${issuers.join(', ')}`;
    return [wrongValue(['principals', name], message)];
  });
}

function checkCase(
  one: PolicyTestCase,
  path: FilePath,
  principals: PolicyTestFile['principals'],
  { outline, written }: Workspace,
): readonly PathDiagnostic[] {
  const asked = QUESTIONS.filter((key) => one[key] !== undefined);
  const [question] = asked;
  if (question === undefined || asked.length > 1)
    return [wrongValue(path, `a case has exactly one of ${QUESTIONS.join(', ')}`)];
  const at = [...path, question];
  const upstream = one[question]?.split('/', 1)[0] ?? '';
  const upstreams = outline.upstreams.map(({ name }) => name);
  return [
    ...unknownName([...path, 'as'], 'principal', one.as, Object.keys(principals)),
    ...unknownName(at, 'upstream', upstream, upstreams),
    ...(one.rule === undefined || one.rule.startsWith('builtin/')
      ? []
      : unknownName([...path, 'rule'], 'rule', one.rule, [...written.keys()])),
    ...(one.reason === undefined ? [] : unknownName([...path, 'reason'], 'reason', one.reason, Object.keys(REASONS))),
    ...checkExpectation(one, path, question),
  ];
}

function checkExpectation(
  one: PolicyTestCase,
  path: FilePath,
  question: (typeof QUESTIONS)[number],
): readonly PathDiagnostic[] {
  const { items, contains, lacks, expect, reason, rule, limits } = one;
  const ofList = { items, contains, lacks };
  const ofCall = { expect, reason, rule, limits };
  const [own, others] = question === 'list' ? [ofList, ofCall] : [ofCall, ofList];
  const misplaced = Object.entries(others).flatMap(([key, value]) =>
    value === undefined ? [] : [wrongValue([...path, key], `"${key}" is not possible in a case with "${question}"`)],
  );
  const isEmpty = question === 'list' ? Object.values(own).every((value) => value === undefined) : expect === undefined;
  const needed = question === 'list' ? '"items", "contains" or "lacks"' : '"expect"';
  return [
    ...misplaced,
    ...(isEmpty ? [wrongValue(path, `this case expects nothing; add ${needed}`)] : []),
    ...(expect !== undefined && expect !== 'deny' && reason !== undefined
      ? [wrongValue([...path, 'reason'], 'only a refusal has a reason')]
      : []),
  ];
}

type CaseResult = {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly name: string;
  /** Why it failed, one sentence each; empty if it passed. */
  readonly failures: readonly string[];
};

type Coverage = {
  /** Rules that decided a case, or added an obligation to one that was allowed. */
  readonly decisive: readonly string[];
  readonly never: readonly string[];
  /** Rules about server requests and tasks alone, which no case asks about. They do not count. */
  readonly withoutCases: readonly string[];
  /** Share of decisive rules, in percent. */
  readonly percent: number;
};

type TestRun = { readonly results: readonly CaseResult[]; readonly coverage: Coverage };

/** What a case can ask about. */
const TESTABLE = ['tools', 'prompts', 'resources', 'templates'] as const;

function runPolicyTests(
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

const REQUESTED_KINDS = { call: 'tool', get: 'prompt', read: 'resource' } as const;

function questionOf({ call, get }: PolicyTestCase): keyof typeof REQUESTED_KINDS {
  if (call !== undefined) return 'call';
  return get === undefined ? 'read' : 'get';
}

type Outcome = {
  readonly verdict: Decision['verdict'] | 'approve';
  readonly reason?: string;
  readonly rule?: string;
  /** Of `approve`: all rules that ask. */
  readonly askers?: readonly string[];
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
  const { upstream, target } = readTarget(one[question] ?? '', REQUESTED_KINDS[question], workspace);
  const catalog = workspace.catalogOf(upstream, target);
  const given = readGiven(['the value of args', JSON.stringify(one.args)], upstream, target, workspace);
  const { args } = given;
  const { findings } = one;
  const decision = decideRequest(policies, { principal, upstream, target, catalog, args, findings });
  const outcome = outcomeOf(decision, one.limits === 'exhausted');
  const involved = [`${decision.policy}/${decision.rule}`, outcome.rule ?? ''];
  if (decision.verdict === 'allow') {
    const facts = { principal, upstream, target, catalog, findings, args: { all: args } };
    const binding = explainRules(policies, written, facts).filter(
      ({ effect, state }) => effect === 'require' && state === 'holds',
    );
    involved.push(...binding.map(({ id }) => id));
  }
  for (const rule of involved) if (written.has(rule)) decisive.add(rule);
  const done = describeGiven(given).join(', ');
  const name = 'name' in target ? target.name : '';
  const shownAs = otherNameOf(workspace.outline, upstream, target.kind, name);
  const known = shownAs === undefined ? '' : `; clients know the tool as ${shownAs}`;
  return compareOutcome(one, outcome).map((failure) => failure + (done && `; arguments: ${done}`) + known);
}

function outcomeOf(decision: Decision, areLimitsExhausted: boolean): Outcome {
  const named = decision.policy === undefined ? {} : { rule: `${decision.policy}/${decision.rule}` };
  if (decision.verdict === 'deny') {
    const { verdict, reason, advice } = decision;
    return { verdict, reason, ...named, advice };
  }
  const { requirements = [], beyond = [] } = approvalOf(decision) ?? {};
  const askers = [...requirements, ...(areLimitsExhausted ? beyond.map(({ requirement }) => requirement) : [])].map(
    (one) => one.rule,
  );
  if (askers[0] !== undefined) return { verdict: 'approve', rule: askers[0], askers };
  const rated = decision.obligations.find(({ kind }) => kind === 'rate');
  if (!areLimitsExhausted || rated?.kind !== 'rate') return { verdict: 'allow', ...named };
  return { verdict: 'deny', reason: 'rate-limited', rule: rated.limit.rule };
}

/** What is not as expected; the reason and the rule only where the verdict is. */
function compareOutcome(one: PolicyTestCase, outcome: Outcome): readonly string[] {
  const { verdict, reason, rule, advice, askers } = outcome;
  const by = rule === undefined ? '' : ` by ${(askers ?? [rule]).join(', ')}`;
  const why = advice === undefined ? '' : ` (${advice})`;
  const decided = verdict === 'deny' ? `deny: ${reason}${by}${why}` : `${verdict}${by}`;
  if (one.expect !== verdict) return [`expected ${one.expect}, decided ${decided}`];
  const isOneOf = one.rule !== undefined && askers?.includes(one.rule) === true;
  const wrong = (['reason', 'rule'] as const).filter(
    (key) => one[key] !== undefined && one[key] !== outcome[key] && !(key === 'rule' && isOneOf),
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
  const targetOf = (name: string): Target => (kind === 'template' ? { kind, uriTemplate: name } : { kind, name });
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

/** Lists depend on caller and item alone: an allow rule shows an item, a deny rule without other conditions hides it. */
function noteListing(
  facts: CallFacts,
  isShown: boolean,
  { policies, written }: Workspace,
  decisive: Set<string>,
): void {
  for (const { id, effect, who, what, basis } of explainRules(policies, written, facts)) {
    const isHiding = canHide(basis.rule) && (who === 'holds' || who === 'error');
    const isShowing = isShown && effect === 'allow' && who === 'holds';
    if ((isHiding || isShowing) && what === 'holds') decisive.add(id);
  }
}

/** `7 of 9 rules decisive (77 %)`; rounded down, so that 100 % means all. */
function describeCoverage({ decisive, never, percent }: Coverage): string {
  const all = decisive.length + never.length;
  return `${decisive.length} of ${countOf(all, 'rule')} decisive (${Math.floor(percent)} %)`;
}

function renderRun(run: TestRun, format: (typeof FORMATS)[number]): string {
  switch (format) {
    case 'json':
      return `${toVisibleJson(run)}\n`;
    case 'junit':
      return renderJunit(run.results);
    case 'text':
      return renderText(run);
  }
}

function renderText({ results, coverage }: TestRun): string {
  const cases = results
    .filter(({ failures }) => failures.length > 0)
    .flatMap(({ file, line, column, name, failures }) =>
      failures.map((failure) => `${file}:${line}:${column} failed ${name}: ${failure}`),
    );
  const never = coverage.never.map((rule) => `no case is decided by ${rule}`);
  const others = coverage.withoutCases.map(
    (rule) => `not counted: ${rule} names only server requests or tasks, which have no cases`,
  );
  return [...cases, ...never, ...others].map((text) => `${makeVisible(text)}\n`).join('');
}

const MARKUP: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** XML 1.0 has no form for control characters, so they are made visible first. */
function quoteXml(text: string): string {
  return makeVisible(text).replace(/[&<>"]/g, (mark) => MARKUP[mark] ?? '');
}

function renderJunit(results: readonly CaseResult[]): string {
  const files = [...new Set(results.map(({ file }) => file))];
  const suites = files.map((file) => {
    const own = results.filter((one) => one.file === file);
    const failed = own.filter(({ failures }) => failures.length > 0).length;
    return `  <testsuite name="${quoteXml(file)}" tests="${own.length}" failures="${failed}">\n${own.map(renderCase).join('')}  </testsuite>\n`;
  });
  const failed = results.filter(({ failures }) => failures.length > 0).length;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="sallyport" tests="${results.length}" failures="${failed}">\n${suites.join('')}</testsuites>\n`;
}

function renderCase({ file, line, name, failures }: CaseResult): string {
  const head = `    <testcase name="${quoteXml(name)}" classname="${quoteXml(file)}" file="${quoteXml(file)}" line="${line}"`;
  const [first] = failures;
  if (first === undefined) return `${head}/>\n`;
  const text = quoteXml(failures.join('; '));
  return `${head}>\n      <failure message="${text}">${text}</failure>\n    </testcase>\n`;
}
