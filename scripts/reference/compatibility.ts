// Renders the page of what Sallyport accepts, mends, changes and refuses from the rows that the tests prove. Pure: it
// returns text, and the caller writes the file.

/** What the page shows of a row. */
type ShownRow = {
  readonly area: string;
  readonly source: string;
  readonly given: string;
  readonly verdict: 'accepts' | 'mends' | 'changes' | 'refuses';
  readonly sees: string;
};

const TITLES: readonly (readonly [string, string])[] = [
  ['servers', 'Servers'],
  ['clients', 'Clients'],
  ['messages', 'Messages'],
  ['schemas', 'Schemas'],
  ['content', 'Content of results'],
  ['definitions', 'Definitions'],
];

const VERDICTS = {
  accepts: 'accepted',
  mends: 'mended',
  changes: 'changed',
  refuses: 'refused',
} as const;

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function row({ source, given, verdict, sees }: ShownRow): string {
  return `| ${cell(given)} | ${VERDICTS[verdict]} | ${cell(sees)} | ${cell(source)} |\n`;
}

function section(rows: readonly ShownRow[], [area, title]: readonly [string, string]): string {
  const own = rows.filter((one) => one.area === area);
  if (own.length === 0) return '';
  return `\n## ${title}\n\n| what comes | | what the peer sees | source |\n|---|---|---|---|\n${own.map(row).join('')}`;
}

export function renderCompatibilityPage(rows: readonly ShownRow[]): string {
  return `# Compatibility

<!-- Rendered from test/compat/. Change a row there, then run its tests with UPDATE_REFERENCE=1. -->

What Sallyport does with real servers, clients, schemas and messages. Every row is a test that runs against a started
gateway. *Accepted* means that the bytes pass as they came, *mended* that something was repaired without a loss,
*changed* that something was taken out or made inert and is named, and *refused* that the message goes no further, with
a reason. A report of something that is missing here is welcome: it becomes a row.
${TITLES.map((title) => section(rows, title)).join('')}`;
}
