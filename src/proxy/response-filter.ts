// Filters the responses that depend on the caller: handshakes and lists. Whether an item is visible is decided
// by the same function that decides calls. What a page shows updates the catalog for all callers before any of
// them sees it.
// Source: docs/contract.md, law 2; docs/reference/definitions.md; docs/reference/responses.md; MCP 2025-11-25 lifecycle
// and tools, 2026-07-28 server/discover.

import {
  type CachedPage,
  completeHandshake,
  completeList,
  filterItems,
  type HandshakeOutcome,
  type ListInput,
  type ListItem,
  type ListOutcome,
  reduceHandshake,
} from '../inspection/result-filters.js';
import { digestInTurns } from '../pins/digest.js';
import { isListed as isListedFor } from '../policy/decide.js';
import type { PinKind, PinState } from '../policy/definitions.js';
import { narrowInputSchema } from '../policy/narrowed-schema.js';
import { presentationError, presentDefinition } from '../policy/presentation.js';
import { addFindings, type Finding, fold } from '../policy/record.js';
import { matchKey } from '../policy/rules.js';
import type { SessionTarget } from '../protocol/admitted-request.js';
import { filterServerCapabilities } from '../protocol/capabilities.js';
import { runInTurns } from '../protocol/json/incremental.js';
import { hasInexactNumber, type ParsedJson, removeMember } from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject, requestIdOf, type Target } from '../protocol/jsonrpc.js';
import { LISTS, type ListKind } from '../protocol/methods.js';
import { cutServerNulls } from '../protocol/null-members.js';
import { paramsOf } from '../protocol/params.js';
import { readTaskCapabilities } from '../protocol/tasks.js';
import { type Bytes, sizeOfBytes } from '../protocol/transport.js';
import { servedVersion } from '../protocol/versions/revisions.js';
import { taskForm } from './features/task-requests.js';
import { cutUnpinnedText, sealsCursors, withCursor } from './flows.js';
import { turnsOf } from './message-reading.js';
import type { ObservedPage } from './ports.js';
import { profileOf, type RequestContext, refreshSnapshot } from './request-context.js';
import { type MessageOutcome, NO_HEADERS, type ResponsePlan, respond, withhold } from './response-context.js';

const PINNED_KINDS: readonly PinKind[] = ['tool', 'prompt', 'template'];

/**
 * Whether the caller may see any item. Instructions steer a model towards items, so a caller who may see none of
 * them gets no instructions (docs/contract.md, law 1).
 */
function listsAnything(call: RequestContext, responsePlan: ResponsePlan): boolean {
  const catalog = call.snapshot.catalogFor(responsePlan.admitted);
  return PINNED_KINDS.some((kind) =>
    catalog.names(kind).some((name) => isListed(call, responsePlan, targetOf(kind, name))),
  );
}

/** Whether the caller may see one item of a page. `pin` is its kind; resources have none. */
function isItemListed(
  call: RequestContext,
  responsePlan: ResponsePlan,
  pin: PinKind | undefined,
  { name, digest }: ListItem,
): boolean {
  if (pin === undefined) return isListed(call, responsePlan, { kind: 'resource', uri: name });
  const catalog = call.snapshot.catalogFor(responsePlan.admitted);
  // Approval covers the definition, not the name, so this page must show exactly the definition last observed.
  const { observed, variants = [] } = catalog.statusOf(pin, name);
  const isLastObserved =
    catalog.mode === 'off' || observed === digest || variants.some((variant) => variant.digest === digest);
  return isLastObserved && isListed(call, responsePlan, targetOf(pin, name));
}

function targetOf(kind: PinKind, name: string): Target {
  switch (kind) {
    case 'tool':
    case 'prompt':
      return { kind, name };
    case 'template':
      return { kind, uriTemplate: name };
    case 'resource':
      return { kind, uri: name };
  }
}

function isListed(call: RequestContext, { principal, admitted }: ResponsePlan, target: Target): boolean {
  const { policies } = call.snapshot;
  const catalog = call.snapshot.catalogFor(admitted);
  return isListedFor(policies, principal, catalog.upstream, target, catalog);
}

