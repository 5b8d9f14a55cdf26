// What people get wrong, and what they are told: one table of typical mistakes in a small setup, each with every line
// that `validate` prints for it. One cause is one line, and a setup that is accepted prints none.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runValidate } from '../../../src/cli/validate.js';
import { DISK_FILES } from '../../../src/config/files.js';
import { readLocksForPolicies } from '../../../src/gateway/config-version.js';
import { digestDefinition } from '../../../src/pins/digest.js';
import { type Pin, writeLock } from '../../../src/pins/lock.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { terminal } from '../cli/console.js';
import { KEY_HEX } from './reading.js';

const GATEWAY = `version: 1
publicUrl: http://127.0.0.1:8090
listeners:
  data: {port: 8090}
keys:
  - file: sallyport-key
issuers:
  corp:
    issuer: http://127.0.0.1:9900
    network: loopback
    algorithms: [ES256]
upstreams:
  everything:
    url: http://127.0.0.1:3001/mcp
    network: loopback
    issuers: [corp]
  notes:
    url: http://127.0.0.1:3002/mcp
    network: loopback
    issuers: [corp]
policies: {dir: policies}
pins: {dir: policies/pins}
`;

const EVERYTHING = `# The reference server.
version: 1
policy: everything
rules:
  - id: engineers
    effect: allow
    who: {issuers: [corp], groups: [eng]}
    what: {upstreams: [everything], tools: [echo, "get-*"]}
    scopes: [everything:use]
    limits: {rate: 60/min}
  - id: no-env
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [get-env]}
    reason: The environment holds secrets.
`;

const NOTES = `version: 1
policy: notes
rules:
  - id: read
    effect: allow
    who: {anyone: true}
    what: {upstreams: [notes], tools: [get_note]}
`;

function pin(name: string, description: string, properties: JsonObject, isOpen = false): readonly [string, Pin] {
  const inputSchema = {
    type: 'object',
    properties,
    ...(isOpen ? {} : { additionalProperties: false }),
  };
  const definition: JsonObject = { name, description, inputSchema };
  const digest = digestDefinition('tool', definition);
  if (!digest.ok) throw new Error(digest.why);
  const approval = { by: 'ana', at: '2026-11-01T10:00:00Z' };
  const version = { status: 'approved', sha256: digest.digest, approval, definition } as const;
  return [name, { ...version, variants: [] }];
}

function lock(upstream: string, tools: readonly (readonly [string, Pin])[]): string {
  const none = new Map<string, Pin>();
  const pins = { tool: new Map(tools), prompt: none, template: none, resource: none };
  return writeLock({ upstream, server: undefined, instructions: undefined, pins });
}

const TEXT = { type: 'string' };
const PATHS = {
  gateway: 'gateway.yaml',
  everything: 'policies/everything.policy.yaml',
  notes: 'policies/notes.policy.yaml',
  key: 'sallyport-key',
  lock: 'policies/pins/everything.lock.yaml',
} as const;
const SETUP: Readonly<Record<string, string>> = {
  [PATHS.gateway]: GATEWAY,
  [PATHS.everything]: EVERYTHING,
  [PATHS.notes]: NOTES,
  [PATHS.key]: `${KEY_HEX}\n`,
  [PATHS.lock]: lock('everything', [
    pin('echo', 'Echoes back the input.', { message: TEXT }),
    pin('get-env', 'Lists the environment.', {}),
    pin('get-sum', 'Adds two numbers.', { a: { type: 'number' }, b: { type: 'number' } }),
  ]),
  'policies/pins/notes.lock.yaml': lock('notes', [pin('get_note', 'Reads a note.', { id: TEXT })]),
};

type Edited = { [path: string]: string | undefined };
type Edit = (files: Edited) => void;

/** Replaces the first occurrence, which must be there. */
function swap(path: string, from: string | RegExp, to: string): Edit {
  return (files) => {
    const before = files[path] ?? '';
    const after = before.replace(from, to);
    if (after === before) throw new Error(`nothing to change in ${path}`);
    files[path] = after;
  };
}
const gateway = (from: string | RegExp, to: string): Edit => swap(PATHS.gateway, from, to);
const policy = (from: string | RegExp, to: string): Edit => swap(PATHS.everything, from, to);
const append = (path: string, text: string): Edit => swap(path, /$/, text);
const move =
  (from: string, to: string): Edit =>
  (files) => {
    files[to] = files[from];
    files[from] = undefined;
  };
const both =
  (...edits: readonly Edit[]): Edit =>
  (files) => {
    for (const edit of edits) edit(files);
  };

