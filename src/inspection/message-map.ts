// The one map of a message: for each string, by its place alone, whether a host may show it as a text (`reader`) or it is
// data (`value`), and which strings a host joins before it shows them; of a definition, which strings a model reads in a
// row. Both roles are inspected. The prefilter, the sanitizer, the redaction of sensitive fields and the scan of
// definitions read by this map and by no other; what a text contains (JSON, say) is for the sanitizer to find.
// Source: MCP 2025-11-25 and 2026-07-28, tools, resources, prompts, sampling, elicitation, logging, progress, tasks;
// JSON-RPC 2.0 §5.1.

import { walkValue } from '../protocol/json/walk.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { pointerOf } from '../text/json-members.js';

type Steps = readonly (string | number)[];

/**
 * `reader`: a host may show it as text, in which Markdown has code and bare addresses become links. `value`: data, whose
 * rendering is unknown. Members that are `exempt` are listed in exempt-members.ts, because their content decides too.
 */
export type Role = 'reader' | 'value';

export type Place = {
  readonly role: Role;
  /** What a host joins has the same group. Undefined where the string is shown by itself. */
  readonly group: string | undefined;
  /** Whether the next message of the same response may continue the text. */
  readonly isContinued: boolean;
};

/** Members that are no text for a reader wherever the protocol has them. */
const VALUE_MEMBERS: ReadonlySet<string> = new Set([
  ...['type', 'role', 'uri', 'uriTemplate', 'url', 'mimeType', 'data', 'blob', 'audience', 'name'],
  ...['lastModified', 'resultType', 'cacheScope', 'progressToken', 'nextCursor', 'protocolVersion'],
  ...['requestId', 'id', 'taskId', 'toolUseId', 'elicitationId', 'level', 'logger', 'model', 'icons', 'src', 'status'],
]);
/** Members of the protocol of which a host may make a link. */
export const ADDRESSES: ReadonlySet<unknown> = new Set(['uri', 'url', 'websiteUrl']);
/** Members whose texts a host shows one after another. Those that stand in a list of strings are joined too. */
const JOINED_MEMBERS: ReadonlySet<string> = new Set(['text', 'message', 'data', 'statusMessage']);
/** Members whose content has a shape of its own: its strings, in order, are one text to whoever shows it. */
const STRUCTURED: ReadonlySet<string> = new Set(['result/structuredContent', 'params/data', 'error/data']);
/** Whether a group holds the strings of a structure, which are data rather than texts in a row. */
export function isStructure(group: string): boolean {
  return group === 'result/structuredContent';
}

const HOLDERS: ReadonlySet<string | number | undefined> = new Set(['result', 'params', 'error']);
/** The members of server requests that are text: the rest of their params is for the client to read. */
const PARAMS_TEXTS: ReadonlySet<string> = new Set(['text', 'message', 'systemPrompt', 'statusMessage']);

/** What the string at a path is. */
export function placeOf(steps: Steps): Place {
  const [holder, member] = steps;
  if (!HOLDERS.has(holder) || typeof member !== 'string') return ALONE;
  const branch = `${String(holder)}/${member}`;
  const group = groupIn(branch, steps);
  const isReader = isReaderText(steps, branch);
  return {
    role: isReader ? 'reader' : 'value',
    group,
    isContinued: isReader && JOINED_MEMBERS.has(lastName(steps)),
  };
}

const ALONE: Place = { role: 'value', group: undefined, isContinued: false };

function isReaderText(steps: Steps, branch: string): boolean {
  // A host shows a log entry or the data of an error that is one text like any other text.
  if (STRUCTURED.has(branch)) return branch !== 'result/structuredContent' && steps.length === 2;
  if (steps.includes('_meta')) return false;
  const name = lastName(steps);
  if (steps[0] === 'params') return PARAMS_TEXTS.has(name);
  return !VALUE_MEMBERS.has(name);
}

/** The last member name on a path: for an element of a list, the name of the list. */
function lastName(steps: Steps): string {
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at];
    if (typeof step === 'string') return step;
  }
  return '';
}

function groupIn(branch: string, steps: Steps): string | undefined {
  // A host shows the message of an error and its data as one.
  if (branch === 'error/message' && steps.length === 2) return ERROR;
  if (STRUCTURED.has(branch)) return branch;
  const last = steps.at(-1);
  if (typeof last === 'string' && !JOINED_MEMBERS.has(last)) return undefined;
  return `${branch}/${lastName(steps)}`;
}

type Collection = {
  /** The texts of each group in order; those of a structure with the names of its members between them. */
  readonly groups: Map<string, string[]>;
  /** The texts that the next message may continue. */
  readonly continued: string[];
};

/** What a host joins in a message, and the texts in order that a later message may continue. */
export function joinedTextsOf(message: Json): Collection {
  const found: Collection = { groups: new Map(), continued: [] };
  if (!isObject(message)) return found;
  for (const holder of ['error', 'params', 'result']) {
    const members = message[holder];
    if (isObject(members)) collectHolder(members, holder, found);
  }
  return found;
}

/** What a host shows of an error: its message, and then its data, in whatever order they are written. */
const ERROR = 'error/data';
const ERROR_AS_SHOWN = 'error';