/** The cache key of a page: which page of which list the client requested. */
function pageKey(call: RequestContext, { admitted }: ResponsePlan): string {
  return JSON.stringify([
    call.incoming.upstream,
    admitted.protocol.era,
    admitted.apps,
    admitted.rule.method,
    paramsOf(admitted)['cursor'] ?? null,
  ]);
}

/** The rest of a filtered page's cache key, besides its bytes: the snapshot and the caller's rules. */
function policyKey(call: RequestContext, { principal, responseObligations }: ResponsePlan): string {
  return `${call.snapshot.id} ${matchKey(call.snapshot.policies, principal)} ${responseObligations.profiles.join(' ')}`;
}

/** A response to be filtered. `bytes` is set if the body was read whole, so that its page can be recognized. */
export type FilterInput = {
  readonly call: RequestContext<'audit' | 'cursors' | 'inspection' | 'sessions' | 'upstreams'>;
  readonly responsePlan: ResponsePlan;
  readonly reading: ParsedJson;
  readonly result: JsonObject;
  /** The session that a handshake opens. */
  readonly openedSession: SessionTarget;
  readonly bytes: Uint8Array | undefined;
};

const LIST_METHODS: {
  readonly [method: string]: { readonly list: ListKind; readonly pin: PinKind | undefined };
} = {
  'tools/list': { list: 'tools', pin: 'tool' },
  'prompts/list': { list: 'prompts', pin: 'prompt' },
  'resources/templates/list': { list: 'templates', pin: 'template' },
  'resources/list': { list: 'resources', pin: undefined },
};
/** MCP 2025-11-25, session management: visible ASCII only. */
const SESSION_ID_FORM = /^[\x21-\x7e]{1,4096}$/;
/** Items that the record names as left out. */
const MAX_NAMED_ITEMS = 5;
/** Items of longer pages are digested in slices, so that other work can run in between. */
const LARGE_PAGE_CHARS = 32 * 1024;

/** Filters the result of a handshake or a list. */
export function filterResponse(filtering: FilterInput): MessageOutcome | Promise<MessageOutcome> {
  const { method } = filtering.responsePlan.admitted.rule;
  if (method === 'initialize' || method === 'server/discover') return filterHandshakeResponse(filtering, method);
  const kind = LIST_METHODS[method];
  return kind === undefined ? withhold('internal') : filterListResponse(filtering, kind);
}

/** A page seen before with the same bytes and the same viewer key: the filtered bytes of that time, with this id. */
export function recallList(
  call: RequestContext<'inspection'>,
  responsePlan: ResponsePlan,
  bytes: Bytes,
): MessageOutcome | undefined {
  const { admitted } = responsePlan;
  const id = requestIdOf(responsePlan.admitted.message);
  if (LIST_METHODS[admitted.rule.method] === undefined || id === undefined) return undefined;
  const page = call.ports.inspection.pages
    .find(pageKey(call, responsePlan), bytes, id)
    ?.filtered(policyKey(call, responsePlan));
  if (page === undefined) return undefined;
  const pieces = page.render(id);
  recordList(call, page, sizeOfBytes(bytes), sizeOfBytes(pieces));
  addFindings(call.record, page.findings);
  return {
    kind: 'response',
    text: undefined,
    pieces,
    headers: NO_HEADERS,
    isError: false,
    rpcCode: undefined,
  };
}

async function filterHandshakeResponse(
  filtering: FilterInput,
  method: 'initialize' | 'server/discover',
): Promise<MessageOutcome> {
  const { call, responsePlan, reading, result } = filtering;
  const { protocol, apps } = responsePlan.admitted;
  const form = taskForm(call, protocol, result);
  const filtered = reduceHandshake({
    text: reading.text,
    value: reading.value,
    method,
    profile: profileOf(call, responsePlan.responseObligations),
    carriedVersions: protocol.revisions,
    instructions: listsAnything(call, responsePlan)
      ? call.snapshot.catalogFor(responsePlan.admitted).instructions
      : undefined,
    listTtlMs: call.snapshot.limits.listTtlMs,
    filterCapabilities: (declared) => filterServerCapabilities(declared, { form, apps }),
    reduce: (text) => cutUnpinnedText(call.snapshot, method, text),
  });
  if (filtered.kind === 'withhold') return refuseWithheld(call, filtered);
  const { inspectionInput } = filtered;
  const inspected = await call.ports.inspection.message(inspectionInput, call.incoming.upstream, call.callerKey);
  return finishHandshakeResponse(filtering, form, completeHandshake(filtered, inspected));
}

