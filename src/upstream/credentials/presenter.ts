// What every request to an upstream shows besides its message: the gateway's credential for whoever it is
// sent for, and who that is. At once where both are at hand, which is the rule; a request that cannot
// show what is configured is not sent. Never shows the caller's own token.
// MCP security best practices (token passthrough).

import type { Caller } from '../../policy/principal.js';

// What the gateway shows an upstream to prove itself: nothing, one header with a secret, or a token that
// an authorization server issues. Never the caller's token (MCP security best practices, token passthrough),
// and never one credential in place of another.

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

/** For whom something is sent. */
export type OnBehalf = Caller | 'gateway';

/** Header names and values in turn, or why nothing may leave. */
export type Shown = readonly string[] | 'upstream-credentials';

export type Presenter = {
  /** What to show. Never rejects. */
  present(by: OnBehalf): Shown | Promise<Shown>;
  /** The upstream did not accept what was shown: it is not shown again. */
  refused(by: OnBehalf, shown: readonly string[]): void;
  /** How both credentials stand, that for callers and that of the gateway's own listings. */
  states(): readonly CredentialState[];
};

type PresenterParts = {
  readonly callers: CredentialSource;
  readonly own: CredentialSource;
  /** Says who calls; absent where nothing is configured. */
  readonly assert?: ((by: OnBehalf) => readonly string[]) | undefined;
};

/** Joins them. */
export function createPresenter({ callers, own, assert }: PresenterParts): Presenter {
  const sourceOf = (by: OnBehalf): CredentialSource => (by === 'gateway' ? own : callers);
  function withAssertion(shown: Shown, by: OnBehalf): Shown {
    return assert === undefined || typeof shown === 'string' ? shown : [...shown, ...assert(by)];
  }
  return {
    present(by) {
      const shown = sourceOf(by).header(by);
      return shown instanceof Promise
        ? shown.then((late) => withAssertion(late, by))
        : withAssertion(shown, by);
    },
    refused: (by, [, value]) => sourceOf(by).refused(by, value),
    states: () => (callers === own ? [callers.state()] : [callers.state(), own.state()]),
  };
}
