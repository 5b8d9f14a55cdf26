// Turns an endpoint of a gateway file that is known to be right into settings, and whoever vouches for callers
// of a resource, which upstreams have in common with endpoints. Judges nothing.

import type { AggregateFile, GatewayFile, UpstreamFile } from './gateway-file.js';
import { strictestBinding } from './member-binding.js';
import { defaultPrefix } from './prefixes.js';
import type { AggregateSettings, UpstreamSettings } from './settings.js';

/** Who vouches for callers of a resource, and for which audience. */
export function compileVouchers(
  file: Pick<UpstreamFile, 'issuers' | 'audiences'>,
  resource: string,
): Pick<UpstreamSettings, 'issuers' | 'audiences'> {
  const issuers = [...(file.issuers ?? [])];
  const audiences: Record<string, readonly string[]> = Object.create(null);
  for (const issuer of issuers) {
    const mapped = Object.hasOwn(file.audiences, issuer) ? file.audiences[issuer] : undefined;
    audiences[issuer] = mapped === undefined ? [resource] : [...mapped];
  }
  return { issuers, audiences };
}

/** The settings of an endpoint; what its members have in common was checked before. */
export function compileAggregate(
  name: string,
  file: AggregateFile,
  root: GatewayFile,
): AggregateSettings {
  const path = file.path ?? `/${name}`;
  const resource = root.publicUrl.replace(/\/$/, '') + path;
  const backends = Object.entries(file.upstreams).map(([upstream, { prefix }]) => ({
    upstream,
    prefix: prefix ?? defaultPrefix(upstream),
  }));
  const upstreams = backends.flatMap(({ upstream }) => root.upstreams[upstream] ?? []);
  const binding = strictestBinding(upstreams.map((upstream) => upstream.binding));
  if (binding === undefined) throw new Error('an endpoint was not checked before use');
  const scopes = upstreams.flatMap((upstream) => upstream.scopesSupported);
  return {
    name,
    path,
    resource,
    authentication: file.authentication,
    ...compileVouchers(file, resource),
    binding,
    scopesSupported: [...new Set(scopes)],
    backends,
  };
}
