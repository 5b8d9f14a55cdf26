import { afterEach, describe, expect, it } from 'vitest';
import { createOpsServer, type HttpListener } from '../../../src/http/internal-server.js';

let server: HttpListener | undefined;

afterEach(async () => {
  await server?.close();
});

async function start(isReady: () => boolean, renderMetrics = () => Promise.resolve('a 1\n')) {
  server = createOpsServer(
    { host: '127.0.0.1', port: 0 },
    { readiness: () => ({ isReady: isReady(), reasons: [] }), renderMetrics },
  );
  const { port } = await server.start();
  return (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });
}

describe('createOpsServer', () => {
  it('[O-60] tells liveness and readiness, and nothing more', async () => {
    let isReady = false;
    const ask = await start(() => isReady);
    expect(await (await ask('/livez')).text()).toBe('alive\n');
    const early = await ask('/readyz');
    expect([early.status, await early.text()]).toEqual([503, 'not ready\n']);
    isReady = true;
    const ready = await ask('/readyz');
    expect([ready.status, await ready.text()]).toEqual([200, 'ready\n']);
    expect((await ask('/readyz', 'HEAD')).status).toBe(200);
  });

  it('[O-60] serves the metrics as Prometheus reads them', async () => {
    const answer = await (await start(() => true))('/metrics');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await answer.text()).toBe('a 1\n');
  });

  it.each([
    ['GET', '/'],
    ['GET', '/metrics/'],
    ['GET', '/metrics?x=1'],
    ['GET', '/api/controls'],
    ['GET', '/github'],
    ['POST', '/metrics'],
    ['DELETE', '/livez'],
  ])('[O-60] answers 404 to %s %s', async (method, path) => {
    const ask = await start(() => true);
    expect((await ask(path, method)).status).toBe(404);
  });

  it('[O-60] a fault is a 500 that says nothing of it', async () => {
    const ask = await start(
      () => true,
      () => Promise.reject(new Error('secret')),
    );
    const answer = await ask('/metrics');
    expect([answer.status, await answer.text()]).toEqual([500, 'Internal error.\n']);
  });

  it('[O-60] rejects when its port is taken', async () => {
    await start(() => true);
    const { port } = await (async () => {
      const other = createOpsServer(
        { host: '127.0.0.1', port: 0 },
        { readiness: () => ({ isReady: true, reasons: [] }), renderMetrics: () => Promise.resolve('') },
      );
      const opened = await other.start();
      await server?.close();
      server = other;
      return opened;
    })();
    const second = createOpsServer(
      { host: '127.0.0.1', port },
      { readiness: () => ({ isReady: true, reasons: [] }), renderMetrics: () => Promise.resolve('') },
    );
    await expect(second.start()).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
