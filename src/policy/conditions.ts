// Whether the conditions of a rule hold for one call: its `args` and its `when`, over arguments of which the
// definition describes what the rule reads. Values, never exceptions; what cannot be evaluated is an error for the caller to judge.
// Contract §4, laws 5 and 7; architecture, "Bytes".

import { isObject, type JsonObject } from '../mcp/message.js';
import { hasAmbiguousName, mayStandFor } from './argument-reads.js';
import type { ArgumentReads, PinnedDefinition } from './definition.js';
import type { ExpressionFacts, Holding } from './expressions.js';
import type { Principal } from './principal.js';
import type { Rule } from './rules.js';

/** One call, as conditions see it. */
export type Call = {
  readonly principal: Principal;
  readonly args: JsonObject;
  /** What describes the arguments: the pin, or without pinning what the upstream listed. */
  readonly described: PinnedDefinition | undefined;
  /**
   * True where what a rule reads must be described: the arguments of tools and prompts. Without pinning they
   * are read as they come where nothing was listed under the name.
   */
  readonly mustDescribe: boolean;
  readonly facts: ExpressionFacts;
  /** By what is read; found when first asked for. */
  readonly undescribed: Map<ArgumentReads, boolean>;
};

export type CallParts = Omit<Call, 'facts' | 'undescribed'> & {
  /** What was approved, and nothing else. */
  readonly pinned: PinnedDefinition | undefined;
  readonly upstream: string;
  readonly name: string;
  readonly uri: string | undefined;
};

const NO_ANNOTATIONS: JsonObject = Object.freeze({});

/** Prepares a call. Annotations come from the pin alone. */
export function prepareCall(parts: CallParts): Call {
  const { principal, args, pinned, described, mustDescribe, upstream, name, uri } = parts;
  const annotations = pinned?.definition['annotations'];
  return {
    principal,
    args,
    described,
    mustDescribe,
    facts: {
      principal,
      upstream,
      name,
      annotations: isObject(annotations) ? annotations : NO_ANNOTATIONS,
      args,
      uri,
    },
    undescribed: new Map(),
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
 * As `holdsFor`, for rules that grant: one that reads arguments holds only where what it reads is described,
 * so that the upstream finds under these names what the rule found.
 */
export function grantsFor(rule: Rule, call: Call): Holding {
  return readsUndescribed(rule, call) ? 'fails' : holdsFor(rule, call);
}

/**
 * True where the arguments have a member that the rule reads and that the definition does not describe, or
 * one that could stand for such a member.
 */
export function readsUndescribed({ reads }: Rule, call: Call): boolean {
  if (reads === undefined) return false;
  const known = call.undescribed.get(reads);
  if (known !== undefined) return known;
  const found = findUndescribed(call, reads);
  call.undescribed.set(reads, found);
  return found;
}

const NO_NAMES: ReadonlySet<string> = new Set();

function findUndescribed({ args, described, mustDescribe }: Call, reads: ArgumentReads): boolean {
  if (described?.input !== undefined) {
    return described.input.firstUndescribed(args, reads) !== undefined;
  }
  if (!mustDescribe) return hasAmbiguousName(args, reads);
  const isPrompt = described?.kind === 'prompt';
  const names = isPrompt ? promptArguments(described.definition) : NO_NAMES;
  return Object.keys(args).some((name) => {
    const isRead = reads.readsAll || reads.members.has(name) || mayStandFor(name, reads);
    return isRead && !names.has(name);
  });
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
