// Where in a message a reader finds text that is read as one. Every string and every member name of a message
// towards a client is inspected, but for the few members of exempt.ts.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol, tools, resources, prompts.

import { isObject, type Json } from '../mcp/message.js';

/** A path as a JSON pointer (RFC 6901). */
export function pointerOf(steps: readonly (string | number)[]): string {
  let pointer = '';
  for (const step of steps) {
    pointer += `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  }
  return pointer;
}

/** The text of a block, an error, a progress note, a log line or a task: what a reader reads as one text. */
export function isReaderText(steps: readonly (string | number)[]): boolean {
  const last = steps.at(-1);
  if (last === 'statusMessage') return isOfTask(steps);
  if (steps.length === 2) {
    if (steps[0] === 'error') return last === 'message';
    return steps[0] === 'params' && (last === 'message' || last === 'data');
  }
  return last === 'text' && steps[0] === 'result' && steps[1] !== 'structuredContent';
}

/** How a task stands, alone, within the answer that began it, or in a list. */
function isOfTask([holder, member, ...rest]: readonly (string | number)[]): boolean {
  if (rest.length === 0) return holder === 'result' || holder === 'params';
  if (holder !== 'result') return false;
  return rest.length === 1 ? member === 'task' : rest.length === 2 && member === 'tasks';
}

/** True for strings of structured content, at any depth. */
export function isStructured(steps: readonly (string | number)[]): boolean {
  return steps[0] === 'result' && steps[1] === 'structuredContent';
}

/** The value at a path; undefined where there is none. */
export function valueAt(value: Json, steps: readonly (string | number)[]): Json | undefined {
  let at: Json | undefined = value;
  for (const step of steps) {
    if (Array.isArray(at) && typeof step === 'number') at = at[step];
    else if (isObject(at) && typeof step === 'string' && Object.hasOwn(at, step)) at = at[step];
    else return undefined;
  }
  return at;
}

/** The last member name on a path: what a value in an array stands behind. */
export function nearestName(steps: readonly (string | number)[]): string | undefined {
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at];
    if (typeof step === 'string') return step;
  }
  return undefined;
}
