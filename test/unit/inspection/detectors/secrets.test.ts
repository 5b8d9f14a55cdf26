// Secrets by shape and by name, the samples of documentation that must pass, and the shapes of the patterns
// themselves, which bound how long they can run. A real secret is never taken for a sample, whatever word stands beside
// it, and is removed from its first to its last character; what only begins like a secret passes.

import { describe, expect, it } from 'vitest';
import { PHRASES } from '../../../../src/inspection/detectors/injection-phrases.js';
import { SECRET_FORMATS, type SecretFormat } from '../../../../src/inspection/detectors/secret-formats.js';
import { findAssignments, findFormats, findSecrets } from '../../../../src/inspection/detectors/secrets.js';
import { findSensitive } from '../../../../src/inspection/detectors/text-sanitizer.js';
import { formatsIn } from '../../../../src/inspection/prefilter/anchors.js';
import { inspectMessage } from '../../../../src/inspection/responses.js';
import { type Pick, randomValues } from '../../../support/secrets.js';
import { awsKey, githubToken, HEX, jwt, noise, UPPER } from '../../../support/seeded-values.js';
import { profile, textResult } from '../samples.js';

const SECRETS = { secrets: true, pii: [] } as const;

/** One made-up secret of each kind. Prefixes are cut so that no scanner takes this file for a leak. */
const EXAMPLES: readonly (readonly [kind: string, text: string])[] = [
  ['aws-access-key', awsKey('a')],
  ['aws-secret-key', `aws_secret_access_key = ${noise('b', 40)}`],
  ['google-api-key', `AI${'za'}${noise('c', 35)}`],
  ['google-oauth-secret', `GOC${'SPX'}-${noise('d', 28)}`],
  ['google-oauth-token', `ya${'29'}.${noise('e', 60)}`],
  ['azure-storage-key', `AccountKey=${noise('f', 86)}==`],
  ['signed-link', `https://x.blob.core.windows.net/c?se=1&sig=${noise('g', 43)}%3D`],
  ['azure-client-secret', `${noise('h', 3)}8Q~${noise('h', 34)}`],
  ['digitalocean-token', `dop_${'v1'}_${noise('i', 64, HEX)}`],
  ['heroku-key', `HEROKU_API_KEY=${uuid('j')}`],
  ['databricks-token', `da${'pi'}${noise('k', 32, HEX)}`],
  ['vault-token', `hv${'s'}.${noise('l', 28)}`],
  ['terraform-token', `${noise('m', 14)}.atlas${'v1'}.${noise('m', 67)}`],
  ['doppler-token', `dp.${'pt'}.${noise('n', 43)}`],
  ['github-token', githubToken('o')],
  ['github-token', `github_${'pat'}_${noise('p', 22)}_${noise('q', 59)}`],
  ['gitlab-token', `gl${'pat'}-${noise('r', 20)}`],
  ['npm-token', `np${'m'}_${noise('s', 36)}`],
  ['pypi-token', `py${'pi'}-${noise('t', 100)}`],
  ['linear-key', `lin_${'api'}_${noise('u', 40)}`],
  ['notion-token', `nt${'n'}_${noise('v', 46)}`],
  ['atlassian-token', `ATA${'TT3'}${noise('w', 180)}`],
  ['newrelic-key', `NR${'AK'}-${noise('x', 27, UPPER)}`],
  ['datadog-key', `DD_API_KEY: ${noise('y', 32, HEX)}`],
  ['anthropic-key', `sk-${'ant'}-api03-${noise('z', 90)}`],
  ['openai-key', `sk-${'proj'}-${noise('aa', 48)}`],
  ['huggingface-token', `h${'f'}_${noise('ab', 34)}`],
  ['slack-token', `xo${'xb'}-${noise('ac', 12, '0123456789')}-${noise('ac', 24)}`],
  ['slack-webhook', `https://hooks.slack.com/services/T${noise('ad', 8)}/B${noise('ae', 8)}/${noise('af', 24)}`],
  ['discord-webhook', `https://discord.com/api/webhooks/${noise('ag', 18, '123456789')}/${noise('ah', 68)}`],
  ['discord-token', `M${noise('ai', 25)}.${noise('aj', 6)}.${noise('ak', 38)}`],
  ['telegram-token', `${noise('al', 9, '123456789')}:A${'A'}${noise('am', 33)}`],
  ['twilio-key', `S${'K'}${noise('an', 32, HEX)}`],
  ['sendgrid-key', `S${'G'}.${noise('ao', 22)}.${noise('ap', 43)}`],
  ['mailgun-key', `ke${'y'}-${noise('aq', 32, HEX)}`],
  ['mailchimp-key', `${noise('ar', 32, HEX)}-us12`],
  ['stripe-key', `sk_${'live'}_${noise('as', 24)}`],
  ['shopify-token', `shp${'at'}_${noise('at', 32, HEX)}`],
  ['square-token', `sq0${'atp'}-${noise('au', 22)}`],
  ['private-key', pem('av')],
  ['age-key', `AGE-SECRET-${'KEY'}-1${noise('aw', 58, UPPER)}`],
  ['jwt', jwt('ax')],
  ['bearer-token', `Authorization: Bearer ${noise('ay', 40)}`],
  ['url-credentials', `postgres://app:${noise('az', 14)}@db.internal:5432/app`],
  ['connection-password', `Server=db;User=app;Password=${noise('ba', 12)};`],
  ['basic-credentials', `Authorization: Basic ${btoa(`app:${noise('bd', 12)}`)}`],
  ['basic-credentials', `_auth=${btoa(`app:${noise('be', 12)}`)}`],
  ['netrc-password', `machine db.example login app password ${noise('bf', 12)}`],
  ['netrc-password', `default login app password ${noise('bg', 12)}`],
  ['pgpass-password', `db.example:5432:orders:app:${noise('bh', 12)}`],
  ['command-password', `curl -u app:${noise('bi', 12)} https://x.example`],
  ['cookie', `Cookie: sid=${noise('bj', 20)}`],
  ['aws-secret-key', `${awsKey('bk')} ${noise('bk', 40)}`],
  ['secret', `the password of the database is ${noise('bl', 12)}`],
  ['secret', `API key: ${noise('bm', 24)}`],
  ['secret', `export APP_PASSWORD='${noise('bb', 12)}'`],
  ['secret', `{"clientSecret": "${noise('bc', 24)}"}`],
];

