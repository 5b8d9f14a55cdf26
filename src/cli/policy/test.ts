// `sallyport test`: runs the policy tests of a folder, and reports failed cases and the rules that no case has
// exercised: as text, JUnit XML or JSON. Reads files only. docs/contract.md §1 and §4 (tests).

import { relative, resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { hasErrors, renderDiagnostics } from '../../config/diagnostics.js';
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
import { readPolicyTests } from './test-files.js';
import { type CaseResult, type Coverage, runPolicyTests, type TestRun } from './test-run.js';
import { openWorkspace, principalOf, type WorkspacePorts } from './workspace.js';

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
    if (hasErrors(diagnostics))
      throw new UsageError(renderDiagnostics(diagnostics, 'text', io.cwd));
    const run = runPolicyTests(tests, workspace, (file, name) => {
      const caller = file.principals[name];
      if (caller === undefined) throw new UsageError(`error: no principal is named "${name}"\n`);
      return principalOf(caller, workspace, ports);
    });
    const named: TestRun = {
      ...run,
      results: run.results.map((one) => ({ ...one, file: relative(io.cwd, one.file) || one.file })),
    };
    io.stdout(render(named, options.format ?? 'text'));
    const failed = run.results.filter(({ failures }) => failures.length > 0).length;
    const isCovered = run.coverage.percent >= (options.minCoverage ?? 0);
    const counts = `${countOf(run.results.length, 'case')}, ${failed} failed, ${describe(run.coverage)}`;
    io.stderr(`${counts}${isCovered ? '' : `; at least ${options.minCoverage} % are demanded`}\n`);
    return failed === 0 && isCovered ? EXIT_FINE : EXIT_FAILED;
  });
}

/** `7 of 9 rules decisive (77 %)`; rounded down, so that 100 % means all. */
function describe({ decisive, never, percent }: Coverage): string {
  const all = decisive.length + never.length;
  return `${decisive.length} of ${countOf(all, 'rule')} decisive (${Math.floor(percent)} %)`;
}

function render(run: TestRun, format: (typeof FORMATS)[number]): string {
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

function readPercent(text: string): number {
  const percent = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (!(percent <= 100)) throw new InvalidArgumentError('Expected a percentage from 0 to 100.');
  return percent;
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
        .option(
          '--min-coverage <percent>',
          'fail if a smaller share of the rules decides a case',
          readPercent,
        )
        .addOption(
          new Option('--format <format>', 'output format').choices([...FORMATS]).default('text'),
        )
        .action(async (folder: string, options: Omit<TestOptions, 'folder'>) =>
          finish(await runTest({ ...options, folder }, io, ports)),
        );
    },
  };
}
