// The servers of a client's configuration file, shown to a person who says yes to each: what `add --from` and `dev --from`
// have in common. The file is untrusted: everything in it is shown with what cannot be seen, and nothing is started or
// contacted before the yes. docs/reference/commands.md#add---from.

import { readFileSync, realpathSync, statSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { decodeUtf8 } from '../../config/files.js';
import { countOf, describeReadError, sizeText } from '../../text/wording.js';
import { type CliIo, didYouMean, UsageError } from '../program.js';
import { MAX_CLIENT_FILE_BYTES, readClientFile } from './client-files.js';
import { type ImportedServer, type ImportPlan, planImport, visible } from './import-plan.js';
import type { Questions } from './questions.js';

/**
 * What becomes of each server of the file, which is printed; `taken` are names that are in use.
 *
 * @throws UsageError where the file cannot be read or has no servers.
 */
export function listServers(from: string, taken: Iterable<string>, io: CliIo): readonly ImportPlan[] {
  const file = resolve(io.cwd, from);
  const found = readClientFile(readSource(file, from));
  if ('error' in found) throw new UsageError(`error: ${visible(from)}: ${found.error}\n`);
  const plans = planImport(found.servers, taken);
  io.stdout(listText(plans, from, isInside(io.cwd, file)));
  return plans;
}

export function usableOf(plans: readonly ImportPlan[]): readonly ImportedServer[] {
  return plans.filter((plan): plan is ImportedServer => !('refused' in plan));
}

/** @throws UsageError where it is no file, too large, or not UTF-8. */
function readSource(file: string, given: string): string {
  const shown = visible(given);
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new UsageError(`error: ${shown} is no file\n`);
    if (status.size > MAX_CLIENT_FILE_BYTES)
      throw new UsageError(`error: ${shown} is larger than ${sizeText(MAX_CLIENT_FILE_BYTES)}\n`);
    const text = decodeUtf8(readFileSync(file));
    if (text === undefined) throw new UsageError(`error: ${shown} is not UTF-8 text\n`);
    return text;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`error: ${shown} ${describeReadError(error)}\n`);
  }
}

/** Whether the file is below the folder, wherever links lead. */
function isInside(folder: string, file: string): boolean {
  const path = relative(realpathSync(folder), realpathSync(file));
  return path !== '..' && !path.startsWith(`..${sep}`) && resolve(folder, path) !== path;
}

function listText(plans: readonly ImportPlan[], from: string, isUntrusted: boolean): string {
  const warning = isUntrusted
    ? 'It is inside the working folder, where a checkout of somebody else may have put it: it is untrusted.\n'
    : '';
  const rows = plans.map((plan) =>
    'refused' in plan ? `\n${visible(plan.written)}: not possible: ${plan.refused}\n` : `\n${serverText(plan)}`,
  );
  return `${visible(from)} has ${countOf(plans.length, 'server')}. Nothing is started and nobody is contacted before a yes.\n${warning}${rows.join('')}`;
}

function serverText({ written, shown, notes }: ImportedServer): string {
  return `${visible(written)}: ${shown}\n${notes.map((note) => `  ${note}\n`).join('')}`;
}

/** Those that `--yes` names, by the name of the file or by that which they get here; `undefined` with the mistake printed. */
export function namedServers(
  names: readonly string[],
  plans: readonly ImportPlan[],
  io: CliIo,
): readonly ImportedServer[] | undefined {
  const usable = usableOf(plans);
  const chosen = new Set<ImportedServer>();
  for (const name of names) {
    const found = usable.filter((one) => one.name === name || one.written === name);
    if (found.length === 0) {
      const refused = plans.find((plan) => plan.written === name);
      const why =
        refused !== undefined && 'refused' in refused
          ? `: ${refused.refused}`
          : didYouMean(
              name,
              usable.map((one) => one.name),
            );
      io.stderr(
        `error: ${visible(name)} cannot be added${why || ': the file has no such server'}; nothing was added\n`,
      );
      return undefined;
    }
    for (const one of found) chosen.add(one);
  }
  return [...chosen];
}

/** Asks about each; `undefined`, with the mistake printed, if the input ends before the last. */
export async function askEach(
  plans: readonly ImportPlan[],
  { question, io }: { readonly question: (server: ImportedServer) => string; readonly io: CliIo },
  questions: Questions,
): Promise<readonly ImportedServer[] | undefined> {
  const chosen: ImportedServer[] = [];
  for (const server of usableOf(plans)) {
    io.stderr(`\n${serverText(server)}`);
    const answer = await questions.ask(`${question(server)} [y/N] `);
    if (answer === undefined) {
      io.stderr('\nerror: the input ended before the last question; nothing was written\n');
      return undefined;
    }
    if (/^\s*y(?:es)?\s*$/i.test(answer)) chosen.push(server);
  }
  return chosen;
}
