// Finds parameters by whose name a model fills in what it has been told (rows/parameter-names.ts). A parameter is found
// wherever it is declared: in a nested schema, as an argument of a prompt, or as a variable in the URI of a template.
// Pure.

import { walkValue } from '../../protocol/json/walk.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { pointerOf, pointerTo } from '../../text/json-members.js';
import { confusableForm } from '../detectors/unicode.js';
import type { ScannedDefinition, UnnamedFinding } from './finding.js';
import { namesSeeking } from './rows/parameter-names.js';
import { splitName } from './splitting.js';

/** A parameter with its place. `schema` is undefined where it has no schema of its own. */
type Parameter = {
  readonly name: string;
  readonly pointer: string;
  readonly schema?: Json | undefined;
};

const CONTEXT_NAMES = namesSeeking('context');
/** Names of the model itself are usual for a tool that is about models. */
const MODEL_NAMES = namesSeeking('model');
const FILE_CONTENTS = namesSeeking('file');
const OF_MODELS =
  /^(?:models?|llms?|ml|ai|inferences?|predict|prediction|completions?|embed|embeddings?|train|training|finetune|tts|stt|transcribe|transcription|rerank|openai|anthropic|ollama|huggingface|gemini|gpt|agents?)$/;

/** What may stand before and after without making it something else: `user_system_prompt_text`. */
const BEFORE =
  /^(?:the|your|my|our|current|this|full|entire|complete|whole|raw|original|verbatim|exact|user|users|llm|ai|agent|assistant|model|x|p|in|arg|param|input|optional|required|provide|insert|include|give|pass)(?=\w{4})/;
const AFTER =
  /(?:text|contents?|json|string|str|data|value|dump|field|param|parameter|arg|argument|input|verbatim|full|summary|list|array|\d{1,3})$/;
const MAX_AFFIXES = 3;
/** Longer names are no names of these. */
const MAX_NAME = 80;

const ASKS = 'By its name, a model fills this parameter with the conversation or its instructions.';
const IDENTIFIES = 'By its name, a model fills this parameter with which model it is.';
const HOLDS_FILE = 'By its name, a model fills this parameter with a file that holds secrets.';
const MAX_EVIDENCE = 200;

/** The parameters of a definition that ask for the context, or for a file that holds secrets. */
export function contextParameters(scanned: ScannedDefinition): readonly UnnamedFinding[] {
  const { kind, name } = scanned;
  const found = new Set<string>();
  return parametersOf(scanned).flatMap((parameter) => {
    const reason = reasonFor(parameter, name);
    if (reason === undefined || found.has(`${parameter.name} ${reason}`)) return [];
    found.add(`${parameter.name} ${reason}`);
    return [
      {
        ...{ kind: 'context-parameter', tier: 'review', item: { kind, name } },
        ...{ pointer: parameter.pointer, reason },
        evidence: makeVisible(parameter.name.slice(0, MAX_EVIDENCE)).slice(0, MAX_EVIDENCE),
      } as const,
    ];
  });
}

function reasonFor({ name, schema }: Parameter, owner: string): string | undefined {
  const folded = confusableForm(name).toLowerCase();
  if (FILE_CONTENTS.some((pattern) => pattern.test(folded))) return HOLDS_FILE;
  if (folded.length > MAX_NAME || !takesText(schema)) return undefined;
  const forms = withoutAffixes(folded);
  const isOne = (names: readonly RegExp[]): boolean =>
    forms.some((form) => names.some((pattern) => pattern.test(form)));
  if (isOne(CONTEXT_NAMES)) return ASKS;
  const isUsual = splitName(owner)
    .split(/[^a-z]+/)
    .some((word) => OF_MODELS.test(word));
  return !isUsual && isOne(MODEL_NAMES) ? IDENTIFIES : undefined;
}

/** The name, and what is left of it as words at its ends are taken away. */
function withoutAffixes(folded: string): readonly string[] {
  const forms = new Set([folded]);
  for (let round = 0; round < MAX_AFFIXES; round += 1) {
    for (const form of [...forms]) forms.add(form.replace(BEFORE, '')).add(form.replace(AFTER, ''));
  }
  return [...forms];
}

const VALUES_WITHOUT_TEXT: ReadonlySet<Json> = new Set(['boolean', 'integer', 'number', 'null']);

/** Whether a parameter can hold any text: a switch, a number or a choice of listed values holds none. */
function takesText(schema: Json | undefined): boolean {
  if (!isObject(schema)) return schema !== false;
  if (Array.isArray(schema['enum']) || schema['const'] !== undefined) return false;
  const types = [schema['type'] ?? 'string'].flat();
  return types.some((type) => !VALUES_WITHOUT_TEXT.has(type));
}

const URI_VARIABLES = /\{[+#./;?&]?([^{}]{1,200})\}/g;

function parametersOf({ definition }: ScannedDefinition): readonly Parameter[] {
  if (typeof definition === 'string') return [];
  const found: Parameter[] = [...declaredIn(definition['inputSchema'])];
  const list = definition['arguments'];
  for (const [at, one] of (Array.isArray(list) ? list : []).entries()) {
    if (isObject(one) && typeof one['name'] === 'string')
      found.push({ name: one['name'], pointer: `/arguments/${at}/name` });
  }
  const template = definition['uriTemplate'];
  for (const [, names = ''] of typeof template === 'string' ? template.matchAll(URI_VARIABLES) : [])
    for (const name of names.split(',')) found.push({ name: name.replace(/[*:]\d*$/, ''), pointer: '/uriTemplate' });
  return found;
}

/** Every parameter that a schema declares, at any depth: by its schema, by a pattern, or as one that is required. */
function declaredIn(inputSchema: Json = null): readonly Parameter[] {
  const found: Parameter[] = [];
  walkValue(inputSchema, ['inputSchema'], (schema, steps) => {
    if (!isObject(schema)) return true;
    const pointer = pointerOf(steps);
    found.push(...namedIn(schema, 'properties', pointer));
    found.push(...namedIn(schema, 'patternProperties', pointer));
    found.push(...requiredIn(schema, pointer));
    return true;
  });
  return found;
}

function namedIn(schema: JsonObject, member: string, pointer: string): readonly Parameter[] {
  const named = schema[member];
  if (!isObject(named)) return [];
  return Object.entries(named).map(([name, inner]) => {
    return { name, pointer: pointerTo(`${pointer}/${member}`, name), schema: inner };
  });
}

/** What a schema requires without describing it. */
function requiredIn(schema: JsonObject, pointer: string): readonly Parameter[] {
  const { required, properties } = schema;
  if (!Array.isArray(required)) return [];
  return required.flatMap((name, at) => {
    const isDescribed = isObject(properties) && Object.hasOwn(properties, String(name));
    if (typeof name !== 'string' || isDescribed) return [];
    return [{ name, pointer: `${pointer}/required/${at}` }];
  });
}
