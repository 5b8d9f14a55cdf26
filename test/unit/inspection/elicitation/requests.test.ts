// What a server may not ask a person for, and where it may not send one.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkForm, readLink } from '../../../../src/inspection/elicitation/requests.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';

function form(properties: JsonObject, message = 'Please fill in.'): JsonObject {
  return { message, requestedSchema: { type: 'object', properties } };
}

const TEXT = { type: 'string' };

describe('[Q-05] forms', () => {
  test.each<[string, JsonObject]>([
    ['a name', { password: TEXT }],
    ['a name of two words', { apiKey: TEXT }],
    ['a name with underscores', { access_token: TEXT }],
    ['a name of payment', { cardNumber: TEXT }],
    ['a code', { cvv: TEXT }],
    ['a pin', { pin: { type: 'integer' } }],
    ['a title', { value: { type: 'string', title: 'API key' } }],
    ['a description', { value: { type: 'string', description: 'Your one-time code' } }],
    ['a description of payment', { v: { type: 'string', description: 'credit card, 16 digits' } }],
    ['a format', { value: { type: 'string', format: 'password' } }],
    ['another script', { value: { type: 'string', title: '\u30d1\u30b9\u30ef\u30fc\u30c9' } }],
    ['another language', { value: { type: 'string', description: 'Ihr Passwort' } }],
    ['invisible characters', { value: { type: 'string', title: 'Pass\u200bword' } }],
    ['full width letters', { value: { type: 'string', title: '\uff30assword' } }],
    ['a nested field', { a: { type: 'object', properties: { secret: TEXT } } }],
    ['an array', { a: { type: 'array', items: { title: 'Recovery codes' } } }],
    ['an identity number', { ssn: TEXT }],
  ])('that ask by %s are sensitive', (_what, properties) => {
    expect(checkForm(form(properties))).toBe('elicitation-sensitive');
  });

  test('that ask in their message are sensitive', () => {
    for (const message of [
      'Enter your password to go on.',
      'Please paste the API key of your account here',
      'We need your credit card',
    ]) {
      expect(checkForm(form({ answer: TEXT }, message)), message).toBe('elicitation-sensitive');
    }
  });

  test.each<[string, JsonObject, string?]>([
    ['ordinary fields', { name: TEXT, email: { type: 'string', format: 'email' }, age: TEXT }],
    ['counts of tokens', { maxTokens: { type: 'integer', title: 'Max tokens' } }],
    ['cursors', { next_page_token: TEXT }],
    ['choices of payment', { pay: { type: 'string', enum: ['Credit card', 'Invoice'] } }],
    ['titled choices', { pay: { oneOf: [{ const: 'cc', title: 'Credit card' }] } }],
    ['words that hold such words', { passwordless: TEXT, tokenizer: TEXT, spinner: TEXT }],
    ['a message that warns', { name: TEXT }, 'We will never ask you to enter your password.'],
    ['defaults', { name: { type: 'string', default: 'password' } }],
  ])('with %s may pass', (_what, properties, message) => {
    expect(checkForm(form(properties, message))).toBeUndefined();
  });

  test.each<[string, JsonObject]>([
    ['no schema', { message: 'x' }],
    ['no properties', { message: 'x', requestedSchema: { type: 'object' } }],
    ['no message', { requestedSchema: { type: 'object', properties: {} } }],
  ])('with %s are malformed', (_what, params) => {
    expect(checkForm(params)).toBe('malformed');
  });

  test('of more than 32 KiB are no forms, however their texts are divided', () => {
    const long = 'enter '.repeat(2500);
    expect(checkForm(form({ a: { type: 'string', description: long } }, long))).toBeUndefined();
    const fields = (count: number): JsonObject =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, { title: 't' }]));
    const zones = Array.from({ length: 600 }, (_, at) => `America/Some_City_${at}`);
    expect(checkForm(form({ zone: { type: 'string', enum: zones } }))).toBeUndefined();
    expect(checkForm(form(fields(300)))).toBeUndefined();
    for (const tooLong of [
      form({ a: { type: 'string', description: long } }, `${long}${long}${long}`),
      form({ a: { type: 'string', enum: Array.from({ length: 2000 }, () => 'a') } }),
      form({ [long]: {}, [`${long} `]: {}, [`${long}  `]: {} }),
      form(fields(1000)),
      { ...form({ a: {} }), other: Array.from({ length: 40_000 }, () => 1) },
    ]) {
      expect(checkForm(tooLong)).toBe('malformed');
    }
  });
});

describe('[Q-06] links', () => {
  test.each(['https://example.com/a?b=c#d', 'https://EXAMPLE.com:443/x', 'https://example.com:8443/'])(
    '%s is shown as it is',
    (link) => {
      expect(readLink(link)).toBe(link);
    },
  );

  test('a host in another script is shown in ASCII', () => {
    expect(readLink('https://\u0440\u0430ypal.com/login')).toBe('https://xn--ypal-43d9g.com/login');
    expect(readLink('https://ex%61mple.com/')).toBe('https://example.com/');
    expect(readLink('https://\uff45xample.com/')).toBe('https://example.com/');
  });

  test.each([
    'http://example.com/',
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'https://user:pass@example.com/',
    'https://user@example.com/',
    'https://@example.com/',
    'https:example.com',
    'https:///example.com',
    'https:\\\\example.com',
    'https://example.com\\@evil.example/',
    ' https://example.com/',
    'https://exa mple.com/',
    'https://example.com/\u202egnp.exe',
    'https://exam\nple.com/',
    'https://',
    'x',
    '',
    `https://example.com/${'a'.repeat(5000)}`,
  ])('%j may not pass', (link) => {
    expect(readLink(link)).toBeUndefined();
  });

  test('whatever passes is https with an ASCII host and names nobody', () => {
    const part = fc.constantFrom('https:', '//', '@', 'a.com', ':', '\u0440', '\\', '/', '%40', '?');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), fc.string(), (parts, tail) => {
        const link = readLink(parts.join('') + tail);
        if (link === undefined) return;
        const url = new URL(link);
        expect(url.protocol).toBe('https:');
        expect(url.username + url.password).toBe('');
        expect(/^https:\/\/[^/?#@]+(?:[/?#]|$)/i.test(link)).toBe(true);
        expect(url.host).toMatch(/^[\x21-\x7e]+$/);
      }),
      { numRuns: 1000 },
    );
  });

  test('what is no text is no link', () => {
    expect(readLink(undefined)).toBeUndefined();
    expect(readLink(7)).toBeUndefined();
  });
});
