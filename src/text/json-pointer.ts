// JSON pointers (RFC 6901 §3).

/** Appends a member or an index to a pointer. */
export function pointerTo(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The pointer of a path. */
export function pointerOf(steps: readonly (string | number)[]): string {
  let pointer = '';
  for (const step of steps) pointer = pointerTo(pointer, String(step));
  return pointer;
}

/** The names and indices of a pointer, from the root on. */
export function stepsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}
