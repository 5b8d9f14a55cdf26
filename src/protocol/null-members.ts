// Takes null in an optional member for the absence that its sender meant, and cuts it out of the text by span, because
// the official SDKs reject it on the other side. Knows the optional members by method. Null that is data (an argument,
// structured content, a vendor's member of `_meta`) or that stands where a member is required is left as it is.
// Source: MCP schema, 2024-11-05 to 2026-07-28 (optional members are never nullable, `ttlMs` of a task aside).

import type { Span } from '../text/span.js';
import type { TextEdit } from './admitted-request.js';
import { applyEdits, elementSpans, memberSpans, type ParsedJson, removalEdits, spanOf } from './json/json.js';
import { isObject, type Json, type JsonObject, ownMember } from './jsonrpc.js';

/** The optional members of an object, and those that have optional members themselves. */
type Shape = {
  readonly optional?: readonly string[];
  readonly below?: { readonly [name: string]: Shape };
  /** Of an array: the shape of its items. */
  readonly each?: Shape;
};

const IMPLEMENTATION: Shape = { optional: ['title', 'description', 'websiteUrl', 'icons'] };

const CLIENT_CAPABILITIES: Shape = {
  optional: ['experimental', 'roots', 'sampling', 'elicitation', 'tasks', 'extensions'],
  below: {
    roots: { optional: ['listChanged'] },
    sampling: { optional: ['context', 'tools'] },
    elicitation: { optional: ['form', 'url'] },
    tasks: { optional: ['list', 'cancel', 'requests'] },
  },
};

const PREFIX = 'io.modelcontextprotocol/';
const META: Shape = {
  optional: ['progressToken', ...['clientInfo', 'logLevel', 'related-task'].map((name) => PREFIX + name)],
  below: {
    [`${PREFIX}clientInfo`]: IMPLEMENTATION,
    [`${PREFIX}clientCapabilities`]: CLIENT_CAPABILITIES,
  },
};

const RETRY = ['inputResponses', 'requestState'];
const CURSOR: Shape = { optional: ['cursor'] };
const NO_SHAPE: Shape = {};

/** The params of requests and notifications of clients. `_meta` is optional everywhere. */
const PARAMS: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  [
    'initialize',
    {
      optional: ['clientInfo'],
      below: { capabilities: CLIENT_CAPABILITIES, clientInfo: IMPLEMENTATION },
    },
  ],
  ['tools/list', CURSOR],
  ['prompts/list', CURSOR],
  ['resources/list', CURSOR],
  ['resources/templates/list', CURSOR],
  ['tasks/list', CURSOR],
  ['tools/call', { optional: ['arguments', 'task', ...RETRY] }],
  ['prompts/get', { optional: ['arguments', ...RETRY] }],
  ['resources/read', { optional: RETRY }],
  ['completion/complete', { optional: ['context'], below: { context: { optional: ['arguments'] } } }],
  [
    'subscriptions/listen',
    {
      below: {
        notifications: {
          optional: [
            ...['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'],
            ...['resourceSubscriptions', 'taskIds'],
          ],
        },
      },
    },
  ],
  ['notifications/cancelled', { optional: ['reason'] }],
  ['notifications/progress', { optional: ['total', 'message'] }],
]);

/** The result of a client's reply to a server request: elicitation, sampling and roots. */
const REPLY: Shape = {
  optional: ['_meta', 'content', 'stopReason'],
  below: { roots: { each: { optional: ['name', '_meta'] } } },
};

const ICONS: Shape = { each: { optional: ['mimeType', 'sizes', 'theme'] } };
const ITEM: Shape = {
  optional: ['title', 'description', 'icons', '_meta'],
  below: { icons: ICONS },
};

function itemsOf(member: string, optional: readonly string[], below: Shape['below'] = {}): Shape {
  const item = {
    optional: [...(ITEM.optional ?? []), ...optional],
    below: { ...ITEM.below, ...below },
  };
  return {
    optional: ['nextCursor', '_meta', 'ttlMs', 'cacheScope', 'resultType'],
    below: { [member]: { each: item } },
  };
}

const ANNOTATIONS: Shape = { optional: ['audience', 'priority', 'lastModified'] };
const RESOURCE = ['mimeType', 'size', 'annotations'];

const SERVER_CAPABILITIES: Shape = {
  optional: [...['experimental', 'logging', 'completions', 'prompts', 'resources', 'tools', 'tasks'], 'extensions'],
};

const HANDSHAKE: Shape = {
  optional: ['instructions', '_meta', 'ttlMs', 'cacheScope', 'resultType'],
  below: { serverInfo: IMPLEMENTATION, capabilities: SERVER_CAPABILITIES },
};

/** The results of lists and handshakes. */
const RESULTS: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ['initialize', HANDSHAKE],
  ['server/discover', HANDSHAKE],
  [
    'tools/list',
    itemsOf('tools', ['outputSchema', 'annotations', 'execution'], {
      annotations: {
        optional: [...['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']],
      },
      execution: { optional: ['taskSupport'] },
      inputSchema: { optional: ['properties', 'required', '$schema'] },
      outputSchema: { optional: ['properties', 'required', '$schema'] },
    }),
  ],
  [
    'prompts/list',
    itemsOf('prompts', ['arguments'], {
      arguments: { each: { optional: ['title', 'description', 'required'] } },
    }),
  ],
  ['resources/list', itemsOf('resources', RESOURCE, { annotations: ANNOTATIONS })],
  ['resources/templates/list', itemsOf('resourceTemplates', RESOURCE, { annotations: ANNOTATIONS })],
]);

