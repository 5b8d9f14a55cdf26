// Where the listeners can be reached: on the addresses that the gateway file gives them, and on no other. Linux
// has every address of 127.0.0.0/8 on its loopback interface.

import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { makeSecret } from '../support/secrets.js';

const HOSTS = { data: '127.0.0.2', ops: '127.0.0.3', admin: '127.0.0.4' };

function isReached(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

describe('[C-24] a listener', () => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startTestGateway({
      upstreams: [{ name: 'absent', url: 'http://127.0.0.1:9/mcp' }],
      pin: false,
      hosts: HOSTS,
      more: 'admin: {breakGlass: {token: {env: TOKEN}}}',
      env: { TOKEN: makeSecret() },
    });
  });
  afterAll(() => gateway.close());

  it('takes a free port where the file says 0, and no usual one', () => {
    const admin = gateway.gateway.listening.find(({ listener }) => listener === 'admin');
    expect(admin?.port).toBeGreaterThan(0);
    expect(admin?.port).not.toBe(9090);
  });

  it.each(['data', 'ops', 'admin'] as const)('is on its host alone: %s', async (name) => {
    const found = gateway.gateway.listening.find(({ listener }) => listener === name);
    const port = found?.port ?? 0;
    expect(await isReached(HOSTS[name], port)).toBe(true);
    const others = ['127.0.0.1', ...Object.values(HOSTS)].filter((host) => host !== HOSTS[name]);
    for (const host of others) expect([host, await isReached(host, port)]).toEqual([host, false]);
  });
});
