// Reads the servers that the configuration file of a client has: `mcp.json`, and the files of Claude Desktop, Claude Code,
// VS Code and Cursor. JSON, in which comments and commas behind a last item are allowed as in VS Code. What is odd
// about one server costs that server alone, and is named. Starts nothing, contacts nobody and reads no other file.
// docs/reference/commands.md#add---from.

import { memberSpans, readJsonText } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import type { Span } from '../../text/span.js';

/** A text that is written, or the place where a client finds it: an input that it asks for, or a variable. */
export type ClientValue =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'variable'; readonly variable: string; readonly why: string };

/** A server as the file has it. */
export type ClientServer = {
  /** As it is written; hostile text. */
  readonly name: string;
  /** The project that it belongs to, if the file has several. */
  readonly project?: string;
} & (
  | {
      readonly kind: 'http';
      readonly url: string;
      readonly isSse: boolean;
      readonly headers: ClientValues;
      readonly notes: Notes;
    }
  | {
      readonly kind: 'stdio';
      readonly command: readonly string[];
      readonly env: ClientValues;
      readonly cwd?: string | undefined;
      readonly notes: Notes;
    }
  | { readonly kind: 'odd'; readonly why: string }
);

type ClientValues = ReadonlyMap<string, ClientValue>;
/** What of a server is not taken over, one clause each. */
type Notes = readonly string[];

export type ClientFile = { readonly servers: readonly ClientServer[] } | { readonly error: string };

/** Larger than any file that a person wrote. */
export const MAX_CLIENT_FILE_BYTES = 4 * 1024 * 1024;
const CAPS = { maxDepth: 64, maxValues: 10_000 };
/** The member that holds the servers, by client. */
const SECTIONS: ReadonlySet<string> = new Set(['mcpServers', 'servers']);

/** The text as plain JSON of the same length: comments and commas behind a last item are blanks. Linear. */
export function plainJson(text: string): string {
  const blanks: Span[] = [];
  // A comma, if only blanks and comments have followed it.
  let comma: Span | undefined;
  for (const part of partsOf(text)) {
    if (part.mark === COMMENT) blanks.push(part);
    if (comma !== undefined && CLOSING.test(part.mark)) blanks.push(comma);
    if (part.mark.trim() !== '') comma = part.mark === ',' ? part : undefined;
  }
  return blanked(
    text,
    blanks.sort((one, other) => one.start - other.start),
  );
}

const CLOSING = /[\]}]/;
const COMMENT = '';

/** Comments, strings and single characters: their spans, and the first character of what is no comment. */
function* partsOf(text: string): Generator<Span & { readonly mark: string }> {
  for (let start = 0; start < text.length; ) {
    const comment = commentEnd(text, start);
    const mark = comment === undefined ? text.charAt(start) : COMMENT;
    const end = comment ?? (mark === '"' ? stringEnd(text, start) : start + 1);
    yield { start, end, mark };
    start = end;
  }
}

const LINE_END = /[\n\r]/g;

/** The end of a comment that begins here; one that does not end takes the rest. */
function commentEnd(text: string, at: number): number | undefined {
  // A byte order mark is no part of the text either.
  if (at === 0 && text.startsWith('\uFEFF')) return 1;
  if (text.startsWith('//', at)) {
    LINE_END.lastIndex = at;
    return LINE_END.exec(text)?.index ?? text.length;
  }
  if (!text.startsWith('/*', at)) return undefined;
  const end = text.indexOf('*/', at + 2);
  return end < 0 ? text.length : end + 2;
}

function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at + 1;
}

function blanked(text: string, spans: readonly Span[]): string {
  let result = '';
  let from = 0;
  for (const { start, end } of spans) {
    result += text.slice(from, start) + text.slice(start, end).replace(/[^\n\r]/g, ' ');
    from = end;
  }
  return result + text.slice(from);
}

