// The listers of one upstream as one: nothing is shown of the first round before every face was heard of, and
// the upstream is fresh only where every face was verified.

import { afterEach, expect, it } from 'vitest';
import type { ClientProfile, Listing } from '../../../../src/protocol/methods.js';
import {
  createDiscoveryLister,
  type DiscoveryPorts,
  type DiscoverySettings,
  listProfilesOnce,
} from '../../../../src/upstream/discovery/discovery.js';
import type { SendRequest } from '../../../../src/upstream/exchange.js';
import { bodyResponse } from '../../../../src/upstream/response-messages.js';

const HOST = 'io.modelcontextprotocol/ui';

/** How a server takes a request; `refuses` is what one of no era says. */
type Way = 'answers' | 'fails' | 'refuses';

type Body = { readonly id?: number; readonly method: string; readonly params?: unknown };

/** A stateless server without tools. `gate` holds or fails a request; each port is counted. */
function serverOf(gate: (declares: boolean) => Promise<Way>) {
  let ports = 0;
  const openRequest = (): SendRequest => {
    ports += 1;
    return async ({ body = '{}', headers }) => {
      const { id = 0, method } = JSON.parse(body) as Body;
      const way = await gate(body.includes(HOST));
      if (way === 'fails') return { failure: 'unavailable' };
      const isStateless = headers['mcp-method'] !== undefined && way === 'answers';
      const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
      const discovered = { supportedVersions: ['2026-07-28'], capabilities: {}, ...complete };
      const answer =
        isStateless && method === 'server/discover'
          ? { jsonrpc: '2.0', id, result: discovered }
          : { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } };
      return bodyResponse(isStateless ? 200 : 400, JSON.stringify(answer));
    };
  };
  return { openRequest, ports: () => ports };
}

const SETTINGS = { maxAgeMs: 60_000, requestTimeoutMs: 5_000, gatewayVersion: '0', apps: true };
const profilesOf = (listings: readonly ClientProfile[]): readonly string[] =>
  listings.map(({ era, apps }) => `${era} ${apps}`);

/** The waits between listings, made short. */
const HASTE = 20;
const setHastyTimer: NonNullable<DiscoveryPorts['setTimer']> = (run, delayMs) => {
  const timer = setTimeout(run, delayMs / HASTE);
  return () => clearTimeout(timer);
};

let close: (() => Promise<void>) | undefined;
afterEach(() => close?.());

function listerOf(
  gate: (declares: boolean) => Promise<Way>,
  settings: DiscoverySettings = SETTINGS,
  more: Partial<DiscoveryPorts> = {},
) {
  const rounds: (readonly Listing[])[] = [];
  const server = serverOf(gate);
  const lister = createDiscoveryLister(settings, {
    openRequest: server.openRequest,
    now: Date.now,
    setTimer: setHastyTimer,
    onListings: (listings) => rounds.push(listings),
    onProfileGone: () => undefined,
    ...more,
  });
  close = () => lister.close();
  return { lister, rounds, ports: server.ports };
}

it('[APP-05] shows the first round whole, once every face was heard of', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { lister, rounds, ports } = listerOf(async (declares) => {
    if (declares) await held;
    return 'answers';
  });
  const fresh = lister.ensureFresh();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(rounds).toEqual([]);
  expect(lister.isFresh()).toBe(false);
  release();
  expect(await fresh).toBe('fresh');
  expect(rounds.map(profilesOf)).toEqual([['2026 false', '2026 true']]);
  expect(ports()).toBe(2);
});

it('[APP-05] holds one listing of a face, however often it is listed while the other says nothing', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  const { lister, rounds } = listerOf(async (declares) => {
    if (declares) await held;
    else asked += 1;
    return 'answers';
  });
  lister.start();
  await expect.poll(() => asked).toBeGreaterThan(0);
  const first = asked;
  const changed = lister.noteListChanged();
  await expect.poll(() => asked).toBeGreaterThan(first);
  await new Promise((resolve) => setTimeout(resolve, 50));
  release();
  await changed;
  expect(rounds[0] && profilesOf(rounds[0])).toEqual(['2026 false', '2026 true']);
});

