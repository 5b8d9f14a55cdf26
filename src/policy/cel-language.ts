// The language of expressions, beyond what the CEL library has: the variables (arguments, caller, tool, URI and findings) as
// CEL values, converted once for each query and bounded first; the functions for paths and URLs; the macro `anyArg`;
// and why an expression does not parse. Each function reads a text as the most lenient of its readers might, and has
// no answer where readers could differ: a path that climbs by encoded dots, a host that is a number in octal. An
// expression then fails, so that neither an allow rule nor a deny rule is got around. Nothing is resolved: neither
// names nor links. Linear in the text.
// Source: CEL language definition, "Syntax"; RFC 3986 §3 and §5.2.4; WHATWG URL, host parsing; RFC 6761;
// docs/contract.md, law 5.

import { type CelInput, celMap, parse } from '@bufbuild/cel';
import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import type { Expr } from './cel-types.js';
import type { Principal } from './principal.js';

/** The values that a policy query offers to expressions. Converted at most once per query, when first needed. */
export type ExpressionFacts = {
  readonly principal: Principal;
  readonly upstream: string;
  /** Name of the tool or prompt; empty for resources and templates. */
  readonly name: string;
  /** Taken from the pin only (docs/contract.md, law 7). */
  readonly annotations: JsonObject;
  readonly args: JsonObject;
  /** The normal form; undefined if the target is no resource, and then reading it is an error. */
  readonly uri: string | undefined;
  /** Detectors that found something in the arguments; absent before inspection, and then reading it is an error. */
  readonly findings?: readonly string[] | undefined;
};

/** Maximum number of values in the arguments that an expression may read, nested ones included. */
const MAX_ARGUMENT_VALUES = 2000;
/** Maximum size of the arguments that an expression may read: bytes of their JSON text in UTF-8. */
const MAX_ARGUMENT_BYTES = 16 * 1024;
/** The variables of an expression. */
export type Bindings = { [variable: string]: CelInput };

const bindingsByFacts = new WeakMap<ExpressionFacts, Bindings>();
const mapsByPrincipal = new WeakMap<Principal, CelInput>();

/** Throws if the arguments exceed what expressions may read; nothing is cached then, so it throws each time. */
export function bindingsOf(facts: ExpressionFacts): Bindings {
  const known = bindingsByFacts.get(facts);
  if (known !== undefined) return known;
  const bindings: Bindings = Object.create(null) as Bindings;
  bindings['args'] = argumentsMap(facts.args);
  bindings['principal'] = principalMap(facts.principal);
  bindings['tool'] = toMap({
    upstream: facts.upstream,
    name: facts.name,
    annotations: facts.annotations,
  });
  if (facts.uri !== undefined) bindings['uri'] = facts.uri;
  if (facts.findings !== undefined) bindings['findings'] = [...facts.findings];
  let texts: readonly string[] | undefined;
  Object.defineProperty(bindings, ARGUMENT_TEXTS, {
    get() {
      texts ??= textsIn(facts.args);
      return texts;
    },
  });
  bindingsByFacts.set(facts, bindings);
  return bindings;
}

const encoder = new TextEncoder();

function argumentsMap(args: JsonObject): CelInput {
  const text = JSON.stringify(args);
  const isTooLarge =
    text.length > MAX_ARGUMENT_BYTES ||
    (text.length * 3 > MAX_ARGUMENT_BYTES && encoder.encode(text).length > MAX_ARGUMENT_BYTES);
  if (isTooLarge) throw new Error('the arguments are larger than expressions may see');
  return toMap(args);
}

function principalMap(principal: Principal): CelInput {
  const known = mapsByPrincipal.get(principal);
  if (known !== undefined) return known;
  const { issuer, subject, client, scopes, claims } = principal;
  // Unknown groups are absent, so that reading them is an error instead of a result (docs/contract.md, law 5).
  const groups = principal.areGroupsUnknown === true ? {} : { groups: principal.groups };
  const map = toMap({ issuer, subject, client, ...groups, scopes, claims: claims as JsonObject });
  mapsByPrincipal.set(principal, map);
  return map;
}

