// Types of check.mjs, which stays plain JavaScript because the command that runs it has no compiler.

export type Outcome = {
  readonly listed: readonly string[];
  readonly called: string;
  readonly leaked: string;
  readonly hidden: string;
  readonly unknown: string;
};

export function checkClient(
  order: { readonly hidden: string; readonly unknown: string },
  upstream: {
    readonly call: { readonly name: string };
    readonly leak: { readonly name: string };
    readonly approved?: { readonly name: string };
    readonly expect: string;
    readonly secret: string;
  },
  found: Outcome,
): readonly string[];

export function checkApproval(
  approved: { readonly expect: string },
  before: readonly string[],
  after: readonly string[],
): readonly string[];
