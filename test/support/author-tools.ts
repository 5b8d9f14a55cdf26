// What the author's tools decide from the files of a gateway: the workspace and the decision on which the commands `test`
// and `explain` are built.

import { supposePrincipal } from '../../src/auth/principal.js';
import { openWorkspace, principalOf } from '../../src/cli/policy/workspace.js';
import { DISK_FILES } from '../../src/config/files.js';
import { readLocksForPolicies } from '../../src/gateway/config-version.js';
import { decideRequest } from '../../src/policy/decide.js';
import { REASONS, type Reason } from '../../src/policy/reasons.js';
import type { Target } from '../../src/protocol/jsonrpc.js';
import type { JsonObject } from './json.js';

export type Asked = {
  readonly upstream: string;
  readonly target: Exclude<Target, { readonly kind: 'server-request' | 'task' }>;
  readonly args: JsonObject;
};

/** As it shows on the wire: allowed, hidden, a challenge for more scopes, or the reason. */
export type Predicted = 'allowed' | 'hidden' | 'challenge' | Reason;

type Supposed = Parameters<typeof principalOf>[0];

const PORTS = { files: DISK_FILES, loadLocks: readLocksForPolicies, supposePrincipal };
const SILENT = { stdout: () => undefined, stderr: () => undefined, env: {}, cwd: '/srv', isTty: false };

/** Reads the files once, for any callers and requests. */
export async function openAuthorTools(config: string): Promise<(from: Supposed, asked: Asked) => Predicted> {
  const workspace = await openWorkspace({ config }, SILENT, PORTS);
  return (from, { upstream, target, args }) => {
    const principal = principalOf(from, workspace, PORTS);
    const catalog = workspace.catalogOf(upstream);
    const decision = decideRequest(workspace.policies, { principal, upstream, target, catalog, args });
    if (decision.verdict === 'allow') return 'allowed';
    const { reason, listed } = decision;
    const { as } = listed ? REASONS[reason].visible : REASONS[reason].hidden;
    if (as === 'not-found') return 'hidden';
    return as === 'challenge' ? 'challenge' : reason;
  };
}
