// The audit log at real receivers: rsyslog, syslog-ng, an OpenTelemetry collector, and OCSF's own schema. What they have
// stored is the audit log, line by line, and verifies.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { approvalEvent, buildEvent } from '../../src/audit/event.js';
import { ocsfEvent } from '../../src/delivery/ocsf.js';
import { parseObject } from '../../src/protocol/jsonrpc.js';
import { readAudit } from '../support/audit-chain.js';
import { type AttackRig, UPSTREAM } from '../support/gateway.js';
import { tracingTo } from '../support/otlp-receiver.js';
import { buildProgram, findFreePort, runSallyport } from '../support/processes.js';
import { PATIENT } from '../support/timing.js';
import { type CertifiedKey, makeAuthority } from '../support/tls.js';
import { callStateless } from '../support/wire-client.js';
import { withGateway } from '../support/with-gateway.js';
import { context, sampleAnswer, sampleApproval } from '../unit/audit/samples.js';
import { must, TOOLS } from './programs.js';

const RSYSLOG = join(TOOLS, 'rsyslog-8/usr');
const COLLECTOR = join(TOOLS, 'collector-0.161.0');
const OCSF_SCHEMA = join(TOOLS, 'ocsf-json-schema-1.2.0');

let folder: string;
const started: ChildProcess[] = [];
beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-siem-'));
});
afterAll(async () => {
  await Promise.all(started.map(end));
  await rm(folder, { recursive: true, force: true });
});

/** Starts a program that is ended with the test. */
function start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: 'ignore' });
  child.on('error', () => undefined);
  started.push(child);
  return child;
}

/** In order, so that a receiver stores what it has read. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

/** The lines that a receiver has written to a file. */
async function linesAt(file: string): Promise<readonly string[]> {
  const text = await readFile(join(folder, file), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

async function written(rig: AttackRig): Promise<readonly string[]> {
  return (await readAudit(join(rig.gateway.folder, 'audit.jsonl'))).trimEnd().split('\n');
}

async function startRsyslog(port: number): Promise<ChildProcess> {
  const config = join(folder, 'rsyslog.conf');
  await writeFile(
    config,
    `global(workDirectory="${folder}" maxMessageSize="64k")
module(load="imtcp")
template(name="line" type="string" string="%msg%\\n")
ruleset(name="store") { action(type="omfile" file="${join(folder, 'rsyslog.out')}" template="line") }
input(type="imtcp" port="${port}" address="127.0.0.1" ruleset="store")
`,
  );
  const args = ['-n', '-f', config, '-i', join(folder, 'rsyslog.pid')];
  return start(join(RSYSLOG, 'sbin/rsyslogd'), args, { RSYSLOG_MODDIR: join(RSYSLOG, 'lib/x86_64-linux-gnu/rsyslog') });
}

async function startSyslogNg(port: number, { cert, key }: CertifiedKey): Promise<void> {
  const config = join(folder, 'syslog-ng.conf');
  await writeFile(join(folder, 'syslog-ng.key'), key);
  await writeFile(join(folder, 'syslog-ng.crt'), cert);
  await writeFile(
    config,
    `@version: 3.38
source gateway {
  syslog(ip("127.0.0.1") port(${port}) transport("tls") log-msg-size(65536)
    tls(key-file("${join(folder, 'syslog-ng.key')}") cert-file("${join(folder, 'syslog-ng.crt')}") peer-verify(no)));
};
destination store { file("${join(folder, 'syslog-ng.out')}" template("$MSG\\n")); };
log { source(gateway); destination(store); };
`,
  );
  const own = (name: string): string => join(folder, `syslog-ng.${name}`);
  start('syslog-ng', ['-F', '-f', config, '-R', own('persist'), '-p', own('pid'), '-c', own('ctl'), '--no-caps']);
}

async function startCollector(port: number): Promise<void> {
  const config = join(folder, 'collector.yaml');
  await writeFile(
    config,
    `receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:${port}"}}}}
exporters: {file: {path: ${join(folder, 'collector.out')}}, file/traces: {path: ${join(folder, 'traces.out')}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], exporters: [file]}
    traces: {receivers: [otlp], exporters: [file/traces]}
`,
  );
  start(join(COLLECTOR, 'collector'), ['--config', `file:${config}`]);
}

/** The bodies of the log records that the collector has written. */
async function collected(): Promise<readonly string[]> {
  type Batch = {
    resourceLogs: readonly { scopeLogs: readonly { logRecords: readonly { body: { stringValue: string } }[] }[] }[];
  };
  return (await linesAt('collector.out')).flatMap((batch) =>
    (JSON.parse(batch) as Batch).resourceLogs.flatMap(({ scopeLogs }) =>
      scopeLogs.flatMap(({ logRecords }) => logRecords.map(({ body }) => body.stringValue)),
    ),
  );
}

/** The names of the spans that the collector has written, by the id of their trace. */
async function spanNames(traceId: string): Promise<readonly string[]> {
  type Batch = {
    resourceSpans: readonly { scopeSpans: readonly { spans: readonly { traceId: string; name: string }[] }[] }[];
  };
  return (await linesAt('traces.out')).flatMap((batch) =>
    (JSON.parse(batch) as Batch).resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) => spans.flatMap((span) => (span.traceId === traceId ? [span.name] : []))),
    ),
  );
}

/** A receiver over HTTP in this process. */
async function startOwn() {
  const lines: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    lines.push(...body.trimEnd().split('\n'));
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { lines, port: (server.address() as AddressInfo).port, close: () => server.close() };
}

