// TLS on the listeners of the gateway's own: metrics and the console for those who hold a client certificate,
// probes for everyone, nothing in the clear. Source: docs/reference/listeners.md.

import { randomBytes } from 'node:crypto';
import { request as ask } from 'node:https';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../support/commands.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { type CertifiedKey, makeAuthority } from '../support/tls.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const authority = makeAuthority();
const [own, client] = [authority.issue(), authority.issue()];
const foreign = makeAuthority('another authority').issue();
const token = randomBytes(32).toString('hex');
const TLS = 'tls: {cert: ./own.crt, key: {file: ./own.key}, clientCa: ./ca.crt}';

const upstream = shared(() => startHostileUpstream());
const running = sharedGateway(() => ({
  upstreams: [{ name: 'target', url: upstream.url }],
  ops: [TLS],
  admin: [TLS],
  files: { 'own.crt': own.cert, 'own.key': own.key, 'ca.crt': authority.cert, token },
  more: 'admin: {breakGlass: {token: {file: ./token}}}',
}));

function get(
  url: string,
  as?: Pick<CertifiedKey, 'cert' | 'key'>,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const identity = as === undefined ? {} : { cert: as.cert, key: as.key };
    const headers = { authorization: `Bearer ${token}` };
    ask(url, { agent: false, ca: authority.cert, headers, ...identity }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    })
      .on('error', reject)
      .end();
  });
}

const opsUrl = (): string => running.opsUrl.replace('http:', 'https:');

describe('listeners of the gateway’s own with TLS', () => {
  it('[BND-23] metrics are for those who prove a certificate, probes for everyone', async () => {
    expect((await get(`${opsUrl()}/metrics`, client)).text).toContain('sallyport_build_info');
    for (const as of [undefined, foreign]) {
      expect(await get(`${opsUrl()}/metrics`, as)).toEqual({
        status: 403,
        text: 'a client certificate is required\n',
      });
      expect((await get(`${opsUrl()}/livez`, as)).status).toBe(200);
      expect((await get(`${opsUrl()}/readyz`, as)).status).toBe(200);
    }
    await expect(fetch(`${running.opsUrl}/metrics`)).rejects.toThrow();
  });

  /** Asks twice by this version, the second time in the session of the first; the first line of each answer. */
  async function askAgain(
    url: string,
    version: 'TLSv1.2' | 'TLSv1.3',
    as?: Pick<CertifiedKey, 'cert' | 'key'>,
  ): Promise<readonly string[]> {
    const { hostname, port, pathname } = new URL(url);
    const identity = as === undefined ? {} : { cert: as.cert, key: as.key };
    const answers: string[] = [];
    let session: Buffer | undefined;
    for (let round = 0; round < 2; round += 1) {
      const socket = connect({
        ...{ host: hostname, port: Number(port), ca: authority.cert, ...identity },
        ...{ minVersion: version, maxVersion: version, session },
      });
      let text = '';
      socket.on('session', (given) => {
        session = given;
      });
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      const lines = [`GET ${pathname} HTTP/1.1`, `host: ${hostname}:${port}`];
      lines.push(`authorization: Bearer ${token}`, 'connection: close');
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      await new Promise((resolve) => socket.once('close', resolve));
      answers.push(text.split('\r\n', 1)[0] ?? '');
    }
    return answers;
  }

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '[BND-23] a session of %s that is resumed proves no more than it did at first',
    async (version) => {
      const listening = running.gateway.listening.find(({ listener }) => listener === 'admin');
      const console = `https://127.0.0.1:${listening?.port}/api/controls`;
      const metrics = `${opsUrl()}/metrics`;
      const [good, bad] = ['HTTP/1.1 200 OK', 'HTTP/1.1 403 Forbidden'];
      expect(await askAgain(metrics, version, client)).toEqual([good, good]);
      expect(await askAgain(metrics, version)).toEqual([bad, bad]);
      expect(await askAgain(metrics, version, foreign)).toEqual([bad, bad]);
      expect(await askAgain(console, version, client)).toEqual([good, good]);
      expect(await askAgain(console, version)).toEqual(['', '']);
      expect(await askAgain(console, version, foreign)).toEqual(['', '']);
    },
  );

  it('[BND-23] nobody reaches the console without a certificate, a token alone does not help', async () => {
    const listening = running.gateway.listening.find(({ listener }) => listener === 'admin');
    expect(listening?.isSecure).toBe(true);
    const url = `https://127.0.0.1:${listening?.port}/api/controls`;
    expect((await get(url, client)).status).toBe(200);
    await expect(get(url)).rejects.toThrow();
    await expect(get(url, foreign)).rejects.toThrow();
  });

  it('[BND-23] the health check asks by TLS where the ops listener speaks it', async () => {
    const asked: string[] = [];
    const { code } = await runCommand(['healthcheck', '-c', 'gateway.yaml'], {
      cwd: running.folder,
      async fetchStatus(url) {
        asked.push(url);
        return (await get(url)).status;
      },
    });
    expect([code, asked]).toEqual([0, [`${opsUrl()}/livez`]]);
  });
});
