// What the scan of definitions finds in those that nobody has approved, how it is printed, and what it keeps from
// being approved. docs/contract.md §5.

import { type DefinitionFinding, scanDefinitions } from '../../inspection/definitions/scan.js';
import {
  findShadowing,
  type Shadowing,
  type ShadowingException,
  type UpstreamDefinitions,
  type UpstreamItem,
  withoutExceptions,
} from '../../inspection/definitions/shadowing.js';
import {
  definitionsOf,
  isSamePin,
  namedPins,
  type PinDigest,
  type PinName,
} from '../../pins/approval.js';
import { sha256Hex } from '../../pins/digest.js';
import { type Lock, versionsOf } from '../../pins/lock.js';
import { escapeForTerminal, isPasteable, makeVisible } from '../../text/escaping.js';
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
  return [...scanOwn(lock, pins), ...shadowingOf(lock, pins, company)];
}

const ID_DIGITS = 8;
const MAX_EVIDENCE = 200;

/** Which of the given definitions stand in for those of other upstreams, or give orders about them. */
function shadowingOf(
  lock: Lock,
  pins: readonly PinDigest[],
  { upstreams, exceptions, today }: Company,
): readonly DefinitionFinding[] {
  if (pins.length === 0) return [];
  const { upstream } = lock;
  const own = { upstream, definitions: definitionsOf(lock) };
  const { findings } = findShadowing([...upstreams, own]);
  const isAsked = (item: UpstreamItem): boolean =>
    item.upstream === upstream && pins.some((pin) => isSamePin(pin, item));
  return withoutExceptions(findings, exceptions, today).flatMap((finding) => {
    const [first, second] = finding.items;
    const given = [{ ...finding, item: first, other: second }];
    // Of two that look alike either may be the one that passes for the other.
    if (finding.how === 'alike')
      given.push({ ...finding, item: second, other: first, evidence: evidenceIn(finding, second) });
    return given.filter(({ item }) => isAsked(item)).map(shadowingFinding);
  });
}

function evidenceIn({ pointer, evidence }: Shadowing, { name }: UpstreamItem): string {
  return pointer === '/name' ? makeVisible(name).slice(0, MAX_EVIDENCE) : evidence;
}

function shadowingFinding({
  item,
  other,
  pointer,
  evidence,
  reason: what,
}: Shadowing & { readonly item: UpstreamItem; readonly other: UpstreamItem }): DefinitionFinding {
  const { kind, name } = item;
  const reason = `${what} The other is ${JSON.stringify(escapeForTerminal(`${other.upstream}/${other.name}`))}.`;
  const id = `shadowing-${sha256Hex(JSON.stringify([item, other, reason, evidence])).slice(0, ID_DIGITS)}`;
  return { id, kind: 'shadowing', tier: 'block', item: { kind, name }, pointer, evidence, reason };
}

/** What is found in the given definitions, read together with the others of their server. */
export function scanOwn(lock: Lock, pins: readonly PinDigest[]): readonly DefinitionFinding[] {
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
