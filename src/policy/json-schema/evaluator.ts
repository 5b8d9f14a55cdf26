// Evaluates a vetted schema on a value: closures that are made once, keyword by keyword, with a budget to which every
// schema that is applied and every character that is read is charged. An evaluation that exceeds it is abandoned. What
// `unevaluatedProperties` and `unevaluatedItems` read is kept as the specification says it: a schema that fails leaves
// nothing behind. Evaluation is synchronous. Never coerces, never fills in defaults, never backtracks.
// Source: JSON Schema 2020-12 core §7.7, §8.2.3.2, §10 and §11; validation §6.

import { type ExactNumbers, exactNumbersIn } from '../../protocol/json/exact-numbers.js';
import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import type { LinearRegex } from '../patterns.js';
import { canonicalDecimal, compareDecimals, isIntegerText, isMultipleOf } from './decimals.js';
import { requiredWithDefault } from './defaults.js';
import { isFormat } from './formats.js';
import type { Evaluation, Meter } from './members.js';
import { type DynamicReference, isNode, type Schema, type SchemaCopy, type SchemaNode } from './sanitizer.js';

/** Maximum number of steps of one evaluation; a step is one schema applied at one position. */
const MAX_STEPS = 1_000_000;
/** The cost of a character that a pattern reads: RE2 in this language takes up to 0.4 µs for each. */
const STEPS_PER_PATTERN_CHAR = 4;
/** The cost of a value that is compared with others, because it is sorted and serialized for that. */
const STEPS_PER_COMPARED_VALUE = 8;
/** The cost of a number that is computed with as a decimal. */
const STEPS_PER_DECIMAL = 8;
/** Strings shorter than this cost no more than a step. */
const FREE_STRING_CHARS = 1024;

/** One failed keyword, with what a sentence about it needs. */
export type Failure = {
  readonly path: readonly (string | number)[];
  readonly keyword: string;
  readonly limit?: number | undefined;
  readonly types?: readonly string[];
  readonly format?: string;
  /** A member that is required and absent: its name, which the schema has. */
  readonly missing?: string;
  /** A member that is there and may not be: its name, which the value has. */
  readonly undeclared?: string;
};

/** `exhausted`: the budget was exceeded or the value could not be walked. */
export type Outcome = 'valid' | 'exhausted' | readonly Failure[];

/** How a schema is read where the dialects leave a choice. */
export type EvaluationOptions = {
  /** Whether `format` is an assertion, and not an annotation. */
  readonly assertsFormats: boolean;
  /** Whether an alternative also holds for a value that lacks required members which have a default. */
  readonly mayLackDefaults: boolean;
  readonly patterns: ReadonlyMap<string, LinearRegex>;
};

export type Evaluator = Evaluation & {
  /** `mayLackDefaults`: a required member that has a default may be absent. */
  evaluate(value: Json, mayLackDefaults?: boolean): Outcome;
  /** Whether the schema requires members that have a default. */
  readonly requiresDefaults: boolean;
};

class BudgetSpent extends Error {}

/** What the schemas at one position have evaluated. `all` stands for every member. */
type Evaluated = {
  members: Set<string> | 'all' | undefined;
  items: number;
  others: Set<number> | undefined;
};

type Run = {
  readonly meter: Meter;
  /** False if positions must be kept: to describe failures, or to find the text of numbers. */
  isPlain: boolean;
  path: (string | number)[];
  /** Absent while nothing is described: under `not`, `if` and `contains`, and if only the result counts. */
  failures: Failure[] | undefined;
  /** Absent if the schema has no keyword that reads it. */
  evaluated: Evaluated | undefined;
  /** Absent if all numbers are as their doubles say. */
  holder: object | undefined;
  key: string | number;
  isExact: boolean;
  readonly mayLackDefaults: boolean;
  /** The resources that were entered, the outermost first. */
  readonly scope: string[];
};

type Check = (value: Json, run: Run) => boolean;

function charge(run: Run, steps: number): void {
  run.meter.steps -= steps;
  if (run.meter.steps < 0) throw new BudgetSpent();
}

const ACCEPT: Check = () => true;

