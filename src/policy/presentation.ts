// Tools that an operator presents otherwise than the server offers them: under another name or description, and with
// parameters that are fixed, filled in or hidden. Lists are edited after the comparison with pins, and a call is brought
// into the form of the server at admission, so that rules, flows, detectors, approvals and records see what is forwarded.
// Nothing is guessed: a name that two tools would have is no tool's, and a parameter that cannot be hidden hides its tool.
// docs/reference/definitions.md#presentation.

import type { PresentedCall, TextEdit } from '../protocol/admitted-request.js';
import { memberEdits, spanOf } from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject, type Target } from '../protocol/jsonrpc.js';
import { foldName, pointerTo } from '../text/json-members.js';
import { refuseUndeclared } from './conditions.js';
import type { Decision, Deny } from './decision.js';
import { type Catalog, type DefinitionStatus, definitionOf, type PinnedDefinition } from './definitions.js';
import { refersToProperties, type SchemaEdit } from './narrowed-schema.js';
import { foldItemName } from './patterns.js';

/** The presentation of one parameter as it is written: exactly one of the members. */
type WrittenParameter = { readonly value?: unknown; readonly default?: unknown; readonly hide?: true };

/** Tools of an upstream, by the names that it gives them, as they are written. */
export type WrittenPresentation = Readonly<
  Record<
    string,
    {
      readonly name?: string;
      readonly description?: string;
      readonly parameters: Readonly<Record<string, WrittenParameter>>;
    }
  >
>;

export type PresentedTool = {
  /** The name that the upstream gives it, which rules, pins and records have. */
  readonly tool: string;
  /** The name that clients use. */
  readonly name: string;
  readonly description: string | undefined;
  /** What is filled in where it is absent, by parameter. */
  readonly filled: ReadonlyMap<string, Json>;
  /** The parameters that no client may send, by their folded names. */
  readonly withheld: ReadonlyMap<string, string>;
  /** Of these, those that have no value. */
  readonly hidden: ReadonlySet<string>;
  /** Equal for equal presentations of the tool. */
  readonly key: string;
};

export type Presentation = {
  readonly byTool: ReadonlyMap<string, PresentedTool>;
  /** By the name that clients use. */
  readonly byName: ReadonlyMap<string, PresentedTool>;
};

/** Undefined where nothing is presented otherwise. */
export function presentationOf(written: WrittenPresentation): Presentation | undefined {
  const tools = Object.entries(written).map(([tool, one]) => presentedTool(tool, one));
  if (tools.length === 0) return undefined;
  return {
    byTool: new Map(tools.map((one) => [one.tool, one])),
    byName: new Map(tools.map((one) => [one.name, one])),
  };
}

function presentedTool(tool: string, written: WrittenPresentation[string]): PresentedTool {
  const { name = tool, description } = written;
  const parameters = Object.entries(written.parameters);
  const having = (key: keyof WrittenParameter) => parameters.filter(([, one]) => Object.hasOwn(one, key));
  const [fixed, absent, hidden] = [having('value'), having('default'), having('hide')];
  const filled = [
    ...fixed.map(([parameter, { value }]) => [parameter, value as Json] as const),
    ...absent.map(([parameter, one]) => [parameter, one.default as Json] as const),
  ];
  return {
    ...{ tool, name, description },
    filled: new Map(filled),
    withheld: new Map([...fixed, ...hidden].map(([parameter]) => [foldName(parameter), parameter])),
    hidden: new Set(hidden.map(([parameter]) => parameter)),
    key: JSON.stringify(written),
  };
}

/** The name under which clients know a tool of the upstream. */
export function shownName(presentation: Presentation | undefined, tool: string): string {
  return presentation?.byTool.get(tool)?.name ?? tool;
}

/** The tool that a client means: as it is if nothing is presented under or in place of that name. */
export function calledTool(presentation: Presentation, name: string): PresentedTool | 'as-is' | 'unknown' {
  return presentation.byName.get(name) ?? (presentation.byTool.has(name) ? 'unknown' : 'as-is');
}

/** The name of the upstream for the tool that a client means; undefined if the client's is unknown. */
export function ownName(presentation: Presentation | undefined, name: string): string | undefined {
  const called = presentation === undefined ? 'as-is' : calledTool(presentation, name);
  if (called === 'unknown') return undefined;
  return called === 'as-is' ? name : called.tool;
}

/** The edits that bring a call into the form of the server, and what they fill in. */
export type OwnForm = { readonly edits: readonly TextEdit[]; readonly filledIn: readonly string[] };

