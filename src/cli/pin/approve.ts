// `sallyport pin approve` and `pin block`: record a named person's decision about one definition. An
// approval names the reviewed digest and is refused if the definition has changed since. docs/contract.md §5.

import { approvePin, blockPin, type PinChange, type PinName } from '../../pins/approval.js';
import type { PinnedKind } from '../../pins/digest.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import {
  approvalOf,
  checkUpstream,
  digestText,
  type LockFile,
  observeTarget,
  type PinOptions,
  type PinPorts,
  readLockFile,
  readOutline,
  readSettingsQuietly,
  writeLockFile,
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
  const locked = readNamed(options, io, ports);
  if (locked === undefined) return EXIT_UNCHECKED;
  const gateway = readSettingsQuietly(options.config, io, ports);
  const settings = gateway?.upstreams.get(options.upstream);
  const observed = gateway && settings && (await observeTarget({ settings, gateway }, io, ports));
  if (observed === undefined) io.stderr('note: the lock file alone was asked\n');
  const { lock } = locked;
  const change: PinChange =
    lock === undefined
      ? { ok: false, why: 'not-in-lock', digests: [] }
      : approvePin({ lock, pin: nameOfPin(options), digest, approval, observed });
  return finishChange(change, 'approved', options, locked.file, io, ports);
}

/** Blocks a name until one of its digests is approved again. */
export function runPinBlock(options: PinNameOptions, io: CliIo, ports: PinPorts): Promise<number> {
  const locked = readNamed(options, io, ports);
  if (locked === undefined) return Promise.resolve(EXIT_UNCHECKED);
  const change: PinChange =
    locked.lock === undefined
      ? { ok: false, why: 'not-in-lock', digests: [] }
      : blockPin(locked.lock, nameOfPin(options));
  return finishChange(change, 'blocked', options, locked.file, io, ports);
}

function nameOfPin({ kind = 'tool', name }: PinNameOptions): PinName {
  return { kind, name };
}

function readNamed(options: PinNameOptions, io: CliIo, ports: PinPorts): LockFile | undefined {
  const folder = readOutline(options.config, io, ports);
  if (folder === undefined || !checkUpstream(options.upstream, folder.upstreams, io)) {
    return undefined;
  }
  const locked = readLockFile(folder.folder, options.upstream, io, ports);
  return locked === 'invalid' ? undefined : locked;
}

async function finishChange(
  change: PinChange,
  done: 'approved' | 'blocked',
  options: PinNameOptions,
  file: string,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const { kind, name } = nameOfPin(options);
  const what = { upstream: options.upstream, kind, name };
  const label = `${options.upstream} ${kind} ${escapeForTerminal(name)}`;
  if (!change.ok) {
    const digests = change.digests.map(digestText);
    if (options.json) io.stdout(`${JSON.stringify({ ...what, refused: change.why, digests })}\n`);
    const offered = digests.length === 0 ? 'none' : digests.join(' ');
    io.stderr(
      change.why === 'moved-on'
        ? `error: ${label} is not the definition with this digest; there is: ${offered}\n`
        : `error: ${label} is not in the lock file; run pin fetch first\n`,
    );
    return EXIT_FAILED;
  }
  if (!(await writeLockFile(file, change.lock, io, ports))) return EXIT_UNCHECKED;
  io.stdout(options.json ? `${JSON.stringify({ ...what, done })}\n` : `${done} ${label}\n`);
  return EXIT_FINE;
}
