// What decisions, schemas, expressions and limits must do.
import type { Requirement } from './requirement.js';

export const policyRequirements: readonly Requirement[] = [
  {
    id: 'P-01',
    source: 'docs/contract.md §4, law 1',
    behaviour: 'Without a policy, or with an empty one, nothing is listed and nothing callable.',
  },
  {
    id: 'P-02',
    source: 'docs/contract.md §4, law 2',
    behaviour: 'Listed is decided by who and what alone; callable implies listed.',
  },
  {
    id: 'P-03',
    source: 'docs/contract.md §5 and §6',
    behaviour:
      'What is not approved, or drifted, blocked or invalid, is hidden whatever policy says.',
  },
  {
    id: 'P-04',
    source: 'docs/contract.md §4, law 2',
    behaviour:
      'A request is never decided as a list: unknown arguments of a request are empty ones.',
  },
  {
    id: 'P-05',
    source: 'docs/contract.md §4, law 5',
    behaviour:
      'An error in a deny or require rule denies; in an allow rule the rule does not match.',
  },
  {
    id: 'P-06',
    source: 'docs/contract.md §4, law 6',
    behaviour: 'Strings are exact; globs and anchored RE2 patterns only where they may stand.',
  },
  {
    id: 'P-07',
    source: 'docs/contract.md §4, law 6; docs/reference/attacks.md case 85',
    behaviour: 'A resource URI has one spelling: odd spellings match nothing.',
  },
  {
    id: 'P-08',
    source: 'docs/contract.md §6',
    behaviour: 'Missing scopes are named all at once, of the alternative with the fewest missing.',
  },
  {
    id: 'P-09',
    source: 'docs/contract.md §6',
    behaviour: 'Invalid arguments are refused with positions that a model can act on.',
  },
  {
    id: 'P-10',
    source: 'ARCHITECTURE.md, "What a decision reads"',
    behaviour:
      'A member that the pinned schema does not describe decides nothing where a rule reads arguments.',
  },
  {
    id: 'P-11',
    source: 'docs/contract.md §4, law 3',
    behaviour: 'Deny wins over require, require over allow.',
  },
  {
    id: 'P-12',
    source: 'docs/contract.md §4, law 3',
    behaviour: 'Order never matters; each allow rule is a complete alternative.',
  },
  {
    id: 'P-13',
    source: 'docs/contract.md §4, law 3',
    behaviour: 'Of several obligations the strictest hold.',
  },
  {
    id: 'P-14',
    source: 'docs/reference/performance.md rule 4',
    behaviour:
      'Callers who match the same rules have one key, so that a filtered list can be shared.',
  },
  {
    id: 'P-15',
    source: 'docs/contract.md §4, law 7',
    behaviour: 'Annotations are read from the pin only and never loosen a decision.',
  },
  {
    id: 'P-20',
    source: 'docs/contract.md §6',
    behaviour: 'A schema fault names its position and what was expected.',
  },
  {
    id: 'P-21',
    source: 'docs/contract.md §6',
    behaviour: 'A schema fault quotes nothing from the wire.',
  },
  {
    id: 'P-22',
    source: 'ARCHITECTURE.md, "What a decision reads"',
    behaviour: 'Validation changes nothing: no coercion, no defaults.',
  },
  {
    id: 'P-23',
    source: 'docs/reference/attacks.md case 18',
    behaviour: 'Only own members count; the prototype is never asked.',
  },
  {
    id: 'P-24',
    source: 'MCP 2025-11-25, JSON Schema usage',
    behaviour: 'Two dialects of JSON Schema are read; others make a definition invalid.',
  },
  {
    id: 'P-25',
    source: 'MCP 2025-11-25, JSON Schema usage',
    behaviour: 'Unknown keywords and formats are ignored.',
  },
  {
    id: 'P-26',
    source: 'docs/reference/attacks.md case 63; RE2 syntax',
    behaviour: 'Patterns of different schemas are kept apart and run in linear time.',
  },
  {
    id: 'P-27',
    source: 'docs/reference/attacks.md case 63',
    behaviour: 'Unique items are compared in one pass.',
  },
  {
    id: 'P-28',
    source: 'docs/reference/attacks.md case 63; docs/reference/protocol.md §6 row 51',
    behaviour: 'A reference to outside is refused and never fetched.',
  },
  {
    id: 'P-29',
    source: 'docs/reference/attacks.md case 63; docs/reference/protocol.md §6 row 52',
    behaviour: 'Compiling a hostile schema is bounded.',
  },
  {
    id: 'P-30',
    source: 'docs/reference/attacks.md case 63',
    behaviour: 'Checking a value is bounded.',
  },
  {
    id: 'P-31',
    source: 'ARCHITECTURE.md, "What a decision reads"',
    behaviour: 'An undescribed member is found at any depth.',
  },
  {
    id: 'P-40',
    source: 'docs/contract.md §4',
    behaviour: 'Expressions see args, uri, principal and tool, and nothing else.',
  },
  {
    id: 'P-41',
    source: 'docs/contract.md §4, law 5',
    behaviour: 'An error of an expression is a value, not an exception.',
  },
  {
    id: 'P-42',
    source: 'docs/reference/attacks.md case 18',
    behaviour: 'No value from the wire confuses the types of an expression.',
  },
  {
    id: 'P-43',
    source: 'docs/contract.md §4, law 4',
    behaviour: 'Unknown names in an expression are found when it is compiled.',
  },
  {
    id: 'P-44',
    source: 'docs/contract.md §4, law 5',
    behaviour: 'The cost of an expression is bounded before it runs.',
  },
  {
    id: 'P-45',
    source: 'ARCHITECTURE.md, "What a decision reads"',
    behaviour: 'What an expression reads is known.',
  },
  {
    id: 'P-50',
    source: 'docs/contract.md §4, law 4',
    behaviour: 'Unknown upstreams, issuers and profiles are errors with a suggestion.',
  },
  {
    id: 'P-51',
    source: 'docs/contract.md §4',
    behaviour: 'With several issuers, a who that names people names the issuer.',
  },
  { id: 'P-52', source: 'docs/contract.md §4, law 4', behaviour: 'Empty lists are errors.' },
  {
    id: 'P-53',
    source: 'docs/contract.md §4, law 4',
    behaviour: 'What does not compile, or can never hold, is an error.',
  },
  {
    id: 'P-54',
    source: 'docs/contract.md §1',
    behaviour: 'All mistakes of all files are reported at once.',
  },
  {
    id: 'P-55',
    source: 'docs/contract.md §4, law 4',
    behaviour:
      'An exact name that no strict upstream pins is an error, a glob without match a warning.',
  },
  {
    id: 'P-56',
    source: 'docs/contract.md §4, law 4',
    behaviour: 'An argument path that the pinned schema lacks is an error.',
  },
  {
    id: 'P-57',
    source: 'CEL language definition',
    behaviour: 'A member that is read without has() is a warning.',
  },
  {
    id: 'P-60',
    source: 'docs/contract.md §6',
    behaviour: 'Limits count per caller and refuse with a time to come back.',
  },
  {
    id: 'P-61',
    source: 'docs/contract.md §10',
    behaviour: 'A store that cannot be asked refuses.',
  },
  {
    id: 'P-62',
    source: 'docs/contract.md §4',
    behaviour: 'Callers of different issuers are counted apart.',
  },
  {
    id: 'P-63',
    source: 'docs/contract.md §4, law 3',
    behaviour: 'What an answer owes is gathered: bytes, profiles.',
  },
  {
    id: 'P-64',
    source: 'docs/contract.md §4',
    behaviour: 'Never more than the count passes in any window.',
  },
  {
    id: 'P-65',
    source: 'docs/reference/performance.md rule 9',
    behaviour: 'The table of limits is bounded and forgets idle callers.',
  },
  {
    id: 'P-66',
    source: 'ARCHITECTURE.md, "Types hold the order"',
    behaviour: 'The wrong order of stations does not compile.',
  },
];
