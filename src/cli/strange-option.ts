// Finds a misspelt option before the command line is parsed: the library would complain first that a
// required option is missing, which the misspelt one usually is.

import type { Command as Commander, Option } from 'commander';
import { nearestCandidate } from '../config/suggestion.js';

const ALWAYS_KNOWN = ['--help', '--version'];

/** What to say of the first long option that its command does not have; `undefined` where all are known. */
export function describeUnknownOption(
  root: Commander,
  argv: readonly string[],
): string | undefined {
  let command = root;
  let isValue = false;
  for (const arg of argv) {
    if (arg === '--') return undefined;
    const option: Option | undefined = isValue ? undefined : findOption(command, arg);
    const isWord = !isValue && option === undefined;
    if (isWord && isUnparsed(arg)) return describe(command, arg);
    if (isWord) command = descend(command, arg);
    isValue = option !== undefined && takesNext(option, arg);
  }
  return undefined;
}

function descend(command: Commander, word: string): Commander {
  return command.commands.find((one) => one.name() === word) ?? command;
}

function findOption(command: Commander, arg: string): Option | undefined {
  const name = arg.split('=', 1)[0];
  return command.options.find(({ long, short }) => long === name || short === name);
}

function takesNext(option: Option, arg: string): boolean {
  return option.required && !arg.includes('=');
}

function isUnparsed(arg: string): boolean {
  return arg.startsWith('--') && !ALWAYS_KNOWN.includes(arg);
}

function describe(command: Commander, arg: string): string {
  const name = arg.split('=', 1)[0] ?? arg;
  const known = command.options.flatMap(({ long }) => long ?? []);
  const near = nearestCandidate(name, known);
  return `error: unknown option '${name}'${near === undefined ? '' : `; did you mean "${near}"?`}`;
}
