// Settings that are sent to another thread are the same there, and what could not be sent is refused.

import { expect, it } from 'vitest';
import { loadGateway } from '../../../src/config/load.js';
import { fromTransfer, toTransfer } from '../../../src/config/transfer.js';

const FILE = `version: 1
publicUrl: https://mcp.example.com
keys: [{file: ./key}]
issuers:
  own:
    issuer: https://id.example.com
    introspection: {endpoint: "https://id.example.com/introspect", clientId: a, clientSecret: {env: SECRET}}
    scopeHierarchy: {all: [read]}
upstreams:
  one: {url: "https://one.example.com/mcp", path: /one, issuers: [own]}
  two: {url: "https://two.example.com/mcp", path: /two, issuers: [own], limits: {maxValues: 700}}
endpoints:
  both: {issuers: [own], upstreams: {one: {prefix: a_}, two: {prefix: b_}}}
policies: {dir: ./policies}
audit: {sinks: [{type: stdout, durability: handed-over}]}
`;

it('[D-10] arrive with their maps, bytes and URLs', () => {
  const { settings, outline, diagnostics } = loadGateway('gateway.yaml', {
    readFile: (path) => Buffer.from(path.endsWith('key') ? Buffer.alloc(32, 7).toString('base64') : FILE),
    env: { SECRET: 'not a secret' },
  });
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  const sent = structuredClone(toTransfer({ settings, outline }));
  const arrived = fromTransfer<{ settings: typeof settings; outline: typeof outline }>(sent);
  expect(arrived).toEqual({ settings, outline });
  expect(arrived.settings?.upstreams.get('two')?.url).toBeInstanceOf(URL);
  expect(arrived.settings?.publicUrl.href).toBe('https://mcp.example.com/');
  expect(unfrozenIn(settings)).toEqual([]);
  expect(unfrozenIn(arrived)).toEqual([]);
});

/** The paths of plain objects and lists that can be changed. */
function unfrozenIn(value: unknown, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || value instanceof URL) return [];
  const parts = value instanceof Map ? value : new Map(Object.entries(value));
  const below = [...parts].flatMap(([name, part]) => unfrozenIn(part, `${path}/${String(name)}`));
  return Object.isFrozen(value) || value instanceof Map || value instanceof Set ? below : [path, ...below];
}

it.each([
  ['a function', { a: [() => 1] }],
  ['an instance of a class', new Map([['a', new Date(0)]])],
])('[D-10] are refused if they hold %s', (_what, value) => {
  expect(() => toTransfer(value)).toThrow('cannot be sent');
});
