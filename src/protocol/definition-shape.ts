// What the official SDKs require of a definition in a list: which members have which types. Their clients check a list as
// a whole, so one definition that breaks a rule costs the caller every other of its server. Says what is wrong, and
// decides nothing. Null in an optional member is absence. Source: MCP schema 2025-11-25 and 2026-07-28 (`Tool`, `Prompt`,
// `Resource`, `ResourceTemplate`), as the TypeScript SDK checks it in its versions 1 and 2.

import { isObject, type Json, type JsonObject, ownMember } from './jsonrpc.js';

/** The lists of a server, by what they hold. */
type ListedItems = 'tools' | 'prompts' | 'templates' | 'resources';

/** A place in a definition, and what stands there in place of what: nothing of it is quoted. */
export type ShapeError = { readonly pointer: string; readonly why: string };

/** Returns the pointer below the value and what is expected there, if the value is something else. */
type Rule = (value: Json) => ShapeError | undefined;

function expected(what: string, value: Json, pointer = ''): ShapeError {
  return { pointer, why: `expected ${what}, got ${kindOf(value)}` };
}

function kindOf(value: Json): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function typed(type: 'string' | 'boolean' | 'number'): Rule {
  return (value) => (typeof value === type ? undefined : expected(type, value));
}

const TEXT = typed('string');
const FLAG = typed('boolean');
const NUMBER = typed('number');
const OBJECT: Rule = (value) => (isObject(value) ? undefined : expected('object', value));
/** Anything but a scalar, of which boolean schemas are one. */
const SCHEMA: Rule = (value) => (typeof value === 'object' && value !== null ? undefined : expected('object', value));

function oneOf(...values: readonly string[]): Rule {
  const what = values.map((value) => JSON.stringify(value)).join(' or ');
  return (value) =>
    typeof value === 'string' && values.includes(value) ? undefined : { pointer: '', why: `expected ${what}` };
}

function below(name: string | number, error: ShapeError | undefined): ShapeError | undefined {
  if (error === undefined) return undefined;
  const step = String(name).replaceAll('~', '~0').replaceAll('/', '~1');
  return { ...error, pointer: `/${step}${error.pointer}` };
}

function firstError<Item>(
  items: Iterable<Item>,
  check: (item: Item) => ShapeError | undefined,
): ShapeError | undefined {
  for (const item of items) {
    const error = check(item);
    if (error !== undefined) return error;
  }
  return undefined;
}

function listOf(rule: Rule): Rule {
  return (value) =>
    Array.isArray(value)
      ? firstError((value as readonly Json[]).entries(), ([at, one]) => below(at, rule(one)))
      : expected('array', value);
}

function mapOf(rule: Rule): Rule {
  return (value) =>
    isObject(value)
      ? firstError(Object.entries(value), ([name, one]) => below(name, rule(one)))
      : expected('object', value);
}

/** An object whose members, where they are present, follow these rules; others are free. */
function record(required: { readonly [name: string]: Rule }, optional: { readonly [name: string]: Rule } = {}): Rule {
  const rules = Object.entries({ ...optional, ...required });
  return (value) => {
    if (!isObject(value)) return expected('object', value);
    return firstError(rules, ([name, rule]) => {
      const member = ownMember(value, name);
      const isRequired = Object.hasOwn(required, name);
      if (member === undefined) return isRequired ? { pointer: `/${name}`, why: 'is missing' } : undefined;
      return member === null && !isRequired ? undefined : below(name, rule(member));
    });
  };
}

/** Icons are no reason to leave an item out: those that no client reads are removed from it. */
const DESCRIBED = { title: TEXT, description: TEXT, _meta: OBJECT };
const HINTS = record(
  {},
  {
    ...{ title: TEXT, readOnlyHint: FLAG, destructiveHint: FLAG },
    ...{ idempotentHint: FLAG, openWorldHint: FLAG },
  },
);

/** RFC 3339 with seconds optional, as the SDKs read it. */
const DATE_TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const ANNOTATIONS = record(
  {},
  {
    audience: listOf(oneOf('user', 'assistant')),
    priority: (value) =>
      typeof value === 'number' && value >= 0 && value <= 1
        ? undefined
        : { pointer: '', why: 'expected number from 0 to 1' },
    lastModified: (value) =>
      typeof value === 'string' && isDateTime(value)
        ? undefined
        : { pointer: '', why: 'expected date and time with offset' },
  },
);

function isDateTime(text: string): boolean {
  if (!DATE_TIME.test(text)) return false;
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number);
  const last = new Date(0);
  last.setUTCFullYear(year, month, 0);
  return day <= last.getUTCDate();
}

/** In the stateless era only the type of the input is fixed; the root of an output schema may be anything. */
const ROOT = record({ type: oneOf('object') }, { $schema: TEXT });
const SESSION_ROOT = record({ type: oneOf('object') }, { properties: mapOf(SCHEMA), required: listOf(TEXT) });
const TOOL = { name: TEXT };
const RESOURCE = { ...DESCRIBED, mimeType: TEXT, annotations: ANNOTATIONS };

/** What the SDKs require in every revision. */
const RULES: { readonly [kind in ListedItems]: Rule } = {
  tools: record(
    { ...TOOL, inputSchema: ROOT },
    { ...DESCRIBED, outputSchema: record({}, { $schema: TEXT }), annotations: HINTS },
  ),
  prompts: record(
    { name: TEXT },
    {
      ...DESCRIBED,
      arguments: listOf(record({ name: TEXT }, { description: TEXT, required: FLAG })),
    },
  ),
  templates: record({ name: TEXT, uriTemplate: TEXT }, RESOURCE),
  resources: record({ name: TEXT, uri: TEXT }, { ...RESOURCE, size: NUMBER }),
};

/** What they require besides in the revisions with sessions. */
const SESSION_RULES: { readonly [kind in ListedItems]?: Rule } = {
  tools: record(
    { inputSchema: SESSION_ROOT },
    {
      outputSchema: SESSION_ROOT,
      execution: record({}, { taskSupport: oneOf('required', 'optional', 'forbidden') }),
    },
  ),
};

export type FindShapeError = (list: ListedItems, definition: JsonObject) => ShapeError | undefined;

/** What keeps the official SDKs from reading a list with this definition, in any revision. */
export const findShapeError: FindShapeError = (list, definition) => RULES[list](definition);

/** The same in the revisions with sessions, which require more. */
export const findSessionShapeError: FindShapeError = (list, definition) =>
  findShapeError(list, definition) ?? SESSION_RULES[list]?.(definition);

/** One clause for an operator: the place and what is wrong there. */
export function describeShapeError({ pointer, why }: ShapeError): string {
  return `${pointer === '' ? 'the definition' : pointer.slice(1)}: ${why}`;
}
