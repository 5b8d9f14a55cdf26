// How long work shares the event loop. Whoever does it says how much time it took, and asks before it goes on.

export type LoopScheduler = {
  /** Notes that the loop was used since `sinceMs` (of performance.now()); returns the time it is now. */
  spend(sinceMs: number): number;
  /** Nothing where the work may go on at once; otherwise what resolves when it is the upstream's turn. */
  take(upstream: string): Promise<void> | undefined;
};
