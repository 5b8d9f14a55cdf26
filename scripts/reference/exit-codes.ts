// Renders the page of exit codes from the table that the help of the commands prints. Pure: it returns text, and the
// caller writes the file.

import { EXIT_CODES, exitCodesOf } from '../../src/cli/program.js';

/** What every command keeps to. */
const GENERAL_EXIT_CODES = {
  ...Object.fromEntries(exitCodesOf('')),
  1: 'The check found errors, or the operation was refused.',
  129: 'Ended because the terminal was closed (SIGHUP).',
  130: 'Ended by SIGINT (Ctrl-C).',
  141: 'The reader of the output closed it (SIGPIPE).',
  143: 'Ended by SIGTERM.',
};

function rows(codes: object, before = ''): string {
  return Object.entries(codes)
    .map(([code, meaning]) => `| ${before}${code} | ${meaning} |\n`)
    .join('');
}

/** The rows of the commands. Subcommands of one command that share their codes are one entry: `block tool`, `prompt`. */
function commandRows(): readonly string[] {
  const entries = new Map<string, { readonly names: string[]; readonly codes: object }>();
  for (const [command, codes] of Object.entries(EXIT_CODES)) {
    const [first, last = ''] = command.split(' ');
    const key = JSON.stringify([first, codes]);
    const known = entries.get(key);
    if (known === undefined) entries.set(key, { names: [`\`${command}\``], codes });
    else known.names.push(`\`${last}\``);
  }
  return [...entries.values()].map(({ names, codes }) => rows(codes, `${names.join(', ')} | `));
}

export function renderExitCodesPage(): string {
  return `# Exit codes

<!-- Rendered from src/cli/program.ts. Change the source, then run the tests with UPDATE_REFERENCE=1. -->

Every command keeps to these codes, so a script can tell a failed check (1) from one that could not be made (2):

| Code | Meaning |
|---|---|
${rows(GENERAL_EXIT_CODES)}
A usage error is 2 for every command. The other codes are more specific for some commands; \`sallyport COMMAND --help\`
prints them too:

| Command | Code | Meaning |
|---|---|---|
${commandRows().join('')}
In CI, \`sallyport validate --strict\` and \`sallyport pin verify\` are checks: treat 1 as a finding, and 2 as a job to
repeat or repair. The container's health check treats every code but 0 as unhealthy.

## Shell completion

\`source <(sallyport completion bash)\` completes commands, options and their values in bash; put the line into
\`~/.bashrc\` to keep it. For zsh it is \`source <(sallyport completion zsh)\` after \`compinit\`, for fish
\`sallyport completion fish | source\`.
`;
}
