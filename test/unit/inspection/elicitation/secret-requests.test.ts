// Forms that ask for a secret, generated: languages, kinds of secrets, places in the form and ways to hide the
// word; and forms that speak of such things without asking, which people need.

import { describe, expect, test } from 'vitest';
import { checkForm } from '../../../../src/inspection/elicitation/requests.js';
import { asksForSecret } from '../../../../src/inspection/elicitation/secret-requests.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';

const TEXT = { type: 'string' };
const PLAIN = 'Please fill in.';

function form(properties: JsonObject, message = PLAIN): JsonObject {
  return { message, requestedSchema: { type: 'object', properties } };
}

type Case = readonly [what: string, params: JsonObject];

/** Every place of a form in which a text is shown. */
const PLACES: readonly (readonly [string, (text: string) => JsonObject])[] = [
  ['message', (text) => form({ answer: TEXT }, text)],
  ['title', (text) => form({ answer: { type: 'string', title: text } })],
  ['description', (text) => form({ answer: { type: 'string', description: text } })],
  ['default', (text) => form({ answer: { type: 'string', default: text } })],
  ['examples', (text) => form({ answer: { type: 'string', examples: [text] } })],
  ['enum', (text) => form({ answer: { type: 'string', enum: ['Deploy', text] } })],
  ['enumNames', (text) => form({ answer: { enum: ['aaa', 'bbb'], enumNames: [text, 'No'] } })],
  ['choices', (text) => form({ answer: { oneOf: [{ const: 'yes', title: text }] } })],
  ['placeholder', (text) => form({ answer: { type: 'string', 'x-placeholder': text } })],
  ['deep', (text) => form({ a: { type: 'object', properties: { b: { title: text } } } })],
  ['alternatives', (text) => form({ a: { anyOf: [{ type: 'string', title: text }] } })],
  [
    'of the form',
    (text) => ({
      message: PLAIN,
      requestedSchema: { type: 'object', description: text, properties: { a: TEXT } },
    }),
  ],
  ['another member', (text) => ({ ...form({ a: TEXT }), hint: text })],
];

const REQUESTS: Readonly<Record<string, readonly string[]>> = {
  English: [
    'Please enter your password',
    'Type the API key of your account here',
    'We need your one-time code to continue',
    'What is your PIN?',
    'Your seed phrase is required.',
    'Let me have the CVV of your card',
    'Confirm your social security number',
    'Paste a personal access token',
    'We never share your data. Please enter your password',
    'We will not store it, but enter your password now',
  ],
  German: [
    'Bitte geben Sie Ihr Passwort ein',
    'Wie lautet Ihr API-Schl\u00fcssel?',
    'Ihr Einmalcode ist erforderlich',
    'Vergessen Sie nicht, Ihr Kennwort einzugeben',
    'Wir geben nichts weiter. Nennen Sie uns Ihre Kreditkartennummer.',
  ],
  French: [
    'Veuillez saisir votre mot de passe',
    'Indiquez votre cl\u00e9 API',
    'Votre code de v\u00e9rification est requis',
    'N\u2019oubliez pas de saisir votre mot de passe',
    'Nous ne partageons rien. Entrez votre num\u00e9ro de carte.',
  ],
  Spanish: [
    'Introduzca su contrase\u00f1a',
    '\u00bfCu\u00e1l es su clave de API?',
    'Su c\u00f3digo de verificaci\u00f3n es necesario',
    'No olvide introducir su contrase\u00f1a',
    'Nunca compartimos sus datos. Escriba su n\u00famero de tarjeta.',
  ],
  Japanese: [
    '\u30d1\u30b9\u30ef\u30fc\u30c9\u3092\u5165\u529b\u3057\u3066\u304f\u3060\u3055\u3044',
    'API\u30ad\u30fc\u3092\u6559\u3048\u3066\u304f\u3060\u3055\u3044',
    '\u6697\u8a3c\u756a\u53f7\u304c\u5fc5\u8981\u3067\u3059',
    '\u5171\u6709\u3057\u307e\u305b\u3093\u3002\u8a8d\u8a3c\u30b3\u30fc\u30c9\u3092\u5165\u529b\u3057\u3066\u304f\u3060\u3055\u3044\u3002',
  ],
  Chinese: [
    '\u8bf7\u8f93\u5165\u60a8\u7684\u5bc6\u7801',
    '\u8bf7\u63d0\u4f9bAPI\u5bc6\u94a5',
    '\u9700\u8981\u9a8c\u8bc1\u7801',
    '\u6211\u4eec\u7edd\u4e0d\u4f1a\u5206\u4eab\u60a8\u7684\u6570\u636e\u3002\u8bf7\u8f93\u5165\u94f6\u884c\u5361\u53f7\u3002',
  ],
};

