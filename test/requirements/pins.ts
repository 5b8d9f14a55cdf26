// What pins, listings and their commands must do.
import type { Requirement } from './requirement.js';

export const pinRequirements: readonly Requirement[] = [
  {
    id: 'L-01',
    source: 'docs/reference/attacks.md case 66',
    behaviour:
      'Definitions have one canonical form (RFC 8785): key order and spelling play no part.',
  },
  {
    id: 'L-02',
    source: 'RFC 8785 §3.1 and §3.2.2.2',
    behaviour:
      'What the canonical form would get wrong has none: lone surrogates, depth, inexact numbers.',
  },
  {
    id: 'L-03',
    source: 'docs/contract.md §5',
    behaviour: 'Digests are SHA-256 under a domain of their kind.',
  },
  {
    id: 'L-04',
    source: 'docs/reference/attacks.md case 54',
    behaviour: 'Every member of a definition counts.',
  },
  {
    id: 'L-05',
    source: 'docs/contract.md §5',
    behaviour: 'A lock file that is written and read is the same.',
  },
  {
    id: 'L-06',
    source: 'docs/contract.md §5',
    behaviour: 'Characters that cannot be seen are written as escapes.',
  },
  {
    id: 'L-07',
    source: 'docs/contract.md §5',
    behaviour: 'The digest is recomputed from the definition at load.',
  },
  {
    id: 'L-08',
    source: 'docs/contract.md §5',
    behaviour: 'All mistakes of a lock file are reported with place and suggestion.',
  },
  {
    id: 'L-09',
    source: 'docs/contract.md §5',
    behaviour: 'The name of a definition equals its key.',
  },
  {
    id: 'L-10',
    source: 'docs/reference/attacks.md case 65',
    behaviour: 'A corrupt or cut-off lock file is refused; no lock file means no pins.',
  },
  {
    id: 'L-11',
    source: 'docs/contract.md §5',
    behaviour: 'Instructions may stand with digest and text alone.',
  },
  {
    id: 'L-12',
    source: 'docs/contract.md §5',
    behaviour: 'The difference of two definitions is classified.',
  },
  { id: 'L-13', source: 'docs/contract.md §5', behaviour: 'A difference shows as lines.' },
  {
    id: 'L-14',
    source: 'docs/reference/attacks.md case 61',
    behaviour: 'What is shown moves no cursor and hides nothing.',
  },
  {
    id: 'L-20',
    source: 'docs/contract.md §5',
    behaviour: 'The gateway lists every page of every kind in every era.',
  },
  {
    id: 'L-21',
    source: 'docs/contract.md §5',
    behaviour:
      'To an upstream that it lists, the gateway declares what a policy can let clients declare, and answers no question.',
  },
  {
    id: 'L-22',
    source: 'docs/contract.md §5',
    behaviour: 'An upstream that speaks one era is no failure.',
  },
  { id: 'L-23', source: 'MCP transports', behaviour: 'Listings may come as event streams.' },
  {
    id: 'L-24',
    source: 'MCP session management',
    behaviour: 'The session of the listing is kept, and renewed when it is lost.',
  },
  {
    id: 'L-25',
    source: 'docs/contract.md §5',
    behaviour: 'Callers at the same time share one listing.',
  },
  {
    id: 'L-26',
    source: 'docs/contract.md §5',
    behaviour: 'A failed listing lets what was seen age, and is not repeated at once.',
  },
  {
    id: 'L-27',
    source: 'docs/contract.md §5',
    behaviour: 'An era that is no longer spoken is dropped.',
  },
  {
    id: 'L-28',
    source: 'docs/reference/attacks.md case 57',
    behaviour: 'Malformed pages and loops of cursors end a listing.',
  },
  {
    id: 'L-29',
    source: 'docs/reference/attacks.md case 57',
    behaviour: 'Pages, items and bytes of a listing are capped.',
  },
  {
    id: 'L-30',
    source: 'docs/reference/attacks.md cases 17 and 26',
    behaviour: 'Answers to a listing are read strictly.',
  },
  { id: 'L-31', source: 'docs/contract.md §3', behaviour: 'A listing has a deadline.' },
  {
    id: 'L-32',
    source: 'docs/contract.md §5',
    behaviour: 'The timer lists within the maximum age and stops at close.',
  },
  {
    id: 'L-33',
    source: 'docs/reference/attacks.md case 64',
    behaviour: 'A storm of list_changed makes one listing.',
  },
  {
    id: 'L-34',
    source: 'docs/contract.md §5',
    behaviour: 'Age counts from the first request of a listing.',
  },
  {
    id: 'L-35',
    source: 'docs/contract.md §5',
    behaviour: 'Prompts, templates and instructions are seen too.',
  },
  {
    id: 'L-36',
    source: 'docs/reference/attacks.md case 21',
    behaviour: 'A number that changes through a double makes an item differ.',
  },
  {
    id: 'L-37',
    source: 'docs/contract.md §1',
    behaviour: 'The command line lists once and leaves nothing open.',
  },
  {
    id: 'L-38',
    source: 'docs/contract.md §5',
    behaviour: 'Reference servers of both eras are listed.',
  },
  {
    id: 'L-39',
    source: 'docs/reference/attacks.md case 14',
    behaviour: 'A listing carries its own credential only, and follows no redirect.',
  },
  {
    id: 'L-40',
    source: 'docs/reference/attacks.md case 65',
    behaviour: 'Approved means pinned and last seen exactly so.',
  },
  {
    id: 'L-41',
    source: 'docs/contract.md §5',
    behaviour: 'Pending, blocked and unknown are not approved.',
  },
  {
    id: 'L-42',
    source: 'docs/reference/attacks.md case 54',
    behaviour: 'A definition that differs is changed for everyone.',
  },
  {
    id: 'L-43',
    source: 'docs/reference/attacks.md case 59',
    behaviour: 'A renamed definition is a new one.',
  },
  {
    id: 'L-44',
    source: 'docs/reference/attacks.md case 57',
    behaviour: 'A name that stands twice in a listing is invalid.',
  },
  { id: 'L-45', source: 'docs/reference/attacks.md case 60', behaviour: 'Names are exact.' },
  {
    id: 'L-46',
    source: 'docs/reference/attacks.md cases 34 and 63',
    behaviour: 'A definition with an unusable schema is invalid.',
  },
  {
    id: 'L-47',
    source: 'docs/reference/performance.md rule 12',
    behaviour: 'Schemas are compiled when first needed, once a digest.',
  },
  {
    id: 'L-48',
    source: 'docs/contract.md §5',
    behaviour: 'Each era may offer its own approved variant.',
  },
  {
    id: 'L-49',
    source: 'docs/reference/attacks.md case 58',
    behaviour: 'A page that a client asked for changes the verdict for all.',
  },
  {
    id: 'L-50',
    source: 'docs/reference/performance.md rule 9',
    behaviour: 'What is noted of pages is bounded.',
  },
  { id: 'L-51', source: 'docs/contract.md §5', behaviour: 'A drift may stop the whole upstream.' },
  {
    id: 'L-52',
    source: 'docs/contract.md §5',
    behaviour: 'Instructions that differ are not the approved ones.',
  },
  {
    id: 'L-53',
    source: 'docs/contract.md §5',
    behaviour: 'Without pinning nothing is judged by pins.',
  },
  {
    id: 'L-60',
    source: 'docs/contract.md §5',
    behaviour: 'What is fetched is pending until approved.',
  },
  {
    id: 'L-61',
    source: 'docs/contract.md §5',
    behaviour: 'A changed definition stands beside the approved one.',
  },
  {
    id: 'L-62',
    source: 'docs/reference/attacks.md case 57',
    behaviour: 'What cannot be pinned is told.',
  },
  {
    id: 'L-63',
    source: 'docs/contract.md §5',
    behaviour: 'An approval names the digest; one that moved on is refused.',
  },
  { id: 'L-64', source: 'docs/contract.md §5', behaviour: 'A blocked definition stays blocked.' },
  { id: 'L-65', source: 'docs/contract.md §5', behaviour: 'A difference is reported once.' },
  { id: 'L-66', source: 'docs/contract.md §5', behaviour: 'What counts as drift is said.' },
  { id: 'L-70', source: 'docs/contract.md §1', behaviour: 'pin fetch writes lock files.' },
  {
    id: 'L-71',
    source: 'docs/contract.md §1',
    behaviour: 'pin diff and pin verify show and check drift.',
  },
  { id: 'L-72', source: 'docs/contract.md §1', behaviour: 'pin approve and pin block decide.' },
];
