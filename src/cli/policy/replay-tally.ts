// Evaluates recorded decisions again under other policies, and counts what would change, for whom: known changes, and
// apart from them what the record does not tell. Pure.

import type { RecordedCall } from '../../audit/recorded.js';
import {
  explainRules,
  type KnownVerdict,
  verdictOf,
  type WrittenRules,
} from '../../policy/explain.js';
import type { PolicySet } from '../../policy/rules.js';
import { renderVerdict } from './explain.js';

/** Equal decisions of one caller about one target. */
export type DecisionGroup = {
  readonly caller: RecordedCall['caller'];
  readonly upstream: string;
  readonly kind: string;
  readonly name: string;
  readonly before: string;
  readonly after: string;
  count: number;
  /** The id of the last of them. */
  example: string;
};

export type Tally = {
  decisions: number;
  unchanged: number;
  readonly changed: Map<string, DecisionGroup>;
  readonly unknown: Map<string, DecisionGroup>;
};

export function createTally(): Tally {
  return { decisions: 0, unchanged: 0, changed: new Map(), unknown: new Map() };
}

export type Rules = { readonly policies: PolicySet; readonly written: WrittenRules };

/** What the rules say of a recorded call; `undefined` if the record does not even give its target. */
export function evaluate({ facts }: RecordedCall, rules: Rules): KnownVerdict | undefined {
  if (facts === undefined) return undefined;
  return verdictOf(explainRules(rules.policies, rules.written, facts), facts);
}

/** Counts one decision; returns what became of it. */
export function count(
  call: RecordedCall,
  now: KnownVerdict | undefined,
  tally: Tally,
): 'unchanged' | 'changed' | 'unknown' {
  tally.decisions += 1;
  if (now?.verdict === call.verdict) {
    tally.unchanged += 1;
    return 'unchanged';
  }
  const isUnknown = now === undefined || now.verdict === 'unknown';
  const groups = isUnknown ? tally.unknown : tally.changed;
  const { caller, upstream, kind, name } = call;
  const before = call.verdict === 'allow' ? `allow by ${call.rule}` : `deny: ${call.reason}`;
  const after = describe(now, call.missing);
  const key = JSON.stringify([caller, upstream, kind, name, before, after]);
  const known = groups.get(key);
  if (known === undefined)
    groups.set(key, { caller, upstream, kind, name, before, after, count: 1, example: call.id });
  else {
    known.count += 1;
    known.example = call.id;
  }
  return isUnknown ? 'unknown' : 'changed';
}

function describe(now: KnownVerdict | undefined, missing: RecordedCall['missing']): string {
  if (now === undefined) return String(missing);
  return now.verdict === 'unknown' ? now.causes.join(', ') : renderVerdict(now);
}

/** The groups, the most frequent first. */
export function sortGroups(groups: ReadonlyMap<string, DecisionGroup>): readonly DecisionGroup[] {
  return [...groups.values()].sort((a, b) => b.count - a.count);
}
