// Secrets as headers, files, commands and sentences write them, beside what only looks so: documentation, samples and
// variables arrive as they are. Then secrets that are split over the parts of an error, or over a list in a text.

import { describe, expect, it } from 'vitest';
import { guardArguments } from '../../../src/inspection/requests.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { awsKey, githubToken, noise } from '../../support/seeded-values.js';
import { profile } from './samples.js';

const SEEDS = Array.from({ length: 40 }, (_, at) => `notation-${at}`);

const value = (seed: string): string => noise(seed, 16);
const encoded = (seed: string): string => Buffer.from(`deploy:${noise(seed, 14)}`).toString('base64');
const AWS_SIGNS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const awsSecret = (seed: string): string => noise(seed, 40, AWS_SIGNS);
const DJANGO = 'abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)';
const djangoKey = (seed: string): string => noise(seed, 50, DJANGO);

type Form = readonly [what: string, make: (seed: string) => string, write: (value: string) => string];

const FORMS: readonly Form[] = [
  ['a name with a blank', value, (x) => `API key: ${x}`],
  ['a name in bold', value, (x) => `- **API Key:** ${x}`],
  ['a bold name', value, (x) => `* **Access key**: \`${x}\``],
  ['a private key', value, (x) => `private key: ${x}`],
  ['a secret key in a row of labels', value, (x) => `Region: eu\nSecret access key: ${x}\n`],
  ['an assignment to a name with a blank', value, (x) => `Access Token = "${x}"`],
  ['a sentence', value, (x) => `The password is ${x}.`],
  ['a sentence with a colon', value, (x) => `Your password is: ${x}`],
  ['a sentence in quotes', value, (x) => `the password for the staging database is "${x}", ok?`],
  ['a report', value, (x) => `Your password has been reset to ${x}`],
  ['a sentence about a key', value, (x) => `Please note that the API key is \`${x}\`.`],
  ['a sentence about a client', value, (x) => `The client secret was '${x}' before.`],
  ['a Basic header', encoded, (x) => `Authorization: Basic ${x}`],
  ['a Basic header in code', encoded, (x) => `headers = {'Authorization': 'Basic ${x}'}`],
  ['a Basic header of a proxy', encoded, (x) => `> Proxy-Authorization: Basic ${x}\n`],
  ['a cookie among others', value, (x) => `Cookie: theme=dark; session=${x}; lang=en`],
  ['a cookie that is set', value, (x) => `Set-Cookie: sid=${x}; Path=/; HttpOnly`],
  ['a cookie in code', value, (x) => `document.cookie = "sid=${x}"`],
  ['a cookie in JSON', value, (x) => `{"headers": {"cookie": "sid=${x}"}}`],
  ['.netrc', value, (x) => `machine api.example.com login deploy password ${x}`],
  ['.netrc in lines', value, (x) => `machine api.example.com\n  login deploy\n  password ${x}\n`],
  ['.netrc for all hosts', value, (x) => `default login deploy password ${x}\n`],
  ['.pgpass', value, (x) => `db.internal:5432:orders:deploy:${x}\n`],
  ['.pgpass for all hosts', value, (x) => `*:*:*:deploy:${x}`],
  ['a variable of PostgreSQL', value, (x) => `PGPASSWORD=${x} psql -h db.internal`],
  ['a variable of a mailer', value, (x) => `SMTP_HOST=mail\nSMTP_PASS=${x}\n`],
  ['a setting of a mailer', value, (x) => `auth: { user: 'deploy', pass: '${x}!4q' }`],
  ['the settings of Docker', encoded, (x) => `{"auths": {"ghcr.io": {"auth": "${x}"}}}`],
  ['the settings of npm', encoded, (x) => `//registry.example.com/:_auth=${x}`],
  ['curl', value, (x) => `curl -u deploy:${x} https://api.example.com`],
  ['curl with quotes', value, (x) => `curl -sS --user "deploy:${x}" https://api.example.com`],
  ['curl in lines', value, (x) => `curl \\\n  -X POST \\\n  -su 'deploy:${x}' https://x.example`],
  ['an option', value, (x) => `deploy --api-token ${x} --env prod`],
  ['a secret of AWS behind its id', awsSecret, (x) => `${awsKey('id')} ${x}`],
  ['a secret of AWS in a table', awsSecret, (x) => `Key ID,Value\n${awsKey('id')},${x}\n`],
  ['a secret of AWS before its id', awsSecret, (x) => `use ${x} with ${awsKey('id')}`],
  ['a key of Django', djangoKey, (x) => `SECRET_KEY = '${x}'`],
  ['a new key of Django', (seed) => `django-insecure-${djangoKey(seed)}`, (x) => `SECRET_KEY = "${x}"`],
];

