import { afterEach, beforeEach, expect, test } from 'vitest';
import { observeListing } from '../../../../src/pins/last-seen.js';
import type { Listing } from '../../../../src/protocol/methods.js';
import { createListingAllowance } from '../../../../src/upstream/discovery/caps.js';
import {
  Lister,
  type ListerPorts,
  listOnce,
  MIN_INTERVAL_MS,
  PROBE_INTERVAL_MS,
} from '../../../../src/upstream/discovery/discovery.js';
import { type ListingUpstream, requestOver, startListingUpstream, toolNamed } from '../../../support/mcp-servers.js';

const MAX_AGE_MS = 60_000;

let upstream: ListingUpstream;
let nowMs: number;
let timers: { run: () => void; atMs: number }[];
let listings: Listing[];
let events: string[];
let open: Lister[];

beforeEach(async () => {
  upstream = await startListingUpstream();
  nowMs = 1_000_000;
  timers = [];
  listings = [];
  events = [];
  open = [];
});

afterEach(async () => {
  await Promise.all(open.map((lister) => lister.close()));
  await upstream.close();
});

function ports(): ListerPorts {
  return {
    request: requestOver(upstream.url),
    now: () => nowMs,
    setTimer(run, delayMs) {
      const timer = { run, atMs: nowMs + delayMs };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    random: () => 0.5,
    onListing: (listing) => listings.push(listing),
    onEraGone: (era) => events.push(`gone ${era}`),
    onFailure: (era, { why }) => events.push(`failed ${era} ${why}`),
  };
}

function newLister(requestTimeoutMs = 5000): Lister {
  const settings = { maxAgeMs: MAX_AGE_MS, requestTimeoutMs, gatewayVersion: '0' };
  const lister = new Lister(settings, ports());
  open.push(lister);
  return lister;
}

/** Moves the clock and runs what was due, as the event loop would. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  for (const timer of timers.filter(({ atMs }) => atMs <= nowMs)) {
    timers = timers.filter((other) => other !== timer);
    timer.run();
  }
  await new Promise((resolve) => setImmediate(resolve));
}

function names(listing: Listing | undefined): unknown[] {
  return (listing?.tools ?? []).map(({ definition }) => definition['name']);
}

/** The versions of an era by its newest listing. */
function versionsListed(wanted: Listing['era']): readonly string[] | undefined {
  return listings.findLast(({ era }) => era === wanted)?.protocolVersions;
}

test('[L-20] lists every page once in each era that the upstream speaks', async () => {
  upstream.script.tools = [[toolNamed('a')], [toolNamed('b')], [toolNamed('c')]];
  const lister = newLister();
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(listings.map(({ era }) => era).sort()).toEqual(['2025', '2026']);
  for (const listing of listings) expect(names(listing)).toEqual(['a', 'b', 'c']);
  expect(upstream.count('tools/list')).toBe(6);
  expect(versionsListed('2025')).toEqual(['2025-03-26', '2025-06-18', '2025-11-25']);
  expect(versionsListed('2026')).toEqual(['2026-07-28']);
});

test('[L-21] declares what policies can grant, and sends what each era asks for', async () => {
  await newLister().ensureFresh();
  const discover = upstream.asked.find(({ method }) => method === 'server/discover');
  expect(discover?.headers).toMatchObject({
    'mcp-method': 'server/discover',
    'mcp-protocol-version': '2026-07-28',
  });
  expect(discover?.params['_meta']).toMatchObject({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  });
  const initialize = upstream.asked.find(({ method }) => method === 'initialize');
  expect(initialize?.params).toMatchObject({
    protocolVersion: '2025-11-25',
    capabilities: {
      sampling: {},
      elicitation: { form: {}, url: {} },
      roots: { listChanged: true },
    },
  });
  expect(initialize?.headers['mcp-protocol-version']).toBeUndefined();
  expect(upstream.count('notifications/initialized')).toBe(1);
  const [session] = upstream.sessions;
  const listed = upstream.asked.filter(
    ({ method, headers }) => method === 'tools/list' && headers['mcp-session-id'] === session,
  );
  expect(listed).toHaveLength(1);
});

test('[L-22] an upstream of one era is no failure and is not asked again at once', async () => {
  upstream.script.speaks = { sessions: true, stateless: false };
  const lister = newLister();
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(events).toEqual([]);
  expect(versionsListed('2026')).toBeUndefined();
  await pass(MAX_AGE_MS + 1);
  await lister.ensureFresh();
  expect(upstream.count('server/discover')).toBe(1);
  upstream.script.speaks.stateless = true;
  await pass(PROBE_INTERVAL_MS);
  await lister.ensureFresh();
  expect(versionsListed('2026')).toEqual(['2026-07-28']);
});

test('[L-23] reads event streams, passing over what is not the answer', async () => {
  upstream.script.answersWith = 'sse';
  expect(await newLister().ensureFresh()).toBe('fresh');
  expect(names(listings[0])).toEqual(['first', 'second']);
});

test('[L-24] keeps its session, and opens another where the upstream forgot it', async () => {
  upstream.script.speaks.stateless = false;
  const lister = newLister();
  await lister.ensureFresh();
  await pass(MAX_AGE_MS + 1);
  await lister.ensureFresh();
  expect(upstream.count('initialize')).toBe(1);
  upstream.sessions.clear();
  await pass(MAX_AGE_MS + 1);
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(upstream.count('initialize')).toBe(2);
  await lister.close();
  expect(upstream.sessions.size).toBe(0);
});

test('[L-25] calls at the same time share one listing', async () => {
  const lister = newLister();
  const all = await Promise.all(Array.from({ length: 20 }, () => lister.ensureFresh()));
  expect(new Set(all)).toEqual(new Set(['fresh']));
  expect(upstream.count('server/discover')).toBe(1);
});

test('[L-26] a failing upstream keeps what was seen until it is too old', async () => {
  const lister = newLister();
  await lister.ensureFresh();
  upstream.script.intercept = (_, response) => {
    response.writeHead(503).end();
    return true;
  };
  await pass(MAX_AGE_MS - 1);
  expect(await lister.ensureFresh()).toBe('fresh');
  await pass(2);
  expect(await lister.ensureFresh()).toBe('stale');
  expect(events).toEqual(['failed 2025 unavailable', 'failed 2026 unavailable']);
  const asked = upstream.asked.length;
  expect(await lister.ensureFresh()).toBe('stale');
  expect(upstream.asked.length).toBe(asked);
  delete upstream.script.intercept;
  await pass(MIN_INTERVAL_MS);
  expect(await lister.ensureFresh()).toBe('fresh');
});

test.each([429, 502, 503, 504])(
  '[L-26] an upstream that answers with %s from the start is unavailable, not out of protocol',
  async (status) => {
    upstream.script.intercept = (_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"error":"busy"}');
      return true;
    };
    expect(await newLister().ensureFresh()).toBe('stale');
    expect(events).toEqual(['failed 2025 unavailable', 'failed 2026 unavailable']);
  },
);

