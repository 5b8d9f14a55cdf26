// How the data listener ends: it waits for what runs, and for nothing else. The grace is longer than any
// test may take, so a drain that waits in vain is a test that does not end.

import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { connect as secureConnect, type TlsOptions } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createDataServer, type DataServer } from '../../../src/http/data-server.js';
import { PATIENT } from '../../support/timing.js';
import { makeAuthority } from '../../support/tls.js';

const GRACE_MS = 600_000;
const HOST = '127.0.0.1';

type Listening = {
  readonly server: DataServer;
  readonly port: number;
  /** Lets the exchanges that wait be answered. */
  answer(): void;
  running(): number;
};

async function listen(secure?: TlsOptions): Promise<Listening> {
  const waiting: (() => void)[] = [];
  const hosts = new Set<string>();
  const route = {
    upstream: 'one',
    maxRequestBytes: 1024,
    concurrency: 10,
    concurrencyPerCaller: 10,
  };
  const server = createDataServer(
    {
      tables: () => ({
        routes: new Map([['/one', route]]),
        documents: new Map(),
        hosts,
        origins: new Set(),
        refusesForwarded: () => false,
        addressOf: (peer) => peer,
      }),
      async handle(_incoming, outgoing) {
        await new Promise<void>((resolve) => waiting.push(resolve));
        outgoing.send(200, { 'content-type': 'application/json' }, '{}');
      },
      isStarting: () => false,
      reportRefusal: () => undefined,
    },
    secure,
  );
  const port = await server.listen(HOST, 0);
  hosts.add(`${HOST}:${port}`);
  return {
    server,
    port,
    answer: () => {
      for (const go of waiting.splice(0)) go();
    },
    running: () => waiting.length,
  };
}

describe('a drain of the data listener', () => {
  it('[E-35] answers what runs, then ends though its connection would live on', async () => {
    const { server, port, answer, running } = await listen();
    const agent = new Agent({ keepAlive: true });
    const asked = request({
      host: HOST,
      port,
      path: '/one',
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    });
    const response = once(asked, 'response');
    asked.end('{}');
    await expect.poll(running, PATIENT).toBe(1);
    const closed = server.close(GRACE_MS);
    answer();
    const [answered] = (await response) as [{ statusCode: number; resume(): void }];
    expect(answered.statusCode).toBe(200);
    answered.resume();
    await closed;
    agent.destroy();
  });

  it('[E-43] answers also what runs though its client has left, and cuts it when the time is over', async () => {
    const { server, port, running, answer } = await listen();
    const leave = async (): Promise<void> => {
      const before = running();
      const asked = request({ host: HOST, port, path: '/one', method: 'POST' });
      asked.setHeader('content-type', 'application/json');
      asked.on('error', () => undefined);
      asked.end('{}');
      await expect.poll(running, PATIENT).toBe(before + 1);
      asked.destroy();
    };
    await leave();
    await leave();
    let isCut = false;
    let isOver = false;
    const closed = server.close(GRACE_MS, () => {
      isCut = true;
      answer();
    });
    void closed.then(() => {
      isOver = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect([isOver, isCut]).toEqual([false, false]);
    server.cutNow();
    await closed;
    expect([isOver, isCut]).toEqual([true, true]);
  });

  it('[E-35] does not wait for a connection on which nothing was asked', async () => {
    const { server, port } = await listen();
    const silent = connect(port, HOST);
    await once(silent, 'connect');
    const ended = once(silent, 'close');
    await server.close(GRACE_MS);
    await ended;
    expect(silent.bytesRead).toBe(0);
  });
});

describe('a drain of a data listener with TLS', () => {
  it('[BND-21] does not wait for a connection that only shook hands', async () => {
    const authority = makeAuthority();
    const { cert, key } = authority.issue();
    const { server, port } = await listen({ cert, key });
    const silent = secureConnect({ port, host: HOST, ca: authority.cert });
    await once(silent, 'secureConnect');
    const ended = once(silent, 'close');
    await server.close(GRACE_MS);
    await ended;
    expect(silent.bytesWritten).toBe(0);
  });

  it('[BND-21] does not wait for a connection that never shook hands', async () => {
    const { cert, key } = makeAuthority().issue();
    const { server, port } = await listen({ cert, key });
    const silent = connect(port, HOST);
    await once(silent, 'connect');
    const ended = once(silent, 'close');
    await server.close(GRACE_MS);
    await ended;
    expect(silent.bytesWritten).toBe(0);
  });
});
