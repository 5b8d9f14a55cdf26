// What may not leave with a request: secrets where the profile blocks them, and the caller's own token.

import { describe, expect, it } from 'vitest';
import type { Profile } from '../../../src/inspection/findings.js';
import { guardArguments } from '../../../src/inspection/requests.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import { awsKey, githubToken, jwt, noise } from '../../support/seeded-values.js';
import { profile } from './samples.js';

function guard(params: Json, more: { presentedToken?: string; secrets?: 'off' | 'flag' } = {}) {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const rule = more.secrets ?? 'block';
  const ruled: Profile = { ...profile, request: { secrets: rule } };
  return guardArguments({
    value: params,
    text,
    profile: ruled,
    presentedToken: more.presentedToken,
  });
}

const REFUSED = { kind: 'refuse', reason: 'arguments-content' };
const secret = githubToken('guard');

describe('secrets in arguments', () => {
  it.each([
    ['a value', { arguments: { note: `use ${secret}` } }],
    ['a member name', { arguments: { [secret]: 1 } }],
    ['a list', { arguments: { all: ['x', awsKey('guard')] } }],
    ['base64', { arguments: { note: Buffer.from(`use ${secret} now`).toString('base64') } }],
    ['a value behind a name', { arguments: { password: noise('guard', 14) } }],
    ['a number behind a name', { arguments: { api_key: 938475610293 } }],
  ])('[I-33] are refused in %s, and only flagged where the profile says so', (_where, params) => {
    expect(guard(params)).toMatchObject(REFUSED);
    const flagged = guard(params, { secrets: 'flag' });
    expect(flagged.kind).toBe('clear');
    expect(flagged.findings).toMatchObject([{ action: 'flag', direction: 'to-upstream' }]);
    expect(guard(params, { secrets: 'off' })).toEqual({ kind: 'clear', findings: [] });
  });

  it('[I-33] findings tell the place and the kind, never the secret', () => {
    const outcome = guard({ arguments: { note: secret } });
    expect(outcome.findings).toMatchObject([
      { detector: 'secret:github-token', path: '/arguments/note', action: 'block' },
    ]);
    expect(JSON.stringify(outcome)).not.toContain(secret);
  });

  it('[I-33] ordinary arguments are clear, personal data and markup too', () => {
    const params = {
      arguments: { owner: 'acme', title: 'Fix the <b> tag', html: '![a](b)', n: 12 },
    };
    expect(guard(params)).toEqual({ kind: 'clear', findings: [] });
  });
});

describe('the presented token', () => {
  const presentedToken = jwt('presented');
  const claims = presentedToken.slice(0, presentedToken.lastIndexOf('.'));

  it.each([
    ['as it was sent', { arguments: { a: presentedToken } }],
    ['within a text', { arguments: { a: `Bearer ${presentedToken}.` } }],
    ['in metadata', { name: 'x', _meta: { 'com.example/a': presentedToken } }],
    ['with another signature', { arguments: { a: `${claims}.${noise('other', 86)}` } }],
    ['as a member name', { arguments: { [presentedToken]: 1 } }],
    ['in base64', { arguments: { a: Buffer.from(presentedToken).toString('base64') } }],
    ['in percent triplets', { arguments: { a: presentedToken.replaceAll('.', '%2E') } }],
    ['in two elements', { arguments: { a: [presentedToken.slice(0, 60), presentedToken.slice(60)] } }],
  ])('[I-34] is refused anywhere in the body, whatever the profile says: %s', (_how, params) => {
    const outcome = guard(params, { presentedToken, secrets: 'off' });
    expect(outcome).toMatchObject(REFUSED);
    expect(JSON.stringify(outcome)).not.toContain(claims);
  });

  it('[I-34] is refused when it is escaped, and an opaque one too', () => {
    const opaque = noise('opaque', 40);
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"\\u00${opaque
      .charCodeAt(0)
      .toString(16)}${opaque.slice(1)}"}}`;
    const off: Profile = { ...profile, request: { secrets: 'off' } };
    const value = (JSON.parse(text) as { params: Json }).params;
    expect(guardArguments({ value, text, profile: off, presentedToken: opaque })).toMatchObject(REFUSED);
  });

  it('[I-34] of somebody else is a secret like any other', () => {
    expect(guard({ arguments: { a: jwt('else') } }, { presentedToken, secrets: 'off' }).kind).toBe('clear');
    expect(guard({ arguments: { a: jwt('else') } }, { presentedToken })).toMatchObject(REFUSED);
  });
});
