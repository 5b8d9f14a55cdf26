// What of a message that is about no item its sender words freely, and no pin holds: `_meta`, what a client or server
// says of itself and of its capabilities, why it cancels and how far it is; names, titles and descriptions of resources,
// status messages, and members that no revision defines. Cuts that out, so that the message does its work and brings its
// receiver nothing that a flow looks for. Ids, progress tokens and cursors stay: what they mean depends on them. Never
// looks at arguments, names or URIs, which requests exist for, nor at definitions, which pins hold. Pure.
// Source: MCP schema, 2024-11-05 to 2026-07-28 (`_meta`, lifecycle, cancellation, progress, lists);
// docs/reference/flows.md.

import { copyAdmitted } from './admission.js';
import type { AdmittedMessage, TextEdit } from './admitted-request.js';
import { APPS_EXTENSION, APPS_SETTINGS } from './capabilities.js';
import { applyEdits, memberSpans, parseMessage, removalEdits, spanOf } from './json/json.js';
import { renderJson } from './json/request-ids.js';
import { isObject, type Json, type JsonObject } from './jsonrpc.js';
import { LOG_LEVELS } from './params.js';
import { TASKS_EXTENSION } from './tasks.js';

/** What is left of a value; `undefined` if nothing is. `server`: the name of the upstream in the configuration. */
type Reduce = (value: Json, server: string) => Json | undefined;
type Members = { readonly [name: string]: Reduce };

const keep: Reduce = (value) => value;
const drop: Reduce = () => undefined;
const isNumber: Reduce = (value) => (typeof value === 'number' ? value : undefined);
/** Only what is written exactly so: it has no room for other text. */
function matching(pattern: RegExp): Reduce {
  return (value) => (typeof value === 'string' && pattern.test(value) ? value : undefined);
}
function objectOf(members: Members): Reduce {
  return (value, server) => (isObject(value) ? reduce(value, members, server) : undefined);
}
function listOf(each: Reduce): Reduce {
  return (value, server) => (Array.isArray(value) ? value.flatMap((one) => each(one, server) ?? []) : undefined);
}
/** An object in any case, which sessions require. */
function orEmpty(each: Reduce): Reduce {
  return (value, server) => each(value, server) ?? {};
}

const PREFIX = 'io.modelcontextprotocol/';
/** In place of what a client says of itself; sessions require something. */
const NOBODY: JsonObject = Object.freeze({ name: 'sallyport', version: '0' });

/** A capability that is declared by a boolean or by an object. */
function capability(members: Members = {}): Reduce {
  return (value, server) => (typeof value === 'boolean' ? value : objectOf(members)(value, server));
}

const EXTENSIONS = objectOf({
  [TASKS_EXTENSION]: () => ({}),
  [APPS_EXTENSION]: () => APPS_SETTINGS,
});
/** The capabilities that clients declare and the gateway supports; extensions without settings of their own. */
const CAPABILITIES = orEmpty(
  objectOf({
    sampling: capability({ context: capability(), tools: capability() }),
    elicitation: capability({ form: capability(), url: capability() }),
    roots: capability({ listChanged: capability() }),
    tasks: capability({
      list: capability(),
      cancel: capability(),
      requests: capability({
        sampling: capability({ createMessage: capability() }),
        elicitation: capability({ create: capability() }),
      }),
    }),
    extensions(value, server) {
      const left = EXTENSIONS(value, server);
      return isObject(left) && Object.keys(left).length > 0 ? left : undefined;
    },
  }),
);

const META = orEmpty(
  objectOf({
    progressToken: keep,
    [`${PREFIX}protocolVersion`]: keep,
    [`${PREFIX}subscriptionId`]: keep,
    [`${PREFIX}related-task`]: keep,
    [`${PREFIX}logLevel`]: (level) => (LOG_LEVELS.has(level) ? level : undefined),
    [`${PREFIX}clientInfo`]: () => NOBODY,
    [`${PREFIX}clientCapabilities`]: CAPABILITIES,
  }),
);

const TIME = matching(/^[\d:.+TZ-]{1,40}$/);
const ROLES = listOf(matching(/^(?:user|assistant)$/));
const VERSION = matching(/^v?\d[\w.+-]{0,31}$/);
const MEDIA_TYPE = matching(/^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,63}(?:; ?charset=[\w-]{1,20})?$/i);

function serverOf(value: Json, server: string): Json {
  const version = isObject(value) ? VERSION(value['version'] ?? null, server) : undefined;
  return { name: server, version: version ?? '0' };
}

function resourceOf(value: Json, server: string): Json | undefined {
  const uri = isObject(value) ? value['uri'] : undefined;
  if (!isObject(value) || typeof uri !== 'string') return undefined;
  return { uri, name: uri, ...reduce(value, RESOURCE, server) };
}

