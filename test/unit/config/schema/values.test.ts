import { describe, expect, it } from 'vitest';
import {
  duration,
  named,
  type Parsed,
  record,
  type SettingsOf,
  secret,
  size,
  tag,
  text,
  textList,
  union,
} from '../../../../src/config/schema/definitions.js';
import { GATEWAY_SCHEMA } from '../../../../src/config/schema/gateway.js';
import {
  entriesOf,
  findMeanings,
  readable,
  resolveMeanings,
  textsOf,
} from '../../../../src/config/schema/values.js';

const MEMBER = record(
  'A member.',
  {
    url: text('Where.'),
    wait: duration('How long.', '30s'),
    most: size('How much.', '1KiB'),
    auth: union('type', 'How.', [
      record('Not at all.', { type: tag('none') }),
      record(
        'By a key.',
        { type: tag('key'), key: secret('The key.', 'tls-key') },
        { required: ['key'] },
      ),
    ]),
    groups: textList('Who.'),
  },
  { required: ['url', 'auth'] },
);
const FILE = record('A file.', { members: named('Members.', MEMBER, { default: {} }) });

const KEY = { type: 'key', key: { env: 'KEY' } } as const;
const VALID = { members: { one: { url: 'x', wait: '5m', most: '2KiB', auth: KEY } } };

describe('[C-01] a declared key', () => {
  it('is one type in the file and another in the settings', () => {
    const settings: SettingsOf<typeof FILE> = resolveMeanings(FILE, VALID, (path) =>
      path.join('/'),
    );
    const auth = { type: 'key', key: 'members/one/auth/key' } as const;
    expect(settings).toEqual({ members: { one: { url: 'x', waitMs: 300_000, most: 2048, auth } } });
    const one = settings.members['one'];
    // What has a default is there; what has none may be absent. The compiler holds this test to it.
    const [waitMs, groups]: [number, readonly string[] | undefined] = [
      one?.waitMs ?? 0,
      one?.groups,
    ];
    expect([waitMs, groups]).toEqual([300_000, undefined]);
    const written: Parsed<typeof MEMBER>['auth'] = { type: 'none' };
    expect(written.type).toBe('none');
  });

  it('is found with its path wherever it refers to something, also in a file that is wrong', () => {
    const found = findMeanings(FILE, {
      members: { a: { auth: KEY }, b: { auth: { key: 5 } }, c: 1 },
    });
    expect(found.map(({ path, meaning, value }) => [path.join('.'), meaning, value])).toEqual([
      ['members.a.auth.key', 'tls-key', { env: 'KEY' }],
      ['members.b.auth.key', 'tls-key', 5],
    ]);
  });

  it('is no secret whose value the published schema says more of than its form', () => {
    expect(JSON.stringify(GATEWAY_SCHEMA)).not.toMatch(/tls-key|gateway-key|meaning/);
  });
});

describe('[C-01] what can be read of a file that is wrong', () => {
  it('has no value of a wrong kind, and no key that is not in the file', () => {
    const read = readable(FILE, {
      members: {
        one: { url: 5, auth: [], groups: ['a', 1, ''] },
        two: null,
        three: { groups: 'a' },
      },
    });
    expect(
      entriesOf(read.members).map(([name, { url, auth, groups }]) => [
        name,
        url,
        auth,
        textsOf(groups),
      ]),
    ).toEqual([
      ['one', '', {}, [[0, 'a']]],
      ['two', undefined, undefined, []],
      ['three', undefined, undefined, []],
    ]);
    expect(read.members?.['constructor']).toBeUndefined();
    expect(readable(FILE, 'text')).toEqual({});
  });
});
