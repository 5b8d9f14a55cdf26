// What the scan of definitions finds in those that nobody has approved, how it is printed, and what it keeps from
// being approved. docs/contract.md §5.

import { type DefinitionFinding, scanDefinitions } from '../../inspection/definitions/scan.js';
import {
  findShadowingOf,
  type ShadowingException,
  type UpstreamDefinitions,
} from '../../inspection/definitions/shadowing.js';
import {
  definitionsOf,
  definitionsToScan,
  isSamePin,
  type PinDigest,
  type PinName,
} from '../../pins/approval.js';
import type { Lock } from '../../pins/lock.js';
import { escapeForTerminal, isPasteable } from '../../text/escaping.js';
import { type CliIo, commandLine } from '../program.js';
import { digestText, type PinPorts, pinLabel, readGateway, readLockFile } from './lock-files.js';

/** What the definitions of one upstream are compared with: those of the others, and what is allowed. */
export type Company = {
  readonly upstreams: readonly UpstreamDefinitions[];
  readonly exceptions: readonly ShadowingException[];
  /** As in RFC 3339, in UTC. */
  readonly today: string;
};

/** The lock files of the other upstreams. One that cannot be read is reported and not compared. */
export function readCompany(config: string, upstream: string, io: CliIo, ports: PinPorts): Company {
  const { outline } = readGateway(config, io, ports, 'skip');
  const folder = outline?.pinsDir;
  const others = (outline?.upstreams ?? []).filter(({ name }) => name !== upstream);
  const upstreams = others.flatMap(({ name }) => {
    const read = folder === undefined ? 'invalid' : readLockFile(folder, name, io, ports);
    if (read === 'invalid' || read.lock === undefined) return [];
    return [{ upstream: name, definitions: definitionsOf(read.lock) }];
  });
  const today = new Date(ports.now()).toISOString().slice(0, 10);
  return { upstreams, exceptions: outline?.shadowing ?? [], today };
}

/** What is found in the given definitions of a lock file, read together with the others of all servers. */
export function scanPins(
  lock: Lock,
  pins: readonly PinDigest[],
  company: Company,
): readonly DefinitionFinding[] {
  const { upstreams: others, exceptions, today } = company;
  const own = { upstream: lock.upstream, definitions: definitionsOf(lock) };
  const shadowing = findShadowingOf({ own, asked: pins, others, exceptions, today });
  return [...scanOwn(lock, pins), ...shadowing];
}

/** What is found in the given definitions, read together with the others of their server. */
export function scanOwn(lock: Lock, pins: readonly PinDigest[]): readonly DefinitionFinding[] {
  const found = scanDefinitions(definitionsToScan(lock, pins));
  return found.filter(({ item }) => pins.some((pin) => isSamePin(pin, item)));
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
  if (!isPasteable(pin.name)) return;
  io.stderr(`If a review shows that this is meant well, run: ${line}\n`);
}
