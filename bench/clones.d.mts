/** A generator of numbers from 0 to 1. */
export function randomFrom(seed: number): () => number;
type Definition = { name: string; description: string };
/** The techniques, each a function from a definition to its clone. */
export const CLONES: Readonly<Record<string, (definition: Definition, random: () => number) => Definition>>;
