// What compiles and is warned of, and pinned names by the globs that match them: the same ones as by comparing each.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../../src/policy/compile/compile.js';
import type { PolicyContext, RuleDocument } from '../../../../src/policy/compile/documents.js';
import { PinnedNames } from '../../../../src/policy/compile/warnings.js';
import { compilePattern, matchesPattern } from '../../../../src/policy/patterns.js';
import { CONTEXT, catalog, compiled, document } from '../samples.js';

const ANYONE = { anyone: true } as const;
const ALLOW: RuleDocument = {
  id: 'a',
  effect: 'allow',
  who: { groups: ['eng'] },
  what: { upstreams: ['github'], tools: ['read', 'list_*'] },
};
const DENY: RuleDocument = { id: 'd', effect: 'deny', who: ANYONE, what: { tools: ['*'] } };

const PINS = catalog({
  tools: {
    read: {
      inputSchema: {
        type: 'object',
        required: ['path'],
        properties: {
          path: { type: 'string' },
          any: {},
          filter: {
            type: 'object',
            required: ['state'],
            properties: { state: { type: 'string' }, label: { type: 'string' } },
          },
        },
        additionalProperties: false,
      },
    },
    list_all: {
      inputSchema: { type: 'object', properties: { path: { type: ['string', 'array'] } } },
    },
  },
});

function warnings(rules: readonly RuleDocument[], isStrict = false) {
  const { diagnostics } = compiled([document(rules)], { pins: () => PINS, isStrict });
  return diagnostics.map(({ path, severity, message }) => `${path.join('.')} ${severity} ${message}`);
}

const NEVER = (id: string): string =>
  `warning this rule can never matter: "main/${id}" denies everything that it names, to everybody that it names`;

describe('[POL-09] a glob that grants what is dangerous', () => {
  const pinned = catalog({
    tools: {
      read: {},
      run_command: {},
      delete_issue: {},
      tidy: { definition: { annotations: { destructiveHint: true } } },
      wipe_disk: { state: 'blocked' },
    },
  });
  const found = (tools: readonly string[], ...more: readonly RuleDocument[]) => {
    const rule = { ...ALLOW, what: { upstreams: ['github'], tools } };
    const { diagnostics } = compiled([document([rule, ...more])], { pins: () => pinned, areGrantsChecked: true });
    return diagnostics.flatMap(({ path, message }) =>
      message.includes('also grants') ? [[path.join('.'), message]] : [],
    );
  };
  const ALL =
    'also grants github/run_command (runs commands), github/delete_issue (deletes), github/tidy (may destroy something by its annotation): name the tools that are meant instead, or name these as well; a deny rule or an approval for them is enough too';

  it('is named with the tools, by name and annotation', () => {
    expect(found(['*'])).toEqual([['rules.0.what.tools.0', `"*" ${ALL}`]]);
    expect(found(['read', 're:.*'])).toEqual([['rules.0.what.tools.1', `"re:.*" ${ALL}`]]);
    expect(found(['*_issue'])).toEqual([
      [expect.anything(), expect.stringContaining('also grants github/delete_issue')],
    ]);
  });

  it('is not, where the author has said that they are meant, kept away or asked about', () => {
    expect(found(['delete_*', 'read'])).toEqual([]);
    expect(found(['*', 'run_command', 'delete_issue', 'tidy'])).toEqual([]);
    const others = { id: 'x', who: ANYONE, what: { tools: ['run_*', 'tidy'] } };
    const approval = { by: 'reviewer', count: 1, expiresMs: 60_000, useMs: 60_000 } as never;
    const asks: RuleDocument = { ...others, effect: 'require', what: { tools: ['delete_*'] }, id: 'y', approval };
    expect(found(['*'], { ...others, effect: 'deny' }, asks)).toEqual([]);
    const ofOthers: RuleDocument = { ...others, effect: 'deny', who: { groups: ['ops'] } };
    expect(found(['*'], ofOthers, asks)).toEqual([[expect.anything(), expect.not.stringContaining('delete_issue')]]);
  });
});

