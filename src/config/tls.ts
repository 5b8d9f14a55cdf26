// Reads the TLS certificates and keys of listeners and of connections to upstreams, and checks before
// anything listens that they are readable and belong together. A key is never quoted or described in a
// diagnostic. Trust is decided at each connection. docs/contract.md §3 (`tls`); RFC 5280, RFC 7468.

import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { FilePath, ReportDiagnostic } from './diagnostics.js';
import { decodeUtf8, type Files } from './files.js';
import { isKeyOf, readCertificates } from './keys.js';
import { findMeanings } from './schema/definitions.js';
import { GATEWAY_SCHEMA, type ReadableGateway } from './schema/gateway.js';
import {
  describeFile,
  describeSource,
  describeUnreadable,
  MAX_SECRET_BYTES,
  type SecretSources,
  type Secrets,
  secretAt,
} from './secrets.js';
import type { TlsSettings } from './settings.js';

const LISTENER_NAMES = ['data', 'ops', 'admin'] as const;
type ListenerName = (typeof LISTENER_NAMES)[number];

/** TLS settings of the listeners that use TLS. */
export type ListenerTls = { readonly [Name in ListenerName]?: TlsSettings };

type TlsSources = {
  readonly files: Pick<Files, 'readFile'>;
  /** Folder of the gateway file. */
  readonly folder: string;
  readonly secrets: Secrets;
};

const MAX_PEM_BYTES = 256 * 1024;

/** Reads and checks the TLS files of every listener. Listeners without TLS are skipped. */
export function readListenerTls(
  { listeners = {} }: ReadableGateway,
  sources: TlsSources,
  report: ReportDiagnostic,
): ListenerTls {
  const found: { -readonly [Name in ListenerName]?: TlsSettings } = {};
  for (const name of LISTENER_NAMES) {
    const written = listeners[name]?.tls;
    const tls = written && readTls(written, ['listeners', name, 'tls'], sources, report);
    if (tls !== undefined) found[name] = tls;
  }
  return found;
}

type WrittenTls = NonNullable<
  NonNullable<NonNullable<ReadableGateway['listeners']>['data']>['tls']
>;

function readTls(
  written: WrittenTls,
  path: FilePath,
  sources: TlsSources,
  report: ReportDiagnostic,
): TlsSettings | undefined {
  const read = (member: 'cert' | 'clientCa') =>
    readListenerCertificates(written[member], [...path, member], sources, report);
  const cert = read('cert');
  const clientCa = read('clientCa');
  const key = secretAt(sources.secrets, [...path, 'key']);
  const lacksAuthorities = written.clientCa && clientCa === undefined;
  if (cert === undefined || key === undefined || lacksAuthorities) return undefined;
  const error = findPairError(cert.text, key);
  if (error !== undefined) {
    report([...path, 'key'], `${describeSource(written.key)} ${error}`, 'secret');
    return undefined;
  }
  const keyFile = written.key?.file;
  const watched = [cert.file, clientCa?.file, keyFile && resolve(sources.folder, keyFile)];
  return {
    cert: cert.text,
    key,
    clientCa: clientCa?.text,
    expiresAtMs: cert.expiresAtMs,
    files: watched.filter((file) => file !== undefined),
  };
}

type Certificates = { readonly file: string; readonly text: string; readonly expiresAtMs: number };

/** One PEM file with one or more certificates, the first of which is the listener's own. */
function readListenerCertificates(
  written: string | undefined,
  path: FilePath,
  { files, folder }: TlsSources,
  report: ReportDiagnostic,
): Certificates | undefined {
  if (!written) return undefined;
  const file = resolve(folder, written);
  let bytes: Uint8Array;
  try {
    bytes = files.readFile(file);
  } catch (error) {
    report(path, describeUnreadable(written, error), 'unreadable');
    return undefined;
  }
  const text = bytes.byteLength > MAX_PEM_BYTES ? '' : new TextDecoder().decode(bytes);
  const [certificate] = readCertificates(text) ?? [];
  if (certificate !== undefined)
    return { file, text, expiresAtMs: Date.parse(certificate.validTo) };
  report(path, `${describeFile(written)} holds no certificates in PEM`);
  return undefined;
}

function findPairError(cert: string, key: string): string | undefined {
  try {
    createPrivateKey(key);
  } catch {
    return 'holds no private key in PEM without a passphrase';
  }
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch {
    return 'holds a private key that is not that of the certificate';
  }
}

/**
 * The texts of the upstreams' certificate files by path, for `secretAt`. `keys` are the secrets read
 * before, among them the private keys of the certificates.
 */
export function readTlsFiles(
  gateway: ReadableGateway,
  sources: Pick<SecretSources, 'files' | 'folder'>,
  keys: Secrets,
  report: ReportDiagnostic,
): Secrets {
  const texts = new Map<string, string>();
  for (const { path, meaning, value } of findMeanings(GATEWAY_SCHEMA, gateway)) {
    if (meaning !== 'file-content' || !value) continue;
    const file = resolve(sources.folder, String(value));
    const read = readText(String(value), () => sources.files.readFile(file));
    const certificate = checkCertificate(String(value), read, path, report);
    if (!('text' in read) || certificate === undefined) continue;
    const { text } = read;
    texts.set(JSON.stringify(path), text);
    const keyPath = [...path.slice(0, -1), 'key'];
    const key = path.at(-1) === 'cert' ? secretAt(keys, keyPath) : undefined;
    if (key === undefined || isKeyOf(key, certificate)) continue;
    report(keyPath, 'this is not the private key of the certificate', 'certificate');
  }
  return texts;
}

/** The first certificate of a file's text. */
function checkCertificate(
  file: string,
  read: FileText,
  path: FilePath,
  report: ReportDiagnostic,
): X509Certificate | undefined {
  const refuse = (message: string, severity: 'error' | 'warning' = 'error'): void =>
    report(path, message, 'certificate', { severity });
  const [certificate] = ('text' in read ? readCertificates(read.text) : undefined) ?? [];
  if ('why' in read) refuse(read.why);
  else if (certificate === undefined) {
    refuse(`${describeFile(file)} holds no certificate in PEM, or one that cannot be read`);
  } else if (Date.parse(certificate.validTo) < Date.now()) {
    refuse(`the certificate of ${describeFile(file)} has expired`, 'warning');
  }
  return certificate;
}

type FileText = { readonly text: string } | { readonly why: string };

function readText(file: string, read: () => Uint8Array): FileText {
  let bytes: Uint8Array;
  try {
    bytes = read();
  } catch (error) {
    return { why: describeUnreadable(file, error) };
  }
  const text = bytes.byteLength > MAX_SECRET_BYTES ? undefined : decodeUtf8(bytes);
  return text === undefined
    ? { why: `${describeFile(file)} is not UTF-8 text of at most ${MAX_SECRET_BYTES} bytes` }
    : { text };
}
