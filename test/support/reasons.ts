// The reasons of refusals, for tests that go through all of them.

import { type Reason, REASONS as TABLE } from '../../src/policy/reasons.js';

export type { Reason };

export const REASONS = Object.keys(TABLE) as readonly Reason[];
