// Whether a server may put this question to a human: a form that asks for a secret or for payment data
// may not, nor a link that is not plain https. Judges the question alone; what it says is sanitized apart.
// Source: MCP 2025-11-25 and 2026-07-28, elicitation (sensitive information, URL mode safety).

import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import { findSensitive } from './sanitize/detect.js';
import { isSecretName } from './sanitize/secret-values.js';
import { skeletonOf } from './sanitize/skeleton.js';
import { foldView } from './sanitize/view.js';

/** Why an elicitation is withheld. */
export type ElicitationFault = 'elicitation-sensitive' | 'elicitation-url';

/** Words for what nobody may be asked for in a form. Alternatives of plain words: linear. */
const SENSITIVE =
  /\b(?:pass ?words?|pass ?wd|pwd|pass ?phrases?|pass ?codes?|pin (?:code|number)|secrets?|api ?keys?|(?:access|private|secret|encryption|signing|ssh|license|recovery|account) ?keys?|(?:auth|access|refresh|bearer|api|session|id|security|personal access|github) ?tokens?|jwts?|credentials?|one time (?:code|password|pin)s?|otps?|totp|(?:verification|security|authentication|authorization|auth|recovery|backup|two factor|2fa|mfa|sms|login) codes?|2fa|mfa|cvv2?|cvc2?|csc|card (?:number|no|security|details?)s?|(?:credit|debit|payment|bank) cards?|iban|(?:bank )?account (?:number|no)s?|routing numbers?|sort code|ssn|social security|seed (?:phrase|words?)|mnemonic|recovery phrase|cookies?|connection string)\b/;
/** Whole names that are too common as parts of others. */
const SENSITIVE_NAME = /^(?:pin|token|key|auth|authorization|bearer|card|pass|expiry|pan)$/;
/** In running text a sensitive word counts where the reader is asked to hand something over. */
const REQUEST =
  /\b(?:enter|type|provide|supply|give|paste|share|submit|send|confirm|tell|input|fill in|need|what is|what's)\b/;
/** Longest text that is judged; a longer one is withheld. */
const MAX_TEXT_CHARS = 20_000;
const MAX_URL_CHARS = 4096;
const URL_CHARACTERS = /^https:\/\/[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/;

/** Judges the params of an elicitation; `undefined` where nothing is wrong with it. Never throws. */
export function findElicitationFault(
  mode: 'form' | 'url',
  params: JsonObject,
): ElicitationFault | undefined {
  if (mode === 'url') return isSafeUrl(params['url']) ? undefined : 'elicitation-url';
  const message = params['message'];
  const isAsking = typeof message === 'string' && asksForSecret(message);
  const schema = params['requestedSchema'];
  return isAsking || !isObject(schema) || hasSensitiveField(schema)
    ? 'elicitation-sensitive'
    : undefined;
}

function asksForSecret(message: string): boolean {
  const text = plain(message);
  return text === undefined || (REQUEST.test(text) && SENSITIVE.test(text));
}

/** A form is flat: properties of primitives. What is not is not looked into, and withheld. */
function hasSensitiveField(schema: JsonObject): boolean {
  const properties = schema['properties'];
  if (!isObject(properties)) return true;
  const about = [schema['title'], schema['description']];
  if (about.some(isSensitiveText)) return true;
  return Object.entries(properties).some(([name, field]) => isSensitiveField(name, field));
}

function isSensitiveField(name: string, field: Json): boolean {
  if (!isObject(field)) return true;
  // Neither a choice among given words nor a yes or no can hold a secret.
  if (field['type'] === 'boolean' || isChoice(field)) return false;
  if (field['format'] === 'password' || field['writeOnly'] === true) return true;
  if (isObject(field['properties'])) return true;
  const spaced = plain(name);
  if (spaced === undefined || SENSITIVE_NAME.test(spaced)) return true;
  return (
    isSecretName(name) ||
    SENSITIVE.test(spaced) ||
    isSensitiveText(field['title']) ||
    isSensitiveText(field['description'])
  );
}

function isChoice(field: JsonObject): boolean {
  const items = field['items'];
  const holder = isObject(items) ? items : field;
  return ['enum', 'oneOf', 'anyOf'].some((keyword) => Array.isArray(holder[keyword]));
}

function isSensitiveText(value: Json | undefined): boolean {
  if (typeof value !== 'string') return false;
  const text = plain(value);
  return text === undefined || SENSITIVE.test(text);
}

/** The text as a reader takes it: look-alikes and invisible characters undone, words apart, lower case. */
function plain(text: string): string | undefined {
  if (text.length > MAX_TEXT_CHARS) return undefined;
  return skeletonOf(foldView(text).text)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/[^a-z0-9']+/g, ' ')
    .trim();
}

/** Plain https, one reading, no user, no name that only looks like another, no secret on board. */
function isSafeUrl(value: Json | undefined): boolean {
  if (typeof value !== 'string' || value.length > MAX_URL_CHARS) return false;
  if (!URL_CHARACTERS.test(value) || !URL.canParse(value)) return false;
  const url = new URL(value);
  if (url.protocol !== 'https:' || url.username !== '' || url.password !== '') return false;
  // An `@` in front of the path reads as a user to somebody, even an empty one.
  if (/^https:\/\/[^/?#]*@/.test(value) || /(?:^|\.)xn--/.test(url.hostname)) return false;
  return findSensitive(value, { secrets: true, pii: [] }).length === 0;
}
