// What clients that people use, and the parsers of upstreams, must find: that nothing is read twice in
// two ways, and that no byte of a body depends on how it was cut.

import type { Requirement } from './requirement.js';

export const clientRequirements: readonly Requirement[] = [
  {
    id: 'K-01',
    source: 'RFC 8259 §4; CVE-2026-27896; docs/reference/attacks.md cases 17, 20 and 21',
    behaviour:
      'What was decided of a body is what each parser of an upstream reads, or it is refused.',
  },
  {
    id: 'K-02',
    source: 'CVE-2026-27896; MCP schema',
    behaviour:
      'A member that is a defined one but for its case is refused in _meta, references, arguments to complete and results.',
  },
  {
    id: 'K-03',
    source: 'docs/reference/clients.md',
    behaviour: 'A client that lists, calls or reads what it must not is found, whatever its SDK.',
  },
  {
    id: 'X-71',
    source: 'docs/reference/attacks.md case 71',
    behaviour: 'However a body is cut into pieces, its outcome is that of the whole.',
  },
];
