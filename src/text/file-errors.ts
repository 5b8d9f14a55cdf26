// Says in words why a file or folder could not be read, by the error code of the system. Never repeats the system's own
// message, which names paths and calls.

const REASONS: ReadonlyMap<unknown, string> = new Map([
  ['ENOENT', 'does not exist'],
  ['ENOTDIR', 'does not exist: a part of its path is no folder'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EPERM', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
  ['ELOOP', 'cannot be read: a symbolic link leads back to itself'],
  ['ENAMETOOLONG', 'cannot be read: its name is too long'],
]);

/** The predicate of a sentence about the file: `does not exist`, `cannot be read: permission denied`. */
export function describeReadError(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : '';
  return REASONS.get(code) ?? 'cannot be read';
}
