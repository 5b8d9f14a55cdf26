// The servers that the command line of `dev` names: each once, with a name, and nothing dropped in silence.

import { describe, expect, it } from 'vitest';
import {
  collectNamed,
  readHeader,
  readServers,
  type ServersOptions,
  splitOperands,
  type WantedServer,
} from '../../../src/cli/dev-servers.js';

const NONE = { urls: [], command: [] };

function named(texts: readonly string[]) {
  const collect = collectNamed(String);
  return texts.reduce<ReturnType<typeof collect>>((before, text) => collect(text, before), []);
}

function read(options: { upstream?: string[]; server?: string[] } & Omit<ServersOptions, 'upstream' | 'server'>) {
  const { upstream = [], server = [], ...more } = options;
  return readServers(NONE, { upstream: named(upstream), server: named(server), ...more }, 'mcp');
}

describe('[E-40] the servers of a command line', () => {
  it('are each URL and each command, with names that say what they are', () => {
    const servers = read({
      upstream: ['http://127.0.0.1:3001/mcp', 'web=https://mcp.example.com/mcp?a=b', 'https://tickets.example.com/mcp'],
      server: [
        'npx -y @modelcontextprotocol/server-filesystem@1.2.3 "/srv/my files"',
        'clock=uvx mcp-server-time',
        'node /x/server-memory/dist/index.js',
      ],
    }) as readonly WantedServer[];
    expect(servers.map((one) => [one.name, one.kind === 'http' ? one.url : one.argv])).toEqual([
      ['port-3001', 'http://127.0.0.1:3001/mcp'],
      ['web', 'https://mcp.example.com/mcp?a=b'],
      ['tickets', 'https://tickets.example.com/mcp'],
      ['filesystem', ['npx', '-y', '@modelcontextprotocol/server-filesystem@1.2.3', '/srv/my files']],
      ['clock', ['uvx', 'mcp-server-time']],
      ['memory', ['node', '/x/server-memory/dist/index.js']],
    ]);
  });

  it('are called mcp where there is one without a name', () => {
    expect(read({ upstream: ['http://127.0.0.1:3001/mcp'] })).toMatchObject([{ name: 'mcp' }]);
    expect(read({ server: ['x=cat'] })).toMatchObject([{ name: 'x', argv: ['cat'] }]);
  });

  it.each([
    [{ upstream: ['a=http://h/mcp', 'a=http://i/mcp'] }, 'two servers are called a'],
    [{ server: ['a=npx $HOME'] }, '--server a=…: no shell is run, so $HOME is not replaced'],
    [{ server: ['KEY=x npx y'] }, 'no variable is set here; --env NAME passes one on'],
    [{ server: ['a= '] }, 'the command is empty'],
    [
      { server: ['a=cat'], header: [{ value: readHeader('X: y') }] },
      '--header is for a server that is reached by HTTP',
    ],
    [{ server: ['a=cat', 'b=cat'], env: [{ value: 'KEY' }] }, '--env: say which server it is for (a, b)'],
    [{ server: ['a=cat'], env: [{ name: 'c', value: 'KEY' }] }, '--env: there is no server "c"'],
    [
      {
        upstream: ['a=http://h/mcp'],
        network: [{ value: 'private' as const }, { name: 'a', value: 'loopback' as const }],
      },
      '--network: give it once for a server',
    ],
  ])('are refused with what to do: %j', (options, error) => {
    expect(read(options)).toEqual({ error: expect.stringContaining(error) });
  });

  it('get the options that name them', () => {
    const servers = read({
      upstream: ['a=http://h/mcp', 'b=http://i/mcp'],
      server: ['c=cat'],
      header: [{ name: 'b', value: readHeader('X-Key: v') }],
      env: [{ value: 'KEY' }],
    });
    expect(servers).toMatchObject([
      { name: 'a', header: undefined },
      { name: 'b', header: { name: 'X-Key', value: 'v' } },
      { name: 'c', env: new Map([['KEY', { env: 'KEY' }]]) },
    ]);
  });

  it.each([
    [['http://h/mcp'], ['dev', 'http://h/mcp'], { urls: [{ value: 'http://h/mcp' }], command: [] }],
    [
      ['a=http://h/mcp', 'npx', '--', 'x'],
      ['dev', 'a=http://h/mcp', '--', 'npx', '--', 'x'],
      { urls: [{ name: 'a', value: 'http://h/mcp' }], command: ['npx', '--', 'x'] },
    ],
    [['npx', 'x'], ['dev', 'npx', 'x'], { urls: [], command: ['npx', 'x'] }],
    [['npx', 'x'], ['dev', 'npx', '--', 'x'], { error: expect.stringContaining('the command follows --') }],
    [['http://h/mcp'], ['dev', '--', 'http://h/mcp'], { error: expect.stringContaining('a URL stands before --') }],
  ])('stand before and behind the first --: %j', (given, argv, expected) => {
    expect(splitOperands(given, argv)).toEqual(expected);
  });
});
