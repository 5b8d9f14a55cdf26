// Sets and removes single members of objects inside JSON text, so that everything else leaves byte for
// byte. Never serializes what was there.

import { applyEdits, memberSpans, removalEdits, spanOf } from '../mcp/json.js';
import type { Json } from '../mcp/message.js';

type Path = readonly (string | number)[];

/** The text with one member of the object at `path` set; unchanged where no object stands there. */
export function setMember(text: string, path: Path, name: string, value: Json): string {
  const object = spanOf(text, path);
  if (object === undefined || text[object.start] !== '{') return text;
  const members = memberSpans(text, object);
  const json = JSON.stringify(value);
  const known = members.find((member) => member.name === name);
  if (known !== undefined) return applyEdits(text, [{ ...known.value, text: json }]);
  const member = `${JSON.stringify(name)}:${json}${members.length === 0 ? '' : ','}`;
  return applyEdits(text, [{ start: object.start + 1, end: object.start + 1, text: member }]);
}

/** The text without one member of the object at `path`. */
export function removeMember(text: string, path: Path, name: string): string {
  const object = spanOf(text, path);
  if (object === undefined) return text;
  return applyEdits(
    text,
    removalEdits(text, object, (one) => one === name),
  );
}

/**
 * The text of a result that depends on the caller: never shared by caches, and fresh for no longer than
 * the cap (contract §6; MCP 2026-07-28, caching). A missing `ttlMs` means 0 and stays missing.
 */
export function setPrivate(
  text: string,
  result: { readonly [name: string]: Json },
  maxTtlMs: number,
): string {
  const scoped =
    result['cacheScope'] === 'private'
      ? text
      : setMember(text, ['result'], 'cacheScope', 'private');
  const ttlMs = result['ttlMs'];
  if (ttlMs === undefined) return scoped;
  const isKept = typeof ttlMs === 'number' && Number.isInteger(ttlMs) && ttlMs <= maxTtlMs;
  return isKept ? scoped : setMember(scoped, ['result'], 'ttlMs', maxTtlMs);
}