/** The servers in the file; an error is one clause. */
export function readClientFile(text: string): ClientFile {
  const plain = plainJson(text);
  try {
    JSON.parse(plain);
  } catch {
    return { error: 'it is not JSON, also not with comments' };
  }
  const root = spanOfRoot(plain);
  if (root === undefined) return { error: 'it is JSON, but no object' };
  // The settings of VS Code have them in a member `mcp`.
  const settings = membersOf(plain, root).filter(({ name }) => name === 'mcp');
  const servers = [
    ...sectionsIn(plain, root),
    ...settings.flatMap(({ value }) => sectionsIn(plain, value)),
    ...projectsIn(plain, root),
  ];
  if (servers.length === 0) return { error: 'it has no servers under "mcpServers" or "servers"' };
  return { servers: withoutDuplicates(servers) };
}

function spanOfRoot(text: string): Span | undefined {
  const start = text.search(/\S/);
  return text[start] === '{' ? { start, end: text.trimEnd().length } : undefined;
}

function membersOf(text: string, span: Span) {
  return text[span.start] === '{' ? memberSpans(text, span) : [];
}

/** The servers that stand in an object itself. */
function sectionsIn(text: string, object: Span, project?: string): readonly ClientServer[] {
  const members = membersOf(text, object);
  const inputs = inputsIn(text, members.find(({ name }) => name === 'inputs')?.value);
  return members.flatMap(({ name, value }) => {
    if (!SECTIONS.has(name)) return [];
    return membersOf(text, value).map((member) =>
      readServer(member.name, text.slice(member.value.start, member.value.end), inputs, project),
    );
  });
}

/** Claude Code keeps servers by project in one file. */
function projectsIn(text: string, root: Span): readonly ClientServer[] {
  const projects = membersOf(text, root).filter(({ name }) => name === 'projects');
  return projects.flatMap(({ value }) =>
    membersOf(text, value).flatMap((project) => sectionsIn(text, project.value, project.name)),
  );
}

/** What the client says of its inputs when it asks for them. */
function inputsIn(text: string, span: Span | undefined): ReadonlyMap<string, string> {
  const read = span === undefined ? undefined : readJsonText(text.slice(span.start, span.end), CAPS);
  const inputs = read?.ok === true && Array.isArray(read.value) ? read.value : [];
  return new Map(
    inputs.filter(isObject).flatMap(({ id, description }) => {
      return typeof id === 'string' && typeof description === 'string' ? [[id, description] as const] : [];
    }),
  );
}

function withoutDuplicates(servers: readonly ClientServer[]): readonly ClientServer[] {
  const seen = new Set<string>();
  return servers.map((server) => {
    const key = `${server.project ?? ''}\n${server.name}`;
    if (seen.has(key)) return { name: server.name, kind: 'odd', why: 'the file has this name twice' };
    seen.add(key);
    return server;
  });
}

const ERRORS: Readonly<Record<string, string>> = {
  'duplicate-key': 'it has two members of one name',
  'prototype-member': 'it has a member named __proto__',
  'lone-surrogate': 'it has half of a surrogate pair, which is no character',
  'too-deep': 'it is nested too deeply',
  'too-many-values': 'it has too many values',
};

function readServer(
  name: string,
  json: string,
  inputs: ReadonlyMap<string, string>,
  project: string | undefined,
): ClientServer {
  const named = project === undefined ? { name } : { name, project };
  const read = readJsonText(json, CAPS);
  if (!read.ok) return { ...named, kind: 'odd', why: ERRORS[read.error] ?? 'it is not valid JSON' };
  if (!isObject(read.value)) return { ...named, kind: 'odd', why: 'it is no object' };
  try {
    return { ...named, ...readForm(read.value, name, inputs) };
  } catch (error) {
    if (!(error instanceof OddServer)) throw error;
    return { ...named, kind: 'odd', why: error.message };
  }
}

/** Why a server cannot be taken over. */
export class OddServer extends Error {}

const KNOWN: ReadonlySet<string> = new Set([
  ...['type', 'command', 'args', 'env', 'cwd', 'url', 'serverUrl', 'headers', 'disabled'],
  // What clients note for themselves.
  ...['autoApprove', 'alwaysAllow', 'gallery', 'description', 'version', 'timeout', 'disabledTools', 'enabled'],
]);

