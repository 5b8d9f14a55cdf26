// Whether the conditions of a rule hold for one call: its `args` and its `when`, over arguments that the
// pin describes. Values, never exceptions; what cannot be evaluated is an error for the caller to judge.
// Contract §4, laws 5 and 7; architecture, "Bytes".

import { isObject, type JsonObject } from '../mcp/message.js';
import type { PinnedDefinition } from './definition.js';
import type { ExpressionFacts, Holding } from './expressions.js';
import type { Principal } from './principal.js';
import { type Rule, readsArguments } from './rules.js';

/** One call, as conditions see it. */
export type Call = {
  readonly principal: Principal;
  readonly args: JsonObject;
  readonly pinned: PinnedDefinition | undefined;
  /** True where arguments must be described by a pin, that is: tools and prompts under strict pins. */
  readonly isPinRequired: boolean;
  readonly facts: ExpressionFacts;
  /** Found when first asked for. */
  undescribed: boolean | undefined;
};

export type CallParts = Omit<Call, 'facts' | 'undescribed'> & {
  readonly upstream: string;
  readonly name: string;
  readonly uri: string | undefined;
};

const NO_ANNOTATIONS: JsonObject = Object.freeze({});

/** Prepares a call. Annotations come from the pin alone. */
export function prepareCall(parts: CallParts): Call {
  const { principal, args, pinned, isPinRequired, upstream, name, uri } = parts;
  const annotations = pinned?.definition['annotations'];
  return {
    principal,
    args,
    pinned,
    isPinRequired,
    facts: {
      principal,
      upstream,
      name,
      annotations: isObject(annotations) ? annotations : NO_ANNOTATIONS,
      args,
      uri,
    },
    undescribed: undefined,
  };
}

/** Whether `args` and `when` of a rule hold. `args` first: `when` may rely on what they guarantee. */
export function holdsFor(rule: Rule, call: Call): Holding {
  for (const { name, schema } of rule.args) {
    const value = Object.hasOwn(call.args, name) ? call.args[name] : undefined;
    if (value === undefined || schema.check(value).length > 0) return 'fails';
  }
  return rule.when === undefined ? 'holds' : rule.when.evaluate(call.facts);
}

/**
 * As `holdsFor`, for rules that grant: one that reads arguments holds only where the pin describes
 * every member, so that nothing stands in the arguments that the rule did not see.
 */
export function grantsFor(rule: Rule, call: Call): Holding {
  if (readsArguments(rule) && hasUndescribed(call)) return 'fails';
  return holdsFor(rule, call);
}

/** True where the arguments have a member, at any depth, that the pin does not describe. */
export function hasUndescribed(call: Call): boolean {
  call.undescribed ??= findUndescribed(call);
  return call.undescribed;
}

function findUndescribed({ args, pinned, isPinRequired }: Call): boolean {
  if (pinned?.input !== undefined) return pinned.input.firstUndescribed(args) !== undefined;
  if (pinned?.kind === 'prompt') {
    const names = promptArguments(pinned.definition);
    return Object.keys(args).some((name) => !names.has(name));
  }
  return isPinRequired && Object.keys(args).length > 0;
}

/** Names of a prompt's arguments: prompts list them where tools have a schema (MCP, prompts). */
export function promptArguments(definition: JsonObject): ReadonlySet<string> {
  const listed = definition['arguments'];
  const names = new Set<string>();
  for (const argument of Array.isArray(listed) ? listed : []) {
    const name = isObject(argument) ? argument['name'] : undefined;
    if (typeof name === 'string') names.add(name);
  }
  return names;
}
