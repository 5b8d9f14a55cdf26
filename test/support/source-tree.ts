// Reads the source tree as text: files, the modules they import, and the lines of code in them.
// A plain reader of import statements; TypeScript 7 offers no compiler API to ask.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import type { Schema } from '../../src/config/schema/declarations.js';

export type Import = {
  readonly specifier: string;
  /** True for `import type`, `export type … from` and lists whose every name is a type. */
  readonly isTypeOnly: boolean;
  /** True for `export … from`. */
  readonly isReExport: boolean;
};

export type Module = {
  /** Path under the root with forward slashes: `protocol/admission.ts`. */
  readonly path: string;
  /** The first folder, or the file name for files at the root. */
  readonly layer: string;
  readonly text: string;
  /** The text without comments and without the content of strings. */
  readonly code: string;
  readonly imports: readonly Import[];
};

/** All files under a folder with this ending, sorted. */
export function listFiles(root: string, ending: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !path.includes('node_modules/'))
    .sort();
}

type Blanking = {
  readonly text: string;
  readonly keepStrings: boolean;
  out: string;
  index: number;
};

/** Moves behind the next occurrence of a mark, or to the end. */
function skipPast(state: Blanking, mark: string): void {
  const end = state.text.indexOf(mark, state.index);
  state.index = end === -1 ? state.text.length : end + mark.length;
}

function skipString(state: Blanking): void {
  const quote = state.text.charAt(state.index);
  let end = state.index + 1;
  while (end < state.text.length && state.text.charAt(end) !== quote) {
    end += state.text.charAt(end) === '\\' ? 2 : 1;
  }
  state.out += state.keepStrings ? state.text.slice(state.index, end + 1) : `${quote}${quote}`;
  state.index = end + 1;
}

/** The text of a template is treated as a string, what stands in `${}` as code. */
function skipTemplate(state: Blanking): void {
  state.out += '`';
  state.index += 1;
  while (state.index < state.text.length && state.text.charAt(state.index) !== '`') {
    if (state.text.startsWith('${', state.index)) {
      state.out += '${';
      state.index += 2;
      stripUntil(state, '}');
      state.out += '}';
      state.index += 1;
      continue;
    }
    const length = state.text.charAt(state.index) === '\\' ? 2 : 1;
    if (state.keepStrings) state.out += state.text.slice(state.index, state.index + length);
    state.index += length;
  }
  state.out += '`';
  state.index += 1;
}

const REGEX_MAY_FOLLOW = /(?:^|[=(,:[!&|?{};]|\breturn)\s*$/;

function startsRegex(state: Blanking): boolean {
  return state.text.charAt(state.index) === '/' && REGEX_MAY_FOLLOW.test(state.out.slice(-40));
}

function skipRegex(state: Blanking): void {
  let isInClass = false;
  let end = state.index + 1;
  while (end < state.text.length && (isInClass || state.text.charAt(end) !== '/')) {
    const letter = state.text.charAt(end);
    if (letter === '\n') break;
    if (letter === '[') isInClass = true;
    if (letter === ']') isInClass = false;
    end += letter === '\\' ? 2 : 1;
  }
  state.out += '/x/';
  state.index = end + 1;
}

/** Copies code until the given bracket closes what was open before, or to the end. */
function stripUntil(state: Blanking, closing: string): void {
  let depth = 0;
  while (state.index < state.text.length) {
    const letter = state.text.charAt(state.index);
    if (state.text.startsWith('//', state.index)) {
      skipPast(state, '\n');
      state.out += '\n';
    } else if (state.text.startsWith('/*', state.index)) skipPast(state, '*/');
    else if (letter === "'" || letter === '"') skipString(state);
    else if (letter === '`') skipTemplate(state);
    else if (startsRegex(state)) skipRegex(state);
    else {
      if (letter === closing && depth === 0) return;
      if (letter === '{') depth += 1;
      if (letter === '}') depth -= 1;
      state.out += letter;
      state.index += 1;
    }
  }
}

/** The text without comments; strings are kept or emptied, regular expressions reduced to `/x/`. */
export function stripComments(text: string, keepStrings: boolean): string {
  const state: Blanking = { text, keepStrings, out: '', index: 0 };
  stripUntil(state, '');
  return state.out;
}

const FROM = /\b(import|export)\s+(type\s+)?([\w$*{}\s,]*?)\s*from\s*(['"])([^'"]+)\4/g;
const BARE = /\bimport\s*(['"])([^'"]+)\1/g;
const DYNAMIC = /\bimport\s*\(\s*(['"])([^'"]+)\1/g;

function isListOfTypes(names: string): boolean {
  const match = /^\s*\{([^}]*)\}\s*$/.exec(names);
  if (!match) return false;
  const members = (match[1] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  return members.length > 0 && members.every((name) => name.startsWith('type '));
}

/** Every static, bare and dynamic import and every re-export of a source text. */
export function readImports(text: string): Import[] {
  const code = stripComments(text, true);
  const found: Import[] = [];
  for (const match of code.matchAll(FROM)) {
    found.push({
      specifier: match[5] ?? '',
      isTypeOnly: match[2] !== undefined || isListOfTypes(match[3] ?? ''),
      isReExport: match[1] === 'export',
    });
  }
  for (const pattern of [BARE, DYNAMIC]) {
    for (const match of code.matchAll(pattern)) {
      found.push({ specifier: match[2] ?? '', isTypeOnly: false, isReExport: false });
    }
  }
  return found;
}

/** Reads every module under a folder. */
export function readModules(root: string): Module[] {
  return listFiles(root, '.ts').map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const [layer = path] = path.split('/');
    const code = stripComments(text, false);
    return { path, layer, text, code, imports: readImports(text) };
  });
}

/** The module path that a relative specifier means, or `undefined` for packages. */
export function resolveImport(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const joined = posix.normalize(posix.join(dirname(from), specifier));
  return joined.replace(/\.js$/, '.ts');
}

// The keys of our configuration files, read from their JSON Schemas: every path at whose end a value is
// written, as the reference page writes them (`upstreams.<name>.limits.concurrency`, `rules[].id`).

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
const FOR_READERS = 'informational';

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
