// Ajv behind a budget: every schema that is applied and every character that a pattern reads is charged,
// and a check that spends more is abandoned. Synchronous, so the budget of the running check is one number.
// Never coerces, never fills in defaults, never logs. Source: ajv, "Security considerations".

import { _, Ajv, type AnySchema, type ErrorObject, type KeywordCxt, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Json } from '../mcp/message.js';
import type { LinearRegex } from './linear-regex.js';
import type { Dialect, SchemaCopy, SchemaNode } from './schema-copy.js';
import { SCHEMA_FORMATS } from './schema-formats.js';

/** Steps that one check may take; a step is one schema applied at one place. */
export const MAX_CHECK_STEPS = 1_000_000;
/** What a character costs that a pattern reads: RE2 in this language takes up to 0.4 µs for each. */
const STEPS_PER_PATTERN_CHAR = 4;
/** What a value costs that is compared with others: it is sorted and written for that. */
const STEPS_PER_COMPARED_VALUE = 8;
/** Strings shorter than this cost no more than a step. */
const FREE_STRING_CHARS = 1024;
/** An instance keeps what it generated, so it is replaced after this many schemas. */
const SCHEMAS_PER_INSTANCE = 200;

const COST = 'sallyport-cost';

/** `exhausted`: the budget was spent or the value could not be walked. */
export type Outcome = 'valid' | 'exhausted' | readonly ErrorObject[];

class BudgetSpent extends Error {}

let remainingSteps = 0;

function charge(steps: number, value?: unknown): void {
  const isLong = typeof value === 'string' && value.length > FREE_STRING_CHARS;
  remainingSteps -= isLong ? steps + value.length / 16 : steps;
  if (remainingSteps < 0) throw new BudgetSpent();
}

/** Compiles the vetted copy, or gives undefined where it is not a valid schema of its dialect. */
export function compileValidator(
  copy: SchemaCopy,
  patterns: ReadonlyMap<string, LinearRegex>,
): ((value: Json) => Outcome) | undefined {
  if (!isValidSchema(copy)) return undefined;
  for (const node of copy.nodes) node[COST] = weigh(node);
  const ajv = instanceFor(copy.dialect);
  currentPatterns = patterns;
  try {
    const validate = ajv.compile(copy.root as AnySchema);
    return (value) => {
      remainingSteps = MAX_CHECK_STEPS;
      try {
        return validate(value) ? 'valid' : [...(validate.errors ?? [])];
      } catch {
        return 'exhausted';
      } finally {
        validate.errors = null;
      }
    };
  } catch {
    return undefined;
  } finally {
    currentPatterns = new Map();
    if (typeof copy.root === 'object') ajv.removeSchema(copy.root);
    for (const node of copy.nodes) delete node[COST];
  }
}

/** One for the schema itself and one for everything that it lists, one level deep. */
function weigh(node: SchemaNode): number {
  let weight = 1;
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) weight += value.length;
    else if (typeof value === 'object' && value !== null) weight += Object.keys(value).length;
  }
  return weight;
}

let currentPatterns: ReadonlyMap<string, LinearRegex> = new Map();

/** Ajv caches expressions by `toString()`: two patterns must never share one text. */
function chargedRegex(pattern: string): { test(text: string): boolean; toString(): string } {
  const regex = currentPatterns.get(pattern);
  return {
    test(text) {
      charge(1 + text.length * STEPS_PER_PATTERN_CHAR);
      if (regex === undefined) throw new BudgetSpent();
      return regex.test(text);
    },
    toString: () => pattern,
  };
}

const OPTIONS: Options = {
  strict: false,
  validateSchema: false,
  validateFormats: true,
  formats: SCHEMA_FORMATS,
  allErrors: false,
  inlineRefs: false,
  ownProperties: true,
  unicodeRegExp: false,
  logger: false,
  code: { regExp: Object.assign(chargedRegex, { code: 'chargedRegex' }) },
};

type Instance = { readonly ajv: Ajv | Ajv2020; used: number };

const instances = new Map<Dialect, Instance>();

function instanceFor(dialect: Dialect): Ajv | Ajv2020 {
  const known = instances.get(dialect);
  if (known !== undefined && known.used < SCHEMAS_PER_INSTANCE) {
    known.used += 1;
    return known.ajv;
  }
  const ajv = createInstance(dialect);
  instances.set(dialect, { ajv, used: 1 });
  return ajv;
}

function createInstance(dialect: Dialect): Ajv | Ajv2020 {
  const ajv = dialect === '2020-12' ? new Ajv2020(OPTIONS) : new Ajv(OPTIONS);
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isWanted: boolean, items: readonly Json[]) => !isWanted || areUnique(items),
  });
  ajv.addKeyword({
    keyword: COST,
    schemaType: 'number',
    code(context: KeywordCxt) {
      const charged = context.gen.scopeValue('func', { ref: charge });
      context.gen.code(_`${charged}(${context.schema}, ${context.data})`);
    },
  });
  runFirst(ajv, COST);
  return ajv;
}

/** The cost is charged before any keyword of the same schema does its work. */
function runFirst(ajv: Ajv | Ajv2020, keyword: string): void {
  for (const group of ajv.RULES.rules) {
    const index = group.rules.findIndex((rule) => rule.keyword === keyword);
    if (index === -1) continue;
    const [rule] = group.rules.splice(index, 1);
    if (rule !== undefined) ajv.RULES.rules.unshift({ rules: [rule] });
    return;
  }
}

/** Ajv compares every item with every other; this takes one pass. */
function areUnique(items: readonly Json[]): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = sortedText(item);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

function sortedText(value: Json): string {
  charge(STEPS_PER_COMPARED_VALUE, value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedText).join()}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedText(member)}`).join()}}`;
}

const metaInstances = new Map<Dialect, Ajv | Ajv2020>();

/** Checks against the dialect's own meta-schema, whose patterns are fixed and whose work is linear. */
function isValidSchema(copy: SchemaCopy): boolean {
  if (typeof copy.root === 'boolean') return true;
  let meta = metaInstances.get(copy.dialect);
  if (meta === undefined) {
    const options: Options = { strict: false, logger: false, validateFormats: false };
    meta = copy.dialect === '2020-12' ? new Ajv2020(options) : new Ajv(options);
    metaInstances.set(copy.dialect, meta);
  }
  return meta.validateSchema(copy.root) === true;
}
