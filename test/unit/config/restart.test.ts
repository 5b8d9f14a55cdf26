import { describe, expect, it } from 'vitest';
import { type GatewayReading, loadGateway } from '../../../src/config/load.js';
import { type KeysInForce, withKeysInForce } from '../../../src/config/restart.js';
import type { GatewayConfig } from '../../../src/config/schema/gateway.js';
import { makeSecret } from '../../support/secrets.js';
import { FILE, FOLDER, filesOf, GOOD, KEY_HEX, read } from './reading.js';

/** The reading of a text by a gateway that runs with another. */
function readAfter(
  before: string,
  after: string,
  files: { readonly before?: Record<string, string>; readonly after?: Record<string, string> } = {},
): GatewayReading {
  const first = read(before, { files: files.before ?? {} });
  if (first.reload === undefined) throw new Error(JSON.stringify(first.diagnostics));
  return loadGateway(FILE, {
    readFile: filesOf({ [FILE]: after, ...files.after }).readFile,
    env: { KEY: KEY_HEX },
    inForce: first.reload.inForce,
  });
}

const REVIEWED = `admin:
  publicUrl: https://console.example.com
  issuers: {corp: {audience: console, roles: {reviewer: [leads]}}}
`;
const LOGIN = GOOD.replace(
  'algorithms: [ES256]',
  'algorithms: [ES256]\n    login: {clientId: console, clientSecret: {env: KEY}}',
);

describe('keys that wait for a restart', () => {
  it('[G-18] keep their values, and everything else is taken', () => {
    const after = GOOD.replace('mcp.example.com', 'other.example.com').replace('/mcp\n', '/v2\n');
    const { settings, reload } = readAfter(GOOD, after);
    expect(reload?.pending.keys).toEqual(['publicUrl']);
    expect(settings?.publicBase).toBe('https://mcp.example.com');
    expect(settings?.upstreams.get('github')?.url.pathname).toBe('/v2');
    expect(settings?.upstreams.get('github')?.resource).toBe('https://mcp.example.com/github');
  });

  it('[G-18] are no keys that mean the same in other words', () => {
    const after = GOOD.replace('https://mcp.example.com\n', 'https://mcp.example.com/\n');
    const { settings, reload, fileHash } = readAfter(GOOD, `${after}audit: {durability: written}\n`);
    expect(reload?.pending.keys).toEqual([]);
    expect(settings?.hash).toBe(fileHash);
  });

  it.each([
    ['a console gets a login', REVIEWED.replace(/ {2}publicUrl.*\n/, ''), REVIEWED, GOOD, LOGIN],
    [
      'an issuer has another name',
      REVIEWED,
      REVIEWED.replace('corp:', 'staff:'),
      GOOD,
      GOOD.replaceAll('corp', 'staff'),
    ],
    ['the console goes, and its issuer', REVIEWED, '', GOOD, GOOD.replaceAll('corp', 'staff')],
  ])('[G-18] keep nothing else back where %s', (_, before, after, gateway, changed) => {
    const text = `${changed.replace('/mcp\n', '/v2\n')}${after}`;
    const { settings, diagnostics, reload } = readAfter(`${gateway}${before}`, text);
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(reload?.pending.keys).toEqual(['admin']);
    expect(settings?.upstreams.get('github')?.url.pathname).toBe('/v2');
  });

  it('[G-18] leave out what is not valid with the values in force, and what depends on that', () => {
    const open = GOOD.replace('https://mcp.example.com', 'http://127.0.0.1:8080').replace(
      'policies:',
      `  open:
    url: https://open.example.com/mcp
    authentication: none
  alone:
    url: https://alone.example.com/mcp
    issuers: [corp]
endpoints:
  all: {authentication: none, upstreams: {open: {}}}
  some: {issuers: [corp], upstreams: {alone: {}}}
policies:`,
    );
    const { settings, reload } = readAfter(GOOD, open);
    expect(reload?.pending).toMatchObject({
      keys: ['publicUrl'],
      leftOut: expect.arrayContaining(['upstreams.open', 'endpoints.all']),
    });
    expect([...(settings?.upstreams.keys() ?? [])]).toEqual(['github', 'alone']);
    expect([...(settings?.aggregates.keys() ?? [])]).toEqual(['some']);
  });

  it.each([
    ['admin is new', LOGIN, `${LOGIN}${REVIEWED}`, true],
    ['admin has other reviewers', `${LOGIN}${REVIEWED}`, `${LOGIN}${REVIEWED.replace('leads', 'others')}`, true],
    [
      'only the port of the console changes',
      `${LOGIN}${REVIEWED}`,
      `${LOGIN}${REVIEWED}listeners: {admin: {port: 9999}}\n`,
      false,
    ],
    ['admin goes', `${LOGIN}${REVIEWED}`, LOGIN, false],
    ['something else waits', LOGIN, `${LOGIN}metrics: {toolLabel: true}\n`, false],
  ])('[G-18] close rules for reviewers where %s: %s', (_what, before, after, expected) => {
    expect(readAfter(before, after).reload?.pending.lacking.reviewers).toBe(expected);
  });
});