const RULE = (...lines: readonly string[]): Edit =>
  append(PATHS.notes, `  - id: r\n${lines.map((line) => `    ${line}\n`).join('')}`);

/** The tools of `everything`, a line each. */
const presenting = (...tools: readonly string[]): Edit =>
  gateway('  notes:\n', `    tools:\n${tools.map((tool) => `      ${tool}\n`).join('')}  notes:\n`);

type Row = {
  readonly name: string;
  readonly edit: Edit;
  /** Without the name of the gateway file and of the first policy file: `g:` and `p:`. */
  readonly lines: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A file whose reading fails, with the code of the system. */
  readonly unreadable?: readonly [path: string, code: string];
  /** The permissions of the file that holds the key. */
  readonly keyMode?: number;
};

const ROWS: readonly Row[] = [
  {
    name: '01 wrong indentation',
    edit: gateway('    url:', '   url:'),
    lines: [
      'g:15:5 error wrong indentation: this line is indented by 4 spaces, but the key "url" above, indented by 3 spaces, has a value already; the keys of one map must start in the same column',
    ],
  },
  {
    name: '02 an unknown key',
    edit: gateway('    issuers: [corp]', '    issuers: [corp]\n    timeout: 30s'),
    lines: ['g:17:5 error unknown key "timeout"; did you mean "limits.requestTimeout"?'],
  },
  {
    name: '03 a misspelt key',
    edit: gateway('upstreams:', 'upstream:'),
    lines: ['g:12:1 error the gateway file has no key "upstream"; did you mean "upstreams"?'],
  },
  {
    name: '04 a misspelt tool',
    edit: policy('[echo,', '[ehco,'),
    lines: ['p:8:45 error no tool named "ehco" is pinned for the upstreams of this rule; did you mean "echo"?'],
  },
  {
    name: '05 a variable that is not set',
    edit: gateway('- file: sallyport-key', '- env: SALLYPORT_KEYY'),
    env: { SALLYPORT_KEY: KEY_HEX },
    lines: ['g:6:10 error the environment variable "SALLYPORT_KEYY" is not set; did you mean "SALLYPORT_KEY"?'],
  },
  {
    name: '06 a key file that does not exist',
    edit: gateway('sallyport-key', 'sallyport-kei'),
    lines: ['g:6:11 error the file "sallyport-kei" does not exist (its path is relative to the file that names it)'],
  },
  {
    name: '07 a key that is none',
    edit: swap(PATHS.key, /.*/, 'hello'),
    lines: [
      'g:6:5 error the file "sallyport-key" holds no gateway key: expected 32 bytes as base64 or hex, or what `sallyport keys new` prints',
    ],
  },
  {
    name: '08 a tab',
    edit: gateway('    url', '\turl'),
    lines: ['g:14:1 error a tab is used for indentation; use spaces'],
  },
  {
    name: '09 CEL that ends early',
    edit: policy('    scopes: ', '    when: args.message == \n    scopes: '),
    lines: ['p:9:11 error the expression is not valid CEL: it ends after "==", where a value is missing'],
  },
  {
    name: '10 CEL with an unknown function',
    edit: policy('    scopes: ', '    when: "args.message.startWith(1)"\n    scopes: '),
    lines: ['p:9:11 error unknown function "startWith"; did you mean "startsWith"?'],
  },
  {
    name: '11 CEL with an unknown name',
    edit: policy('    scopes: ', '    when: "arg.message == user"\n    scopes: '),
    lines: ['p:9:11 error unknown name "arg"; did you mean "args"?'],
  },
  {
    name: '12 a regular expression that does not parse',
    edit: policy('"get-*"', '"re:get-("'),
    lines: ['p:8:51 error "re:get-(" is not valid RE2: a parenthesis "(" is never closed'],
  },
  {
    name: '13 a rule id used twice',
    edit: policy('id: no-env', 'id: engineers'),
    lines: ['p:11:9 error another rule of this policy has the id "engineers"; rename one of the two'],
  },
  {
    name: '14 a duration without a unit',
    edit: append(PATHS.gateway, 'audit:\n  checkpoint: {every: 30}\n'),
    lines: ['g:24:23 error expected a duration such as 30s, 5m or 1h, found a number; did you mean "30s"?'],
  },
  {
    name: '15 a duration in words',
    edit: append(PATHS.gateway, 'audit:\n  checkpoint: {every: 30 sec}\n'),
    lines: ['g:24:23 error expected a duration such as 30s, 5m or 1h; did you mean "30s"?'],
  },
  {
    name: '16 a rate in words',
    edit: policy('60/min', '60 per minute'),
    lines: ['p:10:20 error expected a rate such as 60/min; did you mean "60/min"?'],
  },
  {
    name: '17 an unknown issuer of an upstream',
    edit: gateway('    issuers: [corp]', '    issuers: [crop]'),
    lines: ['g:16:15 error unknown issuer "crop"; did you mean "corp"?'],
  },
  {
    name: '18 an unknown issuer in a rule',
    edit: policy('issuers: [corp], groups', 'issuers: [crop], groups'),
    lines: ['p:7:21 error no issuer is named "crop"; did you mean "corp"?'],
  },
  {
    name: '19 an unknown upstream in a rule',
    edit: policy('upstreams: [everything]', 'upstreams: [everythng]'),
    lines: ['p:8:24 error no upstream is named "everythng"; did you mean "everything"?'],
  },
  {
    name: '20 publicUrl with a path and a slash',
    edit: gateway('8090\n', '8090/mcp/\n'),
    lines: [],
  },
  {
    name: '21 publicUrl without a scheme',
    edit: gateway('http://127.0.0.1:8090', '127.0.0.1:8090'),
    lines: ['g:2:12 error expected a URL that begins with https:// or http://'],
  },
  {
    name: '22 plain http to an upstream elsewhere',
    edit: both(
      gateway('http://127.0.0.1:3001/mcp', 'http://10.0.0.5:3001/mcp'),
      gateway(/network: loopback/g, 'network: private'),
    ),
    lines: [
      'g:9:13 error this address is not in the network "private"; did you mean "network: loopback"?',
      'g:14:10 error plain http in a private network has to be accepted: write "plaintext: accepted" beside "network: private", or use https',
      'g:18:10 error this address is not in the network "private"; did you mean "network: loopback"?',
    ],
  },
  {
    name: '23 a key twice',
    edit: append(PATHS.gateway, 'version: 1\n'),
    lines: ['g:23:1 error duplicate key "version"; remove one of the two'],
  },
  {
    name: '24 an empty policy',
    edit: (files) => {
      files['policies/empty.policy.yaml'] = '';
    },
    lines: ['policies/empty.policy.yaml:1:1 error the file is empty; expected a policy file'],
  },
  {
    name: '25 a policy named .yml',
    edit: both(move(PATHS.everything, 'policies/everything.yml'), (files) => {
      files[PATHS.notes] = undefined;
    }),
    lines: [
      'policies/everything.yml:1:1 warning this file is not read, because its name does not end in .policy.yaml, so nothing is allowed; did you mean "everything.policy.yaml"?',
    ],
  },
  {
    name: '26 a symmetric algorithm',
    edit: gateway('ES256', 'HS256'),
    lines: [
      'g:11:18 error "HS256" is not one of ES256, ES384, ES512, RS256, RS384, RS512, PS256, PS384, PS512, EdDSA, Ed25519; did you mean "ES256"?',
    ],
  },
  {
    name: '27 a secret in the file',
    edit: gateway(
      '    issuers: [corp]',
      '    issuers: [corp]\n    credentials: {type: static, header: Authorization, value: "Bearer abc"}',
    ),
    lines: ['g:17:63 error expected a secret reference, {env: NAME} or {file: PATH}, found text'],
  },
  {
    name: '28 an unknown effect',
    edit: policy('effect: allow', 'effect: permit'),
    lines: ['p:6:13 error "permit" is not one of allow, deny, require'],
  },
  {
    name: '29 a port in quotes',
    edit: gateway('port: 8090', 'port: "8090"'),
    lines: ['g:4:16 error expected a whole number from 0 to 65535, found text; remove the quotes'],
  },
  {
    name: '30 a lock file changed by hand',
    edit: swap(PATHS.lock, 'Echoes back', 'Echoes  back'),
    lines: [
      'policies/pins/everything.lock.yaml:7:13 error this digest does not match the definition of tools/echo, whose digest is 6924dee7807864e9a6e8865c1520cb539d309109606c4432ccff2dbc8fa667c5: the file was changed by hand; restore it, or delete it and run: sallyport pin fetch',
    ],
  },
  {
    name: '31 a version that does not exist',
    edit: gateway('version: 1', 'version: 2'),
    lines: ['g:1:10 error expected 1, found 2'],
  },
  {
    name: '32 a gateway file that does not exist',
    edit: move(PATHS.gateway, 'gw.yaml'),
    lines: ['g:1:1 error the gateway file does not exist; name another with -c'],
  },
  {
    name: '33 an invalid schema of an argument',
    edit: policy('    scopes: ', '    args: {message: {type: strng}}\n    scopes: '),
    lines: [
      'p:9:21 error the schema is not a valid JSON Schema: "type" must be one of array, boolean, integer, null, number, object, string',
      'p:9:21 warning the tools "get-env", "get-sum" have no argument /message in their pinned schemas',
    ],
  },
  {
    name: '34 an unknown argument',
    edit: policy('    scopes: ', '    args: {mesage: {type: string}}\n    scopes: '),
    lines: [
      'p:9:20 error the tools "echo", "get-env", "get-sum" have no argument /mesage in their pinned schemas; did you mean "message"?',
    ],
  },
  {
    name: '35 a rule for nobody',
    edit: policy(/ {4}who: \{issuers.*\n/, ''),
    lines: ['p:5:5 error the key "who" is missing'],
  },
  {
    name: '36 groups as text',
    edit: policy('groups: [eng]', 'groups: eng'),
    lines: ['p:7:36 error expected a list, found text; did you mean "[eng]"?'],
  },
  {
    name: '37 a colon in a value',
    edit: policy('reason: The environment', 'reason: The env: it'),
    lines: ['p:15:13 error a value that contains a colon and a space must be in quotes, because ": " begins a map'],
  },
  {
    name: '38 tracing',
    edit: append(PATHS.gateway, 'tracing: {otlp: {endpoint: http://127.0.0.1:4318}}\n'),
    lines: ['g:23:11 error the key "url" is missing', 'g:23:18 error unknown key "endpoint"'],
  },
  {
    name: '39 the mode shadow',
    edit: policy('policy: everything', 'policy: everything\nmode: shadow'),
    lines: [
      'p:4:7 warning this policy is not enforced: what its rules would decide is only recorded, and its deny rules protect nothing',
    ],
  },
  {
    name: '40 a short break-glass token',
    edit: append(PATHS.gateway, 'admin: {breakGlass: {token: {env: BG}}}\n'),
    env: { BG: 'short' },
    lines: ['g:23:29 error the environment variable "BG" holds a secret shorter than 32 characters; use a longer one'],
  },
  {
    name: '41 plain http to an upstream by service name',
    edit: both(
      gateway('http://127.0.0.1:3001', 'http://everything:3001'),
      gateway('3001/mcp\n    network: loopback', '3001/mcp\n    network: private'),
    ),
    lines: [
      'g:14:10 error plain http in a private network has to be accepted: write "plaintext: accepted" beside "network: private", or use https',
    ],
  },
  {
    name: '42 plain http to an issuer by service name',
    edit: both(
      gateway('http://127.0.0.1:9900', 'http://keycloak:8080/realms/mcp'),
      gateway('realms/mcp\n    network: loopback', 'realms/mcp\n    network: private'),
    ),
    lines: [
      'g:9:13 error plain http in a private network has to be accepted: write "plaintext: accepted" beside "network: private", or use https',
    ],
  },
  {
    name: '43 publicUrl with plain http on a local network',
    edit: gateway('http://127.0.0.1:8090', 'http://mcp.lan:8090'),
    lines: ['g:2:12 error plain http is possible only on loopback; did you mean "https://mcp.lan:8090"?'],
  },
  {
    name: '44 every interface with a loopback publicUrl',
    edit: gateway('data: {port: 8090}', 'data: {host: 0.0.0.0, port: 8090}'),
    lines: [],
  },
  {
    name: '45 a path without a slash',
    edit: gateway('  notes:', '  notes:\n    path: notes'),
    lines: ['g:18:11 error a path starts with /; did you mean "/notes"?'],
  },
  {
    name: '46 two upstreams with one path',
    edit: gateway('  notes:', '  notes:\n    path: /everything'),
    lines: ['g:18:11 error the path "/everything" belongs to the upstream "everything"'],
  },
  {
    name: '47 an upstream name with a capital',
    edit: gateway('  notes:', '  Notes:'),
    lines: ['g:17:3 error "Notes" is not a name of lower-case letters, digits, - and _; did you mean "notes"?'],
  },
  {
    name: '48 an unknown inspection profile',
    edit: RULE('effect: require', 'who: {anyone: true}', 'what: {upstreams: ["*"], tools: ["*"]}', 'inspect: untrustd'),
    lines: [
      'policies/notes.policy.yaml:12:14 error no inspection profile is named "untrustd"; known profiles: default, strict, developer',
    ],
  },
  {
    name: '49 limits of a deny rule',
    edit: RULE(
      'effect: deny',
      'who: {anyone: true}',
      'what: {upstreams: ["*"], tools: [get_note]}',
      'limits: {rate: 1/min}',
    ),
    lines: ['policies/notes.policy.yaml:12:5 error a deny rule has no key "limits"'],
  },
  {
    name: '50 a rule without upstreams',
    edit: RULE('effect: deny', 'who: {anyone: true}', 'what: {tools: [get_note]}'),
    lines: [
      'policies/notes.policy.yaml:4:5 warning this rule can never matter: "notes/r" denies everything that it names, to everybody that it names',
    ],
  },
  {
    name: '51 a merge marker',
    edit: append(PATHS.notes, '<<<<<<< HEAD\n'),
    lines: [
      'policies/notes.policy.yaml:8:1 error the marker "<<<<<<<" of an unresolved merge; choose one of the versions and remove all markers',
    ],
  },
  {
    name: '52 a byte order mark and CRLF',
    edit: both(gateway(/\n/g, '\r\n'), gateway(/^/, '\ufeff')),
    lines: [],
  },
  {
    name: '53 an anchor under an unknown key',
    edit: append(PATHS.gateway, 'x: &a 1\n'),
    lines: ['g:23:1 error the gateway file has no key "x"'],
  },
  {
    name: '54 a key that may not be read',
    edit: () => undefined,
    unreadable: [PATHS.key, 'EACCES'],
    lines: ['g:6:11 error the file "sallyport-key" cannot be read: permission denied'],
  },
  {
    name: '55 an audit file in a folder that does not exist',
    edit: append(PATHS.gateway, 'audit: {sinks: [{type: file, path: nofolder/audit.jsonl}]}\n'),
    lines: [
      'g:23:36 warning the folder of the audit file "nofolder/audit.jsonl" does not exist; create it before the start',
    ],
  },
  {
    name: 'a missing space after a colon',
    edit: gateway('publicUrl: ', 'publicUrl:'),
    lines: ['g:2:1 error a space is missing after the colon'],
  },
  {
    name: 'a line without a colon',
    edit: gateway('issuers:\n', 'issuers\n'),
    lines: ['g:7:1 error expected "key: value", found text without a colon'],
  },
  {
    name: 'a bracket that is not closed',
    edit: policy('"get-*"]}', '"get-*"}'),
    lines: ['p:8:44 error the bracket [ is opened here and never closed'],
  },
  {
    name: 'a brace that is not closed',
    edit: gateway('{port: 8090}', '{port: 8090'),
    lines: ['g:4:9 error the bracket { is opened here and never closed'],
  },
  {
    name: 'a quote that is not closed',
    edit: policy('"get-*"', '"get-*'),
    lines: ['p:8:51 error the quote " is opened here and never closed'],
  },
  {
    name: 'a bracket too many',
    edit: gateway('[ES256]', '[ES256]]'),
    lines: ['g:11:24 error the bracket ] closes nothing; remove it'],
  },
  {
    name: 'a glob without quotes',
    edit: policy('["*"]', '[*]'),
    lines: ['p:14:24 error an unquoted * or & begins an alias or an anchor; put the value into quotes'],
  },
  {
    name: 'a glob that begins with a star, without quotes',
    edit: policy('"get-*"', '*-env'),
    lines: ['p:8:51 error no anchor for this alias stands before it; put a glob that begins with * into quotes'],
  },
  {
    name: 'an escape that does not exist',
    edit: policy('"get-*"', '"re:get-\\d"'),
    lines: [
      'p:8:59 error the escape \\d does not exist in double quotes; write the backslash twice, or use single quotes',
    ],
  },
  {
    name: 'a tag',
    edit: policy('reason: The', 'reason: !The'),
    lines: ['p:15:13 error tags (!) are not accepted; put a value that begins with ! into quotes'],
  },
  {
    name: 'an item that is indented less',
    edit: gateway('  - file: sallyport-key\n', '  - file: sallyport-key\n - env: B\n'),
    lines: ['g:7:2 error wrong indentation: the items of one list must start in the same column'],
  },
  {
    name: 'a key that is indented more',
    edit: gateway('publicUrl', '  publicUrl'),
    lines: [
      'g:2:3 error wrong indentation: this line is indented by 2 spaces, but the key "version" above, indented by 0 spaces, has a value already; the keys of one map must start in the same column',
    ],
  },
  {
    name: 'text behind a quoted value',
    edit: policy('reason: The environment holds', 'reason: "The environment" holds'),
    lines: ['p:15:31 error unexpected text after the value; put the whole value into one pair of quotes'],
  },
  {
    name: 'a merge marker in a lock file',
    edit: swap(PATHS.lock, 'tools:', '=======\ntools:'),
    lines: [
      'policies/pins/everything.lock.yaml:4:1 error the marker "=======" of an unresolved merge; choose one of the versions and remove all markers',
    ],
  },
  {
    name: 'a misspelt key of an issuer',
    edit: gateway('algorithms:', 'algorithm:'),
    lines: ['g:11:5 error unknown key "algorithm"; did you mean "algorithms"?'],
  },
  {
    name: 'a misspelt network',
    edit: gateway('    network: loopback', '    netwrok: loopback'),
    lines: ['g:10:5 error unknown key "netwrok"; did you mean "network"?'],
  },
  {
    name: 'a misspelt key of a rule',
    edit: policy('    what:', '    waht:'),
    lines: ['p:8:5 error an allow rule has no key "waht"; did you mean "what"?'],
  },
  {
    name: 'a misspelt key of a lock file',
    edit: swap(PATHS.lock, 'status: approved', 'stats: approved'),
    lines: ['policies/pins/everything.lock.yaml:6:5 error unknown key "stats"; did you mean "status"?'],
  },
  {
    name: 'a misspelt map of issuers',
    edit: gateway('issuers:\n', 'isuers:\n'),
    lines: ['g:7:1 error the gateway file has no key "isuers"; did you mean "issuers"?'],
  },
  {
    name: 'a misspelt list of issuers',
    edit: gateway('    issuers: [corp]', '    isuers: [corp]'),
    lines: ['g:16:5 error unknown key "isuers"; did you mean "issuers"?'],
  },
  {
    name: 'an issuer name with a capital',
    edit: gateway('  corp:', '  Corp:'),
    lines: ['g:8:3 error "Corp" is not a name of lower-case letters, digits, - and _; did you mean "corp"?'],
  },
  {
    name: 'a glob of an allow rule that matches nothing',
    edit: policy('"get-*"', '"gte-*"'),
    lines: [
      'p:8:51 warning "gte-*" matches no tool that is pinned for the upstreams of this rule; did you mean "get-*"?',
    ],
  },
  {
    name: 'a glob of a deny rule that matches nothing',
    edit: policy('tools: [get-env]', 'tools: ["gte-*"]'),
    lines: [
      'p:14:38 note "gte-*" matches no tool that is pinned for the upstreams of this rule; did you mean "get-*"?',
    ],
  },
  {
    name: 'a glob of upstreams that matches nothing, of a deny rule',
    edit: policy('upstreams: ["*"]', 'upstreams: ["notse*"]'),
    lines: ['p:14:24 note no upstream matches "notse*"; did you mean "notes*"?'],
  },
  {
    name: 'an exact name of a deny rule that is not pinned',
    edit: policy('tools: [get-env]', 'tools: [get-evn]'),
    lines: ['p:14:38 error no tool named "get-evn" is pinned for the upstreams of this rule; did you mean "get-env"?'],
  },
  {
    name: 'an upstream without pins',
    edit: (files) => {
      files['policies/pins/notes.lock.yaml'] = undefined;
    },
    lines: [
      'policies/notes.policy.yaml:7:11 error nothing is pinned for "notes", so no tool, prompt or template can be allowed there; run: sallyport pin fetch',
    ],
  },
  {
    name: 'a policy named .policy.yml beside others',
    edit: (files) => {
      files['policies/more.policy.yml'] = NOTES;
    },
    lines: [
      'policies/more.policy.yml:1:1 warning this file is not read, because its name does not end in .policy.yaml; did you mean "more.policy.yaml"?',
    ],
  },
  {
    name: 'a lock file of an unknown upstream',
    edit: move('policies/pins/notes.lock.yaml', 'policies/pins/note.lock.yaml'),
    lines: ['policies/pins/note.lock.yaml:3:11 error "notes" differs from the name of the file, "note.lock.yaml"'],
  },
  {
    name: 'a policy folder that does not exist',
    edit: gateway('dir: policies}', 'dir: polices}'),
    lines: [
      'polices:1:1 error the policy folder does not exist; correct "policies.dir" of the gateway file or the option --policies',
    ],
  },
  {
    name: 'CEL with one equals sign',
    edit: policy('    scopes: ', '    when: args.message = "a"\n    scopes: '),
    lines: [
      'p:9:11 error the expression is not valid CEL: "=" at character 14 is not an operator of CEL; did you mean "=="?',
    ],
  },
  {
    name: 'CEL with words for operators',
    edit: policy('    scopes: ', '    when: args.message == "a" and true\n    scopes: '),
    lines: [
      'p:9:11 error the expression is not valid CEL: "and" at character 21 is not an operator of CEL; did you mean "&&"?',
    ],
  },
  {
    name: 'CEL with an open bracket',
    edit: policy('    scopes: ', '    when: (args.message == "a"\n    scopes: '),
    lines: ['p:9:11 error the expression is not valid CEL: the bracket ( at character 1 is never closed'],
  },
  {
    name: 'CEL with an open quote',
    edit: policy('    scopes: ', "    when: args.message == 'a\n    scopes: "),
    lines: ["p:9:11 error the expression is not valid CEL: the quote ' at character 17 is never closed"],
  },
  {
    name: 'RE2 with lookahead',
    edit: policy('"get-*"', '"re:get-(?!env)"'),
    lines: ['p:8:51 error "re:get-(?!env)" is not valid RE2: lookahead and lookbehind are not supported'],
  },
  {
    name: 'a grant of what is pending',
    edit: swap(PATHS.lock, 'status: approved', 'status: pending'),
    lines: [
      'policies/pins/everything.lock.yaml:1:1 note 1 definition of everything is pending, and neither listed nor callable; to review: sallyport pin diff -c gateway.yaml everything',
    ],
  },
  {
    name: 'a key that every user of the machine can read',
    edit: () => undefined,
    keyMode: 0o644,
    lines: [
      'g:6:11 note the file "sallyport-key" holds a secret that every user of this machine can read; run chmod 600 on it',
    ],
  },
  {
    name: 'a key that its group can read, too',
    edit: () => undefined,
    keyMode: 0o640,
    lines: [],
  },
  {
    name: 'a socket whose path the system does not take',
    edit: gateway(
      'url: http://127.0.0.1:3002/mcp\n    network: loopback',
      `url: http://localhost/mcp\n    socket: /run/${'s'.repeat(103)}`,
    ),
    lines: [
      'g:19:13 error the absolute path of this socket has 108 bytes, and the system takes 107 at most; use a shorter one, such as one below /run',
    ],
  },
  {
    name: 'a socket whose path the system just takes',
    edit: gateway(
      'url: http://127.0.0.1:3002/mcp\n    network: loopback',
      `url: http://localhost/mcp\n    socket: /run/${'s'.repeat(102)}`,
    ),
    lines: [],
  },
  {
    name: 'presentations of tools that have another name by now, or the name of another',
    edit: presenting(
      'get-sum: {name: echo}',
      'get_sum: {description: Adds.}',
      'get-env: {parameters: {all: {hide: true}}}',
    ),
    lines: [
      'g:18:7 error tool "get-sum": another tool has the name "echo"',
      'g:19:7 warning tool "get_sum": the lock file has no tool of this name, so that nothing is presented',
      'g:20:7 error tool "get-env": it has no parameter "all"',
    ],
  },
  {
    name: 'presentations that give one name to two tools',
    edit: presenting('get-sum: {name: sum}', 'get-env: {name: sum}'),
    lines: ['g:19:23 error "get-sum" has this name too'],
  },
  {
    name: 'a value that the schema of its parameter refuses',
    edit: presenting('get-sum: {name: sum, parameters: {a: {value: one}, b: {default: 2}}}'),
    lines: ['g:18:7 error tool "get-sum": the value of "a" is not valid: it must be number'],
  },
  {
    name: 'a parameter that is hidden and has a value',
    edit: presenting('get-sum: {parameters: {a: {value: 1, hide: true}, b: {}, c: {hide: false}}}'),
    lines: [
      'g:18:33 error expected {value: …}, {default: …} or {hide: true}, not both',
      'g:18:60 error this map must not be empty',
      'g:18:74 error expected true, found false',
    ],
  },
  {
    name: 'a group id that is a number',
    edit: policy('groups: [eng]', 'groups: [1234]'),
    lines: ['p:7:37 error expected text, found a number; put it into quotes'],
  },
];

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

async function validate({ edit, env = {}, unreadable, keyMode = 0o600 }: Omit<Row, 'name' | 'lines'>, more = {}) {
  const cwd = mkdtempSync(join(tmpdir(), 'mistakes-'));
  folders.push(cwd);
  const files: Edited = { ...SETUP };
  edit(files);
  for (const [path, text] of Object.entries(files)) {
    if (text === undefined) continue;
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text, { mode: path === PATHS.key ? keyMode : 0o644 });
  }
  const io = terminal({ cwd, env });
  const code = await runValidate({ config: PATHS.gateway, ...more }, io, {
    files: {
      ...DISK_FILES,
      readFile(path) {
        if (path === join(cwd, unreadable?.[0] ?? '')) {
          throw Object.assign(new Error('refused'), { code: unreadable?.[1] });
        }
        return DISK_FILES.readFile(path);
      },
    },
    compilePolicies,
    loadLocks: (folder, outline) => readLocksForPolicies(folder, outline, cwd),
  });
  const lines = io.out().split('\n').slice(0, -1);
  const shown = lines.map((line) =>
    line.replace(/^gateway\.yaml:/, 'g:').replace(/^policies\/everything\.policy\.yaml:/, 'p:'),
  );
  return { code, lines: shown, counts: io.err() };
}

