// Finds what indicates poison in a definition by where it stands: turns and tags of a conversation (rows/markers.ts)
// before a harmful demand, and commands of a shell; orders in titles, enums, defaults, comments and annotations, which say what something is called or which values it
// takes; parameters that take the conversation or a file with secrets; annotations and scopes that disagree with the
// name of the tool. Also demands that are spread over two sentences: the first names the data, the second says where it
// goes.

import { CHANGING_VERBS, claimsToRead, GRAVE_VERBS, READING_VERBS } from '../../policy/tool-effect.js';
import { walkValue } from '../../protocol/json/walk.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { pointerOf } from '../../text/json-members.js';
import { nearestName } from '../exempt-members.js';
import type { DefinitionText } from '../message-map.js';
import type { Match, ScannedDefinition, UnnamedFinding } from './finding.js';
import { CLASS } from './lexicon.js';
import { ROLE_PATTERNS, SENDING_PICTURES, SHELL_COMMANDS } from './rows/markers.js';
import { hasCommand, isFramed, isOrder } from './sentence-conditions.js';
import { occurs, sentenceTest } from './sentence-patterns.js';
import type { Sentence, Token } from './sentences.js';

const MIN_TOKENS = 6;
const { address, answer, call, carry, change, consent, disclose, every, execute } = CLASS;
const { human, model, must, negation, order, override, read, rule, store, tool } = CLASS;
const DEMANDED_ACTION = read | carry | call | disclose | override | consent | execute | change;
const BINDING = must | negation | order | every | override;
const ADDRESSED = model | human | tool | rule | answer;

/** Demands in a member that should only hold a name, a value or a comment. */
export function findOutOfPlace({ role }: DefinitionText, sentences: readonly Sentence[]): readonly Match[] {
  if (role !== 'value') return [];
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
  if ((mask & DEMANDED_ACTION) === 0) return false;
  const isBound = (mask & BINDING) !== 0;
  const isAddressed = (mask & ADDRESSED) !== 0 || isFramed(sentence);
  const isImperative = first.isBase && (first.mask & DEMANDED_ACTION) !== 0;
  return (isBound && isAddressed) || (isImperative && (isBound || isAddressed));
}

const DEFAULT_POINTER = /\/properties\/([^/]+)\/(?:default|const)(?:\/\d+)?$/;
/** Parameters by which somebody else gets a copy. */
const COPY_PARAMETERS =
  /^(?:b?cc|callback|webhook|forward|notify|mirror|archive)|_b?cc$|(?:^|_)(?:audit|mirror|compliance|escrow)(?:_|$)/i;
/** Parameters for an account that gets an amount, and an account that is more than an example of zeros. */
const ACCOUNT_PARAMETERS = /wallet|escrow|payee|beneficiary|iban/i;
const ACCOUNT = /^(?!0x0+$)(?=\D*\d)\w{8,}$/;
/** Parameters for a file or its folder, which may well be one with secrets. */
const FILE_PARAMETERS = /file|path|config|key|cred|env|profile|dir|identity|cert/i;

const COPIED = 'Its default sends a copy to another recipient, or names a file that holds secrets.';
const GRANTED = 'Its default grants unrestricted privileges.';
const isPrivileged = sentenceTest('privileged|administratoraccess');

/** Dangerous defaults of parameters: the address of a third party, a file with secrets, unrestricted privileges. */
export function findDefaults(pointer: string, sentences: readonly Sentence[]): readonly Match[] {
  const name = DEFAULT_POINTER.exec(pointer)?.[1];
  if (name === undefined) return [];
  const isGrave = ({ mask, tokens }: Sentence): boolean =>
    (COPY_PARAMETERS.test(name) && (mask & address) !== 0) ||
    (!FILE_PARAMETERS.test(name) && (mask & store) !== 0) ||
    (ACCOUNT_PARAMETERS.test(name) && tokens.some(({ base }) => ACCOUNT.test(base)));
  return sentences.flatMap((sentence) => {
    const { tokens } = sentence;
    const span = { start: tokens[0]?.start ?? 0, end: tokens.at(-1)?.end ?? 0 };
    const copied = { kind: 'exfiltration', tier: 'review', reason: COPIED, ...span } as const;
    const granted = { kind: 'excess-scope', tier: 'review', reason: GRANTED, ...span } as const;
    return [...(isGrave(sentence) ? [copied] : []), ...(isPrivileged(sentence) ? [granted] : [])];
  });
}

const CARRIED = 'It demands that secrets or the conversation be passed on.';

