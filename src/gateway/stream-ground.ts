// Whether a stream that was opened under one configuration may stay open under the next: only where it still
// goes where it went, and its caller would be let in as the same principal. It verifies nothing and looks at
// no rule: what may be seen on a stream is judged message by message.
// Contract §3 (reload: a stream whose principal, token or upstream is gone is closed).

import type { AggregateSettings, IssuerSettings, Settings } from '../config/settings.js';
import type { OpenStream } from '../exchange-ports.js';

type Holder = Pick<OpenStream, 'upstream' | 'aggregate' | 'principal'>;

/** True where what let the holder of a stream in stands in `next` as it stood in `before`. */
export function isAccessUnchanged(holder: Holder, before: Settings, next: Settings): boolean {
  const terms = accessTermsOf(holder, next);
  return terms !== undefined && terms === accessTermsOf(holder, before);
}

/** What the settings say of this caller's tokens here; `undefined` where nobody vouches for them. */
function accessTermsOf(holder: Holder, settings: Settings): string | undefined {
  const { principal } = holder;
  const through = wayOf(holder, settings);
  if (through === undefined || through.authentication === 'none') return through?.authentication;
  const { issuers, resource, audiences, binding } = through;
  if (!issuers.includes(principal.issuer)) return undefined;
  const issuer = settings.issuers.get(principal.issuer);
  const isProvedByCertificate = principal.token.boundTo?.certificate !== undefined;
  return JSON.stringify([
    ...[resource, audiences[principal.issuer], binding, issuer && rulesOf(issuer)],
    isProvedByCertificate && settings.listeners.data.tls?.clientCa,
  ]);
}

/** The upstream, or the endpoint of several of which it is still a member. */
function wayOf(
  { upstream, aggregate }: Holder,
  { upstreams, aggregates }: Settings,
): Omit<AggregateSettings, 'backends' | 'scopesSupported'> | undefined {
  const found = upstreams.get(upstream);
  if (found === undefined || aggregate === undefined) return found;
  const through = aggregates.get(aggregate);
  return through?.backends.some((one) => one.upstream === upstream) ? through : undefined;
}

/** What decides about tokens: how keys are had, or how the issuer is asked, changes no verdict. */
function rulesOf({ introspection, ...issuer }: IssuerSettings): unknown {
  const { network: _network, keysMaxAgeMs: _keysMaxAgeMs, ...rules } = issuer;
  return [rules, introspection !== undefined];
}