test('[L-26] an upstream that is overloaded in the middle of a listing is unavailable', async () => {
  upstream.script.speaks.sessions = false;
  upstream.script.intercept = ({ method }, response) => {
    if (method !== 'tools/list') return false;
    response.writeHead(429).end();
    return true;
  };
  expect(await newLister().ensureFresh()).toBe('stale');
  expect(events).toContain('failed 2026 unavailable');
});

test('[L-22] an era whose first probe met an overloaded upstream is probed with the next listing', async () => {
  let isBusy = true;
  upstream.script.intercept = ({ method }, response) => {
    if (!isBusy || method !== 'initialize') return false;
    response.writeHead(429).end();
    return true;
  };
  const lister = newLister();
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(events).toEqual([]);
  expect(versionsListed('2025')).toBeUndefined();
  isBusy = false;
  await pass(MAX_AGE_MS + 1);
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(versionsListed('2025')).toContain('2025-11-25');
});

test('[L-27] an era that the upstream gives up is told and no longer holds calls up', async () => {
  const lister = newLister();
  await lister.ensureFresh();
  upstream.script.speaks.stateless = false;
  await pass(MAX_AGE_MS + 1);
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(events).toEqual(['gone 2026']);
});

test.each([
  ['[L-28] a list that is none', { tools: {} }],
  ['[L-28] a result of another type', { tools: [], resultType: 'input_required' }],
])('%s makes no listing', async (_, result) => {
  upstream.script.speaks.sessions = false;
  upstream.script.intercept = ({ method, id }, response) => {
    if (method !== 'tools/list') return false;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    return true;
  };
  expect(await newLister().ensureFresh()).toBe('stale');
  expect(listings).toEqual([]);
  expect(events).toContain('failed 2026 protocol');
  expect(upstream.count('tools/list')).toBeLessThan(3);
});

