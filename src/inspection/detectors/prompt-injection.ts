// Finds cues of injected instructions in one text, also through full-width letters, look-alikes, invisible and
// reversed characters and base64. By default a cue is flagged and never removed: it is evidence, not proof. The
// measured rates are in docs/reference/detectors.md.

import { cuesIn } from '../prefilter/anchors.js';
import { decodeEscapes, findEncodedRuns, foldText } from './decoded-text.js';
import { STRUCTURES } from './injection-phrases.js';
import { skeletonOf } from './unicode.js';

const MAX_DEPTH = 2;
const TAG_BASE = 0xe0000;
/** Blank lines that push text out of sight. */
const PUSHED = /(?:\n[ \t]{0,40}){24}[ \t]{0,40}\S/;
/** Text that controls show in reverse. */
export const REVERSED = /\u202e([^\u202c\n]{1,2000})/g;

/** The kinds of cues in a text, sorted and without duplicates. */
export function findInjectionCues(text: string): readonly string[] {
  const kinds = new Set<string>();
  addCues(text, MAX_DEPTH, kinds);
  return [...kinds].sort();
}

function addCues(text: string, depth: number, kinds: Set<string>): void {
  const hidden = hiddenText(text);
  if (hidden !== '') {
    kinds.add('hidden-characters');
    addPlainCues(hidden, kinds);
  }
  if (PUSHED.test(text)) kinds.add('pushed-text');
  for (const match of text.matchAll(REVERSED)) {
    addPlainCues([...(match[1] ?? '')].reverse().join(''), kinds);
  }
  const folded = foldText(text);
  const decoded = decodeEscapes(folded);
  addPlainCues(folded.text, kinds);
  if (decoded !== folded) addPlainCues(decoded.text, kinds);
  if (depth === 0) return;
  for (const run of findEncodedRuns(decoded.text)) addCues(run.decoded, depth - 1, kinds);
}

function addPlainCues(text: string, kinds: Set<string>): void {
  const lower = skeletonOf(text).toLowerCase();
  for (const { kind, pattern } of STRUCTURES) if (pattern.test(lower)) kinds.add(kind);
  const cues = cuesIn(lower);
  if (cues.length === 0) return;
  const normalized = lower.replace(/[^a-z0-9]+/g, ' ');
  for (const { kind, phrase } of cues) if (phrase.test(normalized)) kinds.add(kind);
}

/** ASCII hidden in invisible tag characters or variation selectors (U+E0000 block). */
export function hiddenText(text: string): string {
  if (!text.includes('\udb40')) return '';
  let hidden = '';
  for (const unit of text) {
    const code = unit.codePointAt(0) ?? 0;
    if (code >= TAG_BASE + 0x20 && code <= TAG_BASE + 0x7e) {
      hidden += String.fromCharCode(code - TAG_BASE);
    } else if (code >= 0xe0100 && code <= 0xe01ef) {
      hidden += String.fromCharCode(code - 0xe0100 + 16);
    }
  }
  return hidden.length > 8 ? hidden : '';
}
