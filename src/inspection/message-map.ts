// The one map of a message: what each string of it is to the one who receives it, and which strings a host joins before
// it shows them. The prefilter, the sanitizer and the redaction of sensitive fields read a message by this map and by no
// other. What a string is follows from its place alone, never from its content.
// Source: MCP 2025-11-25 and 2026-07-28, tools, resources, prompts, sampling, elicitation, logging, progress, tasks;
// JSON-RPC 2.0 §5.1.

import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';

type Steps = readonly (string | number)[];

/**
 * `reader`: a host may show it as text, in which Markdown has code and bare addresses become links. `value`: data, whose
 * rendering is unknown. Members that are `exempt` are listed in message-fields.ts, because their content decides too.
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
  ...[
    'requestId',
    'id',
    'taskId',
    'toolUseId',
    'elicitationId',
    'level',
    'logger',
    'model',
    'icons',
    'src',
    'status',
  ],
]);
/** Members whose texts a host shows one after another. Those that stand in a list of strings are joined too. */
const JOINED_MEMBERS: ReadonlySet<string> = new Set(['text', 'message', 'data', 'statusMessage']);
/** Members whose content has a shape of its own: its strings, in order, are one text to whoever shows it. */
const STRUCTURED: ReadonlySet<string> = new Set([
  'result/structuredContent',
  'params/data',
  'error/data',
]);
/** Whether a group holds the strings of a structure, which are data rather than texts in a row. */
export function isStructure(group: string): boolean {
  return group === 'result/structuredContent';
}

const HOLDERS: ReadonlySet<string | number | undefined> = new Set(['result', 'params', 'error']);
/** The members of server requests that are text: the rest of their params is for the client to read. */
const PARAMS_TEXTS: ReadonlySet<string> = new Set([
  'text',
  'message',
  'systemPrompt',
  'statusMessage',
]);

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
  const texts: string[] = [];
  pushStrings(data, texts, false);
  for (const text of [message, ...texts]) add(found, ERROR_AS_SHOWN, text);
}

function collectHolder(members: JsonObject, holder: string, found: Collection): void {
  if (holder === 'error') collectError(members, found);
  for (const name in members) {
    const member = members[name] as Json;
    if (typeof member !== 'string' && typeof member !== 'object') continue;
    const branch = `${holder}/${name}`;
    if (STRUCTURED.has(branch)) collectStructure(member, branch, found);
    else collectTexts(member, [holder, name], found);
  }
}

function collectStructure(value: Json, branch: string, found: Collection): void {
  if (typeof value === 'string') {
    add(found, branch, value);
    if (branch !== 'result/structuredContent') found.continued.push(value);
    return;
  }
  const texts: string[] = [];
  pushStrings(value, texts);
  for (const text of texts) add(found, branch, text);
}

/** Strings in order, and the names of members between them, which together could form one secret. */
function pushStrings(value: Json, texts: string[], hasNames = true): void {
  if (typeof value === 'string') texts.push(value);
  else if (Array.isArray(value)) for (const one of value) pushStrings(one, texts, hasNames);
  else if (isObject(value)) {
    for (const name in value) {
      if (hasNames) texts.push(name);
      pushStrings(value[name] as Json, texts, hasNames);
    }
  }
}

function collectTexts(value: Json, steps: (string | number)[], found: Collection): void {
  if (typeof value === 'string') collectText(value, steps, found);
  else if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) collectStep(one, index, steps, found);
  } else if (isObject(value)) {
    for (const name in value) collectStep(value[name] as Json, name, steps, found);
  }
}

function collectText(text: string, steps: Steps, found: Collection): void {
  const last = steps.at(-1);
  if (typeof last === 'string' && !JOINED_MEMBERS.has(last)) return;
  const { group, isContinued } = placeOf(steps);
  if (group !== undefined) add(found, group, text);
  if (isContinued) found.continued.push(text);
}

function collectStep(
  value: Json,
  step: string | number,
  steps: (string | number)[],
  found: Collection,
): void {
  if (typeof value !== 'string' && typeof value !== 'object') return;
  steps.push(step);
  collectTexts(value, steps, found);
  steps.pop();
}

function add({ groups }: Collection, group: string, text: string): void {
  const known = groups.get(group);
  if (known === undefined) groups.set(group, [text]);
  else known.push(text);
}
