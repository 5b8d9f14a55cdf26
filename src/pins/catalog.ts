// The catalog of an upstream, where drift is noticed: it compares each pin of the lock file with what the upstream was
// last seen to offer, and the decision hides and refuses by it (lock-differences.ts only reports). A name is approved if
// an approved definition was seen and no other. Names are compared exactly: names that differ in case or by a look-alike
// letter are different. docs/reference/definitions.md; MCP 2026-07-28, tools (x-mcp-header).

import type {
  Catalog,
  CompiledSchema,
  DefinitionStatus,
  PinKind,
  PinnedDefinition,
  SchemaOptions,
  UndeclaredArguments,
} from '../policy/definitions.js';
import { findSessionShapeError, findShapeError } from '../protocol/definition-shape.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { type ClientProfile, isSameProfile, type ListKind } from '../protocol/methods.js';
import { BoundedMap } from '../state/bounds.js';
import { stepsOf } from '../text/json-members.js';
import { contentOf, NO_DIGEST } from './digest.js';
import {
  areNotesFull,
  isKindRead,
  lastNoted,
  type Observed,
  type ObservedItem,
  type ObservedListing,
  observedItemsOf,
  observedNames,
  shownItemsOf,
} from './last-seen.js';
import { approvedVersions, byKind, type Lock, PIN_KINDS, type Pin, type PinVersion, versionsOf } from './lock.js';

export type CatalogInput = {
  readonly upstream: string;
  /** Without a lock file, nothing is pinned. */
  readonly lock: Lock | undefined;
  /** Without an observation, nothing is approved: every pin is `absent`. */
  readonly observed: Observed | undefined;
  readonly mode: 'strict' | 'off';
  /**
   * What may be approved while nothing was listed: what the lock file approves, or any name if the first listing is
   * trusted. Absent in a catalog that is about the lock file alone.
   */
  readonly unverified?: 'approved' | 'any';
  readonly onDrift: 'hide-tool' | 'stop-upstream';
  readonly undeclaredArguments: UndeclaredArguments;
  /** Whether formats are asserted; they are annotations if this is absent. */
  readonly formats?: SchemaOptions['formats'];
  readonly compile: CompileDefinition;
  /** Whether the scan keeps what nobody approved from being used; absent if it withholds nothing. */
  readonly isWithheld?: WithheldByScan | undefined;
  /**
   * If the upstream offers different, approved definitions to different client profiles, the one offered to
   * this profile must be listed to the client and is what arguments and results are checked against.
   */
  readonly clientProfile?: ClientProfile;
};

/** Decides about one definition that nobody approved. `mustBeScanned`: one that was not scanned is withheld too. */
export type WithheldByScan = (definition: JsonObject | undefined, mustBeScanned: boolean) => boolean;

type PinComparison = {
  /** `invalid`: the name occurred more than once in one listing. */
  readonly state: DefinitionStatus['state'];
  readonly approved: readonly PinVersion<Pin['definition']>[];
  readonly observedItems: readonly ObservedItem[];
};

/** The catalog of one upstream. Immutable; standings and schemas are computed on first use and kept. */
export function createCatalog(input: CatalogInput): Catalog {
  const { upstream, lock, observed, mode } = input;
  const statuses = byKind(() => new Map<string, DefinitionStatus>());
  const ranks: { [kind in PinKind]?: ReadonlyMap<string, number> } = {};
  return {
    upstream,
    mode,
    undeclaredArguments: input.undeclaredArguments,
    isStopped: mode === 'strict' && input.onDrift === 'stop-upstream' && hasDrift(lock, observed),
    statusOf(kind, name) {
      const known = statuses[kind].get(name);
      if (known !== undefined) return known;
      const pin = lock?.pins[kind].get(name);
      const listed = mode === 'off' ? listedDefinition(input, kind, name) : undefined;
      const status = verifiedStatus(input, statusWith(scannedStatus(input, kind, name, pin), listed));
      // Only pinned or listed names are cached: clients can send any number of other names.
      if (pin !== undefined || listed !== undefined) statuses[kind].set(name, status);
      return status;
    },
    approves: (kind, name, digest) => matchesAny(approvedVersions(lock?.pins[kind].get(name)), [{ digest }]),
    names: (kind) => [...(lock?.pins[kind].keys() ?? [])],
    rankOf(kind, name) {
      ranks[kind] ??= ranksOf(input, kind);
      return ranks[kind].get(name);
    },
    instructions: approvedInstructions(input),
    ...withholding(input),
  };
}

