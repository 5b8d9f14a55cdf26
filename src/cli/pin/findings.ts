// What the scan of definitions finds in those that nobody has approved, how it is printed, and what it keeps from
// being approved. docs/contract.md §5.

import { type DefinitionFinding, scanDefinitions } from '../../inspection/definitions/scan.js';
import { namedPins, type PinDigest, type PinName } from '../../pins/approval.js';
import { type Lock, versionsOf } from '../../pins/lock.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { type CliIo, commandLine } from '../program.js';
import { digestText, pinLabel } from './lock-files.js';

/** What is found in the given definitions of a lock file, read together with the others of their server. */
export function scanPins(lock: Lock, pins: readonly PinDigest[]): readonly DefinitionFinding[] {
  const digests = new Set(pins.map(({ digest }) => digest));
  const scanned = namedPins(lock).flatMap(({ kind, name, pin }) => {
    const chosen = versionsOf(pin).filter(({ sha256 }) => digests.has(sha256));
    const [first] = versionsOf(pin);
    const company = first === undefined ? [] : [first];
    const versions = chosen.length > 0 ? chosen : company;
    return versions.map(({ definition }) => ({ kind, name, definition }));
  });
  return scanDefinitions(scanned).filter(({ item }) => pins.some((pin) => isSamePin(pin, item)));
}

export function isSamePin(one: PinName, other: PinName): boolean {
  return one.kind === other.kind && one.name === other.name;
}

/** The findings that keep a definition from being approved. */
export function blockingFindings(
  findings: readonly DefinitionFinding[],
  pin: PinName,
  accepted: readonly string[] = [],
): readonly DefinitionFinding[] {
  return findings.filter(
    ({ id, tier, item }) => tier === 'block' && isSamePin(pin, item) && !accepted.includes(id),
  );
}

/** One finding, indented under its definition. The evidence has no character that acts on a terminal. */
export function findingLine({ id, tier, pointer, evidence, reason }: DefinitionFinding): string {
  const place = pointer === '' ? '' : ` ${escapeForTerminal(pointer)}`;
  return `  ${tier} ${id}${place}: ${JSON.stringify(escapeForTerminal(evidence))}\n    ${reason}\n`;
}

/** The findings of one definition that a reviewer is shown; notes are left to JSON. */
export function findingsText(findings: readonly DefinitionFinding[], pin: PinName): string {
  return findings
    .filter(({ tier, item }) => tier !== 'note' && isSamePin(pin, item))
    .map(findingLine)
    .join('');
}

/** Says why a definition was not approved, and how it is approved nevertheless. */
export function printWithheld(
  upstream: string,
  config: string,
  pin: PinDigest,
  findings: readonly DefinitionFinding[],
  io: CliIo,
): void {
  const label = `${upstream} ${pinLabel(pin)}`;
  io.stderr(`error: ${label} is not approved, because the scan found in it:\n`);
  io.stderr(findings.map(findingLine).join(''));
  const accept = findings.flatMap(({ id }) => ['--accept', id]);
  const line = commandLine(io, [
    ...['pin', 'approve', '-c', config, upstream, pin.name, '--kind', pin.kind],
    ...['--digest', digestText(pin.digest), ...accept],
  ]);
  // A name that a terminal does not show as it is cannot be pasted.
  if (escapeForTerminal(pin.name) !== pin.name || pin.name.startsWith('-')) return;
  io.stderr(`If a review shows that this is meant well, run: ${line}\n`);
}
