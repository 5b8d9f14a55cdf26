// Whose a resource is. URIs have no prefix, so a member serves one where its rules let this caller see it;
// of several such members, the only one that listed it or whose approved template it fits. Where there are
// several, nobody guesses: another server could answer in the place of the right one.

import type { Admitted } from '../../mcp/admitted.js';
import type { Member } from '../../mcp/merge/prefixes.js';
import { fitsTemplate } from '../../mcp/merge/templates.js';
import type { Target } from '../../mcp/message.js';
import { isListed } from '../../policy/decide.js';
import type { Verified } from './whole.js';

/** The one member that serves what a message names by URI, or why there is not one. */
export function findServing(
  verified: Verified,
  { target, era, apps }: Pick<Admitted, 'target' | 'era' | 'apps'>,
): Member | 'nobody' | 'several' {
  const { whole, principal } = verified;
  const client = { era, apps };
  const seen = whole.endpoint.members.filter((member) => maySee(verified, member, target, client));
  const [only, ...others] = seen;
  if (only === undefined) return 'nobody';
  if (others.length === 0) return only;
  if (target.kind !== 'resource') return 'several';
  const listing = whole.ports.recallResource(
    { endpoint: whole.endpoint.name, principal, uri: target.uri },
    seen.map(({ upstream }) => upstream),
  );
  // What one lists may be what the template of another gives: then both of them may have it.
  const claiming = seen.filter(
    (member) =>
      listing.includes(member.upstream) || hasTemplateFor(verified, member, target.uri, client),
  );
  return onlyOne(claiming) ?? 'several';
}

type Client = Pick<Admitted, 'era' | 'apps'>;

function maySee(
  { whole, principal }: Verified,
  { upstream }: Member,
  target: Target,
  client: Client,
): boolean {
  const view = whole.endpoint.view(upstream);
  if (view === undefined) return false;
  return isListed(view.policies, principal, upstream, target, view.catalogueFor(client));
}

function hasTemplateFor(verified: Verified, member: Member, uri: string, client: Client): boolean {
  const catalogue = verified.whole.endpoint.view(member.upstream)?.catalogueFor(client);
  const templates = catalogue?.names('template') ?? [];
  return templates.some(
    (uriTemplate) =>
      fitsTemplate(uriTemplate, uri) &&
      maySee(verified, member, { kind: 'template', uriTemplate }, client),
  );
}

function onlyOne(members: readonly Member[]): Member | undefined {
  return members.length === 1 ? members[0] : undefined;
}
