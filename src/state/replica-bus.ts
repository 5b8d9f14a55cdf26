// The replica bus: messages between replicas through the shared store, sealed to their recipient, delivered at most
// once and dropped after a minute. Broadcasts, which include their sender, arrive everywhere in the order of the store,
// so replicas that received the same broadcasts agree. A message grants nothing: it concerns a session that its
// recipient knows by a keyed hash, and whatever follows from it is checked as usual.
// docs/reference/state.md#sessions-on-any-replica.

import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Json } from '../protocol/jsonrpc.js';
import { BoundedMap } from './bounds.js';
import { sealedToken } from './sealed-token.js';
import type { SealedMessage, SeenBefore, StatePorts, StoreLink, StoreUpdate } from './store.js';

/** A replica polls far more often; a message that was not read by then has no reader. */
const MESSAGE_TTL_MS = 60_000;
/** Twice as long, because it is checked by the clocks of two replicas, which may differ by a minute. */
export const SEALED_MESSAGE_TTL_MS = 2 * MESSAGE_TTL_MS;
/** Messages remembered as read; beyond it the oldest are forgotten, which have long expired. */
const MAX_READ = 100_000;
/** Messages that may wait for one replica; it reads them as they arrive. */
export const MAX_QUEUED_MESSAGES = 256;
/** Bounds a poll however much was sent: to as many MiB at most. The next poll follows at once. */
export const MAX_MESSAGES_PER_POLL = 32;
/** The longest message, in UTF-16 units: it may carry the reply to a server request. */
export const MAX_MESSAGE_CHARS = 256 * 1024;
/** A sealed message of that length, in base64url, with allowance for characters of three bytes. */
const MAX_SEALED_CHARS = 4 * MAX_MESSAGE_CHARS + 256;
/** Bound to the name of its recipient. */
const MESSAGE = sealedToken<Json>('replica-word', {
  maxPayload: MAX_MESSAGE_CHARS,
  maxCharacters: MAX_SEALED_CHARS,
});
/** Header and nonce of a sealed text, 27 bytes, which no two texts have in common. */
const MARK_CHARS = 36;

/** `undeliverable`: no such replica runs, or the message is too long. `unavailable`: it cannot be delivered now. */
type DeliveryResult = 'delivered' | 'undeliverable' | 'unavailable';

const SENT = { enqueued: 'delivered', gone: 'undeliverable', full: 'unavailable' } as const;

export type ReplicaBus = {
  /** The name of this replica, a new one after each start. */
  readonly self: string;
  /** Sends to one replica. Never rejects. */
  send(replica: string, message: Json): Promise<DeliveryResult>;
  /** Sends to all replicas that run now, or to none; resolves when this replica has received it too. Never rejects. */
  publish(message: Json): Promise<Exclude<DeliveryResult, 'undeliverable'>>;
  /** Called with each message for this replica. */
  onMessage(listener: (message: Json) => void): void;
};

type SharedReplicaBus = ReplicaBus & {
  /**
   * Polls the store and passes on the messages that it returns. Messages too long for a reply in time would block
   * everything else that is polled: after a failed poll the next asks for no message, the one after it for one, then for
   * twice as many each time.
   */
  poll(ask: (options: Pick<SeenBefore, 'readTo' | 'maxMessages'>) => Promise<StoreUpdate>): Promise<StoreUpdate>;
  /** Whether the last poll returned as many messages as it asked for. */
  mayBeMore(): boolean;
};

type Ports = StatePorts & {
  readonly link: Pick<StoreLink, 'enqueueMessages' | 'replicas'>;
  readonly isReachable: () => boolean;
  /** Polls until `isReceived` holds or no message is left. */
  readonly pollUntil: (isReceived: () => boolean) => Promise<void>;
  readonly onError: (error: unknown) => void;
};

/** The bus of a single replica, which sends to itself only. */
export function createLocalReplicaBus(): ReplicaBus {
  const inbox = new EventEmitter<{ message: [Json] }>();
  return {
    self: randomUUID(),
    send: () => Promise.resolve('undeliverable'),
    publish(message) {
      inbox.emit('message', message);
      return Promise.resolve('delivered');
    },
    onMessage: (listener) => void inbox.on('message', listener),
  };
}

/** The bus of a replica among others. */
export function createSharedReplicaBus(ports: Ports): SharedReplicaBus {
  const { ring, now, link, isReachable, pollUntil, onError } = ports;
  const self = randomUUID();
  const inbox = new EventEmitter<{ message: [Json] }>();
  /** Messages that were read, by header and nonce. */
  const read = new BoundedMap<string, true>(MAX_READ);
  /** Score of the newest message of the last poll; with the next one the store deletes what was read. */
  let readTo = 0;
  let maxMessages = MAX_MESSAGES_PER_POLL;
  let mayBeMore = false;

  /** A message counts once, even if the store returned it twice. */
  function isNew(text: string): boolean {
    if (read.has(markOf(text))) return false;
    read.set(markOf(text), true);
    return true;
  }

  /** None where the message is too long. */
  function sealFor(replica: string, message: Json): readonly SealedMessage[] {
    const text = MESSAGE.seal(ring, [replica], message, now() + SEALED_MESSAGE_TTL_MS);
    return text === undefined ? [] : [{ replica, text }];
  }

  async function enqueueForAll(message: Json): Promise<'delivered' | 'unavailable'> {
    const sealed = (await link.replicas()).flatMap((replica) => sealFor(replica, message));
    const ownText = sealed.find(({ replica }) => replica === self)?.text;
    if (ownText === undefined) return 'unavailable';
    if ((await link.enqueueMessages(sealed, MESSAGE_TTL_MS)) !== 'enqueued') return 'unavailable';
    const isReceived = (): boolean => read.has(markOf(ownText));
    await pollUntil(isReceived);
    return isReceived() ? 'delivered' : 'unavailable';
  }

  async function ifReachable<T>(operation: () => Promise<T>): Promise<T | 'unavailable'> {
    if (!isReachable()) return 'unavailable';
    try {
      return await operation();
    } catch (error) {
      onError(error);
      return 'unavailable';
    }
  }

  return {
    self,
    async send(replica, message) {
      const sealed = sealFor(replica, message);
      if (sealed.length === 0) return 'undeliverable';
      return ifReachable(async () => SENT[await link.enqueueMessages(sealed, MESSAGE_TTL_MS)]);
    },
    publish: (message) => ifReachable(() => enqueueForAll(message)),
    onMessage: (listener) => void inbox.on('message', listener),
    mayBeMore: () => mayBeMore,
    async poll(ask) {
      const asked = maxMessages;
      // Stays so if this poll fails.
      maxMessages = 0;
      const update = await ask({ readTo, maxMessages: asked });
      maxMessages = Math.min(Math.max(1, 2 * asked), MAX_MESSAGES_PER_POLL);
      mayBeMore = update.messages.length === asked;
      readTo = update.messages.at(-1)?.at ?? 0;
      for (const { text } of update.messages) {
        const message = MESSAGE.open(ring, [self], text, now());
        if (message !== undefined && isNew(text)) inbox.emit('message', message);
      }
      return update;
    },
  };
}

/** The unique prefix of a sealed text; see {@link MARK_CHARS}. */
function markOf(sealed: string): string {
  return sealed.slice(0, MARK_CHARS);
}
