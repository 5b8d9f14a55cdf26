// `sallyport pin diff` and `pin verify`: show and check the drift of upstreams from their lock files.
// Write nothing. docs/contract.md §1: in CI, exit 1 on drift and 2 if it could not be checked.

import { findDifferences, isInformational } from '../../pins/drift.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import type { PinPorts } from './lock-files.js';
import {
  differenceLine,
  differencesJson,
  differenceText,
  observeTarget,
  type PinOptions,
  readTargets,
  type UpstreamDifferences,
} from './lock-files.js';

/** Prints the differences between what upstreams offer and their lock files. */
export async function runPinDiff(options: PinOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const found = await findDrift(options, io, ports);
  if (found === undefined) return EXIT_UNCHECKED;
  printDifferences(options, found.upstreams, io, true);
  return found.isComplete ? EXIT_FINE : EXIT_UNCHECKED;
}

/**
 * Prints the same as a check. Exit 1: there is a difference other than a new server version. Exit 2: no
 * difference was found, but not everything could be checked.
 */
export async function runPinVerify(
  options: PinOptions,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const found = await findDrift(options, io, ports);
  if (found === undefined) return EXIT_UNCHECKED;
  printDifferences(options, found.upstreams, io, false);
  const hasDrift = found.upstreams.some(({ differences }) =>
    differences.some((one) => !isInformational(one)),
  );
  if (hasDrift) return EXIT_FAILED;
  return found.isComplete ? EXIT_FINE : EXIT_UNCHECKED;
}

type FoundDrift = {
  readonly upstreams: readonly UpstreamDifferences[];
  readonly isComplete: boolean;
};

async function findDrift(
  options: PinOptions,
  io: CliIo,
  ports: PinPorts,
): Promise<FoundDrift | undefined> {
  const targets = readTargets(options, io, ports, ({ pinning }) => pinning.mode === 'strict');
  if (targets === undefined) return undefined;
  const upstreams: UpstreamDifferences[] = [];
  for (const target of targets) {
    const observed = await observeTarget(target, io, ports);
    if (observed === undefined) continue;
    const differences = findDifferences(target.locked.lock, observed);
    upstreams.push({ upstream: target.settings.name, differences });
  }
  return { upstreams, isComplete: upstreams.length === targets.length };
}

function printDifferences(
  options: PinOptions,
  found: readonly UpstreamDifferences[],
  io: CliIo,
  withLines: boolean,
): void {
  if (options.json) {
    io.stdout(differencesJson(found, withLines));
    return;
  }
  const print = withLines ? differenceText : differenceLine;
  for (const { upstream, differences } of found) {
    if (differences.length === 0) io.stdout(`${upstream}: as pinned\n`);
    for (const difference of differences) io.stdout(print(upstream, difference));
  }
}
