// What a hostile upstream may do to others, and whether a run kept to it. Pure functions.

export const MAX_P99_MS = 100;
export const MAX_TIMES_IDLE = 3;
export const MAX_BLOCK_MS = 100;
export const MAX_MEMORY_MB = 600;

/** The largest p99 that the other caller may see in a run. */
export const p99Bound = ({ idleP99Ms }) => Math.max(MAX_P99_MS, MAX_TIMES_IDLE * idleP99Ms);

/** Each bound that a run broke, in words; empty where it kept to all of them. */
export function brokenBounds(run) {
  const broken = [];
  // Written so that what was not measured (NaN) is broken too.
  if (!(run.p99Ms < p99Bound(run))) broken.push(`p99 not below ${p99Bound(run).toFixed(0)} ms`);
  if (run.errors !== 0) broken.push('errors of the other caller');
  if (!(run.blockMs < MAX_BLOCK_MS)) broken.push(`loop blocked for ${MAX_BLOCK_MS} ms or more`);
  if (!(run.peakMb < MAX_MEMORY_MB)) broken.push(`${MAX_MEMORY_MB} MB of memory or more`);
  if (run.beside !== undefined && (run.beside.errors > 0 || run.beside.calls === 0))
    broken.push('a second caller of the attacked upstream was not served');
  if (run.died) broken.push('the gateway died');
  if (run.proof === 0) broken.push('the attack did not take place');
  return broken;
}
