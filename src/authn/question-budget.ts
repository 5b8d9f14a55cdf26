// How many questions a second an issuer is asked. Half of what there is at most goes to tokens that were
// never seen before, so that a flood of them leaves room for callers who are known. No timers.

export type QuestionBudget = {
  /** Takes one question; false where none is left for this kind of asker. */
  take(isKnown: boolean): boolean;
};

/** A bucket of `perSecond` questions that fills evenly. `now` is in milliseconds. */
export function createQuestionBudget(perSecond: number, now: () => number): QuestionBudget {
  const reserve = perSecond / 2;
  let left = perSecond;
  let lookedAt = now();
  return {
    take(isKnown) {
      const at = now();
      // A clock that was set back adds nothing.
      left = Math.min(perSecond, left + (Math.max(0, at - lookedAt) * perSecond) / 1000);
      lookedAt = at;
      if (left < (isKnown ? 1 : reserve + 1)) return false;
      left -= 1;
      return true;
    },
  };
}
