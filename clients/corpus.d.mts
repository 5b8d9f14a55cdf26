// Types of corpus.mjs, which stays plain JavaScript because the command that runs it has no compiler.

export type OddBody = { readonly title: string; readonly bytes: Uint8Array };

export const corpus: readonly OddBody[];
export const MAX_DEPTH: number;
export const goodCall: string;
export function mutate(random: () => number): Uint8Array;
