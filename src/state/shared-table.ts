// Records that all replicas share and change one after the other: each has an id, a key under which it is found again, and
// an owner whose open records are bounded. A change takes effect only on the revision that was read, so of two replicas
// that use one record at once exactly one succeeds. In the shared store they are sealed and bound to their id. A head is
// read with every look, a body only with its record. In memory they end with the process. docs/reference/state.md.

import { LATEST_EXPIRY_MS, sealedToken } from './sealed-token.js';
import type { RecordBounds, StatePorts, StoredEntry, StoredRecord, StoreLink } from './store.js';

/** A record as it was read. */
export type Kept<Head> = { readonly id: string; readonly head: Head; readonly revision: number };

/** Until when a record is open, and until when it is kept at all, in milliseconds since the epoch. */
export type RecordTimes = {
  /** Undefined once nothing more is expected of it; then it no longer counts towards its owner's bound. */
  readonly openUntilMs: number | undefined;
  readonly keptUntilMs: number;
};

export type NewRecord<Head, Body> = RecordTimes & {
  readonly id: string;
  readonly head: Head;
  readonly body: Body;
  readonly key: string;
  readonly owner: string;
  /** The id of the record that the key leads to so far, as it was read. */
  readonly replaces: string | undefined;
};

/**
 * A table of records of one kind. Keys and owners are exact strings; the store learns keyed hashes of them. `unavailable`:
 * the store cannot be reached, and nothing may be concluded. No method rejects.
 */
export type SharedTable<Head, Body> = {
  /** `changed`: the key leads to another record by now. `full`: too many are open, of this owner or of all. */
  add(record: NewRecord<Head, Body>): Promise<'added' | 'changed' | 'full' | 'too-large' | 'unavailable'>;
  /** Replaces a head; false where it changed since it was read. */
  replace(kept: Kept<Head>, head: Head, times: RecordTimes): Promise<boolean | 'unavailable'>;
  find(id: string): Promise<Kept<Head> | undefined | 'unavailable'>;
  findByKey(key: string): Promise<Kept<Head> | undefined | 'unavailable'>;
  /** Lets a key lead to a record, whatever it led to before. */
  alias(key: string, id: string, untilMs: number): Promise<boolean>;
  bodyOf(id: string): Promise<Body | undefined | 'unavailable'>;
  /** The newest first. */
  list(most: number): Promise<readonly Kept<Head>[] | 'unavailable'>;
  /** Open records, however many others are newer; those whose time ends first come first, and some may be over. */
  open(most: number): Promise<readonly Kept<Head>[] | 'unavailable'>;
  /** Open records whose time is over, the oldest first. */
  overdue(most: number): Promise<readonly Kept<Head>[] | 'unavailable'>;
};

/** How many records may be open; how much is kept of all; when one was made. */
export type TableTerms<Head> = RecordBounds & {
  /** Of several records to which a key leads while the keys of the gateway are rotated, the newest counts. */
  readonly madeAtMs?: (head: Head) => number;
  /** Of a body as JSON, in UTF-16 units. */
  readonly maxBody: number;
  /** Of all bodies in memory together. */
  readonly maxBodies: number;
};

type Entry<Head, Body> = RecordTimes & {
  head: Head;
  revision: number;
  body: Body | undefined;
  readonly bodySize: number;
  readonly owner: string;
};