/** Events that no call makes: of pins, approvals and administrators, in the form of OCSF. */
function rareEvents(): readonly string[] {
  const named = { upstream: UPSTREAM, kind: 'tool', name: 'read_record' };
  const found = { finding: 'F-1', found: 'instruction', tier: 'high', pointer: '/description', evidence: 'ignore' };
  const person = { issuer: 'https://staff.example.com', subject: 'rita', ip: '192.0.2.1' };
  const approval = sampleApproval({ answers: [sampleAnswer()] });
  return [
    buildEvent({ type: 'pin.drift', ...named, change: 'description', before: 'a', after: 'b' }, context),
    buildEvent({ type: 'pin.approval', ...named, digest: 'a', by: 'rita', note: 'reviewed' }, context),
    buildEvent({ type: 'pin.block', ...named, digest: undefined, by: undefined, note: undefined }, context),
    buildEvent({ type: 'pin.first-use', ...named, digest: 'a' }, context),
    buildEvent({ type: 'pin.finding', ...named, ...found, isPinned: true, action: 'flag' }, context),
    buildEvent({ type: 'admin.action', ...person, action: 'block', status: 200, detail: { tool: 'x' } }, context),
    buildEvent({ type: 'admin.action', ...person, subject: undefined, action: 'list', status: 403 }, context),
    ...(['requested', 'expired', 'used'] as const).map((change) => approvalEvent({ change, approval }, context)),
    ...(['granted', 'denied'] as const).map((change) =>
      approvalEvent({ change, approval, answer: sampleAnswer() }, context),
    ),
  ].map(({ before, after }) => {
    const text = `${before}${after}}`;
    return JSON.stringify(ocsfEvent({ text, record: parseObject(text) }));
  });
}

/** What the schema of OCSF says against events, one sentence each. */
async function ocsfErrors(events: readonly string[]): Promise<string> {
  const script = `
import json, sys
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema
from jsonschema import Draft202012Validator
schemas = OcsfJsonSchemaEmbedded(get_ocsf_schema(version='1.6.0'))
validator = Draft202012Validator(schemas.get_class_schema('api_activity', ['security_control', 'trace']))
for line in sys.stdin:
    event = json.loads(line)
    for error in validator.iter_errors(event):
        print(event['metadata']['event_code'], error.json_path, error.message[:200])
`;
  return must('python3', ['-c', script], {
    input: `${events.join('\n')}\n`,
    env: { PYTHONPATH: OCSF_SCHEMA },
  });
}

describe('[AD-07] the audit log at real receivers', () => {
  it('is complete and verifies at each, also where one was away, and is valid OCSF', async () => {
    const [rsyslogPort, syslogNgPort, collectorPort] = [
      await findFreePort(),
      await findFreePort(),
      await findFreePort(),
    ];
    const own = await startOwn();
    const rsyslog = await startRsyslog(rsyslogPort);
    const authority = makeAuthority();
    await startSyslogNg(syslogNgPort, authority.issue());
    await startCollector(collectorPort);
    const audit = `audit:
  sinks:
    - {type: file, path: ./audit.jsonl}
    - {type: syslog, name: rsyslog, url: "tcp://127.0.0.1:${rsyslogPort}", network: loopback, maxMessage: 64KiB}
    - {type: syslog, name: syslog-ng, url: "tls://127.0.0.1:${syslogNgPort}", network: loopback, maxMessage: 64KiB, tls: {ca: ./ca.pem}}
    - {type: otlp, url: "http://127.0.0.1:${collectorPort}/v1/logs", network: loopback}
    - {type: http, url: "http://127.0.0.1:${own.port}/", network: loopback, format: ocsf}
`;
    const policies = {
      some: `version: 1
policy: some
rules:
  - {id: reading, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: [read_record]}}
`,
    };
    const more = tracingTo({ url: `http://127.0.0.1:${collectorPort}/v1/traces` });
    await withGateway({ audit, policies, more, files: { 'ca.pem': authority.cert } }, async (rig) => {
      const access = rig.as(await rig.gateway.token(UPSTREAM));
      const call = (tool: string) => callStateless(access, tool, { id: 'one', text: 'x' });
      for (let count = 0; count < 20; count += 1) await call(count % 4 === 3 ? 'write_record' : 'read_record');
      await vi.waitFor(async () => expect((await linesAt('rsyslog.out')).length).toBeGreaterThan(10), PATIENT);
      await end(rsyslog);
      for (let count = 0; count < 10; count += 1) await call('read_record');
      await callStateless({ ...access, token: 'none' }, 'read_record', { id: 'one' });
      await startRsyslog(rsyslogPort);
      await vi.waitFor(async () => {
        const expected = await written(rig);
        expect(await linesAt('syslog-ng.out')).toEqual(expected);
        expect(await collected()).toEqual(expected);
        expect([...new Set(await linesAt('rsyslog.out'))]).toEqual(expected);
        expect([...new Set(own.lines.map((event) => JSON.parse(event)['raw_data']))]).toEqual(expected);
      }, PATIENT);
      for (const file of ['rsyslog.out', 'syslog-ng.out']) {
        const lines = [...new Set(await linesAt(file))];
        await writeFile(join(folder, `${file}.jsonl`), `${lines.join('\n')}\n`);
        const { stdout, code } = await runSallyport(['audit', 'verify', join(folder, `${file}.jsonl`)]);
        expect(`${code} ${stdout}`).toMatch(/^0 /);
      }
      expect(await ocsfErrors([...own.lines, ...rareEvents()])).toBe('');
      const lines = (await written(rig)).map((line) => JSON.parse(line));
      const traced = lines.find(({ type, target }) => type === 'mcp.decision' && target.name === 'read_record');
      await vi.waitFor(
        async () => expect(await spanNames(traced.trace.trace_id)).toContain('tools/call read_record'),
        PATIENT,
      );
    });
    own.close();
  });
});
