// What a server may not ask a person for, and where it may not send one: forms that want secrets or payment
// details, and links that are no plain https links. Judges the question alone, never who is asked.
// Source: MCP 2025-11-25, elicitation (security considerations, URL mode); docs/contract.md §7, elicitation-*.

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { foldView } from '../detectors/normalized-text.js';
import { isSecretName } from '../detectors/secrets.js';
import { asksAcross, asksForSecret, isSecretField, type TextRole } from './secret-requests.js';

/** Longest link that is passed on. */
const MAX_LINK_CHARS = 4096;

/** Members of a schema that nobody is shown. */
const UNSHOWN: ReadonlySet<string> = new Set([
  ...['type', 'pattern', 'required', 'propertyOrdering', 'dependentRequired'],
  ...['$schema', '$id', '$ref', '$anchor', '$defs', 'definitions'],
  ...['contentEncoding', 'contentMediaType'],
]);
const NAME_HOLDERS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);
/** Answers to choose from. */
const CHOICES: ReadonlySet<string> = new Set(['enum', 'enumNames', 'const']);
/** Answers that are proposed. */
const PROPOSALS: ReadonlySet<string> = new Set(['default', 'examples']);
/** Members of the question that are no part of the form. */
const NO_FORM: ReadonlySet<string> = new Set(['_meta', 'mode', 'message', 'requestedSchema']);

/** Longer forms are no questions: reading one would hold up everybody else. */
export const MAX_FORM_SIZE = 32 * 1024;
/** What a text costs however short it is, in characters. */
const TEXT_SIZE = 16;

/** The size of a form: its names and texts. Counts no further than the size that is too much. */
export function formSize(value: Json | undefined, most = MAX_FORM_SIZE): number {
  if (typeof value === 'string') return value.length + TEXT_SIZE;
  if (typeof value !== 'object' || value === null) return 1;
  let size = 1;
  for (const name in value) {
    size += (Array.isArray(value) ? 0 : name.length + TEXT_SIZE) + 1;
    if (size <= most) size += formSize((value as JsonObject)[name], most - size);
    if (size > most) break;
  }
  return size;
}

/**
 * Whether a form may be shown: `elicitation-sensitive` where its message or a field, by any of the texts that
 * stand in it, asks for a secret; `malformed` where it is no form, or too long for one.
 */
export function checkForm(params: JsonObject): 'elicitation-sensitive' | 'malformed' | undefined {
  const schema = params['requestedSchema'];
  const message = params['message'];
  if (!isObject(schema) || !isObject(schema['properties']) || typeof message !== 'string') {
    return 'malformed';
  }
  if (formSize(params) > MAX_FORM_SIZE) return 'malformed';
  const asks =
    asksForSecret(message) ||
    asksInSchema(schema, undefined, message) ||
    asksInLetters(schema['properties']) ||
    Object.entries(params).some(([name, value]) => !NO_FORM.has(name) && asksInTexts(value));
  return asks ? 'elicitation-sensitive' : undefined;
}

/** Where a field stands: its name, and what else the object has. */
type Field = { readonly name: string; readonly beside: JsonObject };

function asksInSchema(schema: Json, field: Field | undefined, message: string): boolean {
  if (Array.isArray(schema)) {
    return schema.some((one: Json) => asksInSchema(one, undefined, message));
  }
  if (!isObject(schema)) return typeof schema === 'string' && asksForSecret(schema);
  if (schema['const'] !== undefined && schema['properties'] === undefined) {
    return asksInTexts(schema, 'value');
  }
  const role: TextRole = isChosen(schema) ? 'value' : 'label';
  if (field !== undefined && role === 'label' && asksByName(field, schema)) return true;
  if (role === 'label' && asksTogether(schema, message)) return true;
  return Object.entries(schema).some(([name, value]) =>
    NAME_HOLDERS.has(name) && isObject(value)
      ? asksInFields(value, message)
      : !UNSHOWN.has(name) && asksInMember(name, value, role, message),
  );
}

function asksInFields(fields: JsonObject, message: string): boolean {
  return Object.entries(fields).some(([name, schema]) =>
    asksInSchema(schema, { name, beside: fields }, message),
  );
}