test('[L-28] a cursor that is no text ends its list and is named', async () => {
  upstream.script.speaks.sessions = false;
  upstream.script.intercept = ({ method, id }, response) => {
    if (method !== 'tools/list') return false;
    response.setHeader('content-type', 'application/json');
    const result = { resultType: 'complete', tools: [toolNamed('one')], nextCursor: 3 };
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    return true;
  };
  expect(await newLister().ensureFresh()).toBe('fresh');
  expect(listings).toMatchObject([
    {
      tools: [{ definition: { name: 'one' } }],
      leftOut: ['tools: nextCursor: expected string, got number'],
    },
  ]);
  expect(upstream.count('tools/list')).toBe(1);
});

test.each([
  ['comes back', [{ tools: [toolNamed('one')], nextCursor: 'again' }], ['one']],
  [
    'is new each time, with the same page behind it',
    [
      { tools: [toolNamed('one')], nextCursor: 'a' },
      { tools: [toolNamed('one')], nextCursor: 'b' },
    ],
    ['one'],
  ],
  ['is null', [{ tools: [toolNamed('one')], nextCursor: null }], ['one']],
  [
    'follows items that are no definitions',
    [{ tools: [{ description: 'x' }, 7, null, { name: '' }, { name: 3 }, toolNamed('one')] }],
    ['one'],
  ],
] as const)('[L-28] a list ends whose cursor %s', async (_, pages, names) => {
  upstream.script.speaks.sessions = false;
  let sent = 0;
  upstream.script.intercept = ({ method, id }, response) => {
    if (method !== 'tools/list') return false;
    const result = { resultType: 'complete', ...pages[Math.min(sent, pages.length - 1)] };
    sent += 1;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    return true;
  };
  expect(await newLister().ensureFresh()).toBe('fresh');
  expect(listings.at(-1)?.tools.map(({ definition }) => definition['name'])).toEqual(names);
  expect(upstream.count('tools/list')).toBeLessThan(4);
});

test('[L-29] endless cursors and endless bytes end at the caps (docs/reference/attacks.md case 57)', async () => {
  upstream.script.speaks.sessions = false;
  let page = 0;
  upstream.script.intercept = ({ method, id }, response) => {
    if (method !== 'tools/list') return false;
    page += 1;
    const result = { tools: [toolNamed(`t${page}`)], nextCursor: `${page}` };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    return true;
  };
  const settings = { maxAgeMs: MAX_AGE_MS, requestTimeoutMs: 5000, gatewayVersion: '0' };
  const wide = { maxPages: 1000, maxItems: 10_000, maxBytes: 1_000_000 };
  for (const [cap, atMost] of [
    [{ maxPages: 5 }, 5],
    [{ maxItems: 7 }, 8],
    [{ maxBytes: 1000 }, 10],
  ] as const) {
    page = 0;
    const lister = new Lister({ ...settings, caps: { ...wide, ...cap } }, ports());
    open.push(lister);
    expect(await lister.ensureFresh()).toBe('stale');
    expect(page).toBeLessThanOrEqual(atMost);
  }
  expect(listings).toEqual([]);
});

test('[L-30] an answer with a member twice, or another id, is no answer', async () => {
  upstream.script.speaks.sessions = false;
  for (const text of [
    '{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"tools":[{"name":"x"}]}}',
    '{"jsonrpc":"2.0","id":-1,"result":{"tools":[]}}',
    '[{"jsonrpc":"2.0","id":ID,"result":{"tools":[]}}]',
    '<html>',
  ]) {
    upstream.script.intercept = ({ method, id }, response) => {
      if (method !== 'tools/list') return false;
      response.setHeader('content-type', 'application/json');
      response.end(text.replace('ID', `${id}`));
      return true;
    };
    expect(await newLister().ensureFresh()).toBe('stale');
  }
  expect(listings).toEqual([]);
});

