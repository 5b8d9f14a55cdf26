// What the process log says of a start, of each upstream and of the end, to somebody who has never seen it.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../support/demo.js';
import { startTestGateway } from '../support/gateway.js';
import { HONEST_TOOLS, startHostileUpstream } from '../support/hostile-upstream.js';
import { countApproved, readLockOf } from '../support/lock-files.js';
import { PATIENT } from '../support/timing.js';
import { untilTestEnds, withGateway } from '../support/with-gateway.js';

type Line = { readonly event: string; readonly level: string; readonly [field: string]: unknown };

function linesOf(log: string): readonly Line[] {
  return log
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

describe('the process log', () => {
  it('[G-14] says of each upstream where clients reach it, what it speaks and what is pinned', async () => {
    const upstream = await untilTestEnds(startHostileUpstream());
    await withGateway(
      {
        upstreams: [
          { name: 'wiki', url: upstream.url },
          { name: 'open', url: upstream.url, more: ['pinning: {mode: off}'] },
          { name: 'gone', url: 'http://127.0.0.1:9/mcp' },
        ],
        pin: false,
      },
      async (gateway) => {
        const states = (name: string): readonly Line[] =>
          linesOf(gateway.log()).filter(({ event, upstream: one }) => one === name && /reachable|listed/.test(event));
        for (const name of ['wiki', 'open', 'gone'])
          await expect.poll(() => states(name).length, PATIENT).toBeGreaterThan(0);
        expect(states('wiki')).toEqual([
          expect.objectContaining({
            ...{ event: 'upstream is reachable', level: 'info', url: gateway.url('wiki') },
            ...{ pinned: 0, pending: 0, unpinned: HONEST_TOOLS.length, changed: 0 },
            protocol: expect.stringMatching(/2025-11-25.*2026-07-28/),
          }),
        ]);
        expect(states('open')[0]).toMatchObject({ detail: 'pinning is off', url: gateway.url('open') });
        expect(states('gone')[0]).toMatchObject({
          ...{ event: 'upstream could not be listed', level: 'warn', url: gateway.url('gone') },
          detail: 'it cannot be reached, or answered that it is not available',
        });
      },
    );
  });

  it('[G-14] counts what is approved and what is not', async () => {
    const upstream = await untilTestEnds(startHostileUpstream());
    await withGateway({ upstreams: [{ name: 'wiki', url: upstream.url }] }, async (gateway) => {
      const last = (): Line | undefined =>
        linesOf(gateway.log()).findLast(({ event }) => event === 'upstream is reachable');
      await expect.poll(() => last()?.['pinned'], PATIENT).toBe(HONEST_TOOLS.length);
      expect(last()).toMatchObject({ pending: 0, unpinned: 0, changed: 0 });
    });
  });

  it('[G-14] counts the instructions of a server too, as pin does', async () => {
    const upstream = await untilTestEnds(startDemoUpstream({}));
    await withGateway({ upstreams: [{ name: 'desk', url: upstream.url }] }, async (gateway) => {
      const lock = await readLockOf(gateway.folder, 'desk');
      if (lock.instructions === undefined) throw new Error('the server has no instructions');
      const last = (): Line | undefined =>
        linesOf(gateway.log()).findLast(({ event }) => event === 'upstream is reachable');
      await expect.poll(() => last()?.['pinned'], PATIENT).toBe(countApproved(lock));
      expect(last()).toMatchObject({ pending: 0, unpinned: 0, changed: 0 });
    });
  });

  it('[G-14] warns of what is weaker than configured, and not of what is off by choice', async () => {
    const upstream = await untilTestEnds(startHostileUpstream());
    await withGateway({ upstreams: [{ name: 'wiki', url: upstream.url }] }, async (gateway) => {
      const controls = linesOf(gateway.log()).filter(({ control }) => control !== undefined);
      const off = controls.filter(({ state }) => state === 'off');
      expect(off.map(({ control }) => control)).toEqual(
        expect.arrayContaining(['admin', 'tls:data', 'binding:wiki', 'upstream-identity:wiki']),
      );
      expect(off.map(({ level }) => level)).toEqual(off.map(() => 'debug'));
      const [first] = controls.filter(({ control }) => control === 'pins:wiki');
      expect(first).toMatchObject({ state: 'degraded', level: 'debug' });
      const file = join(gateway.folder, 'gateway.yaml');
      const text = await readFile(file, 'utf8');
      await writeFile(file, text.replace('issuers: [test]', 'issuers: [test]\n    audiences: {test: [wiki]}'));
      await gateway.reload();
      const audience = linesOf(gateway.log()).findLast(({ control }) => control === 'audience:wiki');
      expect(audience).toMatchObject({ state: 'degraded', level: 'warn' });
    });
  });

  it.each([
    ['v20.20.2', '2026-04-30'],
    ['v22.0.0', '2027-04-30'],
    ['v24.22.3', undefined],
    ['v99.0.0', undefined],
  ])('[G-14] says at the start since when Node %s gets no fixes', async (node, since) => {
    const upstream = await untilTestEnds(startHostileUpstream());
    await withGateway(
      {
        upstreams: [{ name: 'wiki', url: upstream.url }],
        node,
        now: () => Date.parse('2027-06-01'),
      },
      async (gateway) => {
        const logged = linesOf(gateway.log()).filter(({ event }) => event.includes('version of Node'));
        const detail = `${node}, since ${since}: run Sallyport on Node 24`;
        expect(logged).toMatchObject(since === undefined ? [] : [{ level: 'warn', detail }]);
      },
    );
  });

  it('[G-14] begins with the start and ends with the end', async () => {
    const upstream = await untilTestEnds(startHostileUpstream());
    const gateway = await startTestGateway({ upstreams: [{ name: 'wiki', url: upstream.url }] });
    const events = (): readonly string[] => linesOf(gateway.log()).map(({ event }) => event);
    expect(events()).toContain('gateway started');
    await gateway.close();
    expect(
      events()
        .filter((event) => event !== 'gateway is not ready')
        .slice(-2),
    ).toEqual(['gateway is stopping', 'gateway stopped']);
  });
});
