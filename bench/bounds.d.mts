// Types of bounds.mjs for its tests; the command that runs it has no compiler.

export type HostileRun = {
  readonly idleP99Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
  readonly blockMs: number;
  readonly peakMb: number;
  readonly died: boolean;
  readonly proof: number;
  /** How a second caller of the attacked upstream was served, where the attack has one. */
  readonly beside?: { readonly calls: number; readonly errors: number };
};

export function p99Bound(run: Pick<HostileRun, 'idleP99Ms'>): number;
export function brokenBounds(run: HostileRun): string[];
