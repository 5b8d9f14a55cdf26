// Names under which an endpoint would show things of two members that nobody can tell apart, as far as the
// lock files show them. Found before a start; what changes later is hidden where it stands.
// Source: attacks.md 60; contract §4, law 4 (pins that change at run time make nothing invalid).

import type { Diagnostic, Severity } from '../config/fault.js';
import type { AggregateOutline, Outline } from '../config/outline.js';
import { findConfusableNames, type NameOf } from '../inspect/look-alike-names.js';
import type { Catalogue } from '../policy/definition.js';

type PinsOf = (upstream: string) => Catalogue | undefined;

const NAMED_KINDS = ['tool', 'prompt'] as const;
/** Pairs that are reported of one endpoint; with more, a prefix is wrong as a whole. */
const MAX_REPORTED = 10;

/** The faults of every endpoint, at the place of its name in the gateway file. */
export function checkMergedNames(
  { file, aggregates }: Pick<Outline, 'file' | 'aggregates'>,
  pins: PinsOf,
  severity: Severity,
): readonly Diagnostic[] {
  return aggregates.flatMap((aggregate) =>
    NAMED_KINDS.flatMap((kind) => findAlike(aggregate, kind, pins))
      .slice(0, MAX_REPORTED)
      .map((message) => ({ file, ...aggregate.position, severity, rule: 'conflict', message })),
  );
}

function findAlike(
  { backends }: AggregateOutline,
  kind: (typeof NAMED_KINDS)[number],
  pins: PinsOf,
): readonly string[] {
  const groups = findConfusableNames(
    backends.map(({ upstream, prefix }) => ({ prefix, names: approvedIn(pins(upstream), kind) })),
  );
  const shown = ({ backend, name }: NameOf): string =>
    `${JSON.stringify(`${backends[backend]?.prefix ?? ''}${name}`)} of ${backends[backend]?.upstream ?? ''}`;
  return groups.map((alike) => `names that look alike: ${alike.map(shown).join(', ')}`);
}

/** Before anything was seen upstream, what is approved is absent. */
function approvedIn(catalogue: Catalogue | undefined, kind: (typeof NAMED_KINDS)[number]) {
  const names = catalogue?.names(kind) ?? [];
  return names.filter((name) => catalogue?.standing(kind, name).state === 'absent');
}
