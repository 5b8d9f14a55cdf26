import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Client } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import {
  connectOptionsFor,
  createGuardedFetch,
  type FetchRule,
  isRefusedAddress,
  type LookupAll,
} from '../../../src/upstream/safe-fetch.js';
import { installPrivateNetwork } from '../../support/private-network.js';

const LOOPBACK: FetchRule = { network: 'loopback', maxBytes: 1024, timeoutMs: 5000 };
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(answer: RequestListener): Promise<{ base: string; port: number }> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { base: `http://127.0.0.1:${port}`, port };
}

function guarded(settings: Parameters<typeof createGuardedFetch>[0] = {}) {
  const fetcher = createGuardedFetch(settings);
  closers.push(() => fetcher.close());
  return fetcher.fetchJson;
}

function answers(...rounds: (readonly string[])[]): LookupAll {
  let round = 0;
  return (_hostname, _options, callback) => {
    const addresses = rounds[Math.min(round, rounds.length - 1)] ?? [];
    round += 1;
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    callback(null, found);
  };
}

describe('the guarded fetch', () => {
  it('[A-02] does not count a time in which the process stood still', async () => {
    const { base } = await serve((_request, response) => response.end('{"a":1}'));
    const fetched = guarded()(new URL(base), { ...LOOPBACK, timeoutMs: 200 });
    setImmediate(() => {
      const end = performance.now() + 400;
      while (performance.now() < end);
    });
    expect(await fetched).toMatchObject({ ok: true, value: { a: 1 } });
  });

  it('[A-02] fetches a JSON document and asks for identity encoding, without credentials', async () => {
    const seen: unknown[] = [];
    const { base } = await serve((request, response) => {
      seen.push([request.headers['accept-encoding'], request.headers.authorization]);
      response.end('{"a":1}');
    });
    const outcome = await guarded()(new URL(`${base}/x?y=1`), LOOPBACK);
    expect(outcome).toMatchObject({ ok: true, value: { a: 1 } });
    expect(seen).toEqual([['identity', undefined]]);
  });

  it('[A-03, MCP-65] never follows a redirect, and names its target without the query', async () => {
    let hits = 0;
    const { base } = await serve((_request, response) => {
      hits += 1;
      response.writeHead(302, { location: 'http://169.254.169.254/latest?token=1' }).end();
    });
    const outcome = await guarded()(new URL(base), LOOPBACK);
    expect(outcome).toEqual({
      ok: false,
      why: 'redirect',
      detail: 'redirected to http://169.254.169.254/latest',
    });
    expect(hits).toBe(1);
  });

  it('[A-04] gives up past maxBytes, however much is announced or sent', async () => {
    const { base } = await serve((_request, response) => {
      const piece = Buffer.alloc(64 * 1024, 0x20);
      const pump = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', pump);
      pump();
    });
    const outcome = await guarded()(new URL(base), LOOPBACK);
    expect(outcome).toMatchObject({ ok: false, why: 'too-large' });
  });

  it('[A-04] accepts a body of exactly maxBytes and refuses one byte more', async () => {
    const { base } = await serve((request, response) => {
      response.end(JSON.stringify('x'.repeat(Number(request.url?.slice(1)) - 2)));
    });
    const fetchJson = guarded();
    expect(await fetchJson(new URL(`${base}/1024`), LOOPBACK)).toMatchObject({ ok: true });
    expect(await fetchJson(new URL(`${base}/1025`), LOOPBACK)).toMatchObject({ why: 'too-large' });
  });

  it('[A-04] refuses a compressed body instead of inflating it', async () => {
    const { base } = await serve((_request, response) => {
      response.setHeader('content-encoding', 'gzip').end(gzipSync('{}'));
    });
    expect(await guarded()(new URL(base), LOOPBACK)).toMatchObject({ ok: false, why: 'invalid' });
  });

  it('[A-05] bounds the whole exchange in time: no head, and a body that drips', async () => {
    const { base } = await serve((request, response) => {
      if (request.url === '/silent') return;
      response.writeHead(200).write('[');
      const drip = setInterval(() => response.write(' '), 10);
      response.on('close', () => clearInterval(drip));
    });
    const fetchJson = guarded();
    const rule = { ...LOOPBACK, timeoutMs: 150, maxBytes: 1_000_000 };
    for (const path of ['/silent', '/drip']) {
      expect(await fetchJson(new URL(base + path), rule)).toMatchObject({ why: 'timeout' });
    }
  });

  it('[A-06] refuses what is not JSON in UTF-8, and other statuses', async () => {
    const { base } = await serve((request, response) => {
      if (request.url === '/html') response.end('<!doctype html>');
      else if (request.url === '/latin') response.end(Buffer.from([0x22, 0xe9, 0x22]));
      else response.writeHead(500).end('{}');
    });
    const fetchJson = guarded();
    expect(await fetchJson(new URL(`${base}/html`), LOOPBACK)).toMatchObject({ why: 'invalid' });
    expect(await fetchJson(new URL(`${base}/latin`), LOOPBACK)).toMatchObject({ why: 'invalid' });
    expect(await fetchJson(new URL(`${base}/500`), LOOPBACK)).toMatchObject({ why: 'status' });
  });

  it('[A-07] wants https outside loopback and no credentials in the URL', async () => {
    const fetchJson = guarded({ lookup: answers(['93.184.216.34']) });
    for (const network of ['public', 'private'] as const) {
      const outcome = await fetchJson(new URL('http://idp.example/'), { ...LOOPBACK, network });
      expect(outcome).toMatchObject({ ok: false, why: 'refused-address' });
    }
    const outcome = await fetchJson(new URL('https://a:b@idp.example/'), LOOPBACK);
    expect(outcome).toMatchObject({ ok: false, why: 'invalid' });
  });

  it('[A-08, MCP-65] refuses IP literals in every spelling before anything is sent', async () => {
    let hits = 0;
    const { port } = await serve((_request, response) => {
      hits += 1;
      response.end('{}');
    });
    const fetchJson = guarded();
    const hosts = ['127.0.0.1', '0177.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'];
    for (const host of [...hosts, '[::ffff:7f00:1]', '127.1', 'localhost']) {
      for (const network of ['public', 'private'] as const) {
        const outcome = await fetchJson(new URL(`https://${host}:${port}/`), {
          ...LOOPBACK,
          network,
        });
        expect(outcome, host).toMatchObject({ ok: false, why: 'refused-address' });
      }
    }
    expect(hits).toBe(0);
  });

  it('[A-08] refuses a name when one of its addresses is outside the network', async () => {
    const fetchJson = guarded({ lookup: answers(['127.0.0.1', '169.254.169.254']) });
    const outcome = await fetchJson(new URL('http://idp.test:1/'), LOOPBACK);
    expect(outcome).toMatchObject({ ok: false, why: 'refused-address' });
  });

  it('[A-09] checks again when a name resolves elsewhere the next time (rebinding)', async () => {
    const { port } = await serve((_request, response) => {
      response.setHeader('connection', 'close').end('{}');
    });
    const fetchJson = guarded({ lookup: answers(['127.0.0.1'], ['169.254.169.254']) });
    const url = new URL(`http://idp.test:${port}/`);
    expect(await fetchJson(url, LOOPBACK)).toMatchObject({ ok: true });
    expect(await fetchJson(url, LOOPBACK)).toMatchObject({ ok: false, why: 'refused-address' });
  });

  it('[A-12] takes plain http where it was accepted, to private addresses alone, at every connection', async () => {
    const { port } = await serve((_request, response) => {
      response.setHeader('connection', 'close').end('{}');
    });
    const rounds = [
      ['10.77.0.1'],
      ['93.184.216.34'],
      ['127.0.0.1'],
      ['169.254.169.254'],
      ['100.100.100.200'],
      ['fd00:ec2::254'],
      ['10.77.0.1', '93.184.216.34'],
    ];
    let round = -1;
    const network = installPrivateNetwork({
      'idp.test': () => {
        round += 1;
        return rounds[round] ?? [];
      },
    });
    closers.push(() => network.restore());
    const fetchJson = guarded();
    const url = new URL(`http://idp.test:${port}/`);
    const rule = { ...LOOPBACK, network: 'private', plaintext: 'accepted' } as const;
    expect(await fetchJson(url, rule)).toMatchObject({ ok: true });
    while (round + 1 < rounds.length)
      expect(await fetchJson(url, rule), String(rounds[round])).toEqual({
        ...{ ok: false, why: 'refused-address' },
        detail: 'does not resolve to a private address, as plain http must',
      });
    expect(network.dialled()).toEqual(['10.77.0.1']);
  });

  it('[A-12] takes plain http in no other network and of no other origin', async () => {
    const { base, port } = await serve((_request, response) => response.end('{}'));
    const network = installPrivateNetwork({ 'idp.test': () => ['10.77.0.1'] });
    closers.push(() => network.restore());
    const fetchJson = guarded();
    const own = `http://idp.test:${port}`;
    const rule = {
      ...LOOPBACK,
      network: 'private',
      plaintext: 'accepted',
      origins: [own],
    } as const;
    expect(await fetchJson(new URL(`${own}/keys`), rule)).toMatchObject({ ok: true });
    const refused = { ok: false, why: 'refused-address' };
    const elsewhere = [`http://idp.test:${port + 1}/`, `http://10.77.0.1:${port}/`, `${base}/`];
    for (const url of [...elsewhere, `https://idp.test:${port}/`, `https://10.77.0.1:${port}/`])
      expect(await fetchJson(new URL(url), rule), url).toMatchObject(refused);
    const asPublic = { ...rule, network: 'public' } as const;
    expect(await fetchJson(new URL(`${own}/keys`), asPublic)).toMatchObject(refused);
    const { plaintext: _, ...unaccepted } = rule;
    expect(await fetchJson(new URL(`${own}/keys`), unaccepted)).toMatchObject(refused);
    expect(network.dialled()).toEqual(['10.77.0.1']);
  });

  it('[A-11] checks the address that was connected to, whatever was resolved', async () => {
    let hits = 0;
    const { port } = await serve((_request, response) => {
      hits += 1;
      response.end('{}');
    });
    const lookup: LookupAll = (_hostname, _options, callback) => {
      let reads = 0;
      const shifting = {
        family: 4,
        get address() {
          reads += 1;
          return reads === 1 ? '93.184.216.34' : '127.0.0.1';
        },
      };
      callback(null, [shifting]);
    };
    const connect = connectOptionsFor('public', { lookup });
    const client = new Client(`http://idp.test:${port}`, { connect });
    closers.push(() => client.destroy());
    const attempt = client.request({ path: '/', method: 'GET' });
    await expect(attempt).rejects.toSatisfy(isRefusedAddress);
    expect(hits).toBe(0);
  });

  it('[A-10] holds URLs of origins that are not configured to public https', async () => {
    let hits = 0;
    const { base, port } = await serve((_request, response) => {
      hits += 1;
      response.end('{}');
    });
    const fetchJson = guarded({ lookup: answers(['127.0.0.1']) });
    const rule = { ...LOOPBACK, origins: [base] };
    expect(await fetchJson(new URL(`${base}/keys`), rule)).toMatchObject({ ok: true });
    const others = [`http://127.0.0.1:${port + 1}/`, `https://other.test:${port}/`];
    for (const url of others) {
      expect(await fetchJson(new URL(url), rule)).toMatchObject({ why: 'refused-address' });
    }
    expect(hits).toBe(1);
  });

  it('says unreachable where nothing listens', async () => {
    const { base } = await serve(() => {});
    await closers.pop()?.();
    expect(await guarded()(new URL(base), LOOPBACK)).toMatchObject({ why: 'unreachable' });
  });

  it('tells refused addresses from other errors', () => {
    expect(isRefusedAddress(new Error('x'))).toBe(false);
    expect(isRefusedAddress(undefined)).toBe(false);
  });
});
