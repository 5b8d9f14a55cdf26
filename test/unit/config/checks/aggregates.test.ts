import { describe, expect, it } from 'vitest';
import { checkAggregateNames } from '../../../../src/gateway/config-version.js';
import { buildTables } from '../../../../src/gateway/listeners.js';
import type { Catalog } from '../../../../src/policy/definitions.js';
import { diagnosticLines, FILE, GOOD, LOCAL, lineOf, read, settingsOf } from '../reading.js';

const TWO = GOOD.replace(
  'policies:',
  '  web:\n    url: https://web.example.com/mcp\n    issuers: [corp]\n    scopesSupported: [w, s]\npolicies:',
).replace('issuers: [corp]\n', 'issuers: [corp]\n    scopesSupported: [g, s]\n');

function withAggregate(text: string, base = TWO): string {
  return `${base}endpoints:\n  all: {${text}}\n`;
}

const MEMBERS = 'upstreams: {github: {prefix: gh_}, web: {}}';

describe('[MRG-20] an endpoint in the configuration', () => {
  it('is a resource of its own over its members', () => {
    const { aggregates } = settingsOf(withAggregate(`path: /together, issuers: [corp], ${MEMBERS}`));
    expect(aggregates.get('all')).toEqual({
      name: 'all',
      path: '/together',
      resource: 'https://mcp.example.com/together',
      authentication: 'required',
      issuers: ['corp'],
      audiences: { corp: ['https://mcp.example.com/together'] },
      binding: 'none',
      scopesSupported: ['g', 's', 'w'],
      backends: [
        { upstream: 'github', prefix: 'gh_' },
        { upstream: 'web', prefix: 'web_' },
      ],
    });
    expect(settingsOf(TWO).aggregates.size).toBe(0);
  });

  it.each([
    ['none', 'any', 'any'],
    ['dpop', 'any', 'dpop'],
    ['none', 'dpop', 'dpop'],
  ])('demands what satisfies members of %s and %s: %s', (one, other, demanded) => {
    const base = TWO.replace('issuers: [corp]', `binding: ${one}\n    issuers: [corp]`).replace(
      'w, s]',
      `w, s]\n    binding: ${other}`,
    );
    const { aggregates } = settingsOf(withAggregate(`issuers: [corp], ${MEMBERS}`, base));
    expect(aggregates.get('all')?.binding).toBe(demanded);
  });

  it('is refused where one member wants proofs and another certificates', () => {
    const base = TWO.replace('issuers: [corp]', 'binding: mtls\n    issuers: [corp]').replace(
      'w, s]',
      'w, s]\n    binding: dpop',
    );
    expect(diagnosticLines(withAggregate(`issuers: [corp], ${MEMBERS}`, base)).join('\n')).toContain(
      'one member wants tokens bound by "dpop", another by "mtls"',
    );
  });

  it('has the path of its name, and may be open where all its members are', () => {
    const open = withAggregate('authentication: none, upstreams: {demo: {}}', LOCAL);
    expect(settingsOf(open).aggregates.get('all')).toMatchObject({
      path: '/all',
      resource: 'http://127.0.0.1:8080/all',
      issuers: [],
    });
  });

  it.each([
    [
      'a member is unknown',
      'issuers: [corp], upstreams: {gihub: {}}',
      'unknown upstream "gihub"; did you mean "github"?',
    ],
    ['it has no member', 'issuers: [corp], upstreams: {}', 'must not be empty'],
    ['it has no issuer', MEMBERS, 'the key "issuers" is missing: name the issuers whose tokens callers may use'],
    ['its issuer is unknown', `issuers: [crop], ${MEMBERS}`, 'unknown issuer "crop"; did you mean "corp"?'],
    [
      'it lets in without a token what its members do not',
      `authentication: none, ${MEMBERS}`,
      'the member "github" asks for a token',
    ],
    [
      'a prefix begins with another',
      'issuers: [corp], upstreams: {github: {prefix: w}, web: {}}',
      'names under this prefix could be those of "github": one prefix begins with the other',
    ],
    [
      'two prefixes differ in case alone',
      'issuers: [corp], upstreams: {github: {prefix: WEB_}, web: {}}',
      'one prefix begins with the other',
    ],
    [
      'a prefix is empty',
      'issuers: [corp], upstreams: {github: {prefix: ""}}',
      'expected a prefix of letters, digits and _ . -',
    ],
    [
      'its path is that of an upstream',
      `path: /web, issuers: [corp], ${MEMBERS}`,
      'the path "/web" belongs to the upstream "web"',
    ],
    ['its path is a bad one', `path: all, issuers: [corp], ${MEMBERS}`, 'a path starts with /; did you mean "/all"?'],
    [
      'it accepts the audience of a member',
      `issuers: [corp], audiences: {corp: ["https://mcp.example.com/web"]}, ${MEMBERS}`,
      'the upstream "web" accepts this audience of "corp" too',
    ],
    [
      'it maps audiences of an issuer that it does not accept',
      `issuers: [corp], audiences: {crop: [a]}, ${MEMBERS}`,
      '"crop" is not among the issuers of this endpoint; did you mean "corp"?',
    ],
  ])('is refused where %s', (_, text, message) => {
    expect(diagnosticLines(withAggregate(text)).join('\n')).toContain(message);
  });

  it('is refused where tokens would be shown to several issuers in turn', () => {
    const introspected = 'introspection: {clientId: gateway, clientSecret: {env: KEY}}';
    const base = TWO.replace('algorithms: [ES256]', introspected).replace(
      'upstreams:',
      `  other: {issuer: "https://other.example.com", ${introspected}}\nupstreams:`,
    );
    const lines = diagnosticLines(withAggregate(`issuers: [corp, other], ${MEMBERS}`, base)).join('\n');
    expect(lines).toContain('one issuer of an endpoint may be introspected, not several');
  });

  it('is refused where a member does not accept its issuer, or has its name', () => {
    const second = TWO.replace(
      'upstreams:',
      '  other: {issuer: "https://other.example.com", algorithms: [ES256]}\nupstreams:',
    );
    const text = withAggregate(`issuers: [corp, other], ${MEMBERS}`, second);
    expect(diagnosticLines(text).join('\n')).toContain('the member "github" does not accept this issuer');
    const named = `${TWO}endpoints:\n  web: {path: /x, issuers: [corp], ${MEMBERS}}\n`;
    expect(diagnosticLines(named).join('\n')).toContain('an upstream has this name too');
  });
});

