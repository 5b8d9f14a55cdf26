// Links that people need: signed links and addresses with a user pass with a finding, in results and arguments alike;
// passwords in addresses are told from samples and variables by one test; what works elsewhere stays a secret.

import { describe, expect, it, vi } from 'vitest';
import { withSignedLinks } from '../../../../src/inspection/detectors/links.js';
import type { Profile } from '../../../../src/inspection/findings.js';
import { guardArguments } from '../../../../src/inspection/requests.js';
import { inspectMessage } from '../../../../src/inspection/responses.js';
import { awsKey, githubToken, HEX, noise } from '../../../support/seeded-values.js';
import { profile, textResult, withRules } from '../samples.js';

const signature = noise('signature', 64, HEX);
const session = noise('session', 120);
const jwt = `ey${'J'}${noise('header', 30)}.ey${'J'}${noise('claims', 60)}.${noise('sig', 43)}`;
const password = noise('password', 14);

const SIGNED: readonly (readonly [string, string])[] = [
  [
    'S3',
    `https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${awsKey('s3')}%2F20260101%2Feu%2Fs3%2Faws4_request&X-Amz-Security-Token=${session}&X-Amz-Signature=${signature}`,
  ],
  [
    'S3 by version 2',
    `https://b.s3.amazonaws.com/k?AWSAccessKeyId=${awsKey('v2')}&Expires=1800000000&Signature=${noise('v2', 27)}%3D`,
  ],
  [
    'GCS',
    `https://storage.googleapis.com/b/o?X-Goog-Credential=a%40b.example&X-Goog-Signature=${signature}${signature}`,
  ],
  ['Azure', `https://a.blob.core.windows.net/c/f.txt?sv=2024-11-04&se=2027-01-01&sr=b&sp=r&sig=${noise('sas', 43)}%3D`],
  ['Zoom', `https://example.zoom.us/j/12345678901?pwd=${noise('zoom', 32)}.1`],
  ['an attachment', `https://private-user-images.githubusercontent.com/1/2.png?jwt=${jwt}`],
];

const USERS: readonly (readonly [string, string])[] = [
  ['a repository', 'https://octavia@dev.azure.com/org/project/_git/repo'],
  ['a Sentry DSN', `https://${noise('dsn', 32, HEX)}@o447951.ingest.sentry.io/5429215`],
];

const NO_SECRETS = [...SIGNED, ...USERS];

function inspect(text: string, rules: Partial<Profile['result']> = {}) {
  return inspectMessage({ ...textResult(text), profile: withRules(rules) });
}

function guard(text: string, request: Partial<Profile['request']> = {}) {
  const value = { arguments: { url: text } };
  return guardArguments({
    value,
    text: JSON.stringify(value),
    profile: { ...profile, request: { ...profile.request, ...request } },
  });
}

describe('links that people need', () => {
  it.each(NO_SECRETS)('%s keeps its secret in arguments, with a finding', (_of, link) => {
    const outcome = guard(`see ${link}`);
    expect(outcome).toMatchObject({ kind: 'clear' });
    expect(outcome.findings).not.toEqual([]);
    expect(outcome.findings.every(({ action }) => action === 'flag')).toBe(true);
  });

  it.each(NO_SECRETS)('%s is found and not redacted in a result', (_of, link) => {
    const outcome = inspect(`see ${link}`, { activeContent: 'off' });
    expect(outcome.findings.every(({ action }) => action === 'flag')).toBe(true);
    expect(outcome).not.toMatchObject({ kind: 'withhold' });
    if (outcome.kind === 'changed') expect(outcome.text).toContain(link);
  });

  it.each(USERS)('%s is cut and blocked where a profile says so', (_of, link) => {
    const user = /\/\/([^@]+)@/.exec(link)?.[1] ?? '';
    const outcome = inspect(`see ${link}`, { links: 'redact', activeContent: 'off' });
    expect(outcome.kind === 'changed' && outcome.text.includes(user)).toBe(false);
    expect(guard(link, { links: 'block' })).toMatchObject({ reason: 'arguments-content' });
  });

  it.each(SIGNED)('%s too', (_of, link) => {
    const outcome = inspect(`see ${link}`, { links: 'redact', activeContent: 'off' });
    expect(outcome.kind === 'changed' && outcome.text).toContain('[redacted:signed-link');
    expect(guard(link, { links: 'block' })).toMatchObject({ reason: 'arguments-content' });
  });

  it.each([
    [
      'another token in a signed link',
      `https://b.s3.amazonaws.com/k?X-Amz-Signature=${signature}&X-Amz-Security-Token=${githubToken('in link')}`,
    ],
    ['a token in a plain link', `https://api.example.com/v1?access_token=${password}9x`],
    ['a shared access signature without its link', `?sv=2024-11-04&sig=${noise('bare', 43)}%3D`],
    ['a password beside its user', `https://user:${password}@dev.azure.com/org`],
    ['a token as the user', `https://${githubToken('user')}@github.com/a/b`],
    ['a passcode of another host', `https://login.example.com/?pwd=${password}`],
  ])('%s stays a secret', (_what, text) => {
    expect(guard(text)).toMatchObject({ kind: 'refuse', reason: 'arguments-content' });
    expect(inspect(text, { activeContent: 'off' })).toMatchObject({ kind: 'changed' });
  });
});

