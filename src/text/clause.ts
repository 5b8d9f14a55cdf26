// One clause of cause for the operator: what was wrong with something that another party sent. Names, values and
// addresses of that party are masked, made visible and cut, and an address loses its user, query and fragment. A clause
// is written to logs, records and terminals, and never to a client.

import { cleanForeign, maskSecrets } from './escaping.js';

const MAX_NAME_CHARACTERS = 64;
const MAX_URL_CHARACTERS = 160;

/** A name or a short value as it may stand in a clause. */
export function clauseName(name: string): string {
  return cleanForeign(name, maskSecrets, MAX_NAME_CHARACTERS);
}

/** An address as it may stand in a clause: scheme, host and path. */
export function clauseUrl(text: string, base: string): string {
  if (!URL.canParse(text, base)) return clauseName(text.replace(/[?#].*$/s, ''));
  const { protocol, host, pathname } = new URL(text, base);
  return cleanForeign(`${protocol}//${host}${pathname}`, maskSecrets, MAX_URL_CHARACTERS);
}

type AnswerHead = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | undefined };
};

/** Such as `404 to prompts/list`, with the challenge of a server that wants credentials. */
export function describeStatus({ status, headers }: AnswerHead, method: string): string {
  const challenge = headers['www-authenticate'];
  const scheme = challenge === undefined ? '' : `, challenge ${clauseName(challenge.trim().split(/[\s,]/)[0] ?? '')}`;
  const type = headers['content-type']?.split(';')[0]?.trim();
  const what = type === undefined || type === 'application/json' ? '' : ` (${clauseName(type)})`;
  const encoding = encodingOf({ headers });
  const encoded = encoding === undefined ? '' : `, content-encoding: ${clauseName(encoding)}`;
  return `${status} to ${method}${scheme}${what}${encoded}`;
}

/** The encoding of a body that cannot be read as it is. An empty value and `identity` in any case name none. */
export function encodingOf({ headers }: Pick<AnswerHead, 'headers'>): string | undefined {
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  return encoding === '' || encoding === 'identity' ? undefined : encoding;
}

/** Such as `content-type: text/html`, for an answer of a media type that cannot be read. */
export function describeType(contentType: string | undefined): string {
  return contentType === undefined ? 'no content-type' : `content-type: ${clauseName(contentType)}`;
}

/** The kind of a JSON value, as a clause says what came in place of what was expected. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
