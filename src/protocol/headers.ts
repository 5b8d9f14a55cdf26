// HTTP headers of the protocol: compares the headers of the stateless era with the body, writes them for a
// message that came without them, and reads `Accept`. A header that mirrors the body never decides anything:
// a difference refuses the message. Decoded values are compared and inspected, never forwarded.
// Source: MCP 2026-07-28, transports, standard request headers, custom headers (SEP-2243) and value encoding.

import { MAX_JSON_DEPTH } from './json/json.js';
import type { Json } from './jsonrpc.js';
import { isObject, type JsonObject } from './jsonrpc.js';

const NO_WEIGHT = /^q=0(?:\.0{0,3})?$/;
/** Ranges beyond this number are ignored. */
const MAX_RANGES = 32;

/**
 * True if an `Accept` header takes this type, such as `text/event-stream`; the most specific range decides.
 * Without the header every type is taken, because many clients send none; a type that is left out is not
 * sent.
 * Source: RFC 9110 §12.5.1; MCP 2025-11-25, transports (sending messages to the server).
 */
export function acceptsType(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.trim() === '') return true;
  let exactness = 0;
  let isTaken = false;
  for (const range of accept.split(',', MAX_RANGES)) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const found = exactnessOf(name, type);
    if (found <= exactness) continue;
    exactness = found;
    isTaken = !parameters.some((one) => NO_WEIGHT.test(one));
  }
  return isTaken;
}

const STREAM = 'text/event-stream';
/** The value that clients must send. Nearly all send exactly this, so it is compared before parsing. */
const USUAL_ACCEPT = `application/json, ${STREAM}`;

/** True if a request accepts an event stream. */
export function acceptsEventStream({ accept }: HeaderMap): boolean {
  return accept === USUAL_ACCEPT || acceptsType(accept, STREAM);
}

/** How specifically a range names a type; 0 if it does not. */
function exactnessOf(range: string, type: string): number {
  if (range === type) return 3;
  if (range === '*/*') return 1;
  return range === `${type.slice(0, type.indexOf('/'))}/*` ? 2 : 0;
}

/**
 * The media type of a `Content-Type` header, in lower case and without parameters; empty without the header.
 * Source: RFC 9110 §8.3.1.
 */
export function mediaType(contentType = ''): string {
  const end = contentType.indexOf(';');
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

/** Header values by lower-case name, as the HTTP layer passes them. */
export type HeaderMap = { readonly [name: string]: string | undefined };

/** An argument that a header mirrors: the part of the name after `Mcp-Param-`, and the path of the argument. */
export type MirroredParameter = { readonly header: string; readonly path: readonly string[] };

type MirroredParameters =
  | { readonly valid: true; readonly mirrored: readonly MirroredParameter[] }
  /** `why` quotes nothing of the schema. */
  | { readonly valid: false; readonly why: string };

export const PARAM_PREFIX = 'mcp-param-';

/** How deep an input schema is searched for `x-mcp-header`; a deeper schema is invalid. */
const MAX_MIRROR_DEPTH = MAX_JSON_DEPTH;

const ENCODED_PREFIX = '=?base64?';
const ENCODED_SUFFIX = '?=';
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const VISIBLE_ASCII = /^[\x20-\x7e]*$/;
const INTEGER = /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const ANNOTATION = 'x-mcp-header';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The value of a header as the body would carry it: optional whitespace trimmed, the form `=?base64?…?=`
 * decoded. `undefined` if it is malformed: bytes outside visible ASCII, base64 that is not canonical, or
 * bytes that are not UTF-8.
 * Source: MCP 2026-07-28, transports, value encoding; RFC 9110 §5.6.3; RFC 4648 §3.5.
 */
export function decodeHeaderValue(raw: string): string | undefined {
  const value = trimBlank(raw);
  if (!VISIBLE_ASCII.test(value)) return undefined;
  if (value.length < ENCODED_PREFIX.length + ENCODED_SUFFIX.length) return value;
  if (!value.startsWith(ENCODED_PREFIX) || !value.endsWith(ENCODED_SUFFIX)) return value;
  return decodeBase64(value.slice(ENCODED_PREFIX.length, -ENCODED_SUFFIX.length));
}

/**
 * True if `Mcp-Name` names exactly what the body names: case-sensitive, after decoding, and without control
 * characters, which must not reach a log or another header.
 */
export function matchesName(header: string | undefined, name: string): boolean {
  if (header === undefined) return false;
  const decoded = decodeHeaderValue(header);
  return decoded !== undefined && decoded === name && !hasControl(decoded);
}

/** True if an unencoded header has exactly this value once optional whitespace is trimmed. */
export function matchesPlain(header: string | undefined, value: string): boolean {
  return header !== undefined && trimBlank(header) === value;
}

/** No header mirrors an argument. */
export const NO_PARAM_HEADERS: { readonly [name: string]: string } = Object.freeze(Object.create(null));

/**
 * The `Mcp-Param-*` headers of a message by lower-case name, values as sent; `undefined` if one is repeated
 * or malformed, because two readers could then see two values.
 */
export function readParamHeaders(
  headers: HeaderMap,
  repeated: ReadonlySet<string>,
): { readonly [name: string]: string } | undefined {
  const found: Record<string, string> = Object.create(null);
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || !name.startsWith(PARAM_PREFIX)) continue;
    if (repeated.has(name) || decodeHeaderValue(value) === undefined) return undefined;
    found[name] = trimBlank(value);
  }
  return found;
}