describe('[P-32] arguments that nobody declared', () => {
  const openPins: Edit = (files) => {
    const names = Array.from({ length: 10 }, (_, at) => `get-${at}`);
    const tools = names.map((name) => pin(name, 'Gets.', { id: TEXT }, true));
    files['policies/pins/notes.lock.yaml'] = lock('notes', [pin('get_note', 'Reads a note.', { id: TEXT }), ...tools]);
  };

  it('are noted with the tools where the operator lets them pass, once there is no error', async () => {
    const { lines, code } = await validate({ edit: openPins }, { strict: true });
    expect([lines, code]).toEqual([[], 0]);
    const observed = both(openPins, gateway('  notes:\n', '  notes:\n    arguments: observe\n'));
    expect((await validate({ edit: observed })).lines).toEqual([
      'g:17:3 note "arguments: observe" records arguments that the schemas of 10 tools do not declare: get-0, get-1, get-2, get-3, get-4, get-5, get-6, get-7 and 2 more',
    ]);
    const any = both(openPins, gateway('  notes:\n', '  notes:\n    arguments: any\n'));
    expect((await validate({ edit: any })).lines).toEqual([]);
    const wrong = await validate({ edit: both(openPins, policy('60/min', 'often')) });
    expect(wrong.lines).toEqual([expect.stringContaining(' error ')]);
  });
});

