// The store that replicas share, in Redis 6.2 or Valkey: one connection for commands, one that only subscribes to
// hints. A command never waits for the store: without a connection, or after its timeout, it fails at once. Keys share
// a prefix and a hash slot, values are keyed hashes or sealed, and every key expires.

import { createHash, randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import type { StateSettings } from '../config/settings.js';
import { MAX_ENDED, STEPS_PER_WINDOW } from './memory.js';
import { MAX_QUEUED_MESSAGES } from './replica-bus.js';
import { MAX_REVOCATIONS } from './revocations.js';
import type { StoredRecord, StoreLink } from './store.js';
import { describeStoreError } from './store-errors.js';

// The operations that Redis runs in one step, as Lua: a script is atomic and reads one clock, that of the store. All
// KEYS are of one hash slot, and everything that is written gets an expiry.

/** Prefix of the scripts that need the time, in milliseconds since the epoch. */
const NOW = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

/** Makes a sorted set of expiries (and `more`) expire one second after its last member. */
const EXPIRE_WITH_LAST = `
local function expire_with_last(key, more)
  local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', key, last[2] + 1000)
    if more then redis.call('PEXPIREAT', more, last[2] + 1000) end
  end
end
`;

/**
 * KEYS version, replicas, ended, message queue, epoch; ARGV replica, milliseconds after which a silent replica no longer
 * counts, mark, most ended sessions, score of the last message read, most messages, a new epoch, milliseconds until it expires. Returns version, number of
 * replicas, now, hashes with their expiries alternating, messages with their scores alternating, and the epoch. Deletes the
 * messages that were read before; those returned now stay until the next poll, because this reply may be lost. An epoch
 * is an id and when it began; a store without one has lost what it held, or never held anything.
 */
const POLL = `${NOW}
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
local ended = redis.call('ZRANGEBYSCORE', KEYS[3], ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[5])
local words = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[6])
local epoch = redis.call('GET', KEYS[5])
if epoch then redis.call('PEXPIRE', KEYS[5], ARGV[8])
else
  epoch = ARGV[7] .. ' ' .. string.format('%.0f', now)
  redis.call('SET', KEYS[5], epoch, 'PX', ARGV[8])
end
return {redis.call('GET', KEYS[1]) or '', redis.call('ZCARD', KEYS[2]), now, ended, words, epoch}
`;

/** KEYS version, expiries, texts, lifted. Returns version, ids and texts alternating, lifted ids. */
const REVOCATIONS = `${NOW}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('HDEL', KEYS[3], id)
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
return {redis.call('GET', KEYS[1]) or '', redis.call('HGETALL', KEYS[3]), redis.call('ZRANGE', KEYS[4], 0, -1)}
`;

/**
 * KEYS version, expiries, texts, lifted; ARGV id, text, milliseconds left, most revocations, new version, milliseconds
 * until it expires, pub/sub channel. Returns 0 where the store holds as many as are allowed.
 */
const ADD_REVOCATION = `${NOW}${EXPIRE_WITH_LAST}
if redis.call('ZSCORE', KEYS[4], ARGV[1]) or redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 1 end
if redis.call('ZCOUNT', KEYS[2], now, '+inf') >= tonumber(ARGV[4]) then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
expire_with_last(KEYS[2], KEYS[3])
redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[6])
redis.call('PUBLISH', ARGV[7], '')
return 1
`;

/** KEYS as above; ARGV id, milliseconds left, new version, milliseconds until it expires, pub/sub channel. */
const LIFT_REVOCATION = `${NOW}${EXPIRE_WITH_LAST}
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[4], now + ARGV[2], ARGV[1])
expire_with_last(KEYS[4])
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
redis.call('PUBLISH', ARGV[5], '')
return 1
`;

/**
 * KEYS ended, those of the same owner; ARGV session, milliseconds left, most sessions, most of an owner. Beyond a bound
 * the oldest are removed, beyond the owner's its own.
 */
const END_SESSION = `${NOW}${EXPIRE_WITH_LAST}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
for _, key in ipairs(KEYS) do redis.call('ZADD', key, now + ARGV[2], ARGV[1]) end
for _, oldest in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1 - ARGV[4])) do
  for _, key in ipairs(KEYS) do redis.call('ZREM', key, oldest) end
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[3])
for _, key in ipairs(KEYS) do expire_with_last(key) end
return 1
`;

/**
 * KEYS replicas, message queue of each recipient; ARGV most messages in a queue, milliseconds after which a silent
 * replica no longer counts, the same for one whose queue is full, milliseconds left, pub/sub channel, then replica and
 * message alternating. Returns the number of recipients, or -1, with nothing enqueued, where the queue of a live
 * replica is full. One script for all, so that broadcasts have one order at every replica. A score is a time in
 * microseconds, because the score of a message that was read must not be used again.
 */
const ENQUEUE_MESSAGES = `${NOW}
local there = {}
for i = 2, #KEYS do
  local silent = now - (redis.call('ZSCORE', KEYS[1], ARGV[2 * i + 2]) or 0)
  local has_room = redis.call('ZCARD', KEYS[i]) < tonumber(ARGV[1])
  if silent <= tonumber(ARGV[2]) and has_room then there[#there + 1] = i
  elseif silent <= tonumber(ARGV[3]) then return -1 end
end
for _, i in ipairs(there) do
  local last = redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')
  redis.call('ZADD', KEYS[i], math.max((last[2] or 0) + 1, now * 1000), ARGV[2 * i + 3])
  redis.call('PEXPIRE', KEYS[i], ARGV[4])
end
if #there > 0 then redis.call('PUBLISH', ARGV[5], '') end
return #there
`;

/** KEYS replicas; ARGV milliseconds after which a silent replica no longer counts, most. Returns their names. */
const REPLICAS = `${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])
`;

/**
 * KEYS uses, epoch; ARGV count, milliseconds of a step, steps of a window, amount. A window that slides in steps, counted as in
 * memory.ts: one step more than the window has is kept, so that it errs towards refusing. Returns 0 for a use that was
 * counted, else the milliseconds until one more fits; and the epoch.
 */
const TAKE = `${NOW}
local length, steps = tonumber(ARGV[2]), tonumber(ARGV[3])
local step = math.floor(now / length)
local fields = redis.call('HGETALL', KEYS[1])
local total, kept = 0, {}
for i = 1, #fields, 2 do
  local at = tonumber(fields[i])
  if at < step - steps then redis.call('HDEL', KEYS[1], fields[i])
  else
    total = total + tonumber(fields[i + 1])
    kept[#kept + 1] = {at, tonumber(fields[i + 1])}
  end
end
local epoch = redis.call('GET', KEYS[2]) or ''
local most = tonumber(ARGV[1]) - tonumber(ARGV[4])
if total <= most then
  redis.call('HINCRBY', KEYS[1], step, ARGV[4])
  redis.call('PEXPIRE', KEYS[1], math.ceil(length * (steps + 2)))
  return {0, epoch}
end
table.sort(kept, function(a, b) return a[1] < b[1] end)
for _, use in ipairs(kept) do
  total = total - use[2]
  if total <= most then
    return {math.max(1, math.ceil((use[1] + steps + 1) * length - now)), epoch}
  end
end
return {math.ceil(length * steps), epoch}
`;

/**
 * KEYS counters; ARGV milliseconds left, then name, counter and digest in turn. A value is a counter and a digest. Raises
 * what is higher than stored, unless one of them is older than what is stored, and returns names and values alternating.
 */
const RAISE_COUNTERS = `
local stored = {}
local written = {}
local pairs_ = redis.call('HGETALL', KEYS[1])
for i = 1, #pairs_, 2 do
  stored[pairs_[i]] = tonumber(string.match(pairs_[i + 1], '^%d+')) or 0
  written[pairs_[i]] = pairs_[i + 1]
end
for i = 2, #ARGV, 3 do
  local counter, known = tonumber(ARGV[i + 1]), stored[ARGV[i]] or 0
  local isOther = written[ARGV[i]] ~= ARGV[i + 1] .. ' ' .. ARGV[i + 2]
  if counter < known or (counter == known and isOther) then return pairs_ end
end
for i = 2, #ARGV, 3 do
  if tonumber(ARGV[i + 1]) > (stored[ARGV[i]] or 0) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
  end
end
if #ARGV > 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return redis.call('HGETALL', KEYS[1])
`;

/** KEYS marks; ARGV milliseconds left, then their texts. */
const SET_FLOW_MARKS = `
for i, key in ipairs(KEYS) do redis.call('SET', key, ARGV[i + 1], 'PX', ARGV[1]) end
return 1
`;

/** KEYS marks, and last the epoch. Returns their texts, empty where there is none. */
const FLOW_MARKS = `
local texts = {}
for i, key in ipairs(KEYS) do texts[i] = redis.call('GET', key) or '' end
return texts
`;

/** Makes a key live at least so long. */
const KEEP = `
local function keep(key, left)
  if redis.call('PTTL', key) < tonumber(left) then redis.call('PEXPIRE', key, left) end
end
`;

/**
 * KEYS record, body, id by key, all, open, open of the owner; ARGV id, head, body, id that the key leads to so far or empty,
 * milliseconds until it is no longer open, until it is forgotten, most open, most open of an owner, most kept, name of the
 * owner's set. Returns 1, or 0 where the key leads elsewhere by now, -1 where too many are open. A record names the
 * set of its owner. Of those that are kept beyond the bound, the oldest are no longer listed.
 */
const ADD_RECORD = `${NOW}${EXPIRE_WITH_LAST}${KEEP}
if (redis.call('GET', KEYS[3]) or '') ~= ARGV[4] then return 0 end
if redis.call('ZCOUNT', KEYS[5], now, '+inf') >= tonumber(ARGV[7]) then return -1 end
if redis.call('ZCOUNT', KEYS[6], now, '+inf') >= tonumber(ARGV[8]) then return -1 end
redis.call('HSET', KEYS[1], 'revision', 1, 'head', ARGV[2], 'owner', ARGV[10])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[6])
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[6])
redis.call('ZADD', KEYS[4], now, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -1 - ARGV[9])
keep(KEYS[4], ARGV[6])
for _, key in ipairs({KEYS[5], KEYS[6]}) do
  redis.call('ZADD', key, now + ARGV[5], ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', now)
keep(KEYS[5], ARGV[6])
expire_with_last(KEYS[6])
return 1
`;

/**
 * KEYS record, body, open, all, open of the owner; ARGV id, revision that was read, head, milliseconds until it is no
 * longer open or empty, milliseconds until it is forgotten. Returns 0 where the revision is another by now.
 */
const REPLACE_RECORD = `${NOW}${EXPIRE_WITH_LAST}${KEEP}
if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2] + 1, 'head', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
local body_left = tonumber(ARGV[5])
if ARGV[4] == '' then body_left = math.min(body_left, tonumber(ARGV[6])) end
redis.call('PEXPIRE', KEYS[2], body_left)
for _, key in ipairs({KEYS[3], KEYS[5]}) do
  if ARGV[4] == '' then redis.call('ZREM', key, ARGV[1])
  else redis.call('ZADD', key, now + ARGV[4], ARGV[1]) end
end
keep(KEYS[3], ARGV[5])
keep(KEYS[4], ARGV[5])
expire_with_last(KEYS[5])
return 1
`;

/**
 * KEYS a name that nobody uses. Returns the time, in milliseconds since the epoch. The write changes nothing, because
 * there is no such key, but a store that takes no writes, or not from this user, refuses it.
 */
const PROBE = `${NOW}
redis.call('SET', KEYS[1], '', 'XX', 'PX', 1)
return now
`;

/** KEYS open; ARGV most. Returns ids, the oldest first. */
const OVERDUE_RECORDS = `${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
`;

/** How long the body of a record is kept once it is no longer open: bodies are large, and few are read again. */
const BODY_LEFT_MS = 10 * 60 * 1000;
/** A replica that has not polled for this long no longer counts. */
const REPLICA_COUNTS_MS = 10_000;
/** Ended sessions that one poll returns. */
const MAX_ENDED_PER_POLL = 5_000;
/** Between the hashes of a session and of its owner; no digit of base64url. */
const OWNER_SEPARATOR = '.';
/**
 * A replica whose queue is full and that has not polled for this long is skipped instead of making the message fail.
 */
const REPLICA_READS_MS = 3_000;
/** Recipients of a broadcast; no deployment has so many replicas. */
const MAX_REPLICAS = 1_000;
/** Longer than any revocation lives, so that the version outlives what it describes. */
const VERSION_LEFT_MS = 30 * 24 * 60 * 60 * 1000;

/** Far longer than no replica polls. */
const EPOCH_LEFT_MS = 400 * 24 * 60 * 60 * 1000;

const CONNECT_TIMEOUT_MS = 2_000;
/** Polls never pause for this long, so a connection without a reply is dead. */
const SILENT_CONNECTION_MS = 10_000;
const MIN_RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

type RedisSettings = Extract<StateSettings, { readonly type: 'redis' }>;

type Script = { readonly lua: string; readonly sha: string };
type Reply = number | string | null | readonly Reply[];

function scriptOf(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') };
}

const SCRIPTS = {
  probe: scriptOf(PROBE),
  poll: scriptOf(POLL),
  revocations: scriptOf(REVOCATIONS),
  add: scriptOf(ADD_REVOCATION),
  lift: scriptOf(LIFT_REVOCATION),
  end: scriptOf(END_SESSION),
  leave: scriptOf(ENQUEUE_MESSAGES),
  replicas: scriptOf(REPLICAS),
  take: scriptOf(TAKE),
  raise: scriptOf(RAISE_COUNTERS),
  setFlowMarks: scriptOf(SET_FLOW_MARKS),
  flowMarks: scriptOf(FLOW_MARKS),
  addRecord: scriptOf(ADD_RECORD),
  replaceRecord: scriptOf(REPLACE_RECORD),
  overdueRecords: scriptOf(OVERDUE_RECORDS),
} as const;

function optionsOf({ commandTimeoutMs }: Pick<RedisSettings, 'commandTimeoutMs'>) {
  return {
    // A request must never wait for a store to come back.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: commandTimeoutMs,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Both would need Redis permissions that nothing else needs.
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: (times: number) => Math.min(MIN_RETRY_MS * 2 ** times, MAX_RETRY_MS),
    // After a failover the old primary refuses writes.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  } satisfies RedisOptions;
}

/** Opens the connections; until they are established, every command rejects. */
export function openRedisLink(settings: Omit<RedisSettings, 'afterLoss' | 'readiness'>): StoreLink {
  const options = optionsOf(settings);
  const redis = new Redis(settings.url, { ...options, socketTimeout: SILENT_CONNECTION_MS });
  // It subscribes at every connection, below. The client would do so too, and leave its rejection unhandled.
  const listener = new Redis(settings.url, { ...options, autoResubscribe: false });
  // Without these listeners an unreachable store would end the process; every command reports the error anyway.
  let connectionError: unknown;
  redis.on('error', (error) => {
    connectionError = error;
  });
  redis.on('ready', () => {
    connectionError = undefined;
  });
  listener.on('error', () => undefined);

  // The braces put all keys into one hash slot, so that a script may use several.
  const keyOf = (name: string): string => `{${settings.prefix}}:${name}`;
  const hintTopic = keyOf('news');
  const version = keyOf('revocations:version');
  const revocationKeys = [
    version,
    keyOf('revocations:expiry'),
    keyOf('revocations:sealed'),
    keyOf('revocations:lifted'),
  ];
  const ended = keyOf('sessions:ended');
  const replicas = keyOf('replicas');
  const epoch = keyOf('epoch');
  const queueKeyOf = (replica: string): string => keyOf(`words:${replica}`);

  const recordKeysOf = (kind: string) => ({
    record: (id: string) => keyOf(`${kind}:${id}`),
    body: (id: string) => keyOf(`${kind}:body:${id}`),
    idOf: (hash: string) => keyOf(`${kind}:key:${hash}`),
    openOf: (owner: string) => keyOf(`${kind}:open:${owner}`),
    all: keyOf(`${kind}:all`),
    open: keyOf(`${kind}:open`),
  });

  async function readRecord(kind: string, id: string): Promise<StoredRecord | undefined> {
    const [revision, sealed] = await redis.hmget(recordKeysOf(kind).record(id), 'revision', 'head');
    return typeof sealed === 'string' ? { id, revision: Number(revision), sealed } : undefined;
  }

  /** Several at once; ids without a record are those of records that have expired since. */
  async function readRecords(kind: string, ids: readonly string[]): Promise<readonly StoredRecord[]> {
    const read = await Promise.all(ids.map((id) => readRecord(kind, id)));
    return read.filter((record) => record !== undefined);
  }

  async function run(
    { lua, sha }: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const given = [...keys, ...args];
    try {
      return (await redis.evalsha(sha, keys.length, ...given)) as Reply;
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return (await redis.eval(lua, keys.length, ...given)) as Reply;
    }
  }

  return {
    isPrivate: isPrivate(settings.url),
    opened: () => firstTry(redis),
    // The error of a command without a connection has no cause; the connection error before it has.
    describe: (error) => describeStoreError(connectionError ?? error),
    async probe() {
      return Number(await run(SCRIPTS.probe, [keyOf(`probe:${randomUUID()}`)], []));
    },
    async poll(replica, { mark, readTo, maxMessages }) {
      const keys = [version, replicas, ended, queueKeyOf(replica), epoch];
      const reply = await run(SCRIPTS.poll, keys, [
        ...[replica, REPLICA_COUNTS_MS, mark, MAX_ENDED_PER_POLL, readTo, maxMessages],
        ...[randomUUID(), EPOCH_LEFT_MS],
      ]);
      const [stored, running, nowMs, pairs, messages, begun] = listOf(reply);
      const [id = '', beganMs] = String(begun).split(' ');
      const shown = pairsOf(pairs).map(([session, expiry]) => ({
        session: session.split(OWNER_SEPARATOR),
        expiryMs: Number(expiry),
      }));
      return {
        version: String(stored),
        replicas: Number(running),
        // An earlier version stored no owner: each of its sessions has one of its own, so that none displaces another.
        ended: shown.map(({ session: [hash = '', owner = hash], expiryMs }) => ({
          ...{ hash, owner },
          leftMs: expiryMs - Number(nowMs),
        })),
        mark: shown.at(-1)?.expiryMs ?? mark,
        hasMore: shown.length === MAX_ENDED_PER_POLL,
        epoch: { id, ageMs: Number(nowMs) - Number(beganMs) },
        messages: pairsOf(messages).map(([text, at]) => ({ text, at: Number(at) })),
      };
    },
    async revocations() {
      const [stored, pairs, lifted] = listOf(await run(SCRIPTS.revocations, revocationKeys, []));
      return {
        version: String(stored),
        sealed: new Map(pairsOf(pairs)),
        lifted: new Set(listOf(lifted).map(String)),
      };
    },
    async addRevocation(id, sealed, leftMs) {
      const added = await run(SCRIPTS.add, revocationKeys, [
        ...[id, sealed, integer(leftMs), MAX_REVOCATIONS, randomUUID(), VERSION_LEFT_MS, hintTopic],
      ]);
      return added === 1 ? 'added' : 'full';
    },
    async liftRevocation(id, leftMs) {
      await run(SCRIPTS.lift, revocationKeys, [...[id, integer(leftMs), randomUUID(), VERSION_LEFT_MS, hintTopic]]);
    },
    async endSession({ hash, owner, leftMs }) {
      const session = hash + OWNER_SEPARATOR + owner;
      const bounds = [MAX_ENDED.max, MAX_ENDED.maxPerOwner];
      await run(SCRIPTS.end, [ended, `${ended}:${owner}`], [session, integer(leftMs), ...bounds]);
    },
    async enqueueMessages(messages, leftMs) {
      const keys = [replicas, ...messages.map(({ replica }) => queueKeyOf(replica))];
      const left = await run(SCRIPTS.leave, keys, [
        ...[MAX_QUEUED_MESSAGES, REPLICA_COUNTS_MS, REPLICA_READS_MS, integer(leftMs), hintTopic],
        ...messages.flatMap(({ replica, text }) => [replica, text]),
      ]);
      if (Number(left) < 0) return 'full';
      return left === 0 ? 'gone' : 'enqueued';
    },
    async replicas() {
      const bounds = [REPLICA_COUNTS_MS, MAX_REPLICAS];
      return listOf(await run(SCRIPTS.replicas, [replicas], bounds)).map(String);
    },
    async take(key, { count, windowMs, amount = 1 }) {
      const stepMs = windowMs / STEPS_PER_WINDOW;
      // A limit that a reload changed starts anew, because its steps have another length.
      const uses = keyOf(`limit:${windowMs}:${key}`);
      const bounds = [count, stepMs, STEPS_PER_WINDOW, amount];
      const [waited, begun] = listOf(await run(SCRIPTS.take, [uses, epoch], bounds));
      const waitMs = Number(waited);
      const outcome = waitMs === 0 ? { ok: true as const } : { ok: false as const, retryAfterMs: waitMs };
      return { outcome, epoch: idOfEpoch(begun) };
    },
    async raiseCounters(counters, leftMs) {
      const raised = [...counters].flatMap(([hash, seen]) => [hash, seen.counter, seen.sha256]);
      const args = [integer(leftMs), ...raised];
      const reply = await run(SCRIPTS.raise, [keyOf('pins:counters')], args);
      const stored = pairsOf(reply).map(([hash, text]) => {
        const [counter, sha256 = ''] = text.split(' ');
        return [hash, { counter: Number(counter), sha256 }] as const;
      });
      return new Map(stored);
    },
    async setFlowMarks(marks, leftMs) {
      const keys = marks.map(({ hash }) => keyOf(`flow:${hash}`));
      const texts = marks.map(({ sealed }) => sealed);
      await run(SCRIPTS.setFlowMarks, keys, [integer(leftMs), ...texts]);
    },
    async flowMarks(hashes) {
      const keys = hashes.map((hash) => keyOf(`flow:${hash}`));
      const texts = listOf(await run(SCRIPTS.flowMarks, [...keys, epoch], []));
      return {
        marks: hashes.map((_, index) => String(texts[index] ?? '') || undefined),
        epoch: idOfEpoch(texts[hashes.length]),
      };
    },
    async useOnce(keyHash, leftMs) {
      return (await redis.set(keyOf(`used:${keyHash}`), '1', 'PX', integer(leftMs), 'NX')) === 'OK';
    },
    async keepFirst(keyHash, text, leftMs) {
      const key = keyOf(`first:${keyHash}`);
      if (text !== undefined) await redis.set(key, text, 'PX', integer(leftMs), 'NX');
      await redis.pexpire(key, integer(leftMs));
      return (await redis.get(key)) ?? undefined;
    },
    async addRecord(kind, { id, head, body, key, owner, replaces = '', openMs, keptMs }, bounds) {
      const keys = recordKeysOf(kind);
      const { maxOpen, maxOpenPerOwner, maxKept } = bounds;
      const added = await run(
        SCRIPTS.addRecord,
        [keys.record(id), keys.body(id), keys.idOf(key), keys.all, keys.open, keys.openOf(owner)],
        [
          ...[id, head, body, replaces, integer(openMs ?? 0), integer(keptMs)],
          ...[maxOpen, maxOpenPerOwner, maxKept, owner],
        ],
      );
      if (added === 1) return 'added';
      return added === 0 ? 'changed' : 'full';
    },
    async replaceRecord(kind, { id, revision, sealed }, { openMs, keptMs }) {
      const keys = recordKeysOf(kind);
      const owner = (await redis.hget(keys.record(id), 'owner')) ?? '';
      const done = await run(
        SCRIPTS.replaceRecord,
        [keys.record(id), keys.body(id), keys.open, keys.all, keys.openOf(owner)],
        [id, revision, sealed, openMs === undefined ? '' : integer(openMs), integer(keptMs), BODY_LEFT_MS],
      );
      return done === 1;
    },
    record: readRecord,
    async recordIdOf(kind, keyHash) {
      return (await redis.get(recordKeysOf(kind).idOf(keyHash))) ?? undefined;
    },
    async aliasRecord(kind, keyHash, id, leftMs) {
      await redis.set(recordKeysOf(kind).idOf(keyHash), id, 'PX', integer(leftMs));
    },
    async recordBody(kind, id) {
      return (await redis.get(recordKeysOf(kind).body(id))) ?? undefined;
    },
    async records(kind, most) {
      const ids = await redis.zrevrange(recordKeysOf(kind).all, 0, most - 1);
      return readRecords(kind, ids);
    },
    async openRecords(kind, most) {
      const ids = await redis.zrange(recordKeysOf(kind).open, 0, String(most - 1));
      return readRecords(kind, ids);
    },
    async overdueRecords(kind, most) {
      const { open } = recordKeysOf(kind);
      const ids = listOf(await run(SCRIPTS.overdueRecords, [open], [most])).map(String);
      const found = await readRecords(kind, ids);
      const gone = ids.filter((id) => found.every((one) => one.id !== id));
      if (gone.length > 0) await redis.zrem(open, ...gone);
      return found;
    },
    onHint(onHint) {
      const subscribe = () => void listener.subscribe(hintTopic).then(onHint, () => undefined);
      listener.on('ready', subscribe);
      listener.on('message', onHint);
      if (listener.status === 'ready') subscribe();
    },
    async close() {
      redis.disconnect();
      listener.disconnect();
    },
  };
}

/** Empty where the store has none. */
function idOfEpoch(text: Reply | undefined): string {
  return String(text ?? '').split(' ')[0] ?? '';
}

/** Resolves when the first attempt to connect has ended, successfully or not. */
function firstTry(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve();
  return new Promise((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
}

/** The store counts in whole milliseconds, and at least one. */
function integer(leftMs: number): number {
  return Math.max(1, Math.ceil(leftMs));
}

function listOf(reply: Reply | undefined): readonly Reply[] {
  if (!Array.isArray(reply)) throw new Error('the store sent an unexpected response');
  return reply as readonly Reply[];
}

/** Reads a flat list of alternating names and values. */
function pairsOf(reply: Reply | undefined): readonly (readonly [string, string])[] {
  const flat = listOf(reply);
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[String(name), String(flat[index + 1])] as const] : []));
}

function isPrivate(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'rediss:' || LOOPBACK_HOSTS.has(hostname);
}
