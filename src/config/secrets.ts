// Reads the secrets that a gateway file refers to, from the environment and from files, with the TLS certificates
// that belong to its private keys, and checks their form before anything listens: certificates and keys are readable
// and belong together. A secret is never quoted, shortened or described in a diagnostic. Trust in a certificate is
// decided at each connection. docs/reference/start-and-reload.md#form-of-the-files: the file holds secrets only as
// {env: NAME} or {file: PATH}, and an empty secret is an error. RFC 5280, RFC 7468.

import { createPrivateKey, randomBytes, type X509Certificate } from 'node:crypto';
import { isAbsolute, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { cleanForeign, maskSecrets } from '../text/escaping.js';
import { describeReadError, nearestCandidate } from '../text/wording.js';
import type { FilePath, ReportDiagnostic } from './diagnostics.js';
import { decodeUtf8, type Files } from './files.js';
import {
  findClientKeyError,
  findTlsKeyError,
  isKeyOf,
  KEY_BYTES,
  readCertificates,
  readKeyBytes,
  readPublicSignerKey,
  readWebhookSecret,
  writeKeyText,
} from './key-material.js';
import type { ReadContent, SecretReference, SecretUse } from './schema/declarations.js';
import type { GatewayConfig, GatewayFile } from './schema/gateway.js';
import type { LockSigning, TlsSettings } from './settings.js';

export type SecretSources = {
  readonly files: Pick<Files, 'readFile' | 'modeOf'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the gateway file. */
  readonly folder: string;
  /**
   * With `skip` and `leave-out`, only the keys of signers are read, which are no secrets, and nothing is reported of them.
   * With `leave-out` there is something in the place of each secret without which there are no settings.
   */
  readonly secrets: 'read' | 'skip' | 'leave-out';
  /** What is empty is a value too. */
  readonly mayBeEmpty?: true;
};

const MAX_SECRET_BYTES = 64 * 1024;
const MIN_BREAK_GLASS_LENGTH = 32;

export type ReferenceReader = {
  /** What a reference refers to, in its right form; empty if it could not be read, which was reported, or was skipped. */
  readonly read: ReadContent;
  /** The files that were referred to, as absolute paths: a change of one is a change of the configuration. */
  readonly watchedFiles: ReadonlySet<string>;
  /** The variables that were referred to. */
  readonly variables: readonly { readonly path: FilePath; readonly name: string }[];
};

/** Reads what a gateway file refers to: its secrets, and the certificate files of upstreams. */
export function createReferenceReader(sources: SecretSources, report: ReportDiagnostic): ReferenceReader {
  const watchedFiles = new Set<string>();
  const variables: { readonly path: FilePath; readonly name: string }[] = [];
  const isSkipped = sources.secrets !== 'read';
  const say: ReportDiagnostic = isSkipped ? () => undefined : report;
  return {
    watchedFiles,
    variables,
    read(path, meaning, reference) {
      const { env, file } =
        meaning === 'file-content' ? { file: String(reference) } : partsOf(reference as SecretReference);
      if (env !== undefined) variables.push({ path, name: env });
      if (file !== undefined) watchedFiles.add(resolve(sources.folder, file));
      if (isSkipped && meaning !== 'signer-key') return standInFor(meaning, sources);
      if (meaning === 'file-content') return readCertificateFile(String(reference), path, sources, say);
      return readSecret(reference as SecretReference, meaning, path, sources, say);
    },
  };
}

/** Opens nothing: the key is another one each time, and the host does not exist (RFC 6761 §6.4). */
function standInFor(meaning: Parameters<ReadContent>[1], { secrets }: Pick<SecretSources, 'secrets'>): string {
  if (secrets === 'skip') return '';
  switch (meaning) {
    case 'gateway-key':
      return writeKeyText(randomBytes(KEY_BYTES));
    case 'webhook-url':
      return 'https://unread.invalid/';
    default:
      return '';
  }
}

/** The text that a reference outside of a gateway file refers to, such as the value of a variable that a program gets. */
export function readReferredText(
  reference: SecretReference,
  sources: Pick<SecretSources, 'files' | 'env' | 'folder'>,
): { readonly value: string } | { readonly error: string } {
  let error = 'it cannot be read';
  const report: ReportDiagnostic = (_path, message, _rule, { severity = 'error' } = {}) => {
    if (severity === 'error') error = message;
  };
  const value = readReference(reference, [], { ...sources, secrets: 'read', mayBeEmpty: true }, report, false);
  return value === undefined ? { error } : { value };
}

/** The two forms of a reference. */
function partsOf(reference: SecretReference): { readonly env?: string; readonly file?: string } {
  return reference;
}

/** Reads a secret and checks its form. */
function readSecret(
  reference: SecretReference,
  use: SecretUse,
  path: FilePath,
  sources: SecretSources,
  report: ReportDiagnostic,
): string {
  const secret = readReference(reference, path, sources, report, use === 'signer-key') ?? '';
  const error = secret === '' ? undefined : FIND_ERROR[use](secret);
  if (error !== undefined) {
    report(path, `${describeSource(reference)} ${error}`, 'secret');
    return '';
  }
  if (secret !== '' && path[0] === 'upstreams' && !isLongEnough(use, secret)) {
    report(path, `${describeSource(reference)} ${TOO_SHORT}`, 'secret', { severity: 'warning' });
  }
  return secret;
}

/** Minimum length of upstream credentials: shorter values are not searched for in what an upstream returns. */
const MIN_RECOGNIZED_CHARS = 12;
const TOO_SHORT = `holds a secret shorter than ${MIN_RECOGNIZED_CHARS} characters, which is not recognized where the upstream sends it back`;
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
  'signer-key': findSignerKeyError,
  'store-url': findStoreError,
  'webhook-url': findWebhookError,
  'webhook-secret': findWebhookSecretError,
};

