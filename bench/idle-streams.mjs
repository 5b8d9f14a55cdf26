// Idle streams: what the gateway holds for 2,000 GET streams of sessions and 2,000 subscriptions, each with
// its stream upstream, before, with and after them. Resident memory after a collection, since what counts
// is what is kept. Its clients are raw sockets, so that opening them measures nothing else.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startGatewayForBench } from './gateway.mjs';
import { residentMib, start, stop } from './process.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const COUNT = 2_000;
/** Streams of one caller; the gateway allows 64. */
const A_CALLER = 50;
const AT_ONCE = 50;
const SETTLE_MS = 4_000;
const GIVEN_BACK_MS = 10_000;
const STATELESS = '2026-07-28';

/** Sends one request on a socket of its own; resolves with the socket and the head of the answer. */
function open(port, method, headers, body = '') {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let head = '';
    socket.setEncoding('latin1');
    socket.once('error', reject);
    socket.on('data', (text) => {
      head += text;
      if (!head.includes('\r\n\r\n')) return;
      socket.removeAllListeners('data');
      socket.resume();
      resolve({ socket, head });
    });
    const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    const length = body === '' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
    socket.write(`${method} /mcp HTTP/1.1\r\n${lines}${length}\r\n${body}`);
  });
}

const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

async function openGet(port, token) {
  const authorization = `Bearer ${token}`;
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const opened = await open(port, 'POST', { ...JSON_HEADERS, authorization }, body);
  opened.socket.destroy();
  const session = /mcp-session-id: (\S+)/i.exec(opened.head)?.[1];
  return open(port, 'GET', {
    accept: 'text/event-stream',
    authorization,
    'mcp-session-id': session,
    'mcp-protocol-version': '2025-11-25',
  });
}

function openListen(port, token, id) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': STATELESS,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { notifications: { toolsListChanged: true }, _meta };
  const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params });
  const headers = {
    ...JSON_HEADERS,
    authorization: `Bearer ${token}`,
    'mcp-protocol-version': STATELESS,
    'mcp-method': 'subscriptions/listen',
  };
  return open(port, 'POST', headers, body);
}

async function openMany(openOne) {
  const sockets = [];
  for (let from = 0; from < COUNT; from += AT_ONCE) {
    const batch = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => openOne(from + at)));
    for (const { socket, head } of batch) {
      if (!head.startsWith('HTTP/1.1 200')) throw new Error(`a stream was answered ${head}`);
      sockets.push(socket);
    }
  }
  return sockets;
}

/** Resident memory once everything that can be given back was. */
async function settled(child) {
  await sleep(SETTLE_MS / 2);
  child.kill('SIGUSR2');
  await sleep(SETTLE_MS / 2);
  return residentMib(child.pid);
}

/** Prints what both kinds of idle streams cost; gates nothing. */
export async function benchIdleStreams() {
  const upstream = await start(here('upstream.mjs'), ['streams'], {});
  const upstreamUrl = `http://127.0.0.1:${upstream.first.port}/mcp`;
  const collector = ['--expose-gc', '--import', here('collect.mjs')];
  const gateway = await startGatewayForBench(upstreamUrl, undefined, collector);
  const port = Number(new URL(gateway.url).port);
  const tokens = await Promise.all(
    Array.from({ length: COUNT / A_CALLER }, (_, at) => gateway.tokenOf(`caller-${at}`)),
  );
  const tokenOf = (at) => tokens[Math.floor(at / A_CALLER)];
  const kinds = {
    'GET streams (2025)': (at) => openGet(port, tokenOf(at)),
    'subscriptions (2026)': (at) => openListen(port, tokenOf(at), `s${at}`),
  };
  try {
    for (const [name, openOne] of Object.entries(kinds)) {
      // The first round warms code and pools that stay.
      for (const round of ['first', 'again']) {
        const before = await settled(gateway.child);
        const sockets = await openMany(openOne);
        const held = await settled(gateway.child);
        for (const socket of sockets) socket.destroy();
        // Sockets close, and the allocator gives pages back, in their own time.
        await sleep(GIVEN_BACK_MS);
        const after = await settled(gateway.child);
        console.log(
          `${COUNT} ${name}, ${round}: before ${before.toFixed(0)} MiB, with ${held.toFixed(0)} (+${(held - before).toFixed(0)}), after ${after.toFixed(0)}; ${(((held - before) * 1024) / COUNT).toFixed(1)} KiB a stream`,
        );
      }
    }
  } finally {
    await gateway.close();
    await stop(upstream.child);
  }
}
