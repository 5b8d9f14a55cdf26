// Signed lock files: a DSSE envelope around an in-toto statement about the bytes of one lock file. Signatures are
// verified over the bytes of the payload before the payload is read, key ids are hints that decide nothing, and a key
// counts once however often it signed. Which counters were seen before is checked in gateway/lock-counters.ts.
// docs/reference/lock-files.md#signatures; DSSE 1.0.2; in-toto attestation framework, Statement v1.

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { LockSigner, LockSigning } from '../config/settings.js';
import { readJson, readJsonText } from '../protocol/json/json.js';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import { sha256Hex } from './digest.js';
import { LOCK_SUFFIX } from './lock.js';

export const SIGNATURE_SUFFIX = '.lock.sig.json';
const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PREDICATE_TYPE = 'urn:sallyport:predicate:lock:1';

/** Larger envelopes are refused unread, in UTF-16 units. */
const MAX_ENVELOPE_LENGTH = 64 * 1024;
/** Bounds the verifications that one file can cause. */
const MAX_SIGNATURES = 16;
/** Far above any number of reviews, and low enough that nobody can use up the counters with one signature. */
export const MAX_COUNTER = 999_999_999;

type Signature = { readonly keyId: string | undefined; readonly bytes: Uint8Array };

/** The payload as the bytes that were signed. */
export type Envelope = { readonly payload: Uint8Array; readonly signatures: readonly Signature[] };

/** What a signature says of a lock file. */
export type LockStatement = {
  /** Name of the file, without its folder. */
  readonly file: string;
  /** Of its bytes, lower-case hex. */
  readonly sha256: string;
  readonly upstream: string;
  readonly counter: number;
  /** RFC 3339. */
  readonly signedAt: string;
  readonly signer: string | undefined;
};

type Reading<Value> = { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly why: string };

function failed(why: string): { readonly ok: false; readonly why: string } {
  return { ok: false, why };
}

/** The file that holds the signatures of a lock file, given the name or the path of either. */
export function signatureFileOf(lockFile: string): string {
  return lockFile.slice(0, -LOCK_SUFFIX.length) + SIGNATURE_SUFFIX;
}

/** Reads an envelope, or says what is wrong with it as the predicate of a sentence. Trusts nothing in it. */
export function readEnvelope(text: string): Reading<Envelope> {
  if (text.length > MAX_ENVELOPE_LENGTH) return failed('is too large for an envelope');
  const reading = readJsonText(text);
  if (!reading.ok) return failed(`cannot be read as JSON (${reading.error})`);
  const root = reading.value;
  if (!isObject(root)) return failed('is no envelope');
  if (root['payloadType'] !== PAYLOAD_TYPE) return failed(`has no payload of type ${PAYLOAD_TYPE}`);
  const payload = decodeBase64(root['payload']);
  if (payload === undefined) return failed('has no payload in base64');
  const listed = root['signatures'];
  if (!Array.isArray(listed) || listed.length === 0) return failed('has no signatures');
  if (listed.length > MAX_SIGNATURES) return failed(`has more than ${MAX_SIGNATURES} signatures`);
  const signatures = (listed as readonly Json[]).flatMap((one) => readSignature(one) ?? []);
  if (signatures.length < listed.length) return failed('has a signature that cannot be read');
  return { ok: true, value: { payload, signatures } };
}

function readSignature(value: Json): Signature | undefined {
  if (!isObject(value)) return undefined;
  const bytes = decodeBase64(value['sig']);
  const keyId = value['keyid'] ?? undefined;
  if (bytes === undefined || !(keyId === undefined || typeof keyId === 'string')) return undefined;
  return { keyId, bytes };
}

/** Either alphabet is allowed (DSSE, "Encoding"), but one text only for the same bytes. */
export function decodeBase64(value: Json | undefined): Uint8Array | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  const bytes = Buffer.from(value, 'base64');
  const isCanonical = bytes.toString('base64') === value || bytes.toString('base64url') === value;
  return isCanonical ? new Uint8Array(bytes) : undefined;
}

/** Reads the statement in a payload. Members that it need not have are ignored (in-toto, "Parsing rules"). */
export function readStatement(payload: Uint8Array): Reading<LockStatement> {
  const reading = readJson(payload);
  if (!reading.ok) return failed(`has a payload that cannot be read as JSON (${reading.error})`);
  const statement = asObject(reading.value);
  if (statement['_type'] !== STATEMENT_TYPE) return failed('has a payload that is no statement');
  if (statement['predicateType'] !== PREDICATE_TYPE) {
    return failed(`has a statement of another type than ${PREDICATE_TYPE}`);
  }
  const subjects = statement['subject'];
  if (!Array.isArray(subjects) || subjects.length !== 1) {
    return failed('has a statement that is not about one file');
  }
  const subject = asObject(subjects[0]);
  const predicate = asObject(statement['predicate']);
  const [file, sha256] = [subject['name'], asObject(subject['digest'])['sha256']];
  const { upstream, counter, signedAt, signer } = predicate;
  if (typeof file !== 'string' || typeof sha256 !== 'string' || typeof upstream !== 'string') {
    return failed('has a statement without name, digest or upstream');
  }
  if (!isCounter(counter)) return failed('has a statement without a counter');
  if (typeof signedAt !== 'string' || Number.isNaN(Date.parse(signedAt))) {
    return failed('has a statement without the time of its signature');
  }
  if (signer !== undefined && typeof signer !== 'string') {
    return failed('has a statement whose signer is not text');
  }
  return { ok: true, value: { file, sha256, upstream, counter, signedAt, signer } };
}

