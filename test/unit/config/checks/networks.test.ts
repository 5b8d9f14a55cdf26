// How an origin may be reached: every combination of scheme, network, address and public URL is either accepted, or
// refused with advice that leads to a configuration that is.

import { describe, expect, it } from 'vitest';
import { diagnosticLines, settingsOf } from '../reading.js';

const HOSTS = {
  'a name': 'server.internal',
  'a public address': '93.184.216.34',
  'a private address': '10.0.0.5',
  'a loopback address': '127.0.0.1',
} as const;
type Host = keyof typeof HOSTS;
type Owner = 'upstream' | 'issuer' | 'introspection' | 'credentials';

type Written = {
  readonly owner: Owner;
  readonly host: Host;
  readonly publicUrl: string;
  readonly scheme: string;
  readonly network: string | undefined;
  readonly plaintext: string | undefined;
};

const ENV = { SECRET: 'a-secret-of-the-client-of-this-test' };

function textOf({ owner, host, publicUrl, scheme, network, plaintext }: Written): string {
  const url = `${scheme}://${HOSTS[host]}:3001/x`;
  const keys = Object.entries({ network, plaintext }).filter(([, value]) => value !== undefined);
  const reach = keys.map(([key, value]) => `, ${key}: ${value}`).join('');
  const client = 'clientId: me, clientSecret: {env: SECRET}';
  const issuers: Partial<Record<Owner, string>> = {
    issuer: `{issuer: "${url}", algorithms: [ES256]${reach}}`,
    introspection: `{issuer: "https://idp.example.com", introspection: {${client}, endpoint: "${url}"}${reach}}`,
  };
  const upstreams: Partial<Record<Owner, string>> = {
    upstream: `{url: "${url}", issuers: [corp]${reach}}`,
    credentials: `{url: "https://mcp.example.org/mcp", issuers: [corp], credentials: {type: client-credentials, tokenEndpoint: "${url}", ${client}${reach}}}`,
  };
  return `version: 1
publicUrl: ${publicUrl}
keys: [{env: KEY}]
issuers:
  corp: ${issuers[owner] ?? '{issuer: "https://idp.example.com", algorithms: [ES256]}'}
upstreams:
  server: ${upstreams[owner] ?? '{url: "https://mcp.example.org/mcp", issuers: [corp]}'}
policies: {dir: policies}
`;
}

function linesOf(written: Written): readonly string[] {
  return diagnosticLines(textOf(written), { env: ENV });
}

/** The rule, independently of how it is checked. */
function mayBe({ host, scheme, network = 'public', plaintext }: Written): boolean {
  if (plaintext === 'accepted' && network === 'public') return false;
  const isNamed = host === 'a name';
  const isInNetwork =
    isNamed || host === `a ${network} address` || (network === 'private' && host === 'a public address');
  if (scheme === 'https') return isInNetwork;
  if (network === 'loopback') return isInNetwork;
  return network === 'private' && plaintext === 'accepted' && host !== 'a public address' ? isInNetwork : false;
}

/** Each way out that a line names, as the configuration that results. */
function advised(line: string, written: Written): readonly Written[] {
  const [, ...suggested] = line.split('; did you mean "');
  const ways = line.split(/, for one |, or use /);
  const changes = ways
    .map((way) =>
      Object.fromEntries([...way.matchAll(/"(network|plaintext): (\w+)"/g)].map(([, key, value]) => [key, value])),
    )
    .filter((keys) => Object.keys(keys).length > 0);
  const takesHttps = suggested.some((one) => one.startsWith('https://')) || line.endsWith('or use https');
  return [...changes, ...(takesHttps ? [{ scheme: 'https' }] : [])].map((keys) => ({
    ...written,
    ...keys,
  }));
}

/** Configurations in which following the advice ends without being accepted. */
function deadEnds(written: Written, steps: number): readonly string[] {
  const lines = linesOf(written);
  if (lines.length === 0) return [];
  const ways = lines.flatMap((line) => advised(line, written));
  const here = `${JSON.stringify(written)} ${lines.join()}`;
  if (ways.length === 0 || steps === 0) return [here];
  return ways.flatMap((way) => deadEnds(way, steps - 1));
}

const PUBLIC = 'https://mcp.example.com';
const LOOPBACK = 'http://127.0.0.1:8080';
const ROWS: readonly Written[] = (['upstream', 'issuer', 'introspection', 'credentials'] as const).flatMap((owner) =>
  (Object.keys(HOSTS) as Host[]).flatMap((host) =>
    [PUBLIC, LOOPBACK].flatMap((publicUrl) =>
      ['http', 'https'].flatMap((scheme) =>
        [undefined, 'public', 'private', 'loopback'].flatMap((network) =>
          [undefined, 'accepted'].map((plaintext) => ({
            owner,
            host,
            publicUrl,
            scheme,
            network,
            plaintext,
          })),
        ),
      ),
    ),
  ),
);