/** Everything that a client gets of a message. */
function received(message: JsonObject): string {
  const text = JSON.stringify(message);
  const outcome = inspectMessage({ text, value: message, profile });
  if (outcome.kind === 'withhold') throw new Error(outcome.reason);
  return outcome.kind === 'changed' ? outcome.text : text;
}

const envelope = { jsonrpc: '2.0', id: 1 };

const CARRIERS: readonly (readonly [string, (text: string) => JsonObject])[] = [
  ['a text', (text) => ({ ...envelope, result: { content: [{ type: 'text', text }] } })],
  ['structured content', (text) => ({ ...envelope, result: { content: [], structuredContent: { note: text } } })],
  ['an error', (message) => ({ ...envelope, error: { code: -32000, message } })],
  [
    'a log entry',
    (data) => ({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data },
    }),
  ],
];

describe('a secret in the notation of its program', () => {
  it.each(FORMS)('is redacted whole: %s', (_what, make, write) => {
    for (const seed of SEEDS) {
      const secret = make(seed);
      for (const [carrier, messageWith] of CARRIERS) {
        const kept = received(messageWith(write(secret)));
        // In JSON, signs of the value may be escaped: what is random stands between them.
        const pieces = secret.split(/[^A-Za-z0-9]/).filter(({ length }) => length > 4);
        const left = pieces.filter((piece) => kept.includes(piece) && piece !== 'django');
        expect([carrier, seed, left.filter((piece) => piece !== 'insecure')]).toEqual([carrier, seed, []]);
      }
    }
  });

  it.each(FORMS)('is refused in an argument: %s', (_what, make, write) => {
    expect(refusalOf({ note: write(make('argument')) })).toBe('arguments-content');
  });

  it.each([
    ['auth', encoded],
    ['Cookie', (seed: string) => `sid=${value(seed)}`],
    ['smtp_pass', (seed: string) => `${value(seed)}!4q`],
    ['PGPASSWORD', value],
    ['API key', value],
  ] as const)('is redacted as the member %s', (name, make) => {
    const secret = make('member');
    const kept = received({ ...envelope, result: { structuredContent: { [name]: secret } } });
    expect(kept).toContain('[redacted:');
    expect(kept).not.toContain(secret);
  });
});

/** The reason for which arguments are refused, if they are. */
function refusalOf(args: Json): string | undefined {
  const params = { arguments: args };
  const outcome = guardArguments({ value: params, text: JSON.stringify(params), profile });
  return outcome.kind === 'refuse' ? outcome.reason : undefined;
}

const HARMLESS: readonly string[] = [
  'The password is wrong.',
  'The password is required and is at least 12 characters long.',
  'Your password is case-sensitive and was changed on 2024.',
  'The password is hashed with bcrypt2 before it is stored.',
  'The token is base64-encoded, and the key is AES-256-GCM.',
  'The API key is stored in config/settings.yaml of version v2.14.3.',
  'the access token is valid for 3600s',
  'The secret is called app-database-secret-2.',
  'Password is changeme123.',
  'The default password is $PASSWORD or <your-password1>.',
  'API key: <your-key>',
  'API key: YOUR_API_KEY_1',
  'private key: path/to/key1.pem',
  `Authorization: Basic ${Buffer.from('user:password').toString('base64')}`,
  `Authorization: Basic ${Buffer.from('Aladdin:open sesame').toString('base64')}`,
  'Authorization: Basic <base64>',
  'Basic Structures of Level1 and of Level2',
  'Basic usage2Example and basic auth2Usage',
  'Cookie: theme=dark; lang=en-US; _ga=GA1.2.1849302938.1612345678',
  'Set-Cookie: consent=2024-01-01T00:00:00.000Z; Path=/',
  'Cookie: name=value; name2=value2',
  'machine api.example.com login user password $TOKEN',
  'The virtual machine has a login and a password field.',
  'default login and password combination',
  'localhost:5432:postgres:postgres:postgres',
  'src/index.ts:5432:10:error:TS2304',
  'PGPASSWORD=postgres psql',
  'SMTP_PASS=$SMTP_PASS',
  `SMTP_PASS=$${'{'}SMTP_PASS}`,
  '--- PASS: TestParseURL2 (0.00s)',
  'render_pass = "gbuffer01x"',
  `{"auth": "${Buffer.from('user:password').toString('base64')}"}`,
  '{"auth": "oauth2"}',
  'curl -u user:password https://api.example.com',
  'curl -u "$USER:$PASS" https://api.example.com',
  'curl -u username:<token> https://api.example.com',
  'docker run -u 1000:1000 image',
  'curl https://api.example.com\ndocker run -u deploy:staff1x image',
  "SECRET_KEY = os.environ['DJANGO_SECRET_KEY']",
  'SECRET_KEY=$(openssl rand -base64 32)',
  "password: '^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9@$!%*?&]{8,}$'",
  '["password", "username", "token"]',
];

