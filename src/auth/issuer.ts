// What is fetched from an issuer: its metadata, and its keys. Endpoints are discovered by authorization server
// metadata, then by OpenID Connect. A document that names another issuer is discarded, and the URL found must be of
// the issuer's own origin or public https; of a plaintext issuer it may be plain http on that origin alone. Keys are
// fetched when first needed, again when old or when a token names an unknown one, and kept for a bounded time while
// the issuer cannot be reached. A key set serves only the tokens of its own issuer. No token is verified here.
// RFC 8414 §3 and §3.3, RFC 7517 §5; OpenID Connect Discovery 1.0 §4; OpenID Connect Core §10.1.1 (rotation); MCP
// 2026-07-28, authorization server discovery.

import { type CryptoKey, importJWK, type JWK } from 'jose';
import type { IssuerSettings, Network } from '../config/settings.js';
import { DEVELOPMENT_MEMBER } from '../policy/principal.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { clauseName, kindOf } from '../text/clause.js';

/** The part of the guarded fetch that discovery uses. */
export type FetchJson = (
  url: URL,
  rule: {
    readonly network: Network;
    readonly plaintext?: 'accepted' | undefined;
    readonly origins?: readonly string[];
    readonly maxBytes: number;
    readonly timeoutMs: number;
  },
) => Promise<
  { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly why: string; readonly detail: string }
>;

/** The metadata members that are read, and their names in error messages. */
const ENDPOINTS = {
  jwks_uri: 'key set',
  introspection_endpoint: 'introspection endpoint',
  authorization_endpoint: 'authorization endpoint',
  token_endpoint: 'token endpoint',
} as const;

type EndpointMember = keyof typeof ENDPOINTS;
const ENDPOINT_MEMBERS = Object.keys(ENDPOINTS) as EndpointMember[];

type Failed = { readonly ok: false; readonly detail: string };
/** `leftOut`: one clause for each document and member that is odd and was not used. */
type LeftOut = { readonly leftOut: readonly string[] };
/** `isPairwise`: see {@link isPairwiseOnly}. `isDevelopment`: by its own word. */
type Discovery =
  | ({ readonly ok: true; readonly url: URL; readonly isPairwise: boolean; readonly isDevelopment: boolean } & LeftOut)
  | Failed;
type MetadataReading = { readonly ok: true; readonly metadata: JsonObject } | Failed;
type DiscoveredMetadata = ({ readonly ok: true; readonly metadata: JsonObject } & LeftOut) | Failed;

const MAX_METADATA_BYTES = 64 * 1024;
const METADATA_TIMEOUT_MS = 5_000;

/** All candidates have the same origin: when it cannot be reached, the next would fail too. */
const ORIGIN_ERRORS: ReadonlySet<string> = new Set(['refused-address', 'timeout', 'unreachable']);

/**
 * The metadata URLs of an issuer, in the order in which they are tried: RFC 8414 with the path inserted, OpenID Connect
 * with the path inserted, OpenID Connect with the path in front.
 */
export function metadataUrls(issuer: string): readonly URL[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
  const inserted = [
    new URL(`${origin}/.well-known/oauth-authorization-server${path}`),
    new URL(`${origin}/.well-known/openid-configuration${path}`),
  ];
  if (path === '') return inserted;
  return [...inserted, new URL(`${origin}${path}/.well-known/openid-configuration`)];
}

function failed(detail: string): Failed {
  return { ok: false, detail };
}

function readMetadata(document: Json, issuer: IssuerSettings, members: readonly EndpointMember[]): MetadataReading {
  if (!isObject(document)) return failed('the metadata document is not a JSON object');
  // Compared as strings, without normalization (RFC 8414 §3.3).
  if (document['issuer'] !== issuer.issuer) return failed('the metadata names another issuer');
  const missing = members.find((member) => isAbsent(document[member]));
  if (missing !== undefined) return failed(`the metadata names no ${ENDPOINTS[missing]}`);
  const [odd] = oddEndpoints(document, members);
  if (odd !== undefined) return failed(`the metadata names no ${odd}`);
  return { ok: true, metadata: document };
}

