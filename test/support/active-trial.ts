// Runs random documents through the content inspection and looks at what a client would make of what is
// let pass. The first pass, the second check and the prefilter are each judged by themselves.

import { neutralize } from '../../src/inspection/detectors/active-content.js';
import { findCode } from '../../src/inspection/detectors/markdown-code.js';
import { sanitizeText } from '../../src/inspection/detectors/text-sanitizer.js';
import { isSurelyClean } from '../../src/inspection/prefilter/prefilter.js';
import { inspectMessage } from '../../src/inspection/responses.js';
import { findRemaining } from '../../src/inspection/second-pass.js';
import type { Json } from '../../src/protocol/jsonrpc.js';

import { textResult, withRules } from '../unit/inspection/samples.js';
import { createRandom, type Random, writeDocument } from './active-documents.js';
import { effectsOfText, RENDERERS, type Renderers } from './markdown-renderers.js';

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
  readonly failures: readonly string[];
};

/** Texts of one result as clients join them. */
export const GLUES = ['', ' ', '\n', '\n\n'] as const;
const MAX_FAILURES = 20;

/** A document goes to one renderer after the other in turn where time is short, else to each of them. */
export type Thoroughness = 'in-turn' | 'each';

/** Writes the texts of one random result. */
export type Write = (random: Random) => readonly string[];

export function tryDocuments(
  seed: number,
  documents: number,
  how: Thoroughness,
  write: Write = writeDocument,
): Trial {
  const random = createRandom(seed);
  const failures: string[] = [];
  const alone: readonly Renderers[] = [...RENDERERS].map((one) => new Map([one]));
  const count = { clean: 0, changed: 0, withhold: 0 };
  for (let done = 0; done < documents && failures.length < MAX_FAILURES; done++) {
    const texts = write(random);
    const renderers = how === 'each' ? RENDERERS : (alone[done % alone.length] ?? RENDERERS);
    count[tryDocument({ random, renderers, failures }, texts)]++;
  }
  return {
    documents,
    passed: count.clean,
    changed: count.changed,
    withheld: count.withhold,
    failures,
  };
}

type Bench = {
  readonly random: Random;
  readonly renderers: Renderers;
  readonly failures: string[];
};

function tryDocument(bench: Bench, texts: readonly string[]): 'clean' | 'changed' | 'withhold' {
  const { random, failures } = bench;
  const message = textResult(...texts);
  const outcome = inspectMessage({ ...message, profile });
  const left = outcome.kind === 'changed' ? textsOf(outcome.value) : texts;
  // A client may show the texts apart, or as one.
  const shown =
    left.length === 1 ? left[0] : random.pick([left[0], ...GLUES.map((glue) => left.join(glue))]);
  if (outcome.kind !== 'withhold') report(bench, 'inspection', texts, shown ?? '');
  for (const text of texts) {
    if (outcome.kind === 'withhold') {
      const alone = sanitizeText(text, profile.result, { name: undefined, reading: 'markdown' });
      report(bench, 'first pass', texts, alone.text);
    }
    if (isSurelyClean(text) && neutralize(text, 'markdown', findCode).text !== text) {
      failures.push(`prefilter: calls clean what is changed: ${asAscii(text)}`);
    }
  }
  if (outcome.kind === 'clean') return outcome.kind;
  // The second check by itself, on what the first pass did not touch.
  const remains = findRemaining({
    text: message.text,
    rules: profile.result,
    approved: new Set(),
    tail: '',
    maxDepth: 64,
  });
  if (remains.length === 0) report(bench, 'second check', texts, texts.join(random.pick(GLUES)));
  return outcome.kind;
}

function report(bench: Bench, by: string, texts: readonly string[], shown: string): void {
  const found = effectsOfText(shown, bench.renderers);
  if (found.length === 0) return;
  bench.failures.push(
    `${by}: ${found.join(', ')}\n  of ${asAscii([...texts])}\n  in ${asAscii(shown)}`,
  );
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
