// Adds to every request to an upstream the credential configured for whoever it is sent for, and the
// assertion that names the caller. Usually synchronous; a request whose configured credential cannot be
// obtained is not sent. Never presents the caller's own token, and never one credential in place of another.
// MCP security best practices (token passthrough).

import type { Caller } from '../../policy/principal.js';

/** The state of a credential, for the table of controls. */
export type CredentialState = {
  readonly state: 'armed' | 'degraded' | 'off';
  readonly detail: string;
};

/** Supplies the credential header of one upstream: none, a static secret, or an issued token. */
export type CredentialSource = {
  /** The header; synchronous if it is at hand. Never rejects. */
  header(caller: CallerOrGateway): PresentOutcome | Promise<PresentOutcome>;
  /** Reports that the upstream rejected this value of the header. */
  reportRejected(caller: CallerOrGateway, value: string | undefined): void;
  state(): CredentialState;
};

/**
 * Called with each credential before it is presented, so that it is recognized in the upstream's responses.
 * `configured`: in the configuration. `issued`: a token that expires. `prefix`: the common prefix of a series.
 */
export type RegisterCredential = (value: string, kind: 'configured' | 'issued' | 'prefix') => void;

const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ +/;

/**
 * The forms in which a credential may reappear: the header value, the value without its scheme
 * (RFC 9110 §11.4), each cookie's value (RFC 6265 §4.2.1), and for Basic the user-pass pair and the password
 * (RFC 7617).
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

const NO_HEADERS: readonly string[] = Object.freeze([]);

/** A source that presents no credential. */
export function createNoCredential(): CredentialSource {
  return {
    header: () => NO_HEADERS,
    reportRejected: () => undefined,
    state: () => ({ state: 'off', detail: 'credentials: none' }),
  };
}

/** A source that always presents the same header. */
export function createStaticCredential(name: string, value: string): CredentialSource {
  const headers: readonly string[] = Object.freeze([name, value]);
  return {
    header: () => headers,
    reportRejected: () => undefined,
    state: () => ({ state: 'armed', detail: '' }),
  };
}

/** The caller on whose behalf a request is sent, or the gateway itself. */
export type CallerOrGateway = Caller | 'gateway';

/** Alternating header names and values, or the reason why nothing may be sent. */
export type PresentOutcome = readonly string[] | 'upstream-credentials';

export type Presenter = {
  /** The headers to add. Never rejects. */
  present(caller: CallerOrGateway): PresentOutcome | Promise<PresentOutcome>;
  /** Reports that the upstream rejected these headers, so that they are not presented again. */
  reportRejected(caller: CallerOrGateway, credentials: readonly string[]): void;
  /** The states of the credential for callers and of the one for the gateway's own requests. */
  states(): readonly CredentialState[];
};

type PresenterSources = {
  readonly callerSource: CredentialSource;
  readonly gatewaySource: CredentialSource;
  /** Creates the assertion; absent if none is configured. */
  readonly signAssertion?: ((caller: CallerOrGateway) => readonly string[]) | undefined;
};

/** Combines the credential sources and the assertion. */
export function createPresenter({
  callerSource,
  gatewaySource,
  signAssertion,
}: PresenterSources): Presenter {
  const sourceOf = (caller: CallerOrGateway): CredentialSource =>
    caller === 'gateway' ? gatewaySource : callerSource;
  function withAssertion(credentials: PresentOutcome, caller: CallerOrGateway): PresentOutcome {
    return signAssertion === undefined || typeof credentials === 'string'
      ? credentials
      : [...credentials, ...signAssertion(caller)];
  }
  return {
    present(caller) {
      const credentials = sourceOf(caller).header(caller);
      return credentials instanceof Promise
        ? credentials.then((resolved) => withAssertion(resolved, caller))
        : withAssertion(credentials, caller);
    },
    reportRejected: (caller, [, value]) => sourceOf(caller).reportRejected(caller, value),
    states: () =>
      callerSource === gatewaySource
        ? [callerSource.state()]
        : [callerSource.state(), gatewaySource.state()],
  };
}