/** The endpoints that are written and are no URL, such as `key set (jwks_uri: number)`. */
function oddEndpoints(document: JsonObject, members: readonly EndpointMember[]): readonly string[] {
  return members.flatMap((member) => {
    const written = document[member];
    if (isAbsent(written) || (typeof written === 'string' && URL.canParse(written))) return [];
    const what = typeof written === 'string' ? 'no URL' : kindOf(written);
    return `${ENDPOINTS[member]} (${member}: ${what})`;
  });
}

/**
 * Whether an issuer says that it gives each client another subject for the same person, whatever the client (OpenID
 * Connect Core §8). False where it says nothing, as RFC 8414 lets it.
 */
export function isPairwiseOnly({
  subject_types_supported: types,
}: {
  readonly subject_types_supported?: unknown;
}): boolean {
  return Array.isArray(types) && types.length > 0 && types.every((type) => type === 'pairwise');
}

/** Finds one URL in the metadata of `issuer`; see {@link discoverMetadata}. */
export async function discover(
  issuer: IssuerSettings,
  member: EndpointMember,
  fetchJson: FetchJson,
): Promise<Discovery> {
  const found = await discoverMetadata(issuer, [member], fetchJson);
  if (!found.ok) return found;
  const { metadata, leftOut } = found;
  const isDevelopment = metadata[DEVELOPMENT_MEMBER] === true;
  const url = new URL(String(metadata[member]));
  return { ok: true, url, isPairwise: isPairwiseOnly(metadata), isDevelopment, leftOut };
}

/**
 * Finds the metadata of `issuer` that name all of these URLs. A document that is absent, invalid or of another issuer
 * counts as not found, and the next is tried. If none is good, the failure that says most is returned. Whether a URL is allowed is checked when it is fetched (see
 * {@link learnedUrlRule}).
 */
export async function discoverMetadata(
  issuer: IssuerSettings,
  members: readonly EndpointMember[],
  fetchJson: FetchJson,
): Promise<DiscoveredMetadata> {
  let failure: RankedFailure = { rank: -1, detail: 'no metadata document was found' };
  const leftOut: string[] = [];
  for (const url of metadataUrls(issuer.issuer)) {
    const outcome = await fetchJson(url, {
      network: issuer.network,
      plaintext: issuer.plaintext,
      maxBytes: MAX_METADATA_BYTES,
      timeoutMs: METADATA_TIMEOUT_MS,
    });
    if (outcome.ok) {
      const read = readMetadata(outcome.value, issuer, members);
      if (read.ok) {
        const others = ENDPOINT_MEMBERS.filter((member) => !members.includes(member));
        leftOut.push(...oddEndpoints(read.metadata, others).map((odd) => `metadata: ${odd}`));
        return { ...read, leftOut };
      }
      failure = better(failure, { rank: RANKS.document, detail: read.detail });
      leftOut.push(`${url.pathname}: ${read.detail}`);
    } else {
      failure = better(failure, { rank: rankOf(outcome.why), detail: `the metadata ${outcome.detail}` });
      if (ORIGIN_ERRORS.has(outcome.why)) break;
    }
  }
  return failed(failure.detail);
}

type RankedFailure = { readonly rank: number; readonly detail: string };

/**
 * Which failure says most: a document that is there and wrong, then a response that cannot be used, then a status, which
 * at two of the URLs is mostly that nothing is there. Of equal ones the first.
 */
const RANKS = { status: 0, response: 1, document: 2 } as const;

function rankOf(why: string): number {
  return why === 'status' ? RANKS.status : RANKS.response;
}

function better(before: RankedFailure, next: RankedFailure): RankedFailure {
  return next.rank > before.rank ? next : before;
}

/** Where a URL found in the metadata may point: to the issuer's own origin, in its network, or to public https. */
export function learnedUrlRule({ issuer, network, plaintext }: IssuerSettings): {
  readonly network: Network;
  readonly plaintext: 'accepted' | undefined;
  readonly origins: readonly string[];
} {
  return { network, plaintext, origins: [new URL(issuer).origin] };
}

