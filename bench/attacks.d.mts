// Types of attacks.mjs for its tests; the command that runs it has no compiler.

export type Attack = {
  readonly name: string;
  readonly attack: unknown;
  readonly proof: string;
};

export const ATTACKS: readonly Attack[];
