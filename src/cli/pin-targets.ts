// Which upstreams a `pin` command is about, what their lock files say and what they offer now.
// Prints every mistake it meets; decides nothing. Contract §1 (`pin`).

import type { Settings, UpstreamSettings } from '../config/settings.js';
import { escapeForTerminal } from '../pins/characters.js';
import type { Approval } from '../pins/lock.js';
import type { Observed } from '../pins/observed.js';
import {
  checkUpstream,
  type LockFile,
  type PinPorts,
  readLockFile,
  readSettings,
} from './pin-files.js';
import type { CliIo } from './program.js';

/** Options of every `pin` command. */
export type PinOptions = {
  readonly config: string;
  readonly upstream?: string;
  readonly json?: boolean;
};

/** An upstream that a command is about, with its lock file. */
export type PinTarget = {
  readonly settings: UpstreamSettings;
  /** For whom the upstream is asked. */
  readonly gateway: Pick<Settings, 'keys' | 'publicBase'>;
  readonly locked: LockFile;
};

/** The upstreams a command is about; `undefined` once a mistake was printed. */
export function readTargets(
  options: PinOptions,
  io: CliIo,
  ports: PinPorts,
  isMeant: (upstream: UpstreamSettings) => boolean,
): readonly PinTarget[] | undefined {
  const settings = readSettings(options.config, io, ports);
  if (settings === undefined) return undefined;
  const { upstream: named } = options;
  const all = [...settings.upstreams.values()];
  const names = all.map(({ name }) => name);
  if (named !== undefined && !checkUpstream(named, names, io)) return undefined;
  const meant = all.filter((one) => (named === undefined ? isMeant(one) : one.name === named));
  // All are read before one is missed: every mistake is told in one run.
  const targets = meant.map((one) => ({
    settings: one,
    gateway: settings,
    locked: readLockFile(settings.pinsDir, one.name, io, ports),
  }));
  const read = targets.filter(isRead);
  return read.length === targets.length ? read : undefined;
}

function isRead<Read extends Omit<PinTarget, 'locked'>>(
  target: Read & { readonly locked: LockFile | 'invalid' },
): target is Read & PinTarget {
  return target.locked !== 'invalid';
}

/** What an upstream offers; `undefined` once it was printed why it could not be asked. */
export async function observeTarget(
  { settings, gateway }: Omit<PinTarget, 'locked'>,
  io: CliIo,
  ports: PinPorts,
): Promise<Observed | undefined> {
  const observation = await ports.observe(settings, gateway);
  if (observation.kind === 'observed') return observation.observed;
  const why = escapeForTerminal(observation.why);
  io.stderr(`error: ${settings.name} could not be listed: ${why}\n`);
  return undefined;
}

/** The approval that the options give; none without a name. */
export function approvalOf(
  { by, note }: { readonly by?: string; readonly note?: string },
  ports: PinPorts,
): Approval | undefined {
  if (by === undefined || by.trim() === '') return undefined;
  const at = new Date(ports.now()).toISOString();
  return note === undefined ? { by, at } : { by, at, note };
}
