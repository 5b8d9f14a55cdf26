// Rows for the names of members, variables, labels and columns that tell what the value behind them is, or that it is
// something else. Case and the border between `apiKey` and `api_key` are the detector's: secrets.ts and cookies.ts read a
// name as written, with `_` before a capital; pii.ts reads lower-case words with blanks between them.
// Source: the ways in which code, configuration and tables name such values.

import { appliedRows, type DetectorRow } from '../detector-row.js';

export type NameRow = DetectorRow & { readonly pattern: RegExp };

const SOURCE = 'the ways in which code, configuration and tables name such values';
const NEVER = /(?!)/;
const rows: NameRow[] = [];

/** All rows of this family, also those that are off. */
export const NAME_ROWS: readonly NameRow[] = rows;

/** A row; its pattern is returned, and matches nothing where the row is off. */
function name(
  id: string,
  kind: string,
  pattern: RegExp,
  matches: readonly string[],
  passes: readonly string[],
  isOff?: true,
): RegExp {
  const row: NameRow = { id: `name-${id}`, class: kind, language: 'any', source: SOURCE, pattern, matches, passes };
  const written = isOff === undefined ? row : { ...row, isOff };
  rows.push(written);
  return appliedRows([written]).length > 0 ? pattern : NEVER;
}

/** Endings of names that denote a secret. */
export const SECRET_NAME = name(
  'secret',
  'secret',
  /(?:password|passwd|passphrase)$|(?:^|[^a-z])(?:pwd|secret|api[_\- ]?key|apikey|access[_\- ]?key|private[_\- ]?key|secret[_\- ]?key|client[_\- ]?secret|auth[_\- ]?token|access[_\- ]?token|refresh[_\- ]?token|bearer[_\- ]?token|api[_\- ]?token|identity[_\- ]?token|registry[_\- ]?token|token|credentials?)$/i,
  ['password', 'api_key', 'client-secret', 'refresh_token'],
  ['passwords_policy', 'monkey'],
);

/** Names of tokens that only continue a list or protect a form. */
export const HARMLESS_NAME = name(
  'no-secret',
  'other',
  /(?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress|max|count|public|lock)[_\- ]?(?:page)?[_\- ]?(?:token|key|secret)$/i,
  ['next_page_token', 'csrf-token'],
  ['access_token'],
);

/** What settings call a password for short: `SMTP_PASS`, `mailPass`, `PGPASS`. Many names end so by chance. */
export const PASS_NAME = name(
  'pass',
  'secret',
  /(?:^|[^a-z])(?:pg|db|ssh|smtp|ftp|sql|mysql|mail)?pass$/i,
  ['SMTP_PASS', 'mail_pass', 'PGPASS'],
  ['compass', 'passport'],
);

/** The member of Docker's and npm's settings with a user name and a password in base64. */
export const AUTH_NAME = name('auth', 'basic-credentials', /auth$/i, ['_auth', 'auth'], ['author']);

/** Members that hold cookies; group 1 where they set one. */
export const COOKIE_NAME = name('cookie', 'cookie', /^(set-)?cookies?$/i, ['Cookie', 'set-cookie'], ['cookie_policy']);

/** Names that speak of a payment card, or only of a number. */
export const CARD_NAME = name(
  'card',
  'card',
  /\b(?:cards?|pan|cc|ccn|credit|debit|visa|mastercard|maestro|amex|discover|diners|jcb|unionpay|payment|karten?|kartennummer|kreditkartennummer|tarjeta|carte|carta|cart[aã]o)\b|(?:credit|debit|bank|payment)card|card(?:num|no\b)|\bcc(?:num|no\b)|american express|primary account|kreditkarte|^(?:number|numbers|no|nr|num)$/u,
  ['credit card no', 'pan', 'number'],
  ['order number'],
);

/** What speaks of a payment card before a number in prose. */
export const CARD_CUE = name(
  'card-cue',
  'card',
  /card|visa|master|amex|american express|discover|\bpan\b|credit|debit|(?<![a-z0-9])cc\b/gi,
  ['Visa: ', 'my cc is '],
  ['account '],
);

/** Last words of names of what people write: a number in it is one in prose. */
export const PROSE_NAME = name(
  'prose',
  'other',
  /(?:^| )(?:text|texts|content|contents|message|messages|msg|note|notes|comments?|body|description|summary|details?|output|stdout|stderr|log|logs|lines?|result|response|reply|answer|markdown|html|title|subject|prompt|input)$/,
  ['message', 'error log'],
  ['card'],
);

/** Words of names that mean another number than that of a card. */
export const OTHER_MEANINGS = name(
  'no-card',
  'other',
  /\b(?:ids?|uuid|guid|ts|time|timestamp|date|at|epoch|order|orders|invoice|tracking|shipment|parcel|phone|tel|telephone|mobile|fax|imei|isbn|ean|gtin|upc|sku|serial|ticket|case|issue|commit|build|version|revision|size|bytes|offset|length|count|amount|price|balance|seq|sequence|index|hash|checksum|crc|trace|span|request|session|cursor|snowflake|tweet|channel|guild|ref|reference|transaction|txn|lat|lon|lng|latitude|longitude|seed|duration|elapsed|nanoseconds|ns|us|ms|key|code|barcode|inode|address|value)\b/,
  ['tracking id', 'timestamp'],
  ['card'],
);

/** Names and cues of a US social security number. */
export const SSN_CUE = name(
  'ssn',
  'ssn',
  /(?<![a-z])ssn(?![a-z])|(?<![a-z])ss#|social[\s_-]{0,4}security/i,
  ['ssn', 'social_security_number'],
  ['session'],
);
