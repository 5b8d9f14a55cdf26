import { describe, expect, it } from 'vitest';
import { makeSecret } from '../../../support/secrets.js';
import { diagnosticLines, FOLDER, GOOD, read } from '../reading.js';

const ISSUER = 'issuer: https://idp.example.com';
const URL_LINE = 'url: https://github.example.com/mcp';

function issuer(text: string): string {
  return GOOD.replace(ISSUER, `issuer: ${text}`);
}

function upstream(url: string): string {
  return GOOD.replace(URL_LINE, `url: ${url}`);
}

function member(text: string): string {
  return GOOD.replace('    issuers: [corp]', `    issuers: [corp]\n    ${text}`);
}

function claims(text: string): string {
  return GOOD.replace('algorithms: [ES256]', `algorithms: [ES256]\n    claims: {${text}}`);
}

function proxies(range: string): string {
  return `${GOOD}listeners: {data: {trustedProxies: ["${range}"]}}\n`;
}

const LIMITS = (keepAlive: string, idle: string) => member(`limits: {keepAlive: ${keepAlive}, streamIdle: ${idle}}`);
const ADMIN = `${GOOD}admin:
  publicUrl: https://console.example.com
  issuers: {corp: {audience: console, roles: {reviewer: ["leads"]}}}
`;

/** As a shell or a chart would fill it in. */
const PLACEHOLDER = `$${'{NAME}'}`;

/** What a line about the mistake begins with, or nothing; and what of it says how to mend it. */
const ROWS: readonly (readonly [what: string, text: string, start?: string | undefined, remedy?: string])[] = [
  ['every IPv4 address as a trusted proxy', proxies('0.0.0.0/0'), '13:37 warning', 'your proxies alone'],
  ['half of the IPv4 addresses', proxies('128.0.0.0/1'), '13:37 warning'],
  ['every IPv6 address', proxies('::/0'), '13:37 warning'],
  ['a private range', proxies('10.0.0.0/8'), undefined],
  ['one IPv6 network', proxies('fd00::/16'), undefined],
  ['one proxy', proxies('192.0.2.7'), undefined],

  [
    'the discovery URL as an issuer',
    issuer('https://idp.example.com/.well-known/openid-configuration'),
    '6:13 error',
    'did you mean "https://idp.example.com"?',
  ],
  [
    'the discovery URL of RFC 8414 with a path',
    issuer('https://idp.example.com/.well-known/oauth-authorization-server/tenant'),
    '6:13 error',
    'did you mean "https://idp.example.com/tenant"?',
  ],
  [
    'the discovery URL behind a path',
    issuer('https://idp.example.com/realms/one/.well-known/openid-configuration'),
    '6:13 error',
    'did you mean "https://idp.example.com/realms/one"?',
  ],
  ['an issuer with a path', issuer('https://idp.example.com/realms/well-known'), undefined],

  ['a path without a slash', claims('groups: realm_access/roles'), '8:22 warning', '"/realm_access/roles"'],
  ['one of several', claims('groups: [groups, realm_access/roles]'), '8:31 warning', '"/realm_access/roles"'],
  ['dots', claims('groups: realm_access.roles'), '8:22 warning', '"/realm_access/roles"'],
  ['JSONPath', claims('scope: $.realm_access.roles'), '8:21 warning', '"/realm_access/roles"'],
  ['a pointer', claims('groups: /realm_access/roles'), undefined],
  ['a URL as a claim', claims('groups: "https://example.com/groups"'), undefined],
  ['a name with a colon', claims('groups: "cognito:groups"'), undefined],
  ['a name with blanks', claims('groups: "groups "'), '8:22 warning', 'did you mean "groups"?'],

  ['its own path', upstream('https://mcp.example.com/github'), '10:10 error', 'write the URL of the server'],
  ['a path below its own', upstream('https://mcp.example.com/github/mcp'), '10:10 error'],
  [
    'another path of its host',
    upstream('https://mcp.example.com/internal'),
    '10:10 note',
    'a proxy must lead this path',
  ],
  ['another port of its host', upstream('https://mcp.example.com:8443/github'), undefined],

  [
    'a key in the query',
    upstream('"https://github.example.com/mcp?api_key=abc123"'),
    '10:10 warning',
    'value: {file: …}',
  ],
  ['a token in the query', upstream('"https://github.example.com/mcp?x=1&access_token=abc"'), '10:10 warning'],
  ['a query without a secret', upstream('"https://github.example.com/mcp?monkey=abc&keyword=b"'), undefined],

  ['keep-alives that never come', LIMITS('10m', '1m'), '12:25 warning', 'make it shorter'],
  ['keep-alives as late as the end', LIMITS('1m', '1m'), '12:25 warning'],
  ['keep-alives in time', LIMITS('10s', '1m'), undefined],

  ['a host to be filled in', GOOD.replace('mcp.example.com', PLACEHOLDER), '2:12 error', 'a file for each environment'],
  ['a host in a chart', upstream('https://{{host}}/mcp'), '10:10 error', 'nothing is filled in here'],
  ['a host of a shell', upstream('https://$HOST/mcp'), '10:10 error', 'nothing is filled in here'],
  [
    'a text to be filled in',
    member(`audiences: {corp: ["${PLACEHOLDER}"]}`),
    '12:24 warning',
    'nothing is filled in here',
  ],

  ['a group with a blank', ADMIN.replace('"leads"', '"leads "'), '15:\\d+ warning', 'did you mean "leads"?'],
  ['an audience with a blank', ADMIN.replace('audience: console', 'audience: "console "'), '15:\\d+ warning'],
  ['an accepted audience with a blank', member('audiences: {corp: [" api"]}'), '12:24 warning', 'did you mean "api"?'],
  ['a group', ADMIN, undefined],
];

describe('what a valid file hardly ever means', () => {
  it.each(ROWS)('[C-28] %s', (_what, text, start, remedy = '') => {
    const lines = diagnosticLines(text ?? '');
    if (start === undefined) expect(lines).toEqual([]);
    else expect(lines).toEqual([expect.stringMatching(new RegExp(`^${start} `))]);
    expect(lines.join()).toContain(remedy);
  });

  it.each([
    ['a token without a scheme', 'authorization', makeSecret(), true],
    ['a token with a scheme', 'Authorization', `Bearer ${makeSecret()}`, false],
    ['a user name and a password', 'authorization', `Basic ${Buffer.from(makeSecret()).toString('base64')}`, false],
    ['another header', 'x-api-key', makeSecret(), false],
  ])('[C-28] %s', (_what, header, value, isNamed) => {
    const text = member(`credentials: {type: static, header: ${header}, value: {file: ./token}}`);
    const lines = diagnosticLines(text, { files: { [`${FOLDER}/token`]: value } });
    expect(lines).toEqual(isNamed ? [expect.stringMatching(/^12:\d+ warning .*put "Bearer " before/)] : []);
    expect(lines.join()).not.toContain(value);
  });

  it('[C-28] notes once which variables need a restart, if a file would not', () => {
    const text = member('credentials: {type: static, header: x-key, value: {env: TOKEN}}');
    const { notes } = read(text, { env: { TOKEN: makeSecret() } });
    expect(notes?.map(({ line, severity, message }) => `${line} ${severity} ${message}`)).toEqual([
      expect.stringMatching(/^12 note .* a new value of TOKEN needs a restart/),
    ]);
    expect(read(GOOD).notes).toEqual([]);
  });
});
