// Reads the TLS certificates and keys of listeners and of connections to upstreams, and checks before
// anything listens that they are readable and belong together. A key is never quoted or described in a
// diagnostic. Trust is decided at each connection. docs/contract.md §3 (`tls`); RFC 5280, RFC 7468.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { FilePath, ReportDiagnostic } from './diagnostics.js';
import type { Files } from './files.js';
import { isKeyOf, readCertificates } from './keys.js';
import { MAX_SECRET_BYTES, type SecretSources, type Secrets, secretAt } from './secrets.js';
import type { TlsSettings } from './settings.js';
import { mapAt, textAt, valueAt } from './yaml.js';

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
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Reads and checks the TLS files of every listener. Listeners without TLS are skipped. */
export function readListenerTls(
  root: unknown,
  sources: TlsSources,
  report: ReportDiagnostic,
): ListenerTls {
  const found: { -readonly [Name in ListenerName]?: TlsSettings } = {};
  for (const name of LISTENER_NAMES) {
    const path: FilePath = ['listeners', name, 'tls'];
    if (valueAt(root, path) === undefined) continue;
    const tls = readTls(root, path, sources, report);
    if (tls !== undefined) found[name] = tls;
  }
  return found;
}

function readTls(
  root: unknown,
  path: FilePath,
  sources: TlsSources,
  report: ReportDiagnostic,
): TlsSettings | undefined {
  const cert = readListenerCertificates(root, [...path, 'cert'], sources, report);
  const hasAuthorities = textAt(root, [...path, 'clientCa']) !== undefined;
  const clientCa = hasAuthorities
    ? readListenerCertificates(root, [...path, 'clientCa'], sources, report)
    : undefined;
  const key = secretAt(sources.secrets, [...path, 'key']);
  if (cert === undefined || key === undefined || (hasAuthorities && clientCa === undefined)) {
    return undefined;
  }
  const error = findPairError(cert.text, key);
  if (error !== undefined) {
    report([...path, 'key'], error, { rule: 'secret' });
    return undefined;
  }
  const keyFile = textAt(root, [...path, 'key', 'file']);
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
  root: unknown,
  path: FilePath,
  { files, folder }: TlsSources,
  report: ReportDiagnostic,
): Certificates | undefined {
  const written = textAt(root, path);
  if (written === undefined) return undefined;
  const file = resolve(folder, written);
  let bytes: Uint8Array;
  try {
    bytes = files.readFile(file);
  } catch {
    report(path, 'this file cannot be read', { rule: 'unreadable' });
    return undefined;
  }
  const text = bytes.byteLength > MAX_PEM_BYTES ? '' : new TextDecoder().decode(bytes);
  const expiresAtMs = expiryOf(text.match(PEM_CERTIFICATE) ?? []);
  if (expiresAtMs !== undefined) return { file, text, expiresAtMs };
  report(path, 'this file does not hold certificates in PEM');
  return undefined;
}

/** When the first certificate expires; `undefined` if one of them cannot be read. */
function expiryOf(certificates: readonly string[]): number | undefined {
  try {
    const [first] = certificates.map((each) => Date.parse(new X509Certificate(each).validTo));
    return first;
  } catch {
    return undefined;
  }
}

function findPairError(cert: string, key: string): string | undefined {
  try {
    createPrivateKey(key);
  } catch {
    return 'this secret is not a private key in PEM without a passphrase';
  }
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch {
    return 'this private key is not that of the certificate';
  }
}

/**
 * The texts of the upstreams' certificate files by path, for `secretAt`. `keys` are the secrets read
 * before, among them the private keys of the certificates.
 */
export function readTlsFiles(
  root: unknown,
  sources: Pick<SecretSources, 'files' | 'folder'>,
  keys: Secrets,
  report: ReportDiagnostic,
): Secrets {
  const texts = new Map<string, string>();
  for (const upstream of Object.keys(mapAt(root, ['upstreams']))) {
    const at: FilePath = ['upstreams', upstream, 'tls'];
    for (const member of ['ca', 'cert'] as const) {
      const text = readCertificateFile(root, [...at, member], sources, report);
      if (text === undefined) continue;
      texts.set(JSON.stringify([...at, member]), text);
      if (member === 'cert') checkKey(text, secretAt(keys, [...at, 'key']), at, report);
    }
  }
  return texts;
}

function readCertificateFile(
  root: unknown,
  path: FilePath,
  { files, folder }: Pick<SecretSources, 'files' | 'folder'>,
  report: ReportDiagnostic,
): string | undefined {
  const file = textAt(root, path);
  if (file === undefined) return undefined;
  const text = readText(() => files.readFile(resolve(folder, file)));
  if (text === undefined) {
    report(path, 'this file cannot be read as text of a reasonable size', { rule: 'certificate' });
    return undefined;
  }
  const certificates = readCertificates(text);
  if (certificates === undefined) {
    report(path, 'this file holds no certificate in PEM, or one that cannot be read', {
      rule: 'certificate',
    });
    return undefined;
  }
  if (Date.parse(certificates[0].validTo) < Date.now()) {
    report(path, 'this certificate has expired', { rule: 'certificate', severity: 'warning' });
  }
  return text;
}

function readText(read: () => Uint8Array): string | undefined {
  try {
    const bytes = read();
    if (bytes.byteLength > MAX_SECRET_BYTES) return undefined;
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function checkKey(
  text: string,
  key: string | undefined,
  at: FilePath,
  report: ReportDiagnostic,
): void {
  const [certificate] = readCertificates(text) ?? [];
  if (key === undefined || certificate === undefined || isKeyOf(key, certificate)) return;
  report([...at, 'key'], 'this is not the key of the certificate', { rule: 'certificate' });
}
