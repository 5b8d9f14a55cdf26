// Secrets by shape and by name, the samples of documentation that must pass, and the shapes of the patterns
// themselves, which bound how long they can run.

import { describe, expect, it } from 'vitest';
import { PHRASES } from '../../../../src/inspection/detectors/injection-phrases.js';
import { SECRET_FORMATS } from '../../../../src/inspection/detectors/secret-formats.js';
import { findSecrets } from '../../../../src/inspection/detectors/secrets.js';
import { findSensitive } from '../../../../src/inspection/detectors/text-sanitizer.js';
import { formatsIn } from '../../../../src/inspection/prefilter/anchors.js';
import { awsKey, githubToken, HEX, jwt, noise, UPPER } from '../samples.js';

const SECRETS = { secrets: true, pii: [] } as const;

/** One made-up secret of each kind. Prefixes are cut so that no scanner takes this file for a leak. */
const EXAMPLES: readonly (readonly [kind: string, text: string])[] = [
  ['aws-access-key', awsKey('a')],
  ['aws-secret-key', `aws_secret_access_key = ${noise('b', 40)}`],
  ['google-api-key', `AI${'za'}${noise('c', 35)}`],
  ['google-oauth-secret', `GOC${'SPX'}-${noise('d', 28)}`],
  ['google-oauth-token', `ya${'29'}.${noise('e', 60)}`],
  ['azure-storage-key', `AccountKey=${noise('f', 86)}==`],
  ['azure-sas', `https://x.blob.core.windows.net/c?se=1&sig=${noise('g', 43)}%3D`],
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
  [
    'slack-webhook',
    `https://hooks.slack.com/services/T${noise('ad', 8)}/B${noise('ae', 8)}/${noise('af', 24)}`,
  ],
  [
    'discord-webhook',
    `https://discord.com/api/webhooks/${noise('ag', 18, '123456789')}/${noise('ah', 68)}`,
  ],
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
  ['secret', `export APP_PASSWORD='${noise('bb', 12)}'`],
  ['secret', `{"clientSecret": "${noise('bc', 24)}"}`],
];

function uuid(seed: string): string {
  const hex = noise(seed, 32, HEX);
  return [0, 8, 12, 16, 20, 32].reduce(
    (text, at, index, ends) =>
      index === 0 ? text : `${text}${index > 1 ? '-' : ''}${hex.slice(ends[index - 1], at)}`,
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
    const patterns = [
      ...SECRET_FORMATS.map((format) => format.pattern),
      ...PHRASES.map((cue) => cue.phrase),
    ];
    expect(patterns.length).toBeGreaterThan(70);
    for (const { source } of patterns)
      expect([source, shapeProblems(source)]).toEqual([source, []]);
  });

  it('[I-03] every pattern reads a bounded stretch from each place where its anchor stands', () => {
    for (const { pattern, kind } of SECRET_FORMATS) {
      const bounds = [...pattern.source.matchAll(/\{(?:\d+,)?(\d+)\}/g)].map((match) =>
        Number(match[1]),
      );
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
