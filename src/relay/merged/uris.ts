// Whose a resource is. URIs have no prefix, so a member serves one where its rules let this caller see it;
// of several such members, the only one that listed it or whose approved template it fits. Where there are
// several, nobody guesses: another server could answer in the place of the right one.

import type { Admitted } from '../../mcp/admitted.js';
import type { Backend } from '../../mcp/merge/prefixes.js';
import { fitsTemplate } from '../../mcp/merge/templates.js';
import type { Target } from '../../mcp/message.js';
import { isListed } from '../../policy/decide.js';
import type { Verified } from './whole.js';

/** The one member that serves what a message names by URI, or why there is not one. */
export function findServing(
  verified: Verified,
  { target, era, apps }: Pick<Admitted, 'target' | 'era' | 'apps'>,
): Backend | 'nobody' | 'several' {
  const { context, principal } = verified;
  const client = { era, apps };
  const seen = context.aggregate.backends.filter((backend) =>
    maySee(verified, backend, target, client),
  );
  const [only, ...others] = seen;
  if (only === undefined) return 'nobody';
  if (others.length === 0) return only;
  if (target.kind !== 'resource') return 'several';
  const listing = context.ports.recallResource(
    { aggregate: context.aggregate.name, principal, uri: target.uri },
    seen.map(({ upstream }) => upstream),
  );
  // What one lists may be what the template of another gives: then both of them may have it.
  const claiming = seen.filter(
    (backend) =>
      listing.includes(backend.upstream) || hasTemplateFor(verified, backend, target.uri, client),
  );
  return onlyOne(claiming) ?? 'several';
}

type Client = Pick<Admitted, 'era' | 'apps'>;

function maySee(
  { context, principal }: Verified,
  { upstream }: Backend,
  target: Target,
  client: Client,
): boolean {
  const snapshot = context.aggregate.snapshot(upstream);
  if (snapshot === undefined) return false;
  return isListed(snapshot.policies, principal, upstream, target, snapshot.catalogueFor(client));
}

function hasTemplateFor(
  verified: Verified,
  backend: Backend,
  uri: string,
  client: Client,
): boolean {
  const catalogue = verified.context.aggregate.snapshot(backend.upstream)?.catalogueFor(client);
  const templates = catalogue?.names('template') ?? [];
  return templates.some(
    (uriTemplate) =>
      fitsTemplate(uriTemplate, uri) &&
      maySee(verified, backend, { kind: 'template', uriTemplate }, client),
  );
}

function onlyOne(backends: readonly Backend[]): Backend | undefined {
  return backends.length === 1 ? backends[0] : undefined;
}
