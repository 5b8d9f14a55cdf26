// What every request to an upstream shows besides its message: the gateway's credential for whoever it is
// sent for, and who that is. At once where both are at hand, which is the rule; a request that cannot
// show what is configured is not sent. Never shows the caller's own token.
// MCP security best practices (token passthrough).

import type { Caller } from '../policy/caller.js';
import type { CredentialSource, CredentialState } from './credentials.js';

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

export type PresenterParts = {
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
