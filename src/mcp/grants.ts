// What a server may ask of a client, as one value: made by policy, used by admission and by whoever
// judges a question. Types and the empty grant only; nothing here decides.
// Source: MCP 2025-11-25 and 2026-07-28, sampling, elicitation, roots.

/** The questions that a server may put to one caller. */
export type Grants = {
  readonly sampling: boolean;
  readonly elicitation: { readonly form: boolean; readonly url: boolean };
  readonly roots: boolean;
};

/** Nothing may be asked. */
export const NO_GRANTS: Grants = Object.freeze({
  sampling: false,
  elicitation: Object.freeze({ form: false, url: false }),
  roots: false,
});
