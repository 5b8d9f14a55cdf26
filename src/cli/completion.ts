// `sallyport completion`: prints a completion script for a shell, a table of what may follow each word of a command
// line, made from commander's tree. The scripts run nothing but the shell's own functions. docs/reference/commands.md.

import { Argument, type Command as Commander, type Option } from 'commander';
import { type CliIo, type Command, EXIT_FINE } from './program.js';

/** What may follow `key`: a command, a command and `-`, or a command and an option. No candidates mean that a file follows. */
type Row = { readonly key: string; readonly candidates: readonly { readonly text: string; readonly about: string }[] };

const flagsOf = ({ long, short }: Option): readonly string[] => [long ?? [], short ?? []].flat();
const plain = (texts: readonly string[] = []): Row['candidates'] => texts.map((text) => ({ text, about: '' }));

function rowsOf(command: Commander, path: string): readonly Row[] {
  const options = command.createHelp().visibleOptions(command);
  const flags = options.flatMap((one) => flagsOf(one).map((text) => ({ text, about: one.description })));
  const values = options
    .filter(({ required, optional }) => required || optional)
    .flatMap((one) => flagsOf(one).map((flag) => ({ key: `${path} ${flag}`, candidates: plain(one.argChoices) })));
  const commands = command.commands.map((one) => ({ text: one.name(), about: one.description() }));
  const [argument] = command.registeredArguments;
  const candidates =
    argument === undefined && commands.length === 0 ? flags : [...commands, ...plain(argument?.argChoices)];
  const children = command.commands.flatMap((one) => rowsOf(one, `${path} ${one.name()}`));
  return [{ key: path, candidates }, { key: `${path} -`, candidates: flags }, ...values, ...children];
}

/** A word in single quotes, for all three shells. They share no escape for a quote, so quotes are removed. */
const quote = (text: string): string => `'${text.replaceAll(/['\\]/g, '')}'`;

/** The commands among the keys, which a shell follows from word to word. */
const pathsOf = (rows: readonly Row[]): readonly string[] =>
  rows.flatMap(({ key }) => (/ -|^\S+$/.test(key) ? [] : quote(key)));

function bashScript(rows: readonly Row[]): string {
  const offer = (candidates: Row['candidates']): string => {
    const texts = candidates.map(({ text }) => text).join(' ');
    return texts === '' ? '' : `COMPREPLY=($(compgen -W ${quote(texts)} -- "$cur")); `;
  };
  return `_sallyport() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at=sallyport word key
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    case "$at $word" in ${pathsOf(rows).join('|')}) at="$at $word" ;; esac
  done
  for key in "$at \${COMP_WORDS[COMP_CWORD-1]}" "$at \${cur:0:1}" "$at"; do
    case "$key" in
${rows.map(({ key, candidates }) => `    ${quote(key)}) ${offer(candidates)}return 0 ;;`).join('\n')}
    esac
  done
}
# Where nothing is offered, the shell completes names of files.
complete -o default -F _sallyport sallyport
`;
}

function fishScript(rows: readonly Row[]): string {
  const offer = (candidates: Row['candidates']): string => {
    const texts = candidates.map(({ text, about }) => `${quote(text)} ${quote(about)}`).join(' ');
    return texts === '' ? '__fish_complete_path $cur' : `printf '%s\\t%s\\n' ${texts}`;
  };
  return `function __sallyport_words
  set -l typed (commandline -opc); set -l cur (commandline -ct); set -l at sallyport
  for word in $typed[2..-1]
    contains -- "$at $word" ${pathsOf(rows).join(' ')}; and set at "$at $word"
  end
  for key in "$at $typed[-1]" "$at "(string sub -l 1 -- "$cur") $at
    switch "$key"
${rows.map(({ key, candidates }) => `      case ${quote(key)}\n        ${offer(candidates)}; return`).join('\n')}
    end
  end
end
complete -c sallyport -f -a '(__sallyport_words)'
`;
}

const SCRIPTS: Readonly<Record<string, (rows: readonly Row[]) => string>> = {
  bash: bashScript,
  zsh: (rows) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(rows)}`,
  fish: fishScript,
};

/** The command, which reads the program that it is part of: all commands must be loaded. */
export function completionCommand(io: CliIo): Command {
  return {
    name: 'completion',
    summary: 'Print a completion script for bash, zsh or fish.',
    examples: ['source <(sallyport completion bash)', 'sallyport completion fish | source'],
    configure(command, finish) {
      const shell = new Argument('<shell>', 'the shell to complete in').choices(Object.keys(SCRIPTS));
      command.addArgument(shell).action((name: string) => {
        io.stdout(SCRIPTS[name]?.(rowsOf(command.parent ?? command, 'sallyport')) ?? '');
        finish(EXIT_FINE);
      });
    },
  };
}
