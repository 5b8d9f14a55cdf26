import { describe, expect, it } from 'vitest';
import { diagnosticLines, GOOD, KEY_HEX, read } from '../reading.js';

const env = { KEY: KEY_HEX, SECRET: 'secret-of-the-console' };
const LOGIN = 'login: {clientId: console, clientSecret: {env: SECRET}}';

function admin(publicUrl: string | undefined, login = LOGIN): string {
  const url = publicUrl === undefined ? '' : `publicUrl: ${JSON.stringify(publicUrl)}, `;
  return `admin: {${url}issuers: {corp: {audience: a, roles: {viewer: [x]}, ${login}}}}\n`;
}

describe('[CON-10] the settings of the console', () => {
  it('have the login of each issuer, with its defaults', () => {
    const { settings } = read(GOOD + admin('https://console.example.com'), { env });
    expect(settings?.admin?.publicUrl?.href).toBe('https://console.example.com/');
    expect(settings?.admin?.issuers['corp']?.login).toEqual({
      ...{ clientId: 'console', clientSecret: 'secret-of-the-console', scopes: ['openid'] },
      authentication: 'client_secret_basic',
    });
  });

  it.each([
    ['no URL to return to', undefined, LOGIN, 'the key "publicUrl" of "admin" is missing'],
    ['plain http', 'http://console.example.com', LOGIN, 'plain http is possible only on loopback'],
    ['a path', 'https://example.com/console', LOGIN, 'served at the root of its host'],
    ['no URL at all', 'console', LOGIN, 'expected a URL'],
    [
      'scopes without an ID token',
      'https://console.example.com',
      LOGIN.replace('}}', '}, scopes: [groups]}'),
      'without the scope "openid"',
    ],
    [
      'no secret',
      'https://console.example.com',
      'login: {clientId: x}',
      '"clientSecret" is missing',
    ],
  ])('are refused with %s', (_, publicUrl, login, message) => {
    const found = diagnosticLines(GOOD + admin(publicUrl, login), { env });
    expect(found.some((line) => line.includes(message))).toBe(true);
  });

  it('are accepted with plain http on loopback', () => {
    expect(diagnosticLines(GOOD + admin('http://127.0.0.1:9090'), { env })).toEqual([]);
  });

  it('are refused where the issuer introspects its tokens, because nothing verifies an ID token', () => {
    const introspecting = GOOD.replace(
      'algorithms: [ES256]',
      'introspection: {clientId: gateway, clientSecret: {env: SECRET}}',
    );
    const found = diagnosticLines(introspecting + admin('https://console.example.com'), { env });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('an ID token is verified by its signature');
  });
});