/**
 * Before anything was listed, an approved definition is not absent: the upstream may not have been reached. What nobody
 * approved stays unknown, as it will be after the listing.
 */
function verifiedStatus({ observed, mode, unverified }: CatalogInput, status: DefinitionStatus): DefinitionStatus {
  if (observed !== undefined || mode === 'off' || unverified === undefined) return status;
  const mayBeApproved = status.state === 'absent' || (status.state === 'unpinned' && unverified === 'any');
  return mayBeApproved ? { ...status, isUnverified: true } : status;
}

/** Without pins, a definition that cannot be used for checks is not used at all. */
function statusWith(status: DefinitionStatus, listed: ReturnType<typeof listedDefinition>): DefinitionStatus {
  if (listed === undefined) return status;
  if (listed !== 'unusable') return { ...status, listed };
  return WITHHELD_STATES.has(status.state) ? status : { ...status, state: 'invalid' };
}

/** States that withhold an item without pins. */
const WITHHELD_STATES: ReadonlySet<DefinitionStatus['state']> = new Set(['shadowed', 'poisoned']);

/** The listings for the client profile, or all listings if no profile is given. */
function listingsFor({
  observed,
  clientProfile,
}: Pick<CatalogInput, 'observed' | 'clientProfile'>): readonly ObservedListing[] {
  const listings = observed?.listings ?? [];
  return clientProfile === undefined ? listings : listings.filter((listed) => isSameProfile(listed, clientProfile));
}

/** The position of each name in the listings. */
function ranksOf(input: CatalogInput, kind: PinKind): ReadonlyMap<string, number> {
  const names = listingsFor(input).flatMap((each) => [...each.seen[kind].keys()]);
  const ranks = new Map<string, number>();
  for (const name of names) if (!ranks.has(name)) ranks.set(name, ranks.size);
  return ranks;
}

/** The state by the pin, or `poisoned` where the scan withholds a form that nobody approved. */
function scannedStatus(input: CatalogInput, kind: PinKind, name: string, pin: Pin | undefined): DefinitionStatus {
  const digest = (): string | undefined => observedItemsOf(input.observed, kind, name)[0]?.digest;
  const status: DefinitionStatus =
    pin === undefined
      ? { state: 'unpinned', pinned: undefined, observed: digest() }
      : pinnedStatus(input, kind, name, pin);
  const isPoisoned = status.state !== 'blocked' && isPoisonedName(input, kind, name, pin);
  return isPoisoned ? { ...status, state: 'poisoned' } : status;
}

/** Without pins, a page may show a caller what no listing showed. */
export function withholding({
  isWithheld,
  mode,
  lock,
}: Pick<CatalogInput, 'isWithheld' | 'mode' | 'lock'>): Pick<Catalog, 'withholds'> {
  if (isWithheld === undefined || mode === 'strict') return {};
  return {
    withholds: (kind, name, item) =>
      !matchesAny(approvedVersions(lock?.pins[kind].get(name)), [item]) && isWithheld(item.definition, true),
  };
}

/** Whether a form that nobody approved is offered to anybody under this name, and withheld by the scan. */
function isPoisonedName(
  { isWithheld, observed, mode }: CatalogInput,
  kind: PinKind,
  name: string,
  pin: Pin | undefined,
): boolean {
  if (isWithheld === undefined) return false;
  const approved = approvedVersions(pin);
  const shown = shownItemsOf(observed, kind, name);
  // Names that pages showed were dropped, and this may be one of them. Without pins it could be called.
  if (mode === 'off' && shown.length === 0 && areNotesFull(observed)) return true;
  return shown.some(
    (item) =>
      !matchesAny(approved, [item]) &&
      // Without pins nothing else keeps it from being used.
      isWithheld(item.definition, mode === 'off'),
  );
}

function pinnedStatus(input: CatalogInput, kind: PinKind, name: string, pin: Pin): DefinitionStatus {
  const unseen = isKindRead(input.observed, kind) ? 'absent' : 'approved';
  const comparison = comparePin(pin, observedItemsOf(input.observed, kind, name), unseen);
  const [listedForProfile] = listingsFor(input).flatMap((listed) => listed.seen[kind].get(name) ?? []);
  const seen = findUnapproved(comparison) ?? listedForProfile ?? comparison.observedItems[0];
  const version = chooseVersion(listedForProfile, comparison);
  const compiled = version === undefined ? undefined : input.compile(kind, name, version, input.formats);
  const isUsable = compiled !== undefined && comparison.state !== 'invalid';
  const state = comparison.state === 'approved' && !isUsable ? 'invalid' : comparison.state;
  // Without pinning, a schema that may no longer be the upstream's must not be used for checks.
  const isShown = isUsable && (input.mode === 'strict' || state === 'approved');
  const status = { state, pinned: isShown ? compiled : undefined, observed: seen?.digest };
  if (state !== 'approved' || input.mode === 'off') return status;
  const variants = otherForms(input, kind, name, comparison);
  return variants.length === 0 ? status : { ...status, variants };
}

