// Filters declared capabilities: a client sees of a server's only what the gateway supports, and a server
// sees of a client's only what is supported and granted. What is not named here is removed, so that neither
// side relies on something that would be refused. A client's message is edited as text, so that everything
// else is forwarded byte for byte.
// Source: MCP 2025-11-25, lifecycle, capability negotiation; MCP 2026-07-28, server/discover and base
// protocol, `_meta`; MCP Apps extension (SEP-1865), capability negotiation; docs/reference/responses.md.

import { foldName } from '../text/json-members.js';
import type { ElicitationMode, TextEdit } from './admitted-request.js';
import { removalEdits, spanOf } from './json/json.js';
import type { Json } from './jsonrpc.js';
import { isObject, type JsonObject, type ServerRequestName } from './jsonrpc.js';
import { declaredServerRequests, isGranted, NO_GRANTS, type ServerRequestGrants } from './server-requests.js';
import { declaresTasks, readTaskCapabilities, TASKS_EXTENSION, type TaskForm, writeTaskCapabilities } from './tasks.js';
import { isTraceMember, takeTraceMembers } from './trace-context.js';

/** The name of the Apps extension, in the capabilities of both sides. With it a host declares that it shows apps. */
export const APPS_EXTENSION = 'io.modelcontextprotocol/ui';

/** The only content type that the extension defines. */
const APP_TYPE = 'text/html;profile=mcp-app';

/**
 * What a host declares under the name of the extension; always in this form, so that all hosts are offered
 * the same.
 */
export const APPS_SETTINGS: JsonObject = Object.freeze({ mimeTypes: [APP_TYPE] });

/** The declaration, as client capabilities. */
export const APPS_CAPABILITIES: JsonObject = Object.freeze({
  extensions: { [APPS_EXTENSION]: APPS_SETTINGS },
});

/** True if the capabilities name the extension with the content type that it defines. */
export function declaresApps(capabilities: Json | undefined): boolean {
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  const settings = isObject(extensions) ? extensions[APPS_EXTENSION] : undefined;
  const types = isObject(settings) ? settings['mimeTypes'] : undefined;
  return Array.isArray(types) && types.includes(APP_TYPE);
}

/** True if a server names the extension, with or without settings: the extension defines none for servers. */
export function servesApps(capabilities: JsonObject): boolean {
  const { extensions } = capabilities;
  return isObject(extensions) && isObject(extensions[APPS_EXTENSION]);
}

const LIST_CAPABILITIES: ReadonlySet<string> = new Set(['prompts', 'resources', 'tools']);
const PLAIN_CAPABILITIES: ReadonlySet<string> = new Set(['completions', 'logging']);

/**
 * The server capabilities to declare to a client, in the order in which the server has them. `listChanged` is always
 * declared where there is a list, because the gateway itself announces drift: on the stream of a session, or on a
 * subscription (2026). `apps`: the client declared the Apps extension, so it may see whether the server did.
 */
export function filterServerCapabilities(capabilities: JsonObject, terms: ServerCapabilityTerms): JsonObject {
  const kept: Record<string, Json> = {};
  for (const [name, declared] of Object.entries(capabilities)) {
    if (!isObject(declared)) continue;
    if (name === 'extensions') Object.assign(kept, keptExtensions(capabilities, terms));
    const capability = keptCapability(name, declared, capabilities, terms);
    if (capability !== undefined) kept[name] = capability;
  }
  return kept;
}

type ServerCapabilityTerms = { readonly form: TaskForm; readonly apps: boolean };

function keptCapability(
  name: string,
  declared: JsonObject,
  capabilities: JsonObject,
  { form }: ServerCapabilityTerms,
): JsonObject | undefined {
  if (PLAIN_CAPABILITIES.has(name)) return {};
  if (LIST_CAPABILITIES.has(name)) return listCapability(declared, name);
  const uses = name === 'tasks' && form === 'session' ? readTaskCapabilities(capabilities) : [];
  return uses.length > 0 ? writeTaskCapabilities(uses) : undefined;
}

function keptExtensions(
  capabilities: JsonObject,
  { form, apps }: ServerCapabilityTerms,
): { readonly extensions?: JsonObject } {
  const hasTasks = form === 'extension' && declaresTasks(capabilities);
  return writeExtensions(hasTasks, apps && servesApps(capabilities));
}

function listCapability(declared: JsonObject, name: string): JsonObject {
  const maySubscribe = name === 'resources' && declared['subscribe'] === true;
  return maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
}

/** The `extensions` member of a server's capabilities; without the member if there are no extensions. */
export function writeExtensions(hasTasks: boolean, hasApps: boolean): { readonly extensions?: JsonObject } {
  const extensions: Record<string, Json> = {};
  if (hasTasks) extensions[TASKS_EXTENSION] = {};
  if (hasApps) extensions[APPS_EXTENSION] = {};
  return Object.keys(extensions).length === 0 ? {} : { extensions };
}

/** Members of `_meta` with this prefix belong to the gateway and never cross from one side to the other. */
export const OWN_META_PREFIX = 'dev.sallyport/';

/** Client capabilities that would let a server request something of the client, or defer a response. */
const REMOVED_CAPABILITIES: ReadonlySet<string> = new Set(['sampling', 'elicitation', 'roots', 'tasks', 'extensions']);

/**
 * True for a capability that is not supported or not granted. In another case than its own it is always
 * removed: a parser that folds case would read a capability that was never declared.
 */
