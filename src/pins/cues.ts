// What in a text speaks to a model or leads out of it: orders, hidden characters, addresses.
// Only for naming a difference to a reviewer: it neither allows nor refuses, so a miss costs a label.
// Linear: literal search over folded text, and two patterns without nested repetition.

import type { Json } from '../mcp/message.js';
import { unseenCharacters } from './characters.js';

/** Literal phrases of orders to a model, in lower case, single spaces. */
const ORDERS = [
  'ignore previous',
  'ignore all previous',
  'ignore the above',
  'disregard',
  'forget your',
  'system prompt',
  'you must',
  'you should always',
  'always call',
  'always use',
  'before using',
  'before calling',
  'before any other',
  'first call',
  'first read',
  'do not tell',
  "don't tell",
  'do not mention',
  "don't mention",
  'do not inform',
  'without asking',
  'without telling',
  'without informing',
  'secretly',
  'silently',
  'instead of',
  'side note',
  'important:',
  '<important',
  '<system',
  '<instructions',
  '[system',
  'assistant:',
  'api key',
  'password',
  'private key',
  'credentials',
  '.ssh',
  '.env',
  'id_rsa',
  'base64',
] as const;

const ADDRESS = /(?:https?:\/\/|www\.|javascript:|data:|file:\/\/|mailto:)[^\s"'<>)\]}]{1,200}/g;
const ENCODED_RUN = /[A-Za-z0-9+/]{80,4000}/g;
const SPACE_RUN = /\s+/g;

/** The cues of every string and key of a value, each once. Two texts with equal cues say no more. */
export function findCues(value: Json): ReadonlySet<string> {
  const cues = new Set<string>();
  const open: Json[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') addCues(next, cues);
    if (typeof next !== 'object' || next === null) continue;
    for (const [key, child] of Object.entries(next)) {
      addCues(key, cues);
      open.push(child);
    }
  }
  return cues;
}

function addCues(text: string, cues: Set<string>): void {
  for (const character of unseenCharacters(text)) {
    cues.add(`unseen:${(character.codePointAt(0) ?? 0).toString(16)}`);
  }
  const folded = text.normalize('NFKC').toLowerCase().replace(SPACE_RUN, ' ');
  for (const order of ORDERS) if (folded.includes(order)) cues.add(`order:${order}`);
  for (const [address] of folded.matchAll(ADDRESS)) cues.add(`address:${address}`);
  for (const [run] of text.matchAll(ENCODED_RUN)) cues.add(`encoded:${run.slice(0, 40)}`);
}