function uuid(seed: string): string {
  const hex = noise(seed, 32, HEX);
  return [0, 8, 12, 16, 20, 32].reduce(
    (text, at, index, ends) => (index === 0 ? text : `${text}${index > 1 ? '-' : ''}${hex.slice(ends[index - 1], at)}`),
    '',
  );
}

function pem(seed: string): string {
  const lines = Array.from({ length: 6 }, (_, line) => noise(`${seed}${line}`, 64));
  const label = `PRIVATE ${'KEY'}`;
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----`;
}

describe('secrets', () => {
  it.each(EXAMPLES)('[I-01] %s is found inside prose and inside JSON', (kind, secret) => {
    const prose = `Here it is: ${secret} and nothing else.`;
    expect(findSensitive(prose, SECRETS).map((hit) => hit.kind)).toContain(kind);
    const json = JSON.stringify({ note: secret });
    const inner = JSON.stringify({ wrapped: json });
    expect(findSensitive(json, SECRETS)).not.toEqual([]);
    expect(findSensitive(inner, SECRETS)).not.toEqual([]);
  });

  it('[I-01] a key behind one whose end is broken off is found whole', () => {
    const label = `PRIVATE ${'KEY'}`;
    const key = `-----BEGIN ${label}-----\n${noise('a', 64)}\n${noise('b', 64)}\n-----END ${label}-----`;
    for (const end of [`-----END ${label}`, `-----END ${label} `, '-----END ']) {
      const text = `-----BEGIN ${label}-----\n${end}${key}`;
      const [last] = findSensitive(text, SECRETS).slice(-1);
      expect([last?.start, last?.end]).toEqual([text.length - key.length, text.length]);
    }
  });

  it('[I-01] there are at least fifty kinds, and every one has an example or a sibling', () => {
    expect(SECRET_FORMATS.length).toBeGreaterThanOrEqual(50);
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(45);
  });

  it.each([
    'Set GITHUB_TOKEN to <your-token> before you start.',
    'export OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx',
    'api_key: YOUR_API_KEY_GOES_HERE_123',
    `password: $${'{'}DB_PASSWORD}`,
    `aws_access_key_id = ${['AKIA', 'IOSFODNN7EXAMPLE'].join('')}`,
    'postgres://user:password@localhost/db',
    'token: string, the token of the next page',
    'nextPageToken=CAUQAA1b2c3d4e5f6',
    'The task-management-service-for-everyone-2 is down.',
    'sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad',
    'id 550e8400-e29b-41d4-a716-446655440000',
    'max_tokens: 4096, temperature: 0.7',
  ])('[I-02] sample or harmless text passes: %s', (text) => {
    expect(findSensitive(text, SECRETS)).toEqual([]);
  });

  it('[I-01] are found behind the names of members in JSON in JSON, four layers deep', () => {
    for (const [name, value] of [
      ['aws_secret_access_key', noise('aws', 40)],
      ['password', noise('password', 16)],
      ['heroku_api_key', uuid('heroku')],
      ['dd_api_key', noise('dd', 32, HEX)],
    ] as const) {
      let text = JSON.stringify({ [name]: value });
      for (let layer = 1; layer < 5; layer++) {
        const log = `log: ${text} end`;
        const kept = findSensitive(log, { secrets: true, pii: [] }).reduceRight(
          (left, { start, end }) => left.slice(0, start) + left.slice(end),
          log,
        );
        expect([name, layer, kept.includes(value)]).toEqual([name, layer, false]);
        text = JSON.stringify({ inner: text });
      }
    }
  });

  it('[I-03] every pattern is bounded: no open repeat, no repeat of a repeat, no backreference', () => {
    const patterns = [...SECRET_FORMATS.map((format) => format.pattern), ...PHRASES.map((cue) => cue.phrase)];
    expect(patterns.length).toBeGreaterThan(70);
    for (const { source } of patterns) expect([source, shapeProblems(source)]).toEqual([source, []]);
  });

  it('[I-03] every pattern reads a bounded stretch from each place where its anchor stands', () => {
    for (const { pattern, kind } of SECRET_FORMATS) {
      const bounds = [...pattern.source.matchAll(/\{(?:\d+,)?(\d+)\}/g)].map((match) => Number(match[1]));
      // Their parts end where a character stands that none of them holds: each is read once.
      if (kind === 'jwt' || kind === 'url-credentials') continue;
      const longest = bounds.reduce((sum, bound) => sum + bound, pattern.source.length);
      expect([kind, longest < 16_384]).toEqual([kind, true]);
    }
  });

  it('[I-04] runs only the formats whose anchors stand in the text, and misses none by it', () => {
    for (const [, secret] of EXAMPLES) {
      const everywhere = findSecrets(secret);
      const anchored = findSecrets(secret, undefined, formatsIn(secret));
      expect(anchored).toEqual(everywhere);
    }
    expect(formatsIn('A quiet sentence about nothing.').length).toBeLessThan(5);
  });
});

/** Open repeats (`*`, `+`, `{n,}`), quantified groups that hold quantifiers with `max > 8`, backreferences. */
function shapeProblems(source: string): string[] {
  const problems: string[] = [];
  const bare = source.replace(/\\./g, 'e').replace(/\[[^\]]*\]/g, 'c');
  if (/[*+]/.test(bare)) problems.push('open repeat');
  if (/\{\d+,\}/.test(bare)) problems.push('open repeat');
  if (/\\[1-9]/.test(source)) problems.push('backreference');
  for (const match of bare.matchAll(/\([^()]*\{\d+,?\d*\}[^()]*\)\{\d+,(\d+)\}/g)) {
    if (Number(match[1]) > 8) problems.push('repeat of a repeat');
  }
  return problems;
}

/** Values of each format; `SECRET_VALUES=1000000` takes about half an hour of one core. */
const VALUES = Number(process.env['SECRET_VALUES'] ?? 10_000);
const VALUES_A_TEXT = 10_000;
const MAX_MS = 5_000 * Math.max(1, VALUES / VALUES_A_TEXT);
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Numbers that look random and are the same in every run (xorshift). */
function createPick(seed: number): Pick {
  let state = seed;
  return (bound) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % bound;
  };
}

/** What a pattern takes only behind something else. */
const COMPLETE: { readonly [kind: string]: RegExp } = {
  jwt: /eyJ[A-Za-z0-9_-]{10,16}\.eyJ[A-Za-z0-9_-]{10,14}\.[A-Za-z0-9_-]{20,24}/,
  'terraform-token': /[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}/,
};

const RANDOM = SECRET_FORMATS.filter(({ check }) => check === 'random');
const named = (format: SecretFormat): [string, SecretFormat] => [
  `${format.kind} ${format.pattern.source.slice(0, 24)}`,
  format,
];

function makerOf({ kind, pattern }: SecretFormat, pick: Pick): () => string {
  return randomValues(COMPLETE[kind] ?? pattern, pick);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function pemKey(body: string): string {
  const label = `PRIVATE ${'KEY'}`;
  return `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----`;
}

/** How many of the values that `make` makes are not found. */
function missesOf(make: () => string, between: string, find: (text: string) => number): number {
  let misses = 0;
  for (let left = VALUES; left > 0; left -= VALUES_A_TEXT) {
    const count = Math.min(left, VALUES_A_TEXT);
    misses += count - find(Array.from({ length: count }, make).join(between));
  }
  return misses;
}

function lines(pick: Pick, count: number): string[] {
  return Array.from({ length: count }, () => Array.from({ length: 64 }, () => BASE64[pick(64)]).join(''));
}

describe('values made at random', () => {
  it.each(RANDOM.map(named))(
    '[I-43] are no samples: %s',
    (_name, format) => {
      const make = makerOf(format, createPick(format.pattern.source.length * 7919));
      expect(missesOf(make, '\n', (text) => findFormats(text, [format]).length)).toBe(0);
    },
    MAX_MS,
  );

  const ofKind = (kind: string): readonly SecretFormat[] => SECRET_FORMATS.filter((format) => format.kind === kind);
  const pick = createPick(4711);
  const makePassword = randomValues(/[A-Za-z0-9]{8,12}[a-z][0-9]/, pick);
  const inContext: readonly (readonly [string, () => string, (text: string) => number])[] = [
    [
      'keys in PEM',
      () => `${pemKey(lines(pick, 2).join('\n'))}\n`,
      (text) => findFormats(text, ofKind('private-key')).length,
    ],
    ['values behind names', () => `password = "${makePassword()}"`, (text) => findAssignments(text).length],
    [
      'passwords in URLs',
      () => `postgres://app:${makePassword()}@db/app`,
      (text) => findFormats(text, ofKind('url-credentials')).length,
    ],
    [
      'passwords in connection strings',
      () => `Server=db;Password=${makePassword()};`,
      (text) => findFormats(text, ofKind('connection-password')).length,
    ],
  ];
  it.each(inContext)(
    '[I-43] are no samples as %s',
    (_what, make, find) => {
      expect(missesOf(make, '\n', find)).toBe(0);
    },
    MAX_MS,
  );
});

