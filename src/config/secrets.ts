// Reads the secrets that a gateway file refers to, from the environment and from files, and checks their
// form. A secret is never quoted, shortened or described in a diagnostic. docs/contract.md §3: the file
// holds secrets only as {env: NAME} or {file: PATH}, and an empty secret is an error.

import { resolve } from 'node:path';
import type { FilePath, ReportDiagnostic } from './diagnostics.js';
import { decodeUtf8, type Files } from './files.js';
import { findClientKeyError, findTlsKeyError, readKeyText } from './keys.js';
import type { Meaning, SecretReference, SecretUse } from './schema/definitions.js';
import { GATEWAY_SCHEMA, type ReadableGateway } from './schema/gateway.js';
import { findMeanings } from './schema/meanings.js';
import type { Readable } from './schema/readable.js';

export type SecretSources = {
  readonly files: Pick<Files, 'readFile'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the gateway file. */
  readonly folder: string;
};

/** Secrets by their path in the gateway file; see `secretAt`. */
export type Secrets = ReadonlyMap<string, string>;

export const MAX_SECRET_BYTES = 64 * 1024;
const MIN_BREAK_GLASS_LENGTH = 32;

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
  gateway: ReadableGateway,
  sources: SecretSources,
  report: ReportDiagnostic,
): Secrets {
  const secrets = new Map<string, string>();
  for (const { path, meaning, value } of findMeanings(GATEWAY_SCHEMA, gateway)) {
    if (!isSecretUse(meaning)) continue;
    const secret = readSecret(value, path, sources, report);
    if (secret === undefined) continue;
    const error = FIND_ERROR[meaning](secret);
    if (error !== undefined) {
      report(path, error, 'secret');
      continue;
    }
    secrets.set(JSON.stringify(path), secret);
    if (path[0] === 'upstreams' && !isLongEnough(meaning, secret)) {
      report(path, TOO_SHORT, 'secret', { severity: 'warning' });
    }
  }
  checkKeysDiffer(gateway, secrets, report);
  return secrets;
}

/** Minimum length of upstream credentials: shorter values are not searched for in what an upstream returns. */
const MIN_RECOGNIZED_CHARS = 12;
const TOO_SHORT = `this secret is shorter than ${MIN_RECOGNIZED_CHARS} characters: it is not recognized where the upstream sends it back`;
const PRESENTED: ReadonlySet<string> = new Set(['header-value', 'client-secret', 'actor-token']);

/** In a header value, the authentication scheme is not counted (RFC 9110 §11.4). */
function isLongEnough(use: SecretUse, secret: string): boolean {
  const credential = use === 'header-value' ? secret.replace(/^[^\s"]+ +/, '') : secret;
  return credential.length >= MIN_RECOGNIZED_CHARS || !PRESENTED.has(use);
}

/** Why a secret cannot be used as what it is for; `undefined` if it can. */
const FIND_ERROR: Readonly<Record<SecretUse, (secret: string) => string | undefined>> = {
  'gateway-key': findKeyError,
  'listener-key': () => undefined,
  'tls-key': findTlsKeyError,
  'client-key': findClientKeyError,
  'client-secret': findClientSecretError,
  'header-value': findHeaderError,
  'actor-token': findActorTokenError,
  'break-glass-token': findTokenError,
  'store-url': findStoreError,
};

function isSecretUse(meaning: Meaning): meaning is SecretUse {
  return Object.hasOwn(FIND_ERROR, meaning);
}

function readSecret(
  reference: unknown,
  path: FilePath,
  sources: SecretSources,
  report: ReportDiagnostic,
): string | undefined {
  const { env, file } = reference as Readable<SecretReference>;
  if (!env === !file) return undefined;
  if (env) {
    const value = Object.hasOwn(sources.env, env) ? sources.env[env] : undefined;
    if (value !== undefined && value !== '') return value;
    const state = value === undefined ? 'is not set' : 'is empty';
    report([...path, 'env'], `the environment variable of this secret ${state}`, 'secret');
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
    report(path, message, 'secret');
    return undefined;
  };
  let bytes: Uint8Array;
  try {
    bytes = sources.files.readFile(file);
  } catch {
    return refuse('the file of this secret cannot be read');
  }
  if (bytes.byteLength > MAX_SECRET_BYTES) return refuse('the file of this secret is too large');
  const secret = decodeUtf8(bytes)?.replace(/\r?\n$/, '');
  if (secret === undefined) return refuse('the file of this secret is not UTF-8 text');
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

function checkKeysDiffer(
  { keys = [] }: ReadableGateway,
  secrets: Secrets,
  report: ReportDiagnostic,
): void {
  const seen = new Set<string>();
  for (const index of keys.keys()) {
    const id = readKeyText(secretAt(secrets, ['keys', index]) ?? '')?.id;
    if (id === undefined) continue;
    if (seen.has(id)) report(['keys', index], 'this key stands twice', 'conflict');
    seen.add(id);
  }
}
