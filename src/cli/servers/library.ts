// The policies of policies/library, as `add` proposes them: which of them fits what a server offers, and its text with the
// names of this gateway. A policy fits by the tools and their parameters; a name that a server gives itself decides nothing.
// What the server does not offer, or offers with other parameters, is left out and named (law 4). docs/guides/policy-library.md.

import { fileURLToPath } from 'node:url';
import type { Files } from '../../config/files.js';
import { type Lock, type Pin, versionsOf } from '../../pins/lock.js';
import { propertiesOf } from '../../policy/tool-effect.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { readYaml } from '../../text/yaml.js';

/** What a parameter is. Rules that refuse by an argument read the first six alone. */
export const READ_BY_RULES = ['path', 'paths', 'files', 'address', 'revision', 'command'] as const;
const TYPES: Readonly<Record<string, string | undefined>> = {
  ...{ path: 'string', address: 'string', revision: 'string', paths: 'array', files: 'array', command: 'array' },
  ...{ text: 'string', flag: 'boolean', list: 'array', object: 'object' },
};

type Parameters = Readonly<Record<string, string>>;

export type LibraryRow = {
  readonly package: string;
  readonly version: string;
  /** The day on which its tools were listed. */
  readonly date: string;
  /** The tools that return the content of files. */
  readonly code?: readonly string[];
  /** All tools that the policy names, with the parameters that they require or that a rule reads. */
  readonly tools: Readonly<Record<string, Parameters>>;
};

export type Library = ReadonlyMap<string, LibraryRow>;

const LIBRARY = new URL('../../../policies/library/', import.meta.url);
const LIMITS = { maxDepth: 8, maxValues: 20_000, isGenerated: false };

/** The rows of the library that comes with this program. */
export function readLibrary({ readFile }: Pick<Files, 'readFile'>): Library {
  const text = new TextDecoder().decode(readFile(fileURLToPath(new URL('servers.yaml', LIBRARY))));
  const reading = readYaml(text, LIMITS);
  if (!reading.ok) throw new Error('policies/library/servers.yaml cannot be read');
  const { servers } = reading.value as { readonly servers: Readonly<Record<string, LibraryRow>> };
  return new Map(Object.entries(servers));
}

/** The text of a policy of the library. */
export function libraryText(name: string, { readFile }: Pick<Files, 'readFile'>): string {
  return new TextDecoder().decode(readFile(fileURLToPath(new URL(`servers/${name}.policy.yaml`, LIBRARY))));
}

export type Fit = {
  readonly name: string;
  readonly row: LibraryRow;
  /** The tools that the policy names and the server offers as they are there. */
  readonly fitting: ReadonlySet<string>;
  /** The others that the policy names, with the reason, in a clause. */
  readonly leftOut: ReadonlyMap<string, string>;
};

const MIN_SHARE = 0.8;
/** A policy of fewer tools is proposed only for a server that offers nothing else: such names are everywhere. */
const MIN_TOOLS = 3;

/**
 * The policy that fits best, if one fits well enough.
 *
 * @param isFound whether a scan found something in the definition of a tool, which then fits nothing.
 */
export function findFit(
  library: Library,
  lock: Lock,
  server: string,
  isFound: (tool: string) => boolean,
): Fit | undefined {
  const fits = [...library]
    .map(([name, row]) => fitOf(name, row, lock, isFound))
    .filter(({ row, fitting }) => {
      const named = Object.keys(row.tools).length;
      const isAlone = named >= MIN_TOOLS || (lock.pins.tool?.size ?? 0) === named;
      return isAlone && fitting.size >= named * MIN_SHARE;
    });
  const isHinted = ({ name }: Fit): number => Number(server.includes(name));
  return fits.sort((one, other) => other.fitting.size - one.fitting.size || isHinted(other) - isHinted(one))[0];
}

/** How a policy fits a server, however badly. */
export function fitOf(name: string, row: LibraryRow, lock: Lock, isFound: (tool: string) => boolean): Fit {
  const leftOut = new Map<string, string>();
  const fitting = new Set<string>();
  for (const [tool, parameters] of Object.entries(row.tools)) {
    const pin = lock.pins.tool?.get(tool);
    const reason = pin === undefined ? 'it is not offered' : misfitOf(pin, parameters);
    const why = reason ?? (isFound(tool) ? 'the scan of definitions found something in it' : undefined);
    if (why === undefined) fitting.add(tool);
    else leftOut.set(tool, why);
  }
  return { name, row, fitting, leftOut };
}