describe('a random value that looks made of words', () => {
  it.each([
    ['short pieces between signs', `gl${'ptt'}-`, ['2c=gkum', '9_vwqu', 'ywvqb'].join('-')],
    ['pieces in both cases', `dckr_${'pat'}_`, ['NW_Fyim', 'XceebKy_icc_j'].join('-')],
    ['long pieces in both cases', `1/${'/0'}`, ['SADaroTsllcAFLYSaQugnug', 'BFYSWOW'].join('-')],
    ['a repeat in another case', 'password = ', ['pOk1Tk', '1Td8'].join('')],
    ['few different characters', 'password = ', ['zRliiR', 'Ril6'].join('')],
    ['a piece in both cases twice', 'password = ', ['d9lCKh', 'lCKh6'].join('')],
  ])('[I-43] is no sample: %s', (_what, prefix, value) => {
    const text = `${prefix}${value}`;
    expect(findSensitive(text, SECRETS)).toMatchObject([{ end: text.length }]);
  });
});

const GLUED: readonly (readonly [how: string, glue: (secret: string) => string])[] = [
  ['a word behind', (secret) => `${secret}example`],
  ['a word behind a dash', (secret) => `${secret}-your-example`],
  ['a word before', (secret) => `example${secret}`],
  ['words on both sides', (secret) => `my-todo-${secret}_xxxx_null`],
  ['a capital before', (secret) => `EXAMPLE${secret}PLACEHOLDER`],
];

