// What one try of `validate --online` says: what was tried, how it ended, why, and what to do. The checks are pure
// functions of what was observed (src/cli/online/try-online.ts); rendered as one line each, as JSON, and as diagnostics
// for SARIF. docs/reference/commands.md#validate.

import type { Diagnostic, Severity } from '../../config/diagnostics.js';
import { type ItemDifference, isInformational } from '../../pins/lock-differences.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { countOf, durationText, firstOf } from '../../text/wording.js';

export type TryState = 'ok' | 'warning' | 'failed' | 'not tried';

export type Try = {
  /** What was tried, such as `issuer corp`. */
  readonly what: string;
  readonly state: TryState;
  /** What was found, or why nothing was. */
  readonly cause: string;
  /** What to do about it. */
  readonly remedy?: string | undefined;
};

const STATE_WIDTH = 'not tried'.length;

/** `state what: cause; remedy`: a line for each, those that need somebody first. */
export function renderTries(tries: readonly Try[]): string {
  return sortTries(tries)
    .map(({ what, state, cause, remedy }) => {
      const text = `${what}: ${cause}${remedy === undefined ? '' : `; ${remedy}`}`;
      return `${state.padEnd(STATE_WIDTH)} ${escapeForTerminal(text)}\n`;
    })
    .join('');
}

const ORDER: readonly TryState[] = ['failed', 'warning', 'not tried', 'ok'];

function sortTries(tries: readonly Try[]): readonly Try[] {
  return ORDER.flatMap((state) => tries.filter((one) => one.state === state));
}

/** `3 ok, 1 failed`. */
export function countTries(tries: readonly Try[]): string {
  const counts = ORDER.map((state) => [tries.filter((one) => one.state === state).length, state] as const);
  return counts.flatMap(([count, state]) => (count === 0 ? [] : [`${count} ${state}`])).join(', ');
}

const SEVERITIES: { readonly [state in Exclude<TryState, 'ok'>]: Severity } = {
  failed: 'error',
  warning: 'warning',
  'not tried': 'note',
};

/** The tries that did not end well, as diagnostics of the gateway file. */
export function triesAsDiagnostics(tries: readonly Try[], file: string): readonly Diagnostic[] {
  return sortTries(tries).flatMap(({ what, state, cause, remedy }): Diagnostic[] => {
    if (state === 'ok') return [];
    const message = escapeForTerminal(`${what}: ${cause}${remedy === undefined ? '' : `; ${remedy}`}`);
    return [{ file, line: 1, column: 1, severity: SEVERITIES[state], rule: 'online', message }];
  });
}

/** A time that another machine stated, and when it was asked and answered by the clock of this one. Milliseconds. */
export type StatedTime = {
  readonly statedMs: number;
  /** How exact it is: a `Date` header counts seconds. */
  readonly resolutionMs: number;
  readonly askedMs: number;
  readonly answeredMs: number;
};

/** More is a warning: tokens are valid from their first second on, and clocks that are kept differ by much less. */
const MAX_SKEW_MS = 5_000;

/**
 * Whether the clock of another machine agrees with this one. The time of the request itself is not counted as a
 * difference, because the answer may have been made at any moment of it.
 */
export function checkClock(what: string, stated: StatedTime | undefined): Try {
  const name = `clock of ${what}`;
  if (stated === undefined) return { what: name, state: 'not tried', cause: 'it stated no time, or did not answer' };
  const skewMs = skewOf(stated);
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return { what: name, state: 'ok', cause: 'agrees with this machine' };
  const by = durationText(Math.round(Math.abs(skewMs) / 1000) * 1000);
  return {
    ...{ what: name, state: 'warning', cause: `is ${by} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine` },
    remedy: 'keep both clocks by NTP: tokens, proofs and leases are checked by the time',
  };
}

