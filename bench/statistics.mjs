// What paired samples say: the median of their ratios and an interval for it. Pure functions.
//
// The interval is the one of order statistics: whatever the ratios are distributed like, the number of
// them below the true median is binomial with one half, so two of the sorted ratios enclose it with a
// known confidence. Nothing is assumed of outliers, and a sample that a collection fell into costs no more
// than its place in the order.
//
// That holds for independent pairs. Those of one launch (one process of each build) share what these two
// processes differ by, so the same interval is also found by resampling launches and then their pairs, and
// the outer bounds of both are given.

export const CONFIDENCE = 0.95;
const RESAMPLES = 2_000;

/** The middle value; of an even number the mean of the middle two. */
export function medianOf(values) {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** How many of the sorted values to leave out at either end; -1 where there are too few of them. */
function ranksToLeaveOut(count, confidence) {
  const tail = (1 - confidence) / 2;
  let term = 0.5 ** count;
  let below = term;
  let rank = -1;
  while (below <= tail) {
    rank += 1;
    term *= (count - rank) / (rank + 1);
    below += term;
  }
  return rank;
}

/** The interval of the median with at least this confidence; `undefined` for fewer than six values. */
export function medianInterval(values, confidence = CONFIDENCE) {
  const rank = ranksToLeaveOut(values.length, confidence);
  if (rank < 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  return { low: sorted[rank], high: sorted[sorted.length - 1 - rank] };
}

/** A generator of numbers below one that is the same in every run, so that figures can be computed again. */
function seeded(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const drawFrom = (values, random) => values[Math.floor(random() * values.length)];

/** The interval of the median over launches: launches are drawn with replacement, then pairs of each. */
export function launchInterval(launches, confidence = CONFIDENCE, random = seeded(1)) {
  const medians = Array.from({ length: RESAMPLES }, () =>
    medianOf(
      launches.flatMap(() => {
        const pairs = drawFrom(launches, random);
        return pairs.map(() => drawFrom(pairs, random));
      }),
    ),
  ).sort((a, b) => a - b);
  const at = Math.floor(((1 - confidence) / 2) * RESAMPLES);
  return { low: medians[at], high: medians[RESAMPLES - 1 - at] };
}

/** The interval of paired ratios, given by launch: the outer bounds of both. */
export function ratioInterval(launches) {
  const ofPairs = medianInterval(launches.flat());
  if (ofPairs === undefined) return undefined;
  const ofLaunches = launchInterval(launches);
  return {
    low: Math.min(ofPairs.low, ofLaunches.low),
    high: Math.max(ofPairs.high, ofLaunches.high),
  };
}

/** Width of an interval of ratios in percentage points. */
export const widthOf = ({ low, high }) => (high - low) * 100;

/** Percent by which the new build is dearer for certain: the lower end of the interval, 0 where below one. */
export const dearerBy = ({ low }) => Math.max(0, (low - 1) * 100);

/**
 * What the ratios of one scenario say, given by launch. `none`: the interval is wider than allowed, or there
 * are too few pairs. `dearer`: its lower end lies above what is allowed.
 */
export function judgeRatios(launches, { minPairs, maxWidth, maxDearer }) {
  const ratios = launches.flat();
  const interval = ratioInterval(launches);
  const median = medianOf(ratios);
  if (interval === undefined || ratios.length < minPairs || widthOf(interval) > maxWidth)
    return { kind: 'none', median, interval };
  const isDearer = maxDearer !== undefined && dearerBy(interval) > maxDearer;
  return { kind: isDearer ? 'dearer' : 'result', median, interval };
}

/**
 * `true` where more pairs are wanted: no result yet, and not at the bound. What stops it is the width of the
 * interval, never the side of one on which it lies.
 */
export function wantsMore(launches, { minPairs, maxPairs, maxWidth }) {
  const pairs = launches.flat().length;
  if (pairs < minPairs) return true;
  return pairs < maxPairs && judgeRatios(launches, { minPairs, maxWidth }).kind === 'none';
}

/** Which of two comes first in each of `count` pairs: both as often, in an order drawn by `random`. */
export function drawOrders(count, random = Math.random) {
  const orders = Array.from({ length: count }, (_, at) => at % 2 === 0);
  for (let at = count - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [orders[at], orders[other]] = [orders[other], orders[at]];
  }
  return orders;
}