describe('[C-07, A-12] how an origin may be reached', () => {
  it('is all combinations', () => expect(ROWS).toHaveLength(4 * 4 * 2 * 2 * 4 * 2));

  it.each([PUBLIC, LOOPBACK])('is decided by scheme, network and address alone, at %s', (publicUrl) => {
    const rows = ROWS.filter((row) => row.publicUrl === publicUrl && row.owner !== 'introspection');
    const wrong = rows.filter((row) => (linesOf(row).length === 0) !== mayBe(row));
    expect(wrong).toEqual([]);
  });

  it('is one error where it is none', () => {
    const several = ROWS.filter((row) => row.owner !== 'introspection' && linesOf(row).length > 1);
    expect(several.map(linesOf)).toEqual([]);
  });

  it.each(['upstream', 'issuer', 'credentials'])(
    'leads from every error of an %s to a configuration that is accepted',
    (owner) => {
      const rows = ROWS.filter((row) => row.owner === owner);
      expect(rows.filter((row) => linesOf(row).length > 0).length).toBeGreaterThan(50);
      expect(rows.flatMap((row) => deadEnds(row, 3))).toEqual([]);
    },
  );

  it('of an introspection endpoint follows the keys of its issuer', () => {
    const row: Written = {
      ...{ owner: 'introspection', host: 'a private address', publicUrl: PUBLIC },
      ...{ scheme: 'http', network: 'private', plaintext: 'accepted' },
    };
    expect(linesOf(row)).toEqual([]);
    expect(linesOf({ ...row, plaintext: undefined })).toHaveLength(1);
  });

  it('stands in the settings', () => {
    const row: Written = {
      ...{ owner: 'upstream', host: 'a name', publicUrl: PUBLIC },
      ...{ scheme: 'http', network: 'private', plaintext: 'accepted' },
    };
    const found = settingsOf(textOf(row)).upstreams.get('server');
    expect(found).toMatchObject({ network: 'private', plaintext: 'accepted' });
  });

  it.each(['169.254.169.254', '[fd00:ec2::254]', '100.100.100.200', '168.63.129.16', '0.0.0.0', '[fe80::1]'])(
    'is never at %s',
    (address) => {
      for (const row of ROWS.filter(({ owner, host }) => owner === 'upstream' && host === 'a private address')) {
        const text = textOf(row).replace('10.0.0.5', address);
        const reason =
          'error the gateway never connects to this address: it is link-local, a metadata address or reserved';
        expect(diagnosticLines(text)).toEqual([expect.stringContaining(reason)]);
      }
    },
  );
});

describe('[A-13] the gateway itself', () => {
  const at = (url: string, listeners: string): readonly string[] =>
    diagnosticLines(
      textOf({
        ...{ owner: 'upstream', host: 'a loopback address', publicUrl: PUBLIC },
        ...{ scheme: 'http', network: 'loopback', plaintext: undefined },
      })
        .replace('http://127.0.0.1:3001/x', url)
        .replace('policies:', `listeners: ${listeners}\npolicies:`),
    ).map((line) => line.replace(/^\S+ error /, ''));
  const leads = (name: string): readonly string[] => [
    `this URL leads to the gateway itself: its listener "${name}" has this address`,
  ];

  it('is no upstream, under any name of loopback', () => {
    for (const host of ['127.0.0.1', 'localhost', 'x.localhost'])
      expect(at(`http://${host}:8080/mcp`, '{data: {host: 0.0.0.0}}')).toEqual(leads('data'));
    expect(at('http://[::1]:8080/mcp', '{data: {host: "::"}}')).toEqual(leads('data'));
    expect(at('http://[::1]:9464/mcp', '{ops: {host: localhost}}')).toEqual(leads('ops'));
    expect(at('http://127.0.0.1/mcp', '{data: {port: 80}}')).toEqual(leads('data'));
    expect(at('https://127.0.0.1/mcp', '{data: {port: 443}}')).toEqual(leads('data'));
  });

  it('is told from other servers of the machine', () => {
    expect(at('http://127.0.0.1:8081/mcp', '{data: {host: 0.0.0.0}}')).toEqual([]);
    expect(at('http://[::1]:8080/mcp', '{data: {host: 127.0.0.1}}')).toEqual([]);
    // Without `admin:` this listener does not open.
    expect(at('http://127.0.0.1:9090/mcp', '{}')).toEqual([]);
  });

  it('is no issuer', () => {
    const text = textOf({
      ...{ owner: 'issuer', host: 'a loopback address', publicUrl: PUBLIC },
      ...{ scheme: 'http', network: 'loopback', plaintext: undefined },
    }).replace(':3001', ':8080');
    expect(diagnosticLines(text)).toEqual([expect.stringContaining('leads to the gateway itself')]);
  });
});
