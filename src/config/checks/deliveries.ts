// Checks on the receivers of audit lines that a schema cannot express: they read the files of a file sink, each has a
// name of its own, and their URLs obey the rules of upstreams. Reports diagnostics and changes nothing.
// docs/reference/audit.md#delivery

import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import type { GatewayConfig } from '../schema/gateway.js';
import { checkOrigin } from './addresses.js';
import { checkTls, isReserved } from './upstreams.js';

type Sink = GatewayConfig['audit']['sinks'][number];
type Delivered = Exclude<Sink, { readonly type: 'file' | 'stdout' }>;

/** RFC 5424 §6.1: what receivers should take. */
const MIN_MESSAGE_BYTES = 2048;

/** Checks every sink that gets what a file sink has written. */
export function checkDeliveries(file: GatewayConfig, report: ReportDiagnostic): void {
  const { sinks } = file.audit;
  const names = new Set<string>();
  for (const [index, sink] of sinks.entries()) {
    if (sink.type === 'file' || sink.type === 'stdout') continue;
    checkDelivery(file, ['audit', 'sinks', index], sink, report);
    const { name = sink.type } = sink;
    if (names.has(name))
      report(['audit', 'sinks', index, 'name'], `another sink has the name "${name}": give each its own`, 'conflict');
    names.add(name);
  }
}

function checkDelivery(file: GatewayConfig, at: FilePath, sink: Delivered, report: ReportDiagnostic): void {
  if (!file.audit.sinks.some(({ type }) => type === 'file')) {
    const message = `a sink of type ${sink.type} needs one of type file: it delivers what that has written`;
    report(at, message, 'missing-key', { suggestion: '{type: file, path: ./audit.jsonl}' });
  }
  checkUrlOf(file, at, sink, report);
  checkTls([...at, 'tls'], sink, report);
  if (sink.type !== 'syslog') checkHeaders([...at, 'headers'], sink.headers, report);
  else if (sink.maxMessage < MIN_MESSAGE_BYTES)
    report([...at, 'maxMessage'], 'this is less than 2KiB, which RFC 5424 asks of receivers');
}

function checkHeaders(path: FilePath, headers: Readonly<Record<string, unknown>>, report: ReportDiagnostic): void {
  for (const name of Object.keys(headers)) {
    const header = name.toLowerCase();
    if (isReserved(header) || header.startsWith('webhook-'))
      report([...path, name], 'the gateway sets this header itself', 'conflict');
  }
}

/** The schemes of syslog and those whose rules they have. */
const SYSLOG_SCHEMES: readonly (readonly [string, string])[] = [
  ['tls:', 'https:'],
  ['tcp:', 'http:'],
];

const DEFAULT_PORTS: ReadonlySet<string> = new Set(['tls:443', 'tcp:80']);

function checkUrlOf(file: GatewayConfig, at: FilePath, sink: Delivered, report: ReportDiagnostic): void {
  const { network, plaintext } = sink;
  const reach = { owner: at, network, plaintext };
  const path = [...at, 'url'];
  if (sink.type !== 'syslog') {
    checkOrigin(file, path, sink.url, reach, report);
    return;
  }
  const scheme = SYSLOG_SCHEMES.find(([own]) => sink.url.startsWith(`${own}//`));
  const url = scheme && URL.canParse(sink.url) ? new URL(sink.url) : undefined;
  const isDefaultPort = url !== undefined && DEFAULT_PORTS.has(`${url.protocol}${url.port}`);
  if (scheme === undefined || url === undefined || url.port === '' || !['', '/'].includes(url.pathname + url.search)) {
    report(path, 'expected tls:// or tcp://, a host and a port, such as tls://logs.example.com:6514');
    return;
  }
  const [own, web] = scheme;
  const inSyslog = (text: string): string => text.replaceAll('plain http', 'plain TCP').replaceAll('https', 'tls');
  // In its normal form, a URL of the web has no port that is the default one.
  const written = isDefaultPort ? sink.url.replace(`:${url.port}`, '') : sink.url;
  checkOrigin(file, path, written.replace(own, web), reach, (where, message, rule, more) =>
    report(where, inSyslog(message), rule, {
      ...more,
      suggestion: more?.suggestion?.replace(/^https:/, 'tls:').replace(/^http:/, 'tcp:'),
    }),
  );
}
