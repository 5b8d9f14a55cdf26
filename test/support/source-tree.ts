// Reads the source tree as text: files, the modules they import, and the lines of code in them.
// A plain reader of import statements; TypeScript 7 offers no compiler API to ask.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';

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
