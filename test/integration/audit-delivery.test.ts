// The lines of the audit log at receivers: in order and complete, again after a failure, and without delaying a call.
// Receivers are servers of this process; test/system/siem.test.ts has real ones.

import { createHash, createHmac, randomBytes } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type AttackRig, UPSTREAM } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { installPrivateNetwork } from '../support/private-network.js';
import { PATIENT } from '../support/timing.js';
import { makeAuthority } from '../support/tls.js';
import { callStateless } from '../support/wire-client.js';
import { withGateway } from '../support/with-gateway.js';

const READ = { id: 'one' };
/** A clock so far ahead shows a receiver that has taken nothing for too long. */
const MORE_THAN_A_MINUTE_MS = 70_000;

type Request = { readonly headers: IncomingMessage['headers']; readonly body: string };
type Answer = (request: Request, count: number) => { readonly status: number; readonly body?: string };

const open: { close(): unknown }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** A receiver over HTTP. `answer` gets every request and how many came before. */
async function startReceiver(answer: Answer = () => ({ status: 200 })) {
  const requests: Request[] = [];
  const server = createHttpServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const received = { headers: request.headers, body };
    const { status, body: text = '' } = answer(received, requests.length);
    requests.push(received);
    response.writeHead(status).end(text);
  });
  open.push({ close: () => server.close() });
  return { url: `http://127.0.0.1:${await portOf(server)}/logs`, requests };
}

const sinksOf = (sink: string): string => `audit: {sinks: [{type: file, path: ./audit.jsonl}, ${sink}]}`;

/** The lines of the file so far. */
async function written(rig: AttackRig): Promise<readonly string[]> {
  return (await rig.gateway.audit()).map(({ id }) => String(id));
}

async function call(rig: AttackRig): Promise<void> {
  await callStateless(rig.as(await rig.gateway.token(UPSTREAM)), 'read_record', READ);
}

const idOf = (line: string): string => (JSON.parse(line) as { readonly id: string }).id;
const linesOf = (requests: readonly Request[]): readonly string[] =>
  requests.flatMap(({ body }) => body.trimEnd().split('\n'));

describe('a sink of type http', () => {
  it('[AD-01] gets every line once and in order, as it is in the file, and signed', async () => {
    const receiver = await startReceiver();
    const key = randomBytes(32);
    const audit = sinksOf(
      `{type: http, url: "${receiver.url}", network: loopback, secret: {env: KEY}, headers: {Authorization: {env: TOKEN}}}`,
    );
    const token = `Token ${randomBytes(8).toString('hex')}`;
    await withGateway({ audit, env: { KEY: key.toString('base64'), TOKEN: token } }, async (rig) => {
      await call(rig);
      await vi.waitFor(async () => {
        const ids = await written(rig);
        expect(linesOf(receiver.requests).map(idOf)).toEqual(ids);
        expect(ids.length).toBeGreaterThan(2);
      }, PATIENT);
      const [first] = receiver.requests;
      const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = first?.headers ?? {};
      const digest = createHmac('sha256', key).update(`${id}.${time}.${first?.body}`).digest('base64');
      expect([signature, first?.headers.authorization]).toEqual([`v1,${digest}`, token]);
      expect(await rig.gateway.metrics()).toContain('sallyport_audit_delivered_total{sink="http",result="delivered"}');
    });
  });

  it('[AD-02] gets what waited while it was away, and calls pass meanwhile', async () => {
    let [isAway, aheadMs] = [true, 0];
    const taken: string[] = [];
    const receiver = await startReceiver((request) => {
      if (!isAway) taken.push(...linesOf([request]));
      return { status: isAway ? 503 : 204 };
    });
    const audit = sinksOf(`{type: http, name: siem, url: "${receiver.url}", network: loopback}`);
    await withGateway({ audit, now: () => Date.now() + aheadMs }, async (rig) => {
      await call(rig);
      const inState = (state: string) =>
        new RegExp(`sallyport_controls\\{control="audit-delivery",state="${state}"\\} 1`);
      await vi.waitFor(() => expect(receiver.requests.length).toBeGreaterThan(0), PATIENT);
      expect(await rig.gateway.metrics()).toMatch(inState('armed'));
      aheadMs = MORE_THAN_A_MINUTE_MS;
      await vi.waitFor(async () => expect(await rig.gateway.metrics()).toMatch(inState('degraded')), PATIENT);
      await call(rig);
      isAway = false;
      await vi.waitFor(async () => {
        expect(taken.map(idOf)).toEqual(await written(rig));
      }, PATIENT);
    });
  });

  it('[AD-03] may refuse a line, which costs that line alone and is counted', async () => {
    let poison: string | undefined;
    const taken: string[] = [];
    const receiver = await startReceiver(({ body }) => {
      const lines = body.trimEnd().split('\n');
      poison ??= lines.filter((line) => line.includes('"mcp.decision"')).map(idOf)[0];
      if (lines.some((line) => idOf(line) === poison)) return { status: 400 };
      // One is sent again to find out whether anything is taken.
      taken.push(...lines.map(idOf).filter((id) => !taken.includes(id)));
      return { status: 200 };
    });
    const audit = sinksOf(`{type: http, url: "${receiver.url}", network: loopback}`);
    await withGateway({ audit }, async (rig) => {
      await call(rig);
      await vi.waitFor(async () => {
        const ids = await written(rig);
        expect(ids.length).toBeGreaterThan(2);
        expect(taken).toEqual(ids.filter((id) => id !== poison));
      }, PATIENT);
      await vi.waitFor(
        async () =>
          expect(await rig.gateway.metrics()).toContain(
            'sallyport_audit_delivered_total{sink="http",result="refused"} 1',
          ),
        PATIENT,
      );
    });
  });
});

