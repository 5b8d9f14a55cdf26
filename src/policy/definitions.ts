// The types of pinned definitions as decisions use them: the pin, its state, and the schemas that check
// arguments. pins/ makes these values; decisions only read them.

import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import type { UriReadings } from './uris.js';

/**
 * The kinds that are pinned. `resource` is the content of a `ui://` resource that a tool refers to; all
 * other concrete resources are decided by URI rules alone (docs/reference/definitions.md).
 */
export type PinKind = 'tool' | 'prompt' | 'template' | 'resource';

/**
 * `approved`: pinned, approved, and last listed by the upstream in exactly that form. `pending`: in the lock
 * file, not approved. `unpinned`: not in the lock file. `changed`: listed in a form that differs from every
 * approved one. `absent`: approved, but not in the last listing. `blocked`: by a reviewer. `invalid`:
 * approved, but unusable (hostile schema, invalid x-mcp-header). `shadowed`: in an aggregate, where it looks
 * like a definition of another backend. `poisoned`: offered in a form that nobody approved and in which the scan
 * found what keeps it from being used, or that could not be scanned.
 */
export type PinState =
  | 'approved'
  | 'pending'
  | 'unpinned'
  | 'changed'
  | 'absent'
  | 'blocked'
  | 'invalid'
  | 'shadowed'
  | 'poisoned';

/** One error in arguments or a result: position and expectation, never the value. */
export type SchemaError = {
  readonly pointer: string;
  /** The keyword of the schema that failed. */
  readonly keyword: string;
  readonly message: string;
  /** For a member that is required: its name, which the schema has. */
  readonly missing?: string;
  /** For a member that the schema closes its object to: its name, which the value has. */
  readonly undeclared?: string;
};

/** Which members of a value a rule reads. Made by policy/conditions.ts. */
export type ArgumentReads = {
  /** Every member is read, at any depth. */
  readonly readsAll: boolean;
  /**
   * What is read of an object, by name; an entry that reads nothing means that only the member's presence is
   * tested.
   */
  readonly members: ReadonlyMap<string, ArgumentReads>;
  /** What is read of each item of an array. */
  readonly items: ArgumentReads | undefined;
  /** The names of `members` and of what is read below them, in one form for all their spellings. */
  readonly normalizedNames: ReadonlySet<string>;
  /** Those of `members` of which every member or item is read, so that a path into them is read too. */
  readonly fullyRead: ReadonlySet<string>;
};

/** How a schema is compiled where its dialect leaves a choice. */
export type SchemaOptions = {
  /** Whether the formats whose syntax is simple are asserted; otherwise every format is an annotation. */
  readonly formats?: 'annotation' | 'assertion' | undefined;
  /** Whether a required member that has a default may be absent: the default is the server's to fill in. */
  readonly defaults?: 'annotation' | 'may-be-absent';
};

/** A compiled JSON Schema. `check` never throws, and its caps bound how long it runs. */
export type CompiledSchema = {
  /** Empty if valid. At most eight errors. */
  check(value: Json): readonly SchemaError[];
  /**
   * Pointer of the first member that is read and that the schema does not describe, or that could be taken
   * for one that is read. Without `reads`, every member at any depth is read.
   */
  firstUndescribed(value: Json, reads?: ArgumentReads): string | undefined;
  /**
   * The first member that the schema neither declares nor leaves open, in a value that `check` found
   * valid. Undefined for a schema that itself says of every object which members it takes.
   */
  readonly firstUndeclared?: ((value: Json) => UndeclaredMember | undefined) | undefined;
  /**
   * A copy of the arguments with the defaults of absent members filled in; the arguments themselves if there are none,
   * undefined if that takes too much work. Absent for a schema without defaults.
   */
  readonly withDefaults?: ((args: JsonObject) => JsonObject | undefined) | undefined;
  /** Whether the schema has a member of this name at the top. */
  declares?(name: string): boolean;
  /** The strings that stand for another type where the schema admits none; empty for a value that is valid as it is. */
  coercions?(args: JsonObject): readonly Coercion[];
};

/** A string that is JSON: the names and indices that lead to it, and the text to put in its place. */
export type Coercion = { readonly path: readonly (string | number)[]; readonly json: string };

/** A member that no schema declares. `shown` has `*` for what is neither an index nor a name of the schema. */
export type UndeclaredMember = { readonly pointer: string; readonly shown: string };

/** What happens to arguments that the schema of a tool does not declare: they are refused, recorded, or ignored. */
export type UndeclaredArguments = 'declared' | 'observe' | 'any';

/** An approved definition, ready for decisions. Compiled once per digest, not once per request. */
export type PinnedDefinition = {
  readonly kind: PinKind;
  readonly name: string;
  readonly digest: string;
  readonly definition: JsonObject;
  readonly input: CompiledSchema | undefined;
  readonly output: CompiledSchema | undefined;
  /** The property paths that `x-mcp-header` mirrors, with the header name after the `Mcp-Param-` prefix. */
  readonly mirrored: readonly { readonly header: string; readonly path: readonly string[] }[];
};

