// Types of options.mjs for its tests; the command that runs it has no compiler.

export type BenchOptions =
  | { readonly kind: 'fault'; readonly sentence: string }
  | { readonly kind: 'idle-streams' | 'tokens' }
  | {
      readonly kind: 'run';
      readonly quick: boolean;
      readonly pairs: boolean;
      readonly peer: string | undefined;
      readonly connections: readonly number[];
      readonly scenarios: readonly string[];
      readonly seconds: number;
      readonly rounds: number;
    }
  | {
      readonly kind: 'against';
      readonly dir: string;
      readonly seconds: number;
      readonly connections: readonly number[];
      readonly scenarios: readonly string[];
      readonly maxWidth: number;
      readonly maxDearer: number | undefined;
      readonly minPairs: number;
      readonly maxPairs: number;
      readonly minutes: number;
    }
  | {
      readonly kind: 'hostile';
      readonly dir: string | undefined;
      readonly attacks: readonly string[];
      readonly runs: number;
    };

export function readOptions(args: readonly string[]): BenchOptions;