const RESOURCE: Members = {
  mimeType: MEDIA_TYPE,
  size: isNumber,
  annotations: objectOf({ audience: ROLES, priority: isNumber, lastModified: TIME }),
};
/** The id is sealed, and replaced where it is not. */
const TASK: Members = {
  taskId: keep,
  status: keep,
  createdAt: TIME,
  lastUpdatedAt: TIME,
  ttl: (value) => (value === null || typeof value === 'number' ? value : undefined),
  pollInterval: isNumber,
};
/** Of any result about no item. */
const COMMON: Members = {
  resultType: matching(/^complete$/),
  cacheScope: matching(/^(?:private|public)$/),
  ttlMs: isNumber,
};
const LIST: Members = { ...COMMON, nextCursor: keep };

/** What is left of members of params, of which all others but `_meta` stay, and of results, of which all others go. */
type Row = { readonly params?: Members; readonly result?: Members };
const METHODS: ReadonlyMap<string, Row> = new Map<string, Row>([
  [
    'initialize',
    {
      params: { clientInfo: () => NOBODY, capabilities: CAPABILITIES },
      result: {
        ...{ protocolVersion: keep, capabilities: keep, instructions: keep },
        serverInfo: serverOf,
      },
    },
  ],
  [
    'server/discover',
    {
      result: {
        ...{ ...COMMON, supportedVersions: keep, capabilities: keep, instructions: keep },
        _meta: objectOf({ [`${PREFIX}serverInfo`]: serverOf }),
      },
    },
  ],
  ['notifications/cancelled', { params: { reason: () => '' } }],
  ['notifications/progress', { params: { message: () => '' } }],
  ['tools/list', { result: { ...LIST, tools: keep } }],
  ['prompts/list', { result: { ...LIST, prompts: keep } }],
  ['resources/templates/list', { result: { ...LIST, resourceTemplates: keep } }],
  ['resources/list', { result: { ...LIST, resources: listOf(resourceOf) } }],
  ['tasks/list', { result: { ...LIST, tasks: listOf(objectOf(TASK)) } }],
  ['ping', { result: COMMON }],
  ['logging/setLevel', { result: COMMON }],
]);

/** Methods whose results are about no item, so that nothing of them is recorded as received. */
export function isAboutNothing(method: string): boolean {
  return METHODS.get(method)?.result !== undefined;
}

/** The message of a client without such text; the same one if it has none. */
export function withoutFreeText(admitted: AdmittedMessage): AdmittedMessage {
  const { message, rule, text, edits } = admitted;
  if (message.kind !== 'request' && message.kind !== 'notification') return admitted;
  if (message.params === undefined) return admitted;
  const members = { _meta: META, ...METHODS.get(rule.method)?.params };
  const reduced = (params: JsonObject): JsonObject => reduce(params, members, '', keep);
  const sent = memberOf(parseMessage(applyEdits(text, edits)), 'params');
  const changes = isObject(sent) ? editsTo(text, 'params', sent, reduced(sent)) : [];
  if (changes.length === 0) return admitted;
  // What was edited inside of them before is in the new values.
  const others = edits.filter(({ start, end }) => !changes.some((one) => one.start <= start && end <= one.end));
  return copyAdmitted(admitted, {
    message: { ...message, params: reduced(message.params) },
    edits: [...others, ...changes].sort((one, other) => one.start - other.start),
  });
}

/** The text of a response without what no pin holds; the same text if it has none. */
export function withoutUnpinnedText(text: string, method: string, server: string): string {
  const members = METHODS.get(method)?.result;
  const result = memberOf(JSON.parse(text), 'result');
  if (members === undefined || !isObject(result)) return text;
  return applyEdits(text, editsTo(text, 'result', result, reduce(result, members, server)));
}

function memberOf(value: Json, name: string): Json | undefined {
  return isObject(value) ? value[name] : undefined;
}

function reduce(object: JsonObject, members: Members, server: string, others = drop): JsonObject {
  const left: Record<string, Json> = {};
  for (const [name, value] of Object.entries(object)) {
    const own = Object.hasOwn(members, name) ? members[name] : undefined;
    const kept = (own ?? others)(value, server);
    if (kept !== undefined) left[name] = kept;
  }
  return left;
}

/** The edits that leave of an object what is left. What stays as it is is not written again, byte for byte. */
function editsTo(text: string, holder: string, object: JsonObject, left: JsonObject): readonly TextEdit[] {
  const span = spanOf(text, [holder]);
  if (span === undefined) return [];
  const isGone = (name: string): boolean => Object.hasOwn(object, name) && !Object.hasOwn(left, name);
  const removed = removalEdits(text, span, isGone);
  const replaced = memberSpans(text, span).flatMap(({ name, value }): TextEdit[] => {
    const [before, after] = [object[name], left[name]];
    if (before === undefined || after === undefined || isSame(before, after)) return [];
    return [{ ...value, text: renderJson(after) }];
  });
  return [...removed, ...replaced].sort((one, other) => one.start - other.start);
}

function isSame(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other)) return JSON.stringify(one) === JSON.stringify(other);
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => {
      const [own, its] = [one[name], other[name]];
      return own !== undefined && its !== undefined && isSame(own, its);
    })
  );
}
