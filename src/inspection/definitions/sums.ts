// Combines signs: phrases that mean little alone are a finding if certain ones of them occur in one sentence, in any order.

import { hasCommand } from './combinations.js';
import { type FindingKind, isOrder, type Match, occurs } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence } from './sentences.js';
import {
  ACT,
  ADDRESSED,
  AIM,
  ALTER,
  ANSWER,
  ASKED,
  BIAS,
  BODY,
  CALL,
  CALLED,
  CARRY,
  CIPHER,
  COMPLY,
  CONSENT,
  CONTEXT,
  DEMAND,
  DESPITE,
  DESTROY,
  DOMAIN,
  EMAIL,
  ENCODED,
  ENDORSED,
  ENTIRE,
  EXTRA,
  FILLED,
  FIXED,
  GLOSS,
  HARMFUL,
  HUSH,
  MOVE,
  MUST,
  NAMED,
  OBEY,
  ONLY,
  OUTSIDE,
  OWNED,
  PERSONAL,
  PLACE,
  PLEA,
  PREFER,
  PRESENCE,
  PRETEXT,
  PRIVATE,
  PRODUCT,
  PROMOTE,
  READ,
  REASON,
  RESULTS,
  RIVAL,
  SEED,
  SENDING,
  SHUNNED,
  type Sign,
  SLOT,
  SOLICIT,
  SPARED,
  STUBBORN,
  sign,
  TALK,
  TAMPER,
  UNTRUE,
  VOID,
  WORSE,
  YOURS,
} from './signs.js';

const { negation } = CLASS;

type Signs = (one: Sign) => boolean;

/** Signs that make a finding if a sentence has one of each group. */
type Sum = {
  readonly kind: FindingKind;
  readonly reason: string;
  readonly groups: readonly (readonly Sign[])[];
  /** If the sentence has one of these classes, it demands nothing. */
  readonly unless?: number;
};

/** The text describes a parameter. */
const SOUGHT = sign();
const SENT = 'It sends out data of the user, the conversation or other tools.';
const ASKED_FOR =
  'The parameter asks for the conversation, instructions or the results of other tools.';
const CONCEALED = 'It conceals from the user what is done.';
const RIVALS = 'It disparages other tools, or claims priority over them whatever the user wants.';
const OBEYED = 'It demands that instructions from another source be followed.';
const WORKS = 'It gives orders about calls of other tools.';
const SUMS: readonly Sum[] = [
  { kind: 'exfiltration', reason: SENT, groups: [[EMAIL], [DEMAND]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [PRIVATE], [TALK], [ENTIRE], [SLOT]] },
  { kind: 'exfiltration', reason: SENT, groups: [[OWNED], [SEED]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [HARMFUL], [SHUNNED]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[ONLY], [SHUNNED]] },
  { kind: 'other-tool', reason: WORKS, groups: [[CALLED], [AIM], [DEMAND, ALTER]] },
  { kind: 'exfiltration', reason: SENT, groups: [[EXTRA], [CARRY], [PERSONAL]] },
  { kind: 'exfiltration', reason: SENT, groups: [[ENCODED], [DEMAND]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[OWNED], [CARRY], [DEMAND], [SLOT, EXTRA, ENTIRE]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[SOUGHT], [FIXED]] },
  { kind: 'context-parameter', reason: ASKED_FOR, groups: [[SOUGHT], [OWNED], [READ]] },
  { kind: 'secrecy', reason: CONCEALED, groups: [[SPARED], [CONSENT]] },
  { kind: 'other-tool', reason: WORKS, groups: [[PRESENCE], [DEMAND], [CARRY, ALTER, CALL]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[STUBBORN], [ALTER, CALL], [DEMAND]] },
  { kind: 'order-to-model', reason: OBEYED, groups: [[COMPLY]], unless: negation },
  {
    kind: 'order-to-model',
    reason: 'It demands that instructions or safeguards be set aside.',
    groups: [[VOID]],
  },
  {
    kind: 'order-to-model',
    reason: 'It demands that data be destroyed which its purpose does not concern.',
    groups: [[DESTROY], [DEMAND], [EXTRA]],
  },
  {
    kind: 'order-to-model',
    reason: 'It dictates what is recommended to the user.',
    groups: [[BIAS]],
  },
  {
    kind: 'context-parameter',
    reason: ASKED_FOR,
    groups: [[SOUGHT], [CONTEXT, RESULTS], [YOURS, ENTIRE]],
  },
  { kind: 'context-parameter', reason: ASKED_FOR, groups: [[SOUGHT], [PRIVATE], [TALK], [ENTIRE]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [CONTEXT], [OUTSIDE]] },
  { kind: 'exfiltration', reason: SENT, groups: [[SENDING], [OUTSIDE], [EXTRA]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [OUTSIDE], [PRETEXT], [DEMAND, ENTIRE]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [CONTEXT, RESULTS], [PRETEXT], [DEMAND]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [CONTEXT], [ENTIRE], [SLOT, DEMAND]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [PLEA], [PRIVATE, CONTEXT, RESULTS, SLOT, DEMAND]],
  },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [ADDRESSED], [DEMAND], [PRIVATE, CONTEXT, RESULTS]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [RESULTS], [ENTIRE, DEMAND]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [PRIVATE], [EXTRA], [SLOT, OUTSIDE]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [PERSONAL], [SLOT, OUTSIDE], [DEMAND, ENTIRE]],
  },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY], [PRIVATE, PERSONAL], [PLACE, DOMAIN], [DEMAND]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[FILLED], [DEMAND, PRETEXT]] },
  { kind: 'context-parameter', reason: ASKED_FOR, groups: [[SOUGHT], [PERSONAL], [BODY]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[CALL, NAMED], [WORSE], [REASON]] },
  {
    kind: 'authority',
    reason: 'It claims an approval that nobody gave in the conversation.',
    groups: [[ENDORSED]],
  },
  {
    kind: 'order-to-model',
    reason: OBEYED,
    groups: [[OBEY], [DESPITE, MUST]],
  },
  {
    kind: 'order-to-model',
    reason: 'It weakens the protection of the machine.',
    groups: [[TAMPER], [DEMAND]],
  },
  {
    kind: 'solicitation',
    reason: 'It makes the model ask the user for a secret.',
    groups: [[SOLICIT], [PRIVATE, PLACE]],
  },
  { kind: 'secrecy', reason: CONCEALED, groups: [[HUSH], [ACT]] },
  { kind: 'secrecy', reason: CONCEALED, groups: [[SPARED], [OUTSIDE, EXTRA]] },
  { kind: 'secrecy', reason: CONCEALED, groups: [[UNTRUE], [ASKED]] },
  { kind: 'secrecy', reason: CONCEALED, groups: [[GLOSS], [DEMAND]] },
  { kind: 'exfiltration', reason: SENT, groups: [[MOVE], [PLACE]] },
  {
    kind: 'order-to-model',
    reason: 'It addresses the model in encoded text.',
    groups: [[PLEA, ADDRESSED], [CIPHER]],
  },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [WORSE], [CALL]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [STUBBORN]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[PREFER], [STUBBORN]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [PREFER], [ENTIRE], [STUBBORN]] },
  {
    kind: 'order-to-model',
    reason: 'It dictates what is recommended to the user.',
    groups: [[PROMOTE], [DEMAND], [ANSWER, PRODUCT]],
  },
];

