// Finds orders where a protocol has names and values: in titles, enums, defaults, comments and annotations, which say
// what something is called or which values it takes. Whatever they demand, nothing else belongs there.

import { isFramed, type Match } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

/** Where a name or a value belongs. */
export const PLACES =
  /\/(?:title|\$comment|const|default|enum\/\d+|examples\/\d+|annotations\/[^/]+)$/;
const MIN_TOKENS = 6;
const { answer, call, carry, change, consent, disclose, execute, human, model, must } = CLASS;
const { negation, order, every, override, read, rule, tool } = CLASS;
const ACTION = read | carry | call | disclose | override | consent | execute | change;
const BINDING = must | negation | order | every | override;
const ADDRESSED = model | human | tool | rule | answer;

/** What is demanded where a name or a value belongs. */
export function findOutOfPlace(pointer: string, sentences: readonly Sentence[]): readonly Match[] {
  if (!PLACES.test(pointer)) return [];
  return sentences.flatMap((sentence) => {
    const { tokens } = sentence;
    const [first] = tokens;
    const last = tokens.at(-1);
    if (first === undefined || last === undefined || tokens.length < MIN_TOKENS) return [];
    if (!demandsSomething(first, sentence)) return [];
    return [
      {
        kind: 'order-to-model' as const,
        tier: 'review' as const,
        reason: 'It gives orders where a name or a value belongs.',
        start: first.start,
        end: last.end,
      },
    ];
  });
}

function demandsSomething(first: Token, sentence: Sentence): boolean {
  const { mask } = sentence;
  if ((mask & ACTION) === 0) return false;
  const isBound = (mask & BINDING) !== 0;
  const isAddressed = (mask & ADDRESSED) !== 0 || isFramed(sentence);
  const isImperative = first.isBase && (first.mask & ACTION) !== 0;
  return (isBound && isAddressed) || (isImperative && (isBound || isAddressed));
}
