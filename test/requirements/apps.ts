// The MCP Apps extension: what tools show beside a result is reviewed like a definition.

import type { Requirement } from './requirement.js';

const source = 'contract §5 (resources that a definition refers to); MCP Apps extension, SEP-1865';

export const appRequirements: readonly Requirement[] = [
  {
    id: 'APP-01',
    source,
    behaviour: 'The content of a ui:// resource that a tool names is pinned.',
  },
  { id: 'APP-02', source, behaviour: 'Content that was approved passes to the byte in every era.' },
  {
    id: 'APP-03',
    source,
    behaviour: 'A ui:// resource that nobody approved, in whatever spelling, is unknown.',
  },
  {
    id: 'APP-04',
    source,
    behaviour: 'Content that changed reaches nobody, is recorded as drift, and is refused unasked.',
  },
];