const OTHER_INSTRUCTIONS: Finding = {
  detector: 'instructions',
  direction: 'to-client',
  path: '/result/instructions',
  count: 1,
  action: 'strip',
};

function finishHandshakeResponse(
  { call, responsePlan, result, openedSession }: FilterInput,
  form: ReturnType<typeof taskForm>,
  outcome: HandshakeOutcome,
): MessageOutcome {
  const { protocol, apps } = responsePlan.admitted;
  if (outcome.kind === 'withhold') return refuseWithheld(call, outcome);
  addFindings(call.record, outcome.findings);
  const text = cutServerNulls(responsePlan.admitted.rule.method, outcome.text);
  if (outcome.hadOtherInstructions) {
    addFindings(call.record, [OTHER_INSTRUCTIONS]);
  }
  if (!protocol.issuesSessionIds) return respond(text);
  if (openedSession.kind === 'upstream' && openedSession.id !== undefined && !SESSION_ID_FORM.test(openedSession.id))
    return withhold('upstream-protocol');
  const negotiated = String(result['protocolVersion']);
  const version = servedVersion(negotiated, protocol.revisions) ?? negotiated;
  const sealed = call.ports.sessions.seal(
    {
      version,
      target: openedSession,
      allowedServerRequests: responsePlan.admitted.allowedServerRequests,
      elicitation: responsePlan.admitted.elicitation,
      apps,
      tasks: form === 'session' ? readTaskCapabilities(result['capabilities']) : [],
    },
    call.incoming.upstream,
    responsePlan.principal,
  );
  fold(call.record, { client: { session: call.ports.audit.keyedHash('session', sealed) } });
  return {
    kind: 'response',
    text,
    headers: { 'mcp-session-id': sealed },
    isError: false,
    rpcCode: undefined,
  };
}

function filterListResponse(
  filtering: FilterInput,
  kind: { readonly list: ListKind; readonly pin: PinKind | undefined },
): MessageOutcome | Promise<MessageOutcome> {
  const { call } = filtering;
  const confirmed = kind.pin && confirmApproved(filtering, kind.list, kind.pin);
  if (confirmed === undefined) return filterListSoon(filtering, kind);
  return confirmed.then(() => {
    refreshSnapshot(call);
    return filterListSoon(filtering, kind);
  });
}

/**
 * An update that was approved may show in a page before the gateway has listed it. The page alone brings no form into
 * force, because a server may show its callers different ones: the gateway lists again at once, and its own listing
 * decides. So it does where it could not read the list before. `undefined` if the page shows nothing of the kind.
 */
function confirmApproved(
  { call, responsePlan, result }: FilterInput,
  list: ListKind,
  pin: PinKind,
): Promise<void> | undefined {
  const { mode, approves, statusOf } = call.snapshot.catalogFor(responsePlan.admitted);
  const isVerified = call.snapshot.isKindVerified(pin);
  const items = result[LISTS[list].member];
  if (mode === 'off' || approves === undefined || !Array.isArray(items)) return undefined;
  const forms = items.filter(isObject).flatMap((item) => {
    const name = item[LISTS[list].name];
    if (typeof name !== 'string') return [];
    if (isVerified && !OUT_OF_FORCE.has(statusOf(pin, name).state)) return [];
    const digest = call.ports.inspection.digest(pin, item, true);
    return approves(pin, name, digest) ? [{ name, digest }] : [];
  });
  if (forms.length === 0) return undefined;
  return call.ports.upstreams.confirmForms(call.incoming.upstream, pin, forms);
}

/** States in which an approved form is in force for nobody, until a listing shows it and no other. */
const OUT_OF_FORCE: ReadonlySet<PinState> = new Set(['changed', 'absent']);

function filterListSoon(
  filtering: FilterInput,
  kind: { readonly list: ListKind; readonly pin: PinKind | undefined },
): MessageOutcome | Promise<MessageOutcome> {
  const { call, reading } = filtering;
  const { list, pin } = kind;
  if (pin === undefined) return decideInSlices(filtering).then((listed) => filterListNow(filtering, kind, listed));
  const isLarge = reading.text.length > LARGE_PAGE_CHARS;
  if (!isLarge && !call.snapshot.reviewsPages) return filterListNow(filtering, kind);
  const digested = isLarge ? digestPage(filtering, list, pin) : Promise.resolve();
  return digested
    .then(() => scanPage(filtering, list, pin))
    .then(() => {
      refreshSnapshot(call);
      return filterListNow(filtering, kind);
    });
}