/** Keys that are kept of one issuer; a key set has no bound of its own but its bytes (RFC 7517 §5). */
const MAX_KEYS = 1_000;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;

/** The algorithms that can be configured, with the one kind of key that each takes. */
const KEY_KINDS: ReadonlyMap<string, string> = new Map([
  ['ES256', 'EC P-256'],
  ['ES384', 'EC P-384'],
  ['ES512', 'EC P-521'],
  ['EdDSA', 'OKP Ed25519'],
  ['Ed25519', 'OKP Ed25519'],
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) => [alg, 'RSA'] as const),
]);

/** Members that make a key private or secret (RFC 7518 §6.2.2, §6.3.2 and §6.4). */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

export function isSecretKey(jwk: JsonObject): boolean {
  return SECRET_MEMBERS.some((member) => Object.hasOwn(jwk, member));
}

/** Keys by algorithm, then by key id; keys without an id are under `undefined`. */
export type KeySet = ReadonlyMap<string, ReadonlyMap<string | undefined, readonly CryptoKey[]>>;

type KeySetReading =
  | {
      readonly ok: true;
      readonly keys: KeySet;
      /** Identifies the contents: equal sets have equal fingerprints. */
      readonly fingerprint: string;
      /** One clause for each entry that no token may be verified with, unless it says itself that it is for other uses. */
      readonly leftOut: readonly string[];
    }
  | { readonly ok: false; readonly detail: string };

function keyKindOf(jwk: JsonObject): string {
  return jwk['kty'] === 'RSA' ? 'RSA' : `${String(jwk['kty'])} ${String(jwk['crv'])}`;
}

/** Issuers write `null` where they have nothing to say. */
function isAbsent(member: Json | undefined): boolean {
  return member === undefined || member === null;
}

/** False where the key itself says that it is for another use (RFC 7517 §4.2, §4.3). */
function isForVerifying(jwk: JsonObject): boolean {
  const { use, key_ops: operations } = jwk;
  if (!isAbsent(use) && use !== 'sig') return false;
  return isAbsent(operations) || (Array.isArray(operations) && operations.includes('verify'));
}

/** What is wrong with an entry, whatever it is for; `undefined` for a key that may be one to verify with. */
function describeOddEntry(jwk: Json): string | undefined {
  if (!isObject(jwk)) return `expected object, got ${kindOf(jwk)}`;
  const { kid, kty } = jwk;
  if (typeof kty !== 'string') return `kty: expected string, got ${kindOf(kty)}`;
  if (!isAbsent(kid) && typeof kid !== 'string') return `kid: expected string, got ${kindOf(kid)}`;
  const member = (['use', 'alg'] as const).find((one) => !isAbsent(jwk[one]) && typeof jwk[one] !== 'string');
  if (member !== undefined) return `${member}: expected string, got ${kindOf(jwk[member])}`;
  const { key_ops: operations } = jwk;
  if (!isAbsent(operations) && !Array.isArray(operations)) return `key_ops: expected array, got ${kindOf(operations)}`;
  return isSecretKey(jwk) ? 'a private or symmetric key' : undefined;
}

function isStrong(key: CryptoKey): boolean {
  const { modulusLength } = key.algorithm as { readonly modulusLength?: number };
  if (modulusLength === undefined) return true;
  return modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS;
}

/** Passes on only the members that make up a public key. */
function publicMembers(jwk: JsonObject): JWK {
  const members: Record<string, string> = {};
  for (const name of ['kty', 'crv', 'x', 'y', 'n', 'e']) {
    const value = jwk[name];
    if (typeof value === 'string') members[name] = value;
  }
  return members as JWK;
}