/**
 * The approved forms that no listing of the gateway shows: the upstream may offer them to other callers. A form that is
 * listed for another client profile is for clients of that profile alone. One that cannot be used is no form.
 */
function otherForms(
  { compile, formats, observed }: CatalogInput,
  kind: PinKind,
  name: string,
  { approved }: PinComparison,
): readonly PinnedDefinition[] {
  const listed = (observed?.listings ?? []).flatMap((each) => each.seen[kind].get(name) ?? []);
  return approved
    .filter((version) => !matchesAny([version], listed))
    .flatMap((version) => compile(kind, name, version, formats) ?? []);
}

/**
 * The definition that the upstream last listed under a name, for the client profile if there are several;
 * `undefined` if it is ambiguous. Approves nothing: it describes arguments and results of upstreams without pinning.
 */
function listedDefinition(input: CatalogInput, kind: PinKind, name: string): PinnedDefinition | 'unusable' | undefined {
  const { observed, compile, formats } = input;
  const observedItems = observedItemsOf(observed, kind, name);
  if (observedItems.some(({ isRepeated }) => isRepeated)) return undefined;
  const [listing] = listingsFor(input).filter(({ seen }) => seen[kind].has(name));
  const ownItem = listing?.seen[kind].get(name) ?? observedItems[0];
  const shown = lastNoted(observed, kind, name, listing?.verifiedAtMs ?? 0) ?? ownItem;
  const { digest, definition } = shown ?? {};
  if (digest === undefined || definition === undefined) return undefined;
  // A definition without a digest needs a cache key that it does not share with another.
  const sha256 = digest === NO_DIGEST ? contentOf(definition).hash : digest;
  return compile(kind, name, { sha256, definition }, formats) ?? 'unusable';
}

/**
 * Compares the definitions seen under a name with its pin. `unseen` is the state of an
 * approved one that is not seen: without a list of its kind it was not removed, and no use of it passes, because the kind
 * is not verified.
 */
function comparePin(
  pin: Pin,
  observedItems: readonly ObservedItem[],
  unseen: 'absent' | 'approved' = 'absent',
): PinComparison {
  const approved = approvedVersions(pin);
  const blocked = versionsOf(pin).filter((version) => version.status === 'blocked');
  const state = (): PinComparison['state'] => {
    if (pin.status === 'blocked' || matchesAny(blocked, observedItems)) return 'blocked';
    if (approved.length === 0) return 'pending';
    if (observedItems.length === 0) return unseen;
    if (observedItems.some((observedItem) => observedItem.isRepeated)) return 'invalid';
    return observedItems.every((observedItem) => matchesAny(approved, [observedItem])) ? 'approved' : 'changed';
  };
  return { state: state(), approved, observedItems };
}

function matchesAny(
  versions: readonly { readonly sha256: string }[],
  observedItems: readonly Pick<ObservedItem, 'digest'>[],
): boolean {
  return versions.some((version) => observedItems.some(({ digest }) => digest === version.sha256));
}

function findUnapproved({ approved, observedItems }: PinComparison): ObservedItem | undefined {
  return observedItems.find((observedItem) => !matchesAny(approved, [observedItem]));
}

/** Chooses the approved version to use. `ownItem`: what is offered to the client profile in question. */
function chooseVersion(
  ownItem: ObservedItem | undefined,
  { approved, observedItems }: PinComparison,
): PinVersion<Pin['definition']> | undefined {
  return (
    approved.find((version) => version.sha256 === ownItem?.digest) ??
    approved.find((version) => matchesAny([version], observedItems)) ??
    approved[0]
  );
}

/** True if an approved definition, or the instructions, are offered in another version. */
function hasDrift(lock: Lock | undefined, observed: Observed | undefined): boolean {
  if (lock === undefined || observed === undefined) return false;
  if (haveInstructionsChanged(lock, observed)) return true;
  return PIN_KINDS.some((kind) => {
    const seen = observedNames(observed, kind);
    return [...lock.pins[kind]].some(([name, pin]) => {
      if (!seen.has(name) || approvedVersions(pin).length === 0) return false;
      const { state } = comparePin(pin, observedItemsOf(observed, kind, name));
      return state === 'changed' || state === 'invalid';
    });
  });
}

