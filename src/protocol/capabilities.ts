// What of a server's declared capabilities a client may see: what is carried, and nothing else.
// A capability that is not named here is removed, so that no client builds on what would be refused.
// Source: MCP 2025-11-25, lifecycle, capability negotiation; MCP 2026-07-28, server/discover.

import { foldName } from '../text/case-folding.js';
import type { TextEdit } from './admitted-request.js';
import { removalEdits, spanOf } from './json/json.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from './jsonrpc.js';
import { declaredServerRequests, type Grants, isGranted, NO_GRANTS } from './server-requests.js';
import { declaresTasks, readTaskUses, TASKS_EXTENSION, writeTaskUses } from './tasks.js';

// The MCP Apps extension: how a host says that it shows what servers draw. Whoever says so is told of apps,
// and says it in one form, so that all of them are offered the same. Reads values; decides nothing.
// Source: MCP Apps extension (SEP-1865), capability negotiation.

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

const WITH_LIST = ['prompts', 'resources', 'tools'];
const PLAIN = ['completions', 'logging'];

/** How tasks are declared in a client's revision; `none` where it has none, or its upstream speaks another. */
export type TaskForm = 'session' | 'extension' | 'none';

/**
 * The capabilities to declare towards a client. `listChanged` is always declared where there is a list,
 * because the gateway itself announces drift: on the stream of a session, or on a subscription (2026).
 * `apps`: the client has declared the Apps extension, and is told whether its server has.
 */
export function filterServerCapabilities(
  capabilities: JsonObject,
  { form, apps }: { readonly form: TaskForm; readonly apps: boolean },
): JsonObject {
  const kept: Record<string, Json> = {};
  for (const name of PLAIN) {
    if (isObject(capabilities[name])) kept[name] = {};
  }
  for (const name of WITH_LIST) {
    const declared = capabilities[name];
    if (isObject(declared)) kept[name] = listed(declared, name);
  }
  const uses = form === 'session' ? readTaskUses(capabilities) : [];
  if (uses.length > 0) kept['tasks'] = writeTaskUses(uses);
  const hasTasks = form === 'extension' && declaresTasks(capabilities);
  return { ...kept, ...writeExtensions(hasTasks, apps && servesApps(capabilities)) };
}

function listed(declared: JsonObject, name: string): JsonObject {
  const maySubscribe = name === 'resources' && declared['subscribe'] === true;
  return maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
}

/** The extensions that a server is said to have, as a member of its capabilities; nothing where it has none. */
export function writeExtensions(
  hasTasks: boolean,
  hasApps: boolean,
): { readonly extensions?: JsonObject } {
  const extensions: Record<string, Json> = {};
  if (hasTasks) extensions[TASKS_EXTENSION] = {};
  if (hasApps) extensions[APPS_EXTENSION] = {};
  return Object.keys(extensions).length === 0 ? {} : { extensions };
}

// What is cut out of a client's message before it leaves: capabilities that nothing here carries, and
// members of `_meta` in our own name. Cuts are edits of the text, so all else leaves byte for byte.
// Source: MCP 2025-11-25 lifecycle; MCP 2026-07-28 base protocol, `_meta`; docs/contract.md §6.

/** Members of `_meta` under this prefix are ours alone and never cross from one side to the other. */
export const OWN_PREFIX = 'dev.sallyport/';

/** Capabilities of a client that would let a server ask it something, or defer an answer. */
const REMOVED_CAPABILITIES: ReadonlySet<string> = new Set([
  'sampling',
  'elicitation',
  'roots',
  'tasks',
  'extensions',
]);

/**
 * True for a capability that is not carried or not granted. In another case than its own it always goes:
 * nobody has declared what a parser that folds case would read.
 */
function isRemovedCapability(name: string, grants: Grants = NO_GRANTS): boolean {
  switch (name) {
    case 'sampling':
      return !grants.sampling;
    case 'elicitation':
      return !(grants.elicitation.form || grants.elicitation.url);
    case 'roots':
      return !grants.roots;
    default:
      return REMOVED_CAPABILITIES.has(foldName(name));
  }
}

/** What of a client's capabilities stays, and the edits that cut the rest out of the text. */
export type CapabilityCut = {
  readonly edits: readonly TextEdit[];
  /** The questions that are declared and granted. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** The Apps extension is declared and stays. */
  readonly apps: boolean;
};

