// The marks that stand in place of what was redacted: `[redacted:npm-token#k3f9]`. The tag is derived from the key of
// the gateway and from the kind, so that every replica recognizes the marks of all without keeping anything, and the
// words alone, in documentation or in a log, are no mark.

import { createHmac } from 'node:crypto';
import { SECRET_FORMATS } from './detectors/secret-formats.js';

/**
 * Keys that tags are derived from, as text. The first one writes; all of them recognize, so that marks outlive the
 * rotation of the gateway's key. Plain data, which threads can share.
 */
export type MarkKeys = readonly [string, ...string[]];

/** Kinds that no format of a secret has. */
const OTHER_KINDS = [
  'secret',
  'upstream-credential',
  'card',
  'iban',
  'ssn',
  'sensitive',
  'signed-link',
  'address-user',
] as const;

const KINDS: ReadonlySet<string> = new Set([...SECRET_FORMATS.map(({ kind }) => kind), ...OTHER_KINDS]);

/** RFC 4648 §6, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const TAG_CHARS = 4;

/** The text that every mark contains. */
export const MARK_START = '[redacted:';
/** A mark, with or without a tag. */
export const MARK = /\[redacted:([a-z0-9-]{1,40})(?:#([a-z2-7]{4}))?\]/g;

/** The replacement for redacted content of a kind. Without keys, as in the audit log, it has no tag. */
export function redactionMark(kind: string, keys?: MarkKeys): string {
  return keys === undefined ? `[redacted:${kind}]` : `[redacted:${kind}#${tagOf(kind, keys[0])}]`;
}

/** How many marks of this gateway a text contains. */
export function countMarks(text: string, keys: MarkKeys): number {
  if (!text.includes(MARK_START)) return 0;
  let count = 0;
  for (const [, kind = '', tag] of text.matchAll(MARK)) {
    if (tag !== undefined && KINDS.has(kind) && keys.some((key) => tagOf(kind, key) === tag)) {
      count++;
    }
  }
  return count;
}

/** Tags by key and kind. There are as many as the gateway has keys and formats. */
const tags = new Map<string, Map<string, string>>();

function tagOf(kind: string, key: string): string {
  let ofKey = tags.get(key);
  if (ofKey === undefined) {
    ofKey = new Map();
    tags.set(key, ofKey);
  }
  let tag = ofKey.get(kind);
  if (tag === undefined) {
    tag = computeTag(kind, key);
    if (KINDS.has(kind)) ofKey.set(kind, tag);
  }
  return tag;
}

function computeTag(kind: string, key: string): string {
  const digest = createHmac('sha256', key).update(kind).digest();
  let tag = '';
  for (const byte of digest.subarray(0, TAG_CHARS)) tag += BASE32[byte & 0x1f];
  return tag;
}
