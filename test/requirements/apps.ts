// The MCP Apps extension: what tools show beside a result is reviewed like a definition.

import type { Requirement } from './requirement.js';

const source =
  'docs/contract.md §5 (resources that a definition refers to); MCP Apps extension, SEP-1865';

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
  {
    id: 'APP-05',
    source,
    behaviour:
      'With the setting, hosts that declare the extension and clients that do not are each offered what was pinned as they see it, in both eras and between them.',
  },
  {
    id: 'APP-06',
    source: 'docs/contract.md §4 and §5; MCP Apps extension, capability negotiation',
    behaviour:
      'The declaration leaves in one form, and not at all without the setting, against the rules, or misspelt.',
  },
  {
    id: 'APP-07',
    source: 'docs/contract.md §5',
    behaviour: 'What a server offers to hosts alone is hidden and refused like anything unpinned.',
  },
  {
    id: 'APP-08',
    source: 'docs/contract.md §3 (changes of the configuration)',
    behaviour: 'A session with the declaration is unknown once the setting is off.',
  },
];
