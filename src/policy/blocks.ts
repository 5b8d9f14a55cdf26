// Blocks: what an administrator has switched off while the gateway runs. Here is what a block may name, and the blocks
// in force at one upstream in the form that a decision reads. They are kept with the revocations (state/revocations.ts),
// and reach decisions through the snapshot, so nothing is looked up where nothing is blocked. docs/contract.md §10.

import { type Refusal, refuseWith } from './decision.js';

/** The kinds of items that can be blocked one by one. */
type BlockedKind = 'tool' | 'prompt' | 'template' | 'resource';

/** What a block names. Issuers are named by their identifiers, resources by their normalized URIs. */
export type BlockTarget =
  | { readonly target: 'everything' }
  | { readonly target: 'upstream'; readonly upstream: string }
  | { readonly target: BlockedKind; readonly upstream: string; readonly name: string }
  | { readonly target: 'subject'; readonly issuer: string; readonly subject: string }
  | { readonly target: 'client'; readonly issuer: string; readonly client: string };

/** All targets, in the order in which they are counted and shown. */
export const BLOCK_TARGETS = [
  ...(['tool', 'prompt', 'template', 'resource'] as const),
  ...(['upstream', 'subject', 'client', 'everything'] as const),
] as const satisfies readonly BlockTarget['target'][];

/** The blocks in force at one upstream, by their ids. */
export type UpstreamBlocks = {
  /** The ids of all of them, as one text. */
  readonly ids: string;
  /** The block of the whole upstream, or of everything. */
  readonly entire: string | undefined;
  /** The block of one item, or the one of the whole upstream. */
  of(kind: BlockedKind, name: string): string | undefined;
};

/** The blocks that concern an upstream; `undefined` if there are none. */
export function blocksAt(
  upstream: string,
  blocks: ReadonlyMap<string, BlockTarget>,
): UpstreamBlocks | undefined {
  const items = new Map<string, string>();
  const ids: string[] = [];
  let entire: string | undefined;
  for (const [id, block] of blocks) {
    if (block.target === 'everything') entire ??= id;
    else if (!('upstream' in block) || block.upstream !== upstream) continue;
    else if (block.target === 'upstream') entire ??= id;
    else items.set(itemKey(block.target, block.name), id);
    ids.push(id);
  }
  if (ids.length === 0) return undefined;
  return {
    ids: ids.sort().join(' '),
    entire,
    of: (kind, name) => items.get(itemKey(kind, name)) ?? entire,
  };
}

function itemKey(kind: BlockedKind, name: string): string {
  return `${kind} ${name}`;
}

/** The rule that the record of a refused request names for a block. */
export function blockRule(id: string): { readonly policy: string; readonly rule: string } {
  return { policy: 'builtin', rule: `block:${id}` };
}

/** The refusal of whoever is blocked: a caller, an upstream or everything. */
export function refuseBlocked(id: string): Refusal {
  return refuseWith('blocked', blockRule(id));
}