/** Makes the evaluator of a schema; each part of it is compiled when it is first needed. */
export function createEvaluator(copy: SchemaCopy, options: EvaluationOptions): Evaluator {
  const isTracked = hasUnevaluated(copy);
  const compiling: Compiling = {
    copy,
    options,
    isTracked,
    checks: new Map(),
    defaults: requiredWithDefault(copy),
  };
  const root = lazily(copy.root, compiling);
  const start = (value: Json, meter: Meter, mayLackDefaults: boolean, describes: boolean): Run => {
    const isExact = typeof value === 'object' && value !== null && exactNumbersIn(value) !== undefined;
    return {
      meter,
      isPlain: !describes && !isTracked && !isExact,
      path: [],
      failures: describes ? [] : undefined,
      evaluated: isTracked ? nothingEvaluated() : undefined,
      holder: undefined,
      key: '',
      isExact,
      mayLackDefaults,
      scope: [],
    };
  };
  return {
    requiresDefaults: compiling.defaults.size > 0,
    meter: () => ({ steps: MAX_STEPS }),
    evaluate(value, mayLackDefaults = false) {
      try {
        if (root(value, start(value, { steps: MAX_STEPS }, mayLackDefaults, false))) return 'valid';
        // Failures are described by a second run, so that what is valid pays for no positions.
        const run = start(value, { steps: MAX_STEPS }, mayLackDefaults, true);
        root(value, run);
        return run.failures ?? [];
      } catch {
        return 'exhausted';
      }
    },
    holds(schema, value, meter) {
      try {
        const check = lazily(schema, compiling);
        if (check(value, start(value, meter, false, false))) return true;
        const mayLack = options.mayLackDefaults && compiling.defaults.size > 0;
        return mayLack && check(value, start(value, meter, true, false));
      } catch {
        return false;
      }
    },
  };
}

type Compiling = {
  readonly copy: SchemaCopy;
  readonly options: EvaluationOptions;
  /** Whether some keyword reads what was evaluated. */
  readonly isTracked: boolean;
  readonly checks: Map<SchemaNode, Check>;
  /** The required members of each schema that may be absent where defaults count. */
  readonly defaults: ReadonlyMap<SchemaNode, ReadonlySet<string>>;
};

function hasUnevaluated({ nodes }: SchemaCopy): boolean {
  for (const node of nodes.keys()) if ('unevaluatedProperties' in node || 'unevaluatedItems' in node) return true;
  return false;
}

/** The check of a schema that is written inside another one. */
function compiled(schema: Schema, compiling: Compiling): Check {
  if (!isNode(schema)) return schema ? ACCEPT : REFUSE;
  const known = compiling.checks.get(schema);
  if (known !== undefined) return known;
  const check = compileNode(schema, compiling);
  compiling.checks.set(schema, check);
  return check;
}

const REFUSE: Check = (_value, run) => fail(run, 'false schema');

/** The check of a schema that is referred to, made at its first use: schemas may refer to themselves. */
function lazily(schema: Schema, compiling: Compiling): Check {
  let check: Check | undefined;
  return (value, run) => {
    check ??= compiled(schema, compiling);
    return check(value, run);
  };
}

function fail(run: Run, keyword: string, more?: Omit<Failure, 'path' | 'keyword'>): false {
  run.failures?.push({ path: [...run.path], keyword, ...more });
  return false;
}

function compileNode(node: SchemaNode, compiling: Compiling): Check {
  const check = checkOf(node, compiling);
  return inResource(node, compiling, compiling.isTracked ? keepingEvaluated(check) : check);
}