/** Why a tool is not the one that the policy means: `undefined` if every version of it is. */
function misfitOf(pin: Pin, parameters: Parameters): string | undefined {
  for (const { definition } of versionsOf(pin)) {
    const { inputSchema } = definition;
    const properties = propertiesOf(inputSchema);
    const unknown = requiredBy(inputSchema).find((one) => parameters[one] === undefined);
    if (unknown !== undefined) return `it requires "${unknown}", which was not there`;
    for (const [parameter, kind] of Object.entries(parameters)) {
      const schema = properties[parameter];
      const isRead = READ_BY_RULES.some((one) => one === kind);
      if (schema === undefined ? isRead : !mayBe(schema, kind)) return `its "${parameter}" is not what it was`;
    }
  }
  return undefined;
}

function requiredBy(schema: Json | undefined): readonly string[] {
  const required = isObject(schema) ? schema['required'] : undefined;
  return Array.isArray(required) ? required.filter((one): one is string => typeof one === 'string') : [];
}

/** Whether a schema has the type of this kind, as far as it has one. */
function mayBe(schema: Json, kind: string): boolean {
  const type = TYPES[kind];
  if (type === undefined || !isObject(schema)) return true;
  const types = typesOf(schema);
  return types.length === 0 || types.includes(type);
}

function typesOf({ type, anyOf, oneOf }: JsonObject): readonly Json[] {
  if (type !== undefined) return Array.isArray(type) ? type : [type];
  return [anyOf, oneOf].flatMap((all) => (Array.isArray(all) ? all.filter(isObject).flatMap(typesOf) : []));
}

export type LibraryPolicy = {
  /** The policy, without its first line and with these names. */
  readonly text: string;
  readonly granted: readonly string[];
};

type Names = {
  readonly name: string;
  readonly issuers: string;
  readonly groups: string;
};

/** A rule, or one that stands as a comment, with what is above it. */
const RULE = /^ {2}(?:# )?- id: /;
const TOOL = /^ {2}(?: {6}|# {7})- ([\w-]+)$/;

/**
 * The policy of the library for this server. Its files have one form, which a test keeps: one tool a line, rules that
 * grant to the group `staff`, what changes something as comments.
 *
 * @param names as YAML.
 */
export function adaptPolicy(text: string, fit: Fit, names: Names): LibraryPolicy {
  const [head = '', ...rest] = text.split(/^(?=rules:$)/m);
  const rules = blocksOf(rest.join('').split('\n').slice(1)).flatMap((lines) => adaptRule(lines, fit));
  const begin = head
    .replace(/^# yaml-language-server:.*\n/, '')
    .replace(/^policy: .*$/m, `policy: ${names.name}`)
    .replace(/^defaults: .*$/m, `defaults: {issuers: ${names.issuers}, upstreams: [${names.name}]}`);
  const all = rules
    .join('\n')
    .replaceAll(`id: ${fit.name}-`, `id: ${names.name}-`)
    .replaceAll('who: {groups: [staff]}', `who: {groups: ${names.groups}}`);
  const granted = [...all.matchAll(GRANTED)].map(([, tool = '']) => tool).filter((tool) => fit.fitting.has(tool));
  return { text: `${begin}rules:\n${all.trimEnd()}\n`, granted };
}

const GRANTED = /^ {8}- ([\w-]+)$/gm;

/** The rule without the tools that do not fit, and without the arguments that only they have; none if nothing is left. */
function adaptRule(lines: readonly string[], { row, fitting }: Fit): readonly string[] {
  const listed = lines.flatMap((line) => TOOL.exec(line)?.[1] ?? []);
  if (listed.length > 0 && !listed.some((tool) => fitting.has(tool))) return [];
  const kept = lines.filter((line) => fitting.has(TOOL.exec(line)?.[1] ?? '') || !TOOL.test(line)).join('\n');
  const read = new Set([...kept.matchAll(/\bargs\.(\w+)/g)].map(([, argument = '']) => argument));
  const known = new Set([...fitting].flatMap((tool) => Object.keys(row.tools[tool] ?? {})));
  const lost = [...read].filter((argument) => !known.has(argument));
  if (read.size > 0 && lost.length === read.size) return [];
  return [lost.reduce((rule, argument) => rule.replaceAll(partOf(argument), '[]'), kept)];
}

/** How the conditions of the library take in an argument that not every tool has. */
function partOf(argument: string): RegExp {
  const named = `args\\.${argument}`;
  return new RegExp(
    `\\(has\\(${named}\\)(?:\\s+&&\\s+${named}\\s+!=\\s+null)?\\s+\\?\\s+\\[?${named}\\]?\\s+:\\s+\\[\\]\\)`,
    'g',
  );
}

/** The lines of each rule, with the comments above it. */
function blocksOf(lines: readonly string[]): readonly (readonly string[])[] {
  const blocks: string[][] = [];
  let above: string[] = [];
  for (const line of lines) {
    if (RULE.test(line)) {
      blocks.push([...above, line]);
      above = [];
    } else if (/^ {2}# (?! )/.test(line) || blocks.length === 0) above.push(line);
    else blocks.at(-1)?.push(line);
  }
  return blocks;
}
