// A server of the MCP Apps extension that shows what it draws only to clients that declare the extension, in
// both eras: the others get a plain form of the same tool, and know nothing of its resource.

import type { Json } from '../../src/protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../../src/protocol/jsonrpc.js';
import { jsonBody } from './hostile-acts.js';
import type { Act, HostileRequest, Order } from './hostile-upstream.js';
import { STATELESS_VERSION } from './wire-client.js';

export const APPS = 'io.modelcontextprotocol/ui';
export const APP_TYPE = 'text/html;profile=mcp-app';
export const APP_URI = 'ui://forecast/view.html';

/** What a host declares. */
export const HOST: JsonObject = { extensions: { [APPS]: { mimeTypes: [APP_TYPE] } } };

/** What is told of where an app runs would be cut or neutralized in any other result. */
export const APP_CONTENTS: readonly JsonObject[] = [
  {
    uri: APP_URI,
    mimeType: APP_TYPE,
    text: '<!doctype html><script>parent.postMessage("ready", "*")</script>',
  },
];

const INPUT = { type: 'object', properties: { place: { type: 'string' } } };
const PLAIN_TOOL: JsonObject = {
  name: 'forecast',
  description: 'Tells the weather in words.',
  inputSchema: INPUT,
};
const SHOWN_TOOL: JsonObject = {
  name: 'forecast',
  description: 'Draws the weather.',
  inputSchema: { ...INPUT, required: ['place'] },
  _meta: { ui: { resourceUri: APP_URI } },
};
/** For the app itself, and for nobody else. */
const APP_TOOL: JsonObject = {
  name: 'refresh',
  inputSchema: { type: 'object' },
  _meta: { ui: { resourceUri: APP_URI, visibility: ['app'] } },
};

export type AppsServer = {
  readonly order: Order;
  /** From now on everyone is offered what the others were: hosts the plain form, and the rest that of hosts. */
  swap(): void;
  /** Tools that are offered besides, or in place of those of their names, to those who declare the extension. */
  readonly more: JsonObject[];
  /** What the clients of these requests declared, each once, as JSON; of a request in a session nothing. */
  declared(seen: readonly HostileRequest[]): readonly string[];
};

/** Makes one. Sessions are known by their ids, which say what was declared in them. */
export function createAppsServer(): AppsServer {
  const more: JsonObject[] = [];
  let opened = 0;
  let isSwapped = false;

  function inSession(request: HostileRequest): Act | undefined {
    if (request.method !== 'initialize') {
      const id = request.headers['mcp-session-id'];
      if (id === undefined) return jsonBody(errorFor(request, -32600), 400);
      return answer(request, id.startsWith('shows'), {});
    }
    const { protocolVersion = '2025-11-25', capabilities } = paramsIn(request);
    const isShown = showsApps(capabilities);
    opened += 1;
    const id = `${isShown ? 'shows' : 'plain'}-${opened}`;
    const result = { protocolVersion, ...handshakeOf(isShown) };
    const act = jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
    if (act.kind !== 'http') return act;
    return { ...act, headers: { ...act.headers, 'mcp-session-id': id } };
  }

  function stateless(request: HostileRequest): Act {
    const isShown = showsApps(declaredIn(request));
    const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
    if (request.method !== 'server/discover') return answer(request, isShown, complete);
    const result = { supportedVersions: [STATELESS_VERSION], ...handshakeOf(isShown), ...complete };
    return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
  }

  function answer(request: HostileRequest, isHost: boolean, members: JsonObject): Act {
    const isShown = isHost !== isSwapped;
    const result = resultFor(request, isShown, isShown ? more : []);
    if (result === undefined) return jsonBody(errorFor(request, -32602));
    return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result: { ...result, ...members } });
  }

  return {
    more,
    swap() {
      isSwapped = !isSwapped;
    },
    declared: (seen) => [...new Set(seen.flatMap((request) => declarationIn(request) ?? []))],
    order(request) {
      if (request.httpMethod === 'DELETE') return { kind: 'http', status: 200 };
      if (request.httpMethod !== 'POST') return { kind: 'http', status: 405 };
      if (request.id === undefined) return { kind: 'http', status: 202 };
      const isStateless = request.headers['mcp-protocol-version'] === STATELESS_VERSION;
      return isStateless ? stateless(request) : inSession(request);
    },
  };
}

function handshakeOf(isShown: boolean): JsonObject {
  const own = isShown ? { extensions: { [APPS]: {} } } : {};
  return {
    capabilities: { tools: {}, resources: {}, ...own },
    serverInfo: { name: 'apps', version: '1' },
  };
}

function resultFor(
  { method, name }: HostileRequest,
  isShown: boolean,
  more: readonly JsonObject[],
): JsonObject | undefined {
  switch (method) {
    case 'tools/list':
      return { tools: isShown ? [...shownBeside(more), ...more] : [PLAIN_TOOL] };
    case 'resources/list':
      return { resources: isShown ? [{ uri: APP_URI, name: 'view', mimeType: APP_TYPE }] : [] };
    case 'resources/templates/list':
      return { resourceTemplates: [] };
    case 'resources/read':
      return isShown && name === APP_URI ? { contents: APP_CONTENTS } : undefined;
    case 'tools/call':
      return { content: [{ type: 'text', text: isShown ? 'drawn' : 'in words' }] };
    case 'ping':
      return {};
    default:
      return undefined;
  }
}

function shownBeside(more: readonly JsonObject[]): readonly JsonObject[] {
  const names = more.map(({ name }) => name);
  return [SHOWN_TOOL, APP_TOOL].filter(({ name }) => !names.includes(name));
}

function errorFor({ id }: HostileRequest, code: number): JsonObject {
  return { jsonrpc: '2.0', id: id ?? 0, error: { code, message: 'No such thing.' } };
}

function paramsIn({ message }: HostileRequest): JsonObject {
  const params = message?.['params'];
  return isObject(params) ? params : {};
}

function declaredIn(request: HostileRequest): Json | undefined {
  const meta = paramsIn(request)['_meta'];
  return isObject(meta) ? meta['io.modelcontextprotocol/clientCapabilities'] : undefined;
}

function extensionsIn(capabilities: Json | undefined): Json | undefined {
  return isObject(capabilities) ? capabilities['extensions'] : undefined;
}

function showsApps(capabilities: Json | undefined): boolean {
  const extensions = extensionsIn(capabilities);
  return isObject(extensions) && extensions[APPS] !== undefined;
}

/** The extensions that a handshake or a stateless request declares; `undefined` for what declares nothing. */
function declarationIn(request: HostileRequest): string | undefined {
  const capabilities =
    request.method === 'initialize' ? paramsIn(request)['capabilities'] : declaredIn(request);
  return capabilities === undefined
    ? undefined
    : JSON.stringify(extensionsIn(capabilities) ?? 'none');
}
