// Reads the certificates that upstreams' connections are made with, and judges them: readable, and the key
// that of the certificate. What they are trusted for is decided at each connection.
// Contract §3 (`tls`); RFC 5280, RFC 7468.

import { resolve } from 'node:path';
import type { FilePath, Report } from './fault.js';
import { isKeyOf, readCertificates } from './private-keys.js';
import { MAX_SECRET_BYTES, type SecretSources, type Secrets, secretAt } from './secrets.js';
import { mapAt, textAt } from './tree.js';

/**
 * The texts of certificate files by place, as `secretAt` finds them. `keys` are the secrets that were
 * read: among them the keys of the certificates.
 */
export function readTlsFiles(
  root: unknown,
  sources: Pick<SecretSources, 'files' | 'folder'>,
  keys: Secrets,
  report: Report,
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
  report: Report,
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

function checkKey(text: string, key: string | undefined, at: FilePath, report: Report): void {
  const [certificate] = readCertificates(text) ?? [];
  if (key === undefined || certificate === undefined || isKeyOf(key, certificate)) return;
  report([...at, 'key'], 'this is not the key of the certificate', { rule: 'certificate' });
}