/** Without pins, the scan alone decides about what a page shows. */
async function scanPage({ call, result }: FilterInput, list: ListKind, pin: PinKind): Promise<void> {
  const items = result[LISTS[list].member];
  if (!call.snapshot.reviewsPages || !Array.isArray(items)) return;
  await call.ports.upstreams.scanPage(call.incoming.upstream, pin, items.filter(isObject));
}

/**
 * Of pages with numbers that may be inexact only the content is hashed, because whether an item has a digest depends on
 * its text.
 */
async function digestPage({ call, reading, result }: FilterInput, list: ListKind, pin: PinKind): Promise<void> {
  const items = result[LISTS[list].member];
  if (!Array.isArray(items)) return;
  const isExact = !reading.suspectNumbers;
  await digestInTurns(
    turnsOf(call),
    pin,
    items.filter(isObject).map((definition) => ({ definition, isExact })),
  );
}

/** Decides about the resources of a page beforehand and in slices: a URI may take long, however short the page. */
async function decideInSlices({ call, responsePlan, result }: FilterInput): Promise<ReadonlyMap<string, boolean>> {
  const { resources } = result;
  const listed = new Map<string, boolean>();
  await runInTurns(turnsOf(call), Array.isArray(resources) ? resources : [], (item: Json) => {
    const uri = isObject(item) ? item['uri'] : undefined;
    if (typeof uri !== 'string' || listed.has(uri)) return;
    listed.set(uri, isListed(call, responsePlan, { kind: 'resource', uri }));
  });
  return listed;
}

async function filterListNow(
  filtering: FilterInput,
  kind: { readonly list: ListKind; readonly pin: PinKind | undefined },
  listed?: ReadonlyMap<string, boolean>,
): Promise<MessageOutcome> {
  const { call, responsePlan, bytes } = filtering;
  const id = requestIdOf(responsePlan.admitted.message);
  const cachedPage =
    bytes === undefined || id === undefined
      ? undefined
      : call.ports.inspection.pages.find(pageKey(call, responsePlan), bytes, id);
  const page = filterItems(listInput(filtering, kind, cachedPage, listed));
  if (page.kind === 'withhold') return refuseWithheld(call, page);
  // Cached under the viewer key of the time of filtering, whatever snapshot is in force after the inspection.
  const filteredKey = policyKey(call, responsePlan);
  const { inspectionInput } = page;
  const inspected = await call.ports.inspection.message(inspectionInput, call.incoming.upstream, call.callerKey);
  return finishListResponse(filtering, cachedPage, filteredKey, completeList(page, inspected));
}

function finishListResponse(
  { call, responsePlan, reading, result, bytes }: FilterInput,
  cachedPage: CachedPage | undefined,
  filteredKey: string,
  outcome: ListOutcome,
): MessageOutcome {
  if (outcome.kind === 'withhold') return refuseWithheld(call, outcome);
  const { items, findings, odd } = outcome;
  if (odd.length > 0)
    fold(call.record, { decision: { detail: `left out: ${odd.slice(0, MAX_NAMED_ITEMS).join('; ')}` } });
  const { method } = responsePlan.admitted.rule;
  // Last: pins and digests are of what the server said.
  const withoutNulls = cutServerNulls(method, outcome.text);
  const text = sealsCursors(call.snapshot)
    ? withCursor(call, method, withoutNulls, result['nextCursor'])
    : withoutNulls;
  addFindings(call.record, findings);
  const receivedBytes = bytes?.byteLength ?? Buffer.byteLength(reading.text);
  recordList(call, outcome, receivedBytes, Buffer.byteLength(text));
  const id = requestIdOf(responsePlan.admitted.message);
  if (bytes !== undefined && id !== undefined) {
    const page =
      cachedPage ??
      call.ports.inspection.pages.keep(pageKey(call, responsePlan), { bytes, text: reading.text, id }, items);
    page?.keepFiltered(filteredKey, text, outcome);
  }
  return respond(text === reading.text ? undefined : text);
}

