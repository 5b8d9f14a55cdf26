// One writer per audit file: a lease, which is a file next to it (`audit.jsonl.lease`) that names the instance
// and is renewed every few seconds. A lease that is no longer renewed may be taken over; a process that lost
// its lease never writes again.
//
// A process renews through the file handle that it opened itself and then checks that the path still names
// that file, so that renewing never overwrites another process's lease. A lease is replaced by one rename, and
// only by the process that holds the claim file beside it (`….lease.next`), so that only one can replace it.
//
// Clocks are set and differ between machines, so a lease is stale only if: this process has watched it for
// `staleMs`, by its own monotonic clock, without a renewal; or it is that old by the wall clock and was
// watched without a renewal for as long as its holder would still trust it; or its process has certainly
// ended. A process id is not enough to know that: containers that share a folder have their own pid namespaces, and pids
// are reused. The identity of a process therefore consists of the boot id, the pid namespace, the pid and the start time.
// If one of them cannot be read reliably there is no identity, and no process is considered ended.

import { constants } from 'node:fs';
import { type FileHandle, open, readFile, readlink, realpath, rename, stat, statfs, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import { systemErrorCode } from '../text/wording.js';

/** Types of local file systems (statfs(2)): ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlay. */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

/** True if only this machine's kernel can have mounted the file system; false too if that is unknown. */
export async function isOnThisMachine(path: string): Promise<boolean> {
  try {
    return LOCAL_FILE_SYSTEMS.has((await statfs(path)).type);
  } catch {
    return false;
  }
}

export type LeaseTimes = {
  readonly renewEveryMs: number;
  /** A lease that was not renewed for this long may be taken over. */
  readonly staleMs: number;
  /** How long a start waits for the lease of another process. */
  readonly waitMs: number;
  readonly pollMs: number;
};

export const LEASE_TIMES: LeaseTimes = {
  renewEveryMs: 5_000,
  staleMs: 15_000,
  waitMs: 20_000,
  pollMs: 250,
};

export type LeaseOptions = {
  /** Name of this run of the gateway. */
  readonly instance: string;
  readonly times?: LeaseTimes;
  readonly now?: () => number;
  readonly monotonicMs?: () => number;
  /** The identity of this process; `undefined` if it cannot be known. */
  readonly identity?: () => Promise<ProcessIdentity | undefined>;
};

const LEASE_SCHEMA = 'sallyport.lease/1';
const FILE_MODE = 0o600;
/** Non-blocking: opening never waits, whatever kind of file is at the path. */
const NON_BLOCKING_READ = constants.O_RDONLY | constants.O_NONBLOCK;
const MAX_LEASE_BYTES = 4096;
/** Wait after a standstill: longer than a takeover that had already begun needs to finish. */
const TAKEOVER_MS = 250;

/** The path of the lease of an audit file. */
export function leasePath(path: string): string {
  return `${path}.lease`;
}

/** The path of the claim file, which gives the right to replace a lease. */
export function nextLeasePath(path: string): string {
  return `${leasePath(path)}.next`;
}

type HeldLease = {
  readonly handle: FileHandle;
  readonly path: string;
  readonly device: number;
  readonly inode: number;
  renewed: Moment;
  /** When the path was last seen to name this lease, or nothing. */
  checkedAt: Moment;
};

/** A time by both clocks: the monotonic one stops while the machine sleeps, the other can be set. */
type Moment = { readonly monotonicMs: number; readonly wallMs: number };

type LeaseFile = {
  readonly text: string;
  readonly device: number;
  readonly inode: number;
  readonly changedWallMs: number;
};

type WatchedFile = { readonly key: string; readonly sinceMs: number };

async function undefinedIfMissing<Value>(wanted: Promise<Value>): Promise<Value | undefined> {
  try {
    return await wanted;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Opens the file each time: network file systems show another machine's writes on open and not on stat. */
async function readLeaseFile(path: string): Promise<LeaseFile | undefined> {
  const handle = await undefinedIfMissing(open(path, NON_BLOCKING_READ));
  if (handle === undefined) return undefined;
  try {
    const { dev, ino, mtimeMs } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_LEASE_BYTES), 0, MAX_LEASE_BYTES, 0);
    const text = buffer.toString('latin1', 0, bytesRead);
    return { text, device: dev, inode: ino, changedWallMs: mtimeMs };
  } finally {
    await handle.close();
  }
}

/** The path at which a missing file will be created, following symbolic links that already point to it. */
async function resolveMissingFile(path: string): Promise<string> {
  const folder = await realpath(dirname(path));
  const candidate = join(folder, basename(path));
  const target = await readlink(candidate).catch(() => undefined);
  return target === undefined ? candidate : resolveMissingFile(resolve(folder, target));
}

function keyOf({ device, inode, changedWallMs, text }: LeaseFile): string {
  return `${device}:${inode}:${changedWallMs}:${text}`;
}

function identityOf(value: unknown): ProcessIdentity | undefined {
  if (!isObject(value)) return undefined;
  const { boot, namespace, pid, started } = value;
  if (typeof boot !== 'string' || typeof namespace !== 'string') return undefined;
  if (typeof started !== 'string' || !Number.isSafeInteger(pid)) return undefined;
  return { boot, namespace, pid: Number(pid), started };
}

/** Describes the holder of a lease. Anyone could have written the file, so its values are checked. */
function describeHolder({ text }: LeaseFile): string {
  const { instance, host, process, renewed } = parseObject(text) ?? {};
  const printable = (value: unknown): string =>
    typeof value === 'string' && /^[\w.:-]{1,128}$/.test(value) ? value : 'unknown';
  const pid = identityOf(process)?.pid;
  const by = pid === undefined ? '' : `, process ${pid}`;
  return `instance ${printable(instance)}${by} on host ${printable(host)}, renewed ${printable(renewed)}`;
}

function isNamedByPath({ device, inode }: HeldLease, found: LeaseFile | undefined): boolean {
  return found !== undefined && found.inode === inode && found.device === device;
}

/** The lease of one audit file. Its path is resolved on first use. */
export class AuditLease {
  readonly #path: string;
  readonly #times: LeaseTimes;
  readonly #instance: string;
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  readonly #readIdentity: () => Promise<ProcessIdentity | undefined>;
  #identity: Promise<ProcessIdentity | undefined> | undefined;
  readonly #watched = new Map<string, WatchedFile>();
  #held: HeldLease | undefined;
  #isExempt = false;
  #lost: string | undefined;
  #renewing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(path: string, options: LeaseOptions) {
    this.#path = path;
    this.#times = options.times ?? LEASE_TIMES;
    this.#instance = options.instance;
    this.#now = options.now ?? Date.now;
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.#readIdentity = options.identity ?? readOwnIdentity;
  }

  /** Why this process may never write again; `undefined` while it may. */
  get lost(): string | undefined {
    return this.#lost;
  }

  /** True if the last renewal is so recent that no other process can have taken the lease over. */
  get isFresh(): boolean {
    if (this.#isExempt) return true;
    return this.#held !== undefined && this.#lost === undefined && !this.#hasStoodStill(this.#held);
  }

  /**
   * Takes the lease, waiting until `ending` for one that is still renewed; resolves with a sentence if that
   * failed.
   */
  async acquire(onWait?: (holder: string) => void, ending?: AbortSignal): Promise<string | undefined> {
    const sinceMs = this.#monotonicMs();
    for (let isFirst = true; ; isFirst = false) {
      const holder = await this.#take();
      if (holder === undefined) return undefined;
      if (isFirst) onWait?.(holder);
      const isOver = this.#monotonicMs() - sinceMs >= this.#times.waitMs;
      if (isOver || ending?.aborted === true) return this.#describe(holder);
      await new Promise((resolve) => setTimeout(resolve, this.#times.pollMs));
    }
  }

  /** Resolves when this process may write. Rejects if another process may. */
  async hold(): Promise<void> {
    if (this.#lost !== undefined) throw new Error(this.#lost);
    if (this.#held === undefined) {
      const holder = await this.#take();
      if (holder !== undefined) throw new Error(this.#describe(holder));
      return;
    }
    if (this.isFresh) return;
    await this.#renew();
    if (this.#lost !== undefined) throw new Error(this.#lost);
  }

  /** As `hold`, if the path may name another file than before because a symbolic link was changed. */
  async holdAnew(): Promise<void> {
    if (this.#held !== undefined && this.#lost === undefined) {
      const path = await this.#findPath();
      if (path === undefined || leasePath(path) !== this.#held.path) await this.release();
    }
    await this.hold();
  }

  /** Releases the lease. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing?.catch(() => undefined);
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    try {
      if (isNamedByPath(held, await readLeaseFile(held.path))) await unlink(held.path);
    } catch {
      // A lease that remains is taken over once it is stale.
    } finally {
      await held.handle.close().catch(() => undefined);
    }
  }

  #describe(holder: string): string {
    return `another gateway writes the audit file ${this.#path}: ${holder} (lease ${leasePath(this.#path)})`;
  }

  #hasStoodStill(held: HeldLease): boolean {
    return this.#since(held.renewed) >= this.#trustMs;
  }

  /** INVARIANT: no process takes a lease over before its holder stops relying on the last renewal. */
  get #trustMs(): number {
    return 2 * this.#times.renewEveryMs;
  }

  #moment(): Moment {
    return { monotonicMs: this.#monotonicMs(), wallMs: this.#now() };
  }

  #since({ monotonicMs, wallMs }: Moment): number {
    return Math.max(this.#monotonicMs() - monotonicMs, Math.abs(this.#now() - wallMs));
  }

  #own(): Promise<ProcessIdentity | undefined> {
    this.#identity ??= this.#readIdentity();
    return this.#identity;
  }

  /** The real path of the file; `undefined` if the path is not a regular file but, for example, a device. */
  async #findPath(): Promise<string | undefined> {
    const real = await undefinedIfMissing(realpath(this.#path));
    if (real === undefined) return resolveMissingFile(this.#path);
    return (await stat(real)).isFile() ? real : undefined;
  }

  /** Tries once; resolves with the holder if another process has the lease. */
  async #take(): Promise<string | undefined> {
    const path = await this.#findPath();
    this.#isExempt = path === undefined;
    if (path === undefined) return undefined;
    const lease = leasePath(path);
    const made = await this.#create(lease);
    if (made !== undefined) return this.#keep(made);
    const found = await readLeaseFile(lease);
    // Removed meanwhile: the next attempt creates it.
    if (found === undefined) return 'a gateway that is stopping';
    const next = nextLeasePath(path);
    // A claim left behind by a crash is watched from the beginning too.
    const claim = await readLeaseFile(next);
    if (claim !== undefined) await this.#isStale(next, claim);
    if (!(await this.#isStale(lease, found))) return describeHolder(found);
    return this.#replace(lease, next, found);
  }

  /** Replaces a stale lease, unless another process is replacing it or it was renewed after all. */
  async #replace(lease: string, next: string, stale: LeaseFile): Promise<string | undefined> {
    const made = await this.#claim(next);
    if (made === undefined) return 'a gateway that is starting';
    const before = await readLeaseFile(lease);
    const isUnchanged = before !== undefined && keyOf(before) === keyOf(stale);
    if (isUnchanged) await undefinedIfMissing(rename(next, lease));
    const after = await readLeaseFile(lease);
    const held = { ...made, path: lease };
    if (isNamedByPath(held, after)) return this.#keep(held);
    if (isNamedByPath(held, await readLeaseFile(next))) await undefinedIfMissing(unlink(next));
    await made.handle.close();
    return after === undefined ? 'a gateway that is just ending' : describeHolder(after);
  }

  /** Creates the claim to replace a lease; `undefined` if another process has it. */
  async #claim(next: string): Promise<HeldLease | undefined> {
    const made = await this.#create(next);
    if (made !== undefined) return made;
    const found = await readLeaseFile(next);
    if (found === undefined || !(await this.#isStale(next, found))) return undefined;
    await undefinedIfMissing(unlink(next));
    return this.#create(next);
  }

  async #create(path: string): Promise<HeldLease | undefined> {
    let handle: FileHandle;
    try {
      handle = await open(path, 'wx', FILE_MODE);
    } catch (error) {
      if (systemErrorCode(error) === 'EEXIST') return undefined;
      throw error;
    }
    try {
      const made = this.#moment();
      await this.#write(handle, path);
      const { dev, ino } = await handle.stat();
      return { handle, path, device: dev, inode: ino, renewed: made, checkedAt: made };
    } catch (error) {
      await handle.close();
      await unlink(path).catch(() => undefined);
      throw error;
    }
  }

  async #write(handle: FileHandle, path: string): Promise<void> {
    const process = (await this.#own()) ?? null;
    const renewed = new Date(this.#now()).toISOString();
    const state = {
      schema: LEASE_SCHEMA,
      instance: this.#instance,
      host: hostname(),
      process,
      renewed,
    };
    // The length is constant, so that a concurrent reader never sees remains of an earlier text.
    await handle.write(`${JSON.stringify(state)}\n`, 0, 'latin1');
    if (!(await isOnThisMachine(path))) await handle.sync();
  }

  #keep(held: HeldLease): undefined {
    this.#held = held;
    this.#watched.clear();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      this.#renew().catch(() => undefined);
    }, this.#times.renewEveryMs);
    this.#timer.unref();
  }

  async #isStale(path: string, found: LeaseFile): Promise<boolean> {
    const { staleMs } = this.#times;
    const key = keyOf(found);
    const known = this.#watched.get(path);
    const sinceMs = known?.key === key ? known.sinceMs : this.#monotonicMs();
    this.#watched.set(path, { key, sinceMs });
    if (await this.#hasEnded(path, found)) return true;
    const watchedMs = this.#monotonicMs() - sinceMs;
    if (watchedMs >= staleMs) return true;
    return this.#now() - found.changedWallMs > staleMs && watchedMs >= this.#trustMs;
  }

  /** Only on a local file system: processes of two machines could state the same identity. */
  async #hasEnded(path: string, { text }: LeaseFile): Promise<boolean> {
    const { host, process } = parseObject(text) ?? {};
    const other = identityOf(process);
    const own = await this.#own();
    if (other === undefined || own === undefined || host !== hostname()) return false;
    return (await isOnThisMachine(path)) && (await hasProcessEnded(other, own));
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#renewOnce().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewOnce(): Promise<void> {
    const held = this.#held;
    if (held === undefined || this.#lost !== undefined) return;
    const hasStoodStill = this.#hasStoodStill(held);
    const startedAt = this.#moment();
    let found = await readLeaseFile(held.path);
    if (found === undefined) return this.#recreate(held, startedAt);
    if (isNamedByPath(held, found)) {
      await this.#write(held.handle, held.path);
      // Another process may have been about to replace the lease.
      if (hasStoodStill) await new Promise((resolve) => setTimeout(resolve, TAKEOVER_MS));
      found = await readLeaseFile(held.path);
    }
    if (found === undefined || !isNamedByPath(held, found)) return this.#lose(found);
    held.renewed = startedAt;
    held.checkedAt = startedAt;
  }

  /**
   * The lease or its folder was removed. A process that checked it all the time would have seen the lease of
   * another one; after a gap it cannot know whether there was one, and the lease counts as lost.
   */
  async #recreate(held: HeldLease, startedAt: Moment): Promise<void> {
    if (this.#since(held.checkedAt) >= this.#times.staleMs) return this.#lose(undefined);
    held.checkedAt = startedAt;
    const made = await this.#create(held.path);
    if (made === undefined) return this.#lose(await readLeaseFile(held.path));
    this.#held = made;
    await held.handle.close().catch(() => undefined);
  }

  #lose(found: LeaseFile | undefined): void {
    clearInterval(this.#timer);
    const by = found === undefined ? 'it was removed meanwhile' : describeHolder(found);
    this.#lost = `this gateway lost the lease of the audit file ${this.#path}: ${by}`;
  }
}

export type ProcessIdentity = {
  readonly boot: string;
  /** The pid namespace, such as `pid:[4026531836]`; unique among those that exist. */
  readonly namespace: string;
  readonly pid: number;
  /** Clock ticks from the boot to the start of the process. */
  readonly started: string;
};

/** Index of the start time in /proc/PID/stat (proc(5), field 22), counted after the program name. */
const START_TIME_INDEX = 19;

function startTimeOf(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const started = fields[START_TIME_INDEX];
  return started !== undefined && /^\d+$/.test(started) ? started : undefined;
}

/** True if /proc shows all processes of this pid namespace. */
function showsOwnNamespace(pid: string, status: string, mounts: string): boolean {
  // Pids as seen from the namespace /proc was mounted for: several if that is an outer namespace.
  const ids = /^NSpid:\s+(.+)$/m.exec(status)?.[1]?.trim().split(/\s+/);
  if (ids?.length !== 1 || ids[0] !== pid) return false;
  return !/ - proc .*\b(?:hidepid|subset)=/m.test(mounts);
}

/** The identity of this process; `undefined` if it cannot be known, as on systems other than Linux. */
export async function readOwnIdentity(): Promise<ProcessIdentity | undefined> {
  try {
    const [pid, namespace, boot, stat, status, mounts] = await Promise.all([
      readlink('/proc/self'),
      readlink('/proc/self/ns/pid'),
      readFile('/proc/sys/kernel/random/boot_id', 'latin1'),
      readFile('/proc/self/stat', 'latin1'),
      readFile('/proc/self/status', 'latin1'),
      readFile('/proc/self/mountinfo', 'latin1'),
    ]);
    const started = startTimeOf(stat);
    if (started === undefined || !showsOwnNamespace(pid, status, mounts)) return undefined;
    return { boot: boot.trim(), namespace, pid: Number(pid), started };
  } catch {
    return undefined;
  }
}

/**
 * True if the process with that identity has certainly ended. Only a process of the same boot and pid
 * namespace can know. If the namespace's name was reused, all processes of the earlier one have ended.
 */
export async function hasProcessEnded(other: ProcessIdentity, own: ProcessIdentity): Promise<boolean> {
  if (other.boot !== own.boot || other.namespace !== own.namespace) return false;
  try {
    const started = startTimeOf(await readFile(`/proc/${other.pid}/stat`, 'latin1'));
    return started !== undefined && started !== other.started;
  } catch (error) {
    const code = systemErrorCode(error);
    return code === 'ENOENT' || code === 'ESRCH';
  }
}
