// What every listener with pages shares: the cookies of its sessions, the forms that its pages send and where they come
// from, and how often one may try to log in. It keeps no session and decides nothing about people.
// RFC 6265bis (cookies, `__Host-`); WHATWG HTML, form submission; docs/reference/listeners.md.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { mediaType } from '../protocol/headers.js';
import { createRate } from '../state/bounds.js';
import { readText } from './app.js';

/** A request of a browser, as far as sessions read it. */
export type BrowserRequest = {
  /** The values of all `Cookie` headers. */
  readonly cookies: readonly string[];
  readonly ip: string;
};

export type Cookies = {
  /** The value of `Set-Cookie`. Without `maxAgeMs` the browser drops the cookie when it is closed. */
  set(name: string, value: string, maxAgeMs?: number): string;
  clear(name: string): string;
  /** Undefined where it comes twice, as when another host of the domain has set it too. */
  read(request: Pick<BrowserRequest, 'cookies'>, name: string): string | undefined;
  /** The names that begin so, in the order in which the browser sends them: the oldest first. */
  namesOf(request: Pick<BrowserRequest, 'cookies'>, beginning: string): readonly string[];
};

/** Creates the cookies of one listener. `isSecure`: browsers reach it by https, so that no other host can set them. */
export function createCookies(isSecure: boolean): Cookies {
  const prefix = isSecure ? '__Host-' : '';

  function write(name: string, value: string, more: string): string {
    return `${prefix}${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}${more}`;
  }

  return {
    set: (name, value, maxAgeMs) => write(name, value, maxAgeMs === undefined ? '' : `; Max-Age=${maxAgeMs / 1000}`),
    clear: (name) => write(name, '', '; Max-Age=0'),
    read({ cookies }, name) {
      const values = pairsOf(cookies).filter((pair) => pair.startsWith(`${prefix}${name}=`));
      return values.length === 1 ? values[0]?.slice(prefix.length + name.length + 1) : undefined;
    },
    namesOf({ cookies }, beginning) {
      const names = pairsOf(cookies).map((pair) => pair.slice(0, Math.max(0, pair.indexOf('='))));
      return names.filter((name) => name.startsWith(`${prefix}${beginning}`)).map((name) => name.slice(prefix.length));
    },
  };
}

function pairsOf(headers: readonly string[]): readonly string[] {
  return headers.flatMap((header) => header.split(';')).map((pair) => pair.trim());
}

/** The values of a header, one for each line. */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '');
  }
  return values;
}

/**
 * Whether a request comes from a page of the listener itself, as far as its `Origin` says; also where it has none.
 * Without TLS of its own, a listener may stand behind a proxy that has it.
 */
export function isOwnOrigin(request: IncomingMessage): boolean {
  const { origin, host } = request.headers;
  if (origin === undefined || origin === `https://${host}`) return true;
  return origin === `http://${host}` && !(request.socket instanceof TLSSocket);
}

/** The fields of a form; `undefined` if the body is not a form, is too large, or names a field twice. */
export async function readForm(
  request: IncomingMessage,
  maxBytes: number,
): Promise<ReadonlyMap<string, string> | undefined> {
  if (mediaType(request.headers['content-type']) !== 'application/x-www-form-urlencoded') return undefined;
  const text = await readText(request, maxBytes);
  if (text === undefined) return undefined;
  const fields = [...new URLSearchParams(text)];
  const form = new Map(fields);
  return form.size === fields.length ? form : undefined;
}

/** Whether a form was made for this session. */
export function isFormToken(form: ReadonlyMap<string, string>, token: string): boolean {
  return isSame(form.get('form') ?? '', token);
}

/** Compares digests, so that timing reveals neither content nor length. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/** Attempts to log in that one address has, which may be that of a proxy; and apart from them guesses at a token. */
export const ATTEMPTS_PER_MINUTE = 30;
const SECONDS_PER_MINUTE = 60;

/** Creates a count of attempts: whether the owner of an address, or of another key, may try once more. */
export function createAttempts(now: () => number): (key: string) => boolean {
  const rate = createRate({ burst: ATTEMPTS_PER_MINUTE, perSecond: ATTEMPTS_PER_MINUTE / SECONDS_PER_MINUTE }, now);
  return (key) => {
    const owner = networkOf(key);
    if (rate.left(owner) < 1) return false;
    rate.spend(1, owner);
    return true;
  };
}

/** The /64 network of an IPv6 address, whose holder has all addresses in it; anything else itself. */
function networkOf(key: string): string {
  if (!ipaddr.isValid(key)) return key;
  const address = ipaddr.process(key);
  return address.kind() === 'ipv4' ? address.toString() : String(address.toByteArray().slice(0, 8));
}
