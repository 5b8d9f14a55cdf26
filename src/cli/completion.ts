// `sallyport completion`: prints a completion script for a shell, generated from the commands and options that the
// program has. The scripts run nothing but the shell's own functions. docs/reference/commands.md.

import { Argument, type Command as Commander, type Option } from 'commander';
import { type CliIo, type Command, EXIT_FINE } from './program.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

type Word = { readonly text: string; readonly about: string };

/** An option that takes a value: one of `choices`, or a file where there are none. */
type Value = { readonly flags: readonly string[]; readonly choices: readonly string[] };

/** One command by the path that names it. */
type Entry = {
  readonly path: string;
  /** Subcommands, or values of the first argument. */
  readonly candidates: readonly Word[];
  readonly flags: readonly Word[];
  readonly values: readonly Value[];
  readonly options: readonly Option[];
  /** A file may follow. */
  readonly takesFiles: boolean;
};

function entriesOf(command: Commander, before = ''): readonly Entry[] {
  const path = `${before}${command.name()}`;
  const options = command.options.filter(({ hidden }) => !hidden);
  const flags = options.flatMap((option) =>
    [option.long, option.short].flatMap((flag) => (flag == null ? [] : [{ text: flag, about: option.description }])),
  );
  const choices = command.registeredArguments[0]?.argChoices ?? [];
  const subcommands = command.commands.map((child) => ({
    text: child.name(),
    about: child.description(),
  }));
  const own: Entry = {
    path,
    options,
    candidates: [...subcommands, ...choices.map((text) => ({ text, about: '' }))],
    flags: [...flags, { text: '--help', about: 'display help for command' }],
    values: options
      .filter(({ required, optional }) => required || optional)
      .map((option) => ({
        flags: [option.long, option.short].flatMap((flag) => flag ?? []),
        choices: option.argChoices ?? [],
      })),
    takesFiles: command.registeredArguments.length > 0 && choices.length === 0,
  };
  return [own, ...command.commands.flatMap((child) => entriesOf(child, `${path} `))];
}

/** A word in single quotes, for all three shells. They share no escape for a quote, so quotes are removed. */
function quote(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '')}'`;
}

function joined(candidates: readonly Word[]): string {
  return candidates.map(({ text }) => text).join(' ');
}

/** The cases of the values of options, for bash and zsh. */
function valueCases(entries: readonly Entry[], render: (value: Value) => string): string {
  return entries
    .flatMap(({ path, values }) =>
      values.map((value) => {
        const patterns = value.flags.map((flag) => quote(`${path} ${flag}`)).join('|');
        return `    (${patterns}) ${render(value)}; return ;;\n`;
      }),
    )
    .join('');
}

function commandPatterns(entries: readonly Entry[]): string {
  return entries
    .slice(1)
    .map(({ path }) => quote(path))
    .join('|');
}

function bashScript(entries: readonly Entry[]): string {
  const reply = (candidates: string): string => `COMPREPLY=($(compgen -W ${quote(candidates)} -- "$cur"))`;
  const commands = entries.map(({ path, candidates, flags, takesFiles }) => {
    const pattern = quote(path);
    const offered = takesFiles ? ':' : reply(joined(candidates.length > 0 ? candidates : flags));
    return `    ${pattern}) if [[ $cur == -* ]]; then ${reply(joined(flags))}; else ${offered}; fi ;;\n`;
  });
  return `# Completion of sallyport for bash. To load it: source <(sallyport completion bash)
_sallyport() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at=sallyport word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
    ${commandPatterns(entries)}) at="$at $word" ;;
    esac
  done
  case "$at $prev" in
${valueCases(entries, ({ choices }) => (choices.length > 0 ? reply(choices.join(' ')) : ':'))}  esac
  case "$at" in
${commands.join('')}  esac
}
# Where nothing is offered, the shell completes names of files.
complete -o default -F _sallyport sallyport
`;
}

function zshScript(entries: readonly Entry[]): string {
  const described = (candidates: readonly Word[]): string =>
    candidates.map(({ text, about }) => quote(`${text}:${about}`)).join(' ');
  const offer = (candidates: readonly Word[]): string =>
    `offered=(${described(candidates)}); _describe sallyport offered`;
  const commands = entries.map(({ path, candidates, flags, takesFiles }) => {
    const rest = takesFiles ? '_files' : offer(candidates.length > 0 ? candidates : flags);
    return `    (${quote(path)}) if [[ $cur == -* ]]; then ${offer(flags)}; else ${rest}; fi ;;\n`;
  });
  const values = valueCases(entries, ({ choices }) =>
    choices.length > 0 ? `compadd -- ${choices.join(' ')}` : '_files',
  );
  return `#compdef sallyport
# Completion of sallyport for zsh. To load it: source <(sallyport completion zsh)
_sallyport() {
  local cur=\${words[CURRENT]} prev=\${words[CURRENT-1]} at=sallyport word
  local -a offered
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
    (${commandPatterns(entries)}) at="$at $word" ;;
    esac
  done
  case "$at $prev" in
${values}  esac
  case "$at" in
${commands.join('')}  esac
}
if [[ \${funcstack[1]} == _sallyport ]]; then _sallyport "$@"; else compdef _sallyport sallyport; fi
`;
}

function fishOption({ long, short, required, optional, argChoices, description }: Option): string {
  const names = [short && `-s ${short.slice(1)}`, long && `-l ${long.slice(2)}`];
  const value = required || optional ? ['-r'] : [];
  const values = argChoices === undefined ? [] : [`-f -a ${quote(argChoices.join(' '))}`];
  return [...names.flatMap((name) => name || []), ...value, ...values, `-d ${quote(description)}`].join(' ');
}

function fishScript(entries: readonly Entry[]): string {
  const lines = entries.flatMap(({ path, candidates, options, takesFiles }) => {
    const at = `complete -c sallyport -n ${quote(`__sallyport_at ${path}`)}`;
    const files = takesFiles ? '' : ' -f';
    const offered = candidates.map(({ text, about }) => `${at}${files} -a ${quote(text)} -d ${quote(about)}`);
    const flags = options.map((option) => `${at} ${fishOption(option)}`);
    return [...offered, ...flags];
  });
  return `# Completion of sallyport for fish. To load it: sallyport completion fish | source
function __sallyport_at
  set -l at sallyport
  set -l typed (commandline -opc)
  for word in $typed[2..-1]
    switch "$at $word"
      case ${commandPatterns(entries).replaceAll('|', ' ')}
        set at "$at $word"
    end
  end
  test "$at" = "$argv"
end
${lines.join('\n')}
`;
}

const SCRIPTS: { readonly [shell in Shell]: (entries: readonly Entry[]) => string } = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The command, which reads the program that it is part of: all commands must be loaded. */
export function completionCommand(io: CliIo): Command {
  return {
    name: 'completion',
    summary: 'Print a completion script for bash, zsh or fish.',
    examples: ['source <(sallyport completion bash)', 'sallyport completion fish | source'],
    configure(command, finish) {
      command
        .addArgument(new Argument('<shell>', 'the shell to complete in').choices(SHELLS))
        .action((shell: Shell) => {
          io.stdout(SCRIPTS[shell](entriesOf(command.parent ?? command)));
          finish(EXIT_FINE);
        });
    },
  };
}
