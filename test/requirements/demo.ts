// The demo, the launchers, the architecture rules and the fixtures that everything else is proved with.

import type { Requirement } from './requirement.js';

export const demoRequirements: readonly Requirement[] = [
  {
    id: 'D-01',
    source: 'CONTRIBUTING.md',
    behaviour: 'server-everything runs beside the tests and answers SDK v1 and SDK v2 in sessions.',
  },
  {
    id: 'D-02',
    source: 'CONTRIBUTING.md',
    behaviour:
      'A server on SDK v2 answers SDK v2 in both eras, with structured results, progress, prompts, resources and a mirrored header.',
  },
  {
    id: 'D-03',
    source: 'MCP 2025-11-25 and 2026-07-28 transports',
    behaviour:
      'The demo upstream is a real MCP server of both eras: the SDKs list, page, call, read, and hear progress and list changes.',
  },
  {
    id: 'D-04',
    source: 'docs/reference/attacks.md cases 12-14, 26, 55, 58, 71, 72, 82',
    behaviour: 'The hostile upstream commits each misdeed on command and records what it saw.',
  },
  {
    id: 'D-05',
    source: 'MCP 2025-11-25 transports, session management',
    behaviour:
      'The demo upstream refuses a missing session with 400 and an unknown or ended one with 404.',
  },
  {
    id: 'D-06',
    source: 'MCP 2026-07-28, HTTP/JSON-RPC error map',
    behaviour:
      'The demo upstream refuses stateless requests whose headers and body disagree, whose `_meta` lacks a key, or whose version or method is unknown, each with its status and code.',
  },
  {
    id: 'D-07',
    source: 'README.md',
    behaviour:
      'The demo upstream misbehaves on request: three kinds of drift, leaked secrets derived at run time, active content and hidden characters.',
  },
  {
    id: 'D-08',
    source: 'README.md',
    behaviour:
      'The tour announces each outcome before the call and compares it after; against an upstream without a gateway it fails and says where.',
  },
  {
    id: 'D-09',
    source: 'docs/contract.md §3 and §4',
    behaviour: 'The files of the demo are a valid configuration and policy.',
  },
  {
    id: 'D-10',
    source: 'ARCHITECTURE.md, "The folders"',
    behaviour:
      'Imports follow the layers, pure layers do no I/O, there are no cycles, branded types are made in one place each, files keep their size and their names.',
  },
  {
    id: 'D-11',
    source: 'CONTRIBUTING.md',
    behaviour: 'Each requirement is cited by a test, and each cited id is a requirement.',
  },
  {
    id: 'D-12',
    source: 'README.md',
    behaviour:
      'npm test and npm run demo install what is missing and nothing when nothing is missing.',
  },
  {
    id: 'D-13',
    source: 'MCP 2025-11-25 authorization; RFC 7591, 7636, 8707, 9728',
    behaviour:
      'An SDK client walks from a 401 to a token: metadata, registration, code with PKCE and resource.',
  },
  {
    id: 'D-14',
    source: 'contract.md §6-9; glossary.md, public spellings',
    behaviour:
      'The wire traffic and audit lines of the tour, and every public name, are those on record.',
  },
];