/** What the client has sent, a fixed parameter among it, stays: it is refused once it is known that the caller sees the tool. */
export function toOwnForm(presented: PresentedTool, text: string, args: JsonObject): OwnForm {
  const absent = [...presented.filled].filter(([name]) => !Object.hasOwn(args, name));
  const set = Object.fromEntries(absent);
  const hasArguments = spanOf(text, ['params', 'arguments']) !== undefined;
  const filling = hasArguments
    ? memberEdits(text, { path: ['params', 'arguments'], set })
    : memberEdits(text, { path: ['params'], set: { arguments: set } });
  const span = presented.name === presented.tool ? undefined : spanOf(text, ['params', 'name']);
  const naming = span === undefined ? [] : [{ ...span, text: JSON.stringify(presented.tool) }];
  const edits = [...naming, ...(absent.length === 0 ? [] : filling)];
  return {
    edits: edits.sort((one, other) => one.start - other.start),
    filledIn: absent.map(([name]) => name),
  };
}

/** The first parameter that was sent and no client may send, in any spelling that some reader takes for it. */
export function withheldIn({ withheld }: PresentedTool, sent: readonly string[]): string | undefined {
  if (withheld.size === 0) return undefined;
  return sent.map((name) => withheld.get(foldName(name))).find((name) => name !== undefined);
}

/** A call as far as its presentation decides about it. */
type DecidedCall = {
  readonly target: Target;
  readonly args: JsonObject | undefined;
  readonly presented?: PresentedCall | undefined;
};

/**
 * Why a call is refused like that of a tool that does not exist: there is none of this name for clients, or the tool is
 * presented otherwise by now than when the call came.
 */
export function refuseUnknown(
  presentation: Presentation | undefined,
  { target, args, presented }: DecidedCall,
): Deny | undefined {
  if (target.kind !== 'tool' || args === undefined) return undefined;
  if (presented?.refused === 'unknown') {
    const detail = `clients know this tool as ${JSON.stringify(shownName(presentation, target.name))}`;
    return { verdict: 'deny', reason: 'tool-unpinned', listed: false, detail };
  }
  if (presented?.key === presentation?.byTool.get(target.name)?.key) return undefined;
  const detail = 'the tool is presented otherwise than when the call came';
  return { verdict: 'deny', reason: 'tool-changed', listed: false, detail };
}

/** What records have in place of a keyword of a schema: the refusal is by the presentation, whatever rules say. */
export const WITHHELD_KEYWORD = 'presented';

/** Refuses a call that has a parameter that no client may send, unless it is refused for what comes before arguments. */
export function refuseWithheld(decision: Decision, presented: PresentedCall | undefined): Decision {
  const refused = presented?.refused;
  if (typeof refused !== 'object') return decision;
  const isEarlier = decision.verdict === 'deny' && decision.reason !== 'arguments-invalid';
  if (isEarlier) return decision;
  const pointer = pointerTo('', refused.parameter);
  // The caller is told what it is told of any parameter that it was not shown.
  const { advice = '' } = refuseUndeclared({ pointer, shown: pointer });
  const violations = [{ pointer, keyword: WITHHELD_KEYWORD }];
  return { verdict: 'deny', reason: 'arguments-invalid', listed: true, advice, violations };
}

/** The edits that show a definition as it is presented, after those that its caller's rules make. */
export function presentDefinition(
  presented: PresentedTool,
  definition: JsonObject,
  narrowing: readonly SchemaEdit[],
): readonly SchemaEdit[] {
  const { tool, name, description, filled, withheld } = presented;
  const edits: SchemaEdit[] = [...narrowing];
  if (name !== tool) edits.push({ path: [], keyword: 'name', value: name });
  if (description !== undefined) edits.push({ path: [], keyword: 'description', value: description });
  const schema = definition['inputSchema'];
  if (!isObject(schema)) return edits;
  const gone = new Set(withheld.values());
  for (const parameter of gone) edits.push({ path: PROPERTIES, keyword: parameter, value: undefined });
  for (const [parameter, value] of filled)
    if (!gone.has(parameter)) edits.push({ path: [...PROPERTIES, parameter], keyword: 'default', value });
  const required = requiredOf(schema, narrowing);
  const left = required.filter((one) => !gone.has(one) && !filled.has(one));
  if (left.length < required.length)
    edits.push({ path: INPUT, keyword: 'required', value: left.length === 0 ? undefined : left });
  return edits;
}

const INPUT = ['inputSchema'];
const PROPERTIES = ['inputSchema', 'properties'];

function requiredOf(schema: JsonObject, narrowing: readonly SchemaEdit[]): readonly string[] {
  const narrowed = narrowing.findLast(({ path, keyword }) => path.length === 1 && keyword === 'required')?.value;
  const required = narrowed ?? schema['required'];
  return Array.isArray(required) ? required.filter((one): one is string => typeof one === 'string') : [];
}

