import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBearer } from '../../../src/auth/presented-token.js';

const ONCE = new Set<string>();
const part = (text: string) => Buffer.from(text).toString('base64url');
const TOKEN = `${part('{"alg":"ES256"}')}.${part('{"sub":"a"}')}.${part('signature')}`;

function read(authorization: string | undefined, query = '') {
  return readBearer({ authorization }, ONCE, query);
}

describe('the bearer token of a request', () => {
  it('[A-20] is the one token of the one Authorization header', () => {
    expect(read(`Bearer ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'bearer' });
    expect(read(`bEARER ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'bearer' });
    expect(read(`Bearer ${TOKEN}`, 'cursor=access_token')).toEqual({
      token: TOKEN,
      scheme: 'bearer',
    });
  });

  it('[BND-01] comes by the scheme DPoP too, in the same one spelling', () => {
    expect(read(`DPoP ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'dpop' });
    expect(read(`dpop ${TOKEN}`)).toEqual({ token: TOKEN, scheme: 'dpop' });
    for (const header of ['DPoP', 'DPoP ', `DPoP  ${TOKEN}`, `DPoP ${TOKEN}=`, `DPoPs ${TOKEN}`]) {
      expect(read(header), header).toBe('malformed');
    }
    expect(readBearer({ authorization: `DPoP ${TOKEN}` }, new Set(['dpop']), '')).toBe('malformed');
  });

  it('[A-20] is missing without a bearer credential', () => {
    for (const header of [undefined, '', 'Basic YTpi', TOKEN]) {
      expect(read(header), header).toBe('missing');
    }
  });

  it('[A-21] is refused when the header came twice, even with one value', () => {
    const repeated = new Set(['authorization']);
    expect(readBearer({ authorization: `Bearer ${TOKEN}` }, repeated, '')).toBe('malformed');
  });

  it('[A-21] is refused when the query carries a token, alone or beside a header', () => {
    const queries = [`access_token=${TOKEN}`, 'a=1&access_token=', 'access%5Ftoken=x'];
    for (const query of [...queries, 'ACCESS_TOKEN=x', 'access_token']) {
      expect(read(undefined, query), query).toBe('malformed');
      expect(read(`Bearer ${TOKEN}`, query), query).toBe('malformed');
    }
  });

  it('[A-22] is refused in any spelling but the canonical one', () => {
    const [head = '', body = '', signature = ''] = TOKEN.split('.');
    const bad = [
      'Bearer',
      'Bearer ',
      `Bearer  ${TOKEN}`,
      `Bearer\t${TOKEN}`,
      `Bearer ${TOKEN} `,
      `Bearer ${TOKEN}=`,
      `Bearer ${TOKEN},Bearer ${TOKEN}`,
      `Bearer ${head}.${body}`,
      `Bearer ${head}.${body}.`,
      `Bearer .${body}.${signature}`,
      `Bearer ${head}.${body}.${signature}.${signature}.${signature}`,
      `Bearer ${head}.${body}.${signature.slice(0, 4)}\n${signature.slice(4)}`,
      `Bearer ${head}.${body}.${signature}+/`,
      `Bearer ${head}.${body}.${'A'.repeat(5)}`,
      'Bearer opaque',
    ];
    for (const header of bad) expect(read(header), JSON.stringify(header)).toBe('malformed');
  });

  it('[A-22] has one spelling for each value of each part', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 70 }),
        fc.constantFrom(...alphabet),
        (bytes, last) => {
          const canonical = Buffer.from(bytes).toString('base64url');
          const other = canonical.slice(0, -1) + last;
          const isCanonical = Buffer.from(other, 'base64url').toString('base64url') === other;
          const expected = isCanonical
            ? { token: `a000.b000.${other}`, scheme: 'bearer' }
            : 'malformed';
          expect(read(`Bearer a000.b000.${other}`)).toEqual(expected);
        },
      ),
    );
  });

  it('[A-23] is refused past 8 KiB without being looked at', () => {
    const signature = 'A'.repeat(8192 - 'aaaa.aaaa.'.length);
    const longest = `aaaa.aaaa.${signature.slice(0, signature.length - (signature.length % 4))}`;
    expect(read(`Bearer ${longest}`)).toEqual({ token: longest, scheme: 'bearer' });
    expect(read(`Bearer ${longest}${'A'.repeat(8)}`)).toBe('malformed');
  });
});
