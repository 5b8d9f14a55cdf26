// Renders the page of risks and answers from the rows that `sallyport assure` shows. Pure: it returns text, and the caller
// writes the file.

import { NO_LEVEL } from '../../src/cli/assure/report.js';
import { RISK_ROWS, RISK_SOURCES, type RiskRow } from '../../src/cli/assure/risk-rows.js';

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`);
}

function codes(texts: readonly string[]): string {
  return texts.map((text) => `\`${text}\``).join(', ');
}

/** Settings of policies are described on another page than those of the gateway file. */
function settingsOf({ settings }: RiskRow): string {
  return codes(settings.map((setting) => setting.replace(/^policy: /, '')));
}

function rowText(row: RiskRow): string {
  const cells = [row.id, row.risk, row.answer, settingsOf(row), codes(row.controls), codes(row.tests), row.open];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function section(source: string, title: string): string {
  const rows = RISK_ROWS.filter((row) => row.source === source).map(rowText);
  return `## ${title}

| id | risk | answer | settings | controls | tests | not covered |
|---|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

export function renderRisksPage(): string {
  return `# Risks and answers

<!-- Rendered from src/cli/assure/risk-rows.ts. Change the source, then run the tests with UPDATE_REFERENCE=1. -->

What others have named as risks of MCP, in our words, and what answers each: the settings, the controls whose state says whether the answer is in force, the tests that attack it, and what is not covered. ${NO_LEVEL} The [threat model](../threat-model.md) says what no control of a gateway can answer.

Keys of the gateway file are in [configuration](configuration.md); \`rules\`, \`labels\`, \`flows\` and \`sensitive\` are those of [policies](policies.md). Tests are below \`test/\` of the repository, without \`.test.ts\`; a row whose test, setting or control does not exist fails the tests.

## State

\`sallyport assure\` prints these rows with the state of each control: of a running gateway where it has the token of an administrator, else as the files configure it, and it says which. See [commands](commands.md#assure).

${Object.entries(RISK_SOURCES)
  .map(([source, title]) => section(source, title))
  .join('\n')}`;
}
