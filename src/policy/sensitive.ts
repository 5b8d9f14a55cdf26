// Sensitive fields: the places in results and arguments of tools that policies name by JSON pointer, and what happens
// to their values. This file finds the fields of a tool; inspection/sensitive-fields.ts finds and replaces the values. Pure.
// Source: RFC 6901; docs/contract.md §4.

import { BoundedMap } from '../state/bounded-map.js';
import { stepsOf } from '../text/json-pointer.js';
import { type LabelRule, labelsOf } from './flows.js';
import { matchesPattern, type Pattern } from './patterns.js';

/** A place in the results or the arguments of a tool. */
export type SensitiveField = {
  /** As the policy writes it. */
  readonly pointer: string;
  /** The decoded steps of the pointer. `*` is every item of an array and every member of an object. */
  readonly steps: readonly string[];
  readonly effect: 'redact' | 'tag';
};

/** What is sensitive of one tool, by all policies together. Plain data. */
export type SensitiveFields = {
  readonly results: readonly SensitiveField[];
  /** What is not recorded of the arguments. */
  readonly arguments: readonly SensitiveField[];
  /** The labels of the tool. */
  readonly labels: readonly string[];
};

/** The fields of the tools that match, as one policy lists them. */
export type SensitiveRule = {
  readonly upstream: string;
  readonly tools: Pattern;
  readonly fields: readonly SensitiveField[];
};

export interface SensitiveSet {
  /** What is sensitive of a tool; `undefined` if nothing is. */
  of(upstream: string, tool: string): SensitiveFields | undefined;
}

export const ANY_STEP = '*';
const ARGUMENTS = 'arguments';
/** Tools per upstream whose fields are kept; a client can send any other name. */
const MAX_KNOWN_TOOLS = 1_000;

/** The steps of the pointer of a field. A block of content is the least that is replaced of content. */
export function fieldSteps(pointer: string): readonly string[] {
  const steps = stepsOf(pointer);
  return steps.length === 1 && steps[0] === 'content' ? ['content', ANY_STEP] : steps;
}

export function isOfArguments({ steps }: Pick<SensitiveField, 'steps'>): boolean {
  return steps[0] === ARGUMENTS;
}

/** Whether a step of a field is a member name or an index. */
export function isStep(step: string | undefined, child: string | number): boolean {
  return step === ANY_STEP || step === String(child);
}

export function createSensitiveSet(
  rules: readonly SensitiveRule[],
  labels: readonly LabelRule[],
): SensitiveSet {
  const known = new BoundedMap<string, { readonly fields: SensitiveFields | undefined }>(
    MAX_KNOWN_TOOLS,
  );

  function find(upstream: string, tool: string): SensitiveFields | undefined {
    const matching = rules.filter(
      (rule) => rule.upstream === upstream && matchesPattern(rule.tools, tool),
    );
    if (matching.length === 0) return undefined;
    const fields = uniqueFields(matching.flatMap((rule) => rule.fields));
    return {
      results: fields.filter((field) => !isOfArguments(field)),
      arguments: fields.filter(isOfArguments),
      labels: [...labelsOf(labels, upstream, tool)].sort(),
    };
  }

  return {
    of(upstream, tool) {
      const key = JSON.stringify([upstream, tool]);
      const before = known.get(key);
      if (before !== undefined) return before.fields;
      const fields = find(upstream, tool);
      known.set(key, { fields });
      return fields;
    },
  };
}

/** Each pointer once: if one policy redacts what another tags, it is redacted. */
function uniqueFields(fields: readonly SensitiveField[]): readonly SensitiveField[] {
  const byPointer = new Map<string, SensitiveField>();
  for (const field of fields)
    if (byPointer.get(field.pointer)?.effect !== 'redact') byPointer.set(field.pointer, field);
  return [...byPointer.values()];
}
