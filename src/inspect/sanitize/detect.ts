// Finds what is to be removed from one text: secrets and personal data as written, as a reader takes them,
// and inside encoded runs, to a stated depth. Answers spans of the text as written; changes nothing.

import type { PiiKind } from '../../config/settings.js';
import { findEncodedRuns } from './encoded.js';
import { formatsIn } from './gate-anchors.js';
import { findOwn, type OwnCredentials } from './own-credentials.js';
import { findPersonal } from './personal.js';
import { findSecrets, type Hit } from './secrets.js';
import { decodeView, foldView, originalSpan, type View } from './view.js';

/** Layers of escapes, percent triplets and references, and of base64 and hex, that are read. */
export const DECODING_DEPTH = 2;

/** What is looked for. */
export type Wanted = {
  readonly secrets: boolean;
  readonly pii: readonly PiiKind[];
  /** Credentials of the gateway itself, whatever else is looked for. */
  readonly own?: OwnCredentials | undefined;
};

/**
 * Spans to be removed, ascending, not overlapping. `name` is the member name that the text stands behind.
 * An encoded run that hides something is one span.
 */
export function findSensitive(text: string, wanted: Wanted, name?: string): readonly Hit[] {
  const hits: Hit[] = [];
  for (const view of viewsOf(text)) {
    for (const hit of findPlain(view.text, wanted, name)) {
      hits.push({ kind: hit.kind, ...originalSpan(view, hit.start, hit.end) });
    }
    for (const run of findEncodedRuns(view.text)) {
      const kind = kindWithin(run.decoded, wanted, DECODING_DEPTH - 1);
      if (kind !== undefined) hits.push({ kind, ...originalSpan(view, run.start, run.end) });
    }
  }
  return hits.length < 2 ? hits : mergeHits(hits);
}

/** The text folded, then with its escapes read once and again; views that add nothing are left out. */
function viewsOf(text: string): readonly View[] {
  const views: View[] = [foldView(text)];
  for (let depth = 0; depth < DECODING_DEPTH; depth++) {
    const last = views.at(-1);
    if (last === undefined) break;
    const next = decodeView(last);
    if (next === last) break;
    views.push(next);
  }
  return views;
}

function findPlain(text: string, wanted: Wanted, name: string | undefined): readonly Hit[] {
  const secrets = wanted.secrets ? findSecrets(text, name, formatsIn(text)) : [];
  if (wanted.own !== undefined) secrets.push(...findOwn(text, wanted.own));
  if (wanted.pii.length === 0) return secrets;
  return secrets.concat(findPersonal(text, wanted.pii, name));
}

function kindWithin(text: string, wanted: Wanted, depth: number): string | undefined {
  for (const view of viewsOf(text)) {
    const [hit] = findPlain(view.text, wanted, undefined);
    if (hit !== undefined) return hit.kind;
    if (depth === 0) continue;
    for (const run of findEncodedRuns(view.text)) {
      const kind = kindWithin(run.decoded, wanted, depth - 1);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

/** Ascending and joined where they overlap; the kind of the first, of equals the longest. */
function mergeHits(hits: Hit[]): readonly Hit[] {
  hits.sort((one, other) => one.start - other.start || other.end - one.end);
  const merged: Hit[] = [];
  for (const hit of hits) {
    const last = merged.at(-1);
    if (last === undefined || hit.start >= last.end) merged.push(hit);
    else if (hit.end > last.end) merged[merged.length - 1] = { ...last, end: hit.end };
  }
  return merged;
}
