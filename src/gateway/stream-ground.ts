// Whether a stream that was opened under one configuration may stay open under the next: only where its
// caller would be let in as the same principal, by what the settings say of tokens. It verifies nothing and
// looks at no rule: what may be seen on a stream is judged message by message.
// Contract §3 (reload: a stream whose principal, token or upstream is gone is closed).

import type { Settings } from '../config/settings.js';
import type { OpenStream } from '../exchange-ports.js';

type Holder = Pick<OpenStream, 'upstream' | 'principal'>;

/** True where what let the holder of a stream in stands in `next` as it stood in `before`. */
export function mayStay(holder: Holder, before: Settings, next: Settings): boolean {
  const ground = groundOf(holder, next);
  return ground !== undefined && ground === groundOf(holder, before);
}

/** What the settings say of the tokens of this caller here; `undefined` where nobody vouches for it. */
function groundOf({ upstream, principal }: Holder, settings: Settings): string | undefined {
  const found = settings.upstreams.get(upstream);
  if (found === undefined) return undefined;
  const { authentication, issuers, resource, audiences, binding } = found;
  if (authentication === 'none') return authentication;
  const issuer = issuers.includes(principal.issuer)
    ? settings.issuers.get(principal.issuer)
    : undefined;
  if (issuer === undefined) return undefined;
  // How its keys are had, or how it is asked, changes no verdict.
  const { network: _network, keysMaxAgeMs: _keysMaxAgeMs, introspection, ...rules } = issuer;
  const isProvedByCertificate = principal.token.boundTo?.certificate !== undefined;
  return JSON.stringify([
    ...[resource, audiences[issuer.name], binding, rules, introspection !== undefined],
    isProvedByCertificate && settings.listeners.data.tls?.clientCa,
  ]);
}