/** Keywords that apply to the object of arguments as a whole: what they say of a parameter cannot be taken out alone. */
const APPLIED_IN_PLACE = [
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', '$ref', '$dynamicRef'],
  ...['dependentRequired', 'dependentSchemas', 'dependencies', 'minProperties', 'maxProperties', 'propertyNames'],
  ...['enum', 'const'],
];

/** Of these, and of what they contain, those that a member concerns whatever its name is. */
const FOR_ANY_MEMBER: ReadonlySet<string> = new Set([
  ...['$ref', '$dynamicRef', 'minProperties', 'maxProperties', 'enum', 'const'],
  ...['additionalProperties', 'unevaluatedProperties', 'patternProperties'],
]);

/** Walking a large schema takes milliseconds, and calls and lists ask again and again. */
const knownErrors = new WeakMap<PresentedTool, WeakMap<JsonObject, { readonly why: string | undefined }>>();

/** Why a definition cannot be presented so, in one clause; undefined if it can. Remembered for the two of them. */
export function presentationError(presented: PresentedTool, definition: JsonObject): string | undefined {
  const ofTool = knownErrors.get(presented) ?? new WeakMap<JsonObject, { readonly why: string | undefined }>();
  const known = ofTool.get(definition);
  if (known !== undefined) return known.why;
  const why = findPresentationError(presented, definition);
  ofTool.set(definition, { why });
  knownErrors.set(presented, ofTool);
  return why;
}

function findPresentationError(presented: PresentedTool, definition: JsonObject): string | undefined {
  const schema = definition['inputSchema'];
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {};
  const withheld = [...presented.withheld.values()];
  const unknown = [...presented.filled.keys(), ...withheld].find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined) return `it has no parameter ${JSON.stringify(unknown)}`;
  if (!isObject(schema)) return undefined;
  for (const name of withheld) {
    const why = withholdingError(schema, properties, { name, isHidden: presented.hidden.has(name) });
    if (why !== undefined) return why;
  }
  const defaults = [...presented.filled.keys()].filter((name) => !withheld.includes(name));
  for (const name of defaults) {
    // One member more can only help to reach a minimum.
    const keyword = keywordOn(schema, name, (one) => one !== 'minProperties');
    if (keyword !== undefined)
      return `its parameter ${JSON.stringify(name)} cannot be filled in, because "${keyword}" of its schema may depend on it`;
  }
  return undefined;
}

/** The first keyword for the arguments as a whole that may speak of a parameter. */
function keywordOn(schema: JsonObject, name: string, concerns: (keyword: string) => boolean): string | undefined {
  return APPLIED_IN_PLACE.find(
    (one) => concerns(one) && Object.hasOwn(schema, one) && speaksOf(one, schema[one], name),
  );
}

/** Why a parameter cannot be kept from clients: calls could not be made, or what they are shown would not hold. */
function withholdingError(
  schema: JsonObject,
  properties: JsonObject,
  { name, isHidden }: { readonly name: string; readonly isHidden: boolean },
): string | undefined {
  const quoted = JSON.stringify(name);
  const twin = Object.keys(properties).find((one) => one !== name && foldName(one) === foldName(name));
  if (twin !== undefined) return `its parameter ${JSON.stringify(twin)} differs from ${quoted} only in case`;
  if (isHidden && isNeeded(schema, properties[name], name))
    return `its parameter ${quoted} is required, and is hidden without a value`;
  // What is hidden without a value is not counted at the server either.
  const keyword = keywordOn(schema, name, (one) => !(isHidden && one === 'maxProperties'));
  if (keyword !== undefined)
    return `its parameter ${quoted} cannot be hidden, because "${keyword}" of its schema may depend on it`;
  return refersToProperties(schema)
    ? `its parameter ${quoted} cannot be hidden, because a part of its schema refers to another part`
    : undefined;
}

/** A required parameter that has a default in the schema may be absent: the server fills it in. */
function isNeeded(schema: JsonObject, property: Json | undefined, name: string): boolean {
  const required = schema['required'];
  const hasDefault = isObject(property) && property['default'] !== undefined;
  return Array.isArray(required) && required.includes(name) && !hasDefault;
}

/** Whether a keyword may speak of a parameter: by its name, through a reference, or by counting and listing members. */
function speaksOf(keyword: string, value: Json | undefined, name: string): boolean {
  if (FOR_ANY_MEMBER.has(keyword)) return value !== true && !(isObject(value) && Object.keys(value).length === 0);
  if (typeof value !== 'object' || value === null) return value === name;
  // The members of `properties` and the like are names, and what is below them is about other values.
  if (NAMED_MEMBERS.has(keyword)) return Object.hasOwn(value, name) || refersAnywhere(value, name);
  return Object.entries(value).some(
    ([key, member]: [string, Json]) => key === name || key === 'pattern' || speaksOf(key, member, name),
  );
}

