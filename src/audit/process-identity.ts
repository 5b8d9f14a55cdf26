// Identifies this process so that another one on the same machine can find out whether it still runs. A
// process id is not enough: containers that share a folder have their own pid namespaces, and pids are reused.
// An identity therefore consists of the boot id, the pid namespace, the pid and the start time. If one of
// them cannot be read reliably there is no identity, and no process is considered ended.

import { readFile, readlink } from 'node:fs/promises';
import { systemErrorCode } from '../text/file-errors.js';

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
export async function hasProcessEnded(
  other: ProcessIdentity,
  own: ProcessIdentity,
): Promise<boolean> {
  if (other.boot !== own.boot || other.namespace !== own.namespace) return false;
  try {
    const started = startTimeOf(await readFile(`/proc/${other.pid}/stat`, 'latin1'));
    return started !== undefined && started !== other.started;
  } catch (error) {
    const code = systemErrorCode(error);
    return code === 'ENOENT' || code === 'ESRCH';
  }
}
