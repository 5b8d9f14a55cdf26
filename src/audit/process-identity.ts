// Which process this is, so that another one of the same machine can tell whether it still lives. A process
// id alone says nothing: containers that share a folder have namespaces of process ids of their own, and
// ids are used again. So an identity is the boot, the namespace, the id in it and when the process began.
// Where one of them cannot be known for certain there is no identity, and nobody counts as gone.

import { readFile, readlink } from 'node:fs/promises';

export type ProcessIdentity = {
  readonly boot: string;
  /** The namespace of process ids, such as `pid:[4026531836]`; no two that exist have the same name. */
  readonly namespace: string;
  readonly pid: number;
  /** Clock ticks from the boot to the start of the process. */
  readonly started: string;
};

/** Place of the start time in /proc/PID/stat (proc(5), field 22), counted behind the name of the program. */
const STARTED_AT = 19;

function startedOf(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const started = fields[STARTED_AT];
  return started !== undefined && /^\d+$/.test(started) ? started : undefined;
}

/** True when /proc shows the processes of this very namespace, and all of them. */
function isTrustworthy(pid: string, status: string, mounts: string): boolean {
  // Seen from the namespace that /proc was mounted for; more than one id where that is an outer one.
  const ids = /^NSpid:\s+(.+)$/m.exec(status)?.[1]?.trim().split(/\s+/);
  if (ids?.length !== 1 || ids[0] !== pid) return false;
  return !/ - proc .*\b(?:hidepid|subset)=/m.test(mounts);
}

/** The identity of this process; `undefined` where it cannot be known, as outside Linux. */
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
    const started = startedOf(stat);
    if (started === undefined || !isTrustworthy(pid, status, mounts)) return undefined;
    return { boot: boot.trim(), namespace, pid: Number(pid), started };
  } catch {
    return undefined;
  }
}

/**
 * True when the process of that identity has certainly ended. Only a process of the same boot and the same
 * namespace can tell; a namespace whose name came up again has ended with all its processes.
 */
export async function isGone(other: ProcessIdentity, own: ProcessIdentity): Promise<boolean> {
  if (other.boot !== own.boot || other.namespace !== own.namespace) return false;
  try {
    const started = startedOf(await readFile(`/proc/${other.pid}/stat`, 'latin1'));
    return started !== undefined && started !== other.started;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return code === 'ENOENT' || code === 'ESRCH';
  }
}