describe('what only looks like one', () => {
  it.each(HARMLESS)('arrives as it is: %s', (text) => {
    for (const [, messageWith] of CARRIERS) {
      const message = messageWith(text);
      expect(received(message)).toBe(JSON.stringify(message));
    }
    expect(refusalOf({ note: text })).toBeUndefined();
  });
});

const TOKEN = githubToken('split');
const CUTS = [2, 4, 9, 15, 20, 33];

describe('a secret that is split', () => {
  it('over the message and the data of an error is redacted, in whatever order they stand', () => {
    for (const at of CUTS) {
      const [head, tail] = [TOKEN.slice(0, at), TOKEN.slice(at)];
      for (const data of [tail, { rest: tail }, { lines: ['', tail] }, [tail]]) {
        const code = -32000;
        for (const error of [
          { code, message: `denied for ${head}`, data },
          { code, data, message: `denied for ${head}` },
          { data, code, message: head },
        ]) {
          expect(leftOf(received({ ...envelope, error }))).toEqual([]);
        }
      }
    }
  });

  const lists: readonly (readonly [string, (pieces: readonly string[]) => string])[] = [
    ['a list', (pieces) => JSON.stringify(pieces)],
    ['a list in lines', (pieces) => JSON.stringify(pieces, null, 2)],
    ['a member', (pieces) => JSON.stringify({ id: 7, lines: pieces, isLast: true })],
    ['a list of lists', (pieces) => JSON.stringify(pieces.map((piece) => [piece]))],
    ['items with one member', (pieces) => JSON.stringify(pieces.map((text) => ({ text })))],
    ['JSON in JSON', (pieces) => JSON.stringify({ out: JSON.stringify(pieces) })],
    ['a list behind words', (pieces) => `The lines: ${JSON.stringify(pieces)} end.`],
    ['a list in a fence', (pieces) => `\`\`\`json\n${JSON.stringify(pieces, null, 1)}\n\`\`\``],
    ['a list of Python', (pieces) => `[${pieces.map((piece) => `'${piece}'`).join(', ')}]`],
    ['a list that is cut off', (pieces) => JSON.stringify(pieces).slice(0, -1)],
  ];

  it.each(lists)('over the strings of a list in a text is redacted: %s', (_what, write) => {
    for (const at of CUTS) {
      const [head, tail] = [TOKEN.slice(0, at), TOKEN.slice(at)];
      for (const pieces of [
        [head, tail],
        ['first', head, tail, 'last'],
        [head, tail.slice(0, 3), tail.slice(3)],
      ]) {
        const text = write(pieces);
        const kept = received({ ...envelope, result: { content: [{ type: 'text', text }] } });
        expect([at, leftOf(kept)]).toEqual([at, []]);
      }
    }
    const sevens = TOKEN.match(/.{1,7}/g) ?? [];
    const text = write(sevens);
    const kept = received({ ...envelope, result: { content: [{ type: 'text', text }] } });
    expect(sevens.slice(1).filter((piece) => kept.includes(piece))).toEqual([]);
  });

  it.each(lists)('takes nothing of the neighbours where it is complete: %s', (_what, write) => {
    const text = write(['first words', TOKEN, 'last words']);
    const kept = received({ ...envelope, result: { content: [{ type: 'text', text }] } });
    expect(kept).toContain('first words');
    expect(kept).toContain('last words');
    expect(kept).not.toContain(TOKEN);
  });

  it.each(lists)('is none where a list has no secret: %s', (_what, write) => {
    const text = write(['token', 'password:', 'a1b2c3', 'sk', 'ghp_', 'https://x.example/a?b=1']);
    const message = { ...envelope, result: { content: [{ type: 'text', text }] } };
    expect(received(message)).toBe(JSON.stringify(message));
  });
});

/** The long pieces of the token that are still there. */
function leftOf(text: string): string[] {
  const body = TOKEN.slice(4);
  const windows = Array.from({ length: body.length - 8 }, (_, at) => body.slice(at, at + 8));
  return windows.filter((piece) => text.includes(piece));
}
