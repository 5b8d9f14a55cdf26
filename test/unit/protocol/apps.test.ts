// The declaration of the Apps extension in a client's capabilities: what stays of it, in what form, and when.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitPost } from '../../../src/protocol/admission.js';
import { APPS_EXTENSION, APPS_SETTINGS, declaresApps } from '../../../src/protocol/capabilities.js';
import { applyEdits } from '../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { TASKS_EXTENSION } from '../../../src/protocol/tasks.js';
import { META, opener, SESSION } from './admission.js';

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const HOST = { extensions: { [APPS_EXTENSION]: APPS_SETTINGS } };

type Era = 'sessions' | 'stateless';

function textOf(era: Era, capabilities: string): string {
  if (era === 'sessions')
    return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":${capabilities}}}`;
  const meta = `{${JSON.stringify(META).slice(1, -1).replace(`"${CAPABILITIES}":{}`, `"${CAPABILITIES}":${capabilities}`)}}`;
  return `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`;
}

/** What leaves of these capabilities, as JSON text, and whether the message counts as a host's. */
function admit(era: Era, capabilities: string, mayShowApps = true, isChannel = false) {
  const headers: Record<string, string> =
    era === 'stateless'
      ? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
      : isChannel
        ? { 'mcp-session-id': 's-1' }
        : {};
  const outcome = admitPost({
    headers,
    repeated: new Set(),
    body: new TextEncoder().encode(textOf(era, capabilities)),
    isLegacySse: isChannel,
    openSession: opener(isChannel ? { ...SESSION, version: '2024-11-05' } : SESSION),
    mayShowApps: () => mayShowApps,
  });
  if (outcome.kind !== 'admitted') throw new Error(JSON.stringify(outcome));
  const sent = JSON.parse(applyEdits(outcome.text, outcome.edits)) as { params: JsonObject };
  const meta = sent.params['_meta'] as JsonObject | undefined;
  const left = era === 'sessions' ? sent.params['capabilities'] : meta?.[CAPABILITIES];
  return { left, apps: outcome.apps };
}

describe.each(['sessions', 'stateless'] as const)('in %s', (era) => {
  it('[APP-06] stays where it may, in one form, and nothing beside it but tasks where they are carried', () => {
    const name = fc.constantFrom(APPS_EXTENSION, TASKS_EXTENSION, 'com.example/x');
    const settings = fc.oneof(
      fc.constant(APPS_SETTINGS),
      fc.constant({ more: [1], mimeTypes: ['text/html;profile=mcp-app', 'a'] }),
      fc.constant({ mimeTypes: ['text/html'] }),
      fc.constant({}),
      fc.constantFrom(null, 1, 'x', []),
    );
    const extensions = fc.dictionary(name, settings, { noNullPrototype: true });
    const property = fc.property(extensions, fc.boolean(), (written, mayShow) => {
      const capabilities = { extensions: written, other: { a: 1 } };
      const { left, apps } = admit(era, JSON.stringify(capabilities), mayShow);
      const isHost = mayShow && declaresApps(capabilities as JsonObject);
      const tasks = written[TASKS_EXTENSION];
      const hasTasks = era === 'stateless' && typeof tasks === 'object' && tasks !== null && !Array.isArray(tasks);
      const kept = {
        ...(hasTasks ? { [TASKS_EXTENSION]: tasks } : {}),
        ...(isHost ? { [APPS_EXTENSION]: APPS_SETTINGS } : {}),
      };
      const hasAny = Object.keys(kept).length > 0;
      expect(apps).toBe(isHost);
      expect(left).toEqual({ other: { a: 1 }, ...(hasAny ? { extensions: kept } : {}) });
    });
    expect(() => fc.assert(property)).not.toThrow();
  });

  it('[APP-06] is read as every parser reads it, whatever is escaped or blank', () => {
    const written =
      '{ "extensions" : { "a" : 1 , "io.modelcontextprotocol\\u002fui" : { "mimeTypes" : [ "text\\/html;profile=mcp-app" ] } , "b" : 2 } }';
    expect(admit(era, written)).toEqual({ left: HOST, apps: true });
    expect(admit(era, written, false)).toEqual({ left: {}, apps: false });
  });

  it('[APP-06] is none in another spelling', () => {
    const misspelt = { extensions: { [APPS_EXTENSION.toUpperCase()]: APPS_SETTINGS } };
    expect(admit(era, JSON.stringify(misspelt))).toEqual({ left: {}, apps: false });
    expect(admit(era, JSON.stringify({ Extensions: HOST.extensions }))).toEqual({
      left: {},
      apps: false,
    });
  });

  it('[APP-06] may not stay where nobody says so', () => {
    expect(admit(era, JSON.stringify(HOST), false)).toEqual({ left: {}, apps: false });
  });
});

it('[APP-06] is not carried over HTTP+SSE', () => {
  expect(admit('sessions', JSON.stringify(HOST), true, true)).toEqual({ left: {}, apps: false });
});
