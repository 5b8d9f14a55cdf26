// Who is told when a version was applied or somebody was revoked: listeners for good, and the open streams,
// which come and go with every exchange.

export type Followers = {
  /** Tells `told` from now on, until the returned function is called. */
  follow(told: () => void): () => void;
  /** Tells everyone who follows, in no order. */
  tell(): void;
};

type Follower = { readonly told: () => void; at: number };

/**
 * Nobody follows yet. An array, not a Set, for the reason that live-table.ts gives.
 */
export function createFollowers(): Followers {
  const followers: Follower[] = [];

  const isHere = (follower: Follower): boolean => followers[follower.at] === follower;

  function leave(follower: Follower): void {
    if (!isHere(follower)) return;
    const last = followers.pop();
    if (last === undefined || last === follower) return;
    followers[follower.at] = last;
    last.at = follower.at;
  }

  return {
    follow(told) {
      const follower = { told, at: followers.length };
      followers.push(follower);
      return () => leave(follower);
    },
    tell() {
      for (const follower of [...followers]) if (isHere(follower)) follower.told();
    },
  };
}