function checkOf(node: SchemaNode, compiling: Compiling): Check {
  const type = typeCheck(node);
  const general = keywordsOf(GENERAL, node, compiling);
  const weight = 1 + listSize(node['required']);
  const ofNumbers = [...keywordsOf(NUMERIC, node, compiling), ...general];
  const ofTexts = [...keywordsOf(TEXTUAL, node, compiling), ...general];
  const ofArrays = [...general, ...keywordsOf(ARRAYS, node, compiling)];
  const ofObjects = [...general, ...keywordsOf(OBJECTS, node, compiling)];
  const checksFor = (value: Json, run: Run): readonly Check[] => {
    if (typeof value === 'string') {
      if (value.length > FREE_STRING_CHARS) charge(run, value.length / 16);
      return ofTexts;
    }
    if (typeof value === 'number') return ofNumbers;
    if (typeof value !== 'object' || value === null) return general;
    return Array.isArray(value) ? ofArrays : ofObjects;
  };
  const isBare = [ofNumbers, ofTexts, ofArrays, ofObjects].every(({ length }) => length === 0);
  if (isBare)
    return (value, run) => {
      charge(run, 1);
      return type === undefined || type(value, run);
    };
  return (value, run) => {
    charge(run, weight);
    if (type !== undefined && !type(value, run)) return false;
    const checks = checksFor(value, run);
    for (let index = 0; index < checks.length; index++) if (checks[index]?.(value, run) === false) return false;
    return true;
  };
}

function listSize(list: unknown): number {
  return Array.isArray(list) ? list.length : 0;
}

/** A schema reads what it and its own parts have evaluated, and hands it on only if it holds. */
function keepingEvaluated(check: Check): Check {
  return (value, run) => {
    const outer = run.evaluated;
    if (outer === undefined) return check(value, run);
    const own = nothingEvaluated();
    run.evaluated = own;
    try {
      if (!check(value, run)) return false;
      merge(outer, own, run);
      return true;
    } finally {
      run.evaluated = outer;
    }
  };
}

function nothingEvaluated(): Evaluated {
  return { members: undefined, items: 0, others: undefined };
}

function merge(into: Evaluated, from: Evaluated, run: Run): void {
  if (from.members === 'all') into.members = 'all';
  else if (from.members !== undefined && into.members !== 'all') {
    charge(run, from.members.size);
    into.members ??= new Set();
    for (const name of from.members) into.members.add(name);
  }
  into.items = Math.max(into.items, from.items);
  if (from.others === undefined) return;
  charge(run, from.others.size);
  into.others ??= new Set();
  for (const index of from.others) into.others.add(index);
}

/** Enters the resource that a schema is part of, where a document has several: dynamic references read them. */
function inResource(node: SchemaNode, { copy }: Compiling, check: Check): Check {
  const resource = copy.resources?.get(node);
  if (resource === undefined) return check;
  return (value, run) => {
    if (run.scope.at(-1) === resource) return check(value, run);
    run.scope.push(resource);
    try {
      return check(value, run);
    } finally {
      run.scope.pop();
    }
  };
}

/** Applies a schema to a member or an item. */
function descend(check: Check, value: Json, holder: object, key: string | number, run: Run): boolean {
  if (run.isPlain) return check(value, run);
  const { evaluated, holder: outerHolder, key: outerKey } = run;
  // What is evaluated below a position counts there alone.
  if (evaluated !== undefined) run.evaluated = nothingEvaluated();
  if (run.isExact) {
    run.holder = holder;
    run.key = key;
  }
  run.path.push(key);
  try {
    return check(value, run);
  } finally {
    run.path.pop();
    run.evaluated = evaluated;
    run.holder = outerHolder;
    run.key = outerKey;
  }
}

/** Tries a schema whose failure is no failure of the whole. */
function succeeds(check: Check, value: Json, run: Run): boolean {
  const { failures } = run;
  run.failures = undefined;
  try {
    return check(value, run);
  } finally {
    run.failures = failures;
  }
}

type Keyword = readonly [name: string, make: (written: unknown, context: KeywordContext) => Check | undefined];
type KeywordContext = Compiling & { readonly node: SchemaNode };

function keywordsOf(keywords: readonly Keyword[], node: SchemaNode, compiling: Compiling): readonly Check[] {
  const context = { ...compiling, node };
  return keywords.flatMap(([name, make]) => {
    const written = node[name];
    return written === undefined ? [] : (make(written, context) ?? []);
  });
}

/** The text of the number that is evaluated, where its double does not say it; undefined where it does. */
function exactText({ isExact, holder, key }: Run): string | undefined {
  return isExact && holder !== undefined ? exactNumbersIn(holder)?.get(key) : undefined;
}