/** The orders in which the parts of a group are read: as they are written, and of an error as a host shows it. */
export function ordersOf<Part extends { readonly steps: Steps }>(
  group: string,
  parts: readonly Part[],
): readonly (readonly Part[])[] {
  const at = group === ERROR ? parts.findIndex(({ steps }) => steps[1] === 'message') : -1;
  const message = parts[at];
  return at < 1 || message === undefined ? [parts] : [parts, [message, ...parts.toSpliced(at, 1)]];
}

function collectError({ message, data }: JsonObject, found: Collection): void {
  if (typeof message !== 'string' || data === undefined) return;
  add(found, ERROR_AS_SHOWN, message);
  walkValue(data, [], (value) => {
    if (typeof value === 'string') add(found, ERROR_AS_SHOWN, value);
    return true;
  });
}

function collectHolder(members: JsonObject, holder: string, found: Collection): void {
  if (holder === 'error') collectError(members, found);
  for (const name in members) {
    const member = members[name] as Json;
    const branch = `${holder}/${name}`;
    if (STRUCTURED.has(branch)) collectStructure(member, branch, found);
    else {
      walkValue(member, [holder, name], (value, steps) => {
        if (typeof value === 'string') collectText(value, steps, found);
        return true;
      });
    }
  }
}

/** Strings in order, and the names of members between them, which together could form one secret. */
function collectStructure(structure: Json, branch: string, found: Collection): void {
  if (typeof structure === 'string' && !isStructure(branch)) found.continued.push(structure);
  walkValue(structure, [], (value, steps) => {
    const name = steps.at(-1);
    if (typeof name === 'string') add(found, branch, name);
    if (typeof value === 'string') add(found, branch, value);
    return true;
  });
}

function collectText(text: string, steps: Steps, found: Collection): void {
  const last = steps.at(-1);
  if (typeof last === 'string' && !JOINED_MEMBERS.has(last)) return;
  const { group, isContinued } = placeOf(steps);
  if (group !== undefined) add(found, group, text);
  if (isContinued) found.continued.push(text);
}

function add({ groups }: Collection, group: string, text: string): void {
  const known = groups.get(group);
  if (known === undefined) groups.set(group, [text]);
  else known.push(text);
}

/** A string of a definition. A model reads those of one group in a row. */
export type DefinitionText = {
  readonly pointer: string;
  readonly value: string;
  /** Whether it names the definition, an argument of a prompt, a member or a property of a schema. */
  readonly isName: boolean;
  readonly role: Role;
  /** Undefined for a word of JSON Schema or of MCP rather than of the author. */
  readonly group: 'name' | 'title' | 'description' | 'other' | undefined;
};

/** What holds the name of the definition itself, or of an argument of a prompt. */
const NAME_POINTER = /^(?:\/arguments\/\d+)?\/name$/;
/** The members of a definition that hold a name, a value or a comment, and no instructions. */
const VALUE_POINTER = /\/(?:title|\$comment|const|default|enum\/\d+|examples\/\d+|annotations\/[^/]+)$/;
const SCHEMA_POINTER = /\/\$(?:schema|ref|id)$/;
/** Members whose own members are named by the author of a definition. */
const NAMING = /\/(?:properties|patternProperties|\$defs|definitions|dependentSchemas|_meta)\/[^/]+$/;
const KEYWORDS: ReadonlySet<string> = new Set(
  'name title description inputSchema outputSchema annotations arguments type properties patternProperties required items prefixItems additionalProperties enum const default examples format pattern anyOf oneOf allOf not if then else $defs definitions $ref $schema $id minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems minProperties maxProperties nullable readOnlyHint destructiveHint idempotentHint openWorldHint uri uriTemplate mimeType icons size'.split(
    ' ',
  ),
);
const TYPES: ReadonlySet<string> = new Set('string number integer boolean object array null'.split(' '));

/** The texts at a path of a definition: the name of the member, and its value if that is a string. */
export function definitionTextsAt(value: Json, steps: Steps): readonly DefinitionText[] {
  const name = steps.at(-1);
  const isMember = typeof name === 'string';
  const isText = typeof value === 'string';
  if (!isMember && !isText) return [];
  const pointer = pointerOf(steps);
  return [
    ...(isMember ? [toDefinitionText(pointer, name, true)] : []),
    ...(isText ? [toDefinitionText(pointer, value, NAME_POINTER.test(pointer))] : []),
  ];
}

/** What a string at a pointer is to a model that reads the definition. */
export function toDefinitionText(pointer: string, value: string, isName: boolean): DefinitionText {
  const role = VALUE_POINTER.test(pointer) ? 'value' : 'reader';
  return { pointer, value, isName, role, group: definitionGroupOf(pointer, value, isName) };
}

function definitionGroupOf(pointer: string, value: string, isName: boolean): DefinitionText['group'] {
  if (isName) {
    const isKeyword = pointer.endsWith(`/${value}`) && KEYWORDS.has(value);
    return isKeyword && !NAMING.test(pointer) ? undefined : 'name';
  }
  if (TYPES.has(value) || SCHEMA_POINTER.test(pointer)) return undefined;
  if (pointer.endsWith('/title')) return 'title';
  return pointer.endsWith('/description') ? 'description' : 'other';
}
