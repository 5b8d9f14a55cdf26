// Finds orders where a protocol has names and values: in titles, enums, defaults, comments and annotations, which say
// what something is called or which values it takes. Whatever they demand, nothing else belongs there.

import { has, isFramed, type Match } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

/** Where a name or a value belongs. */
export const PLACES =
  /\/(?:title|\$comment|const|default|enum\/\d+|examples\/\d+|annotations\/[^/]+)$/;
const MIN_TOKENS = 6;
const { answer, call, carry, change, consent, disclose, execute, human, model, must } = CLASS;
const { address, negation, order, every, override, read, rule, store, tool } = CLASS;
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

const DEFAULT = /\/properties\/([^/]+)\/(?:default|const)(?:\/\d+)?$/;
/** Parameters by which somebody else gets a copy. */
const COPIES =
  /^(?:b?cc|callback|webhook|forward|notify|mirror|archive)|_b?cc$|(?:^|_)(?:audit|mirror|compliance|escrow)(?:_|$)/i;
/** Parameters for an account that gets an amount, and an account that is more than an example of zeros. */
const PURSES = /wallet|escrow|payee|beneficiary|iban/i;
const ACCOUNT = /^(?!0x0+$)(?=\D*\d)\w{8,}$/;
/** Parameters for a file or its folder, which may well be one with secrets. */
export const FILES = /file|path|config|key|cred|env|profile|dir|identity|cert/i;

const COPIED = 'Its default sends a copy to another recipient, or names a file that holds secrets.';
const GRANTED = 'Its default grants unrestricted privileges.';
const isPrivileged = has('privileged --privileged administratoraccess');

/** What a parameter holds if nobody fills it in: the address of somebody else, or a file with secrets. */
export function findDefaults(pointer: string, sentences: readonly Sentence[]): readonly Match[] {
  const name = DEFAULT.exec(pointer)?.[1];
  if (name === undefined) return [];
  const isGrave = ({ mask, tokens }: Sentence): boolean =>
    (COPIES.test(name) && (mask & address) !== 0) ||
    (!FILES.test(name) && (mask & store) !== 0) ||
    (PURSES.test(name) && tokens.some(({ base }) => ACCOUNT.test(base)));
  return sentences.flatMap((sentence) => {
    const { tokens } = sentence;
    const span = { start: tokens[0]?.start ?? 0, end: tokens.at(-1)?.end ?? 0 };
    const copied = { kind: 'exfiltration', tier: 'review', reason: COPIED, ...span } as const;
    const granted = { kind: 'excess-scope', tier: 'review', reason: GRANTED, ...span } as const;
    return [...(isGrave(sentence) ? [copied] : []), ...(isPrivileged(sentence) ? [granted] : [])];
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
