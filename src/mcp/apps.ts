// The MCP Apps extension: how a host says that it shows what servers draw. Whoever says so is told of apps,
// and says it in one form, so that all of them are offered the same. Reads values; decides nothing.
// Source: MCP Apps extension (SEP-1865), capability negotiation.

import { isObject, type Json, type JsonObject } from './message.js';

/** The name of the extension, in the capabilities of both sides. */
export const APPS_EXTENSION = 'io.modelcontextprotocol/ui';

/** The one kind of content that the extension defines. */
const APP_TYPE = 'text/html;profile=mcp-app';

/** What a host declares under the name of the extension. */
export const APPS_SETTINGS: JsonObject = Object.freeze({ mimeTypes: [APP_TYPE] });

/** The declaration, as capabilities of a client. */
export const APPS_CAPABILITIES: JsonObject = Object.freeze({
  extensions: { [APPS_EXTENSION]: APPS_SETTINGS },
});

/** Whether capabilities name the extension with the content that it defines. */
export function declaresApps(capabilities: Json | undefined): boolean {
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  const settings = isObject(extensions) ? extensions[APPS_EXTENSION] : undefined;
  const types = isObject(settings) ? settings['mimeTypes'] : undefined;
  return Array.isArray(types) && types.includes(APP_TYPE);
}

/** Whether a server names the extension, with settings or without: the extension defines none for it. */
export function servesApps(capabilities: JsonObject): boolean {
  const { extensions } = capabilities;
  return isObject(extensions) && isObject(extensions[APPS_EXTENSION]);
}