describe('a word beside a secret', () => {
  const pick = createPick(31337);
  const secrets: readonly (readonly [string, string])[] = [
    ['github', githubToken('glued')],
    ['aws', awsKey('glued')],
    ['jwt', jwt('glued')],
    ['anthropic', `sk-${'ant'}-${noise('glued', 60)}`],
    ['openai', `sk-${'proj'}-${noise('glued', 60)}`],
    ['stripe', `sk_${'live'}_${noise('glued', 24)}`],
    ['slack', `xo${'xb'}-${noise('glued', 12, '0123456789')}-${noise('glued', 24)}`],
    ['hugging face', `h${'f'}_${noise('glued', 34)}`],
    ['gitlab', `gl${'pat'}-${noise('glued', 20)}`],
    ['discord', `M${noise('ai', 25)}.${noise('aj', 6)}.${noise('ak', 38)}`],
    ['twilio', `S${'K'}${noise('glued', 32, '0123456789abcdef')}`],
  ];

  it.each(secrets)('[I-43] makes no sample of it: %s', (_what, secret) => {
    for (const [how, glue] of GLUED) {
      const text = `see ${glue(secret)} there`;
      const at = text.indexOf(secret);
      const [hit] = findSensitive(text, SECRETS);
      expect([how, hit !== undefined && hit.start <= at]).toEqual([how, true]);
      expect([how, (hit?.end ?? 0) >= at + secret.length]).toEqual([how, true]);
    }
  });

  it('[I-43] makes no sample of a key in PEM, in a line of its own or within one', () => {
    const [one = '', other = '', third = ''] = lines(pick, 3);
    for (const body of [
      [one, 'example', other, third],
      ['example', one, other, third],
      [`${one.slice(0, 30)}xxxx${one.slice(30)}`, other, 'todo...', third],
      [one, `${other.slice(0, 20)} example ${other.slice(20)}`, third, 'your-example'],
    ]) {
      const text = pemKey(body.join('\n'));
      expect(findSensitive(text, SECRETS)).toMatchObject([{ start: 0, end: text.length }]);
    }
  });

  it('[I-43] makes no sample of a value behind a name', () => {
    for (const value of [`${noise('n', 12)}example`, `my-${noise('n', 12)}`, `todo${noise('n', 12)}null`]) {
      expect(findSensitive(`password: ${value}`, SECRETS)).not.toEqual([]);
      expect(findSensitive(`postgres://app:${value}@db/app`, SECRETS)).not.toEqual([]);
      expect(findSensitive(value, SECRETS, 'api_key')).not.toEqual([]);
    }
  });
});