describe('[C-21] typical mistakes', () => {
  it.each(ROWS)('$name', async (row) => {
    const { lines, code } = await validate(row);
    expect(lines).toEqual(row.lines);
    const hasError = row.lines.some((line) => line.includes(' error '));
    expect(code === 0).toBe(!hasError);
  });

  it('counts each kind in the right number, and notes never', async () => {
    const glob = policy('tools: [get-env]', 'tools: ["gte-*"]');
    const noted = await validate({ edit: glob });
    expect(noted).toMatchObject({ code: 0, counts: '0 errors, 0 warnings, 1 note\n' });
    const strict = await validate({ edit: glob }, { strict: true });
    expect(strict).toMatchObject({ code: 0, lines: noted.lines, counts: noted.counts });
    const allow = policy('"get-*"', '"gte-*"');
    expect((await validate({ edit: allow })).counts).toBe('0 errors, 1 warning\n');
    const strictly = await validate({ edit: allow }, { strict: true });
    expect(strictly).toMatchObject({ code: 1, counts: '1 error, 0 warnings\n' });
    const errors = both(gateway('ES256', 'HS256'), policy('60/min', 'often'));
    expect((await validate({ edit: errors })).counts).toBe('2 errors, 0 warnings\n');
  });

  it('reports an upstream without pins as seriously as the rules that name it', async () => {
    const noPins: Edit = (files) => {
      files['policies/pins/notes.lock.yaml'] = undefined;
      files['policies/a.policy.yaml'] = NOTES.replace('policy: notes', 'policy: a')
        .replace('effect: allow', 'effect: deny')
        .replace('[get_note]', '["get_*"]');
    };
    // The glob of the deny rule alone would be a note.
    const { lines } = await validate({ edit: noPins });
    expect(lines).toEqual([expect.stringMatching(/^policies\/notes.*:7:11 error nothing is pinned/)]);
  });

  it('drops what follows from an error only, and never because of a note', async () => {
    const edit = both(
      append(PATHS.gateway, 'audit: {sinks: [{type: file, path: nofolder/audit.jsonl}]}\n'),
      gateway('    issuers: [corp]', '    issuers: [crop]'),
    );
    const { lines } = await validate({ edit });
    expect(lines).toEqual([
      'g:16:15 error unknown issuer "crop"; did you mean "corp"?',
      expect.stringContaining('warning the folder of the audit file'),
    ]);
  });

  it('carries notes into JSON and SARIF', async () => {
    const edit = policy('tools: [get-env]', 'tools: ["gte-*"]');
    const json = await validate({ edit }, { format: 'json' });
    const report = JSON.parse(json.lines.join('\n'));
    expect(report.faults).toMatchObject([{ severity: 'note', suggestion: 'get-*' }]);
    const sarif = await validate({ edit }, { format: 'sarif' });
    const { runs } = JSON.parse(sarif.lines.join('\n'));
    expect(runs[0].results).toMatchObject([{ level: 'note' }]);
  });
});