function readReference(
  reference: SecretReference,
  path: FilePath,
  sources: SecretSources,
  report: ReportDiagnostic,
  isPublic: boolean,
): string | undefined {
  if ('file' in reference) return readSecretFile(reference.file, [...path, 'file'], sources, report, isPublic);
  const { env } = reference;
  const value = Object.hasOwn(sources.env, env) ? withoutLineEnd(sources.env[env]) : undefined;
  if (value !== undefined && (value !== '' || sources.mayBeEmpty === true)) return value;
  const state = value === undefined ? 'is not set' : 'is empty';
  const suggestion = value === undefined ? nearestCandidate(env, namesOf(sources.env)) : undefined;
  report([...path, 'env'], `${describeSource(reference)} ${state}`, 'secret', { suggestion });
  return undefined;
}

/** Without the line end behind it, which programs write that print a secret into a file or a variable. */
function withoutLineEnd<Text extends string | undefined>(text: Text): string | Text {
  return text?.replace(/\r?\n$/, '') ?? text;
}

/** The variables that are set. */
function namesOf(env: SecretSources['env']): readonly string[] {
  return Object.keys(env).filter((name) => env[name] !== undefined);
}

/** `the environment variable "NAME"` or `the file "PATH"`, as a reference names it. */
function describeSource(reference: SecretReference): string {
  return 'env' in reference ? `the environment variable ${quoteName(reference.env)}` : describeFile(reference.file);
}

/** `the file "PATH"`, as it is written. */
export function describeFile(file: string): string {
  return `the file ${quoteName(file)}`;
}

/** Why a file could not be read, for one that may be named relative to the file of the configuration. */
function describeUnreadable(file: string, error: unknown): string {
  const why = describeReadError(error);
  const isRelative = why.startsWith('does not exist') && !isAbsolute(file);
  return `${describeFile(file)} ${why}${isRelative ? ' (its path is relative to the file that names it)' : ''}`;
}

const MAX_QUOTED_NAME = 256;

/** A name as written; a secret in its place is masked where it can be recognized. */
function quoteName(name: string): string {
  return `"${cleanForeign(name, maskSecrets, MAX_QUOTED_NAME)}"`;
}

const READABLE_BY_ALL = 0o004;

function readSecretFile(
  file: string,
  path: FilePath,
  sources: SecretSources,
  report: ReportDiagnostic,
  isPublic: boolean,
): string | undefined {
  const refuse = (message: string): undefined => {
    report(path, message, 'secret');
    return undefined;
  };
  const absolute = resolve(sources.folder, file);
  let bytes: Uint8Array;
  let mode: number | undefined;
  try {
    bytes = sources.files.readFile(absolute);
    mode = sources.files.modeOf?.(absolute);
  } catch (error) {
    return refuse(describeUnreadable(file, error));
  }
  const subject = describeFile(file);
  if (bytes.byteLength > MAX_SECRET_BYTES) {
    return refuse(`${subject} is larger than ${MAX_SECRET_BYTES} bytes, too large for a secret`);
  }
  const secret = withoutLineEnd(decodeUtf8(bytes));
  if (secret === undefined) return refuse(`${subject} is not UTF-8 text`);
  // Its group may be there for the gateway, as where Kubernetes mounts a secret.
  if (!isPublic && mode !== undefined && (mode & READABLE_BY_ALL) !== 0) {
    const message = `${subject} holds a secret that every user of this machine can read; run chmod 600 on it`;
    report(path, message, 'secret', { severity: 'note' });
  }
  return secret.trim() === '' && sources.mayBeEmpty !== true ? refuse(`${subject} is empty`) : secret;
}