describe('[MRG-19] the path of an endpoint', () => {
  it('takes what its strictest member takes, and places of each member', () => {
    const text = withAggregate(
      `issuers: [corp], ${MEMBERS}`,
      TWO.replace('/github.example.com/mcp\n', '/github.example.com/mcp\n    limits: {concurrency: 3}\n').replace(
        '/web.example.com/mcp\n',
        '/web.example.com/mcp\n    limits: {maxRequestBytes: 2KiB}\n',
      ),
    );
    const { routes, documents } = buildTables(settingsOf(text), 1, []);
    expect(routes.get('/all')).toMatchObject({
      upstream: 'all',
      maxRequestBytes: 2048,
      backends: new Map([
        ['github', { concurrency: 3, concurrencyPerCaller: 2 }],
        ['web', { concurrency: 100, concurrencyPerCaller: 50 }],
      ]),
    });
    const document = documents.get('/.well-known/oauth-protected-resource/all') ?? '';
    expect(JSON.parse(document)).toMatchObject({ scopes_supported: ['g', 's', 'w'] });
  });

  it('is as local as its members where nobody authenticates', () => {
    const open = withAggregate('authentication: none, upstreams: {demo: {}}', LOCAL);
    const { refusesForwarded, documents, hosts } = buildTables(settingsOf(open), 1, [], ['box']);
    expect(hosts).toContain('box:1');
    expect(buildTables(settingsOf(open), 1, []).hosts).not.toContain('box:1');
    expect(buildTables(settingsOf(GOOD), 1, [], ['box']).hosts).not.toContain('box:1');
    expect(refusesForwarded('all')).toBe(true);
    expect(documents.has('/.well-known/oauth-protected-resource/all')).toBe(false);
  });
});

describe('[MRG-14] names that look alike under prefixes', () => {
  function pinned(names: readonly string[]): Catalog {
    return {
      ...{ upstream: 'x', mode: 'strict', isStopped: false, instructions: undefined },
      undeclaredArguments: 'declared',
      statusOf: (_kind, name) => ({
        state: name.startsWith('new_') ? 'pending' : 'absent',
        pinned: undefined,
        observed: undefined,
      }),
      names: (kind) => (kind === 'tool' ? names : []),
    };
  }

  it('are refused at the place of their endpoint, what is not approved aside', () => {
    const text = withAggregate('issuers: [corp], upstreams: {github: {prefix: git_}, web: {prefix: github_}}');
    const { outline } = read(text);
    const catalogs = new Map([
      ['github', pinned(['hub_search', 'new_x', 'status'])],
      ['web', pinned(['search', 'new_x'])],
    ]);
    const diagnostics = checkAggregateNames(
      outline ?? { file: FILE, aggregates: [], upstreams: [] },
      (upstream) => catalogs.get(upstream),
      'error',
    );
    expect(diagnostics.map(lineOf)).toEqual([
      '19:3 error names that look alike: "git_hub_search" of github, "github_search" of web',
    ]);
    expect(diagnostics[0]?.file).toBe(FILE);
  });
});
