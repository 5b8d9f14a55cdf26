// What of a message that names no item its sender words freely: members of `_meta` that no revision defines, what a
// client says of itself and of its capabilities, why it cancels, and how far it is. Cuts that out, so that the message
// does its work and tells its receiver nothing else. Ids, progress tokens and cursors stay: what they mean depends on
// them. Never looks at arguments, names or URIs, which requests exist for.
// Source: MCP schema, 2024-11-05 to 2026-07-28 (`_meta`, lifecycle, cancellation, progress).

import { copyAdmitted } from './admission.js';
import type { AdmittedMessage, TextEdit } from './admitted-request.js';
import { APPS_EXTENSION, APPS_SETTINGS } from './capabilities.js';
import { applyEdits, parseMessage, spanOf } from './json/json.js';
import { renderJson } from './json/request-ids.js';
import { isObject, type Json, type JsonObject } from './jsonrpc.js';
import { LOG_LEVELS } from './params.js';
import { TASKS_EXTENSION } from './tasks.js';

const PREFIX = 'io.modelcontextprotocol/';
/** In place of what a client says of itself; sessions require something. */
const NOBODY: JsonObject = Object.freeze({ name: 'sallyport', version: '0' });

/** The members of capabilities that clients declare and the gateway supports, and those below them. */
type Shape = { readonly [name: string]: Shape };
const CAPABILITIES: Shape = {
  sampling: { context: {}, tools: {} },
  elicitation: { form: {}, url: {} },
  roots: { listChanged: {} },
  tasks: {
    list: {},
    cancel: {},
    requests: { sampling: { createMessage: {} }, elicitation: { create: {} } },
  },
};

/** The extensions that are supported, as a client declares them without settings of its own. */
const EXTENSIONS: ReadonlyMap<string, JsonObject> = new Map([
  [TASKS_EXTENSION, { [TASKS_EXTENSION]: {} }],
  [APPS_EXTENSION, { [APPS_EXTENSION]: APPS_SETTINGS }],
]);

/** What is left of a value at a name; `undefined` if nothing is. */
type Reduce = (value: Json) => Json | undefined;
const keep: Reduce = (value) => value;

const META: ReadonlyMap<string, Reduce> = new Map<string, Reduce>([
  ['progressToken', keep],
  [`${PREFIX}protocolVersion`, keep],
  [`${PREFIX}subscriptionId`, keep],
  [`${PREFIX}related-task`, keep],
  [`${PREFIX}logLevel`, (level) => (LOG_LEVELS.has(level) ? level : undefined)],
  [`${PREFIX}clientInfo`, () => NOBODY],
  [`${PREFIX}clientCapabilities`, reduceCapabilities],
]);

/** What is left of the members of params that may hold such text, by method; of any method `_meta`. */
const PARAMS: ReadonlyMap<string, ReadonlyMap<string, Reduce>> = new Map([
  [
    'initialize',
    new Map<string, Reduce>([
      ['clientInfo', () => NOBODY],
      ['capabilities', reduceCapabilities],
    ]),
  ],
  ['notifications/cancelled', new Map<string, Reduce>([['reason', () => '']])],
  ['notifications/progress', new Map<string, Reduce>([['message', () => '']])],
]);
const NO_MEMBERS: ReadonlyMap<string, Reduce> = new Map();

/** The message without such text; the same one if it has none. */
export function withoutFreeText(admitted: AdmittedMessage): AdmittedMessage {
  const { message, rule, text, edits } = admitted;
  if (message.kind !== 'request' && message.kind !== 'notification') return admitted;
  if (message.params === undefined) return admitted;
  const sent = memberOf(parseMessage(applyEdits(text, edits)), 'params');
  const left = reduceParams(rule.method, message.params);
  const replaced = isObject(sent) ? replacedIn(sent, reduceParams(rule.method, sent)) : [];
  if (replaced.length === 0) return admitted;
  const changes = replaced.flatMap(([name, value]): TextEdit[] => {
    const span = spanOf(text, ['params', name]);
    return span === undefined ? [] : [{ ...span, text: renderJson(value) }];
  });
  // What was edited inside of them before is in the new values.
  const others = edits.filter(
    ({ start, end }) => !changes.some((one) => one.start <= start && end <= one.end),
  );
  return copyAdmitted(admitted, {
    message: { ...message, params: left },
    edits: [...others, ...changes].sort((one, other) => one.start - other.start),
  });
}

function memberOf(value: Json, name: string): Json | undefined {
  return isObject(value) ? value[name] : undefined;
}

function replacedIn(before: JsonObject, after: JsonObject): readonly (readonly [string, Json])[] {
  return Object.entries(after).filter(([name, value]) => value !== before[name]);
}

function reduceParams(method: string, params: JsonObject): JsonObject {
  const members = PARAMS.get(method) ?? NO_MEMBERS;
  const reduced: Record<string, Json> = {};
  for (const [name, value] of Object.entries(params)) {
    const reduce = name === '_meta' ? reduceMeta : (members.get(name) ?? keep);
    reduced[name] = reduce(value) ?? null;
  }
  return reduced;
}

/** Returns the same object if all of it stays. */
function reduceMeta(meta: Json): Json {
  if (!isObject(meta)) return {};
  const reduced: Record<string, Json> = {};
  for (const [name, value] of Object.entries(meta)) {
    const left = META.get(name)?.(value);
    if (left !== undefined) reduced[name] = left;
  }
  return isSame(meta, reduced) ? meta : reduced;
}

function reduceCapabilities(capabilities: Json): Json {
  if (!isObject(capabilities)) return {};
  const { extensions } = capabilities;
  const supported = isObject(extensions)
    ? Object.keys(extensions).flatMap((name) => EXTENSIONS.get(name) ?? [])
    : [];
  const carried = supported.length === 0 ? {} : { extensions: Object.assign({}, ...supported) };
  const reduced = { ...reduceTo(CAPABILITIES, capabilities), ...carried };
  return isSame(capabilities, reduced) ? capabilities : reduced;
}

function reduceTo(shape: Shape, value: JsonObject): JsonObject {
  const reduced: Record<string, Json> = {};
  for (const [name, below] of Object.entries(shape)) {
    const member = Object.hasOwn(value, name) ? value[name] : undefined;
    if (typeof member === 'boolean') reduced[name] = member;
    else if (isObject(member)) reduced[name] = reduceTo(below, member);
  }
  return reduced;
}

function isSame(one: JsonObject, other: JsonObject): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]))
  );
}
