// Words of one replica to another, by the store that they share: sealed, bound to the replica that they are
// for, taken once, and gone after a minute. What is told to all, its teller included, is heard everywhere in
// one order, that of the store; so replicas that were told of the same things agree on them. A word grants
// nothing: it concerns a session that its reader knows by a keyed hash, and whatever comes of it is judged as
// ever. docs/contract.md §10.

import { randomUUID } from 'node:crypto';
import type { Json } from '../protocol/jsonrpc.js';
import { open, seal } from './sealed-token.js';
import type { SealedMessage, SeenBefore, StatePorts, StoreLink, StoreUpdate } from './store.js';

const PURPOSE = 'replica-word';
/** A replica looks far more often; what nobody took by then is for nobody. */
const MESSAGE_TTL_MS = 60_000;
/** By the clocks of two replicas, which may differ by a minute. */
export const MESSAGE_OPENS_MS = 2 * MESSAGE_TTL_MS;
/** Words that are known to have been read; past it the oldest are forgotten first. */
const MAX_READ = 100_000;
/** Words that wait for one replica; it reads them as they come. */
export const MAX_QUEUED_MESSAGES = 256;
/** So that a look is short however much was said: at the longest, as many MiB. The next look follows at once. */
export const MAX_MESSAGES_PER_POLL = 32;
/** The longest word, in UTF-16 units: the answer to a question is one. */
export const MAX_MESSAGE_CHARS = 256 * 1024;
/** A sealed word of that length, in base64url, with room for characters of three bytes. */
const MAX_SEALED_CHARS = 4 * MAX_MESSAGE_CHARS + 256;
/** Head and nonce of a sealed text, which no two have in common: 27 bytes. */
const MARK_CHARS = 36;

/** `nobody`: no such replica runs, or the word is too long. `unavailable`: for now, it cannot be told. */
export type DeliveryResult = 'told' | 'nobody' | 'unavailable';

export type ReplicaBus = {
  /** The name of this replica, another after each start. */
  readonly self: string;
  /** Tells one replica. Never rejects. */
  send(replica: string, message: Json): Promise<DeliveryResult>;
  /** Tells all that run now, or none, and resolves when this replica has heard it too. Never rejects. */
  publish(message: Json): Promise<Exclude<DeliveryResult, 'nobody'>>;
  /** Called with each word for this replica. */
  onMessage(listener: (message: Json) => void): void;
};

export type SharedReplicaBus = ReplicaBus & {
  /**
   * What the next look asks for. Words too long for an answer in time would hide all else that is looked for:
   * after a look that failed the next reads none, and that after it one, then more again.
   */
  ask(): Pick<SeenBefore, 'readTo' | 'maxMessages'>;
  /** Takes what a look found. */
  note(found: StoreUpdate['messages']): void;
  /** Whether the last look showed as many as it asked for. */
  mayBeMore(): boolean;
};

type Ports = StatePorts & {
  readonly link: Pick<StoreLink, 'enqueueMessages' | 'replicas'>;
  readonly isReachable: () => boolean;
  /** Looks, until it holds or nothing is left to see. */
  readonly pollUntil: (isReceived: () => boolean) => Promise<void>;
  readonly onError: (error: unknown) => void;
};

/** The words of a replica alone: all is itself. */
export function createLocalReplicaBus(): ReplicaBus {
  const listeners: ((message: Json) => void)[] = [];
  return {
    self: randomUUID(),
    send: () => Promise.resolve('nobody'),
    publish(message) {
      for (const follow of listeners) follow(message);
      return Promise.resolve('told');
    },
    onMessage: (listener) => void listeners.push(listener),
  };
}

/** The words of a replica among others. */
export function createSharedReplicaBus(ports: Ports): SharedReplicaBus {
  const { ring, now, link, isReachable, pollUntil, onError } = ports;
  const self = randomUUID();
  const listeners: ((message: Json) => void)[] = [];
  /** When what was read can be read no more, by its head and nonce. */
  const read = new Map<string, number>();
  /** The newest word of the last look: the next one lets the store forget what was read. */
  let readTo = 0;
  let asked = MAX_MESSAGES_PER_POLL;
  let isAnswered = true;
  let mayBeMore = false;

  /** A word counts once, though a store gave it twice. */
  function isNew(text: string): boolean {
    for (const [known, untilMs] of read) {
      if (untilMs > now() && read.size < MAX_READ) break;
      read.delete(known);
    }
    if (read.has(markOf(text))) return false;
    read.set(markOf(text), now() + 2 * MESSAGE_OPENS_MS);
    return true;
  }

  function sealFor(replica: string, message: string): SealedMessage {
    return { replica, text: seal(ring, PURPOSE, [replica], message, now() + MESSAGE_OPENS_MS) };
  }

  async function leave(replica: string, message: string): Promise<DeliveryResult> {
    const left = await link.enqueueMessages([sealFor(replica, message)], MESSAGE_TTL_MS);
    if (left === 'full') return 'unavailable';
    return left === 'gone' ? 'nobody' : 'told';
  }

  async function leaveForAll(message: string): Promise<'told' | 'unavailable'> {
    const sealed = (await link.replicas()).map((replica) => sealFor(replica, message));
    const own = sealed.find(({ replica }) => replica === self)?.text;
    if (own === undefined) return 'unavailable';
    if ((await link.enqueueMessages(sealed, MESSAGE_TTL_MS)) !== 'left') return 'unavailable';
    const isReceived = (): boolean => read.has(markOf(own));
    await pollUntil(isReceived);
    return isReceived() ? 'told' : 'unavailable';
  }

  async function unlessDown<T>(ask: () => Promise<T>): Promise<T | 'unavailable'> {
    if (!isReachable()) return 'unavailable';
    try {
      return await ask();
    } catch (error) {
      onError(error);
      return 'unavailable';
    }
  }

  return {
    self,
    async send(replica, message) {
      const text = JSON.stringify(message);
      return text.length > MAX_MESSAGE_CHARS ? 'nobody' : unlessDown(() => leave(replica, text));
    },
    async publish(message) {
      const text = JSON.stringify(message);
      return text.length > MAX_MESSAGE_CHARS ? 'unavailable' : unlessDown(() => leaveForAll(text));
    },
    onMessage: (listener) => void listeners.push(listener),
    ask() {
      asked = isAnswered ? Math.min(Math.max(1, 2 * asked), MAX_MESSAGES_PER_POLL) : 0;
      isAnswered = false;
      return { readTo, maxMessages: asked };
    },
    mayBeMore: () => mayBeMore,
    note(found) {
      isAnswered = true;
      mayBeMore = found.length === asked;
      readTo = found.at(-1)?.at ?? 0;
      for (const { text } of found) {
        const payload = open(ring, PURPOSE, [self], text, now(), MAX_SEALED_CHARS);
        if (payload === undefined || !isNew(text)) continue;
        // The cipher has proved that a gateway with this key wrote it.
        const message = JSON.parse(payload.toString('utf8')) as Json;
        for (const follow of listeners) follow(message);
      }
    },
  };
}

/** What marks a sealed text; see {@link MARK_CHARS}. */
function markOf(sealed: string): string {
  return sealed.slice(0, MARK_CHARS);
}
