// What the system must do, as data: the source of each requirement and the tests that cite it.
// One file a part under requirements/, gathered here; coverage.test.ts proves that none is uncited.

import { demoRequirements } from './requirements/demo.js';
import type { Requirement } from './requirements/requirement.js';

export const requirements: readonly Requirement[] = [...demoRequirements];
