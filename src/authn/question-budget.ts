// How many questions a second an issuer is asked. Half of what there is at most goes to tokens that were
// never seen before, so that a flood of them leaves room for callers who are known. No timers.

export type IntrospectionBudget = {
  /** Takes one question; false where none is left for this kind of asker. */
  take(isKnown: boolean): boolean;
};

/** A bucket of `perSecond` questions that fills evenly. `now` is in milliseconds. */
export function createIntrospectionBudget(
  perSecond: number,
  now: () => number,
): IntrospectionBudget {
  const reserve = perSecond / 2;
  let left = perSecond;
  let refilledAt = now();
  return {
    take(isKnown) {
      const at = now();
      // A clock that was set back adds nothing.
      left = Math.min(perSecond, left + (Math.max(0, at - refilledAt) * perSecond) / 1000);
      refilledAt = at;
      if (left < (isKnown ? 1 : reserve + 1)) return false;
      left -= 1;
      return true;
    },
  };
}