function findKeyError(secret: string): string | undefined {
  if (readKeyBytes(secret) !== undefined) return undefined;
  return 'holds no gateway key: expected 32 bytes as base64 or hex, or what `sallyport keys new` prints';
}

function findSignerKeyError(text: string): string | undefined {
  const reading = readPublicSignerKey(text);
  return reading.ok ? undefined : reading.why;
}

/** Whose signatures lock files need; `incomplete` if the key of a signer could not be read. */
export function signingOf({ pins }: Pick<GatewayConfig, 'pins'>): LockSigning | 'incomplete' | undefined {
  if (pins?.signers === undefined) return undefined;
  const names = Object.entries(pins.signers);
  const signers = names.flatMap(([name, { publicKey }]) => {
    const reading = readPublicSignerKey(publicKey);
    return reading.ok ? { name, ...reading.key } : [];
  });
  if (signers.length < names.length) return 'incomplete';
  return { signers, require: pins.require ?? 1 };
}

/** Checks only that the secret is visible ASCII: RFC 8693 §2.1 leaves the form to the token type. */
function findActorTokenError(secret: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(secret) ? undefined : 'holds no token: expected visible ASCII characters without spaces';
}

/** RFC 9110 §5.5: visible ASCII with spaces between. */
function findHeaderError(secret: string): string | undefined {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(secret)) return undefined;
  return 'holds no value of an HTTP header: expected one line of visible ASCII characters';
}

/** RFC 6749, appendix A.2. */
function findClientSecretError(secret: string): string | undefined {
  return /^[\x20-\x7e]+$/.test(secret)
    ? undefined
    : 'holds no client secret: expected one line of visible ASCII characters';
}

function findTokenError(secret: string): string | undefined {
  if (!/^[\x21-\x7e]+$/.test(secret)) return 'holds no bearer token: expected visible ASCII characters without spaces';
  if (secret.length >= MIN_BREAK_GLASS_LENGTH) return undefined;
  return `holds a secret shorter than ${MIN_BREAK_GLASS_LENGTH} characters; use a longer one`;
}

function findStoreError(secret: string): string | undefined {
  const url = URL.canParse(secret) ? new URL(secret) : undefined;
  const isStore = url?.protocol === 'redis:' || url?.protocol === 'rediss:';
  if (isStore && url.hostname !== '') return undefined;
  return 'holds no redis:// or rediss:// URL with a host';
}

function findWebhookError(secret: string): string | undefined {
  const url = URL.canParse(secret) ? new URL(secret) : undefined;
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (!isWeb || url.username !== '' || url.password !== '' || secret.includes('#'))
    return 'holds no URL that begins with https:// or http://, without user name, password and fragment';
  return undefined;
}

function findWebhookSecretError(secret: string): string | undefined {
  if (readWebhookSecret(secret) !== undefined) return undefined;
  return 'holds no key of 24 to 64 bytes as base64; `openssl rand -base64 32` makes one';
}

/** Signatures are counted by key, so that nobody signs twice under two names. */
export function checkSigners(gateway: GatewayConfig, report: ReportDiagnostic): void {
  const signing = signingOf(gateway);
  if (signing === undefined || signing === 'incomplete') return;
  const { signers, require } = signing;
  const firstOf = new Map<string, string>();
  for (const { name, keyId } of signers) {
    const first = firstOf.get(keyId);
    if (first === undefined) firstOf.set(keyId, name);
    else {
      const message = `this key is that of "${first}": its signature counts once`;
      report(['pins', 'signers', name], message, 'conflict', { severity: 'warning' });
    }
  }
  if (require <= firstOf.size) return;
  const message = `${require} signers are required, but there are only ${firstOf.size} different keys`;
  report(['pins', 'require'], message, 'conflict');
}

/** Checks that each gateway key is another one. `written` has the references to them. */
export function checkKeysDiffer(
  { keys = [] }: GatewayConfig,
  { keys: written = [] }: GatewayFile,
  report: ReportDiagnostic,
): void {
  const seen = new Set<string>();
  for (const [index, reference] of written.entries()) {
    const bytes = readKeyBytes(keys[index] ?? '');
    const id = bytes && Buffer.from(bytes).toString('hex');
    if (id !== undefined && seen.has(id)) {
      const message = `${describeSource(reference)} holds the same key as an earlier entry; remove one of the two`;
      report(['keys', index], message, 'conflict');
    }
    if (id !== undefined) seen.add(id);
  }
}