describe('a sink of type otlp', () => {
  it('[AD-04] gets log records with the line as their body, and OCSF events where they are chosen', async () => {
    const receiver = await startReceiver(() => ({ status: 200, body: '{}' }));
    const audit = sinksOf(`{type: otlp, url: "${receiver.url}", network: loopback, format: ocsf}`);
    await withGateway({ audit }, async (rig) => {
      await call(rig);
      await vi.waitFor(async () => {
        const records = receiver.requests.flatMap(({ body }) => {
          const { resourceLogs } = JSON.parse(body) as {
            resourceLogs: { scopeLogs: { logRecords: JsonObject[] }[] }[];
          };
          return resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords));
        });
        const events = records.map(
          ({ body }) => JSON.parse((body as { stringValue: string }).stringValue) as JsonObject,
        );
        expect(events.map((event) => idOf(String(event['raw_data'])))).toEqual(await written(rig));
        expect(new Set(events.map((event) => event['class_uid']))).toEqual(new Set([6003]));
        const named = records.map(({ eventName }) => eventName);
        expect(named).toContain('sallyport.mcp.outcome');
      }, PATIENT);
    });
  });

  it('[AD-04] may say that it did not take some records', async () => {
    const partial = JSON.stringify({ partialSuccess: { rejectedLogRecords: '1', errorMessage: 'too old' } });
    let isDone = false;
    const receiver = await startReceiver(({ body }) => {
      const isFirst = !isDone && body.split('"timeUnixNano"').length > 2;
      isDone ||= isFirst;
      return { status: 200, body: isFirst ? partial : '' };
    });
    const audit = sinksOf(`{type: otlp, url: "${receiver.url}", network: loopback}`);
    await withGateway({ audit }, async (rig) => {
      for (let count = 0; count < 10; count += 1) await call(rig);
      await vi.waitFor(
        async () =>
          expect(await rig.gateway.metrics()).toContain(
            'sallyport_audit_delivered_total{sink="otlp",result="refused"} 1',
          ),
        PATIENT,
      );
    });
  });
});