/** The decoded parameter headers of an admitted message, by name; `undefined` if there are none. */
export function decodeParamHeaders(headers: {
  readonly [name: string]: string;
}): { readonly [name: string]: string } | undefined {
  let decoded: Record<string, string> | undefined;
  for (const name in headers) {
    const value = headers[name] ?? '';
    decoded ??= Object.create(null) as Record<string, string>;
    decoded[name] = decodeHeaderValue(value) ?? value;
  }
  return decoded;
}

/**
 * The arguments that a tool's inputSchema mirrors into headers, or why the schema cannot be used: an
 * annotation must be a non-empty unique token on a string, integer or boolean that is reached through
 * `properties` alone.
 * Source: MCP 2026-07-28, tools, x-mcp-header.
 */
export function mirroredParameters(inputSchema: Json): MirroredParameters {
  const mirrored: MirroredParameter[] = [];
  const why = collectMirrored(inputSchema, [], mirrored);
  if (why !== undefined) return { valid: false, why };
  const names = new Set(mirrored.map((parameter) => parameter.header.toLowerCase()));
  if (names.size < mirrored.length) return { valid: false, why: 'two annotations name one header' };
  return { valid: true, mirrored };
}

/**
 * True if each mirrored header is present exactly when its argument is present and not null, and has its
 * value: booleans as `true` and `false`, integers compared as numbers, strings exactly after decoding. A
 * value that no header can carry must have no header. Headers that mirror no parameter are ignored.
 * Source: MCP 2026-07-28, transports, custom headers.
 */
export function compareParamHeaders(
  mirrored: readonly MirroredParameter[],
  args: JsonObject,
  paramHeaders: { readonly [name: string]: string },
): boolean {
  return mirrored.every(({ header, path }) =>
    isMirrored(argumentAt(args, path), paramHeaders[PARAM_PREFIX + header.toLowerCase()]),
  );
}

export function hasParamHeaders(paramHeaders: { readonly [name: string]: string }): boolean {
  for (const _name in paramHeaders) return true;
  return false;
}

/**
 * True if each header has the value of an argument: of the one that the schema mirrors into it, or else of the only one
 * at the top whose name differs at most in case.
 */
export function areMirrors(
  mirrored: readonly MirroredParameter[],
  args: JsonObject,
  paramHeaders: { readonly [name: string]: string },
): boolean {
  return Object.entries(paramHeaders).every(([name, value]) => {
    const declared = mirrored.find(({ header }) => PARAM_PREFIX + header.toLowerCase() === name);
    const named = Object.keys(args).filter((one) => PARAM_PREFIX + one.toLowerCase() === name);
    const path = declared?.path ?? (named.length === 1 ? named : undefined);
    return path !== undefined && isMirrored(argumentAt(args, path), value);
  });
}

function isMirrored(value: Json | undefined, header: string | undefined): boolean {
  if (!isMirrorable(value)) return header === undefined;
  const decoded = header === undefined ? undefined : decodeHeaderValue(header);
  if (decoded === undefined) return false;
  if (typeof value === 'number') return INTEGER.test(decoded) && Number(decoded) === value;
  return decoded === String(value);
}

function isMirrorable(value: Json | undefined): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
}

/** The argument at this path of own members; `undefined` if there is none. */
function argumentAt(args: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = args;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

// Keywords whose value is an instance, not a schema: a name inside is not an annotation.
const INSTANCE_KEYWORDS = new Set(['const', 'default', 'enum', 'examples']);
// Keywords whose value maps arbitrary names to schemas.
const MAP_KEYWORDS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/** Follows `properties` from the root; every other keyword must be free of annotations. */
function collectMirrored(schema: Json, path: readonly string[], mirrored: MirroredParameter[]): string | undefined {
  if (path.length > MAX_MIRROR_DEPTH) return 'the schema nests too deeply';
  if (!isObject(schema)) return undefined;
  const annotation = readAnnotation(schema, path);
  if (typeof annotation === 'object') mirrored.push(annotation);
  else if (annotation !== undefined) return annotation;
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword] ?? null;
    const why =
      keyword === 'properties' && isObject(value)
        ? collectProperties(value, path, mirrored)
        : findMisplaced(keyword, value, 0);
    if (why !== undefined) return why;
  }
  return undefined;
}