/** What is known of one name: its pin state and, if something is approved, the definition. */
export type DefinitionStatus = {
  readonly state: PinState;
  readonly pinned: PinnedDefinition | undefined;
  /** Without pinning, what the upstream listed last: it describes arguments and results, and approves nothing. */
  readonly listed?: PinnedDefinition | undefined;
  /** Digest of the definition that the upstream listed last. */
  readonly observed: string | undefined;
  /** Nothing was ever listed, so that it is not known whether the upstream offers what is, or would be, approved. */
  readonly isUnverified?: true;
  /** Further approved forms, which no listing of the gateway shows: the upstream may offer them to other callers. */
  readonly variants?: readonly PinnedDefinition[];
};

const NO_VARIANTS: readonly PinnedDefinition[] = [];

/**
 * The approved form that a call uses: which one its caller was offered is not known, so it is the first by which the
 * arguments are valid.
 */
export function approvedFormFor(
  { pinned, variants = NO_VARIANTS }: DefinitionStatus,
  args: Json,
): PinnedDefinition | undefined {
  if (pinned === undefined || variants.length === 0) return pinned;
  return [pinned, ...variants].find(({ input }) => input?.check(args).length === 0) ?? pinned;
}

/** The schema by which results are checked: with several approved forms, one of theirs has to match. */
export function outputOf(status: DefinitionStatus): CompiledSchema | undefined {
  const definition = definitionOf(status);
  const { variants = NO_VARIANTS } = status;
  if (definition?.output === undefined || variants.length === 0) return definition?.output;
  const own = definition.output;
  const others = variants.flatMap(({ output }) => output ?? []);
  // A form without a schema promises nothing.
  if (others.length < variants.length) return undefined;
  const matchOf = (value: Json): CompiledSchema =>
    [own, ...others].find((schema) => schema.check(value).length === 0) ?? own;
  return {
    check: (value) => matchOf(value).check(value),
    firstUndescribed: (value, reads) => matchOf(value).firstUndescribed(value, reads),
  };
}

/** The definition by which arguments, their headers and results are checked. */
export function definitionOf({ listed, pinned }: DefinitionStatus): PinnedDefinition | undefined {
  return listed ?? pinned;
}

/** The first argument that the schema of a definition neither declares nor leaves open. */
export function findUndeclared(
  described: PinnedDefinition | undefined,
  args: JsonObject,
): UndeclaredMember | undefined {
  return described?.input?.firstUndeclared?.(args);
}

/**
 * Whether a schema describes the member at this path, found with a value that has nothing but this path. Numbers in the
 * path may be indexes of arrays.
 */
export function describesMember(schema: CompiledSchema, names: readonly string[]): boolean {
  return [probeOf(names, false), probeOf(names, true)].some((probe) => schema.firstUndescribed(probe) === undefined);
}

/** Maximum index in an array of a probe; further items are described like the item at this index. */
const MAX_PROBED_INDEX = 64;

function probeOf(names: readonly string[], hasLists: boolean): JsonObject {
  const [first = '', ...rest] = names;
  const inner = rest.reduceRight<Json>((value, name) => {
    if (!hasLists || !/^(?:0|[1-9]\d*)$/.test(name)) return { [name]: value };
    const listIndex = Math.min(Number(name), MAX_PROBED_INDEX);
    return [...Array.from({ length: listIndex }, () => null), value];
  }, true);
  return { [first]: inner };
}

/** The definitions of one upstream under one version of the lock file and the last complete listing. */
export interface Catalog {
  readonly upstream: string;
  readonly mode: 'strict' | 'off';
  readonly undeclaredArguments: UndeclaredArguments;
  /** Everything is refused because of a drift (`onDrift: stop-upstream`). */
  readonly isStopped: boolean;
  statusOf(kind: PinKind, name: string): DefinitionStatus;
  /** Whether the lock file approves this form. Absent where nothing is pinned. */
  approves?(kind: PinKind, name: string, digest: string): boolean;
  /** The names that the lock file has. */
  names(kind: PinKind): readonly string[];
  /** The position of a name in lists: the order of the first listing. `undefined` for names that were never listed. */
  rankOf?(kind: PinKind, name: string): number | undefined;
  /** The id of the block of an item; absent where nothing is blocked. */
  readonly blockOf?:
    | ((
        kind: PinKind,
        name: string,
        how: { readonly readings: UriReadings | undefined; readonly isUnpinned: boolean },
      ) => string | undefined)
    | undefined;
  /** Whether the scan keeps this form of a definition from being listed. Absent if only the name decides. */
  withholds?(
    kind: PinKind,
    name: string,
    item: { readonly digest: string; readonly definition: JsonObject | undefined },
  ): boolean;
  /** The approved instructions text, if any. */
  readonly instructions: string | undefined;
}