/** What may stay of declared capabilities. Asked only where something is declared. */
export type CutTerms = {
  readonly grants: () => Grants;
  /** The extension for tasks. */
  readonly tasks: boolean;
  /** The Apps extension. */
  readonly apps: () => boolean;
};

/** Nothing is declared, and nothing cut. */
const NOTHING_CUT: CapabilityCut = Object.freeze({
  edits: [],
  allowedServerRequests: [],
  apps: false,
});

/** True for a member of `_meta` in our own name, in whatever case it is written. */
export function isOwnMember(name: string): boolean {
  return name.length >= OWN_PREFIX.length && foldName(name).startsWith(OWN_PREFIX);
}

/**
 * Cuts the capabilities that are not carried or not granted out of the object at `path`. Of elicitation
 * the modes are granted one by one; with its last mode it goes whole, because empty it would mean forms.
 */
export function cutCapabilities(
  text: string,
  path: readonly string[],
  capabilities: Json | undefined,
  terms: CutTerms,
): CapabilityCut {
  if (!isObject(capabilities) || Object.keys(capabilities).length === 0) return NOTHING_CUT;
  const grants = terms.grants();
  const allowedServerRequests = declaredServerRequests(capabilities).filter((name) =>
    isGranted(grants, name),
  );
  const hasMode = allowedServerRequests.some((name) => name.startsWith('elicitation/'));
  const apps = declaresApps(capabilities) && terms.apps();
  const carried = [
    ...(terms.tasks && declaresTasks(capabilities) ? [TASKS_EXTENSION] : []),
    ...(apps ? [APPS_EXTENSION] : []),
  ];
  const isCut = (name: string): boolean => {
    if (name === 'extensions') return carried.length === 0;
    return isRemovedCapability(name, grants) || (name === 'elicitation' && !hasMode);
  };
  const within = [
    ...(hasMode ? modeEdits(text, [...path, 'elicitation'], capabilities, grants) : []),
    ...(carried.length > 0 ? extensionEdits(text, [...path, 'extensions'], carried) : []),
  ];
  const span = Object.keys(capabilities).some(isCut) ? spanOf(text, path) : undefined;
  const edits = span === undefined ? within : [...removalEdits(text, span, isCut), ...within];
  return {
    edits: edits.sort((one, other) => one.start - other.start),
    allowedServerRequests,
    apps,
  };
}

/**
 * Of the extensions those of the gateway stay. Apps are declared in one form: what a server offers may depend
 * on it, and what the gateway saw for itself would otherwise not be what this client is shown.
 */
function extensionEdits(
  text: string,
  path: readonly string[],
  carried: readonly string[],
): readonly TextEdit[] {
  const span = spanOf(text, path);
  if (span === undefined) return [];
  const edits = removalEdits(text, span, (name) => !carried.includes(name));
  const settings = carried.includes(APPS_EXTENSION)
    ? spanOf(text, [...path, APPS_EXTENSION])
    : undefined;
  const own = JSON.stringify(APPS_SETTINGS);
  if (settings === undefined || text.slice(settings.start, settings.end) === own) return edits;
  return [...edits, { ...settings, text: own }];
}

function modeEdits(
  text: string,
  path: readonly string[],
  capabilities: JsonObject,
  { elicitation }: Grants,
): readonly TextEdit[] {
  const declared = capabilities['elicitation'];
  if (!isObject(declared)) return [];
  const isCut = (name: string): boolean => {
    if (name === 'form' || name === 'url') return !elicitation[name];
    return MODES.has(foldName(name));
  };
  if (!Object.keys(declared).some(isCut)) return [];
  const span = spanOf(text, path);
  return span === undefined ? [] : removalEdits(text, span, isCut);
}

const MODES: ReadonlySet<string> = new Set(['form', 'url']);

/** Edits that cut our own members out of `_meta` of params or result, and the names that they had. */
export function ownMetaEdits(
  text: string,
  meta: JsonObject | undefined,
  holder: 'params' | 'result' = 'params',
): { readonly edits: readonly TextEdit[]; readonly removed: readonly string[] } {
  const removed = meta === undefined ? [] : Object.keys(meta).filter(isOwnMember);
  const span = removed.length === 0 ? undefined : spanOf(text, [holder, '_meta']);
  if (span === undefined) return { edits: [], removed };
  return { edits: removalEdits(text, span, isOwnMember), removed };
}
