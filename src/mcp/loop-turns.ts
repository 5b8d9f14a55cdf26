// How long work shares the event loop. Whoever does it says how much time it took, and asks before it goes on.

export type LoopTurns = {
  /** Notes time that was spent on the loop, in milliseconds. */
  spend(ms: number): void;
  /** Nothing where the work may go on at once; otherwise what resolves when it is the upstream's turn. */
  take(upstream: string): Promise<void> | undefined;
};
