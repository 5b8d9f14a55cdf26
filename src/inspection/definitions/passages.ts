// Finds demands that no sentence makes alone: what one names, the next passes on; and what a parameter takes by its
// description.

import { hasCommand, isUnabridged, isVaultTool } from './combinations.js';
import { has, is, type Match } from './demands.js';
import { CLASS } from './lexicon.js';
import { FILES } from './places.js';
import type { Sentence } from './sentences.js';

const { address, answer, carry, context, must, negation, parameter, store } = CLASS;

const isPronoun = is('it its them their this that content result what here there');
const CARRIED = 'It demands that secrets or the conversation be passed on.';

/** What two sentences demand together: the one names what is to be had, the next where it is to be put. */
export function findCarriedOver(sentences: readonly Sentence[]): readonly Match[] {
  return sentences.flatMap((sentence, at) => {
    const source = sentences[at - 1];
    if (source === undefined || !namesSource(source) || !putsSomewhere(sentence)) return [];
    const start = source.tokens[0]?.start ?? 0;
    const end = sentence.tokens.at(-1)?.end ?? start;
    return [
      { kind: 'exfiltration' as const, tier: 'review' as const, reason: CARRIED, start, end },
    ];
  });
}

function namesSource(sentence: Sentence): boolean {
  if (sentence.index === 0 || (sentence.mask & negation) !== 0) return false;
  return (sentence.mask & (store | context)) !== 0 || sentence.tokens.some(isVaultTool);
}

function putsSomewhere(sentence: Sentence): boolean {
  const isPut =
    (sentence.mask & carry) !== 0 && (sentence.mask & (parameter | answer | address)) !== 0;
  return (
    isPut &&
    sentence.tokens.some(isPronoun) &&
    (hasCommand(sentence) || (sentence.mask & must) !== 0)
  );
}

/** What a parameter takes, by its description: what the model was told, or the content of a file with secrets. */
export function findSoughtContent(
  pointer: string,
  sentences: readonly Sentence[],
): readonly Match[] {
  const taken = /\/properties\/([^/]+)\/description$/.exec(pointer)?.[1];
  if (taken === undefined) return [];
  return sentences.flatMap((sentence) => {
    const { tokens, mask } = sentence;
    const isConversation =
      (mask & context) !== 0 && isUnabridged(sentence) && isYours(sentence) && !isSummary(sentence);
    const isStored = (mask & store) !== 0 && isContent(sentence) && !FILES.test(taken);
    if ((mask & negation) !== 0 || !(isConversation || isStored)) return [];
    const end = tokens.at(-1)?.end ?? 0;
    const start = tokens[0]?.start ?? 0;
    return [
      { kind: 'context-parameter' as const, tier: 'review' as const, reason: SOUGHT, start, end },
    ];
  });
}

const isYours = has('your you far conversation');
const isSummary = has('summary');
const isContent = has('content contents text output value');
const SOUGHT = 'The parameter takes the conversation, instructions, or a file with secrets.';