function typeCheck({ type }: SchemaNode): Check | undefined {
  if (type === undefined) return undefined;
  const types = (Array.isArray(type) ? type : [type]) as readonly string[];
  const tests = types.map((one) => TYPE_TESTS.get(one) ?? isInteger);
  const [only] = tests;
  if (tests.length > 1 || only === undefined)
    return (value, run) => tests.some((test) => test(value, run)) || fail(run, 'type', { types });
  return (value, run) => only(value, run) || fail(run, 'type', { types });
}

const TYPE_TESTS: ReadonlyMap<string, Check> = new Map([
  ['string', (value) => typeof value === 'string'],
  ['boolean', (value) => typeof value === 'boolean'],
  ['number', (value) => typeof value === 'number'],
  ['null', (value) => value === null],
  ['array', (value) => Array.isArray(value)],
  ['object', (value) => typeof value === 'object' && value !== null && !Array.isArray(value)],
]);

function isInteger(value: Json, run: Run): boolean {
  if (typeof value !== 'number') return false;
  const text = exactText(run);
  return text === undefined ? Number.isInteger(value) : computed(isIntegerText(text), run);
}

/** What was computed of decimals; what is too long to compute with takes too much work. */
function computed<Result>(result: Result | undefined, run: Run): Result {
  charge(run, STEPS_PER_DECIMAL);
  if (result === undefined) throw new BudgetSpent();
  return result;
}

const NUMERIC: readonly Keyword[] = [
  ['maximum', (limit) => comparison('maximum', limit, (order) => order <= 0)],
  ['minimum', (limit) => comparison('minimum', limit, (order) => order >= 0)],
  ['exclusiveMaximum', (limit) => comparison('exclusiveMaximum', limit, (order) => order < 0)],
  ['exclusiveMinimum', (limit) => comparison('exclusiveMinimum', limit, (order) => order > 0)],
  ['multipleOf', (divisor) => multiple(Number(divisor))],
];

function comparison(keyword: string, written: unknown, holds: (order: number) => boolean): Check {
  const limit = Number(written);
  return (value, run) => {
    const text = exactText(run);
    const order =
      text === undefined ? Math.sign((value as number) - limit) : computed(compareDecimals(text, String(limit)), run);
    return holds(order) || fail(run, keyword, { limit });
  };
}

function multiple(divisor: number): Check {
  return (value, run) => {
    const text = exactText(run);
    const isSafe = text === undefined && Number.isSafeInteger(value) && Number.isSafeInteger(divisor);
    const isMultiple = isSafe
      ? (value as number) % divisor === 0
      : computed(isMultipleOf(text ?? String(value), String(divisor)), run);
    return isMultiple || fail(run, 'multipleOf', { limit: divisor });
  };
}

const TEXTUAL: readonly Keyword[] = [
  ['maxLength', (limit) => lengthCheck('maxLength', Number(limit), (length, most) => length <= most)],
  ['minLength', (limit) => lengthCheck('minLength', Number(limit), (length, least) => length >= least)],
  [
    'pattern',
    (pattern, { options }) => {
      const matches = patternTest(String(pattern), options);
      return (value, run) => matches(value as string, run) || fail(run, 'pattern');
    },
  ],
  [
    'format',
    (written, { options }) => {
      const format = String(written);
      if (!options.assertsFormats) return undefined;
      return (value, run) => isFormat(format, value as string) || fail(run, 'format', { format });
    },
  ],
];

/** Lengths count code points. */
function lengthCheck(keyword: string, limit: number, holds: (length: number, limit: number) => boolean): Check {
  return (value, run) => {
    const text = value as string;
    // A text has at most as many code points as units, and at least half as many.
    const isClear = holds(text.length, limit) === holds(Math.ceil(text.length / 2), limit);
    return holds(isClear ? text.length : codePointsIn(text), limit) || fail(run, keyword, { limit });
  };
}

function codePointsIn(text: string): number {
  let count = 0;
  for (const _character of text) count++;
  return count;
}

