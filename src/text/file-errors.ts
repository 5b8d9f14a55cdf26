// Reads the codes of errors, and says in words why a file or folder could not be read. Never repeats the message of the
// error, which names paths and calls.

const REASONS: ReadonlyMap<unknown, string> = new Map([
  ['ENOENT', 'does not exist'],
  ['ENOTDIR', 'does not exist: a part of its path is no folder'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EPERM', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
  ['ELOOP', 'cannot be read: a symbolic link leads back to itself'],
  ['ENAMETOOLONG', 'cannot be read: its name is too long'],
]);

/** The `code` of an error, such as `ENOENT`; `undefined` if it has none. */
export function systemErrorCode(error: unknown): string | undefined {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The predicate of a sentence about the file: `does not exist`, `cannot be read: permission denied`. */
export function describeReadError(error: unknown): string {
  return REASONS.get(systemErrorCode(error)) ?? 'cannot be read';
}
