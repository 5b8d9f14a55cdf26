// What decisions know of definitions: their pin, whether it stands, and how to check arguments.
// pins/ makes these values; decisions only read them.

import type { Json, JsonObject } from '../protocol/jsonrpc.js';

/**
 * The kinds that are pinned. `resource` is the content of a `ui://` resource that a tool refers to; all
 * other concrete resources are decided by URI rules alone (docs/contract.md §5).
 */
export type PinKind = 'tool' | 'prompt' | 'template' | 'resource';

/**
 * `approved`: pinned, approved, and last seen upstream exactly so. `pending`: in the lock file, not approved.
 * `unpinned`: not in the lock file. `changed`: seen upstream different from every approved definition.
 * `absent`: approved but not offered upstream at the last listing. `blocked`: by a reviewer.
 * `invalid`: approved, but unusable (hostile schema, invalid x-mcp-header).
 * `shadowed`: at an endpoint of several upstreams, where it looks like a definition of another one.
 */
export type PinState =
  | 'approved'
  | 'pending'
  | 'unpinned'
  | 'changed'
  | 'absent'
  | 'blocked'
  | 'invalid'
  | 'shadowed';

/** One mistake in arguments or a result: positions and expectations, never the value. */
export type SchemaError = { readonly pointer: string; readonly message: string };

/** Which members of a value are read by a rule. Made by policy/conditions.ts. */
export type ArgumentReads = {
  /** Every member is read, at any depth. */
  readonly readsAll: boolean;
  /** What is read of an object, by name; with nothing below, only that the member is there. */
  readonly members: ReadonlyMap<string, ArgumentReads>;
  /** What is read of each item of a list. */
  readonly items: ArgumentReads | undefined;
  /** The names of `members` and of what is read below them, without what spellings differ in. */
  readonly normalizedNames: ReadonlySet<string>;
  /** Those of `members` of which every member or item is read, so that a path into them is too. */
  readonly fullyRead: ReadonlySet<string>;
};

/** A compiled JSON Schema. `check` never throws and never runs longer than its caps allow. */
export type CompiledSchema = {
  /** Empty when valid. At most eight faults. */
  check(value: Json): readonly SchemaError[];
  /**
   * Pointer of the first member that is read and that the schema does not describe, or that could stand for
   * one that is read. Without `reads`, every member at any depth is read.
   */
  firstUndescribed(value: Json, reads?: ArgumentReads): string | undefined;
};

/** An approved definition, ready for decisions. Compilation is done once a digest, not once a request. */
export type PinnedDefinition = {
  readonly kind: PinKind;
  readonly name: string;
  readonly digest: string;
  readonly definition: JsonObject;
  readonly input: CompiledSchema | undefined;
  readonly output: CompiledSchema | undefined;
  /** Property paths that `x-mcp-header` mirrors, by header name without the `Mcp-Param-` prefix. */
  readonly mirrored: readonly { readonly header: string; readonly path: readonly string[] }[];
};

/** What stands for one name: its pin state and, where something is approved, the definition. */
export type Standing = {
  readonly state: PinState;
  readonly pinned: PinnedDefinition | undefined;
  /** Without pinning, what the upstream listed last: it describes arguments and results, and approves nothing. */
  readonly listed?: PinnedDefinition | undefined;
  /** Digest of what was last seen upstream. */
  readonly observed: string | undefined;
};

/** The definition by which arguments, their headers and results are checked. */
export function definitionOf({ listed, pinned }: Standing): PinnedDefinition | undefined {
  return listed ?? pinned;
}

/** The definitions of one upstream under one version of the lock file and the last complete listing. */
export interface Catalogue {
  readonly upstream: string;
  readonly mode: 'strict' | 'off';
  /** Everything is stopped because of a drift (`onDrift: stop-upstream`). */
  readonly isStopped: boolean;
  standing(kind: PinKind, name: string): Standing;
  names(kind: PinKind): readonly string[];
  /** Where a name stands in lists: as it was first listed. `undefined` for names that no listing showed. */
  rankOf?(kind: PinKind, name: string): number | undefined;
  /** The approved instructions text, if any. */
  readonly instructions: string | undefined;
}
