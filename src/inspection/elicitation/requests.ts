// Checks an elicitation request, whoever receives it: refuses forms that request secrets or payment details, or an approval
// in place of the gateway, and links that are not plain https.
// Source: MCP 2025-11-25, elicitation (security considerations, URL mode); docs/reference/reasons.md, elicitation-*.

import { normalHost } from '../../policy/hosts.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { foldText } from '../detectors/decoded-text.js';
import { isSecretName } from '../detectors/secrets.js';
import { asksForApproval } from './approval-requests.js';
import { asksAcross, asksForSecret, isSecretField, type TextRole } from './secret-requests.js';

/** Maximum length of a link that is forwarded. */
const MAX_LINK_CHARS = 4096;

/** Schema members that clients do not show. */
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
/** Members that list the choices of a field. */
const CHOICES: ReadonlySet<string> = new Set(['enum', 'enumNames', 'const']);
/** Members that propose values. */
const PROPOSALS: ReadonlySet<string> = new Set(['default', 'examples']);
/** Members of the request that are not part of the form. */
const NO_FORM: ReadonlySet<string> = new Set(['_meta', 'mode', 'message', 'requestedSchema']);

/** Maximum size of a form. Reading a longer one would block the event loop. */
export const MAX_FORM_SIZE = 32 * 1024;
/** Cost of each text in addition to its length, in characters. */
const TEXT_SIZE = 16;

/** The size of a form, from its names and texts. Stops counting beyond `most`. */
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
 * Checks a form. Returns `elicitation-sensitive` where its message or any text of a field asks for a secret,
 * `elicitation-approval` where it asks for an approval in place of the gateway, and `malformed` where it is not a form or
 * is too long.
 */
export function checkForm(
  params: JsonObject,
): 'elicitation-sensitive' | 'elicitation-approval' | 'malformed' | undefined {
  const schema = params['requestedSchema'];
  const message = params['message'];
  if (!isObject(schema) || !isObject(schema['properties']) || typeof message !== 'string') {
    return 'malformed';
  }
  if (formSize(params) > MAX_FORM_SIZE) return 'malformed';
  const asks =
    asksForSecret(message) ||
    asksInSchema(schema, undefined, message) ||
    asksAcrossShortFields(schema['properties']) ||
    Object.entries(params).some(([name, value]) => !NO_FORM.has(name) && asksInTexts(value));
  if (asks) return 'elicitation-sensitive';
  return asksForApproval(params) ? 'elicitation-approval' : undefined;
}

/** A field: its name, and the properties of the same object. */
type Field = { readonly name: string; readonly otherFields: JsonObject };

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
  return Object.entries(fields).some(([name, schema]) => asksInSchema(schema, { name, otherFields: fields }, message));
}

function asksInMember(name: string, value: Json, role: TextRole, message: string): boolean {
  if (CHOICES.has(name)) return asksInTexts(value, 'value');
  if (PROPOSALS.has(name)) return asksInProposal(value, role);
  if (typeof value === 'string') {
    return asksForSecret(value, role) || (name === 'format' && isSecretField(value));
  }
  return asksInSchema(value, undefined, message);
}

/** A single word is a value like any other. A longer proposal is what a field shows before it is filled in. */
function asksInProposal(value: Json, role: TextRole): boolean {
  if (typeof value !== 'string') return asksInTexts(value, 'value');
  const isWord = /^\s*[\p{L}\p{N}_]+\s*$/u.test(value);
  return asksForSecret(value, isWord ? 'value' : role);
}

/** Checks every text at any depth, except member names. */
function asksInTexts(value: Json, role: TextRole = 'label'): boolean {
  if (typeof value === 'string') return asksForSecret(value, role);
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((one: Json) => asksInTexts(one, role));
}

/** Choices this short may spell something else: the digits of a number, with one field for each. */
const MAX_SPELLING_CHARS = 2;

/** Whether nothing can be typed into a field: yes or no, or one of several choices. */
function isChosen(schema: JsonObject): boolean {
  if (schema['type'] === 'boolean') return true;
  const { items } = schema;
  if (schema['type'] === 'array' && isObject(items)) return isChosen(items);
  const listed = schema['enum'] ?? schema['oneOf'] ?? schema['anyOf'];
  if (!Array.isArray(listed) || listed.length === 0) return false;
  const choices = listed.map((one: Json) => (isObject(one) ? one['const'] : one));
  return (
    choices.every((response) => response !== undefined && typeof response !== 'object') &&
    choices.some((response) => String(response).length > MAX_SPELLING_CHARS)
  );
}

function asksByName({ name, otherFields }: Field, schema: JsonObject): boolean {
  if (isMailCopy(name, schema, otherFields)) return false;
  return isSecretField(name) || isSecretName(foldText(name).text);
}

const MAIL = /\b(?:e-?mails?|recipients?|addressees?|cop(?:y|ies|ied)|countr(?:y|ies)|captions?)\b/i;

/** Whether `cc` means the copy of a mail rather than a credit card. */
function isMailCopy(name: string, schema: JsonObject, otherFields: JsonObject): boolean {
  if (!/^cc$/i.test(name)) return false;
  const texts = [schema['title'], schema['description']].filter((text) => typeof text === 'string');
  return (
    schema['format'] === 'email' ||
    schema['type'] === 'array' ||
    MAIL.test(texts.join(' ')) ||
    ['bcc', 'subject', 'recipients'].some((other) => otherFields[other] !== undefined)
  );
}

/** Checks the texts of a field as they are read one after another, and after the message. */
function asksTogether(schema: JsonObject, message: string): boolean {
  const { title, description } = schema;
  const shown = [message, title, description].filter((text) => typeof text === 'string');
  return shown.some((text, at) => shown.slice(at + 1).some((next) => asksAcross(text, next)));
}

/** Checks for a word with one field for each of its letters. */
function asksAcrossShortFields(fields: JsonObject): boolean {
  const titles = Object.values(fields).map((schema) => (isObject(schema) ? schema['title'] : ''));
  return [Object.keys(fields), titles].some((texts) => {
    const letters = texts.filter((text) => typeof text === 'string' && text.trim().length === 1);
    return letters.length > MAX_SPELLING_CHARS && asksForSecret(letters.join(' '));
  });
}

// Characters that URL parsers repair or drop silently, each in its own way.
const UNCLEAR = /[\p{C}\p{Z}\\]/u;
const PLAIN = /^[\x21-\x7e]+$/;
const HTTPS = /^https:\/\/(\[[^\]]*\]|[^/?#@:]*)(:[0-9]{0,5})?(?=[/?#]|$)/i;

/**
 * The link in a form that shows where it leads: https, without user information, its host in ASCII (punycode).
 * Undefined for any other link.
 */
export function readLink(link: Json | undefined): string | undefined {
  if (typeof link !== 'string' || link.length > MAX_LINK_CHARS || UNCLEAR.test(link)) {
    return undefined;
  }
  const [start, written = '', port = ''] = HTTPS.exec(link) ?? [];
  const host = start === undefined ? undefined : normalHost(written);
  if (start === undefined || host === undefined) return undefined;
  // A port and a path are read alike everywhere; the name of a host is not (src/policy/hosts.ts).
  const rest = `https://localhost${port}${link.slice(start.length)}`;
  if (!URL.canParse(rest)) return undefined;
  const shown = host.includes(':') ? `[${host}]` : host;
  if (PLAIN.test(link) && written.toLowerCase() === shown) return link;
  return new URL(rest).href.replace('localhost', () => shown);
}