describe('a certificate of a listener', () => {
  const of = (cert: string, clientCa?: string) => ({
    data: { cert, key: 'key', clientCa, expiresAtMs: 0, files: [cert] },
  });
  const listening = (more: string) => {
    const { listeners } = {
      listeners: { data: { host: '::', port: 1, tls: more === '' ? undefined : JSON.parse(more) } },
    };
    return { listeners: { ops: listeners.data, admin: listeners.data, ...listeners } } as unknown as GatewayConfig;
  };
  const keysInForce = (tls: ReturnType<typeof of>, more: string) =>
    ({ gateway: listening(more), tls, meanings: {}, hash: '' }) as unknown as KeysInForce;
  const WITHOUT = '{"cert":"c"}';
  const WITH = '{"cert":"c","clientCa":"a"}';

  it.each([
    ['is renewed with the authorities of clients', WITH, of('old', 'one'), WITH, of('new', 'two'), of('new', 'two')],
    ['is renewed although clients are to be asked', WITHOUT, of('old'), WITH, of('new', 'one'), of('new')],
    [
      'is renewed although clients are to be asked no more',
      WITH,
      of('old', 'one'),
      WITHOUT,
      of('new'),
      of('new', 'one'),
    ],
  ])('[G-18] %s', (_what, before, inForce, after, read, expected) => {
    const kept = withKeysInForce(listening(after), read, keysInForce(inForce, before));
    expect(kept.tls).toEqual(expected);
    const { tls } = kept.gateway.listeners.data;
    expect(tls?.clientCa === undefined).toBe(expected.data.clientCa === undefined);
  });
});

describe('files that the gateway file names', () => {
  const [one, two] = [makeSecret(), makeSecret()];
  const text = GOOD.replace(
    'issuers: [corp]',
    'issuers: [corp]\n    credentials: {type: static, header: x-secret, value: {file: ./secret}}',
  );
  const path = `${FOLDER}/secret`;

  it('[G-19] are all watched', () => {
    const secrets = ['key', 'secret', 'login', 'hook', 'sign', 'token', 'store'];
    const files = Object.fromEntries(secrets.map((name) => [`${FOLDER}/${name}`, makeSecret()]));
    Object.assign(files, {
      [`${FOLDER}/key`]: KEY_HEX,
      [`${FOLDER}/hook`]: 'https://hooks.example.com/path',
      [`${FOLDER}/sign`]: Buffer.from(KEY_HEX).toString('base64').slice(0, 44),
      [`${FOLDER}/store`]: 'rediss://store.example.com',
    });
    const everything = `${text
      .replace('{env: KEY}', '{file: ./key}')
      .replace('[ES256]', '[ES256]\n    login: {clientId: c, clientSecret: {file: ./login}}')}${REVIEWED}
  breakGlass: {token: {file: ./token}}
approvals: {webhooks: {team: {url: {file: ./hook}, secret: {file: ./sign}, format: json}}}
state: {type: redis, url: {file: ./store}}
`;
    const { settings, diagnostics } = read(everything, { files });
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect([...(settings?.watchedFiles ?? [])].sort()).toEqual(Object.keys(files).sort());
  });

  it('[G-19] keep what they held where they cannot be read, with a warning', () => {
    const { settings, reload, diagnostics } = readAfter(text, text.replace('/mcp\n', '/v2\n'), {
      before: { [path]: one },
    });
    expect(settings?.upstreams.get('github')?.credentials).toMatchObject({ value: one });
    expect(settings?.upstreams.get('github')?.url.pathname).toBe('/v2');
    expect(reload?.lost).toEqual([path]);
    expect(diagnostics).toContainEqual(expect.objectContaining({ file: path, severity: 'warning' }));
  });

  it('[G-19] are errors where they are named for the first time and not there', () => {
    const { settings } = readAfter(text, text.replace('./secret', './other'), { before: { [path]: one } });
    expect(settings).toBeUndefined();
  });

  it('[G-19] are read anew where they are there', () => {
    const { settings, reload } = readAfter(text, text, { before: { [path]: one }, after: { [path]: two } });
    expect(settings?.upstreams.get('github')?.credentials).toMatchObject({ value: two });
    expect(reload?.lost).toEqual([]);
  });

  it('[G-18] says nothing of a secret in the hash of a file with keys that wait', () => {
    const waiting = `${text}metrics: {toolLabel: true}\n`;
    const hashes = [one, two].map(
      (secret) => readAfter(text, waiting, { before: { [path]: secret }, after: { [path]: secret } }).settings?.hash,
    );
    expect(hashes[0]).toBe(hashes[1]);
  });
});