/** JSON text and its value, without the members that were null, and the pointers to them. */
type WithoutNulls = {
  readonly text: string;
  readonly value: Json;
  readonly cut: readonly string[];
};

const NOTHING_CUT: readonly string[] = [];

/** A client's message without null in its optional members; the same value where it has none. */
export function cutClientNulls(text: string, value: Json): WithoutNulls {
  return text.includes('null') && isObject(value)
    ? cutNulls(text, value, clientShape(value))
    : { text, value, cut: NOTHING_CUT };
}

/** The response to a list or handshake as SDK clients accept it; other responses as they are. */
export function cutServerNulls(method: string, text: string): string {
  const result = RESULTS.get(method);
  if (result === undefined || !text.includes('null')) return text;
  const value: Json = JSON.parse(text);
  return cutNulls(text, value, { below: { result } }).text;
}

/** A server's notification or request without `params` that is null, which SDK clients reject. */
export function cutNullParams(reading: ParsedJson): ParsedJson {
  const { text, value } = reading;
  if (!isObject(value) || value['params'] !== null || value['method'] === undefined) return reading;
  const kept = cutNulls(text, value, { optional: ['params'] });
  return { ...reading, text: kept.text, value: kept.value };
}

function clientShape(message: JsonObject): Shape {
  const { method } = message as { readonly method?: Json };
  if (typeof method !== 'string') return { below: { result: REPLY } };
  const shape = PARAMS.get(method) ?? NO_SHAPE;
  return {
    // A notification has no id.
    optional: method.startsWith('notifications/') ? ['params', 'id'] : ['params'],
    below: {
      params: {
        optional: ['_meta', ...(shape.optional ?? [])],
        below: { _meta: META, ...shape.below },
      },
    },
  };
}

function cutNulls(text: string, value: Json, shape: Shape): WithoutNulls {
  const cut: string[] = [];
  collectNulls(value, shape, '', cut);
  const span = cut.length === 0 ? undefined : spanOf(text, []);
  if (span === undefined) return { text, value, cut: NOTHING_CUT };
  const edits: TextEdit[] = [];
  const cleaned = cutBelow({ text, edits }, span, value, shape);
  edits.sort((one, other) => one.start - other.start);
  return { text: applyEdits(text, edits), value: cleaned, cut };
}

function isCut(shape: Shape, object: JsonObject, name: string): boolean {
  return object[name] === null && shape.optional?.includes(name) === true;
}

function shapeOf(shape: Shape, name: string): Shape | undefined {
  const { below } = shape;
  return below !== undefined && Object.hasOwn(below, name) ? below[name] : undefined;
}

/** Collects the pointers of what is cut; what has none costs no spans. */
function collectNulls(value: Json, shape: Shape, pointer: string, cut: string[]): void {
  for (const [name, inner, member] of innerOf(value, shape)) {
    const at = `${pointer}/${name}`;
    if (member === null && shape.optional?.includes(name) === true) cut.push(at);
    else if (inner !== undefined) collectNulls(member, inner, at, cut);
  }
}

/** The members and items that the shape speaks of, with their own shapes. */
function innerOf(value: Json, shape: Shape): readonly (readonly [string, Shape | undefined, Json])[] {
  if (Array.isArray(value)) {
    const { each } = shape;
    if (each === undefined) return [];
    return (value as readonly Json[]).map((one, index) => [String(index), each, one] as const);
  }
  if (!isObject(value)) return [];
  const names = new Set([...(shape.optional ?? []), ...Object.keys(shape.below ?? {})]);
  return [...names].flatMap((name) => {
    const member = ownMember(value, name);
    return member === undefined ? [] : [[name, shapeOf(shape, name), member] as const];
  });
}

/** Adds the edits, and returns the value without what they cut. */
function cutBelow(
  source: { readonly text: string; readonly edits: TextEdit[] },
  span: Span,
  value: Json,
  shape: Shape,
): Json {
  const { text, edits } = source;
  if (isObject(value)) {
    edits.push(...removalEdits(text, span, (name) => isCut(shape, value, name)));
    const kept: [string, Json][] = [];
    for (const { name, value: at } of memberSpans(text, span)) {
      if (isCut(shape, value, name)) continue;
      const inner = shapeOf(shape, name);
      const member = value[name] ?? null;
      kept.push([name, inner === undefined ? member : cutBelow(source, at, member, inner)]);
    }
    return Object.fromEntries(kept);
  }
  const { each } = shape;
  if (each === undefined || !Array.isArray(value)) return value;
  const spans = elementSpans(text, span);
  return (value as readonly Json[]).map((one, index) => {
    const at = spans[index];
    return at === undefined ? one : cutBelow(source, at, one, each);
  });
}
