// The option -c of every command that reads a gateway file, and the file that is taken where it is not given:
// $SALLYPORT_CONFIG, else sallyport.yaml, else config/gateway.yaml in the current folder. docs/contract.md §1.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command as Commander } from 'commander';
import { urlHost } from '../text/escaping.js';
import type { CliIo } from './program.js';

const VARIABLE = 'SALLYPORT_CONFIG';
/** The name under which `init` writes a gateway file. */
export const CONFIG_FILE = 'sallyport.yaml';
const DEFAULT_FILES = [CONFIG_FILE, 'config/gateway.yaml'] as const;

const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

/** The origin under which this machine reaches a listener of its own. */
export function originOf(host: string, port: number, isSecure: boolean): string {
  const at = ANY_ADDRESS.has(host) ? '127.0.0.1' : urlHost(host);
  return `${isSecure ? 'https' : 'http'}://${at}:${port}`;
}

/**
 * The gateway file that is taken without -c, or `undefined` if there is none.
 *
 * @throws Error if the variable is set but empty: a file from the current folder is then not what was meant.
 */
function findConfig(io: CliIo): { readonly file: string; readonly why: string } | undefined {
  const named = io.env[VARIABLE];
  if (named === '') {
    throw new Error(`${VARIABLE} is empty; set it to the gateway file, unset it, or use -c FILE`);
  }
  if (named !== undefined) return { file: named, why: `from ${VARIABLE}` };
  const file = DEFAULT_FILES.find((candidate) => existsSync(resolve(io.cwd, candidate)));
  return file === undefined ? undefined : { file, why: 'no -c was given' };
}

type ConfigUse = {
  /** Whether the command needs a gateway file with these arguments; by default it always does. */
  readonly isNeeded?: (args: readonly string[]) => boolean;
  /** The command works without a gateway file if there is none. */
  readonly isOptional?: boolean;
  readonly description?: string;
};

/** Adds -c to a command. Before its action runs, the option is filled in, and stderr names the file that was taken. */
export function withConfigOption(command: Commander, io: CliIo, use: ConfigUse = {}): Commander {
  const { description = 'the gateway file', isNeeded = () => true, isOptional = false } = use;
  const fallback = `$${VARIABLE}, else ${DEFAULT_FILES.join(', else ')}`;
  return command
    .option('-c, --config <file>', `${description} (default: ${fallback})`)
    .hook('preAction', () => {
      if (command.getOptionValue('config') !== undefined || !isNeeded(command.args)) return;
      const found = findConfig(io);
      if (found !== undefined) {
        io.stderr(`note: the gateway file is ${found.file} (${found.why})\n`);
        command.setOptionValue('config', found.file);
      } else if (!isOptional) {
        throw new Error(
          `no gateway file: ${DEFAULT_FILES.join(' and ')} do not exist here; ` +
            `name one with -c FILE or ${VARIABLE}, or write one with: sallyport init`,
        );
      }
    });
}
