// Icons that a client would fetch from elsewhere, or that may hold script, wherever a message may have icons.
// What a server, a tool or a user is free to fill as it likes has none that a client shows.
// Source: MCP 2025-11-25, base protocol (icons).

import { isObject, type Json } from '../mcp/message.js';

export const ICONS = 'icons';

const QUIET_ICON = /^data:image\/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]*={0,2}$/;

/** True for an object with icons of which not all are pictures in data URLs. */
export function hasRemoteIcons(holder: { readonly [name: string]: Json }): boolean {
  const icons = holder[ICONS];
  return icons !== undefined && areRemote(icons);
}

/** True for a value of `icons` that is anything but a list of pictures in data URLs. */
export function areRemote(icons: Json): boolean {
  if (!Array.isArray(icons)) return true;
  return !icons.every((icon: Json) => {
    const source = isObject(icon) ? icon['src'] : undefined;
    return typeof source === 'string' && QUIET_ICON.test(source);
  });
}

/** Members below which names are not the protocol's: schemas, arguments, and what a tool or a log tells. */
const FREE: ReadonlySet<string | number> = new Set([
  'structuredContent',
  'inputSchema',
  'outputSchema',
  'requestedSchema',
  'arguments',
  'input',
  'metadata',
  'data',
]);
const META = '_meta';
/** The member of `_meta` in which a server of 2026 names itself. */
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** Whether names below this step of a path are nobody's but their author's; `above` is the step before it. */
export function isFree(step: string | number, above: string | number | undefined): boolean {
  return FREE.has(step) || (above === META && step !== SERVER_INFO);
}

/** Whether a member called `icons` is one of the protocol, by its path. */
export function isProtocolIcons(path: readonly (string | number)[]): boolean {
  return !path.some((step, at) => isFree(step, path[at - 1]));
}