/** The table of one replica, gone when the process ends. */
export function createMemoryTable<Head, Body>(now: () => number, bounds: TableTerms<Head>): SharedTable<Head, Body> {
  type Writable = { -readonly [Member in keyof Entry<Head, Body>]: Entry<Head, Body>[Member] };
  /** In the order in which they were added. */
  const entries = new Map<string, Writable>();
  const keys = new Map<string, { readonly id: string; readonly untilMs: number }>();
  let bodies = 0;

  const isOpen = ({ openUntilMs }: RecordTimes): boolean => openUntilMs !== undefined && openUntilMs > now();
  const keptOf = (id: string, { head, revision }: Writable): Kept<Head> => ({ id, head, revision });

  function forget(id: string, entry: Writable): void {
    entries.delete(id);
    bodies -= entry.body === undefined ? 0 : entry.bodySize;
  }

  function forgetOver(): void {
    const nowMs = now();
    for (const [id, entry] of entries) if (entry.keptUntilMs <= nowMs) forget(id, entry);
    for (const [key, { id, untilMs }] of keys) if (untilMs <= nowMs || !entries.has(id)) keys.delete(key);
  }

  /** Forgets the oldest that are not open where there are too many. */
  function makeRoom(): void {
    if (entries.size < bounds.maxKept) return;
    for (const [id, entry] of entries) {
      if (isOpen(entry)) continue;
      forget(id, entry);
      if (entries.size < bounds.maxKept) return;
    }
  }

  function dropBodies(size: number): boolean {
    for (const entry of entries.values()) {
      if (bodies + size <= bounds.maxBodies) break;
      if (isOpen(entry) || entry.body === undefined) continue;
      entry.body = undefined;
      bodies -= entry.bodySize;
    }
    return bodies + size <= bounds.maxBodies;
  }

  return {
    async add({ id, head, body, key, owner, replaces, openUntilMs, keptUntilMs }) {
      const bodySize = JSON.stringify(body).length;
      if (bodySize > bounds.maxBody) return 'too-large';
      forgetOver();
      makeRoom();
      if (keys.get(key)?.id !== replaces) return 'changed';
      const open = [...entries.values()].filter(isOpen);
      const isFull = open.length >= bounds.maxOpen;
      if (isFull || open.filter((one) => one.owner === owner).length >= bounds.maxOpenPerOwner) return 'full';
      if (!dropBodies(bodySize)) return 'full';
      entries.set(id, { head, body, bodySize, owner, revision: 1, openUntilMs, keptUntilMs });
      bodies += bodySize;
      keys.set(key, { id, untilMs: keptUntilMs });
      return 'added';
    },
    async replace({ id, revision }, head, times) {
      const entry = entries.get(id);
      if (entry === undefined || entry.revision !== revision) return false;
      Object.assign(entry, times, { head, revision: revision + 1 });
      return true;
    },
    async find(id) {
      const entry = entries.get(id);
      return entry === undefined || entry.keptUntilMs <= now() ? undefined : keptOf(id, entry);
    },
    async findByKey(key) {
      const found = keys.get(key);
      const entry = found && found.untilMs > now() ? entries.get(found.id) : undefined;
      return found === undefined || entry === undefined ? undefined : keptOf(found.id, entry);
    },
    async alias(key, id, untilMs) {
      keys.set(key, { id, untilMs });
      return true;
    },
    bodyOf: async (id) => entries.get(id)?.body,
    async list(most) {
      forgetOver();
      return [...entries]
        .slice(-most)
        .reverse()
        .map((entry) => keptOf(...entry));
    },
    async open(most) {
      const all = [...entries].flatMap(([id, entry]) =>
        entry.openUntilMs === undefined ? [] : [{ kept: keptOf(id, entry), untilMs: entry.openUntilMs }],
      );
      return all
        .sort((one, other) => one.untilMs - other.untilMs)
        .slice(0, most)
        .map(({ kept }) => kept);
    },
    async overdue(most) {
      const nowMs = now();
      const over = [...entries].filter(([, { openUntilMs }]) => openUntilMs !== undefined && openUntilMs <= nowMs);
      return over.slice(0, most).map((entry) => keptOf(...entry));
    },
  };
}

export type SharedTablePorts = StatePorts & {
  readonly link: Pick<
    StoreLink,
    | 'addRecord'
    | 'replaceRecord'
    | 'record'
    | 'recordIdOf'
    | 'aliasRecord'
    | 'recordBody'
    | 'records'
    | 'openRecords'
    | 'overdueRecords'
  >;
  /** False while the store is known not to respond: then no request waits for it. */
  readonly isReachable: () => boolean;
};

/** The longest head, as JSON: names and URIs of a request, and the answers. */
const MAX_HEAD = 128 * 1024;
/** A character takes up to three bytes, and base64url four characters for three bytes. */
const SEALED_PER_CHARACTER = 4;