test('[L-31] a body that never ends is given up in time', async () => {
  upstream.script.speaks.sessions = false;
  upstream.script.intercept = ({ method }, response) => {
    if (method !== 'tools/list') return false;
    response.setHeader('content-type', 'text/event-stream');
    response.write(': and so on\n\n');
    return true;
  };
  const lister = newLister();
  const waiting = lister.ensureFresh();
  while (upstream.count('tools/list') === 0) await new Promise((resolve) => setImmediate(resolve));
  await pass(5000);
  expect(await waiting).toBe('stale');
  expect(events).toContain('failed 2026 timeout');
});

test('[L-32] lists by itself before what it saw is too old, and not after close', async () => {
  const lister = newLister();
  lister.start();
  await lister.ensureFresh();
  const delays = timers.map(({ atMs }) => atMs - nowMs).filter((ms) => ms > 5000);
  expect(delays).toEqual([MAX_AGE_MS / 2]);
  await pass(MAX_AGE_MS / 2);
  await lister.ensureFresh(0);
  expect(upstream.count('server/discover')).toBe(2);
  await lister.close();
  expect(timers).toEqual([]);
  const asked = upstream.asked.length;
  expect(await lister.ensureFresh(0)).toBe('fresh');
  await lister.noteListChanged();
  expect(upstream.asked.length).toBe(asked);
});

test('[L-33] a storm of list_changed makes one listing an interval (docs/reference/attacks.md case 64)', async () => {
  const lister = newLister();
  await lister.ensureFresh();
  upstream.script.tools = [[toolNamed('first', 'Changed.')]];
  const storm = Array.from({ length: 1000 }, () => lister.noteListChanged());
  await new Promise((resolve) => setImmediate(resolve));
  expect(upstream.count('server/discover')).toBe(1);
  await pass(MIN_INTERVAL_MS);
  await Promise.all(storm);
  expect(upstream.count('server/discover')).toBe(2);
  expect(names(listings.at(-1))).toEqual(['first']);
});

test('[L-34] a listing is as old as its first request', async () => {
  upstream.script.speaks.sessions = false;
  upstream.script.intercept = ({ method }) => {
    if (method === 'tools/list') nowMs += 1000;
    return false;
  };
  const startedMs = nowMs;
  await newLister().ensureFresh();
  expect(listings[0]?.verifiedAtMs).toBe(startedMs);
});

test('[L-35] prompts, templates and instructions are listed where the server has them', async () => {
  const { script } = upstream;
  script.capabilities = { tools: {}, prompts: {}, resources: {} };
  script.prompts = [[{ name: 'greet' }]];
  script.templates = [[{ uriTemplate: 'repo://{owner}', name: 'repo' }]];
  script.instructions = 'Be brief.';
  await newLister().ensureFresh();
  const seen = listings.map(observeListing);
  for (const era of seen) {
    expect([...era.seen.prompt.keys()]).toEqual(['greet']);
    expect([...era.seen.template.keys()]).toEqual(['repo://{owner}']);
    expect(era.instructions?.text).toBe('Be brief.');
  }
});

test('[L-36] a number that a double cannot hold marks its definition', async () => {
  upstream.script.speaks.sessions = false;
  upstream.script.intercept = ({ method, id }, response) => {
    if (method !== 'tools/list') return false;
    response.setHeader('content-type', 'application/json');
    response.end(
      `{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"a","x":9007199254740993},{"name":"b","x":9007199254740992}]}}`,
    );
    return true;
  };
  await newLister().ensureFresh();
  expect(listings[0]?.tools.map(({ isExact }) => isExact)).toEqual([false, true]);
});

test('[L-37] listing once tells why an upstream cannot be listed', async () => {
  const once = { requestTimeoutMs: 5000, gatewayVersion: '0' };
  const found = await listOnce(once, { request: requestOver(upstream.url), now: Date.now });
  expect(found.kind === 'listed' && found.listings.length).toBe(2);
  expect(upstream.sessions.size).toBe(0);
  upstream.script.intercept = (_, response) => {
    response.writeHead(401).end();
    return true;
  };
  expect(await listOnce(once, { request: requestOver(upstream.url), now: Date.now })).toEqual({
    kind: 'unreachable',
    isSpoken: false,
    why: 'credentials',
    detail: '401 to initialize',
  });
});