function asksInMember(name: string, value: Json, role: TextRole, message: string): boolean {
  if (CHOICES.has(name)) return asksInTexts(value, 'value');
  if (PROPOSALS.has(name)) return asksInProposal(value, role);
  if (typeof value === 'string') {
    return asksForSecret(value, role) || (name === 'format' && isSecretField(value));
  }
  return asksInSchema(value, undefined, message);
}

/** A single word is an answer like every other, and more are what a field shows before it is filled in. */
function asksInProposal(value: Json, role: TextRole): boolean {
  if (typeof value !== 'string') return asksInTexts(value, 'value');
  const isWord = /^\s*[\p{L}\p{N}_]+\s*$/u.test(value);
  return asksForSecret(value, isWord ? 'value' : role);
}

/** Every text at any depth, without the names of members. */
function asksInTexts(value: Json, role: TextRole = 'label'): boolean {
  if (typeof value === 'string') return asksForSecret(value, role);
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((one: Json) => asksInTexts(one, role));
}

/** Answers as short as this spell something else: the digits of a number, one field for each. */
const MAX_SPELLING_CHARS = 2;

/** True for a field into which nothing can be typed: yes or no, or one of several answers. */
function isChosen(schema: JsonObject): boolean {
  if (schema['type'] === 'boolean') return true;
  const { items } = schema;
  if (schema['type'] === 'array' && isObject(items)) return isChosen(items);
  const listed = schema['enum'] ?? schema['oneOf'] ?? schema['anyOf'];
  if (!Array.isArray(listed) || listed.length === 0) return false;
  const answers = listed.map((one: Json) => (isObject(one) ? one['const'] : one));
  return (
    answers.every((response) => response !== undefined && typeof response !== 'object') &&
    answers.some((response) => String(response).length > MAX_SPELLING_CHARS)
  );
}

function asksByName({ name, beside }: Field, schema: JsonObject): boolean {
  if (isMailCopy(name, schema, beside)) return false;
  return isSecretField(name) || isSecretName(foldView(name).text);
}

const MAIL =
  /\b(?:e-?mails?|recipients?|addressees?|cop(?:y|ies|ied)|countr(?:y|ies)|captions?)\b/i;

/** `cc` of a letter, and not of a bank. */
function isMailCopy(name: string, schema: JsonObject, beside: JsonObject): boolean {
  if (!/^cc$/i.test(name)) return false;
  const texts = [schema['title'], schema['description']].filter((text) => typeof text === 'string');
  return (
    schema['format'] === 'email' ||
    schema['type'] === 'array' ||
    MAIL.test(texts.join(' ')) ||
    ['bcc', 'subject', 'recipients'].some((other) => beside[other] !== undefined)
  );
}

/** The texts of a field as they are read one behind the other, and behind the message. */
function asksTogether(schema: JsonObject, message: string): boolean {
  const { title, description } = schema;
  const shown = [message, title, description].filter((text) => typeof text === 'string');
  return shown.some((text, at) => shown.slice(at + 1).some((next) => asksAcross(text, next)));
}

/** A word with a field for each of its letters. */
function asksInLetters(fields: JsonObject): boolean {
  const titles = Object.values(fields).map((schema) => (isObject(schema) ? schema['title'] : ''));
  return [Object.keys(fields), titles].some((texts) => {
    const letters = texts.filter((text) => typeof text === 'string' && text.trim().length === 1);
    return letters.length > MAX_SPELLING_CHARS && asksForSecret(letters.join(' '));
  });
}

// What readers of URLs repair or drop in silence, each in its own way.
const UNCLEAR = /[\p{C}\p{Z}\\]/u;
const PLAIN = /^[\x21-\x7e]+$/;

/**
 * The link as it may be shown: https, nobody named in it, its host in ASCII (punycode) so that it shows
 * what it is. `undefined` for every other.
 */
export function readLink(link: Json | undefined): string | undefined {
  if (typeof link !== 'string' || link.length > MAX_LINK_CHARS || UNCLEAR.test(link)) {
    return undefined;
  }
  const [, authority] = /^https:\/\/([^/?#]+)/i.exec(link) ?? [];
  if (authority === undefined || authority.includes('@')) return undefined;
  let url: URL;
  try {
    url = new URL(link);
  } catch {
    return undefined;
  }
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  const written = authority.toLowerCase();
  const isPlain = PLAIN.test(link) && (written === url.host || written === `${url.host}:443`);
  return isPlain ? link : url.href;
}