function skewOf({ statedMs, resolutionMs, askedMs, answeredMs }: StatedTime): number {
  if (statedMs > answeredMs) return statedMs - answeredMs;
  const latestMs = statedMs + resolutionMs;
  return latestMs < askedMs ? latestMs - askedMs : 0;
}

const SOON_MS = 14 * 24 * 60 * 60 * 1000;

/** Whether a certificate is valid for a while; `missingHost`: a host that it should name and does not. */
export function checkCertificate(
  what: string,
  { expiresAtMs, missingHost }: { readonly expiresAtMs: number; readonly missingHost?: string | undefined },
  nowMs: number,
): Try {
  const name = `certificate of ${what}`;
  const at = new Date(expiresAtMs).toISOString().slice(0, 10);
  if (expiresAtMs <= nowMs) return { what: name, state: 'failed', cause: `expired on ${at}`, remedy: 'replace it' };
  const isSoon = expiresAtMs - nowMs < SOON_MS;
  if (missingHost !== undefined)
    return {
      ...{ what: name, state: 'warning' },
      cause: `does not name ${missingHost}, the host of publicUrl${isSoon ? `, and expires on ${at}` : ''}`,
      remedy:
        'clients that connect directly will refuse it; behind a proxy that ends TLS it only has to suit the proxy',
    };
  if (isSoon) return { what: name, state: 'warning', cause: `expires on ${at}`, remedy: 'renew it' };
  return { what: name, state: 'ok', cause: `is valid until ${at}` };
}

const MAX_NAMED = 8;

/** Whether an upstream offers what its lock file has; drift is named. */
export function checkPins(
  upstream: string,
  found: { readonly differences: readonly ItemDifference[]; readonly pending: number; readonly firstUse: number },
): Try {
  const what = `pins of ${upstream}`;
  const drift = found.differences.filter((one) => !isInformational(one));
  if (drift.length > 0) {
    const named = drift.map(({ kind, name, changes }) => `${kind} ${name} (${changes.join(', ')})`);
    return {
      ...{ what, state: 'failed', cause: `${countOf(drift.length, 'difference')}: ${firstOf(named, MAX_NAMED)}` },
      remedy: `look at it with: sallyport pin diff ${upstream}`,
    };
  }
  const open = [
    ...(found.pending > 0 ? [`${found.pending} pending approval`] : []),
    ...(found.firstUse > 0 ? [`${found.firstUse} not reviewed (trust on first use)`] : []),
  ];
  return { what, state: 'ok', cause: open.length === 0 ? 'as pinned' : `no drift, ${open.join(', ')}` };
}

/** What helps, by what a failure says of itself; the first row that matches. `AT` stands for the key of the configuration. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /CERT|SELF_SIGNED|ALTNAME|UNABLE_TO_|EPROTO|_SSL_/,
    'let it be verified: name its authority (tls.ca of an upstream, NODE_EXTRA_CA_CERTS else), or correct the host name',
  ],
  [/ENOTFOUND|EAI_AGAIN/, 'correct the host name under AT, or the DNS of this machine'],
  [
    /network setting does not allow|does not resolve to/,
    'correct the host under AT, or set its "network" to where it is',
  ],
  [/names another issuer/, 'write AT.issuer exactly as the metadata names it'],
  [
    /refused with/,
    'correct the client id and its secret or key under AT, and what the authorization server lets this client ask for',
  ],
  [/status 40[13]|credential/, 'correct the credentials under AT'],
  [/redirect/, 'write the URL that it leads to, if that is the right one'],
  [/in time|ETIMEDOUT/, 'see whether it is overloaded, or whether a firewall or network policy drops what is sent'],
  [
    /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ECONNRESET|reached/,
    'start it, or open the way to it (port, firewall, network policy)',
  ],
];

/** What to do about a failure; `at`: the key of the configuration that it belongs to. */
export function remedyFor(cause: string, at: string): string {
  const found = REMEDIES.find(([pattern]) => pattern.test(cause));
  return (found?.[1] ?? 'correct what is written under AT').replaceAll('AT', at);
}
