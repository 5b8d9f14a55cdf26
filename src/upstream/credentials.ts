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