/** Demands that are spread over two sentences: the first names the data, the second says where it goes. */
export function findCarriedOver(sentences: readonly Sentence[]): readonly Match[] {
  return sentences.flatMap((sentence, at) => {
    const source = sentences[at - 1];
    if (source === undefined || !namesSource(source) || !putsSomewhere(sentence)) return [];
    const start = source.tokens[0]?.start ?? 0;
    const end = sentence.tokens.at(-1)?.end ?? start;
    return [{ kind: 'exfiltration' as const, tier: 'review' as const, reason: CARRIED, start, end }];
  });
}

const namesSource = sentenceTest('#later !NEGATION STORE|CONTEXT|NAME~vault');
const isPut = sentenceTest('CARRY PARAMETER|ANSWER|ADDRESS it|its|them|their|this|that|content|result|what|here|there');

function putsSomewhere(sentence: Sentence): boolean {
  return isPut(sentence) && (hasCommand(sentence) || (sentence.mask & must) !== 0);
}

/** Parameters whose description asks for what the model was told, or for the content of a file with secrets. */
export function findSoughtContent(pointer: string, sentences: readonly Sentence[]): readonly Match[] {
  const taken = /\/properties\/([^/]+)\/description$/.exec(pointer)?.[1];
  if (taken === undefined) return [];
  return sentences.flatMap((sentence) => {
    const isStored = seeksFile(sentence) && !FILE_PARAMETERS.test(taken);
    if (!seeksContext(sentence) && !isStored) return [];
    const { tokens } = sentence;
    const end = tokens.at(-1)?.end ?? 0;
    const start = tokens[0]?.start ?? 0;
    return [{ kind: 'context-parameter' as const, tier: 'review' as const, reason: SOUGHT, start, end }];
  });
}

const seeksContext = sentenceTest('!NEGATION CONTEXT @unabridged your|you|far|conversation !summary');
const seeksFile = sentenceTest('!NEGATION STORE content|contents|text|output|value');
const SOUGHT = 'The parameter takes the conversation, instructions, or a file with secrets.';

const CHANGES = startingWith(CHANGING_VERBS);
/** What cannot be taken back, or leaves the server. */
const GRAVE = startingWith(GRAVE_VERBS);
const READS = startingWith(READING_VERBS);

/** Names in snake, kebab or camel case that begin with one of these verbs. */
function startingWith(verbs: readonly string[]): RegExp {
  return new RegExp(`^(?:${verbs.join('|')})(?:_|-|[A-Z]|$)`);
}

/** A part of the name of a scope that allows more than reading. */
const WIDE_SCOPE =
  /(?:^|[.:/_-])(?:write|admin|delete|manage|full|all|\*|readwrite|root|owner|send|modify)(?:$|[.:/_-])/i;
const MAX_SCOPE_DEPTH = 6;
const SCOPES = /^(?:required|oauth)?_?scopes?$/i;
const MAX_EVIDENCE = 200;

/** Claims that do not agree with the name. The annotations of MCP are claims as well. */
export function claimsOf(scanned: ScannedDefinition): readonly UnnamedFinding[] {
  const { definition, kind } = scanned;
  if (typeof definition === 'string' || kind !== 'tool') return [];
  return [...readOnlyClaim(scanned, definition), ...scopeClaims(scanned, definition)];
}

function readOnlyClaim({ kind, name }: ScannedDefinition, definition: JsonObject): UnnamedFinding[] {
  if (!claimsToRead(definition) || !(CHANGES.test(name) || GRAVE.test(name))) return [];
  return [
    {
      kind: 'false-annotation',
      tier: GRAVE.test(name) ? 'review' : 'note',
      item: { kind, name },
      pointer: '/annotations/readOnlyHint',
      evidence: makeVisible(name).slice(0, MAX_EVIDENCE),
      reason: 'It claims to change nothing, and its name says otherwise.',
    },
  ];
}

/** Scopes for more than reading, required by a tool that only reads by its name. */
function scopeClaims({ kind, name }: ScannedDefinition, definition: JsonObject): UnnamedFinding[] {
  if (!READS.test(name)) return [];
  const scopes: (readonly [string, string])[] = [];
  for (const [member, value] of Object.entries(definition)) {
    if (member === 'inputSchema' || member === 'outputSchema') continue;
    walkValue(value, [member], (one, steps) => {
      // The scopes below a member that is named after them.
      if (typeof one === 'string' && SCOPES.test(nearestName(steps) ?? ''))
        for (const scope of one.split(' ')) scopes.push([pointerOf(steps), scope]);
      return steps.length <= MAX_SCOPE_DEPTH;
    });
  }
  return scopes
    .filter(([, scope]) => WIDE_SCOPE.test(scope))
    .map(([pointer, scope]) => ({
      kind: 'excess-scope',
      tier: 'review',
      item: { kind, name },
      pointer,
      evidence: makeVisible(scope).slice(0, MAX_EVIDENCE),
      reason: 'By its name it reads, and it requires a scope for more than reading.',
    }));
}