/** The key, one clause that says why it is not usable, or `undefined` if it is for another algorithm. */
async function importKey(jwk: JsonObject, algorithm: string): Promise<CryptoKey | string | undefined> {
  if (KEY_KINDS.get(algorithm) !== keyKindOf(jwk)) return undefined;
  if (!isAbsent(jwk['alg']) && jwk['alg'] !== algorithm) return undefined;
  try {
    const key = await importJWK(publicMembers(jwk), algorithm);
    if (key instanceof Uint8Array) return 'a symmetric key';
    return isStrong(key) ? key : `RSA of less than ${MIN_RSA_BITS} or more than ${MAX_RSA_BITS} bits`;
  } catch {
    return `no valid ${keyKindOf(jwk)} key`;
  }
}

type KeySetDraft = {
  readonly keys: Map<string, Map<string | undefined, readonly CryptoKey[]>>;
  /** The public members of each key, with its algorithm and id. */
  readonly used: Set<string>;
  /** Algorithm and id of different keys: it is ambiguous which was named, so none is used. */
  readonly ambiguous: Set<string>;
};

/**
 * Adds a key for each algorithm that it may verify. Keys of different algorithms may share an id (RFC 7517 §4.5). Returns
 * why the entry holds no key, if it is one of a configured algorithm.
 */
async function addKey(draft: KeySetDraft, jwk: JsonObject, algorithms: readonly string[]): Promise<string | undefined> {
  let odd: string | undefined;
  for (const algorithm of algorithms) {
    const key = await importKey(jwk, algorithm);
    if (typeof key === 'string') odd = key;
    else if (key !== undefined) addImported(draft, jwk, algorithm, key);
  }
  return odd;
}

function addImported(draft: KeySetDraft, jwk: JsonObject, algorithm: string, key: CryptoKey): void {
  const kid = typeof jwk['kid'] === 'string' ? jwk['kid'] : undefined;
  const members = JSON.stringify([algorithm, kid ?? null, publicMembers(jwk)]);
  // The same key given twice counts once.
  if (draft.used.has(members)) return;
  const byId = draft.keys.get(algorithm) ?? new Map<string | undefined, readonly CryptoKey[]>();
  const others = byId.get(kid) ?? [];
  if (kid !== undefined && others.length > 0) draft.ambiguous.add(JSON.stringify([algorithm, kid]));
  draft.keys.set(algorithm, byId.set(kid, [...others, key]));
  draft.used.add(members);
}

/** Adds the keys of the entries; returns one clause for each entry that is left out. */
async function addKeys(draft: KeySetDraft, entries: readonly Json[], algorithms: readonly string[]): Promise<string[]> {
  const leftOut: string[] = [];
  let count = 0;
  for (const [index, jwk] of entries.entries()) {
    if (count >= MAX_KEYS) {
      leftOut.push(`keys/${index} and what follows: more than ${MAX_KEYS} keys`);
      break;
    }
    const before = draft.used.size;
    const odd =
      describeOddEntry(jwk) ??
      (isObject(jwk) && isForVerifying(jwk) ? await addKey(draft, jwk, algorithms) : undefined);
    if (draft.used.size > before) count += 1;
    if (odd !== undefined) leftOut.push(`keys/${index}: ${odd}`);
  }
  return leftOut;
}

/**
 * Reads a JSON Web Key Set into the keys that may verify access tokens, for the given algorithms. Fails when it is not
 * a key set, or holds none that may be used. Symmetric, private, weak, encryption and ambiguous keys, and those beyond
 * the first thousand, are left out without failing the others. RFC 7517 §4 and §5; RFC 7518 §3; RFC 8725 §3.1 and §3.5.
 */
export async function readKeySet(document: Json, algorithms: readonly string[]): Promise<KeySetReading> {
  const entries = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(entries)) return { ok: false, detail: 'the document at jwks_uri is not a key set' };
  const draft: KeySetDraft = {
    keys: new Map(),
    used: new Set(),
    ambiguous: new Set(),
  };
  const leftOut = await addKeys(draft, entries, algorithms);
  const { keys, used, ambiguous } = draft;
  for (const name of ambiguous) {
    const [algorithm, kid]: readonly [string, string] = JSON.parse(name);
    leftOut.push(`several ${algorithm} keys have the id ${clauseName(kid)}`);
  }
  dropAmbiguous(draft);
  if ([...keys.values()].every(({ size }) => size === 0))
    return { ok: false, detail: 'the key set has no key for the configured algorithms' };
  return { ok: true, keys, fingerprint: [...used].sort().join('\n'), leftOut };
}

