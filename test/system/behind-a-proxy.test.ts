// The nginx configuration of config/examples/behind-nginx, in front of a real gateway: challenges, calls, streams that are
// not buffered, and paths that are not rewritten.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { paramsOf } from '../support/hostile-upstream.js';
import { findFreePort } from '../support/processes.js';
import { makeAuthority } from '../support/tls.js';
import { statelessParts } from '../support/wire-client.js';

const SHIPPED = join(import.meta.dirname, '../../config/examples/behind-nginx/nginx.conf');
const HOST = 'localhost';
const SHIPPED_HOST = 'mcp.example.com';
const authority = makeAuthority();

let folder: string;
let rig: AttackRig;
let port: number;
let nginx: ChildProcess;
let token: string;

/** The shipped file, with the ports and files of this machine, and nothing else changed. */
async function configurationOfExample(gatewayPort: number): Promise<string> {
  const text = await readFile(SHIPPED, 'utf8');
  const server = text
    .replaceAll(/^#.*\n/gm, '')
    .replace('server 127.0.0.1:8080;', `server 127.0.0.1:${gatewayPort};`)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
    .replaceAll(`/etc/nginx/tls/${SHIPPED_HOST}`, join(folder, HOST))
    .replaceAll(SHIPPED_HOST, HOST);
  expect(server).not.toContain('/etc/nginx');
  return `daemon off;
pid ${folder}/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  ${server}
}
`;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-nginx-'));
  port = await findFreePort();
  rig = await startRig({
    publicUrl: `https://${HOST}`,
    listener: ['trustedProxies: [127.0.0.1/32]'],
  });
  token = await rig.gateway.issuer.mint(`https://${HOST}/${UPSTREAM}`, {});
  const { cert, key } = authority.issue({ names: [HOST] });
  await writeFile(join(folder, `${HOST}.pem`), cert);
  await writeFile(join(folder, `${HOST}.key`), key, { mode: 0o600 });
  await writeFile(join(folder, 'nginx.conf'), await configurationOfExample(rig.port));
  nginx = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-e', 'stderr'], { stdio: 'pipe' });
  let failure: Error | undefined;
  nginx.on('error', (error) => {
    failure = error;
  });
  while ((await send('GET', '/').then(statusOf, () => 0)) !== 404) {
    if (failure !== undefined)
      throw new Error(`nginx cannot be started: ${failure.message}. Run .ci/run, which installs it.`);
    if (nginx.exitCode !== null) throw new Error(`nginx ended with ${nginx.exitCode}`);
    await sleep(50);
  }
});

afterAll(async () => {
  if (nginx?.kill('SIGTERM')) await once(nginx, 'close');
  await rig?.close();
  await rm(folder, { recursive: true, force: true });
});

function send(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        ...{ host: '127.0.0.1', port, method, path, servername: HOST, ca: authority.cert },
        headers: { host: HOST, ...headers },
      },
      resolve,
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function statusOf(response: IncomingMessage): number {
  response.resume();
  return response.statusCode ?? 0;
}

function call(bearer: string | undefined, id: string): Promise<IncomingMessage> {
  const params = { name: 'read_record', arguments: { id }, _meta: { progressToken: 'p' } };
  const { headers, body } = statelessParts('tools/call', params, id);
  const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  return send(
    'POST',
    `/${UPSTREAM}`,
    {
      ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      ...authorization,
      ...(headers as Record<string, string>),
    },
    JSON.stringify(body),
  );
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
}

describe('[GU-03] nginx as the example configures it', () => {
  it('passes the challenge on, which names the public URL', async () => {
    const response = await call(undefined, 'one');
    expect(response.statusCode).toBe(401);
    expect(response.headers['www-authenticate']).toContain(
      `resource_metadata="https://${HOST}/.well-known/oauth-protected-resource/${UPSTREAM}"`,
    );
    response.resume();
  });

  it('passes the metadata document on', async () => {
    const response = await send('GET', `/.well-known/oauth-protected-resource/${UPSTREAM}`);
    expect(response.statusCode).toBe(200);
    expect(JSON.parse(await textOf(response)).resource).toBe(`https://${HOST}/${UPSTREAM}`);
  });

  it('passes calls and their results on, and the audit has the address of the client', async () => {
    const response = await call(token, 'two');
    expect(response.statusCode).toBe(200);
    expect(JSON.parse(await textOf(response))).toMatchObject({ id: 'two', result: {} });
    const lines = await rig.gateway.audit();
    expect(lines.some((line) => line['client']?.ip === '127.0.0.1')).toBe(true);
  });

  it('does not buffer a stream: an event arrives while the server still works', async () => {
    let finish = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    rig.upstream.obeyOnce((request) => {
      if (request.method !== 'tools/call') return undefined;
      const meta = paramsOf(request)['_meta'] as { progressToken: unknown };
      const progress = { progressToken: meta.progressToken, progress: 1 };
      const events = [
        { jsonrpc: '2.0', method: 'notifications/progress', params: progress },
        {
          ...{ jsonrpc: '2.0', id: request.id },
          result: { resultType: 'complete', content: [{ type: 'text', text: 'done' }] },
        },
      ];
      return {
        ...{ kind: 'chunks', contentType: 'text/event-stream', ending: 'end', gate },
        chunks: events.map((event) => `event: message\ndata: ${JSON.stringify(event)}\n\n`),
      };
    });
    const response = await call(token, 'three');
    expect(response.headers['content-type']).toContain('text/event-stream');
    const [first] = await once(response, 'data');
    expect(String(first)).toContain('notifications/progress');
    finish();
    expect(await textOf(response)).toContain('done');
  });

  it('rewrites no path: another spelling is unknown to the gateway', async () => {
    const spelled = `/%${UPSTREAM.charCodeAt(0).toString(16)}${UPSTREAM.slice(1)}`;
    expect(await send('POST', spelled, { 'content-type': 'application/json' }, '{}').then(statusOf)).toBe(404);
  });
});