describe('a deny of one exact resource', () => {
  it('is warned of where warnings count, because a server may have other names for it', () => {
    const deny = (resource: string): RuleDocument => {
      return { ...DENY, what: { upstreams: ['github'], resources: [resource] } };
    };
    const found = (rule: RuleDocument, isStrict = true) =>
      warnings([rule], isStrict).filter((line) => line.includes('by its URI'));
    expect(found(deny('repo://acme/x'))).toEqual([
      expect.stringContaining('rules.0.what.resources.0 warning "repo://acme/x" denies one'),
    ]);
    expect(found(deny('repo://acme/x'), false)).toEqual([]);
    expect(found(deny('repo://acme/x/**'))).toEqual([]);
    expect(found({ ...ALLOW, what: { upstreams: ['github'], resources: ['repo://acme/x'] } })).toEqual([]);
  });
});

describe('[P-18] identities that look like patterns', () => {
  it('are warned of, because they are compared exactly', () => {
    const who = { groups: ['eng-*', 'eng'], subjects: ['re:a'], clients: ['editor'] };
    expect(warnings([{ ...ALLOW, who }])).toEqual([
      'rules.0.who.groups.0 warning "eng-*" looks like a pattern, but identities are compared exactly',
      'rules.0.who.subjects.0 warning "re:a" looks like a pattern, but identities are compared exactly',
    ]);
  });

  it.each([
    ['mallory\u200b', '"mallory\\u{200b}" has characters that are not shown'],
    ['\ufeffmallory', '"\\u{feff}mallory" has characters that are not shown'],
    ['mal\u00adlory', '"mal\\u{ad}lory" has characters that are not shown'],
    ['mallory ', '"mallory " has blanks around it'],
    ['\u00a0mallory', '"\u00a0mallory" has blanks around it'],
    ['equipe\u0301', '"equipe\u0301" is not in the usual form of Unicode (NFC)'],
  ])('are warned of where a reviewer sees another name: %j', (name, odd) => {
    for (const who of [{ subjects: [name] }, { groups: [name] }, { clients: [name] }, { actors: [name] }])
      expect(warnings([{ ...ALLOW, effect: 'deny', who }]).filter((line) => line.includes('.who.'))).toEqual([
        `rules.0.who.${Object.keys(who)[0]}.0 warning ${odd}, but identities are compared exactly`,
      ]);
  });

  it.each(['équipe', 'Müller, Ada', '研究', 'https://idp.example/u/1'])('are not where it is plain: %s', (name) => {
    expect(warnings([{ ...ALLOW, who: { subjects: [name] } }])).toEqual([]);
  });
});

describe('[Q-03] hosts of links', () => {
  const linked = (effect: RuleDocument['effect'], ...url: readonly string[]) =>
    warnings([{ id: 'a', effect, who: { groups: ['eng'] }, what: { elicitation: { url } } }]);

  it.each(['com', 'co.uk', 'com.br', 'dev:8443'])('are warned of where anybody can register a name: *.%s', (suffix) => {
    const [domain] = suffix.split(':');
    expect(linked('allow', 'login.example.org', `*.${suffix}`)).toEqual([
      `rules.0.what.elicitation.url.1 warning "*.${suffix}" allows links to every host below "${domain}", where anybody can register a name: name the domains that are meant`,
    ]);
    expect(linked('deny', `*.${suffix}`)).toEqual([]);
  });

  it.each(['com', '*.acme.com', '*.acme.co.uk', '*.corp', '*.internal', '*.io.example'])(
    'are not warned of where they belong to somebody: %s',
    (host) => expect(linked('allow', host)).toEqual([]),
  );

  it.each(['*.192.0.2.1', '*.[2001:db8::1]', '*.192.0.2.1:8443'])(
    'are warned of where they match nothing: %s',
    (host) => {
      for (const effect of ['allow', 'deny'] as const)
        expect(linked(effect, host)).toEqual([
          `rules.0.what.elicitation.url.0 warning "${host}" matches nothing, because no name is below an address`,
        ]);
    },
  );
});