describe('a secret that is longer than its pattern', () => {
  const LONG = 20_000;

  it.each(RANDOM.filter(({ pattern }) => !pattern.source.includes('(?!')).map(named))(
    '[I-44] is found to its end: %s',
    (_name, format) => {
      const pick = createPick(99);
      const value = makerOf(format, pick)();
      const goesOn = randomValues(format.tail, pick);
      let text = value;
      while (text.length < LONG) text += goesOn();
      const [hit] = findFormats(`${text}\n.`, [format]);
      expect(hit?.end).toBe(text.length);
    },
  );

  it.each([
    ['a value behind a name', `password = ${noise('long', LONG)}`],
    ['a password in a URL', `https://user:${noise('long', 9000)}@host.example/path`],
    ['a token with a long header and long claims', `eyJ${noise('h', 9000)}.eyJ${noise('c', LONG)}.${noise('s', 9000)}`],
    ['a key in PEM', pemKey(lines(createPick(5), 300).join('\n'))],
    ['a key in PEM without an end', pemKey(lines(createPick(6), 300).join('\n')).replace(/\n-----END.*/, '')],
  ])('[I-44] is found to its end: %s', (_what, secret) => {
    const hits = findSensitive(`${secret} "`, SECRETS);
    const end = secret.length - (secret.startsWith('https') ? '@host.example/path'.length : 0);
    expect(hits.at(-1)?.end).toBeGreaterThanOrEqual(end);
    expect(hits.length).toBe(1);
  });

  it('[I-44] behind a member name is removed whole', () => {
    const value = noise('member', 5000);
    expect(findSensitive(value, SECRETS, 'client_secret')).toMatchObject([{ start: 0, end: 5000 }]);
  });

  it('[I-44] is removed whole where blocks or messages cut it', () => {
    const secrets = [
      `sk-${'ant'}-${noise('cut', 900)}`,
      `eyJ${noise('ch', 2000)}.eyJ${noise('cc', 2000)}.${noise('cs', 900)}`,
      pemKey(lines(createPick(8), 40).join('\n')),
    ];
    for (const secret of secrets) {
      for (const share of [0.2, 0.5, 0.9]) {
        const at = Math.floor(secret.length * share);
        const [one, other] = [secret.slice(0, at), secret.slice(at)];
        const combined = inspectMessage({ ...textResult(one, other), profile });
        const first = inspectMessage({ ...textResult(one), profile });
        const previousTail = first.kind === 'withhold' ? undefined : first.previousTail;
        const second = inspectMessage({ ...textResult(other), profile, previousTail });
        for (const outcome of [combined, second]) {
          const left = outcome.kind === 'changed' ? outcome.text : outcome.kind;
          expect([share, left.includes(secret.slice(-30, -1))]).toEqual([share, false]);
          expect(left).not.toBe('clean');
        }
      }
    }
  });
});

