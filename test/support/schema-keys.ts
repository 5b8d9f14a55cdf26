// The keys of our configuration files, read from their JSON Schemas: every path at whose end a value is
// written, as the reference page writes them (`upstreams.<name>.limits.concurrency`, `rules[].id`).

import type { Schema } from '../../src/config/schema/definitions.js';

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A secret reference is one value, whichever of its two forms it has. */
function isSecretReference(schema: Schema): boolean {
  return String(schema['title']).startsWith('a secret reference');
}

/** The schemas of the values directly below one, each with how its path goes on. */
function below(schema: Schema): readonly (readonly [string, Schema])[] {
  const found: (readonly [string, Schema])[] = [];
  const { properties, additionalProperties, items } = schema as { readonly [key: string]: unknown };
  for (const [name, child] of Object.entries(isSchema(properties) ? properties : {}))
    if (isSchema(child)) found.push([`.${name}`, child]);
  if (isSchema(additionalProperties)) found.push(['.<name>', additionalProperties]);
  if (isSchema(items)) found.push(['[]', items]);
  return found;
}

/** The schemas that describe the same value. */
function beside(schema: Schema): readonly Schema[] {
  const { oneOf, anyOf, allOf } = schema as { readonly [keyword: string]: unknown };
  const lists = [oneOf, anyOf, allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return [...lists, schema['then'], schema['else']].filter(isSchema);
}

/** True where the schema names keys, at any depth, so that what is written there is a map or a list of maps. */
function namesKeys(schema: Schema): boolean {
  if (isSecretReference(schema)) return false;
  if (isSchema(schema['properties'])) return true;
  return [...below(schema).map(([, child]) => child), ...beside(schema)].some(namesKeys);
}

/** What a key is described by that is there for people alone, as an owner to ask: no code reads it. */
const FOR_READERS = 'for readers of the file';

/** True where the reference page says that nothing but people reads the key. */
function isForReaders({ description }: Schema): boolean {
  return typeof description === 'string' && description.includes(FOR_READERS);
}

/** Every key of a file that does something, without those whose value is made of further keys. */
export function keysOf(schema: Schema): readonly string[] {
  const keys = new Set<string>();
  const walk = (at: Schema, path: string): void => {
    if (isForReaders(at)) return;
    const isAnotherForm = 'type' in at && Array.isArray(at['type']);
    if (path !== '' && (!namesKeys(at) || isAnotherForm)) keys.add(path);
    if (isSecretReference(at) || !namesKeys(at)) return;
    for (const [step, child] of below(at)) {
      const next = `${path}${step}`.replace(/^\./, '');
      // A name that the operator chooses is no key of its own, nor is one that has a schema already.
      if (!isNamedAlready(at, step)) walk(child, next);
    }
    for (const other of beside(at)) walk(other, path);
  };
  walk(schema, '');
  return [...keys].sort();
}

/** `profiles.default` is one of `profiles.<name>`. */
function isNamedAlready(schema: Schema, step: string): boolean {
  return step !== '.<name>' && step !== '[]' && isSchema(schema['additionalProperties']);
}