describe('[POL-09] rules that can never matter', () => {
  it('are those of which a deny without conditions covers everything', () => {
    expect(warnings([ALLOW, DENY])).toEqual([`rules.0 ${NEVER('d')}`]);
    expect(warnings([{ ...ALLOW, effect: 'require', maxResultBytes: 1 }, DENY])).toEqual([`rules.0 ${NEVER('d')}`]);
    const some: RuleDocument = {
      ...DENY,
      what: { tools: ['read', 'list_*'] },
      who: { groups: ['ops', 'eng'] },
    };
    expect(warnings([ALLOW, some])).toEqual([`rules.0 ${NEVER('d')}`]);
  });

  it.each<[string, RuleDocument]>([
    ['with a condition', { ...DENY, when: 'has(args.any)' }],
    ['of other callers', { ...DENY, who: { groups: ['ops'] } }],
    ['of one more key', { ...DENY, who: { groups: ['eng'], clients: ['editor'] } }],
    ['of other upstreams', { ...DENY, what: { upstreams: ['mail'], tools: ['*'] } }],
    ['of fewer tools', { ...DENY, what: { tools: ['list_*'] } }],
    ['of another kind', { ...DENY, what: { prompts: ['*'] } }],
  ])('are not those that a deny %s leaves something of', (_, deny) => {
    expect(warnings([ALLOW, deny]).filter((line) => line.includes('never matter'))).toEqual([]);
  });

  it('are those that another rule says', () => {
    expect(warnings([ALLOW, { ...ALLOW, id: 'b' }])).toEqual(['rules.1 warning this rule says the same as "main/a"']);
    expect(warnings([ALLOW, { ...ALLOW, id: 'b', scopes: ['s'] }])).toEqual([]);
  });

  it('are not judged by a deny that is not enforced', () => {
    const shadow = { ...document([DENY], 'next'), mode: 'shadow' } as const;
    const { diagnostics } = compiled([document([ALLOW]), shadow], { pins: () => PINS });
    expect(diagnostics.filter(({ message }) => message.includes('never matter'))).toEqual([]);
  });
});

describe('[POL-09] what an expression may not find', () => {
  const reading = (when: string, args?: RuleDocument['args']) =>
    warnings([{ ...ALLOW, what: { upstreams: ['github'], tools: ['read'] }, when, ...(args && { args }) }]);
  const missing = (text: string): string =>
    `rules.0.when warning ${text} may be missing, and reading it then is an error: ask has(${text})`;

  it('is an optional member of an argument', () => {
    expect(reading('has(args.filter) && args.filter.label == "x"')).toEqual([missing('args.filter.label')]);
    expect(reading('has(args.filter) && args.filter.state == "x"')).toEqual([]);
    expect(reading('has(args.filter) && has(args.filter.label) && args.filter.label == "x"')).toEqual([]);
    const args = { filter: { type: 'object', required: ['label'] } };
    expect(reading('args.filter.label == "x"', args)).toEqual([]);
  });

  it('is a claim', () => {
    expect(reading('principal.claims.tier == "gold"')).toEqual([missing('principal.claims.tier')]);
    expect(reading('has(principal.claims.tier) && principal.claims.tier == "gold"')).toEqual([]);
    expect(reading('"tier" in principal.claims && principal.claims.tier == "gold"')).toEqual([]);
    expect(reading('args.path == "principal.claims.tier"')).toEqual([]);
    expect(reading('has(principal.claims.tier.name) && principal.claims.tier.name == "gold"')).toEqual([]);
    expect(reading('has(principal.claims.tiers) && principal.claims.tier == "gold"')).toEqual([
      missing('principal.claims.tier'),
    ]);
    // However it is written.
    const name = 'https://id.example.com/tier';
    const written = 'principal.claims["https://id.example.com/tier"]';
    for (const read of [`${written} == "gold"`, `principal . claims [ '${name}' ] == "gold"`])
      expect(reading(read)).toEqual([
        `rules.0.when warning ${written} may be missing, and reading it then is an error: ask "${name}" in principal.claims`,
      ]);
    expect(reading(`"${name}" in principal.claims && ${written} == "gold"`)).toEqual([]);
    expect(reading('principal.claims["tier"] == "gold"')).toEqual([missing('principal.claims.tier')]);
  });
});

describe('[POL-09] prompts', () => {
  it('that an allow rule names by a glob are warned of', () => {
    const prompts = (rule: RuleDocument) => warnings([rule]).filter((line) => line.includes('for the user'));
    expect(prompts({ ...ALLOW, what: { prompts: ['answer_*'] } })).toHaveLength(1);
    expect(prompts({ ...ALLOW, what: { tools: ['*'], prompts: ['*'] } })).toEqual([]);
    expect(prompts({ ...DENY, what: { prompts: ['*'] } })).toEqual([]);
  });
});