const LISTENER_NAMES = ['data', 'ops', 'admin'] as const;
type ListenerName = (typeof LISTENER_NAMES)[number];

/** TLS settings of the listeners that use TLS. */
export type ListenerTls = { readonly [Name in ListenerName]?: TlsSettings };

type TlsSources = Pick<SecretSources, 'folder' | 'files' | 'secrets'>;

const MAX_PEM_BYTES = 256 * 1024;

/** Reads and checks the TLS files of every listener that uses TLS. `written` has the references to their keys. */
export function readListenerTls(
  { listeners }: GatewayConfig,
  { listeners: written }: GatewayFile,
  sources: TlsSources,
  report: ReportDiagnostic,
): ListenerTls {
  const found: { -readonly [Name in ListenerName]?: TlsSettings } = {};
  for (const name of LISTENER_NAMES) {
    const { tls } = listeners[name];
    const key = written[name].tls?.key;
    if (tls === undefined || key === undefined) continue;
    const path = ['listeners', name, 'tls'];
    const settings = sources.secrets === 'read' ? readTls(tls, key, path, sources, report) : readShownTls(tls, sources);
    if (settings !== undefined) found[name] = settings;
  }
  return found;
}

function readTls(
  tls: NonNullable<GatewayConfig['listeners']['data']['tls']>,
  reference: SecretReference,
  path: FilePath,
  sources: TlsSources,
  report: ReportDiagnostic,
): TlsSettings | undefined {
  const read = (member: 'cert' | 'clientCa') =>
    readListenerCertificates(tls[member], [...path, member], sources, report);
  const cert = read('cert');
  const clientCa = read('clientCa');
  const lacksAuthorities = tls.clientCa !== undefined && clientCa === undefined;
  if (cert === undefined || tls.key === '' || lacksAuthorities) return undefined;
  const error = findPairError(cert.text, tls.key);
  if (error !== undefined) {
    report([...path, 'key'], `${describeSource(reference)} ${error}`, 'secret');
    return undefined;
  }
  const { file: keyFile } = partsOf(reference);
  const watched = [cert.file, clientCa?.file, keyFile && resolve(sources.folder, keyFile)];
  return {
    cert: cert.text,
    key: tls.key,
    clientCa: clientCa?.text,
    expiresAtMs: cert.expiresAtMs,
    files: watched.filter((file) => file !== undefined),
  };
}

/** TLS without its key, and without the certificate where that is not here: then it counts as valid. */
function readShownTls({ cert }: { readonly cert: string }, sources: TlsSources): TlsSettings {
  const read = readListenerCertificates(cert, [], sources, () => undefined);
  const { text = '', expiresAtMs = Number.POSITIVE_INFINITY } = read ?? {};
  return { cert: text, key: '', clientCa: undefined, expiresAtMs, files: [] };
}

type Certificates = { readonly file: string; readonly text: string; readonly expiresAtMs: number };

/** One PEM file with one or more certificates, the first of which is the listener's own. */
function readListenerCertificates(
  written: string | undefined,
  path: FilePath,
  { files, folder }: TlsSources,
  report: ReportDiagnostic,
): Certificates | undefined {
  if (written === undefined) return undefined;
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
  if (certificate !== undefined) return { file, text, expiresAtMs: Date.parse(certificate.validTo) };
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

/** Checks that the private key of each upstream is that of its certificate. */
export function checkClientCertificates({ upstreams }: GatewayConfig, report: ReportDiagnostic): void {
  for (const [name, { tls }] of Object.entries(upstreams)) {
    const [certificate] = readCertificates(tls.cert ?? '') ?? [];
    if (certificate === undefined || !tls.key || isKeyOf(tls.key, certificate)) continue;
    report(['upstreams', name, 'tls', 'key'], 'this is not the private key of the certificate', 'certificate');
  }
}

/** The text of a certificate file; empty if it holds no certificate, which is reported. */
function readCertificateFile(file: string, path: FilePath, sources: SecretSources, report: ReportDiagnostic): string {
  const read = readTextFile(file, () => sources.files.readFile(resolve(sources.folder, file)));
  const certificate = checkCertificate(file, read, path, report);
  return 'text' in read && certificate !== undefined ? read.text : '';
}

/** The first certificate of a file's text. */
function checkCertificate(
  file: string,
  read: FileReading,
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

type FileReading = { readonly text: string } | { readonly why: string };

function readTextFile(file: string, read: () => Uint8Array): FileReading {
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
