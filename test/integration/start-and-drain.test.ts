// A gateway that starts, reloads and ends while requests are under way: each is answered under what is known when
// its turn comes, and an end waits for what runs and for nothing else.

import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canary } from '../support/canary.js';
import { type RunningGateway, startRig, startTestGateway, textOf, tryStart, UPSTREAM } from '../support/gateway.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { findFreePort } from '../support/processes.js';
import { replace } from '../support/seams.js';
import { makeSecret } from '../support/secrets.js';
import { createFakeStore } from '../support/state.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, openSession, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { shared, withGateway } from '../support/with-gateway.js';

/** Longer than any test may take: an end that waits in vain does not come. */
const GRACE_MS = 600_000;
/** Time for a request or a reload to go where it must not; nothing is waited for that must come. */
const TEMPTING_MS = 200;

const disk = {
  /** What was read once more is handed over when this has resolved. */
  slow: undefined as Promise<void> | undefined,
  isHolding: false,
};

replace('server', {
  createDataServer(real, ...given) {
    const server = real.createDataServer(...given);
    return { ...server, close: () => server.close(GRACE_MS) };
  },
});
replace('versions', {
  async loadVersion(real, ...given) {
    const reading = await real.loadVersion(...given);
    const { slow } = disk;
    disk.slow = undefined;
    disk.isHolding = slow !== undefined;
    await slow;
    return reading;
  },
});

const store = { opened: gate(), isAsked: false };
replace('redis', {
  openRedisLink: () => ({
    ...createFakeStore(Date.now).link(),
    opened() {
      store.isAsked = true;
      return store.opened.opened;
    },
  }),
});

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

describe('[H-03] a request before the gateway serves', () => {
  it('is told that it starts, and stands in the process log or, as soon as it is open, in the audit log', () =>
    withGateway({}, async ({ gateway: { folder, opsUrl }, access, port }) => {
      const [data, ops] = [await findFreePort(), await findFreePort()];
      canary.watchGateway(data, ops);
      // The start waits for the first line of the audit log, and then for the store.
      const firstLine = gate();
      const file = join(folder, 'second.yaml');
      const text = (await readFile(join(folder, 'gateway.yaml'), 'utf8'))
        .replaceAll(`:${port}`, `:${data}`)
        .replace(`port: ${port}`, `port: ${data}`)
        .replace(`port: ${new URL(opsUrl).port}`, `port: ${ops}`)
        .replace(/^audit:.*$/m, 'audit: {sinks: [{type: stdout, durability: handed-over}]}');
      await writeFile(file, `${text}\nstate: {type: redis, url: {env: STORE}}\nkeys: [{file: ./key}]\n`);
      await writeFile(join(folder, 'key'), makeSecret());
      let [audit, log] = ['', ''];
      const starting = tryStart({
        file,
        env: { STORE: 'redis://127.0.0.1:9' },
        onLine(line) {
          log += line;
        },
        async writeStdout(lines) {
          await firstLine.opened;
          audit += lines;
        },
      });
      const early = async () => {
        const reply = await callStateless(
          { ...access, url: `http://127.0.0.1:${data}/${UPSTREAM}` },
          'read_record',
          {},
        );
        expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '5']);
        expect(reply.message?.['error']).toMatchObject({
          code: 1511,
          message: expect.stringMatching(/still starting and did not carry out/),
        });
        return reply.headers.get('sallyport-decision') ?? 'none';
      };
      await expect.poll(() => isListening(data), PATIENT).toBe(true);
      const logged = await early();
      expect(log).toContain(logged);
      firstLine.open();
      await expect.poll(() => store.isAsked, PATIENT).toBe(true);
      const recorded = await early();
      await expect.poll(() => audit, PATIENT).toContain(recorded);
      expect(audit).toMatch(new RegExp(`"id":"${recorded}"[^\n]*"gateway-starting"`));
      expect([audit.includes(logged), log.includes(recorded)]).toEqual([false, false]);
      expect(log).toMatch(/"reason":"gateway-starting"/);
      store.opened.open();
      const started = await starting;
      if (started.kind !== 'started') throw new Error('the gateway did not start');
      await started.gateway.close();
    }));
});

