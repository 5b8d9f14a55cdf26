// Reads the secrets that a gateway file refers to, from the environment and from files, and checks their
// form. A secret is never quoted, shortened or described in a diagnostic. docs/contract.md §3: the file
// holds secrets only as {env: NAME} or {file: PATH}, and an empty secret is an error.

import { resolve } from 'node:path';
import type { FilePath, ReportDiagnostic } from './diagnostics.js';
import type { Files } from './files.js';
import { findClientKeyError, findTlsKeyError, readKeyText } from './keys.js';
import { mapAt, textAt, valueAt } from './yaml.js';

export type SecretSources = {
  readonly files: Pick<Files, 'readFile'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the gateway file. */
  readonly folder: string;
};

/** Secrets by their path in the gateway file; see `secretAt`. */
export type Secrets = ReadonlyMap<string, string>;

export const MAX_SECRET_BYTES = 64 * 1024;
export const MIN_BREAK_GLASS_LENGTH = 32;

/** The secret at a path, if one was read. */
export function secretAt(secrets: Secrets, path: FilePath): string | undefined {
  return secrets.get(JSON.stringify(path));
}

/**
 * The secret at a path that must have one.
 *
 * @throws Error if it was not read.
 */
export function requireSecret(secrets: Secrets, path: FilePath): string {
  const secret = secretAt(secrets, path);
  if (secret === undefined) throw new Error('a secret was not read before use');
  return secret;
}

/** Reads every secret of a gateway file and checks its form. Paths without a reference are skipped. */
export function readSecrets(
  root: unknown,
  sources: SecretSources,
  report: ReportDiagnostic,
): Secrets {
  const secrets = new Map<string, string>();
  for (const { path, findError } of secretPaths(root)) {
    const secret = readSecret(root, path, sources, report);
    if (secret === undefined) continue;
    const error = findError(secret);
    if (error !== undefined) {
      report(path, error, { rule: 'secret' });
      continue;
    }
    secrets.set(JSON.stringify(path), secret);
    if (!isLongEnough(path, secret))
      report(path, TOO_SHORT, { rule: 'secret', severity: 'warning' });
  }
  checkKeysDiffer(root, secrets, report);
  return secrets;
}

/** Minimum length of upstream credentials: shorter values are not searched for in what an upstream returns. */
const MIN_RECOGNIZED_CHARS = 12;
const TOO_SHORT = `this secret is shorter than ${MIN_RECOGNIZED_CHARS} characters: it is not recognized where the upstream sends it back`;
const PRESENTED_CREDENTIALS: ReadonlySet<string | number | undefined> = new Set([
  'value',
  'clientSecret',
  'actorToken',
]);