/** The table that all replicas share. `kind` is the purpose of its keys, and part of the names in the store. */
export function createSharedTable<Head, Body>(
  kind: string,
  { ring, now, link, isReachable }: SharedTablePorts,
  bounds: TableTerms<Head>,
): SharedTable<Head, Body> {
  const heads = sealedToken<Head>(`${kind}/head`, {
    maxPayload: MAX_HEAD,
    maxCharacters: SEALED_PER_CHARACTER * MAX_HEAD + 1024,
  });
  const bodies = sealedToken<Body>(`${kind}/body`, {
    maxPayload: bounds.maxBody,
    maxCharacters: SEALED_PER_CHARACTER * bounds.maxBody + 1024,
  });
  const openHead = ({ id, revision, sealed }: StoredRecord): readonly Kept<Head>[] => {
    const head = heads.open(ring, [id, String(revision)], sealed, now());
    return head === undefined ? [] : [{ id, head, revision }];
  };

  async function ask<T>(run: () => Promise<T>): Promise<T | 'unavailable'> {
    if (!isReachable()) return 'unavailable';
    try {
      return await run();
    } catch {
      // Whether the store can be reached is what its polls find out: one record, or a long list, says nothing of it.
      return 'unavailable';
    }
  }

  async function find(id: string): Promise<Kept<Head> | undefined> {
    const stored = await link.record(kind, id);
    if (stored === undefined) return undefined;
    const [kept] = openHead(stored);
    if (kept === undefined) throw new Error('the store holds what this gateway did not seal');
    return kept;
  }

  /**
   * What a key leads to under each key of the gateway: a replica whose keys are in another order writes under another hash,
   * so that in a rotation there may be one for each, of which the newest counts.
   */
  async function findAll(key: string) {
    const hashes = ring.hmacAll(`${kind}/key`, key);
    const ids = await Promise.all(hashes.map((hash) => link.recordIdOf(kind, hash)));
    const found: Kept<Head>[] = [];
    for (const id of new Set(ids)) {
      const kept = id === undefined ? undefined : await find(id);
      if (kept !== undefined) found.push(kept);
    }
    const { madeAtMs = () => 0 } = bounds;
    const [newest] = found.sort((one, other) => madeAtMs(other.head) - madeAtMs(one.head));
    return { newest, ownId: ids[0] };
  }

  /** Adds it, unless the key leads to something else by now; under the hash of the first key it may lead nowhere yet. */
  async function addUnder(key: string, { replaces, ...entry }: Omit<StoredEntry, 'key'>) {
    const [hash, ...others] = ring.hmacAll(`${kind}/key`, key);
    if (others.length === 0) return link.addRecord(kind, { ...entry, replaces, key: hash }, bounds);
    const { newest, ownId } = await findAll(key);
    return newest?.id === replaces ? link.addRecord(kind, { ...entry, replaces: ownId, key: hash }, bounds) : 'changed';
  }

  return {
    async add({ id, head, body, key, owner, replaces, openUntilMs, keptUntilMs }) {
      const sealedHead = heads.seal(ring, [id, '1'], head, LATEST_EXPIRY_MS);
      const sealedBody = bodies.seal(ring, [id], body, LATEST_EXPIRY_MS);
      if (sealedHead === undefined || sealedBody === undefined) return 'too-large';
      const entry: Omit<StoredEntry, 'key'> = {
        ...{ id, replaces, head: sealedHead, body: sealedBody },
        owner: ring.hmac(`${kind}/owner`, owner),
        openMs: openUntilMs === undefined ? undefined : openUntilMs - now(),
        keptMs: keptUntilMs - now(),
      };
      return ask(() => addUnder(key, entry));
    },
    async replace({ id, revision }, head, { openUntilMs, keptUntilMs }) {
      const sealed = heads.seal(ring, [id, String(revision + 1)], head, LATEST_EXPIRY_MS);
      if (sealed === undefined) return false;
      const openMs = openUntilMs === undefined ? undefined : openUntilMs - now();
      return ask(() => link.replaceRecord(kind, { id, revision, sealed }, { openMs, keptMs: keptUntilMs - now() }));
    },
    find: (id) => ask(() => find(id)),
    findByKey: (key) => ask(async () => (await findAll(key)).newest),
    async alias(key, id, untilMs) {
      const hash = ring.hmac(`${kind}/key`, key);
      const done = await ask(async () => {
        await link.aliasRecord(kind, hash, id, untilMs - now());
        return true;
      });
      return done === true;
    },
    bodyOf: (id) =>
      ask(async () => {
        const sealed = await link.recordBody(kind, id);
        return sealed === undefined ? undefined : bodies.open(ring, [id], sealed, now());
      }),
    list: (most) => ask(async () => (await link.records(kind, most)).flatMap(openHead)),
    open: (most) => ask(async () => (await link.openRecords(kind, most)).flatMap(openHead)),
    overdue: (most) => ask(async () => (await link.overdueRecords(kind, most)).flatMap(openHead)),
  };
}