/** A receiver of syslog. A connection that `breaks` is cut off after some bytes, one that `ends` is ended unread. */
async function startSyslog({
  breaks = () => false,
  ends = () => false,
  tls,
}: {
  readonly ends?: () => boolean;
  readonly breaks?: (count: number) => boolean;
  readonly tls?: TlsOptions;
} = {}) {
  const received: string[] = [];
  let count = 0;
  const take = (socket: Socket): void => {
    if (ends()) {
      socket.on('error', () => undefined);
      socket.end();
      return;
    }
    const isBroken = breaks(count);
    count += 1;
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      text += String(chunk);
      if (isBroken) socket.resetAndDestroy();
    });
    socket.on('end', () => received.push(text));
  };
  const server = tls === undefined ? createServer(take) : createTlsServer(tls, take);
  open.push({ close: () => server.close() });
  return { port: await portOf(server), received };
}

/** The messages of octet-counted text (RFC 6587 §3.4.1). */
function framesOf(text: string): readonly string[] {
  const frames = [];
  for (let rest = text; rest !== ''; ) {
    const [length = ''] = rest.split(' ', 1);
    frames.push(rest.slice(length.length + 1, length.length + 1 + Number(length)));
    rest = rest.slice(length.length + 1 + Number(length));
  }
  return frames;
}

