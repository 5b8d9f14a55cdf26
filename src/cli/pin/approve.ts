// `sallyport pin approve` and `pin block`: record a named person's decision about one definition. An
// approval names the reviewed digest and is refused if the definition has changed since. docs/contract.md §5.

import { approvePin, blockPin, type PinChange, type PinName } from '../../pins/approval.js';
import type { PinnedKind } from '../../pins/digest.js';
import type { Lock } from '../../pins/lock.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import {
  approvalOf,
  changeLockFile,
  checkUpstream,
  digestText,
  observeTarget,
  type PinOptions,
  type PinPorts,
  readLockFile,
  readOutline,
  readSettingsQuietly,
} from './lock-files.js';

export type PinNameOptions = PinOptions & {
  readonly upstream: string;
  readonly name: string;
  /** Defaults to `tool`. */
  readonly kind?: PinnedKind;
};

export type PinApproveOptions = PinNameOptions & {
  /** `sha256:` and 64 hex digits: the digest that was reviewed. */
  readonly digest: string;
  readonly by: string;
  readonly note?: string;
};

const DIGEST = /^sha256:([0-9a-f]{64})$/;

/**
 * Approves the reviewed definition. Exit 1: the lock file holds no such definition, or the upstream offers
 * another one now. If the upstream cannot be queried, that is printed and the lock file alone decides.
 */
export async function runPinApprove(
  options: PinApproveOptions,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const digest = DIGEST.exec(options.digest)?.[1];
  const approval = approvalOf(options, ports);
  if (digest === undefined || approval === undefined) {
    io.stderr('error: --digest takes sha256: and 64 lower-case hex digits; --by must be a name\n');
    return EXIT_UNCHECKED;
  }
  const folder = readFolder(options, io, ports);
  if (folder === undefined) return EXIT_UNCHECKED;
  const before = readLockFile(folder, options.upstream, io, ports);
  if (before === 'invalid') return EXIT_UNCHECKED;
  const gateway = readSettingsQuietly(options.config, io, ports);
  const settings = gateway?.upstreams.get(options.upstream);
  const observed = gateway && settings && (await observeTarget({ settings, gateway }, io, ports));
  if (observed === undefined) io.stderr('note: the lock file alone was asked\n');
  const pin = nameOfPin(options);
  const wasBlocked = isBlocked(before.lock, pin);
  const approve = (lock: Lock): Change =>
    // The approval was given without knowing of a block that came since, so it does not lift it.
    isBlocked(lock, pin) && !wasBlocked
      ? { ok: false, why: 'blocked-meanwhile', digests: [] }
      : approvePin({ lock, pin, digest, approval, observed });
  return changePin(approve, 'approved', options, folder, io, ports);
}

/** Blocks a name until one of its digests is approved again. */
export async function runPinBlock(
  options: PinNameOptions,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const folder = readFolder(options, io, ports);
  if (folder === undefined) return EXIT_UNCHECKED;
  const block = (lock: Lock): Change => blockPin(lock, nameOfPin(options));
  return changePin(block, 'blocked', options, folder, io, ports);
}

function nameOfPin({ kind = 'tool', name }: PinNameOptions): PinName {
  return { kind, name };
}

/** The folder of lock files, if the gateway file has the upstream. */
function readFolder(options: PinNameOptions, io: CliIo, ports: PinPorts): string | undefined {
  const outline = readOutline(options.config, io, ports);
  if (outline === undefined || !checkUpstream(options.upstream, outline.upstreams, io)) {
    return undefined;
  }
  return outline.folder;
}

function isBlocked(lock: Lock | undefined, { kind, name }: PinName): boolean {
  const pin = kind === 'instructions' ? lock?.instructions : lock?.pins[kind].get(name);
  return pin?.status === 'blocked';
}

type Change =
  | PinChange
  | { readonly ok: false; readonly why: 'blocked-meanwhile'; readonly digests: string[] };

const REFUSALS: { readonly [why in Extract<Change, { ok: false }>['why']]: string } = {
  'moved-on': 'is not the definition with this digest; there is: ',
  'not-in-lock': 'is not in the lock file; run pin fetch first',
  'blocked-meanwhile':
    'was blocked since this command began; approve it again if it shall be lifted',
};

async function changePin(
  change: (lock: Lock) => Change,
  done: 'approved' | 'blocked',
  options: PinNameOptions,
  folder: string,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const changeOrRefuse = (before: Lock | undefined) => {
    const outcome: Change =
      before === undefined ? { ok: false, why: 'not-in-lock', digests: [] } : change(before);
    return { lock: outcome.ok ? outcome.lock : undefined, outcome };
  };
  const changed = await changeLockFile(folder, options.upstream, changeOrRefuse, io, ports);
  if (changed === undefined) return EXIT_UNCHECKED;
  const { outcome } = changed;
  const { kind, name } = nameOfPin(options);
  const what = { upstream: options.upstream, kind, name };
  const label = `${options.upstream} ${kind} ${escapeForTerminal(name)}`;
  if (!outcome.ok) {
    const digests = outcome.digests.map(digestText);
    if (options.json) io.stdout(`${JSON.stringify({ ...what, refused: outcome.why, digests })}\n`);
    const offered = digests.length === 0 ? 'none' : digests.join(' ');
    const detail = outcome.why === 'moved-on' ? offered : '';
    io.stderr(`error: ${label} ${REFUSALS[outcome.why]}${detail}\n`);
    return EXIT_FAILED;
  }
  io.stdout(options.json ? `${JSON.stringify({ ...what, done })}\n` : `${done} ${label}\n`);
  return EXIT_FINE;
}