function toMap(value: JsonObject): CelInput {
  return convert(value, { values: 0 });
}

/**
 * Converts JSON to CEL values. The library's own conversion interprets members of plain objects such as
 * `constructor` and `$typeName`, so objects become maps here and the library never receives a plain object.
 */
function convert(value: Json, count: { values: number }): CelInput {
  count.values += 1;
  if (count.values > MAX_ARGUMENT_VALUES) throw new Error('more values than expressions may see');
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => convert(item, count));
  const members = new Map<string, CelInput>();
  for (const [name, member] of Object.entries(value)) members.set(name, convert(member, count));
  const map = celMap(members);
  // The library treats a member that is null as absent; for policies it is present.
  Object.defineProperty(map, 'has', {
    value: (key: unknown) => typeof key === 'string' && members.has(key),
  });
  return map;
}

/** More layers of percent-encoding than any reader removes. */
const MAX_DECODINGS = 8;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
/** A drive, a home folder, a URL: the start of a path that is not relative and not below `/`. */
const OTHER_ROOT = /^(?:[A-Za-z]:|~|[A-Za-z][A-Za-z0-9+.-]*:\/)/;
/**
 * A program that reads URLs takes this for a path of its own, with or without a host; others take it for a name with
 * a colon.
 */
const FILE_URL = /^(?:[a-z][a-z0-9+.-]*:)*file:/i;
/**
 * `...`, `.. `, `..;x` and `..?x`: readers that drop trailing dots, blanks, parameters or the query of a URL take them for
 * `..`, and so do file systems that ignore invisible characters in names. Of `;x` they leave an empty name.
 */