describe('a sink of type syslog', () => {
  it('[AD-05] gets RFC 5424 messages, and again what a broken connection may have lost', async () => {
    const receiver = await startSyslog({ breaks: (count) => count === 0 });
    const audit = sinksOf(
      `{type: syslog, url: "tcp://127.0.0.1:${receiver.port}", network: loopback, facility: local3}`,
    );
    await withGateway({ audit }, async (rig) => {
      await call(rig);
      await vi.waitFor(async () => {
        const frames = receiver.received.flatMap(framesOf);
        const ids = frames.map((frame) => idOf(frame.slice(frame.indexOf('{'))));
        expect(ids).toEqual(await written(rig));
        expect(ids.length).toBeGreaterThan(2);
        for (const frame of frames)
          expect(frame).toMatch(/^<15[5-7]>1 \d{4}-[\d-]+T[\d:.]+Z \S+ sallyport \S+ \S+ - \{/);
      }, PATIENT);
    });
  });

  it('[AD-05] names a line that is too long for it, and gets no part of that', async () => {
    const receiver = await startSyslog();
    const audit = sinksOf(
      `{type: syslog, url: "tcp://127.0.0.1:${receiver.port}", network: loopback, maxMessage: 2KiB}`,
    );
    await withGateway({ audit }, async (rig) => {
      const names = Array.from({ length: 40 }, (_, index) => [`${'k'.repeat(100)}${index}`, 1] as const);
      const access = rig.as(await rig.gateway.token(UPSTREAM));
      await callStateless(access, 'read_record', { ...READ, ...Object.fromEntries(names) });
      await vi.waitFor(async () => {
        const messages = receiver.received.flatMap(framesOf).map((frame) => frame.slice(frame.indexOf('{')));
        expect(messages.map(idOf)).toEqual(await written(rig));
        const long = messages.filter((text) => text.includes('left_out_bytes'));
        expect(long.length).toBeGreaterThan(0);
        for (const message of messages) expect(message.length).toBeLessThan(2048);
        expect(await rig.gateway.metrics()).toContain(
          `sallyport_audit_delivered_total{sink="syslog",result="refused"} ${long.length}`,
        );
      }, PATIENT);
    });
  });

  it('[AD-05] has not taken what it ended the connection at', async () => {
    let [isAway, aheadMs] = [true, 0];
    const receiver = await startSyslog({ ends: () => isAway });
    const audit = sinksOf(`{type: syslog, url: "tcp://127.0.0.1:${receiver.port}", network: loopback}`);
    await withGateway({ audit, now: () => Date.now() + aheadMs }, async (rig) => {
      aheadMs = MORE_THAN_A_MINUTE_MS;
      await vi.waitFor(
        async () =>
          expect(await rig.gateway.metrics()).toContain(
            'sallyport_controls{control="audit-delivery",state="degraded"} 1',
          ),
        PATIENT,
      );
      isAway = false;
      await vi.waitFor(async () => {
        const ids = receiver.received.flatMap(framesOf).map((frame) => idOf(frame.slice(frame.indexOf('{'))));
        expect(ids).toEqual(await written(rig));
        expect(ids.length).toBeGreaterThan(0);
      }, PATIENT);
    });
  });

  it('[AD-06] proves who it is, and learns who delivers', async () => {
    const authority = makeAuthority();
    const own = authority.issue({ names: ['logs.internal'] });
    const client = authority.issue({ names: ['gateway.internal'] });
    const other = makeAuthority('Other Authority');
    const pin = `"sha256:${createHash('sha256').update(own.spki).digest('hex')}"`;
    const wrong = `"sha256:${createHash('sha256').update(client.spki).digest('hex')}"`;
    const receiver = await startSyslog({
      tls: { cert: own.cert, key: own.key, ca: authority.cert, requestCert: true, rejectUnauthorized: true },
    });
    const files = { 'ca.pem': authority.cert, 'other.pem': other.cert, 'client.crt': client.cert };
    const certified = 'cert: ./client.crt, key: {env: KEY}';
    const sink = (name: string, tls: string): string =>
      `{type: syslog, name: ${name}, url: "tls://127.0.0.1:${receiver.port}", network: loopback, tls: {${tls}}}`;
    const good = `ca: ./ca.pem, serverName: logs.internal, pins: [${pin}], ${certified}`;
    const bad = {
      unnamed: `ca: ./ca.pem, ${certified}`,
      'other-authority': `ca: ./other.pem, serverName: logs.internal, ${certified}`,
      'other-key': `ca: ./ca.pem, serverName: logs.internal, pins: [${wrong}], ${certified}`,
      nobody: 'ca: ./ca.pem, serverName: logs.internal',
    };
    const audit = sinksOf(
      [sink('good', good), ...Object.entries(bad).map(([name, tls]) => sink(name, tls))].join(', '),
    );
    let aheadMs = 0;
    const now = () => Date.now() + aheadMs;
    await withGateway({ audit, files, env: { KEY: client.key }, now }, async (rig) => {
      aheadMs = MORE_THAN_A_MINUTE_MS;
      await vi.waitFor(async () => {
        const ids = receiver.received.flatMap(framesOf).map((frame) => idOf(frame.slice(frame.indexOf('{'))));
        expect(ids).toEqual(await written(rig));
        const metrics = await rig.gateway.metrics();
        const degraded = `sallyport_controls{control="audit-delivery",state="degraded"} ${Object.keys(bad).length}`;
        expect(metrics).toContain(degraded);
        expect(metrics).toContain('sallyport_controls{control="audit-delivery",state="armed"} 1');
        for (const use of ['audit-delivery', 'audit-delivery-ca'])
          expect(metrics).toContain(`sallyport_certificate_expiry_timestamp_seconds{use="${use}",name="good"}`);
      }, PATIENT);
    });
  });

  it('[AD-06] is reached in a private network by plain TCP where that is accepted, and nowhere else', async () => {
    const network = installPrivateNetwork({
      'logs.internal': () => ['10.77.0.9'],
      'moved.internal': () => ['127.0.0.1'],
    });
    try {
      const receiver = await startSyslog();
      const sink = (name: string): string =>
        `{type: syslog, name: ${name}, url: "tcp://${name}.internal:${receiver.port}", network: private, plaintext: accepted}`;
      await withGateway({ audit: sinksOf(`${sink('logs')}, ${sink('moved')}`) }, async (rig) => {
        await vi.waitFor(async () => {
          const metrics = await rig.gateway.metrics();
          expect(metrics).toMatch(/sallyport_audit_delivered_total\{sink="logs",result="delivered"\} \d/);
          expect(metrics).toContain('sallyport_controls{control="audit-delivery",state="degraded"} 2');
          expect(metrics).not.toMatch(/sink="moved",result="delivered"\} [1-9]/);
        }, PATIENT);
      });
    } finally {
      network.restore();
    }
  });
});