describe('[POL-09] a pattern for paths', () => {
  const found = (pattern: string, effect: 'allow' | 'deny' = 'allow') =>
    warnings([{ ...ALLOW, effect, args: { path: { type: 'string', pattern } } }]).filter((line) =>
      line.includes('path.under'),
    );

  it.each([
    ['^/work/', '/work/../../etc/x'],
    ['^/work/.*$', '/work/../../etc/x'],
    ['^/work/[^?]+$', '/work/../../etc/x'],
    ['^reports/2024', 'reports/2024/../../../etc/x'],
    ['^\\./data\\/', './data/../../etc/x'],
    ['^~/notes/?', '~/notes/../../../etc/x'],
  ])('%s that admits %s is warned of', (pattern, example) => {
    const [line, ...more] = found(pattern);
    expect(line).toContain(`rules.0.args.path warning "${pattern}" admits ${example}:`);
    expect(more).toEqual([]);
    expect(found(pattern, 'deny')).toEqual([]);
  });

  it.each([
    '^/work/[A-Za-z0-9_-]+\\.txt$',
    '^/work/[a-z]+(/[a-z]+)*$',
    '^https://example\\.com/',
    '^repos/[^/]+/issues$',
    '^[a-z]+$',
    '^report',
    'work/',
  ])('%s is not', (pattern) => expect(found(pattern)).toEqual([]));
});

describe('[POL-09] a deny by type', () => {
  const deny = (tools: readonly string[], schema: { readonly [keyword: string]: string }): RuleDocument => {
    return { ...DENY, what: { upstreams: ['github'], tools }, args: { path: { ...schema } } };
  };
  const SECRET = { type: 'string', pattern: '^/etc/' };
  const passing = (rule: RuleDocument, isStrict = true) =>
    warnings([rule], isStrict).filter((line) => line.includes('another type'));

  it('is warned of where the tool admits another type, and warnings count', () => {
    expect(passing(deny(['list_all'], SECRET))).toEqual([
      'rules.0.args.path.type warning string is denied, and another type, such as an array, passes: leave "type" out, or name all types that the tool admits',
    ]);
    expect(passing(deny(['list_all'], SECRET), false)).toEqual([]);
  });

  it('is none where the definition admits nothing else, and where no type is named', () => {
    expect(passing(deny(['read'], SECRET))).toEqual([]);
    expect(passing(deny(['list_all'], { pattern: '^/etc/' }))).toEqual([]);
    expect(passing({ ...ALLOW, args: { path: SECRET } })).toEqual([]);
  });
});

const text = (unit: fc.Arbitrary<string>) => fc.string({ unit, maxLength: 5 });
const letter = fc.constantFrom('a', 'b', '_', '\u{1f600}', '\ud83d', 'é');

describe('[P-05] the names that match a pattern', () => {
  it('are those that match it when compared one by one', () => {
    const patterns = fc.oneof(
      text(fc.oneof(letter, fc.constant('*'))),
      fc.constantFrom('re:a.*', 're:(a|b)*', '*', '**', 'a*', '*a'),
    );
    const property = fc.property(
      fc.array(text(letter), { maxLength: 30 }),
      fc.array(patterns, { minLength: 1, maxLength: 5 }),
      (names, written) => {
        const pinned = new PinnedNames(names);
        for (const one of written) {
          const compiled = compilePattern(one, 'name');
          if (!compiled.ok) throw new Error(compiled.why);
          const { pattern } = compiled;
          const expected = [...new Set(names)].filter((name) => matchesPattern(pattern, name));
          expect([...pinned.matching(pattern)].sort()).toEqual(expected.sort());
        }
      },
    );
    expect(() => fc.assert(property)).not.toThrow();
  });
});

describe('[APR-75] reviewers', () => {
  const approval = { by: 'reviewer', count: 1, expiresMs: 600_000, useMs: 120_000 } as const;
  const rule = {
    id: 'ask',
    effect: 'require',
    who: { anyone: true },
    what: { tools: ['delete_*'] },
    approval,
  } as const satisfies RuleDocument;
  const found = (reviewing: PolicyContext['reviewing']) =>
    compilePolicies([document([rule])], { ...CONTEXT, reviewing }).diagnostics.map(
      ({ severity, message }) => `${severity} ${message}`,
    );

  it('are warned of where nobody can review, or where one person cannot be told', () => {
    expect(found(undefined)).toEqual([]);
    expect(found({ canReview: true, unmatched: [] })).toEqual([]);
    expect(found({ canReview: false, unmatched: [] })).toEqual([expect.stringContaining('warning nobody can review')]);
    expect(found({ canReview: true, unmatched: ['corp', 'staff'] })).toEqual([
      expect.stringMatching(/^warning .* at corp and staff: .*"login\.match"/),
    ]);
  });
});