describe('what only begins like a secret', () => {
  it.each([
    'https://example.com/xoxo-love-and-kisses-to-everyone-2024',
    'hf_TransformersAutoModelForCausalLM2',
    'div.sk-toggleable__content-label-arrow-2',
    'use sk-estimator-html-representation-2 here',
    'task-550e8400-e29b-41d4-a716-446655440000',
    'disk-0a1b2c3d4e5f67890abcdef',
    'token = base64.b64decode(payload)',
    'token = get_token_v2(client)',
    'secret = crypto.randomBytes32(16)',
    'access_token = self.oauth2.fetch_token(url)',
    'api_key=config.api_key_v2',
    'password: Uint8Array',
    'token: Sha256Digest',
    'password = process.env.DB_PASSWORD_2',
    'pypi-publish-action-for-github-workflows-with-trusted-publishing-2',
    'redis://:$REDIS_AUTH@host',
    'xoxb-your-token-goes-here-123',
    'sk-1234567890abcdef1234567890abcdef',
    `gh${'p'}_exampleexampleexampleexampleexample1`,
    pemKey('Put your private key here, in PEM form, with all of its lines as the tool has written them'),
  ])('[I-45] passes: %s', (text) => {
    expect(findSensitive(text, SECRETS)).toEqual([]);
  });
});