test('[E-38] tells nothing of one era before it knows of the other', async () => {
  upstream.script.speaks = { sessions: true, stateless: true };
  let release: () => void = () => undefined;
  upstream.script.intercept = (asked, response) => {
    if (asked.method !== 'initialize') return false;
    release = () => void response.writeHead(405).end();
    return true;
  };
  const lister = newLister();
  lister.start();
  await expect.poll(() => upstream.count('tools/list')).toBe(1);
  await expect.poll(() => upstream.count('initialize')).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(listings).toEqual([]);
  expect(lister.isFresh()).toBe(false);
  release();
  expect(await lister.ensureFresh()).toBe('fresh');
  expect(listings.map(({ era }) => era)).toEqual(['2026']);
});

test('[PRF-12] asks for nothing more in a minute once the listings of it have read too much', async () => {
  upstream.script.speaks = { sessions: false, stateless: true };
  upstream.script.tools = [[toolNamed('long', 'x'.repeat(50_000))]];
  const allowance = createListingAllowance(80_000, () => nowMs);
  const lister = new Lister(
    { maxAgeMs: 1_000, requestTimeoutMs: 5000, gatewayVersion: '0.0.0' },
    { ...ports(), allowance },
  );
  open.push(lister);
  expect(await lister.ensureFresh()).toBe('fresh');
  nowMs += 2_000;
  expect(await lister.ensureFresh()).toBe('stale');
  expect(events).toEqual(['failed 2026 too-large']);
  const asked = upstream.asked.length;
  nowMs += 2_000;
  expect(await lister.ensureFresh()).toBe('stale');
  expect(upstream.asked.length).toBe(asked);
  expect(listings).toHaveLength(1);
  nowMs += 60_000;
  expect(await lister.ensureFresh()).toBe('fresh');
});

test('[PRF-12] takes a list of too many values for none', async () => {
  upstream.script.speaks = { sessions: false, stateless: true };
  upstream.script.tools = [[{ ...toolNamed('wide'), annotations: Array(100_001).fill(0) }]];
  const lister = newLister();
  expect(await lister.ensureFresh()).toBe('stale');
  expect(events).toContain('failed 2026 too-large');
  expect(listings).toEqual([]);
});

test('[L-56] verifies by a listing that begins after the call, shared by those that wait for it', async () => {
  const lister = newLister();
  await lister.ensureFresh();
  const listed = () => upstream.count('tools/list') / 2;
  expect(listed()).toBe(1);
  const first = lister.verifyNow();
  await expect.poll(() => upstream.count('server/discover')).toBe(2);
  // One is under way: what it reads may be older than these calls.
  const others = [lister.verifyNow(), lister.verifyNow(), lister.verifyNow()];
  expect(await Promise.all([first, ...others])).toEqual(['fresh', 'fresh', 'fresh', 'fresh']);
  expect(listed()).toBe(3);
  expect(await lister.verifyNow()).toBe('fresh');
  expect(listed()).toBe(4);
});

test('[L-56] verifies nothing where the listing fails, however young the one before', async () => {
  const lister = newLister();
  await lister.ensureFresh();
  nowMs += 1;
  await upstream.close();
  expect(await lister.verifyNow()).toBe('stale');
  expect(lister.isFresh()).toBe(true);
});

test('[L-59] lists again soon after a failure, and at least once an hour', async () => {
  const lister = newLister();
  await lister.ensureFresh();
  const delays = () => timers.map(({ atMs }) => atMs - nowMs).filter((ms) => ms > 5000);
  expect(delays()).toEqual([MAX_AGE_MS / 2]);
  await upstream.close();
  await lister.verifyNow();
  expect(delays()).toEqual([10_000]);
  const rare = new Lister({ maxAgeMs: 100 * 24 * 3_600_000, requestTimeoutMs: 5000, gatewayVersion: '0' }, ports());
  open.push(rare);
  timers = [];
  await rare.ensureFresh();
  expect(Math.max(...delays())).toBeLessThanOrEqual(3_600_000);
});
