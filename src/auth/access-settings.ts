// By which settings a caller is admitted at an upstream or an aggregate, and whether a new version leaves a caller what it
// was admitted to under the one before. No token is verified here.

import type { AggregateSettings, IssuerSettings, Settings } from '../config/settings.js';
import { type Refusal, refuseWith } from '../policy/decision.js';
import type { Principal } from '../policy/principal.js';

/** Where a caller is admitted: at an upstream, at an aggregate, or at the upstream through the aggregate. */
type Place = { readonly upstream: string; readonly aggregate?: { readonly name: string } | undefined };
type LeaseHolder = Place & { readonly principal: Principal };

/**
 * The refusal that ends a lease made under `before` once `next` is in force: its upstream is gone, or its caller might
 * not be admitted as the same principal. Verifies no token and reads no rule, because what may be sent on a stream is
 * checked message by message. Source: docs/reference/start-and-reload.md#what-is-in-progress.
 */
export function checkSettings(holder: LeaseHolder, before: Settings, next: Settings): Refusal | undefined {
  if (accessSettingsOf(holder, next) === undefined) return refuseWith('upstream-unavailable');
  const accessTerms = accessTermsOf(holder, next);
  const isSame = accessTerms !== undefined && accessTerms === accessTermsOf(holder, before);
  return isSame ? undefined : refuseWith('token-issuer');
}

/** What the settings require of this caller's tokens; `undefined` where its issuer is no longer accepted. */
function accessTermsOf(holder: LeaseHolder, settings: Settings): string | undefined {
  const { principal } = holder;
  const access = accessSettingsOf(holder, settings);
  if (access === undefined || access.authentication === 'none') return access?.authentication;
  const { issuers, resource, audiences, binding } = access;
  if (!issuers.includes(principal.issuer)) return undefined;
  const issuer = settings.issuers.get(principal.issuer);
  const isProvedByCertificate = principal.token.boundTo?.certificate !== undefined;
  return JSON.stringify([
    ...[resource, audiences[principal.issuer], binding, issuer && tokenRulesOf(issuer)],
    isProvedByCertificate && settings.listeners.data.tls?.clientCa,
  ]);
}

/** The settings by which callers are admitted there: through an aggregate its own, while the upstream is a backend. */
export function accessSettingsOf(
  { upstream, aggregate }: Place,
  { upstreams, aggregates }: Settings,
): Omit<AggregateSettings, 'backends' | 'scopesSupported'> | undefined {
  if (aggregate === undefined) return upstreams.get(upstream) ?? aggregates.get(upstream);
  const viaAggregate = upstreams.has(upstream) ? aggregates.get(aggregate.name) : undefined;
  return viaAggregate?.backends.some((one) => one.upstream === upstream) ? viaAggregate : undefined;
}

/** How keys are fetched, how introspection is called and how people log in decide nothing about a token. */
function tokenRulesOf({ introspection, ...issuer }: IssuerSettings): unknown {
  const { network: _n, plaintext: _p, keysMaxAgeMs: _k, login: _l, ...rules } = issuer;
  return [rules, introspection !== undefined];
}