it('[APP-05] shows the first round whole after one in which nothing was listed', async () => {
  let isDown = true;
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { lister, rounds } = listerOf(async (declares) => {
    if (isDown) return 'fails';
    if (declares) await held;
    return 'answers';
  });
  expect(await lister.ensureFresh()).toBe('stale');
  isDown = false;
  const listed = lister.noteListChanged();
  await new Promise((resolve) => setTimeout(resolve, 1_500 / HASTE));
  expect(rounds).toEqual([]);
  release();
  await listed;
  expect(rounds.map(profilesOf)).toEqual([['2026 false', '2026 true']]);
});

it('[APP-05] is stale while one face cannot be listed, and shows the other', async () => {
  const { lister, rounds } = listerOf(async (declares) => (declares ? 'fails' : 'answers'));
  expect(await lister.ensureFresh()).toBe('stale');
  expect(rounds.map(profilesOf)).toEqual([['2026 false']]);
});

it('[APP-05] is no listed upstream while one face cannot be listed, whichever answered last', async () => {
  let isPlainSlow = true;
  let isDown = true;
  const states: boolean[] = [];
  const { lister } = listerOf(
    async (declares) => {
      if (declares && isDown) return 'fails';
      if (!declares && isPlainSlow) await new Promise((resolve) => setTimeout(resolve, 50));
      return 'answers';
    },
    SETTINGS,
    { onListings: () => states.push(lister.isUp()) },
  );
  expect(lister.isUp()).toBe(false);
  await lister.ensureFresh();
  isPlainSlow = false;
  await lister.noteListChanged();
  expect(states).toEqual([false, false]);
  isDown = false;
  await lister.noteListChanged();
  expect(states.at(-1)).toBe(true);
});

it('[APP-05] forgets what it holds of an era that is gone before the other face was heard of', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let isGone = false;
  const gone: string[] = [];
  const { lister, rounds } = listerOf(
    async (declares) => {
      if (declares) await held;
      return isGone && !declares ? 'refuses' : 'answers';
    },
    SETTINGS,
    { onProfileGone: ({ era, apps }) => gone.push(`${era} ${apps}`) },
  );
  lister.start();
  await new Promise((resolve) => setTimeout(resolve, 50));
  isGone = true;
  const changed = lister.noteListChanged();
  await expect.poll(() => gone).toEqual(['2026 false']);
  expect(rounds).toEqual([]);
  release();
  await changed;
  expect(new Set(rounds.flatMap(profilesOf))).toEqual(new Set(['2026 true']));
});

it('[APP-05] a fault of whoever takes a listing is told to who asked for it, and ends nothing else', async () => {
  const { lister } = listerOf(async () => 'answers', SETTINGS, {
    onListings() {
      throw new Error('a fault of the owner');
    },
  });
  await expect(lister.ensureFresh()).rejects.toThrow('a fault of the owner');
});

it('[APP-06] declares nothing without the setting', async () => {
  const declared: boolean[] = [];
  const gate = async (declares: boolean) => {
    declared.push(declares);
    return 'answers' as const;
  };
  const { lister, rounds, ports } = listerOf(gate, { ...SETTINGS, apps: false });
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(rounds.map(profilesOf)).toEqual([['2026 false']]);
  expect([ports(), new Set(declared)]).toEqual([1, new Set([false])]);
});

it('[APP-05] is listed once by every face for the command line, or not at all', async () => {
  const once = { requestTimeoutMs: 5_000, gatewayVersion: '0', apps: true };
  const { openRequest } = serverOf(async () => 'answers');
  const found = await listProfilesOnce(once, { openRequest, now: Date.now });
  expect(found.kind === 'listed' && profilesOf(found.listings)).toEqual(['2026 false', '2026 true']);
  const failing = serverOf(async (declares) => (declares ? 'fails' : 'answers'));
  const ports = { openRequest: failing.openRequest, now: Date.now };
  expect(await listProfilesOnce(once, ports)).toEqual({
    kind: 'unreachable',
    why: 'unavailable',
    isSpoken: false,
  });
});