describe('passwords in addresses', () => {
  it.each([
    'app:app',
    'Shop:shop',
    'postgres:postgres',
    'app:password',
    'app:example',
    'app:changeme',
    'app:s3cret_example',
    'app:secret',
    'app:test',
    'app:${PASSWORD}',
    'app:${DB_PASSWORD:-changeme}',
    'app:${{ secrets.DB }}',
    'app:$PASS',
    'app:{{ .Values.password }}',
    'app:{password}',
    'app:%s',
    'app:%(password)s',
    'app:***',
    'app:xxxxx',
    'app:[PASSWORD]',
    'app:YOUR_PASSWORD',
    'app:#{password}',
  ])('%s is no secret', (credentials) => {
    const text = `DATABASE_URL: postgres://${credentials.replaceAll(' ', '')}@db:5432/app`;
    expect(guard(text)).toMatchObject({ kind: 'clear' });
    expect(JSON.stringify(inspect(text, { activeContent: 'off' }))).not.toContain('redact');
  });

  it.each([
    `app:${password}`,
    `app:\${PASSWORD:-${password}}`,
    `app:\${${noise('braces', 24)}}`,
    `app:$${noise('variable', 24)}`,
    `app:app${password}`,
  ])('%s is one', (credentials) => {
    const text = `postgres://${credentials}@db:5432/app`;
    expect(guard(text)).toMatchObject({ kind: 'refuse' });
    expect(inspect(text, { activeContent: 'off' })).toMatchObject({ kind: 'changed' });
  });

  it('are told by the user in connection strings too', () => {
    expect(guard('Server=db;User Id=shop;Password=shop;')).toMatchObject({ kind: 'clear' });
    expect(guard(`Server=db;User Id=shop;Password=${password};`)).toMatchObject({ kind: 'refuse' });
  });
});

describe('a secret that may be part of a link', () => {
  const hit = { kind: 'jwt', start: 0, end: 0 };

  it.each([
    ['https://a.zoom.us/j/1?pwd=', '', 'signed-link'],
    ['HTTPS://a.zoom.us/j/1?pwd=', '', 'signed-link'],
    ['http://a.example/?u=https://a.zoom.us/j/1?pwd=', '', 'signed-link'],
    ['https://a.zoom.us/j/1?pwd=1 ', '', 'jwt'],
    ['https://a.zoom.us/j/1?pwd=1 http://b.example/?pwd=', '', 'jwt'],
    [`https://a.zoom.us/j/1?x=${'x'.repeat(9_000)}&pwd=`, '', 'jwt'],
    ['pwd=', ' https://a.zoom.us/j/1?pwd=', 'jwt'],
  ])('behind %s', (before, after, kind) => {
    const text = `${before}${'x'.repeat(20)}${after}`;
    const at = { ...hit, start: before.length, end: before.length + 20 };
    expect(withSignedLinks(text, [at])).toMatchObject([{ kind }]);
  });

  it('is looked for in one pass, however many there are', () => {
    const text = `https://a.example/${'x'.repeat(8_000)}`;
    const hits = Array.from({ length: 400 }, (_, at) => ({
      ...hit,
      start: 20 * at,
      end: 20 * at + 9,
    }));
    const reading = vi.spyOn(String.prototype, 'charAt');
    const searching = vi.spyOn(RegExp.prototype, 'test');
    try {
      expect(withSignedLinks(text, hits)).toHaveLength(hits.length);
      expect(reading.mock.calls.length + searching.mock.calls.length).toBeLessThan(text.length);
    } finally {
      vi.restoreAllMocks();
    }
  });
});
