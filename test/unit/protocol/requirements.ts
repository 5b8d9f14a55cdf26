// What src/mcp must do, with sources.

import type { Requirement } from '../../requirements/requirement.js';

export const mcpRequirements: readonly Requirement[] = [
  {
    id: 'M-01',
    source: 'docs/reference/protocol.md §2.2 rule 5; docs/reference/attacks.md case 20',
    behaviour:
      'Bodies that are not UTF-8, begin with a byte order mark, hold a lone surrogate or are not JSON are 400 with -32700.',
  },
  {
    id: 'M-02',
    source:
      'docs/reference/protocol.md §2.2 rule 5; docs/reference/attacks.md case 17; CVE-2026-27896',
    behaviour:
      'Two members of one object whose names are equal after simple case folding, at any depth, are 400.',
  },
  {
    id: 'M-03',
    source: 'docs/reference/attacks.md case 19',
    behaviour:
      'Nesting past the cap is refused in linear time without recursion; many members are read in linear time.',
  },
  {
    id: 'M-04',
    source: 'docs/reference/attacks.md cases 18 and 17',
    behaviour:
      'A member called __proto__, or with NUL in its name, is refused, and no prototype changes.',
  },
  {
    id: 'M-05',
    source: 'ARCHITECTURE.md, "Bytes"',
    behaviour:
      'Spans and edits change exactly the place they name, and leave all other bytes as they came.',
  },
  {
    id: 'M-06',
    source: 'docs/reference/attacks.md case 21; RFC 7493 §2.2',
    behaviour:
      'A number whose decimal value changes in a double is found, and refused in ids and arguments.',
  },
  {
    id: 'M-07',
    source: 'JSON-RPC 2.0 §4 and §5; docs/reference/attacks.md case 23',
    behaviour:
      'An envelope is exactly one of four shapes, without unknown members, with ids that are strings or safe integers.',
  },
  {
    id: 'M-08',
    source: 'docs/reference/protocol.md §6 row 31; docs/reference/attacks.md case 22',
    behaviour: 'An array is refused with 400 and -32600, whatever it holds.',
  },
  {
    id: 'M-09',
    source: 'docs/reference/protocol.md §4.2',
    behaviour:
      'Only the methods of the one table are carried, matched exactly, by era and direction.',
  },
  {
    id: 'M-10',
    source: 'docs/reference/protocol.md §6 row 5; docs/reference/attacks.md case 33',
    behaviour: 'In 2026 the version in header and body is one; what is admitted keeps its bytes.',
  },
  {
    id: 'M-11',
    source: 'docs/reference/protocol.md §6 rows 6, 7 and 8; docs/reference/attacks.md case 30',
    behaviour:
      'Mcp-Method is there and equals the method, case-sensitively, with optional whitespace trimmed.',
  },
  {
    id: 'M-12',
    source:
      'docs/reference/protocol.md §6 rows 6 to 9; docs/reference/attacks.md cases 29, 31 and 32',
    behaviour: 'Mcp-Name is there where the body has a name, and equals it after strict decoding.',
  },
  {
    id: 'M-13',
    source: 'docs/reference/protocol.md §6 rows 10 and 11; docs/reference/attacks.md case 35',
    behaviour:
      'Mcp-Param headers agree with the arguments that they mirror; unknown ones are kept for forwarding.',
  },
  {
    id: 'M-14',
    source: 'docs/reference/protocol.md §6 row 50; docs/reference/attacks.md case 34',
    behaviour: 'A tool whose x-mcp-header annotations break the rules is invalid.',
  },
  {
    id: 'M-15',
    source: 'docs/reference/protocol.md §6 rows 13 and 36',
    behaviour:
      'A version that is not carried is 400, with supported and requested where the era has a place for them.',
  },
  {
    id: 'M-16',
    source: 'docs/reference/protocol.md §6 row 14',
    behaviour: 'Each required member of _meta is required (400, -32602); clientInfo is optional.',
  },
  {
    id: 'M-17',
    source: 'docs/reference/protocol.md §6 row 15; docs/contract.md §6',
    behaviour:
      'A method that is not carried is 404 in 2026, 200 in sessions, each with -32601; a notification there is 400.',
  },
  {
    id: 'M-18',
    source: 'docs/reference/attacks.md cases 24 and 27; CVE-2026-27896',
    behaviour:
      'Params have the shape of their method; members that differ from a defined one in case are refused.',
  },
  {
    id: 'M-19',
    source: 'docs/reference/protocol.md §6 rows 33 and 34',
    behaviour:
      'A missing session is 400, one that cannot be opened 404, and initialize names none.',
  },
  {
    id: 'M-20',
    source: 'docs/reference/protocol.md §6 row 36',
    behaviour: 'In a session the version header, if sent, names the version of the session.',
  },
  {
    id: 'M-21',
    source: 'docs/reference/protocol.md §4.2, strongest lever',
    behaviour:
      'An initialize leaves with a version that is carried and without capabilities that are not.',
  },
  {
    id: 'M-22',
    source: 'docs/reference/protocol.md §4.2, strongest lever',
    behaviour:
      'A 2026 request leaves without capabilities that are not carried; all else is byte for byte.',
  },
  {
    id: 'M-23',
    source: 'docs/contract.md §6',
    behaviour: 'Members of _meta under dev.sallyport/ do not pass, and are named for the record.',
  },
  {
    id: 'M-24',
    source: 'docs/reference/attacks.md case 25; docs/reference/protocol.md §1.0',
    behaviour:
      'A response posted by a client that answers no question of its own session is 400 in every era.',
  },
  {
    id: 'M-25',
    source: 'docs/reference/protocol.md §2',
    behaviour:
      'Last-Event-ID is 400 on messages of sessions, opened on their GET, and ignored in 2026.',
  },
  {
    id: 'M-26',
    source: 'docs/reference/protocol.md §6 row 4',
    behaviour: 'GET and DELETE without a session of a session era are 405.',
  },
  {
    id: 'M-27',
    source: 'docs/reference/protocol.md §2.2 rule 1; docs/reference/protocol.md §6 row 31',
    behaviour: 'A message whose body and headers disagree about its era, or name none, is refused.',
  },
  {
    id: 'M-28',
    source: 'docs/reference/attacks.md cases 71 and 73; WHATWG HTML §9.2.6',
    behaviour: 'Events are framed as the specification says, however the bytes are cut.',
  },
  {
    id: 'M-29',
    source: 'docs/reference/attacks.md case 73',
    behaviour: 'Lines and events past the cap and invalid UTF-8 end the stream; work is linear.',
  },
  {
    id: 'M-30',
    source: 'WHATWG HTML §9.2.5',
    behaviour: 'What is written is read again as exactly one event.',
  },
  {
    id: 'M-31',
    source: 'docs/reference/protocol.md §4.2',
    behaviour: 'A client sees only the capabilities that are carried.',
  },
  {
    id: 'M-32',
    source: 'docs/reference/attacks.md case 26; docs/reference/protocol.md §6 rows 18 and 23',
    behaviour:
      'Answers are told by id and era; requests of servers and incomplete results never pass as answers.',
  },
  {
    id: 'M-33',
    source: 'docs/contract.md §6; docs/reference/protocol.md §6 rows 17 and 56',
    behaviour:
      'Bodies of our own have fixed bytes, and hidden and unknown things give one body but for ids.',
  },
  {
    id: 'M-34',
    source: 'docs/reference/attacks.md case 30',
    behaviour: 'A protocol header that was sent twice is refused with -32020.',
  },
  {
    id: 'M-35',
    source: 'docs/reference/protocol.md §6 row 12',
    behaviour:
      'Where the version does not define them, headers that mirror the body are refused, or overlooked if they say the same beside a version header; none is sent on.',
  },
  {
    id: 'M-36',
    source: 'docs/contract.md §6',
    behaviour: 'No fault quotes the message, and no input makes admission throw.',
  },
  {
    id: 'M-37',
    source: 'ARCHITECTURE.md, "Types hold the order"',
    behaviour: 'An admitted message can be made by admission alone.',
  },
];