function haveInstructionsChanged(lock: Lock, observed: Observed): boolean {
  const approved = approvedVersions(lock.instructions);
  if (approved.length === 0) return false;
  const seen = observed.listings.flatMap((listing) => listing.instructions ?? []);
  return seen.some(({ digest }) => approved.every((version) => version.sha256 !== digest));
}

function approvedInstructions(input: CatalogInput): string | undefined {
  const approved = approvedVersions(input.lock?.instructions);
  const offered = listingsFor(input).flatMap(({ instructions }) => instructions?.digest ?? []);
  const version = approved.find(({ sha256 }) => offered.includes(sha256)) ?? approved[0];
  return version?.definition;
}

/** A place in a definition, and what is wrong there: a sentence that quotes nothing of it. */
export type DefinitionError = { readonly pointer: string; readonly why: string };

type CompiledSchemaResult =
  | {
      readonly ok: true;
      readonly schema: CompiledSchema;
      readonly unchecked?: readonly DefinitionError[];
    }
  | ({ readonly ok: false } & Partial<DefinitionError>);

/** Compiles schemas and finds mirrored parameters: policy/json-schema/validator.ts, protocol/headers.ts. */
export type SchemaCompilers = {
  compileSchema(schema: JsonObject | boolean, options?: SchemaOptions): CompiledSchemaResult;
  mirroredParameters(
    inputSchema: JsonObject,
  ):
    | { readonly valid: true; readonly mirrored: PinnedDefinition['mirrored'] }
    | { readonly valid: false; readonly why?: string };
};

type Version = { readonly sha256: string; readonly definition: JsonObject };

/** Compiles one definition; `undefined` if it cannot be used. Never throws. */
export type CompileDefinition = (
  kind: PinKind,
  name: string,
  version: Version,
  formats?: SchemaOptions['formats'],
) => PinnedDefinition | undefined;

/** What was found out about a definition, perhaps on another thread: whether it can be used. */
export type CheckedDefinition = {
  readonly kind: PinKind;
  readonly name: string;
  readonly version: Version;
  readonly formats?: SchemaOptions['formats'] | undefined;
  readonly isUsable: boolean;
};

/** A compiler that may know of a definition that it can be used before it is compiled. */
export type DefinitionCompiler = CompileDefinition & {
  readonly learn: (checked: CheckedDefinition) => void;
  /** Compiles a definition and keeps only whether it can be used; returns what keeps it from that, or is not checked. */
  readonly check: (definition: Omit<CheckedDefinition, 'isUsable'>) => readonly UnusableDefinition[];
};

/** Compiled definitions that are kept; beyond that, the oldest is removed. Twice as many as one listing may have. */
const MAX_COMPILED = 20_000;
/** As many definitions are kept of which it is known whether they can be used. They are small. */
const MAX_KNOWN = 200_000;

/**
 * Creates a compiler that caches by kind and digest and can be shared by catalogs, so that a definition is
 * compiled once and not per request or reload.
 */
export function createDefinitionCompiler(tools: SchemaCompilers, maxCompiled = MAX_COMPILED): DefinitionCompiler {
  const known = new BoundedMap<string, { readonly pinned: PinnedDefinition | undefined }>(MAX_KNOWN, maxCompiled);
  // The digest covers the name: definitions of one kind with equal digests are equal.
  const keyOf = (kind: PinKind, { sha256 }: Version, formats = 'annotation'): string => `${kind} ${formats} ${sha256}`;
  function compile(...[kind, name, version, formats]: Parameters<CompileDefinition>): PinnedDefinition | undefined {
    const key = keyOf(kind, version, formats);
    const cached = known.get(key);
    if (cached !== undefined) return cached.pinned;
    const compiled = compileDefinition(tools, kind, version.definition, formats);
    const pinned =
      'schemaError' in compiled
        ? undefined
        : { kind, name, digest: version.sha256, definition: version.definition, ...compiled.parts };
    known.set(key, { pinned }, 1);
    return pinned;
  }
  function learn({ kind, name, version, formats, isUsable }: CheckedDefinition): void {
    const key = keyOf(kind, version, formats);
    if (known.get(key) !== undefined) return;
    known.set(key, { pinned: isUsable ? new CheckedPin(tools, { kind, name, version, formats }) : undefined });
  }
  function check(definition: Omit<CheckedDefinition, 'isUsable'>): readonly UnusableDefinition[] {
    const { kind, name, version, formats } = definition;
    const errors = schemaErrorsOf(tools, kind, version.definition, formats);
    learn({ ...definition, isUsable: isUsableWith(errors) });
    return errors.map((schemaError) => ({ kind, name, digest: version.sha256, ...schemaError }));
  }
  return Object.assign(compile, { learn, check });
}