describe('a name of something that is no secret', () => {
  it.each([
    'PKCS12SecretKey = "keystore.p12"',
    '"privateKey": "tls.server2.key"',
    'Token: "http-01-token",',
    'secret: web-01-tls-cert',
    'credentials: "prod-db-01-creds"',
    'privateKey: server2.x509.2024.pem',
    'password: "password-for-30001"',
    "password: 'real-secret-6-levels'",
    'annotatedSecret := corev1.Secret{',
    'TSIGKeySecret: rfc2136TestTsigSecret,',
    'Token:   acmeChallengeHTTP01.Token,',
    'issueCredential: openid4vciIssueCredential,',
    'password = config.get("db1")',
    'password = settings.db2.password',
    `HEROKU_APP_ID=${uuid('app')}`,
    `"heroku_uuid": "${uuid('own')}"`,
    `Lock-Token: urn:uuid:${uuid('lock')}`,
    'SecretKey: "SERVICE_NAME-2"',
    'secretKey: MY_ENV_VAR1\n',
    '- secretKey: test-login-1\n',
    'match: {secretKey: source-key2}',
    '- secret: root-ca5\n',
    'sts-token: YOUR_STS_TOKEN_IN_BASE64 # Optional',
    'secretKey: password_encrypted_base64\n',
    'sessionToken: IQoJ...Ek8=\n',
    'password: "urn:k8s:secret:redis:password"',
    'clientSecret: urn:k8s:my-secret:my-secret:clientSecret\n',
    'password: "op://vault/item-2/password"',
    'arn:aws:secretsmanager:us-east-1:123456789012:secret:foo-bar5-Robbgh',
    'secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbC1eF\n',
    'SecretKey: targetSecretKey1,\n',
    'secretKey: []byte(expectedVal),\n',
    'WorkloadCredentials: &esv1.WorkloadCredentialsProvider{},\n',
    'ClientSecret = esv1meta.SecretKeySelector{}\n',
    'case *corev1.Secret:\n\t\t\tk8sObjects = append(k8sObjects, o)',
    '"pkcs12certPass": pkcs12certPass,',
    'hashed_password: "fakehashedsecret2"',
    `image: registry.example.com/secret:v1.2.31@sha256:${noise('image', 64, HEX)}`,
    'error presenting token: gandiv5: unexpected zone',
    'curl -U daniel:secr3t -x proxy:80 http://x.example',
  ])('passes: %s', (text) => {
    expect(findSecrets(text)).toEqual([]);
  });

  it.each(['password', 'token', 'root', 'mypassword', 'TOKEN was templated', 'my-client-secret\n'])(
    'passes as base64, as in manifests of Kubernetes: %s',
    (sample) => {
      const encoded = Buffer.from(sample).toString('base64');
      expect(findSecrets(`  password: ${encoded}\n`)).toEqual([]);
      expect(findSecrets(`{"token":"${encoded}"}`)).toEqual([]);
    },
  );

  it.each([
    ['a random stem', `secret = "${noise('stem', 16)}.json"`],
    ['a random part', `token: "http-01-${noise('part', 10)}"`],
    ['no expression', `PASSWORD=${noise('plain', 12)}Secret\n`],
    ['random letters before a word', `SECRET_KEY=hxqj${noise('V', 5)}47ovPass; Path=/`],
    ['a quoted value', `password: "${noise('quoted', 8)}.${noise('other', 8)}",`],
    ['words that somebody joined', `password: ${['velvet', 'garden', '99', 'walnut'].join('-')}`],
    ['words joined by points', `client_secret=${['velvet', 'garden', '947'].join('.')}`],
    ['words and a long number', `{"token":"${['velvet', 'garden', '50167'].join('_')}"}`],
    ['letters among digits before a suffix', `token: "685${noise('ending', 5)}1i.pem"`],
    ['words and a number in base64', `token: ${base64(['velvet', 'garden', '947'].join('.'))}\n`],
    ['a password in base64', `password: ${base64(noise('inner', 10))}\n`],
    ['random letters in base64', `password: ${base64(`hxqj7${noise('letters', 7)}`)}\n`],
    ['a random part of an address', `password: urn:k8s:secret:${noise('place', 12)}`],
    ['a random part of a key name', `secretKey: MY_${noise('key', 12, UPPER)}\n`],
    ['a random name in an address of AWS', `secret: arn:aws:s3:::${noise('bucket', 20)}\n`],
    ['a random value that is cut late', `token: ${noise('cut', 12)}...\n`],
    ['a random argument', `token: f(${noise('argument', 20)}),\n`],
    ['the key of an application', `HEROKU_APP_KEY=${uuid('key')}`],
  ])('does not hide %s', (_what, text) => {
    expect(findSecrets(text)).not.toEqual([]);
  });
});

describe('a prefix within encoded bytes', () => {
  const token = `EA${'A'}${noise('fb', 90)}`;
  const bytes = (size: number): string => Buffer.from(noise('font', size)).toString('base64');

  it.each([
    ['behind a long run', `url(data:font/woff2;base64,${bytes(90)}${token}${bytes(30)})`],
    ['soon behind the comma', `data:font/woff2;base64,d09GM${token}`],
    ['behind a plus', `"${bytes(90)}+${token}"`],
    ['before a plus', `"${token}+${noise('next', 40)}"`],
    ['among zeros', `"2QEAANoB${'EA'}A${'AN4BAADfAQAA4AEA'.repeat(6)}"`],
  ])('is no token %s', (_where, text) => {
    expect(findFormats(text).map(({ kind }) => kind)).not.toContain('facebook-token');
  });

  it.each([
    ['alone', token],
    ['behind a word', `accessToken${token}`],
    ['in a path', `https://graph.example/v2/${token}/messages`],
    ['before words', `${token}+and+the+words+that+follow+it`],
  ])('is a token %s', (_where, text) => {
    expect(findFormats(text).map(({ kind }) => kind)).toContain('facebook-token');
  });

  it.each([
    ['a key of one case before its secret', `${awsKey('pair')}/${noise('secret', 40)}`],
    ['hex behind base64', `${bytes(40).replaceAll('=', '')}+da${'pi'}${noise('k', 32, HEX)}`],
    ['a key with a dash before base64', `AI${'za'}${noise('g', 20)}-_${noise('h', 13)}/${noise('n', 24)}`],
    ['a key at the beginning', `AI${'za'}${noise('k', 35)}+${noise('n', 24)}`],
  ])('finds %s', (_what, text) => {
    expect(findFormats(text)).toHaveLength(1);
  });
});
