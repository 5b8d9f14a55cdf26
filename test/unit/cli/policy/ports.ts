// The ports of the commands about policies, as process.ts gives them, and the example that they are tried on.

import { fileURLToPath } from 'node:url';
import { supposePrincipal } from '../../../../src/auth/principal.js';
import type { WorkspacePorts } from '../../../../src/cli/policy/workspace.js';
import { DISK_FILES } from '../../../../src/config/files.js';
import { readLocksForPolicies } from '../../../../src/gateway/config-version.js';

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** Three teams and five upstreams. */
export const TEAMS = { config: 'config/examples/three-teams/gateway.yaml' };
/** Its policies, with their tests and lock files, and what a gateway recorded under them. */
export const TEAMS_POLICIES = 'config/examples/three-teams/policies';
export const TEAMS_LOG = 'config/examples/three-teams/example.audit.jsonl';
export const PORTS: WorkspacePorts = {
  files: DISK_FILES,
  loadLocks: readLocksForPolicies,
  supposePrincipal,
};
