// Finds what a definition says at a place where it does not belong: orders in titles, enums, defaults, comments and
// annotations, which say what something is called or which values it takes; parameters that take the conversation or
// a file with secrets; annotations and scopes that disagree with the name of the tool. Also what only two sentences
// demand together: what one names, the next passes on.

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { pointerTo } from '../../text/json-members.js';
import { hasCommand, isUnabridged, isVaultTool } from './combinations.js';
import {
  has,
  is,
  isFramed,
  type Match,
  type ScannedDefinition,
  type UnnamedFinding,
} from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

/** Where a name or a value belongs. */
export const PLACES =
  /\/(?:title|\$comment|const|default|enum\/\d+|examples\/\d+|annotations\/[^/]+)$/;
const MIN_TOKENS = 6;
const { address, answer, call, carry, change, consent, context, disclose, every, execute } = CLASS;
const { human, model, must, negation, order, override, parameter, read, rule, store, tool } = CLASS;
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

const DEFAULT = /\/properties\/([^/]+)\/(?:default|const)(?:\/\d+)?$/;
/** Parameters by which somebody else gets a copy. */
const COPIES =
  /^(?:b?cc|callback|webhook|forward|notify|mirror|archive)|_b?cc$|(?:^|_)(?:audit|mirror|compliance|escrow)(?:_|$)/i;
/** Parameters for an account that gets an amount, and an account that is more than an example of zeros. */
const PURSES = /wallet|escrow|payee|beneficiary|iban/i;
const ACCOUNT = /^(?!0x0+$)(?=\D*\d)\w{8,}$/;
/** Parameters for a file or its folder, which may well be one with secrets. */
const FILES = /file|path|config|key|cred|env|profile|dir|identity|cert/i;

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

const CHANGES =
  /^(?:create|write|update|insert|put|post|set|add|edit|modify|exec|run|move|rename|upload|merge|push)(?:_|-|[A-Z]|$)/;
/** What cannot be taken back, or leaves the server. */
const GRAVE =
  /^(?:delete|remove|drop|destroy|wipe|purge|send|transfer|pay|execute|deploy|kill|revoke|terminate)(?:_|-|[A-Z]|$)/;
const READS =
  /^(?:get|list|read|search|find|fetch|describe|show|count|lookup|view|query)(?:_|-|[A-Z]|$)/;
/** A scope that allows more than reading, by one of its parts. */
const WIDE_SCOPE =
  /(?:^|[.:/_-])(?:write|admin|delete|manage|full|all|\*|readwrite|root|owner|send|modify)(?:$|[.:/_-])/i;
const MAX_DEPTH = 6;
const MAX_EVIDENCE = 200;

/** Claims that do not agree with the name. The annotations of MCP are claims as well. */
export function claimsOf(scanned: ScannedDefinition): readonly UnnamedFinding[] {
  const { definition, kind } = scanned;
  if (typeof definition === 'string' || kind !== 'tool') return [];
  return [...readOnlyClaim(scanned, definition), ...scopeClaims(scanned, definition)];
}

function readOnlyClaim(
  { kind, name }: ScannedDefinition,
  definition: JsonObject,
): UnnamedFinding[] {
  const annotations = definition['annotations'];
  const isReadOnly = isObject(annotations) && annotations['readOnlyHint'] === true;
  if (!isReadOnly || !(CHANGES.test(name) || GRAVE.test(name))) return [];
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
    if (member !== 'inputSchema' && member !== 'outputSchema') {
      collectScopes(value, member, `/${member}`, MAX_DEPTH, scopes);
    }
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

/** The scopes below a member that is named after them, with their pointers. */
function collectScopes(
  value: Json | undefined,
  member: string,
  pointer: string,
  depth: number,
  found: (readonly [string, string])[],
): void {
  const isScope = /^(?:required|oauth)?_?scopes?$/i.test(member);
  if (typeof value === 'string') {
    if (isScope) for (const scope of value.split(' ')) found.push([pointer, scope]);
    return;
  }
  if (typeof value !== 'object' || value === null || depth === 0) return;
  for (const [name, inner] of Object.entries(value)) {
    const owner = Array.isArray(value) ? member : name;
    collectScopes(inner, owner, pointerTo(pointer, name), depth - 1, found);
  }
}
