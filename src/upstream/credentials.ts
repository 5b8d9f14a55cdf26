// What the gateway shows an upstream to prove itself: nothing, one header with a secret, or a token that
// an authorization server issues. Never the caller's token (MCP security best practices, token passthrough),
// and never one credential in place of another.

import type { OnBehalf, Shown } from './presenter.js';

/** How a credential stands, for the table of controls. */
export type CredentialState = {
  readonly state: 'armed' | 'degraded' | 'off';
  readonly detail: string;
};

/** Where the header comes from. */
export type CredentialSource = {
  /** At once where it is at hand. Never rejects. */
  header(by: OnBehalf): Shown | Promise<Shown>;
  /** The upstream did not accept this value of the header. */
  refused(by: OnBehalf, value: string | undefined): void;
  state(): CredentialState;
};

/**
 * Told of each credential before it is shown to the upstream, so that it is known again in what comes back.
 * `kept`: configured. `issued`: a token that expires. `beginning`: what each of a series begins with.
 */
export type NoteCredential = (value: string, kind: 'kept' | 'issued' | 'beginning') => void;

const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ +/;

/**
 * The value of a header, and what of it is the credential itself: without its scheme (RFC 9110 §11.4), each
 * cookie's value (RFC 6265 §4.2.1), and of Basic the user with the password, and the password (RFC 7617).
 */
export function encodedFormsOf(header: string, value: string): readonly string[] {
  if (header.toLowerCase() === 'cookie') {
    return [value, ...value.split(/; */).map((pair) => pair.slice(pair.indexOf('=') + 1))];
  }
  const bare = value.replace(SCHEME, '');
  if (!/^basic /i.test(value)) return [value, bare];
  const pair = Buffer.from(bare, 'base64').toString('utf8');
  return [value, bare, pair, pair.slice(pair.indexOf(':') + 1)];
}

const NOTHING: readonly string[] = Object.freeze([]);

/** Shows nothing. */
export function createNoCredential(): CredentialSource {
  return {
    header: () => NOTHING,
    refused: () => undefined,
    state: () => ({ state: 'off', detail: 'nothing is presented' }),
  };
}

/** Shows the same header always. */
export function createStaticCredential(name: string, value: string): CredentialSource {
  const shown: readonly string[] = Object.freeze([name, value]);
  return {
    header: () => shown,
    refused: () => undefined,
    state: () => ({ state: 'armed', detail: '' }),
  };
}
