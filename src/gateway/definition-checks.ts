// Says what the lock files hold that a reviewer should know: definitions that stand in for those of another upstream,
// exceptions that are over, and what the scan finds in definitions that are pending. docs/contract.md §5.

import type { Diagnostic } from '../config/diagnostics.js';
import type { Outline } from '../config/load.js';
import { scanDefinitions } from '../inspection/definitions/scan.js';
import {
  findShadowing,
  type Shadowing,
  withoutExceptions,
} from '../inspection/definitions/shadowing.js';
import { definitionsOf, pendingOf } from '../pins/approval.js';
import type { Lock } from '../pins/lock.js';

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
  const { findings } = findShadowing(compared);
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
  return [...[...reported, ...rest].map((message): Diagnostic => ({ ...at, message })), ...expired];
}

function messageOf({ items: [item, other], reason }: Shadowing): string {
  const [one, two] = [item, other].map(({ upstream, name }) =>
    JSON.stringify(`${upstream}/${name}`),
  );
  return `${one} can be taken for ${two}, or gives orders about it: ${reason} If both are meant, add an exception to pins.shadowing`;
}

/** A note for each upstream with findings in what is pending. */
export function checkPending(
  { file, upstreams }: Pick<Outline, 'file' | 'upstreams'>,
  locks: ReadonlyMap<string, Lock>,
): readonly Diagnostic[] {
  return upstreams.flatMap(({ name }): Diagnostic[] => {
    const lock = locks.get(name);
    const pending = lock === undefined ? [] : pendingOf(lock);
    if (lock === undefined || pending.length === 0) return [];
    const found = scanDefinitions(definitionsOf(lock)).filter(
      ({ tier, item }) =>
        tier !== 'note' && pending.some((one) => one.kind === item.kind && one.name === item.name),
    );
    const items = new Set(found.map(({ item }) => `${item.kind} ${item.name}`)).size;
    if (items === 0) return [];
    const message = `the scan found something in ${items} of the ${pending.length} pending definitions of ${name}; to see it, run: sallyport pin diff ${name}`;
    return [{ file, line: 1, column: 1, severity: 'note', rule: 'lock', message }];
  });
}