function asObject(value: Json | undefined): { readonly [member: string]: Json | undefined } {
  return isObject(value) ? value : {};
}

/** Whether a value is a counter of a lock file. */
export function isCounter(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_COUNTER;
}

/** The bytes that are signed (DSSE, "Signature definition": PAE). */
export function preAuthEncoding(payload: Uint8Array): Uint8Array {
  const type = Buffer.from(PAYLOAD_TYPE, 'utf8');
  const head = `DSSEv1 ${type.byteLength} ${PAYLOAD_TYPE} ${payload.byteLength} `;
  return new Uint8Array(Buffer.concat([Buffer.from(head, 'utf8'), payload]));
}

/** A payload for a new statement. */
export function writePayload(statement: LockStatement): Uint8Array {
  const { file, sha256, upstream, counter, signedAt, signer } = statement;
  const predicate = { upstream, counter, signedAt, ...(signer === undefined ? {} : { signer }) };
  const subject = [{ name: file, digest: { sha256 } }];
  const text = JSON.stringify({
    ...{ _type: STATEMENT_TYPE, subject, predicateType: PREDICATE_TYPE, predicate },
  });
  return new TextEncoder().encode(text);
}

/** The text of a signature file. */
export function writeEnvelope({ payload, signatures }: Envelope): string {
  const envelope = {
    payloadType: PAYLOAD_TYPE,
    payload: Buffer.from(payload).toString('base64'),
    signatures: signatures.map(({ keyId, bytes }) => ({
      ...(keyId === undefined ? {} : { keyid: keyId }),
      sig: Buffer.from(bytes).toString('base64'),
    })),
  };
  return `${JSON.stringify(envelope, null, 2)}\n`;
}

/** The digest that belongs to a key: none is chosen for Ed25519 (RFC 8032), one by the curve for ECDSA. */
export function digestOfKey(key: KeyObject): 'sha256' | 'sha384' | null {
  if (key.asymmetricKeyType === 'ed25519') return null;
  return key.asymmetricKeyDetails?.namedCurve === 'secp384r1' ? 'sha384' : 'sha256';
}

/** Whether a signature is valid. One of ECDSA may be DER, as most programs write it, or raw (IEEE P1363). */
export function isSignatureOf(
  { publicKey }: Pick<LockSigner, 'publicKey'>,
  bytes: Uint8Array,
  signature: Uint8Array,
): boolean {
  const key = createPublicKey(publicKey);
  const digest = digestOfKey(key);
  if (digest === null) return verify(null, bytes, key, signature);
  return (['der', 'ieee-p1363'] as const).some((dsaEncoding) => verify(digest, bytes, { key, dsaEncoding }, signature));
}

/** The signers whose key signed the envelope, each key once, by the first of its names. */
export function signersOf(envelope: Envelope, signers: readonly LockSigner[]): readonly LockSigner[] {
  const bytes = preAuthEncoding(envelope.payload);
  return signers.filter(
    (signer, index) =>
      signers.findIndex(({ keyId }) => keyId === signer.keyId) === index &&
      envelope.signatures.some((signature) => isSignatureOf(signer, bytes, signature.bytes)),
  );
}

/** A lock file as it was read. `file` is its name without the folder. */
export type LockText = { readonly file: string; readonly upstream: string; readonly text: string };

/** Why a statement is not about this file; `undefined` if it is. */
export function findMismatch(statement: LockStatement, { file, upstream, text }: LockText): string | undefined {
  if (statement.file !== file || statement.upstream !== upstream) {
    const other = JSON.stringify(`${statement.file} (${statement.upstream})`);
    return `is signed as another file: the signatures are for ${other}`;
  }
  // The text was decoded without loss, so its UTF-8 form has the bytes of the file.
  return statement.sha256 === sha256Hex(text)
    ? undefined
    : 'is not what was signed: it was changed after its signatures were made';
}

export type SignatureCheck =
  | { readonly ok: true; readonly statement: LockStatement; readonly signers: readonly string[] }
  | { readonly ok: false; readonly why: string };

/**
 * Checks the signatures of a lock file, or says why they are not sufficient, as the predicate of a sentence about it.
 * @param envelopeText the text of its signature file; `undefined` if there is none.
 */
export function checkSignatures(
  lock: LockText,
  envelopeText: string | undefined,
  { signers, require }: LockSigning,
): SignatureCheck {
  const name = signatureFileOf(lock.file);
  if (envelopeText === undefined) return failed(`is not signed: ${name} does not exist`);
  const envelope = readEnvelope(envelopeText);
  if (!envelope.ok) return failed(`is not signed: ${name} ${envelope.why}`);
  const valid = signersOf(envelope.value, signers).map((signer) => signer.name);
  if (valid.length < require) {
    const found =
      valid.length === 0
        ? 'no valid signature of a configured signer'
        : `valid signatures of ${valid.length} (${valid.join(', ')})`;
    return failed(`is not signed by enough signers: ${name} has ${found}, and ${require} must sign`);
  }
  const statement = readStatement(envelope.value.payload);
  if (!statement.ok) return failed(`is not signed: ${name} ${statement.why}`);
  const why = findMismatch(statement.value, lock);
  return why === undefined ? { ok: true, statement: statement.value, signers: valid } : failed(why);
}