describe('the first requests after a start', () => {
  const secret = makeSecret();
  let lock: string;
  let gateway: RunningGateway;
  let listing: ReturnType<typeof gate>;

  const upstream = shared(() => startHostileUpstream());
  beforeAll(() =>
    withGateway({ upstreams: [{ name: UPSTREAM, url: upstream.url }] }, async (first) => {
      lock = await readFile(join(first.folder, `policies/pins/${UPSTREAM}.lock.yaml`), 'utf8');
    }),
  );

  // Pinned before it starts, and half listed: the stateless half, while the handshake of the other is not answered.
  beforeEach(async () => {
    listing = gate();
    upstream.forget();
    upstream.obey(({ method, message }) =>
      method === 'initialize' && !JSON.stringify(message).includes('wire-client')
        ? { kind: 'honest', after: listing.opened }
        : undefined,
    );
    const client = 'clientId: gateway, clientSecret: {env: CLIENT}';
    gateway = await startTestGateway({
      upstreams: [{ name: UPSTREAM, url: upstream.url, more: ['pinning: {maxAge: 10m}'] }],
      pin: false,
      files: { [`policies/pins/${UPSTREAM}.lock.yaml`]: lock },
      issuer: [`introspection: {${client}}`],
      env: { CLIENT: secret },
    });
    await expect.poll(() => seen('tools/list'), PATIENT).toBe(1);
  });
  afterEach(async () => {
    listing.open();
    await gateway.close();
  });

  const seen = (method: string): number => upstream.seen().filter((request) => request.method === method).length;
  const isListed = async (): Promise<boolean> => /^sallyport_upstream_up\{[^}]*\} 1$/m.test(await gateway.metrics());
  const url = (): string => gateway.url(UPSTREAM);
  const claims = (): object => {
    const exp = Math.floor(Date.now() / 1000) + 600;
    return { active: true, sub: 'ada', client_id: 'ide', aud: url(), exp };
  };

  it('[E-37] see what is pinned, though it was listed while their caller was verified', async () => {
    const verdict = gate();
    gateway.issuer.answerAbout(() => verdict.opened.then(claims));
    const access = { url: url(), token: makeSecret() };
    const calling = callStateless(access, 'read_record', { id: 'one' });
    await expect.poll(() => gateway.issuer.hits.get('/introspect'), PATIENT).toBe(1);
    listing.open();
    await expect.poll(isListed, PATIENT).toBe(true);
    verdict.open();
    expect(textOf(resultOf(await calling))).toBe('read_record one');
  });

  it('[E-38] wait until both eras were asked, and are served in their own', async () => {
    gateway.issuer.answerAbout(claims);
    const access = { url: url(), token: makeSecret() };
    const opening = openSession(access);
    const listed = requestStateless(access, 'tools/list');
    await expect.poll(() => gateway.issuer.hits.get('/introspect'), PATIENT).toBe(1);
    await sleep(TEMPTING_MS);
    // Neither has reached the upstream: there only the gateway's own listing has asked.
    expect([seen('initialize'), seen('tools/list')]).toEqual([1, 1]);
    listing.open();
    expect(toolNames(await listed)).toEqual(['read_record', 'write_record']);
    const session = await opening;
    expect(textOf(resultOf(await session.call('read_record', { id: 'two' })))).toBe('read_record two');
    // In a session of the upstream's own, not translated to the era that was listed first.
    const [call] = upstream.uses();
    expect(call?.headers['mcp-session-id']).toBeDefined();
    expect(call?.headers['mcp-protocol-version']).toBe('2025-11-25');
  });
});

function allowing(tool: string): string {
  return `version: 1
policy: open
rules:
  - {id: one, effect: allow, who: {anyone: true}, what: {upstreams: [target], tools: [${tool}]}}
`;
}

describe('reloads', () => {
  it('[H-08] of which the first is slow end with what was read last', () =>
    withGateway({ policies: { open: allowing('write_record') } }, async (rig) => {
      const listed = async () => toolNames(await requestStateless(rig.access, 'tools/list'));
      const reading = gate();
      disk.slow = reading.opened;
      await rig.gateway.writePolicy('open', allowing('"*_record"'));
      const first = rig.gateway.reload();
      await expect.poll(() => disk.isHolding, PATIENT).toBe(true);
      await rig.gateway.writePolicy('open', allowing('read_record'));
      const second = rig.gateway.reload();
      await Promise.race([second, sleep(TEMPTING_MS)]);
      expect(await listed()).toEqual(['write_record']);
      reading.open();
      await Promise.all([first, second]);
      expect(await listed()).toEqual(['read_record']);
    }));
});

describe('the end of a gateway', () => {
  it('[E-35] waits for no reload that is under way, which then has no effect', async () => {
    const rig = await startRig({ policies: { open: allowing('write_record') } });
    const reading = gate();
    disk.slow = reading.opened;
    disk.isHolding = false;
    await rig.gateway.writePolicy('open', allowing('read_record'));
    await expect.poll(() => disk.isHolding, PATIENT).toBe(true);
    await rig.close();
    reading.open();
    await sleep(TEMPTING_MS);
    expect(rig.gateway.log()).not.toContain('configuration reload');
  });

  it('[E-35] answers what runs, and waits neither for idle connections nor for silent ones', async () => {
    const rig = await startRig();
    // Leaves a connection that can be used again.
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
    const silent = connect(rig.port, '127.0.0.1');
    await once(silent, 'connect');
    const closed = once(silent, 'close');
    const work = gate();
    rig.upstream.obey(() => ({ kind: 'honest', after: work.opened }));
    const running = callStateless(rig.access, 'read_record', { id: 'two' });
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(2);
    const ended = rig.gateway.close();
    await expect.poll(() => isListening(rig.port), PATIENT).toBe(false);
    work.open();
    const reply = await running;
    expect([reply.status, textOf(resultOf(reply))]).toEqual([200, 'read_record two']);
    await ended;
    await closed;
    expect(silent.bytesRead).toBe(0);
    await rig.upstream.close();
  });
});
