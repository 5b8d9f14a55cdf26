// Types of dependencies.mjs, which is plain JavaScript because it runs before anything is installed.

/** Starts a program and resolves with its exit code. */
export type Run = (
  command: string,
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly env?: { readonly [name: string]: string | undefined };
    readonly onStderr?: (text: string) => void;
  },
) => Promise<number>;

export function isInstalled(root: string): boolean;
export function digestOfSources(root: string, names?: readonly string[]): string;
export function isBuilt(root: string): boolean;
export const runProgram: Run;
export function prepare(
  root: string,
  ports?: {
    readonly run?: Run;
    readonly env?: { readonly [name: string]: string | undefined };
    readonly say?: (line: string) => void;
  },
): Promise<number>;