function patternTest(pattern: string, { patterns }: EvaluationOptions): (text: string, run: Run) => boolean {
  const regex = patterns.get(pattern);
  return (text, run) => {
    charge(run, 1 + text.length * STEPS_PER_PATTERN_CHAR);
    if (regex === undefined) throw new BudgetSpent();
    return regex.test(text);
  };
}

const GENERAL: readonly Keyword[] = [
  ['$ref', (_ref, { copy, node, ...rest }) => lazily(copy.references.get(node) ?? false, { copy, ...rest })],
  ['$dynamicRef', dynamicReference],
  ['$recursiveRef', dynamicReference],
  [
    'const',
    (written) => {
      const isEqual = membership([written as Json]);
      return (value, run) => isEqual(value, run) || fail(run, 'const');
    },
  ],
  [
    'enum',
    (written) => {
      const isListed = membership(written as readonly Json[]);
      return (value, run) => isListed(value, run) || fail(run, 'enum');
    },
  ],
  [
    'not',
    (schema, context) => {
      const check = compiled(schema as Schema, context);
      return (value, run) => !withoutEvaluated(check, value, run) || fail(run, 'not');
    },
  ],
  ['anyOf', anyOf],
  ['oneOf', oneOf],
  [
    'allOf',
    (schemas, context) => {
      const checks = all(schemas, context);
      return (value, run) => checks.every((check) => check(value, run));
    },
  ],
  ['if', conditional],
];

function all(schemas: unknown, context: Compiling): readonly Check[] {
  return (schemas as readonly Schema[]).map((schema) => compiled(schema, context));
}

/** What a schema under `not` evaluates counts nowhere. */
function withoutEvaluated(check: Check, value: Json, run: Run): boolean {
  const { evaluated } = run;
  if (evaluated !== undefined) run.evaluated = nothingEvaluated();
  try {
    return succeeds(check, value, run);
  } finally {
    run.evaluated = evaluated;
  }
}

function anyOf(schemas: unknown, context: Compiling): Check {
  const checks = all(schemas, context);
  return (value, run) => {
    const described = run.failures?.length ?? 0;
    let isMatched = false;
    for (const check of checks) {
      if (check(value, run)) isMatched = true;
      // Every alternative that holds evaluates.
      if (isMatched && run.evaluated === undefined) break;
    }
    if (!isMatched) return fail(run, 'anyOf');
    run.failures?.splice(described);
    return true;
  };
}

function oneOf(schemas: unknown, context: Compiling): Check {
  const checks = all(schemas, context);
  return (value, run) => {
    const described = run.failures?.length ?? 0;
    let matched = 0;
    for (const check of checks) if (check(value, run)) matched += 1;
    if (matched !== 1) {
      if (matched > 1) run.failures?.splice(described);
      return fail(run, 'oneOf');
    }
    run.failures?.splice(described);
    return true;
  };
}

function conditional(test: unknown, context: KeywordContext): Check {
  const { node } = context;
  const condition = compiled(test as Schema, context);
  const branch = (schema: unknown): Check => (schema === undefined ? ACCEPT : compiled(schema as Schema, context));
  const met = branch(node['then']);
  const unmet = branch(node['else']);
  return (value, run) => {
    const chosen = succeeds(condition, value, run) ? met : unmet;
    return chosen(value, run) || fail(run, 'if');
  };
}

function dynamicReference(_ref: unknown, { node, ...compiling }: KeywordContext): Check {
  const { copy } = compiling;
  const dynamic = copy.dynamicReferences.get(node);
  // One that is not dynamic leads where `$ref` would.
  if (dynamic === undefined) return '$ref' in node ? ACCEPT : lazily(copy.references.get(node) ?? false, compiling);
  const known = new Map<Schema, Check>();
  return (value, run) => {
    const target = dynamicTarget(copy, dynamic, run);
    const check = known.get(target) ?? lazily(target, compiling);
    known.set(target, check);
    return check(value, run);
  };
}

