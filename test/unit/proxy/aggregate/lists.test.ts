import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { SESSION } from '../../../../src/protocol/versions/session.js';
import { STATELESS } from '../../../../src/protocol/versions/stateless.js';
import {
  joinDiscover,
  joinInitialize,
  joinPages,
  oldestVersion,
  readPage,
} from '../../../../src/proxy/aggregate/lists.js';
import { eachInTurn, FREE_TURNS } from '../../../support/timing.js';

const names = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });

describe('[MRG-01] pages of members', () => {
  const page = (items: string, more = ''): string =>
    `{"jsonrpc":"2.0","id":9,"result":{"tools":[${items}],"cacheScope":"private","ttlMs":500${more}}}`;

  const read = (text: string, method: string, prefix: string, loopScheduler = FREE_TURNS) =>
    readPage(text, { method, prefix }, { upstream: 'one', loopScheduler });

  it('are joined item by item, byte for byte but for the names', async () => {
    const items = fc.array(fc.record({ name: names, rest: fc.json({ maxDepth: 3 }) }), {
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(items, items, async (left, right) => {
        const write = (list: typeof left, prefix: string): string =>
          list.map(({ name, rest }) => `{ "x":${rest},"name":${JSON.stringify(prefix + name)}}`).join(',');
        const pages = [
          await read(page(write(left, '')), 'tools/list', 'l_'),
          await read(page(write(right, '')), 'tools/list', 'r_'),
        ].filter((one) => one !== undefined);
        const list = { id: 1, protocol: SESSION, method: 'tools/list', isComplete: true } as const;
        const text = joinPages(pages, { ...list, nextCursor: undefined });
        const both = [write(left, 'l_'), write(right, 'r_')].filter((one) => one !== '').join(',');
        expect(text).toBe(`{"jsonrpc":"2.0","id":1,"result":{"tools":[${both}]}}`);
      }),
    );
  });

  it('keep the shortest time, and none where a member is missing', async () => {
    const texts = [page('', ''), page('').replace('500', '20')];
    const pages = (await Promise.all(texts.map((text) => read(text, 'tools/list', 'x_')))).filter(
      (one) => one !== undefined,
    );
    const list = { id: 'a', protocol: STATELESS, method: 'tools/list', nextCursor: 'c' } as const;
    const resultOf = (isComplete: boolean): JsonObject => JSON.parse(joinPages(pages, { ...list, isComplete })).result;
    expect(resultOf(true)).toEqual({
      ...{ tools: [], nextCursor: 'c', resultType: 'complete', cacheScope: 'private' },
      ttlMs: 20,
    });
    expect(resultOf(false)['ttlMs']).toBe(0);
    expect(JSON.parse(joinPages([], { ...list, isComplete: true })).result.ttlMs).toBe(0);
  });

  it('have no prefix where they name URIs, and are none where they are errors', async () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"a://b","name":"n"}]}}';
    expect(await read(text, 'resources/list', 'p_')).toMatchObject({
      items: ['{"uri":"a://b","name":"n"}'],
      uris: ['a://b'],
    });
    const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}';
    expect(await read(error, 'tools/list', 'p_')).toBeUndefined();
  });

  it('keep an empty cursor', async () => {
    const one = await read(page('', ',"nextCursor":""'), 'tools/list', '');
    expect(one?.nextCursor).toBe('');
  });

  it('are read item by item in turns of their backend', async () => {
    const turns = eachInTurn();
    const resources = Array.from({ length: 100 }, (_, index) => `{"uri":"a://${index}"}`);
    const text = `{"jsonrpc":"2.0","id":1,"result":{"resources":[${resources.join()}]}}`;
    expect((await read(text, 'resources/list', '', turns))?.items).toEqual(resources);
    expect(turns.taken).toEqual(Array.from({ length: 101 }, () => 'one'));
  });
});

describe('[MRG-08] handshakes of members', () => {
  const handshake = (upstream: string, result: Record<string, Json>) => ({
    backend: { upstream, prefix: `${upstream}_` },
    result: { protocolVersion: '2025-11-25', capabilities: {}, ...result },
  });
  const server = { name: 'all', version: '1' };

  it('agree on the oldest version', () => {
    const two = [handshake('a', {}), handshake('b', { protocolVersion: '2025-03-26' })];
    expect(oldestVersion(two)).toBe('2025-03-26');
    expect(oldestVersion([])).toBeUndefined();
  });

  it('declare what any of them can, and nothing that is not carried here', () => {
    const tasks = { tasks: {}, extensions: { 'x/y': {} }, experimental: {} };
    const text = joinInitialize(
      [
        handshake('a', { capabilities: { tools: {}, logging: {}, ...tasks } }),
        handshake('b', { capabilities: { resources: { subscribe: true } }, instructions: 'Be.' }),
        handshake('c', { capabilities: { resources: {}, completions: {} }, instructions: '' }),
      ],
      { id: 1, version: '2025-06-18', server },
    );
    expect(JSON.parse(text).result).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: {
        ...{ completions: {}, logging: {}, tools: { listChanged: true } },
        resources: { subscribe: true, listChanged: true },
      },
      serverInfo: server,
      instructions: '# b (its names begin with b_)\n\nBe.',
    });
  });

  it('name the versions that all of them carry', () => {
    const versions = (list: readonly string[]) => ({ supportedVersions: list, ttlMs: 5 });
    const both = [handshake('a', versions(['2026-07-28', '2027-01-01'])), handshake('b', versions(['2026-07-28']))];
    const result = JSON.parse(joinDiscover(both, { id: 1, server, isComplete: true })).result;
    expect(result).toMatchObject({
      ...{ supportedVersions: ['2026-07-28'], resultType: 'complete', cacheScope: 'private' },
      ttlMs: 5,
    });
  });
});
