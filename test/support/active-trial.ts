// Runs random documents through the content inspection and looks at what a client would make of what is
// let pass. The first pass, the second check and the prefilter are each judged by themselves.

import { inspectMessage } from '../../src/inspect/inspect.js';
import { findRemains } from '../../src/inspect/recheck.js';
import { neutralize } from '../../src/inspect/sanitize/active-content.js';
import { findCode } from '../../src/inspect/sanitize/code-regions.js';
import { isSurelyClean } from '../../src/inspect/sanitize/gate.js';
import { sanitizeText } from '../../src/inspect/sanitize/sanitize.js';
import type { Json } from '../../src/mcp/message.js';
import { textResult, withRules } from '../unit/inspect/samples.js';
import { createRandom, type Random, writeDocument } from './active-documents.js';
import { faultsOfText } from './markdown-renderers.js';

/** Nothing but active content is looked for: the rest takes most of the time. */
const profile = withRules({
  secrets: 'off',
  pii: { action: 'off', kinds: [] },
  injection: 'off',
});

export type Trial = {
  readonly documents: number;
  readonly passed: number;
  readonly changed: number;
  readonly withheld: number;
  /** Documents that did something after all: by whom they were let pass, what they did, and what they are. */
  readonly faults: readonly string[];
};

/** Texts of one result as clients join them. */
export const GLUES = ['', ' ', '\n', '\n\n'] as const;
const MAX_FAULTS = 20;

export function tryDocuments(seed: number, documents: number, maxFaults = MAX_FAULTS): Trial {
  const random = createRandom(seed);
  const faults: string[] = [];
  const count = { clean: 0, changed: 0, withhold: 0 };
  for (let done = 0; done < documents && faults.length < maxFaults; done++) {
    const texts = writeDocument(random);
    count[tryDocument(random, texts, faults)]++;
  }
  return {
    documents,
    passed: count.clean,
    changed: count.changed,
    withheld: count.withhold,
    faults,
  };
}

function tryDocument(
  random: Random,
  texts: readonly string[],
  faults: string[],
): 'clean' | 'changed' | 'withhold' {
  const message = textResult(...texts);
  const outcome = inspectMessage({ ...message, profile });
  const left = outcome.kind === 'changed' ? textsOf(outcome.value) : texts;
  // A client may show the texts apart, or as one.
  const shown =
    left.length === 1 ? left[0] : random.pick([left[0], ...GLUES.map((glue) => left.join(glue))]);
  if (outcome.kind !== 'withhold') report('inspection', texts, shown ?? '', faults);
  for (const text of texts) {
    if (outcome.kind === 'withhold') {
      const alone = sanitizeText(text, profile.result, { name: undefined, reading: 'markdown' });
      report('first pass', texts, alone.text, faults);
    }
    if (isSurelyClean(text) && neutralize(text, 'markdown', findCode).text !== text) {
      faults.push(`prefilter: calls clean what is changed: ${asAscii(text)}`);
    }
  }
  if (outcome.kind === 'clean') return outcome.kind;
  // The second check by itself, on what the first pass did not touch.
  const remains = findRemains({
    text: message.text,
    rules: profile.result,
    approved: new Set(),
    tail: '',
    maxDepth: 64,
  });
  if (remains.length === 0) report('second check', texts, texts.join(random.pick(GLUES)), faults);
  return outcome.kind;
}

function report(by: string, texts: readonly string[], shown: string, faults: string[]): void {
  const found = faultsOfText(shown);
  if (found.length === 0) return;
  faults.push(`${by}: ${found.join(', ')}\n  of ${asAscii([...texts])}\n  in ${asAscii(shown)}`);
}

/** As JSON, in ASCII. */
function asAscii(value: Json): string {
  return JSON.stringify(value).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function textsOf(message: Json): readonly string[] {
  const { result } = message as { result: { content: { text: string }[] } };
  return result.content.map(({ text }) => text);
}
