// Finds what a model heeds without any demand in words: imitated turns and tags of a conversation, and commands of a
// shell that destroy or send data.

import { STRUCTURES } from '../detectors/injection-phrases.js';
import { hasCommand } from './combinations.js';
import { isOrder, type Match, occurs } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence } from './sentences.js';

/** Tags and headings that claim to speak to the model, whatever their name is made of. */
const TAGS: readonly RegExp[] = [
  /<\/?(?:[a-z]{1,20}[_-]){0,4}(?:important|system|instructions?|admin|secret|hidden|directive|policy|override|mandatory|critical|assistant|internal)(?:[_-][a-z]{1,20}){0,4}>/g,
  /\[\/?(?:[a-z]{1,20}[_ -]){0,3}(?:instructions?|directive|override|system|assistant)(?:[_ -][a-z]{1,20}){0,3}\]/g,
  /<\/(?:description|tool|tools|tool_description|function|schema)>/g,
  /(?:^|\n|[.:] )[ \t]{0,8}#{1,6}[ \t]{1,4}(?:system|assistant|developer)(?: message| prompt| override)?[ \t]{0,4}(?:\n|$)/g,
  /--[ ]?(?:end|begin|start) of (?:the )?(?:tool |function |system )?(?:description|prompt|message|instructions)/g,
  /(?:^|[\n.!?:] ?)[ \t*]{0,8}(?:system|developer) (?:instruction|directive|override|prompt|message|note|notice)s?(?: (?:about|for|on|to) [a-z ]{2,40})?:/g,
  /\[(?:important|system|hidden|admin|critical|note (?:for|to))\b[a-z ]{0,30}:/g,
  /[-=*]{3} ?(?:system|admin|developer|override)[a-z ]{0,30}[-=*]{3}/g,
  /<(?:start|end)_of_turn>/g,
  /(?:^|[\n.!?] ?)#{2,6} ?(?:instruction|human|assistant|system):/g,
  /\n[ \t]{0,8}(?:new|updated|additional|hidden|secret) (?:system )?instructions?[ \t]{0,4}:/g,
];
const ROLES = [...STRUCTURES.map(({ pattern }) => new RegExp(pattern, 'g')), ...TAGS];

/** Marks of templates for turns of a conversation, which nobody writes to structure a description. */
const TEMPLATE = /^(?:<\||<<|<(?:start|end)_of|\|\|\||\[\/?inst\]|-)/;

/** Commands of a shell that delete everything, or send what they are given. */
const SHELL =
  /\brm -[rf]{2} [/~](?![\w.])|\|\s{0,4}(?:ba|z)?sh\b|<\(\s{0,4}curl\b|\|\s{0,4}(?:nc|netcat)\s|\/dev\/tcp\/|\bchmod (?:-r )?0?777\b|\bcurl (?:[^\n]{0,120} )?(?:-d|--data|--data-binary|-f) ?@|\$\((?:whoami|hostname|env|cat [^<]|id\))|\benv ?\| ?base64|\b(?:system|popen)\(['"]/;

/** A picture whose address is to be filled in: what is shown is also sent. */
const PICTURE =
  /!\[[^\]\n]{0,80}\]\(https?:\/\/[^)\s?]{1,300}\?(?:[^)\s]{0,200}(?:[{<[$]|%7b)|[^)\s]{0,200}=(?:data|text|value|[a-z_]{0,20}(?:content|context|conversation))?\))/;

/** `parameters`: names that a list of arguments in the description may begin a line with. */
export function markersIn(
  text: string,
  parameters: ReadonlySet<string>,
  sentences: readonly Sentence[],
): readonly Match[] {
  const lower = text.toLowerCase();
  const commands = matchOf(SHELL, lower, 'review', 'It has a command that destroys or sends data.');
  const pictures = matchOf(PICTURE, lower, 'review', 'It has a picture whose address takes data.');
  const grave = sentences.filter(demandsHarm);
  const orders = sentences.filter(isDirective);
  const roles = ROLES.flatMap((pattern) => roleOf(pattern, lower, parameters, grave, orders));
  const sent = pictures.map((match) => ({ ...match, kind: 'exfiltration' as const }));
  return [...commands, ...sent, ...roles];
}

/** Tags and headings that claim more than to structure a text: an order under one is to be looked at, whatever it is. */
const WEIGHTY =
  /^[<[]\/?(?:important|system|admin|secret|hidden|critical|mandatory|override|directive)[>\]]|^\[(?:important|system|hidden|admin|critical|note)\b|[-=*]$|(?:system|developer) [a-z ]{4,60}:$|#+ ?[a-z]+:$/;

/** Whether it tells the model what to do, or what to leave. */
function isDirective(sentence: Sentence): boolean {
  const [first, second] = sentence.tokens;
  if (first === undefined || second === undefined) return false;
  const addressed = CLASS.must | CLASS.negation | CLASS.model;
  return (sentence.mask & addressed) !== 0 || (first.isBase && (first.mask & ACTION) !== 0);
}

/** How far what a tag or a heading introduces reaches. */
const REACH = 600;
const IMITATED = 'It imitates a role or a message of the conversation.';

/** A tag or a heading structures many a description: it imitates a message only if it introduces a harmful demand. */
function roleOf(
  pattern: RegExp,
  lower: string,
  parameters: ReadonlySet<string>,
  grave: readonly Sentence[],
  orders: readonly Sentence[],
): readonly Match[] {
  const demanded = startsAfter(grave);
  const ordered = startsAfter(orders);
  let first: Match | undefined;
  for (const { 0: found, index: start } of lower.matchAll(pattern)) {
    if (parameters.has(found.replace(/[\s:]/g, '')) || isSlot(lower, start)) continue;
    const end = start + found.length;
    const tier = tierOf(found, demanded(start) - end, ordered(end) - end);
    const match: Match = { kind: 'order-to-model', reason: IMITATED, start, end, tier };
    if (tier === 'block') return [match];
    if (tier === 'review' || first === undefined) first = match;
  }
  return first === undefined ? [] : [first];
}

/** How grave a tag or a heading is, by how far after it something harmful is demanded, or anything at all. */
function tierOf(found: string, demanded: number, ordered: number): Match['tier'] {
  if (demanded <= REACH || TEMPLATE.test(found)) return 'block';
  return ordered <= REACH && WEIGHTY.test(found) ? 'review' : 'note';
}

/** Where the first sentence starts that ends after a position; for positions in ascending order. */
function startsAfter(sentences: readonly Sentence[]): (position: number) => number {
  let next = 0;
  return (position) => {
    while (next < sentences.length && endOf(sentences[next]) <= position) next++;
    return sentences[next]?.tokens[0]?.start ?? Number.POSITIVE_INFINITY;
  };
}

/** Whether it is a part of code that is to be filled in: `field:<internal_id>`, `options.<assistant>`, `-m <system_name>`. */
function isSlot(lower: string, start: number): boolean {
  return (
    lower[start] === '<' &&
    /[\w)][.:=/]$|[{`$%/=]$|\s--?[\w-]{1,20} $/.test(lower.slice(Math.max(0, start - 24), start)) &&
    lower[start + 1] !== '|'
  );
}

function endOf(sentence: Sentence | undefined): number {
  return sentence?.tokens.at(-1)?.end ?? 0;
}

const { carry, read, call, execute, change, disclose, human, override, negation } = CLASS;
const ACTION = read | carry | call | execute | change | disclose | override;
const HARM =
  CLASS.store | CLASS.context | CLASS.secret | CLASS.conceal | CLASS.covert | CLASS.remote;
const EVERY_TOOL = [CLASS.order, CLASS.every, CLASS.tool];

/** Whether a sentence orders something that is harmful under a tag, though it may be a description elsewhere. */
function demandsHarm(sentence: Sentence): boolean {
  if ((sentence.mask & negation) !== 0) return (sentence.mask & human) !== 0 && isSecret(sentence);
  if ((sentence.mask & call) !== 0 && occurs(EVERY_TOOL, 4, sentence)) return true;
  const runsCommand = (sentence.mask & execute) !== 0 && (sentence.mask & CLASS.command) !== 0;
  if ((sentence.mask & HARM) === 0 && !runsCommand) return false;
  const isImperative = sentence.tokens
    .slice(0, 3)
    .some((one) => one.isBase && (one.mask & ACTION) !== 0);
  return isImperative || isOrder(sentence) || hasCommand(sentence);
}

/** Whether somebody is not to be told. */
function isSecret({ tokens }: Sentence): boolean {
  return tokens.some(({ mask, isDenied }) => isDenied === true && (mask & disclose) !== 0);
}

function matchOf(
  pattern: RegExp,
  text: string,
  tier: Match['tier'],
  reason: string,
): readonly Match[] {
  const match = pattern.exec(text);
  if (match === null) return [];
  const end = match.index + match[0].length;
  return [{ kind: 'order-to-model', tier, reason, start: match.index, end }];
}