/** The anchor in the outermost resource that has one (2020-12 core §8.2.3.2). */
function dynamicTarget({ dynamicAnchors }: SchemaCopy, { initial, anchor }: DynamicReference, run: Run): Schema {
  for (const resource of run.scope) {
    const found = dynamicAnchors.get(resource)?.get(anchor);
    if (found !== undefined) return found;
  }
  return initial;
}

/** Whether a value is one of those listed; found by one text for all that are equal. */
function membership(listed: readonly Json[]): (value: Json, run: Run) => boolean {
  const scalars = new Set(listed.filter((one) => typeof one !== 'object' && typeof one !== 'number'));
  const hasNull = listed.includes(null);
  const numbers = new Set(listed.filter((one) => typeof one === 'number'));
  const others = listed.filter((one) => typeof one === 'object' && one !== null);
  let texts: Set<string> | undefined;
  return (value, run) => {
    if (value === null) return hasNull;
    if (typeof value === 'number') {
      const text = exactText(run);
      if (text === undefined) return numbers.has(value);
      const canonical = computed(canonicalDecimal(text), run);
      return [...numbers].some((one) => canonicalDecimal(String(one)) === canonical);
    }
    if (typeof value !== 'object') return scalars.has(value);
    if (others.length === 0) return false;
    texts ??= new Set(others.map((one) => sortedText(one, UNCHARGED)));
    return texts.has(sortedText(value, run));
  };
}

/** The values of a schema are bounded by its size. */
const UNCHARGED: Run = {
  meter: { steps: Number.POSITIVE_INFINITY },
  isPlain: true,
  path: [],
  failures: undefined,
  evaluated: undefined,
  holder: undefined,
  key: '',
  isExact: false,
  mayLackDefaults: false,
  scope: [],
};