/** In a header value, the authentication scheme is not counted (RFC 9110 §11.4). */
function isLongEnough(path: FilePath, secret: string): boolean {
  const member = path.at(-1);
  if (path[0] !== 'upstreams' || !PRESENTED_CREDENTIALS.has(member)) return true;
  const credential = member === 'value' ? secret.replace(/^[^\s"]+ +/, '') : secret;
  return credential.length >= MIN_RECOGNIZED_CHARS;
}

type SecretPath = {
  readonly path: FilePath;
  readonly findError: (secret: string) => string | undefined;
};

function secretPaths(root: unknown): readonly SecretPath[] {
  const keys = valueAt(root, ['keys']);
  const keyPaths = (Array.isArray(keys) ? keys : []).map(
    (_, index): SecretPath => ({ path: ['keys', index], findError: findKeyError }),
  );
  const upstreamPaths = Object.keys(mapAt(root, ['upstreams'])).flatMap((name): SecretPath[] => [
    ...credentialPaths(['upstreams', name, 'credentials']),
    ...credentialPaths(['upstreams', name, 'pinning', 'credentials']),
    { path: ['upstreams', name, 'tls', 'key'], findError: findTlsKeyError },
  ]);
  const clientPaths = Object.keys(mapAt(root, ['issuers'])).map(
    (name): SecretPath => ({
      path: ['issuers', name, 'introspection', 'clientSecret'],
      findError: findClientSecretError,
    }),
  );
  const token: SecretPath = { path: ['admin', 'breakGlass', 'token'], findError: findTokenError };
  const tlsKeys = ['data', 'ops', 'admin'].map(
    (name): SecretPath => ({ path: ['listeners', name, 'tls', 'key'], findError: () => undefined }),
  );
  const store: SecretPath = { path: ['state', 'url'], findError: findStoreError };
  return [...keyPaths, ...upstreamPaths, ...clientPaths, ...tlsKeys, token, store];
}

/** The paths of the secrets that any type of credentials can have. */
function credentialPaths(path: FilePath): readonly SecretPath[] {
  return [
    { path: [...path, 'value'], findError: findHeaderError },
    { path: [...path, 'clientSecret'], findError: findClientSecretError },
    { path: [...path, 'privateKey'], findError: findClientKeyError },
    { path: [...path, 'actorToken'], findError: findActorTokenError },
  ];
}

function readSecret(
  root: unknown,
  path: FilePath,
  sources: SecretSources,
  report: ReportDiagnostic,
): string | undefined {
  const variable = textAt(root, [...path, 'env']);
  const file = textAt(root, [...path, 'file']);
  if ((variable === undefined) === (file === undefined)) return undefined;
  if (variable !== undefined) {
    const value = Object.hasOwn(sources.env, variable) ? sources.env[variable] : undefined;
    if (value !== undefined && value !== '') return value;
    const state = value === undefined ? 'is not set' : 'is empty';
    report([...path, 'env'], `the environment variable of this secret ${state}`, {
      rule: 'secret',
    });
    return undefined;
  }
  return readSecretFile(resolve(sources.folder, file ?? ''), [...path, 'file'], sources, report);
}

function readSecretFile(
  file: string,
  path: FilePath,
  sources: SecretSources,
  report: ReportDiagnostic,
): string | undefined {
  const refuse = (message: string): undefined => {
    report(path, message, { rule: 'secret' });
    return undefined;
  };
  let bytes: Uint8Array;
  try {
    bytes = sources.files.readFile(file);
  } catch {
    return refuse('the file of this secret cannot be read');
  }
  if (bytes.byteLength > MAX_SECRET_BYTES) return refuse('the file of this secret is too large');
  let secret: string;
  try {
    secret = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    return refuse('the file of this secret is not UTF-8 text');
  }
  return secret.trim() === '' ? refuse('the file of this secret is empty') : secret;
}

function findKeyError(secret: string): string | undefined {
  if (readKeyText(secret) !== undefined) return undefined;
  return 'this secret is not a gateway key: 32 bytes as base64 or hex, or what `sallyport keys new` prints';
}

/** Checks only that the secret is visible ASCII: RFC 8693 §2.1 leaves the form to the token type. */
function findActorTokenError(secret: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(secret) ? undefined : 'this secret cannot be a token';
}

/** RFC 9110 §5.5: visible ASCII with spaces between. */
function findHeaderError(secret: string): string | undefined {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(secret)) return undefined;
  return 'this secret cannot be the value of an HTTP header';
}

/** RFC 6749, appendix A.2. */
function findClientSecretError(secret: string): string | undefined {
  return /^[\x20-\x7e]+$/.test(secret) ? undefined : 'this secret cannot be that of a client';
}

function findTokenError(secret: string): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(secret)) return 'this secret cannot be a bearer token';
  if (secret.length >= MIN_BREAK_GLASS_LENGTH) return undefined;
  return `this secret is shorter than ${MIN_BREAK_GLASS_LENGTH} characters`;
}

function findStoreError(secret: string): string | undefined {
  const url = URL.canParse(secret) ? new URL(secret) : undefined;
  const isStore = url?.protocol === 'redis:' || url?.protocol === 'rediss:';
  if (isStore && url.hostname !== '') return undefined;
  return 'this secret is no redis:// or rediss:// URL with a host';
}

function checkKeysDiffer(root: unknown, secrets: Secrets, report: ReportDiagnostic): void {
  const keys = valueAt(root, ['keys']);
  if (!Array.isArray(keys)) return;
  const seen = new Set<string>();
  keys.forEach((_, index) => {
    const id = readKeyText(secretAt(secrets, ['keys', index]) ?? '')?.id;
    if (id === undefined) return;
    if (seen.has(id)) report(['keys', index], 'this key stands twice', { rule: 'conflict' });
    seen.add(id);
  });
}