/** Marks of templates for turns of a conversation, which nobody writes to structure a description. */
const TURN_TEMPLATE = /^(?:<\||<<|<(?:start|end)_of|\|\|\||\[\/?inst\]|-)/;

/** `parameters`: names that a list of arguments in the description may begin a line with. */
export function findMarkers(
  text: string,
  parameters: ReadonlySet<string>,
  sentences: readonly Sentence[],
): readonly Match[] {
  const lower = text.toLowerCase();
  const commands = firstOf(SHELL_COMMANDS, lower, 'review', 'It has a command that destroys or sends data.');
  const pictures = firstOf(SENDING_PICTURES, lower, 'review', 'It has a picture whose address takes data.');
  const grave = sentences.filter(demandsHarm);
  const orders = sentences.filter(isDirective);
  const roles = ROLE_PATTERNS.flatMap((pattern) => roleOf(pattern, lower, parameters, grave, orders));
  const sent = pictures.map((match) => ({ ...match, kind: 'exfiltration' as const }));
  return [...commands, ...sent, ...roles];
}

/**
 * Tags and headings that claim more than to structure a text: an order under one is to be looked at, whatever it is.
 */
const WEIGHTY_TAG =
  /^[<[]\/?(?:important|system|admin|secret|hidden|critical|mandatory|override|directive)[>\]]|^\[(?:important|system|hidden|admin|critical|note)\b|[-=*]$|(?:system|developer) [a-z ]{4,60}:$|#+ ?[a-z]+:$/;

/** Whether it tells the model to do something, or not to. */
function isDirective(sentence: Sentence): boolean {
  const [first, second] = sentence.tokens;
  if (first === undefined || second === undefined) return false;
  const addressed = CLASS.must | CLASS.negation | CLASS.model;
  return (sentence.mask & addressed) !== 0 || (first.isBase && (first.mask & ORDERED_ACTION) !== 0);
}

/** How many characters after a tag or a heading count as introduced by it. */
const TAG_REACH = 600;
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

/** The tier of a tag or a heading, by the distance to the next harmful demand, and to the next order of any kind. */
function tierOf(found: string, demanded: number, ordered: number): Match['tier'] {
  if (demanded <= TAG_REACH || TURN_TEMPLATE.test(found)) return 'block';
  return ordered <= TAG_REACH && WEIGHTY_TAG.test(found) ? 'review' : 'note';
}

/** Where the first sentence starts that ends after a position; for positions in ascending order. */
function startsAfter(sentences: readonly Sentence[]): (position: number) => number {
  let next = 0;
  return (position) => {
    while (next < sentences.length && endOf(sentences[next]) <= position) next++;
    return sentences[next]?.tokens[0]?.start ?? Number.POSITIVE_INFINITY;
  };
}

/** Whether it is a slot of code to be filled in: `field:<internal_id>`, `options.<assistant>`, `-m <system_name>`. */
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

const ORDERED_ACTION = read | carry | call | execute | change | disclose | override;
const HARM = CLASS.store | CLASS.context | CLASS.secret | CLASS.conceal | CLASS.covert | CLASS.remote;
const speaksOfEveryTool = occurs('ORDER EVERY TOOL', 4);

/** Whether a sentence orders something that is harmful under a tag, though it may be a description elsewhere. */
function demandsHarm(sentence: Sentence): boolean {
  if ((sentence.mask & negation) !== 0) return (sentence.mask & human) !== 0 && isSecret(sentence);
  if ((sentence.mask & call) !== 0 && speaksOfEveryTool(sentence)) return true;
  const runsCommand = (sentence.mask & execute) !== 0 && (sentence.mask & CLASS.command) !== 0;
  if ((sentence.mask & HARM) === 0 && !runsCommand) return false;
  const isImperative = sentence.tokens.slice(0, 3).some((one) => one.isBase && (one.mask & ORDERED_ACTION) !== 0);
  return isImperative || isOrder(sentence) || hasCommand(sentence);
}

/** Whether somebody is not to be told. */
function isSecret({ tokens }: Sentence): boolean {
  return tokens.some(({ mask, isDenied }) => isDenied === true && (mask & disclose) !== 0);
}

/** The first of these patterns to match, by its place in the text. */
function firstOf(patterns: readonly RegExp[], text: string, tier: Match['tier'], reason: string): readonly Match[] {
  const [first] = patterns
    .flatMap((pattern) => {
      const match = pattern.exec(text);
      return match === null ? [] : [{ start: match.index, end: match.index + match[0].length }];
    })
    .sort((one, other) => one.start - other.start);
  return first === undefined ? [] : [{ kind: 'order-to-model', tier, reason, ...first }];
}