function dropAmbiguous({ keys, ambiguous }: KeySetDraft): void {
  for (const name of ambiguous) {
    const [algorithm, kid]: readonly [string, string] = JSON.parse(name);
    keys.get(algorithm)?.delete(kid);
  }
}

/** Keys that are tried for a token without an id; each costs a verification, and most issuers have two. */
const MAX_TRIED_KEYS = 8;

/**
 * The keys that may have signed a token: the one that its header names, or without an id on one side those of its
 * algorithm. Ids are optional (RFC 7517 §4.5). The algorithm is never the token's choice alone: only keys of the issuer
 * that may verify with it are tried (RFC 8725 §3.1).
 */
export function selectKeys(keys: KeySet, header: Header): readonly CryptoKey[] {
  const byId = keys.get(header.alg);
  if (byId === undefined) return [];
  const named = header.kid === undefined ? [...byId.values()].flat() : byId.get(header.kid);
  return (named ?? byId.get(undefined) ?? []).slice(0, MAX_TRIED_KEYS);
}

/** A key with the chain of its certificate has two kilobytes. */
const MAX_KEY_SET_BYTES = 256 * 1024;
const KEY_SET_TIMEOUT_MS = 5_000;
/** Keys older than this, or than half of their maximum age, are fetched again while they are still used. */
const REFRESH_AGE_MS = 10 * 60_000;
/** The key set's URL is discovered again after this time, and after each failure. */
const DISCOVERY_AGE_MS = 60 * 60_000;
/** Shortest time between two fetches caused by unknown key ids. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000;
/** Requests that may wait for a fetch; each holds its body, and its sender is not authenticated yet. */
const MAX_WAITING = 64;
/** Shortest time between two attempts while the issuer fails. */
const FAILURE_PAUSE_MS = 5_000;
/** Attempts that no request caused back off exponentially up to this pause. */
const MAX_IDLE_PAUSE_MS = 60_000;