/** One text for all values that are equal as JSON. */
function sortedText(value: Json, run: Run, exact?: string): string {
  charge(run, STEPS_PER_COMPARED_VALUE);
  if (typeof value === 'string' && value.length > FREE_STRING_CHARS) charge(run, value.length / 16);
  if (typeof value === 'number') return computed(canonicalDecimal(exact ?? String(value)), run);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const numbers: ExactNumbers | undefined = run.isExact ? exactNumbersIn(value) : undefined;
  if (Array.isArray(value))
    return `[${value.map((item: Json, index) => sortedText(item, run, numbers?.get(index))).join()}]`;
  const members = Object.entries(value as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = members.map(
    ([name, member]) => `${JSON.stringify(name)}:${sortedText(member, run, numbers?.get(name))}`,
  );
  return `{${texts.join()}}`;
}

const ARRAYS: readonly Keyword[] = [
  ['maxItems', (limit) => sizeCheck('maxItems', Number(limit), (size, most) => size <= most)],
  ['minItems', (limit) => sizeCheck('minItems', Number(limit), (size, least) => size >= least)],
  [
    'uniqueItems',
    (isWanted) =>
      isWanted === true
        ? (value, run) => areUnique(value as readonly Json[], run) || fail(run, 'uniqueItems')
        : undefined,
  ],
  ['prefixItems', prefixItems],
  ['items', itemsAfterPrefix],
  ['contains', contains],
  ['unevaluatedItems', unevaluatedItems],
];

function sizeCheck(keyword: string, limit: number, holds: (size: number, limit: number) => boolean): Check {
  return (value, run) => holds((value as readonly Json[]).length, limit) || fail(run, keyword, { limit });
}

function areUnique(items: readonly Json[], run: Run): boolean {
  const seen = new Set<string>();
  const numbers = run.isExact ? exactNumbersIn(items) : undefined;
  for (const [index, item] of items.entries()) {
    const text = sortedText(item, run, numbers?.get(index));
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

function prefixItems(schemas: unknown, context: Compiling): Check {
  const checks = all(schemas, context);
  return (value, run) => {
    const items = value as readonly Json[];
    for (const [index, check] of checks.entries()) {
      if (index >= items.length) break;
      if (!descend(check, items[index] ?? null, items, index, run)) return false;
    }
    if (run.evaluated !== undefined)
      run.evaluated.items = Math.max(run.evaluated.items, Math.min(checks.length, items.length));
    return true;
  };
}

function itemsAfterPrefix(schema: unknown, context: KeywordContext): Check {
  const start = listSize(context.node['prefixItems']);
  const isClosed = schema === false;
  const check = compiled(schema as Schema, context);
  return (value, run) => {
    const items = value as readonly Json[];
    if (isClosed && items.length > start) return fail(run, 'additionalItems');
    for (let index = start; index < items.length; index++)
      if (!descend(check, items[index] as Json, items, index, run)) return false;
    if (run.evaluated !== undefined) run.evaluated.items = items.length;
    return true;
  };
}

function contains(schema: unknown, context: KeywordContext): Check {
  const { node, copy } = context;
  const check = compiled(schema as Schema, context);
  const least = Number(node['minContains'] ?? 1);
  const most = Number(node['maxContains'] ?? Number.POSITIVE_INFINITY);
  const evaluates = !copy.leavesContained.has(node);
  return (value, run) => {
    const found = matchingItems(value as readonly Json[], check, run);
    if (evaluates && run.evaluated !== undefined)
      run.evaluated.others = new Set([...(run.evaluated.others ?? []), ...found]);
    if (found.length < least) return fail(run, 'contains');
    return found.length <= most || fail(run, 'maxContains', { limit: most });
  };
}

/** The indices of the items that satisfy a schema. */
function matchingItems(items: readonly Json[], check: Check, run: Run): readonly number[] {
  const found: number[] = [];
  for (const [index, item] of items.entries()) {
    if (succeeds((one, state) => descend(check, one, items, index, state), item, run)) found.push(index);
  }
  return found;
}

function unevaluatedItems(schema: unknown, context: Compiling): Check {
  const apply = restCheck('unevaluatedItems', schema, context);
  return (value, run) => {
    const { evaluated } = run;
    if (evaluated === undefined) return true;
    const items = value as readonly Json[];
    const { items: known, others } = evaluated;
    const rest = [...items.keys()].slice(known).filter((index) => others?.has(index) !== true);
    if (!rest.every((index) => apply(items[index] ?? null, items, index, run))) return false;
    evaluated.items = items.length;
    return true;
  };
}

/** Applies the schema of what nothing else has evaluated to a member or an item. */
function restCheck(
  keyword: string,
  schema: unknown,
  context: Compiling,
): (value: Json, holder: object, key: string | number, run: Run) => boolean {
  const check = compiled(schema as Schema, context);
  if (schema !== false) return (value, holder, key, run) => descend(check, value, holder, key, run);
  return (_value, _holder, key, run) => fail(run, keyword, typeof key === 'string' ? { undeclared: key } : undefined);
}

const OBJECTS: readonly Keyword[] = [
  ['maxProperties', (limit) => memberCount('maxProperties', Number(limit), (size, most) => size <= most)],
  ['minProperties', (limit) => memberCount('minProperties', Number(limit), (size, least) => size >= least)],
  ['required', required],
  ['dependentRequired', dependentRequired],
  ['propertyNames', propertyNames],
  ['properties', (_written, context) => memberSchemas(context)],
  ['patternProperties', (_written, context) => ('properties' in context.node ? undefined : memberSchemas(context))],
  [
    'additionalProperties',
    (_written, context) =>
      'properties' in context.node || 'patternProperties' in context.node ? undefined : memberSchemas(context),
  ],
  ['dependentSchemas', dependentSchemas],
  ['unevaluatedProperties', unevaluatedProperties],
];

function memberCount(keyword: string, limit: number, holds: (size: number, limit: number) => boolean): Check {
  return (value, run) => {
    const size = Object.keys(value as JsonObject).length;
    return holds(size, limit) || fail(run, keyword, { limit });
  };
}

function required(written: unknown, { node, defaults }: KeywordContext): Check {
  const names = written as readonly string[];
  const mayBeAbsent = defaults.get(node);
  return (value, run) => {
    for (const name of names) {
      if (Object.hasOwn(value as JsonObject, name)) continue;
      if (run.mayLackDefaults && mayBeAbsent?.has(name) === true) continue;
      return fail(run, 'required', { missing: name });
    }
    return true;
  };
}

function dependentRequired(written: unknown): Check {
  const dependencies = Object.entries(written as { readonly [name: string]: readonly string[] });
  return (value, run) => {
    const object = value as JsonObject;
    charge(run, dependencies.length);
    for (const [name, names] of dependencies) {
      if (!Object.hasOwn(object, name)) continue;
      charge(run, names.length);
      const missing = names.find((one) => !Object.hasOwn(object, one));
      if (missing !== undefined) return fail(run, 'dependentRequired', { missing });
    }
    return true;
  };
}

function propertyNames(schema: unknown, context: Compiling): Check {
  const check = compiled(schema as Schema, context);
  return (value, run) => {
    for (const name of Object.keys(value as JsonObject)) {
      // The name is no member of anything, and is not repeated.
      if (!withoutEvaluated((one, state) => check(one, state), name, run)) return fail(run, 'propertyNames');
    }
    return true;
  };
}

/** `properties`, `patternProperties` and `additionalProperties` in one walk over the members of a value. */
function memberSchemas(context: KeywordContext): Check {
  const { node, options } = context;
  const { properties, patternProperties, additionalProperties } = node;
  const checksOf = (map: unknown): [string, Check][] =>
    Object.entries(isNode(map) ? map : {}).map(([name, schema]) => [name, compiled(schema as Schema, context)]);
  const named = new Map(checksOf(properties));
  const patterned = checksOf(patternProperties).map(
    ([pattern, check]) => [patternTest(pattern, options), check] as const,
  );
  const others = additionalProperties === undefined ? undefined : compiled(additionalProperties as Schema, context);
  const isClosed = additionalProperties === false;
  const isSimple = patterned.length === 0;
  const checksOfName = (name: string, run: Run): readonly Check[] => {
    const own = named.get(name);
    if (isSimple) return own === undefined ? NO_CHECKS : [own];
    const matching = patterned.flatMap(([matches, check]) => (matches(name, run) ? [check] : []));
    return own === undefined ? matching : [own, ...matching];
  };
  const apply = (object: JsonObject, name: string, run: Run): boolean => {
    const known = checksOfName(name, run);
    const checks = known.length === 0 && others !== undefined ? [others] : known;
    if (checks.length === 0) return true;
    if (isClosed && known.length === 0) return fail(run, 'additionalProperties', { undeclared: name });
    if (run.evaluated !== undefined) noteMember(run.evaluated, name);
    const member = object[name] ?? null;
    return checks.every((check) => descend(check, member, object, name, run));
  };
  return (value, run) => {
    const object = value as JsonObject;
    for (const name in object) {
      charge(run, 1);
      // Nearly every member of every call: declared by its name, in a schema that needs no positions.
      const own = isSimple && run.isPlain ? named.get(name) : undefined;
      const isValid = own === undefined ? apply(object, name, run) : own(object[name] as Json, run);
      if (!isValid) return false;
    }
    return true;
  };
}

const NO_CHECKS: readonly Check[] = [];

function noteMember(evaluated: Evaluated, name: string): void {
  if (evaluated.members === 'all') return;
  evaluated.members ??= new Set();
  evaluated.members.add(name);
}

function dependentSchemas(written: unknown, context: Compiling): Check {
  const dependencies = Object.entries(written as SchemaNode).map(
    ([name, schema]) => [name, compiled(schema as Schema, context)] as const,
  );
  return (value, run) => {
    charge(run, dependencies.length);
    return dependencies.every(([name, check]) => !Object.hasOwn(value as JsonObject, name) || check(value, run));
  };
}

function unevaluatedProperties(schema: unknown, context: Compiling): Check {
  const apply = restCheck('unevaluatedProperties', schema, context);
  return (value, run) => {
    const { evaluated } = run;
    if (evaluated === undefined || evaluated.members === 'all') return true;
    const object = value as JsonObject;
    const { members } = evaluated;
    const rest = Object.keys(object).filter((name) => members?.has(name) !== true);
    if (!rest.every((name) => apply(object[name] ?? null, object, name, run))) return false;
    evaluated.members = 'all';
    return true;
  };
}