function isRemovedCapability(name: string, grants: ServerRequestGrants = NO_GRANTS): boolean {
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

/** The client capabilities that stay, and the edits that cut the rest out of the text. */
export type CapabilityCut = {
  readonly edits: readonly TextEdit[];
  /** The server requests that are declared and granted. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** The modes of elicitation that are declared, granted or not: by these the gateway itself may ask. */
  readonly elicitation: readonly ElicitationMode[];
  /** Whether the Apps extension is declared and stays. */
  readonly apps: boolean;
};

/** Which declared capabilities may stay. The functions are called only if something is declared. */
export type CapabilityGrants = {
  readonly grants: () => ServerRequestGrants;
  /** Whether the Tasks extension may stay. */
  readonly tasks: boolean;
  /** Whether the Apps extension may stay. */
  readonly apps: () => boolean;
};

/** What a policy grants the caller of this message. `tasks`: whether its revision has the Tasks extension. */
export function grantsOf(
  input: {
    readonly grants?: (() => ServerRequestGrants) | undefined;
    readonly mayShowApps?: (() => boolean) | undefined;
  },
  tasks: boolean,
): CapabilityGrants {
  return {
    grants: () => input.grants?.() ?? NO_GRANTS,
    apps: () => input.mayShowApps?.() ?? false,
    tasks,
  };
}

/** Nothing is declared, so nothing is cut. */
const NOTHING_CUT: CapabilityCut = Object.freeze({
  edits: [],
  allowedServerRequests: [],
  elicitation: [],
  apps: false,
});

/** True for a member of `_meta` with the gateway's own prefix, in any case. */
export function isOwnMember(name: string): boolean {
  return name.length >= OWN_META_PREFIX.length && foldName(name).startsWith(OWN_META_PREFIX);
}

/**
 * Cuts the capabilities that are not supported or not granted out of the object at `path`. Elicitation modes
 * are granted one by one; without any mode left, elicitation is removed entirely, because empty it would mean
 * form mode.
 */
export function cutCapabilities(
  text: string,
  path: readonly string[],
  capabilities: Json | undefined,
  terms: CapabilityGrants,
): CapabilityCut {
  if (!isObject(capabilities) || Object.keys(capabilities).length === 0) return NOTHING_CUT;
  const grants = terms.grants();
  const declared = declaredServerRequests(capabilities);
  const allowedServerRequests = declared.filter((name) => isGranted(grants, name));
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
    ...samplingEdits(text, [...path, 'sampling'], capabilities, grants),
    ...(hasMode ? modeEdits(text, [...path, 'elicitation'], capabilities, grants) : []),
    ...(carried.length > 0 ? extensionEdits(text, [...path, 'extensions'], carried) : []),
  ];
  const span = Object.keys(capabilities).some(isCut) ? spanOf(text, path) : undefined;
  const edits = span === undefined ? within : [...removalEdits(text, span, isCut), ...within];
  return {
    edits: edits.sort((one, other) => one.start - other.start),
    allowedServerRequests,
    elicitation: ELICITATION_MODES.filter((mode) => declared.includes(`elicitation/${mode}`)),
    apps,
  };
}

const ELICITATION_MODES: readonly ElicitationMode[] = ['form', 'url'];

/**
 * Keeps the extensions that the gateway supports. The declaration of apps is rewritten to one form: what a
 * server offers may depend on it, and the gateway's own listing would otherwise differ from what this client
 * sees.
 */
function extensionEdits(text: string, path: readonly string[], carried: readonly string[]): readonly TextEdit[] {
  const span = spanOf(text, path);
  if (span === undefined) return [];
  const edits = removalEdits(text, span, (name) => !carried.includes(name));
  const settings = carried.includes(APPS_EXTENSION) ? spanOf(text, [...path, APPS_EXTENSION]) : undefined;
  const own = JSON.stringify(APPS_SETTINGS);
  if (settings === undefined || text.slice(settings.start, settings.end) === own) return edits;
  return [...edits, { ...settings, text: own }];
}

function modeEdits(
  text: string,
  path: readonly string[],
  capabilities: JsonObject,
  { elicitation }: ServerRequestGrants,
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

/** Removes the members of `sampling` that are not allowed, in upper or lower case, if sampling itself stays. */
function samplingEdits(
  text: string,
  path: readonly string[],
  { sampling }: JsonObject,
  { sampling: isGranted, withoutSampling }: ServerRequestGrants,
): readonly TextEdit[] {
  if (!isGranted || withoutSampling === undefined || !isObject(sampling)) return [];
  const isCut = (name: string): boolean => withoutSampling.some((capability) => foldName(name) === capability);
  const span = Object.keys(sampling).some(isCut) ? spanOf(text, path) : undefined;
  return span === undefined ? [] : removalEdits(text, span, isCut);
}

/** What must not pass in `_meta`: edits that cut it out, and the names of its members. */
type CutMeta = {
  readonly edits: readonly TextEdit[];
  readonly removed: readonly string[];
  /** What the client said of its trace, and `_meta` without it; only where something of the kind was cut. */
  readonly traceparent?: Json | undefined;
  readonly rest?: JsonObject;
};

/** Cuts the gateway's own members out of `_meta` of params or result and, where it traces, the trace of the client. */
export function ownMetaEdits(
  text: string,
  meta: JsonObject | undefined,
  holder: 'params' | 'result' = 'params',
  isTraced = false,
): CutMeta {
  const isRemoved = isTraced ? isOwnOrTraceMember : isOwnMember;
  const removed = meta === undefined ? [] : Object.keys(meta).filter(isRemoved);
  const span = removed.length === 0 ? undefined : spanOf(text, [holder, '_meta']);
  if (meta === undefined || span === undefined) return { edits: [], removed };
  const cut = { edits: removalEdits(text, span, isRemoved), removed };
  return removed.some(isTraceMember) ? { ...cut, ...takeTraceMembers(meta) } : cut;
}

function isOwnOrTraceMember(name: string): boolean {
  return isOwnMember(name) || isTraceMember(name);
}
