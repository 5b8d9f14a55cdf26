// What the system must do, as data: the source of each requirement and the tests that cite it.
// One file a part under requirements/, gathered here; coverage.test.ts proves that none is uncited.

import { appRequirements } from './requirements/apps.js';
import { attackRequirements } from './requirements/attacks.js';
import { authnChangeRequirements } from './requirements/authn-changes.js';
import { boundRequirements } from './requirements/bound.js';
import { channelRequirements } from './requirements/channels.js';
import { clientRequirements } from './requirements/clients.js';
import { configRequirements } from './requirements/config.js';
import { conformanceRequirements } from './requirements/conformance.js';
import { credentialRequirements } from './requirements/credentials.js';
import { demoRequirements } from './requirements/demo.js';
import { e2eRequirements } from './requirements/e2e.js';
import { hardeningRequirements } from './requirements/hardening.js';
import { integrationRequirements } from './requirements/integration.js';
import { legacyRequirements } from './requirements/legacy.js';
import { mergedRequirements } from './requirements/merged.js';
import { observeRequirements } from './requirements/observe.js';
import { performanceRequirements } from './requirements/performance.js';
import { pinRequirements } from './requirements/pins.js';
import { policyRequirements } from './requirements/policy.js';
import { protocolRequirements } from './requirements/protocol.js';
import { questionRequirements } from './requirements/questions.js';
import type { Requirement } from './requirements/requirement.js';
import { revocationRequirements } from './requirements/revocation.js';
import { runtimeRequirements } from './requirements/runtime.js';
import { statelessRequirements } from './requirements/stateless.js';
import { taskRequirements } from './requirements/tasks.js';
import { tokenRequirements } from './requirements/tokens.js';
import { translationRequirements } from './requirements/translation.js';
import { wireRequirements } from './requirements/wire.js';
import { AUTHN_REQUIREMENTS } from './unit/auth/requirements.js';
import { inspectRequirements } from './unit/inspection/requirements.js';
import { mcpRequirements } from './unit/protocol/requirements.js';

export const requirements: readonly Requirement[] = [
  ...AUTHN_REQUIREMENTS,
  ...appRequirements,
  ...attackRequirements,
  ...authnChangeRequirements,
  ...boundRequirements,
  ...clientRequirements,
  ...channelRequirements,
  ...configRequirements,
  ...conformanceRequirements,
  ...credentialRequirements,
  ...demoRequirements,
  ...e2eRequirements,
  ...hardeningRequirements,
  ...inspectRequirements,
  ...mcpRequirements,
  ...integrationRequirements,
  ...mergedRequirements,
  ...legacyRequirements,
  ...observeRequirements,
  ...performanceRequirements,
  ...pinRequirements,
  ...policyRequirements,
  ...protocolRequirements,
  ...questionRequirements,
  ...revocationRequirements,
  ...runtimeRequirements,
  ...taskRequirements,
  ...tokenRequirements,
  ...translationRequirements,
  ...statelessRequirements,
  ...wireRequirements,
];