/** Whether a definition with these errors can be used. */
export function isUsableWith(errors: readonly Pick<UnusableDefinition, 'effect'>[]): boolean {
  return errors.every(({ effect }) => effect !== 'unusable');
}

/** A definition that can be used: its schemas are compiled at their first use. */
class CheckedPin implements PinnedDefinition {
  readonly kind: PinKind;
  readonly name: string;
  readonly digest: string;
  readonly definition: JsonObject;
  readonly #compile: () => CompiledDefinition;

  constructor(tools: SchemaCompilers, { kind, name, version, formats }: Omit<CheckedDefinition, 'isUsable'>) {
    this.kind = kind;
    this.name = name;
    this.digest = version.sha256;
    this.definition = version.definition;
    this.#compile = () => compileDefinition(tools, kind, version.definition, formats);
  }

  get input(): CompiledParts['input'] {
    return this.#compiled().input;
  }

  get output(): CompiledParts['output'] {
    return this.#compiled().output;
  }

  get mirrored(): CompiledParts['mirrored'] {
    return this.#compiled().mirrored;
  }

  /** From the first use on, the parts are own members: a call reads them often. */
  #compiled(): CompiledParts {
    const compiled = this.#compile();
    // The same code found before that it can be used. Without schemas nothing would be checked.
    if ('schemaError' in compiled) throw new Error('a definition that could be used cannot be compiled');
    const { input, output, mirrored } = compiled.parts;
    const own = { enumerable: true };
    Object.defineProperties(this, {
      input: { ...own, value: input },
      output: { ...own, value: output },
      mirrored: { ...own, value: mirrored },
    });
    return compiled.parts;
  }
}

type CompiledParts = Pick<PinnedDefinition, 'input' | 'output' | 'mirrored'>;

/** What a definition is checked by, with what of it is not checked; or why it cannot be used. */
type CompiledDefinition =
  | { readonly parts: CompiledParts; readonly unchecked: readonly DefinitionError[] }
  | { readonly schemaError: DefinitionError };

/** The list that shows a kind; the content of a `ui://` resource is in none. */
const LIST_OF: { readonly [kind in PinKind]: ListKind | undefined } = {
  tool: 'tools',
  prompt: 'prompts',
  template: 'templates',
  resource: undefined,
};

const NO_SCHEMAS: CompiledParts = { input: undefined, output: undefined, mirrored: [] };

/** Compiles the schemas of one definition. Never throws. */
export function compileDefinition(
  tools: SchemaCompilers,
  kind: PinKind,
  definition: JsonObject,
  formats: SchemaOptions['formats'] = 'annotation',
): CompiledDefinition {
  const list = LIST_OF[kind];
  const shape = list && findShapeError(list, definition);
  if (shape !== undefined) return { schemaError: shape };
  if (kind !== 'tool') return { parts: NO_SCHEMAS, unchecked: [] };
  try {
    return compileTool(tools, definition, formats);
  } catch {
    // Schemas come from upstreams: one that makes the compiler throw is treated as unusable.
    return { schemaError: { pointer: '', why: 'the definition could not be read' } };
  }
}

function compileTool(
  tools: SchemaCompilers,
  { inputSchema, outputSchema }: JsonObject,
  formats: SchemaOptions['formats'],
): CompiledDefinition {
  if (!isObject(inputSchema)) return { schemaError: { pointer: '/inputSchema', why: 'it is no object' } };
  const input = tools.compileSchema(inputSchema, { formats, defaults: 'may-be-absent' });
  if (!input.ok) return { schemaError: schemaErrorIn('/inputSchema', input) };
  const mirrored = tools.mirroredParameters(inputSchema);
  if (!mirrored.valid)
    return {
      schemaError: { pointer: '/inputSchema', why: mirrored.why ?? 'x-mcp-header is not valid' },
    };
  const parts = { input: input.schema, output: undefined, mirrored: mirrored.mirrored };
  const unchecked = (input.unchecked ?? []).map((schemaError) => schemaErrorIn('/inputSchema', schemaError));
  if (outputSchema === undefined) return { parts, unchecked };
  if (!isObject(outputSchema) && typeof outputSchema !== 'boolean')
    return {
      schemaError: { pointer: '/outputSchema', why: 'it is neither an object nor a boolean' },
    };
  const output = tools.compileSchema(outputSchema, { formats });
  if (!output.ok) return { schemaError: schemaErrorIn('/outputSchema', output) };
  const more = (output.unchecked ?? []).map((schemaError) => schemaErrorIn('/outputSchema', schemaError));
  return { parts: { ...parts, output: output.schema }, unchecked: [...unchecked, ...more] };
}