const LABELS = [
  ...['Password', 'GitHub password:', 'Your passphrase', 'API key', 'Access token', 'Token', 'PIN'],
  ...['Secret', 'One-time code', 'Recovery codes', 'Private key', 'Card number', 'Security code'],
  ...['CVV', 'Mnemonic phrase', 'SSN', 'Passwort', 'Zugangsdaten', 'Mot de passe', 'Code secret'],
  ...['Contrase\u00f1a', 'Clave privada', '\u79d8\u5bc6\u9375', '\u53e3\u4ee4', '\u52a9\u8bb0\u8bcd'],
  ...['\u30af\u30ec\u30b8\u30c3\u30c8\u30ab\u30fc\u30c9'],
];

const CYRILLIC: Readonly<Record<string, string>> = {
  a: '\u0430',
  o: '\u043e',
  p: '\u0440',
  s: '\u0455',
  e: '\u0435',
};
const swap = (text: string, by: Readonly<Record<string, string>>): string =>
  [...text].map((letter) => by[letter] ?? letter).join('');
const between = (sign: string) => (text: string) => [...text].join(sign);
const shift = (base: number) => (text: string) =>
  text.replace(/[a-z]/g, (letter) => String.fromCodePoint(base + letter.charCodeAt(0) - 0x61));

/** Ways to write a word so that its reader sees it and a pattern does not. */
const EVASIONS: readonly (readonly [string, (word: string) => string])[] = [
  ['capitals', (word) => word.toUpperCase()],
  ['capitals in turn', (word) => word.replace(/.{2}/g, (two) => two[0] + (two[1] ?? '').toUpperCase())],
  ['Cyrillic letters', (word) => swap(word, CYRILLIC)],
  ['Greek letters', (word) => swap(word, { a: '\u03b1', o: '\u03bf', w: '\u03c9', p: '\u03c1' })],
  ['rarer letters', (word) => swap(word, { p: '\ua4d1', s: '\ua4e2', o: '\u00f8' })],
  ['full width', shift(0xff41)],
  ['mathematical letters', shift(0x1d41a)],
  ['letters in circles', shift(0x24d0)],
  ['letters in squares', shift(0x1f170)],
  ['zero-width characters', between('\u200b')],
  ['soft hyphens', between('\u00ad')],
  ['tags', between('\u{e0061}')],
  ['blanks', between(' ')],
  ['wide blanks', between('\u2003')],
  ['full stops', between('.')],
  ['hyphens', between('-')],
  ['underscores', between('_')],
  ['slashes', between('/')],
  ['accents', between('\u0301')],
  ['strokes', between('\u0336')],
  ['digits', (word) => swap(word, { a: '4', o: '0', e: '3', s: '5' })],
  ['signs', (word) => swap(word, { a: '@', s: '$' })],
  ['emphasis', (word) => `**${word.slice(0, 3)}**${word.slice(3)}`],
  ['code', (word) => `\`${word.slice(0, 3)}\`${word.slice(3)}`],
  ['HTML', (word) => `<b>${word.slice(0, 3)}</b>${word.slice(3)}`],
  ['an HTML comment', (word) => `${word.slice(0, 3)}<!-- x -->${word.slice(3)}`],
  ['references', (word) => `&#${word.charCodeAt(0)};${word.slice(1)}`],
  ['a line end', (word) => `${word.slice(0, 4)}\n${word.slice(4)}`],
  ['the other direction', (word) => `\u202e${[...word].reverse().join('')}\u202c`],
];

const NAMES = [
  ...['password', 'pass', 'pw', 'pwd', 'passwd', 'cc', 'cvv', 'otp', 'mfa', 'ssn', 'pin', 'secret'],
  ...['token', 'apiKey', 'db_pass', 'userPw', 'PASSWORD', 'password2', 'p_a_s_s_w_o_r_d', 'p4ssw0rd'],
  ...['pa\u200bss', 'p\u0430ssword', 'githubPassword', 'seed_phrase', 'one-time-code', 'card_no'],
  ...['passwort', 'mot_de_passe', 'contrase\u00f1a', '\u5bc6\u7801', '\u30d1\u30b9\u30ef\u30fc\u30c9'],
];

