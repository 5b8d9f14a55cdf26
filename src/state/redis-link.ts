// The store that replicas share, in Redis 6.2 or Valkey: one connection for questions, one that only listens for hints.
// A command waits for nothing: without a connection, or past its time, it is a fault at once. Keys share a
// prefix and a hash slot, values are hashes or sealed, and everything ends by itself.

import { createHash, randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import type { StateSettings } from '../config/settings.js';
import {
  ADD_REVOCATION,
  END_SESSION,
  ENQUEUE_MESSAGES,
  LIFT_REVOCATION,
  POLL,
  REPLICAS,
  REVOCATIONS,
  TAKE,
} from './redis-scripts.js';
import { MAX_QUEUED_MESSAGES } from './replica-words.js';
import { MAX_REVOCATIONS } from './revocation-set.js';
import type { StoreLink } from './store-link.js';

/** A replica that did not look for so long is not counted. */
const REPLICA_COUNTS_MS = 10_000;
/** Ended sessions that one look shows, and that the store keeps. */
const MAX_ENDED_PER_POLL = 5_000;
const MAX_ENDED = 100_000;
/** One for which so many words wait that there is no room, and that did not look for so long, reads none of them. */
const REPLICA_READS_MS = 3_000;
/** Replicas that are told of something; nobody runs so many. */
const MAX_REPLICAS = 1_000;
/** Longer than any revocation lives, so that a version outlives what it is of. */
const VERSION_LEFT_MS = 30 * 24 * 60 * 60 * 1000;
/** Parts of a window of a limit; see memory-limits.ts. */
const STEPS_PER_WINDOW = 16;

const CONNECT_TIMEOUT_MS = 2_000;
/** Looks never pause for so long: a connection without an answer is dead. */
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
  poll: scriptOf(POLL),
  revocations: scriptOf(REVOCATIONS),
  add: scriptOf(ADD_REVOCATION),
  lift: scriptOf(LIFT_REVOCATION),
  end: scriptOf(END_SESSION),
  leave: scriptOf(ENQUEUE_MESSAGES),
  replicas: scriptOf(REPLICAS),
  take: scriptOf(TAKE),
} as const;

