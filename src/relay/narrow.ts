// What of a subscription a caller may listen to (2026): notices about a list where they are shown something
// of its kind, notices about a resource where they may read it. The rest is taken out of the request.
// Source: MCP 2026-07-28, subscriptions; contract §4, law 2.

import type { View } from '../exchange-ports.js';
import { amendAdmitted } from '../mcp/admit.js';
import type { Admitted } from '../mcp/admitted.js';
import { spanOf } from '../mcp/json.js';
import {
  type ListenFilter,
  type ListFilter,
  readFilter,
  saysExactly,
  writeFilter,
} from '../mcp/subscriptions.js';
import { decideRequest } from '../policy/decide.js';
import type { Principal } from '../policy/principal.js';
import { addFinding } from '../policy/record.js';
import { type ListedKind, listsKind } from '../policy/visible-kinds.js';
import type { Call } from './call.js';
import { paramsOf } from './retry.js';

const KINDS: { readonly [filter in ListFilter]: ListedKind } = {
  toolsListChanged: 'tool',
  promptsListChanged: 'prompt',
  resourcesListChanged: 'resource',
};

/** The message, asking for no more than its caller may listen to. */
export function narrowListen(call: Call, principal: Principal, admitted: Admitted): Admitted {
  const requested = paramsOf(admitted)['notifications'];
  const allowed = allowedFilter(call.view, principal, readFilter(requested) ?? NOTHING);
  if (saysExactly(requested, allowed)) return admitted;
  const span = spanOf(admitted.text, ['params', 'notifications']);
  if (span === undefined) throw new Error('an admitted subscription has notifications');
  addFinding(call.record.findings, {
    detector: 'subscription',
    direction: 'to-upstream',
    path: '/params/notifications',
    count: 1,
    action: 'strip',
  });
  return amendAdmitted(admitted, [{ ...span, text: JSON.stringify(writeFilter(allowed)) }]);
}

const NOTHING: ListenFilter = { lists: [], uris: [] };

/** What of a filter one version of the rules allows this caller. */
export function allowedFilter(
  view: View,
  principal: Principal,
  { lists, uris }: ListenFilter,
): ListenFilter {
  const { policies } = view;
  const catalogue = view.catalogueFor('2026');
  const { upstream } = catalogue;
  return {
    lists: lists.filter((filter) => listsKind(policies, principal, catalogue, KINDS[filter])),
    uris: uris.filter((uri) => {
      const target = { kind: 'resource', uri } as const;
      const question = { principal, upstream, target, args: 'unknown', catalogue } as const;
      return decideRequest(policies, question).verdict === 'allow';
    }),
  };
}