const ELSEWHERE: readonly Case[] = [
  ['a word over title and description', form({ a: { title: 'GitHub pass', description: 'word' } })],
  ['two words over title and description', form({ a: { title: 'Your one-time', description: 'code' } })],
  ['a word over message and title', form({ a: { type: 'string', title: 'code' } }, 'Your one-time')],
  ['a pronoun', form({ a: TEXT }, 'We never ask for your password. Enter it below.')],
  ['a letter a field', form({ ...Object.fromEntries([...'password'].map((title, at) => [`f${at}`, { title }])) })],
  ['digits of a PIN', form({ pin: { enum: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] } })],
  ['a code', form({ a: TEXT }, 'Enter the 6-digit code that we texted you')],
  ['the current one', form({ a: TEXT }, 'To rotate the API key, paste the current one')],
  ['the name of a password', form({ a: TEXT }, 'Enter your password name')],
  ['a format', form({ a: { type: 'string', format: 'password' } })],
  ['a widget', form({ a: { type: 'string', 'ui:widget': 'password' } })],
  ['a copy that is none', form({ cc: { type: 'string', title: 'CC' } })],
  ['a condition', form({ a: TEXT }, 'If you do not enter your password, the account is closed.')],
  ['an exception', form({ a: TEXT }, 'Do not enter your password anywhere else but here.')],
  ['a reminder', form({ a: TEXT }, 'Do not forget to enter your password.')],
  ['a run-on denial', form({ a: TEXT }, 'Enter your password and do not share it.')],
  ['a run-on denial in German', form({ a: TEXT }, 'Passwort eingeben nicht speichern')],
  ['a run-on denial in Chinese', form({ a: TEXT }, '\u8f93\u5165\u5bc6\u7801\u4e0d\u8981\u544a\u8bc9\u522b\u4eba')],
];

describe('[Q-05] forms that ask for a secret', () => {
  const requests = Object.entries(REQUESTS).flatMap(([language, texts]) =>
    texts.map((text): readonly [string, string] => [language, text]),
  );
  const placed = requests.flatMap(([language, text]) =>
    PLACES.map(([place, make]): Case => [`${language}, ${place}: ${text}`, make(text)]),
  );
  const labelled = LABELS.flatMap((label) =>
    PLACES.slice(0, 3).map(([place, make]): Case => [`${place}: ${label}`, make(label)]),
  );
  const hidden = ['password', 'passphrase', 'accesstoken'].flatMap((word) =>
    EVASIONS.flatMap(([evasion, hide]): readonly Case[] => [
      [`${word} in ${evasion}, asked for`, form({ a: TEXT }, `Please enter your ${hide(word)}`)],
      [`${word} in ${evasion}, a label`, form({ a: { type: 'string', title: hide(word) } })],
    ]),
  );
  const named = NAMES.map((name): Case => [`the name ${name}`, form({ [name]: TEXT })]);

  test('are some hundred', () => {
    expect(placed.length + labelled.length + hidden.length + named.length).toBeGreaterThan(600);
  });

  test.each([
    ['in six languages, wherever it stands', placed],
    ['by a label', labelled],
    ['in a hidden spelling', hidden],
    ['by a name', named],
    ['otherwise', ELSEWHERE],
  ] as const)('are refused: %s', (_what, cases) => {
    const passed = cases.filter(([, params]) => checkForm(params) === undefined);
    expect(passed.map(([what]) => what)).toEqual([]);
  });
});