function optionsOf({ commandTimeoutMs }: RedisSettings) {
  return {
    // A call must never wait for a store to come back.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: commandTimeoutMs,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Both would ask for rights that nothing else needs.
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: (times: number) => Math.min(MIN_RETRY_MS * 2 ** times, MAX_RETRY_MS),
    // After a failover the old primary takes no writes.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  } satisfies RedisOptions;
}

/** Opens the connections; until they stand, everything rejects. */
export function openRedisLink(settings: RedisSettings): StoreLink {
  const options = optionsOf(settings);
  const redis = new Redis(settings.url, { ...options, socketTimeout: SILENT_CONNECTION_MS });
  const listener = new Redis(settings.url, options);
  // Without these an unreachable store would end the process; every command tells of it anyway.
  let refused: unknown;
  redis.on('error', (error) => {
    refused = error;
  });
  redis.on('ready', () => {
    refused = undefined;
  });
  listener.on('error', () => undefined);

  // The braces put all keys into one slot, so that a script may touch several.
  const keyOf = (name: string): string => `{${settings.prefix}}:${name}`;
  const channel = keyOf('news');
  const version = keyOf('revocations:version');
  const revocationKeys = [
    version,
    keyOf('revocations:expiry'),
    keyOf('revocations:sealed'),
    keyOf('revocations:lifted'),
  ];
  const ended = keyOf('sessions:ended');
  const replicas = keyOf('replicas');
  const queueKeyOf = (replica: string): string => keyOf(`words:${replica}`);

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
    // A command without a connection says nothing; why there is none was said before.
    describe: (error) => describeError(refused ?? error),
    async poll(replica, { mark, readTo, maxMessages }) {
      const keys = [version, replicas, ended, queueKeyOf(replica)];
      const reply = await run(SCRIPTS.poll, keys, [
        ...[replica, REPLICA_COUNTS_MS, mark, MAX_ENDED_PER_POLL, readTo, maxMessages],
      ]);
      const [stored, running, nowMs, pairs, messages] = listOf(reply);
      const shown = pairsOf(pairs).map(([hash, expiry]) => ({ hash, expiryMs: Number(expiry) }));
      return {
        version: String(stored),
        replicas: Number(running),
        ended: shown.map(({ hash, expiryMs }) => ({ hash, leftMs: expiryMs - Number(nowMs) })),
        mark: shown.at(-1)?.expiryMs ?? mark,
        hasMore: shown.length === MAX_ENDED_PER_POLL,
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
        ...[id, sealed, integer(leftMs), MAX_REVOCATIONS, randomUUID(), VERSION_LEFT_MS, channel],
      ]);
      return added === 1 ? 'added' : 'full';
    },
    async liftRevocation(id, leftMs) {
      await run(SCRIPTS.lift, revocationKeys, [
        ...[id, integer(leftMs), randomUUID(), VERSION_LEFT_MS, channel],
      ]);
    },
    async endSession(hash, leftMs) {
      await run(SCRIPTS.end, [ended], [hash, integer(leftMs), MAX_ENDED]);
    },
    async enqueueMessages(messages, leftMs) {
      const keys = [replicas, ...messages.map(({ replica }) => queueKeyOf(replica))];
      const left = await run(SCRIPTS.leave, keys, [
        ...[MAX_QUEUED_MESSAGES, REPLICA_COUNTS_MS, REPLICA_READS_MS, integer(leftMs), channel],
        ...messages.flatMap(({ replica, text }) => [replica, text]),
      ]);
      if (Number(left) < 0) return 'full';
      return left === 0 ? 'gone' : 'left';
    },
    async replicas() {
      const bounds = [REPLICA_COUNTS_MS, MAX_REPLICAS];
      return listOf(await run(SCRIPTS.replicas, [replicas], bounds)).map(String);
    },
    async take(key, { count, windowMs }) {
      const stepMs = windowMs / STEPS_PER_WINDOW;
      // A limit that a reload changed starts anew: its steps are of another length.
      const uses = keyOf(`limit:${windowMs}:${key}`);
      const waitMs = Number(await run(SCRIPTS.take, [uses], [count, stepMs, STEPS_PER_WINDOW]));
      return waitMs === 0 ? { ok: true } : { ok: false, retryAfterMs: waitMs };
    },
    async useOnce(keyHash, leftMs) {
      return (await redis.set(keyOf(`used:${keyHash}`), '1', 'PX', integer(leftMs), 'NX')) === 'OK';
    },
    onHint(onHint) {
      const subscribe = () => void listener.subscribe(channel).then(onHint, () => undefined);
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

/** Resolves when the first try to connect has ended, either way. */
function firstTry(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve();
  return new Promise((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
}

/** What the store itself says begins with a word in capitals; nothing else of an error is shown. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const errorPrefix = /^[A-Z]{4,16}(?= )/.exec(error.message)?.[0];
  if (errorPrefix !== undefined) return errorPrefix;
  return error.message === 'Command timed out' ? 'no answer in time' : 'no connection';
}

/** The store counts in whole milliseconds, and in at least one. */
function integer(leftMs: number): number {
  return Math.max(1, Math.ceil(leftMs));
}

function listOf(reply: Reply | undefined): readonly Reply[] {
  if (!Array.isArray(reply)) throw new Error('the store answered with something else');
  return reply as readonly Reply[];
}

/** A flat list of names and values, in turn. */
function pairsOf(reply: Reply | undefined): readonly (readonly [string, string])[] {
  const flat = listOf(reply);
  return flat.flatMap((name, index) =>
    index % 2 === 0 ? [[String(name), String(flat[index + 1])] as const] : [],
  );
}

function isPrivate(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'rediss:' || LOOPBACK_HOSTS.has(hostname);
}