/** A sentence with fewer words demands nothing. */
const MIN_TOKENS = 4;

/** The findings from combinations of signs, sentence by sentence. `isParameter`: the text describes a parameter. */
export function findSums(sentences: readonly Sentence[], isParameter: boolean): readonly Match[] {
  const found: Match[] = [];
  const left = new Set(SUMS);
  const look = (part: Sentence, isSought: boolean): void => {
    const signs = reader(part, isSought);
    for (const sum of left) {
      if ((part.mask & (sum.unless ?? 0)) !== 0) continue;
      if (!sum.groups.every((group) => group.some(signs))) continue;
      left.delete(sum);
      const { kind, reason } = sum;
      const start = part.tokens[0]?.start ?? 0;
      found.push({ kind, tier: 'review', reason, start, end: part.tokens.at(-1)?.end ?? start });
    }
  };
  for (const sentence of sentences) {
    if (sentence.tokens.length < MIN_TOKENS || (sentence.index === 0 && !isParameter)) continue;
    for (const part of windowsOf(sentence)) look(part, false);
    if (!isParameter) continue;
    const begin = partOf(sentence, 0, BEGINNING);
    look(begin, (begin.mask & negation) === 0);
  }
  return found;
}

/** The beginning of a sentence says what a parameter takes. */
const BEGINNING = 16;
/** Signs that stand further apart belong to different demands. */
const WINDOW = 36;

/** Parts of a long sentence, such as a list, that overlap by half. */
function windowsOf(sentence: Sentence): readonly Sentence[] {
  const { tokens } = sentence;
  if (tokens.length <= WINDOW) return [sentence];
  const count = Math.ceil(tokens.length / (WINDOW / 2)) - 1;
  return Array.from({ length: count }, (_, at) => partOf(sentence, (at * WINDOW) / 2, WINDOW));
}

function partOf({ tokens, index }: Sentence, from: number, count: number): Sentence {
  const part = tokens.slice(from, from + count);
  let mask = 0;
  for (const token of part) mask |= token.mask;
  return { tokens: part, mask, bases: new Set(part.map(({ base }) => base)), index };
}

/** Whether a sentence has a sign. Computed when it is first needed. */
function reader(part: Sentence, isSought: boolean): Signs {
  const known = new Map<Sign, boolean>([[SOUGHT, isSought]]);
  return (one) => {
    const before = known.get(one);
    if (before !== undefined) return before;
    const isGiven =
      one.forms.some(({ steps, gap }) => occurs(steps, gap, part)) ||
      (one === DEMAND && (isOrder(part) || hasCommand(part) || beginsWithOrder(part)));
    known.set(one, isGiven);
    return isGiven;
  };
}

const ORDERS =
  /^(?:present|describe|report|label|mark|rate|rank|set|change|use|open|perform|run|notify|publish|encode|write|share|export|accept|claim|state|give|repeat|put|treat|recommend|provide|include|take|find|tell|grant|make|delete|encrypt)$/;

function beginsWithOrder({ tokens: [first], index }: Sentence): boolean {
  return index > 0 && first !== undefined && first.isBase && ORDERS.test(first.base);
}