function collectProperties(
  properties: JsonObject,
  path: readonly string[],
  mirrored: MirroredParameter[],
): string | undefined {
  for (const name of Object.keys(properties)) {
    const why = collectMirrored(properties[name] ?? null, [...path, name], mirrored);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** The annotation of one property: a parameter, an error text, or undefined if there is none. */
function readAnnotation(schema: JsonObject, path: readonly string[]): MirroredParameter | string | undefined {
  if (!Object.hasOwn(schema, ANNOTATION)) return undefined;
  const header = schema[ANNOTATION];
  if (path.length === 0) return 'an annotation stands on the root';
  if (typeof header !== 'string' || !TOKEN.test(header)) return 'an annotation is not a token';
  const type = schema['type'];
  if (type !== 'string' && type !== 'integer' && type !== 'boolean') {
    return 'an annotation stands on neither a string, an integer nor a boolean';
  }
  return '$ref' in schema ? 'an annotation stands beside a reference' : { header, path };
}

/** An error text if an annotation occurs anywhere within a keyword other than `properties`. */
function findMisplaced(keyword: string, value: Json, depth: number): string | undefined {
  if (INSTANCE_KEYWORDS.has(keyword) || typeof value !== 'object' || value === null) {
    return undefined;
  }
  if (depth > MAX_MIRROR_DEPTH) return 'the schema nests too deeply';
  for (const [name, inner] of Object.entries(value)) {
    // The names in a map of schemas are never keywords.
    if (name === ANNOTATION && !isSchemaMap(keyword, inner)) {
      return 'an annotation stands where properties alone do not lead';
    }
    const why = findMisplaced(MAP_KEYWORDS.has(keyword) ? '' : name, inner, depth + 1);
    if (why !== undefined) return why;
  }
  return undefined;
}

function isSchemaMap(keyword: string, inner: Json): boolean {
  return MAP_KEYWORDS.has(keyword) && (isObject(inner) || typeof inner === 'boolean');
}

function decodeBase64(encoded: string): string | undefined {
  if (!BASE64.test(encoded)) return undefined;
  const binary = atob(encoded);
  // Spare bits that are not zero would give one value several encodings.
  if (btoa(binary) !== encoded) return undefined;
  try {
    return decoder.decode(Uint8Array.from(binary, (byte) => byte.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

function trimBlank(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return start === 0 && end === value.length ? value : value.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function hasControl(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
  }
  return false;
}

/** A header: lower-case name and value. */
export type HeaderPair = readonly [name: string, value: string];

/** The member of params that `Mcp-Name` mirrors; on other methods the header must be absent. */
export const NAME_SOURCES: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);
const PLAIN_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** A value as a header carries it: plain if every reader reads it alike, otherwise base64. */
export function encodeHeaderValue(value: string): string {
  const isPlain = PLAIN_VALUE.test(value) && !value.startsWith(ENCODED_PREFIX);
  if (isPlain && decodeHeaderValue(value) === value) return value;
  let binary = '';
  for (const byte of new TextEncoder().encode(value)) binary += String.fromCharCode(byte);
  return `${ENCODED_PREFIX}${btoa(binary)}${ENCODED_SUFFIX}`;
}

/** The headers of a stateless request; `Mcp-Param-*` as the approved schema mirrors them. */
export function statelessHeaders(
  version: string,
  method: string,
  params: JsonObject,
  mirrored: readonly MirroredParameter[],
): readonly HeaderPair[] {
  const headers: HeaderPair[] = [
    ['mcp-protocol-version', version],
    ['mcp-method', method],
  ];
  const name = params[NAME_SOURCES.get(method) ?? ''];
  if (typeof name === 'string') headers.push(['mcp-name', encodeHeaderValue(name)]);
  const args = params['arguments'];
  return method === 'tools/call' && isObject(args) ? [...headers, ...paramHeadersOf(mirrored, args)] : headers;
}

/** The headers that mirror these arguments. */
export function paramHeadersOf(mirrored: readonly MirroredParameter[], args: JsonObject): readonly HeaderPair[] {
  return mirrored.flatMap(({ header, path }): HeaderPair[] => {
    const value = argumentAt(args, path);
    return isMirrorable(value) ? [[PARAM_PREFIX + header.toLowerCase(), encodeHeaderValue(String(value))]] : [];
  });
}
