import { describe, expect, it } from 'vitest';
import { diagnosticLines, GOOD, read } from '../reading.js';

const URL_LINE = '    url: https://github.example.com/mcp\n';

function withSocket(...keys: readonly string[]): string {
  expect(GOOD).toContain(URL_LINE);
  return GOOD.replace(URL_LINE, `${keys.map((key) => `    ${key}\n`).join('')}`);
}

describe('[STD-06] an upstream on a Unix socket', () => {
  it('is reached by plain http, behind a public address too, at a path beside the file', () => {
    const text = withSocket('url: http://localhost/mcp', 'socket: run/git.sock');
    const { diagnostics, settings } = read(text);
    expect(diagnostics).toEqual([]);
    const upstream = settings?.upstreams.get('github');
    expect(upstream?.socket).toMatch(/^\/.+\/run\/git\.sock$/);
    expect(upstream?.url.href).toBe('http://localhost/mcp');
  });

  it('may be called loopback, which it is', () => {
    const keys = ['url: http://localhost/mcp', 'socket: /run/git.sock', 'network: loopback'];
    const { diagnostics, settings } = read(withSocket(...keys));
    expect(diagnostics).toEqual([]);
    expect(settings?.upstreams.get('github')?.socket).toBe('/run/git.sock');
  });

  it.each([
    [
      'https',
      ['url: https://localhost/mcp', 'socket: /run/git.sock'],
      '10:10 error a server on a Unix socket is reached by plain http',
    ],
    [
      'a network',
      ['url: http://localhost/mcp', 'socket: /run/git.sock', 'network: private'],
      '12:14 error with "socket" no address is resolved; leave "network" out',
    ],
    [
      'a URL with a password',
      ['url: http://me:pw@localhost/mcp', 'socket: /run/git.sock'],
      '10:10 error a URL carries no user name or password',
    ],
    [
      'an acceptance of plain http, which it does not need',
      ['url: http://localhost/mcp', 'socket: /run/git.sock', 'plaintext: accepted'],
      '12:16 error a Unix socket is no network; leave "plaintext" out',
    ],
    [
      'a NUL character, which no path has',
      ['url: http://localhost/mcp', 'socket: "/run/git\\0.sock"'],
      '11:13 error a path has no NUL character',
    ],
    ['no text', ['url: http://localhost/mcp', 'socket: {file: x}'], '11:13 error expected text'],
  ])('is refused with %s', (_, keys, message) => {
    expect(diagnosticLines(withSocket(...keys)).join('\n')).toContain(message);
  });
});