/** Messages and titles of ordinary forms. */
const ORDINARY = [
  ...['Which API key name should be rotated?', 'Which API key should be rotated?'],
  ...['The password reset link was sent.', 'A verification code was sent to your phone.'],
  ...['Your password was changed.', 'Has your password expired?', 'Forgot your password?'],
  ...['Token count', 'Max tokens', 'Tokens per request', 'Maximum number of tokens', 'Token budget'],
  ...['Pass/fail', 'Passenger name', 'Compass direction', 'Boarding pass', 'Next page token'],
  ...['We will never ask you to enter your password.', 'Do not enter your password here.'],
  ...['Never enter your password, passphrase or PIN here.', 'Your password is not needed.'],
  ...['For your security, never share your password.', 'Nobody will ask for your API key.'],
  ...['Sign in without a password.', 'Enter the name of the API key.', 'API key name', 'API key ID'],
  ...['Type DELETE to revoke the token', 'Reason for revoking the access token', 'Password policy'],
  ...['Do you want to reset your password?', 'Should the API key be rotated?', 'Rotate API key'],
  ...['Confirm the rotation of the API key', 'Credit card type', 'Pin this message to the top'],
  ...['The access token "ci" will be deleted. Continue?', 'Enter the secret santa name'],
  ...['Deleting an API key cannot be undone.', 'Country code', 'Postal code', 'Primary key column'],
  ...['Enter your e-mail address', 'Which branch should be deployed?', 'Secretary', 'Access level'],
  ...['Geben Sie hier niemals Ihr Passwort ein.', 'Ihr Passwort wird nicht ben\u00f6tigt.'],
  ...['Das Passwort wurde ge\u00e4ndert.', 'Name des API-Schl\u00fcssels', 'Passwortrichtlinie'],
  ...['Ne saisissez jamais votre mot de passe ici.', 'Votre mot de passe a \u00e9t\u00e9 modifi\u00e9.'],
  ...['Nunca le pediremos su contrase\u00f1a.', 'Su contrase\u00f1a ha sido cambiada.'],
  ...['\u30d1\u30b9\u30ef\u30fc\u30c9\u3092\u5165\u529b\u3057\u306a\u3044\u3067\u304f\u3060\u3055\u3044'],
  ...['\u30d1\u30b9\u30ef\u30fc\u30c9\u306f\u5909\u66f4\u3055\u308c\u307e\u3057\u305f'],
  ...['\u8bf7\u52ff\u8f93\u5165\u60a8\u7684\u5bc6\u7801', '\u5bc6\u7801\u91cd\u7f6e\u94fe\u63a5\u5df2\u53d1\u9001'],
];

const FORMS: readonly Case[] = [
  ['copies of a letter', form({ to: TEXT, cc: { type: 'string', format: 'email' } })],
  ['a list of copies', form({ cc: { type: 'array', items: { type: 'string', format: 'email' } } })],
  ['copies by their title', form({ cc: { type: 'string', title: 'Recipients of a copy' } })],
  ['pass or fail', form({ pass: { type: 'string', enum: ['pass', 'fail'] } })],
  ['passed', form({ pass: { type: 'boolean', title: 'Pass' } })],
  ['a switch', form({ mfa: { type: 'boolean', title: 'One-time code at login' } })],
  ['a pinned message', form({ pin: { type: 'boolean' } })],
  ['ways to log in', form({ auth: { enum: ['Password', 'API key', 'Access token'] } })],
  ['ways to pay', form({ pay: { oneOf: [{ const: 'cc', title: 'Credit card' }, { const: 'i' }] } })],
  ['a key by its name', form({ api_key_name: TEXT, keyId: TEXT })],
  ['counts', form({ max_tokens: { type: 'integer' }, tokenCount: { type: 'integer' } })],
  ['cursors', form({ next_page_token: TEXT })],
  ['words inside words', form({ passenger: TEXT, compass: TEXT, tokenizer: TEXT, spinner: TEXT })],
  ['a proposed word', form({ name: { type: 'string', default: 'password' } })],
  ['a proposed way', form({ auth: { enum: ['API key', 'None'], default: 'API key' } })],
  ['a pattern', form({ name: { type: 'string', pattern: '^(?!password)[a-z]+$' } })],
  ['an id of a task', { ...form({ a: TEXT }), _meta: { task: 'token' } }],
];

describe('[Q-05] forms that do not', () => {
  test('are more than a hundred', () => {
    expect(ORDINARY.length * 2 + FORMS.length).toBeGreaterThan(100);
  });

  test('pass, whatever they speak of', () => {
    const cases = ORDINARY.flatMap((text): readonly Case[] => [
      [`message: ${text}`, form({ answer: TEXT }, text)],
      [`title: ${text}`, form({ answer: { type: 'string', title: text } })],
    ]);
    const refused = [...cases, ...FORMS].filter(([, params]) => checkForm(params) !== undefined);
    expect(refused.map(([what]) => what)).toEqual([]);
  });
});

test('[Q-05] forms are read in one pass', () => {
  const size = 14_000;
  for (const piece of ['password reset ', 'never ', 'a', '<', '**', 'p ', 'token of ', '\u5bc6\u7801\u91cd\u7f6e']) {
    const text = piece.repeat(size / piece.length);
    const asked = form({ a: { type: 'string', description: text } }, text);
    expect(() => checkForm(asked)).not.toThrow();
    expect(checkForm(asked)).not.toBe('malformed');
  }
});

test('[Q-05] a word of many signs is read in one pass', () => {
  for (const sign of ['!', '|']) expect(asksForSecret(`1${sign.repeat(300_000)}x`)).toBe(false);
});