function readForm(server: JsonObject, name: string, inputs: ReadonlyMap<string, string>) {
  const { command, url = server['serverUrl'] } = server;
  const unknown = Object.keys(server).filter((key) => !KNOWN.has(key));
  const notes = [
    ...unknown.map((key) => `"${key}" is not taken over`),
    ...(server['disabled'] === true || server['enabled'] === false ? ['it is switched off in the client'] : []),
  ];
  if (command !== undefined && url !== undefined) throw new OddServer('it has a command and a URL');
  if (command === undefined) return { ...readUrl(server, name, inputs), notes };
  return { ...readCommand(server, name, inputs), notes };
}

function readUrl(server: JsonObject, name: string, inputs: ReadonlyMap<string, string>) {
  const { type, url = server['serverUrl'] } = server;
  if (url === undefined) throw new OddServer('it has neither a command nor a URL');
  if (typeof url !== 'string') throw new OddServer('its URL is no text');
  const headers = readValues(server['headers'], 'headers', name, inputs);
  return { kind: 'http', url, isSse: type === 'sse', headers } as const;
}

function readCommand(server: JsonObject, name: string, inputs: ReadonlyMap<string, string>) {
  const { command, args = [], cwd } = server;
  if (typeof command !== 'string' || command === '') throw new OddServer('its command is no text');
  if (!isTexts(args)) throw new OddServer('its "args" is no list of texts');
  if (cwd !== undefined && typeof cwd !== 'string') throw new OddServer('its "cwd" is no text');
  return {
    kind: 'stdio',
    command: [command, ...args],
    env: readValues(server['env'], 'env', name, inputs),
    cwd,
  } as const;
}

function isTexts(value: Json): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function readValues(
  value: Json | undefined,
  what: string,
  server: string,
  inputs: ReadonlyMap<string, string>,
): ClientValues {
  if (value === undefined || value === null) return new Map();
  if (!isObject(value)) throw new OddServer(`its "${what}" is no object`);
  return new Map(
    Object.entries(value).map(([name, member]) => {
      if (typeof member !== 'string' && typeof member !== 'number' && typeof member !== 'boolean')
        throw new OddServer(`"${name}" of its "${what}" is no text`);
      return [name, readValue(String(member), `${server}_${name}`, inputs)] as const;
    }),
  );
}

/** `${input:id}`, `${env:NAME}`, and as Claude Code has it `${NAME}` with a default after `:-`. */
const REFERENCE = /\$\{(?:(input|env):([^}]{1,128})|([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?)\}/;

/** What a text refers to: alone, or as a part of a longer text, whose place is then a variable of its own. */
function readValue(text: string, place: string, inputs: ReadonlyMap<string, string>): ClientValue {
  const found = REFERENCE.exec(text);
  if (found === null) return { kind: 'text', text };
  const [match, kind = 'env', id = found[3] ?? ''] = found;
  const isAlone = match === text;
  const isName = isAlone && kind === 'env' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(id);
  const variable = isName ? id : variableFor(isAlone ? id : place);
  const what = kind === 'input' ? `the input ${id}${describeInput(inputs.get(id))}` : `the variable ${id}`;
  // The rest of the text may be a secret.
  const [scheme] = /^[A-Za-z]{1,16}(?= \$\{[^}]*\}$)/.exec(text) ?? [];
  const composed = scheme === undefined ? `a text with ${what} in it` : `"${scheme}" and ${what}`;
  return { kind: 'variable', variable, why: isAlone ? what : composed };
}

const MAX_SHOWN = 120;

function describeInput(description: string | undefined): string {
  return description === undefined ? '' : ` (${description.slice(0, MAX_SHOWN)})`;
}

/** A name of a variable, in capitals, that resembles a text. */
export function variableFor(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase();
  return /^[A-Z]/.test(name) ? name : `VALUE_${name}`;
}
