// Types of statistics.mjs for its tests; the command that runs it has no compiler.

export type Interval = { readonly low: number; readonly high: number };
export type Launches = readonly (readonly number[])[];
export type Judgement = {
  readonly kind: 'none' | 'result' | 'dearer';
  readonly median: number;
  readonly interval: Interval | undefined;
};

export const CONFIDENCE: number;
export function medianOf(values: readonly number[]): number;
export function medianInterval(values: readonly number[], confidence?: number): Interval | undefined;
export function launchInterval(launches: Launches, confidence?: number, random?: () => number): Interval;
export function ratioInterval(launches: Launches): Interval | undefined;
export function widthOf(interval: Interval): number;
export function dearerBy(interval: Interval): number;
export function judgeRatios(
  launches: Launches,
  bounds: {
    readonly minPairs: number;
    readonly maxWidth: number;
    readonly maxDearer?: number | undefined;
  },
): Judgement;
export function wantsMore(
  launches: Launches,
  bounds: { readonly minPairs: number; readonly maxPairs: number; readonly maxWidth: number },
): boolean;
export function drawOrders(count: number, random?: () => number): boolean[];
