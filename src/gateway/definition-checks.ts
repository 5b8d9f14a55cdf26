// Says what the lock files hold that a reviewer should know: definitions that stand in for those of another upstream,
// exceptions that are over, and what the scan finds in definitions that are pending. docs/contract.md §5.

import { join } from 'node:path';
import type { Diagnostic } from '../config/diagnostics.js';
import type { Outline } from '../config/load.js';
import { scanDefinitions } from '../inspection/definitions/scan.js';
import {
  findShadowing,
  type Shadowing,
  type UpstreamItem,
  withoutExceptions,
} from '../inspection/definitions/shadowing.js';
import { definitionsOf, isSamePin, pendingOf } from '../pins/approval.js';
import { LOCK_SUFFIX, type Lock } from '../pins/lock.js';

const MAX_REPORTED = 20;

/** Warnings, at the positions of the upstreams in the gateway file. `today` is a date as in RFC 3339, in UTC. */
export function checkShadowing(
  { file, shadowing, upstreams }: Pick<Outline, 'file' | 'shadowing' | 'upstreams'>,
  locks: ReadonlyMap<string, Lock>,
  today: string,
): readonly Diagnostic[] {
  const compared = upstreams.flatMap(({ name: upstream }) => {
    const lock = locks.get(upstream);
    return lock === undefined ? [] : [{ upstream, definitions: definitionsOf(lock) }];
  });
  const { findings, collisions } = findShadowing(compared);
  const found = withoutExceptions(findings, shadowing, today);
  const more = found.length - MAX_REPORTED;
  const at = { file, line: 1, column: 1, severity: 'warning', rule: 'lock' } as const;
  const expired = shadowing
    .filter(({ until }) => until < today)
    .map(({ items, until, position }): Diagnostic => {
      const message = `the exception for ${items.join(' and ')} ended on ${until}`;
      return { ...at, ...position, message };
    });
  const reported = found.slice(0, MAX_REPORTED).map(messageOf);
  const rest = more > 0 ? [`${more} further definitions stand in for others`] : [];
  const warnings = [...reported, ...rest].map((message): Diagnostic => ({ ...at, message }));
  return [...warnings, ...expired, ...noteCollisions(file, collisions)];
}

/** Notes the names that several upstreams share, which is no finding: each upstream has a path of its own. */
function noteCollisions(
  file: string,
  collisions: readonly (readonly UpstreamItem[])[],
): readonly Diagnostic[] {
  if (collisions.length === 0) return [];
  const shown = collisions
    .slice(0, MAX_REPORTED)
    .map((items) => items.map(({ upstream, name }) => quoteItem(upstream, name)).join(' and '));
  const more = collisions.length - shown.length;
  const list = `${shown.join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = `several upstreams offer these names: ${list}; an endpoint that joins them needs prefixes`;
  return [{ file, line: 1, column: 1, severity: 'note', rule: 'lock', message }];
}

function quoteItem(upstream: string, name: string): string {
  return JSON.stringify(`${upstream}/${name}`);
}

function messageOf({ items: [item, other], reason }: Shadowing): string {
  const [one, two] = [item, other].map(({ upstream, name }) => quoteItem(upstream, name));
  return `${one} can be taken for ${two}, or gives orders about it: ${reason} If both are meant, add an exception to pins.shadowing`;
}

/** A note for each upstream with findings in what is pending, at its lock file. `review`: the command that shows them. */
export function checkPending(
  folder: string,
  { upstreams }: Pick<Outline, 'upstreams'>,
  locks: ReadonlyMap<string, Lock>,
  review: (upstream: string) => string,
): readonly Diagnostic[] {
  return upstreams.flatMap(({ name }): Diagnostic[] => {
    const lock = locks.get(name);
    const pending = pendingOf(lock);
    if (lock === undefined || pending.length === 0) return [];
    const found = scanDefinitions(definitionsOf(lock)).filter(
      ({ tier, item }) => tier !== 'note' && pending.some((one) => isSamePin(one, item)),
    );
    const items = new Set(found.map(({ item }) => `${item.kind} ${item.name}`)).size;
    if (items === 0) return [];
    const message = `the scan found something in ${items} of the ${pending.length} pending definitions of ${name}; to see it, run: ${review(name)}`;
    const file = join(folder, `${name}${LOCK_SUFFIX}`);
    return [{ file, line: 1, column: 1, severity: 'note', rule: 'lock', message }];
  });
}