const AMBIGUOUS_SEGMENT =
  /^[. ]{3,}$|^\.{0,2};|^\.{1,2}[?#]|^\s|\s$|^[.\p{Default_Ignorable_Code_Point}]*\p{Default_Ignorable_Code_Point}\.*$/u;

type Path = {
  /** Undefined for a path that climbs above its start, or starts elsewhere. */
  readonly root: '' | '/' | '//' | undefined;
  readonly segments: readonly string[];
  /** Has `..` somewhere. */
  readonly climbs: boolean;
};

/** Where a reader of URLs ends the path. */
const PATH_END = /[?#]/;

/**
 * Whether a path names the folder or something below it, as it is written: links are not followed. Undefined for a path
 * that readers could take for different ones, and for a folder that is not valid.
 */
export function isPathUnder(path: string, folder: string): boolean | undefined {
  const base = readFolder(folder);
  const forms = decodedForms(path);
  if (base === undefined || forms === undefined) return undefined;
  // A separator that only some decode, and a backslash that is a letter to some, move the folders that follow them.
  const hasHidden = forms.slice(1).some((form) => countOf(form, SEPARATORS) > countOf(path, SEPARATORS));
  if (hasHidden || (path.includes('\\') && !folder.includes('\\'))) return undefined;
  const isUnder = (form: string): boolean | undefined => {
    const read = readPath(form);
    // `a//b` has other numbers of folders to some readers, and `..` then leads elsewhere.
    if (read === undefined || (read.climbs && (form !== path || /\\|\/\//.test(path)))) return undefined;
    const isBelow = base.segments.every((one, at) => read.segments[at] === one);
    // Many programs read two slashes at the start as one, and some as the start of a server name.
    if (read.root === '//' && base.root === '/' && isBelow) return undefined;
    return read.root === base.root && isBelow;
  };
  const answer = isUnder(path);
  const asUrl = PATH_END.test(folder) ? [] : forms.map((form) => form.split(PATH_END, 1)[0] ?? '');
  return [...forms, ...asUrl].every((form) => form === path || isUnder(form) === answer) ? answer : undefined;
}

const SEPARATORS = /[/\\]/g;

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

/**
 * The path, as it is after each round of percent-decoding, and with compatibility forms folded: some readers take a
 * full-width dot or slash for a plain one. Undefined for a text that some readers could not decode, or that never ends.
 */
function decodedForms(path: string): readonly string[] | undefined {
  const decoded = decodeRounds(path);
  const folded = decoded && decodeRounds((decoded.at(-1) ?? '').normalize('NFKC'));
  return folded && [...new Set([...decoded, ...folded])];
}

/** Undefined for anything but a folder: a URL, a drive, a home folder, a path that climbs above its start. */
export function readFolder(folder: string): Path | undefined {
  const read = readPath(folder);
  return read?.root === '' || read?.root === '/' ? read : undefined;
}

const ESCAPE = /%[0-9a-f]{2}/i;
/** A sign that begins no escape is itself to every reader: `50% off.txt` is an ordinary name. */
const LONE_PERCENT = /%(?![0-9a-f]{2})/gi;

/** The text after each round of percent-decoding, itself first. */
function decodeRounds(text: string): readonly string[] | undefined {
  const rounds = [text];
  let decoded = text;
  while (ESCAPE.test(decoded)) {
    if (rounds.length === MAX_DECODINGS) return undefined;
    try {
      decoded = decodeURIComponent(decoded.replace(LONE_PERCENT, '%25'));
    } catch {
      return undefined;
    }
    rounds.push(decoded);
  }
  return rounds;
}

/** A path with its dot segments resolved; undefined for one that has several readings. */
function readPath(text: string): Path | undefined {
  const path = text.replaceAll('\\', '/');
  const written = path.split('/').filter((one) => one !== '' && one !== '.');
  const isUnclear = CONTROL.test(path) || FILE_URL.test(path);
  if (isUnclear || written.some((one) => AMBIGUOUS_SEGMENT.test(one))) return undefined;
  const segments: string[] = [];
  const above = written.filter((segment) =>
    segment === '..' ? segments.pop() === undefined : segments.push(segment) === 0,
  );
  const root = rootOf(path);
  const climbs = written.includes('..');
  if (above.length === 0) return { root, segments, climbs };
  // Some programs resolve `..` above `/` to `/`, and others report an error.
  return path.startsWith('/') ? undefined : { root: undefined, segments, climbs };
}

function rootOf(path: string): Path['root'] {
  if (path.startsWith('/')) return path.startsWith('//') ? '//' : '/';
  return OTHER_ROOT.test(path) ? undefined : '';
}

export const ANY_ARGUMENT = 'anyArg';

/** The variable with the texts of all arguments, which no expression can name. */
export const ARGUMENT_TEXTS = '@texts';

/**
 * Replaces a call of the macro, in place, by `@texts.exists(a, condition)`: whether the condition holds for the text
 * of some argument. Says how the macro is written if it is written otherwise. Expressions are vetted afterwards, so
 * that the cost of the call is bounded like that of any other.
 */
export function expandAnyArgument(expr: Expr): string | undefined {
  const [variable, condition, ...more] = expr.exprKind.case === 'callExpr' ? expr.exprKind.value.args : [];
  const name = variable?.exprKind.case === 'identExpr' ? variable.exprKind.value.name : undefined;
  if (name === undefined || condition === undefined || more.length > 0) {
    return 'anyArg takes a name and a condition: anyArg(a, a.contains("x"))';
  }
  const { exprKind } = parse(`texts.exists(${name}, true)`).expr;
  const fold = exprKind.case === 'comprehensionExpr' ? exprKind.value : undefined;
  const range = fold?.iterRange?.exprKind;
  const step = fold?.loopStep?.exprKind;
  if (range?.case !== 'identExpr' || step?.case !== 'callExpr') {
    return 'anyArg takes another name than this for an argument';
  }
  range.value.name = ARGUMENT_TEXTS;
  step.value.args[1] = condition;
  expr.exprKind = exprKind;
  return undefined;
}

/** The text of every value in the arguments, at any depth: strings as they are, numbers and booleans as in JSON. */
function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (value === null) return [];
  return typeof value === 'object' ? Object.values(value).flatMap(textsIn) : [JSON.stringify(value)];
}

type CelError = { readonly why: string; readonly suggestion?: string };

/** Operators and words of other languages, and those of CEL. */
const FOREIGN_OPERATORS: readonly (readonly [RegExp, string])[] = [
  [/[=!]==/, ''],
  [/(?<![=!<>])=(?!=)/, '=='],
  [/(?<!&)&(?!&)/, '&&'],
  [/(?<!\|)\|(?!\|)/, '||'],
  [/<>/, '!='],
  [/\band\b/i, '&&'],
  [/\bor\b/i, '||'],
  [/\bnot\b/i, '!'],
];

const OPENING_BRACKETS: ReadonlyMap<string, string> = new Map([
  [')', '('],
  [']', '['],
  ['}', '{'],
]);
const INCOMPLETE_END = /(?:==|!=|<=|>=|&&|\|\||[-<>+*/%!?:,.]|\bin)$/;

/**
 * Why an expression does not parse, in plain words: the most likely cause, found in the text itself. `error` is that
 * of the parser, which has the position where it gave up; its words are not passed on.
 */
export function describeCelError(text: string, error: unknown): CelError {
  const scan = scanQuotesAndBrackets(text);
  if (scan.error !== undefined) return { why: scan.error };
  const { code } = scan;
  const trailing = INCOMPLETE_END.exec(code.trimEnd())?.[0];
  if (trailing !== undefined) return { why: `it ends after "${trailing}", where a value is missing` };
  for (const [pattern, meant] of FOREIGN_OPERATORS) {
    const found = pattern.exec(code);
    if (found === null) continue;
    const suggestion = meant === '' ? found[0].slice(0, 2) : meant;
    return {
      why: `"${found[0]}" at character ${found.index + 1} is not an operator of CEL`,
      suggestion,
    };
  }
  const at = parseErrorIndex(text, error);
  if (at === undefined) return { why: 'it cannot be read' };
  if (at >= text.trimEnd().length) return { why: 'it ends where a value or an operator is expected' };
  return { why: `${JSON.stringify(text.charAt(at))} at character ${at + 1} is not expected there` };
}

/** The index in the text where the parser gave up, from the line and column in its message. */
function parseErrorIndex(text: string, error: unknown): number | undefined {
  const message = error instanceof Error ? error.message : '';
  const [, line, column] = /^<input>:(\d+):(\d+):/.exec(message) ?? [];
  if (line === undefined || column === undefined) return undefined;
  const before = text.split('\n').slice(0, Number(line) - 1);
  return before.reduce((sum, one) => sum + one.length + 1, 0) + Number(column) - 1;
}

/** The string literals of an expression. */
export const STRING_LITERAL = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g;

/** The text with a placeholder for each string literal, or what is wrong with its quotes and brackets. */
function scanQuotesAndBrackets(text: string): { readonly code: string; readonly error?: string } {
  const code = text.replace(STRING_LITERAL, (literal) => 's'.repeat(literal.length));
  const quote = code.search(/["']/);
  if (quote !== -1) {
    return { code, error: `the quote ${code[quote]} at character ${quote + 1} is never closed` };
  }
  const open: number[] = [];
  for (const { 0: mark, index } of code.matchAll(/[()[\]{}]/g)) {
    const opening = OPENING_BRACKETS.get(mark);
    if (opening === undefined) open.push(index);
    else if (code[open.pop() ?? -1] !== opening) {
      return { code, error: `the bracket ${mark} at character ${index + 1} closes nothing` };
    }
  }
  const last = open.at(-1);
  if (last === undefined) return { code };
  return { code, error: `the bracket ${code[last]} at character ${last + 1} is never closed` };
}