function listInput(
  { call, responsePlan, reading }: FilterInput,
  { list, pin }: { readonly list: ListKind; readonly pin: PinKind | undefined },
  cachedPage: CachedPage | undefined,
  listed: ReadonlyMap<string, boolean> | undefined,
): ListInput {
  const { hasCacheHints, findShapeError } = responsePlan.admitted.protocol;
  const digests = new Map(cachedPage?.items.map((item) => [item.name, item.digest]));
  const observedItems: { name: string; digest: string; definition: JsonObject }[] = [];
  let isNoted = pin === undefined;
  const withheld = new Set<string>();

  /** INVARIANT: the whole page is noted in the catalog before its first item is checked. */
  function notePageOnce(kind: PinKind): void {
    if (isNoted) return;
    isNoted = true;
    const page: ObservedPage = { kind, items: observedItems };
    call.ports.upstreams.notePage(call.incoming.upstream, page);
    refreshSnapshot(call);
    const catalog = call.snapshot.catalogFor(responsePlan.admitted);
    for (const { name, ...item } of observedItems) {
      const presented = kind === 'tool' ? call.snapshot.presentation?.byTool.get(name) : undefined;
      const isUnpresentable = presented !== undefined && presentationError(presented, item.definition) !== undefined;
      if (isUnpresentable || catalog.withholds?.(kind, name, item)) withheld.add(name);
    }
  }

  return {
    text: reading.text,
    value: reading.value,
    kind: list,
    hasCacheHints,
    findShapeError,
    profile: profileOf(call, responsePlan.responseObligations),
    listTtlMs: call.snapshot.limits.listTtlMs,
    isReviewed: pin !== undefined && call.snapshot.catalogFor(responsePlan.admitted).mode === 'strict',
    digestOf(definition, itemText) {
      if (pin === undefined) return undefined;
      const name = String(definition[pin === 'template' ? 'uriTemplate' : 'name']);
      const isExact = !(reading.suspectNumbers && hasInexactNumber(itemText, { start: 0, end: itemText.length }));
      const digest = digests.get(name) ?? call.ports.inspection.digest(pin, definition, isExact);
      observedItems.push({ name, digest, definition });
      return digest;
    },
    isVisible(item) {
      if (pin !== undefined) notePageOnce(pin);
      const decided = listed?.get(item.name);
      return decided ?? (!withheld.has(item.name) && isItemListed(call, responsePlan, pin, item));
    },
    // A sealed cursor looks like a secret, so the page is inspected without it.
    reduce(text) {
      const cut = cutUnpinnedText(call.snapshot, LISTS[list].method, text);
      return sealsCursors(call.snapshot) ? { ...cut, text: removeMember(cut.text, ['result'], 'nextCursor') } : cut;
    },
    ...(pin === 'tool' ? { editsOf: editsFor(call, responsePlan) } : {}),
    ...(pin === undefined
      ? {}
      : {
          rankOf: (name: string) => call.snapshot.catalogFor(responsePlan.admitted).rankOf?.(pin, name),
        }),
  };
}

/**
 * Shows the caller which arguments its rules allow, of the tool as the operator presents it. The catalog, and with it
 * every digest, has what the page says.
 */
function editsFor(call: RequestContext, { principal }: ResponsePlan): NonNullable<ListInput['editsOf']> {
  return (definition) => {
    const { policies, upstream, presentation } = call.snapshot;
    const narrowing = narrowInputSchema(policies, principal, upstream, definition);
    const presented = presentation?.byTool.get(String(definition['name']));
    return presented === undefined ? narrowing : presentDefinition(presented, definition, narrowing);
  };
}

function refuseWithheld(
  call: RequestContext,
  outcome: Extract<HandshakeOutcome, { kind: 'withhold' }>,
): MessageOutcome {
  addFindings(call.record, outcome.findings);
  return withhold(outcome.reason, outcome.detail);
}

function recordList(
  { record }: RequestContext,
  { advertised, visible }: { readonly advertised: number; readonly visible: number },
  advertisedBytes: number,
  visibleBytes: number,
): void {
  fold(record, { result: { list: { advertised, visible, advertisedBytes, visibleBytes } } });
}