/** `unknown`: the issuer does not publish such a key. `unavailable`: that cannot be known now. */
type KeyLookup =
  | { readonly kind: 'keys'; readonly keys: readonly CryptoKey[]; readonly generation: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable' };

export type KeySourceStatus = {
  /** `degraded`: there are no keys, or the last attempt to fetch them failed. */
  readonly state: 'armed' | 'degraded';
  /** Milliseconds since the epoch. */
  readonly lastSuccessAt: number | undefined;
  /** Why the last attempt failed. Holds no text of the issuer except the target of a redirect. */
  readonly failure: string | undefined;
  /** By its newest metadata, the issuer gives each client another subject for the same person. */
  readonly isPairwise: boolean;
  /** By its newest metadata, it is a development issuer. */
  readonly isDevelopment: boolean;
};

export type KeySource = {
  /** The keys for a token's header. At most one fetch runs at a time. */
  keysFor(header: Header): Promise<KeyLookup>;
  /** Fetches now, ahead of the first request. True when the keys were fetched. */
  refresh(): Promise<boolean>;
  /** To be called periodically: fetches ahead of need, so that the keys are young when an outage begins. */
  keepFresh(): void;
  /**
   * Increases when the key set changes, which invalidates cached results. `undefined` while there are no usable keys,
   * so that no result outlives the keys that verified it.
   */
  generation(): number | undefined;
  status(): KeySourceStatus;
};

/** The header members that select the key. */
export type Header = { readonly kid?: string; readonly alg: string };

type KeySourcePorts = {
  readonly fetchJson: FetchJson;
  readonly now: () => number;
  /** Called with what of the issuer's documents is left out, one clause each, once while it is. */
  readonly onLeftOut?: (clauses: readonly string[]) => void;
  /** Whether keys of a development issuer are refused: where others than this machine reach the gateway. */
  readonly refusesDevelopment?: boolean | undefined;
};

const DEVELOPMENT_REFUSED =
  'it is a development issuer, whose tokens are taken only where publicUrl is on loopback: configure the authorization server of your organization';

type KeySourceState = {
  keys: KeySet | undefined;
  fingerprint: string | undefined;
  generation: number;
  jwksUri: ({ readonly url: URL; readonly foundAt: number } & LeftOut) | undefined;
  leftOut: readonly string[];
  isPairwise: boolean;
  isDevelopment: boolean;
  lastSuccessAt: number | undefined;
  lastFailureAt: number | undefined;
  failures: number;
  failure: string | undefined;
  unknownKeyFetchAt: number | undefined;
};

function hasPassed(since: number | undefined, durationMs: number, now: number): boolean {
  return since === undefined || now - since >= durationMs;
}

/** Fetches the set once; undefined on success, else why it failed. */
async function fetchKeySet(
  issuer: IssuerSettings,
  ports: KeySourcePorts,
  state: KeySourceState,
): Promise<string | undefined> {
  if (state.jwksUri === undefined || hasPassed(state.jwksUri.foundAt, DISCOVERY_AGE_MS, ports.now())) {
    const discovery = await discover(issuer, 'jwks_uri', ports.fetchJson);
    if (!discovery.ok) return discovery.detail;
    state.jwksUri = { url: discovery.url, foundAt: ports.now(), leftOut: discovery.leftOut };
    state.isPairwise = discovery.isPairwise;
    state.isDevelopment = discovery.isDevelopment;
  }
  if (state.isDevelopment && ports.refusesDevelopment === true) return DEVELOPMENT_REFUSED;
  const { leftOut } = state.jwksUri;
  const outcome = await ports.fetchJson(state.jwksUri.url, {
    ...learnedUrlRule(issuer),
    maxBytes: MAX_KEY_SET_BYTES,
    timeoutMs: KEY_SET_TIMEOUT_MS,
  });
  if (!outcome.ok) return `the key set ${outcome.detail}`;
  const reading = await readKeySet(outcome.value, issuer.algorithms);
  if (!reading.ok) return reading.detail;
  if (state.fingerprint !== reading.fingerprint) state.generation += 1;
  state.keys = reading.keys;
  state.fingerprint = reading.fingerprint;
  const odd = [...leftOut, ...reading.leftOut].slice(0, MAX_LEFT_OUT);
  const fresh = odd.filter((clause) => !state.leftOut.includes(clause));
  state.leftOut = odd;
  if (fresh.length > 0) ports.onLeftOut?.(fresh);
  return undefined;
}

/** Clauses that are kept and reported of one issuer. */
const MAX_LEFT_OUT = 32;

async function fetchAndNote(issuer: IssuerSettings, ports: KeySourcePorts, state: KeySourceState): Promise<boolean> {
  const failure = await fetchKeySet(issuer, ports, state).catch(() => 'the keys could not be read');
  state.failure = failure;
  if (failure === undefined) {
    state.lastSuccessAt = ports.now();
    state.lastFailureAt = undefined;
    state.failures = 0;
    return true;
  }
  state.lastFailureAt = ports.now();
  state.failures += 1;
  state.jwksUri = undefined;
  return false;
}

/** The keys that may be used now; undefined when there are none or they are too old. */
function currentKeys(state: KeySourceState, maxAgeMs: number, now: number): KeySet | undefined {
  return hasPassed(state.lastSuccessAt, maxAgeMs, now) ? undefined : state.keys;
}

/** Creates the key source of one issuer. It connects to nothing until it is used, and needs no closing. */
export function createKeySource(issuer: IssuerSettings, ports: KeySourcePorts): KeySource {
  const state: KeySourceState = {
    keys: undefined,
    fingerprint: undefined,
    generation: 0,
    jwksUri: undefined,
    leftOut: [],
    isPairwise: false,
    isDevelopment: false,
    lastSuccessAt: undefined,
    lastFailureAt: undefined,
    failures: 0,
    failure: undefined,
    unknownKeyFetchAt: undefined,
  };
  const { keysMaxAgeMs } = issuer;
  const refreshAgeMs = Math.min(REFRESH_AGE_MS, keysMaxAgeMs / 2);
  let running: Promise<boolean> | undefined;
  let waiting = 0;

  function refresh(): Promise<boolean> {
    running ??= fetchAndNote(issuer, ports, state).finally(() => {
      running = undefined;
    });
    return running;
  }

  function mayRetry(): boolean {
    return running !== undefined || hasPassed(state.lastFailureAt, FAILURE_PAUSE_MS, ports.now());
  }

  /** Waits for a fetch where the keys are too old to be used; merely old keys are refreshed in the background. */
  async function freshKeys(): Promise<KeySet | undefined> {
    const keys = currentKeys(state, keysMaxAgeMs, ports.now());
    if (keys === undefined) {
      if (mayRetry()) await refresh();
      return currentKeys(state, keysMaxAgeMs, ports.now());
    }
    // `refresh` records its failures and does not reject.
    if (isDue() && mayRetry()) void refresh();
    return keys;
  }

  function isDue(): boolean {
    return state.failure !== undefined || hasPassed(state.lastSuccessAt, refreshAgeMs, ports.now());
  }

  function keepFresh(): void {
    const pauseMs = Math.min(FAILURE_PAUSE_MS * 2 ** (state.failures - 1), MAX_IDLE_PAUSE_MS);
    const hasWaited = state.failures === 0 || hasPassed(state.lastFailureAt, pauseMs, ports.now());
    if (isDue() && hasWaited) void refresh();
  }

  function mayFetchForUnknownKey(): boolean {
    if (state.failure !== undefined) return mayRetry();
    return hasPassed(state.unknownKeyFetchAt, UNKNOWN_KEY_COOLDOWN_MS, ports.now());
  }

  /** A flood of unknown key ids causes one fetch per cooldown, whoever sends it. */
  async function searchUnknownKey(header: Header): Promise<readonly CryptoKey[]> {
    if (running !== undefined) {
      // This fetch may have begun before the key was published, so another may still be needed.
      await running;
      const found = known(header);
      if (found.length > 0) return found;
    }
    if (mayFetchForUnknownKey()) {
      state.unknownKeyFetchAt = ports.now();
      await refresh();
    }
    return known(header);
  }

  function known(header: Header): readonly CryptoKey[] {
    return state.keys === undefined ? [] : selectKeys(state.keys, header);
  }

  async function lookUp(header: Header): Promise<KeyLookup> {
    const fresh = await freshKeys();
    if (fresh === undefined) return { kind: 'unavailable' };
    const named = selectKeys(fresh, header);
    const keys = named.length > 0 ? named : await searchUnknownKey(header);
    if (keys.length > 0) return { kind: 'keys', keys, generation: state.generation };
    // While the issuer cannot be reached, the key may exist there.
    return state.failure === undefined ? { kind: 'unknown' } : { kind: 'unavailable' };
  }

  function hasKeyFor(header: Header): boolean {
    const keys = currentKeys(state, keysMaxAgeMs, ports.now());
    return keys !== undefined && selectKeys(keys, header).length > 0;
  }

  return {
    async keysFor(header) {
      if (hasKeyFor(header)) return lookUp(header);
      if (waiting >= MAX_WAITING) return { kind: 'unavailable' };
      waiting += 1;
      try {
        return await lookUp(header);
      } finally {
        waiting -= 1;
      }
    },
    refresh,
    keepFresh,
    generation: () => (currentKeys(state, keysMaxAgeMs, ports.now()) === undefined ? undefined : state.generation),
    status: () => ({
      state:
        state.failure === undefined && currentKeys(state, keysMaxAgeMs, ports.now()) !== undefined
          ? 'armed'
          : 'degraded',
      lastSuccessAt: state.lastSuccessAt,
      failure: state.failure,
      isPairwise: state.isPairwise,
      isDevelopment: state.isDevelopment,
    }),
  };
}
