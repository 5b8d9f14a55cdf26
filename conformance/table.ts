// Writes the page of results. Pure, and the same for the same results: no times, no machine.

import { countPassed, lostChecks, type NotCarried, type Run } from './scores.ts';

/** What was measured at one revision, on all three ways. */
export type Results = {
  readonly revision: string;
  /** Scenarios that the suite scores at this revision; the others it only reports. */
  readonly scored: ReadonlySet<string>;
  readonly direct: Run;
  readonly passThrough: Run;
  readonly gateway: Run;
};

const HEAD = `# Conformance

The official suite, \`@modelcontextprotocol/conformance\`, runs against a server of our own on SDK v2
([conformance/fixture](../../conformance/fixture)): directly, through a pass-through that looks at
nothing, and through Sallyport with policy, pins, inspection and audit armed. The numbers are checks that
passed. \`npm run conformance\` measures them again and fails when a check is lost on the way through
Sallyport that is not listed as not carried, or when a listed one is not lost any more.

This page is generated: \`UPDATE_REFERENCE=1 npm run conformance\`.
`;

/** The page of all results. */
export function renderTable(all: readonly Results[], notCarried: { readonly [revision: string]: NotCarried }): string {
  const parts = all.map((results) => renderRevision(results, notCarried[results.revision] ?? {}));
  return [HEAD, ...parts].join('\n');
}

function renderRevision(results: Results, notCarried: NotCarried): string {
  const names = [...results.direct.keys()].sort();
  const scored = names.filter((name) => results.scored.has(name));
  const others = names.filter((name) => !results.scored.has(name));
  const lines = [
    `## ${results.revision}`,
    '',
    '| scenario | direct | pass-through | Sallyport |',
    '|---|---|---|---|',
    ...scored.map((name) => row(results, name, name)),
    ...others.map((name) => row(results, name, `${name} (reported, not scored)`)),
    row(results, undefined, '**all**'),
    '',
    ...renderNotCarried(notCarried),
  ];
  return lines.join('\n');
}

function row(results: Results, name: string | undefined, label: string): string {
  const cells = [results.direct, results.passThrough, results.gateway].map((run) => count(run, name));
  return `| ${label} | ${cells.join(' | ')} |`;
}

function count(run: Run, name: string | undefined): number {
  const scenarios = name === undefined ? [...run.values()] : [run.get(name)];
  return scenarios.reduce((sum, passed) => sum + countPassed(passed), 0);
}

function renderNotCarried(notCarried: NotCarried): readonly string[] {
  const entries = Object.entries(notCarried).sort(([one], [other]) => (one < other ? -1 : 1));
  if (entries.length === 0) return ['Every check is carried.', ''];
  const rows = entries.map(
    ([scenario, { reason, checks }]) => `| ${scenario} | ${checks.map((id) => `\`${id}\``).join(', ')} | ${reason} |`,
  );
  return ['Not carried:', '', '| scenario | checks | why |', '|---|---|---|', ...rows, ''];
}

/** What of a run is lost, as text for the list of what is not carried. */
export function suggestList(direct: Run, through: Run): NotCarried {
  const lost = [...direct]
    .map(([name, passed]) => [name, lostChecks(passed, through.get(name))] as const)
    .filter(([, checks]) => checks.length > 0);
  return Object.fromEntries(lost.map(([name, checks]) => [name, { reason: '', checks }]));
}