const NAMED_MEMBERS: ReadonlySet<string> = new Set(['properties', 'items', 'prefixItems', 'contains']);

/** Whether a part of a schema that is about other values has a reference, or the name. */
function refersAnywhere(value: Json, name: string): boolean {
  if (typeof value !== 'object' || value === null) return value === name;
  return Object.entries(value).some(
    ([key, member]: [string, Json]) =>
      key === name || key === '$ref' || key === '$dynamicRef' || refersAnywhere(member, name),
  );
}

/** Whether the upstream has a tool of this name that clients could be shown, now or later. */
type IsNamed = (name: string) => boolean;

/** A tool that cannot be presented as it is written, and why in one clause. */
export type PresentationProblem = {
  readonly tool: string;
  readonly state: 'shadowed' | 'invalid';
  readonly why: string;
};

/** The other tool that clients know by the name of this one. */
function nameTaker({ byTool, byName }: Presentation, name: string): PresentedTool | undefined {
  const other = byName.get(name);
  return other === undefined || other.tool === name || byTool.has(name) ? undefined : other;
}

/** What keeps a tool from being presented as it is written. */
function problemOf(
  presentation: Presentation,
  catalog: Pick<Catalog, 'statusOf'>,
  own: PresentedTool,
  isNamed: IsNamed,
): PresentationProblem | undefined {
  const isRenamed = own.name !== own.tool && !presentation.byTool.has(own.name);
  if (isRenamed && isNamed(own.name))
    return { tool: own.tool, state: 'shadowed', why: `another tool has the name ${JSON.stringify(own.name)}` };
  return unpresentable(own, catalog.statusOf('tool', own.tool));
}

function unpresentable(own: PresentedTool, status: DefinitionStatus): PresentationProblem | undefined {
  const forms: readonly (PinnedDefinition | undefined)[] = [definitionOf(status), ...(status.variants ?? [])];
  for (const form of forms) {
    const why = form && presentationError(own, form.definition);
    if (why !== undefined) return { tool: own.tool, state: 'invalid', why };
  }
  return undefined;
}

/** Every tool that cannot be presented as it is written, each with why. */
export function presentationProblems(
  presentation: Presentation,
  catalog: Pick<Catalog, 'statusOf'>,
  isNamed: IsNamed,
): readonly PresentationProblem[] {
  return [...presentation.byTool.values()].flatMap((own) => problemOf(presentation, catalog, own, isNamed) ?? []);
}

/**
 * A catalog in which tools that cannot be presented as it is written are neither listed nor callable, and none whose name
 * clients know another tool by.
 */
export function presentedCatalog(catalog: Catalog, presentation: Presentation | undefined): Catalog {
  if (presentation === undefined) return catalog;
  const isNamed = namedIn(catalog);
  // Where no pin says which tools there are, a server may take another spelling of a name for the name.
  const spellings = catalog.mode === 'off' ? new Set([...presentation.byTool.keys()].map(foldItemName)) : NO_SPELLINGS;
  const isTaken = (name: string): boolean =>
    nameTaker(presentation, name) !== undefined ||
    (spellings.size > 0 && !presentation.byTool.has(name) && spellings.has(foldItemName(name)));
  const hiddenState = (name: string, { state }: DefinitionStatus): PresentationProblem['state'] | undefined => {
    // What is not in use for another cause keeps its state, by which it is listed again.
    if (catalog.mode !== 'off' && state !== 'approved') return undefined;
    if (isTaken(name)) return 'shadowed';
    const own = presentation.byTool.get(name);
    return own && problemOf(presentation, catalog, own, isNamed)?.state;
  };
  return {
    ...catalog,
    statusOf(kind, name) {
      const status = catalog.statusOf(kind, name);
      const state = kind === 'tool' ? hiddenState(name, status) : undefined;
      if (state === undefined) return status;
      const { variants: _, ...rest } = status;
      return { ...rest, state, pinned: undefined, listed: undefined };
    },
  };
}

const NO_SPELLINGS: ReadonlySet<string> = new Set();

/**
 * Which names are taken: those of the lock file, whatever has become of them, so that no tool is called by the name of
 * another that is away; without pins, those that the gateway itself was listed.
 */
export function namedIn(catalog: Pick<Catalog, 'mode' | 'names' | 'statusOf'>): IsNamed {
  if (catalog.mode === 'off') return (name) => catalog.statusOf('tool', name).observed !== undefined;
  const pinned = new Set(catalog.names('tool'));
  return (name) => pinned.has(name);
}
