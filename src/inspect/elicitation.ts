// What a server may not ask a person for, and where it may not send one: forms that want secrets or payment
// details, and links that are no plain https links. Judges the question alone, never who is asked.
// Source: MCP 2025-11-25, elicitation (security considerations, URL mode); contract §7, elicitation-*.

import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import { isSecretName } from './sanitize/secret-values.js';
import { foldView } from './sanitize/view.js';

/** Longest link that is passed on. */
const MAX_LINK_CHARS = 4096;

const PHRASE =
  '(?:pass ?words?|passwd|pass ?phrases?|pass ?codes?|pwd|pin ?(?:code|number)|otp|totp|one time (?:code|pin|token)|' +
  '(?:verification|authentication|authenticator|mfa|2fa|security|confirmation|sms) codes?|' +
  'cvv2?|cvc2?|card ?(?:numbers?|no|expiry|expiration|verification|details)|(?:credit|debit|payment|bank) cards?|' +
  'bank (?:account|details)|account number|routing number|sort code|iban|ssn|social security|' +
  '(?:api|access|secret|private|signing|encryption|ssh|license|service account) ?keys?|client ?secrets?|' +
  '(?:access|auth|authentication|authorization|bearer|refresh|session|api|oauth|personal access|login|id) ?tokens?|' +
  'login details|credentials?|(?:seed|recovery|backup|mnemonic) (?:phrases?|codes?|words?|keys?)|' +
  'security (?:questions?|answers?)|maiden name|' +
  'passwort|kennwort|contrase\u00f1a|mot de passe|senha|\u043f\u0430\u0440\u043e\u043b\u044c)';
const WORDS = new RegExp(` ${PHRASE} `, 'u');
/** Scripts that do not part words. */
const UNPARTED =
  /\u5bc6\u7801|\u5bc6\u78bc|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638/u;
/** A message that asks, and not one that says what it will never ask for. */
const REQUEST = new RegExp(
  ` (?:enter|type|paste|insert|provide|supply|give|share|send|submit|input|confirm|tell|need|needs|what is|what s) (?:[^ ]+ ){0,6}?${PHRASE} `,
  'u',
);
const DENIED =
  / (?:never|not|don t|won t|without) (?:[^ ]+ ){0,3}?(?:enter|type|paste|provide|give|share|send|need|ask) /u;

/**
 * Whether a form may be shown: `elicitation-sensitive` where a field, by name, title, description or format,
 * or the message asks for a secret; `malformed` where it is no form.
 */
export function checkForm(params: JsonObject): 'elicitation-sensitive' | 'malformed' | undefined {
  const schema = params['requestedSchema'];
  const message = params['message'];
  if (!isObject(schema) || !isObject(schema['properties']) || typeof message !== 'string') {
    return 'malformed';
  }
  if (asksInWords(message) || asksInSchema(schema)) return 'elicitation-sensitive';
  return undefined;
}

function asksInWords(message: string): boolean {
  const words = wordsOf(message);
  return REQUEST.test(words) && !DENIED.test(words);
}

function asksInSchema(value: Json, holdsNames = false): boolean {
  if (Array.isArray(value)) return value.some((one: Json) => asksInSchema(one));
  if (!isObject(value) || isChoice(value)) return false;
  for (const [name, one] of Object.entries(value)) {
    if (holdsNames ? isSensitiveName(name) || asksInSchema(one) : asksInMember(name, one)) {
      return true;
    }
  }
  return false;
}

/** One option of a list of choices: what may be chosen is no question. */
function isChoice(schema: JsonObject): boolean {
  return schema['const'] !== undefined && schema['properties'] === undefined;
}

function asksInMember(name: string, value: Json): boolean {
  if (VALUE_MEMBERS.has(name)) return false;
  if (typeof value !== 'string') return asksInSchema(value, NAME_HOLDERS.has(name));
  if (name === 'title') return isSensitiveName(value);
  if (name === 'format') return wordsOf(value) === ' password ';
  return name === 'description' || name === '$comment' ? isSensitiveText(value) : false;
}

const NAME_HOLDERS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
]);
const VALUE_MEMBERS: ReadonlySet<string> = new Set([
  'enum',
  'enumNames',
  'const',
  'default',
  'examples',
  'required',
]);

function isSensitiveName(name: string): boolean {
  const folded = foldView(name).text;
  return isSecretName(folded) || wordsOf(name) === ' pin ' || isSensitiveText(name);
}

function isSensitiveText(text: string): boolean {
  const words = wordsOf(text);
  return WORDS.test(words) || UNPARTED.test(words);
}

/** Lower-case words between single blanks, as a reader reads them; `apiKey` and `api_key` are two words. */
function wordsOf(text: string): string {
  const parted = foldView(text).text.replace(/([a-z0-9])([A-Z])/g, '$1 $2');
  return ` ${parted
    .toLowerCase()
    .normalize('NFKC')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `;
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