function schemaErrorIn(schema: string, { pointer = '', why }: Partial<DefinitionError>): DefinitionError {
  return { pointer: schema + pointer, why: why ?? 'the schema cannot be used' };
}

/** What keeps a definition, which the lock file has with this digest, from being used or shown, or is not checked. */
export type UnusableDefinition = DefinitionError & {
  readonly kind: PinKind;
  readonly name: string;
  readonly digest: string;
  /** `unusable`: neither listed nor callable. `sessions`: left out of lists of revisions with sessions. */
  readonly effect: 'unusable' | 'sessions' | 'unchecked';
  /** The pattern that is not checked. */
  readonly pattern?: string;
};

/** The schemaErrors of the definitions of a lock file that are approved, and of those that are pending if they count. */
export function findSchemaErrors(
  lock: Lock | undefined,
  tools: SchemaCompilers,
  formatsOf: SchemaOptions['formats'] = 'annotation',
  withPending = false,
): readonly UnusableDefinition[] {
  if (lock === undefined) return [];
  return PIN_KINDS.flatMap((kind) =>
    [...lock.pins[kind]].flatMap(([name, pin]) =>
      versionsOf(pin)
        .filter(({ status }) => status === 'approved' || (withPending && status === 'pending'))
        .flatMap(({ sha256: digest, definition }) =>
          schemaErrorsOf(tools, kind, definition, formatsOf).map((schemaError) => {
            return { kind, name, digest, ...schemaError };
          }),
        ),
    ),
  );
}

function schemaErrorsOf(
  tools: SchemaCompilers,
  kind: PinKind,
  definition: JsonObject,
  formats: SchemaOptions['formats'] = 'annotation',
): readonly Omit<UnusableDefinition, 'kind' | 'name' | 'digest'>[] {
  const compiled = compileDefinition(tools, kind, definition, formats);
  if ('schemaError' in compiled) return [{ ...compiled.schemaError, effect: 'unusable' }];
  const list = LIST_OF[kind];
  const shape = list && findSessionShapeError(list, definition);
  return [
    ...(shape === undefined ? [] : [{ ...shape, effect: 'sessions' } as const]),
    ...compiled.unchecked.map((schemaError) => {
      const pattern = textAt(definition, schemaError.pointer);
      return { ...schemaError, effect: 'unchecked', ...(pattern && { pattern }) } as const;
    }),
  ];
}

/** The text at a pointer into a definition; undefined if there is none. */
function textAt(definition: JsonObject, pointer: string): string | undefined {
  let value: Json | undefined = definition;
  for (const step of stepsOf(pointer)) {
    const holder: Json | undefined = value;
    value = Array.isArray(holder)
      ? (holder as readonly Json[])[Number(step)]
      : isObject(holder)
        ? ownMember(holder, step)
        : undefined;
  }
  return typeof value === 'string' ? value : undefined;
}

/** Longer patterns are cut where they are shown. */
const MAX_SHOWN_PATTERN = 120;

const EFFECTS: { readonly [effect in UnusableDefinition['effect']]: string } = {
  unusable: 'cannot be used, and is neither listed nor callable',
  sessions: 'is left out of lists for clients of revisions before 2026-07-28, which cannot read it',
  unchecked: 'is checked but for one pattern, so that texts which do not match it pass the gateway',
};

/** What becomes of a definition and why, for an operator. The place has names that the upstream chose. */
export function describeSchemaError({
  effect,
  pointer,
  why,
  pattern,
}: Omit<UnusableDefinition, 'kind' | 'name' | 'digest'>): string {
  const place = pointer === '' ? '' : `${pointer.slice(1)}: `;
  const shown = pattern === undefined ? '' : `${JSON.stringify(pattern.slice(0, MAX_SHOWN_PATTERN))}: `;
  return `${EFFECTS[effect]}: ${place}${shown}${why}`;
}
