// The recorded outcome of every check of the suite, directly and through the gateway, and how a run differs
// from it. Pure. A check that was not made is recorded as `none`, so that one that vanishes is a difference.

/** The outcomes of the checks of a scenario, by check id: how often each status was reported. */
export type CheckOutcomes = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Every scenario of one run. */
export type RunOutcomes = ReadonlyMap<string, CheckOutcomes>;

/** One revision as it is written to the file: scenario, check, then the outcome on each way. */
export type RecordedRevision = {
  readonly [scenario: string]: {
    readonly [check: string]: { readonly direct: string; readonly gateway: string };
  };
};

/** The whole file, by revision. */
export type RecordedOutcomes = { readonly [revision: string]: RecordedRevision };

/** What the suite notes of the wire as it goes; how often depends on how a body is cut on the way. */
const NOTE = 'INFO';

function sortedUnion(one: Iterable<string>, other: Iterable<string>): readonly string[] {
  return [...new Set([...one, ...other])].sort();
}

function outcomeText(statuses: ReadonlyMap<string, number> | undefined): string {
  if (statuses === undefined) return 'none';
  return [...statuses]
    .map(([status, count]) => (status === NOTE ? status : `${count} ${status}`))
    .sort()
    .join(', ');
}

/** What two runs of one revision look like in the file. */
export function recordRevision(direct: RunOutcomes, gateway: RunOutcomes): RecordedRevision {
  const recordScenario = (scenario: string) => {
    const here = direct.get(scenario) ?? new Map();
    const there = gateway.get(scenario) ?? new Map();
    const checks = sortedUnion(here.keys(), there.keys()).map(
      (id) => [id, { direct: outcomeText(here.get(id)), gateway: outcomeText(there.get(id)) }] as const,
    );
    return [scenario, Object.fromEntries(checks)] as const;
  };
  return Object.fromEntries(sortedUnion(direct.keys(), gateway.keys()).map(recordScenario));
}

/** What differs from the record, in sentences of one line; none where nothing does. */
export function findDifferences(expected: RecordedRevision, seen: RecordedRevision): readonly string[] {
  return sortedUnion(Object.keys(expected), Object.keys(seen)).flatMap((scenario) => {
    const [before, now] = [expected[scenario], seen[scenario]];
    if (before === undefined) return [`${scenario}: not recorded`];
    if (now === undefined) return [`${scenario}: recorded, and not run`];
    return sortedUnion(Object.keys(before), Object.keys(now)).flatMap((check) => {
      const [was, is] = [before[check], now[check]];
      if (was?.direct === is?.direct && was?.gateway === is?.gateway) return [];
      return [`${scenario}: ${check}: expected ${wayText(was)}, seen ${wayText(is)}`];
    });
  });
}

function wayText(outcome: { readonly direct: string; readonly gateway: string } | undefined): string {
  if (outcome === undefined) return 'no such check';
  return `${outcome.direct} directly and ${outcome.gateway} through Sallyport`;
}

/** The text of the file: one check a line, so that a change is a change of one line. */
export function renderOutcomes(outcomes: RecordedOutcomes): string {
  const block = (entries: readonly string[], indent: string): string =>
    entries.length === 0 ? '{}' : `{\n${entries.map((one) => `${indent}  ${one}`).join(',\n')}\n${indent}}`;
  const revisions = Object.entries(outcomes).map(([revision, scenarios]) => {
    const rows = Object.entries(scenarios).map(([scenario, checks]) => {
      const lines = Object.entries(checks).map(
        ([check, outcome]) => `${JSON.stringify(check)}: ${JSON.stringify(outcome)}`,
      );
      return `${JSON.stringify(scenario)}: ${block(lines, '    ')}`;
    });
    return `${JSON.stringify(revision)}: ${block(rows, '  ')}`;
  });
  return `${block(revisions, '')}\n`;
}
