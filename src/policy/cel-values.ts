// The variables that expressions see, as CEL values: of arguments, caller, tool and URI. Converted once for each query,
// and bounded first. docs/contract.md §4, law 5.

import { type CelInput, celMap } from '@bufbuild/cel';
import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import { ARGUMENT_TEXTS, textsIn } from './any-argument.js';
import type { Principal } from './principal.js';

/** The values that a policy query offers to expressions. Converted at most once per query, when first needed. */
export type ExpressionFacts = {
  readonly principal: Principal;
  readonly upstream: string;
  /** Name of the tool or prompt; empty for resources and templates. */
  readonly name: string;
  /** Taken from the pin only (docs/contract.md §4, law 7). */
  readonly annotations: JsonObject;
  readonly args: JsonObject;
  /** The normal form; undefined if the target is no resource, and then reading it is an error. */
  readonly uri: string | undefined;
};

/** Maximum number of values in the arguments that an expression may read, nested ones included. */
const MAX_ARGUMENT_VALUES = 2000;
/** Maximum size of the arguments that an expression may read: bytes of their JSON text in UTF-8. */
const MAX_ARGUMENT_BYTES = 16 * 1024;
/** The variables of an expression. */
export type Bindings = { [variable: string]: CelInput };

const bindingsByFacts = new WeakMap<ExpressionFacts, Bindings>();
const mapsByPrincipal = new WeakMap<Principal, CelInput>();

/** Throws if the arguments exceed what expressions may read; nothing is cached then, so it throws each time. */
export function bindingsOf(facts: ExpressionFacts): Bindings {
  const known = bindingsByFacts.get(facts);
  if (known !== undefined) return known;
  const bindings: Bindings = Object.create(null) as Bindings;
  bindings['args'] = argumentsMap(facts.args);
  bindings['principal'] = principalMap(facts.principal);
  bindings['tool'] = toMap({
    upstream: facts.upstream,
    name: facts.name,
    annotations: facts.annotations,
  });
  if (facts.uri !== undefined) bindings['uri'] = facts.uri;
  let texts: readonly string[] | undefined;
  Object.defineProperty(bindings, ARGUMENT_TEXTS, {
    get() {
      texts ??= textsIn(facts.args);
      return texts;
    },
  });
  bindingsByFacts.set(facts, bindings);
  return bindings;
}

const encoder = new TextEncoder();

function argumentsMap(args: JsonObject): CelInput {
  const text = JSON.stringify(args);
  const isTooLarge =
    text.length > MAX_ARGUMENT_BYTES ||
    (text.length * 3 > MAX_ARGUMENT_BYTES && encoder.encode(text).length > MAX_ARGUMENT_BYTES);
  if (isTooLarge) throw new Error('the arguments are larger than expressions may see');
  return toMap(args);
}

function principalMap(principal: Principal): CelInput {
  const known = mapsByPrincipal.get(principal);
  if (known !== undefined) return known;
  const { issuer, subject, client, scopes, claims } = principal;
  // Unknown groups are absent, so that reading them is an error instead of a result (docs/contract.md §4,
  // law 5).
  const groups = principal.areGroupsUnknown === true ? {} : { groups: principal.groups };
  const map = toMap({ issuer, subject, client, ...groups, scopes, claims: claims as JsonObject });
  mapsByPrincipal.set(principal, map);
  return map;
}

function toMap(value: JsonObject): CelInput {
  return convert(value, { values: 0 });
}

/**
 * Converts JSON to CEL values. The library's own conversion interprets members of plain objects such as
 * `constructor` and `$typeName`, so objects become maps here and the library never receives a plain object.
 */
function convert(value: Json, count: { values: number }): CelInput {
  count.values += 1;
  if (count.values > MAX_ARGUMENT_VALUES) throw new Error('more values than expressions may see');
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => convert(item, count));
  const members = new Map<string, CelInput>();
  for (const [name, member] of Object.entries(value)) members.set(name, convert(member, count));
  const map = celMap(members);
  // The library treats a member that is null as absent; for policies it is present.
  Object.defineProperty(map, 'has', {
    value: (key: unknown) => typeof key === 'string' && members.has(key),
  });
  return map;
}
