// Words of one replica to another, by the store that they share: sealed, bound to the replica that they are
// for, taken once, and gone after a minute. A word grants nothing: it concerns a session that its reader
// knows by a keyed hash, and whatever comes of it is judged as ever. Who is alone has nobody to tell.
// Contract §10.

import { randomUUID } from 'node:crypto';
import type { Json } from '../mcp/message.js';
import type { StatePorts } from './gateway-state.js';
import { open, seal } from './seal.js';
import type { StoreLink } from './store-link.js';

const PURPOSE = 'replica-word';
/** A replica looks far more often; what nobody took by then is for nobody. */
const WORD_LEFT_MS = 60_000;
/** By the clocks of two replicas, which may differ by a minute. */
export const WORD_OPENS_MS = 2 * WORD_LEFT_MS;
/** Words that are known to have been read; past it the oldest are forgotten first. */
const MAX_READ = 100_000;
/** The longest word, in UTF-16 units: the answer to a question is one. */
export const MAX_WORD_CHARS = 256 * 1024;
/** A sealed word of that length, in base64url, with room for characters of three bytes. */
const MAX_SEALED_CHARS = 4 * MAX_WORD_CHARS + 256;
/** Head and nonce of a sealed text, which no two have in common: 27 bytes. */
const MARK_CHARS = 36;

/** `nobody`: no such replica runs, it has too much to read, or the word is too long. */
export type Told = 'told' | 'nobody' | 'unavailable';

export type ReplicaWords = {
  /** The name of this replica, another after each start. */
  readonly self: string;
  /** Tells one replica. Never rejects. */
  tell(replica: string, word: Json): Promise<Told>;
  /** Tells all others that run now. Never rejects. */
  tellAll(word: Json): Promise<Exclude<Told, 'nobody'>>;
  /** Called with each word for this replica. */
  onWord(told: (word: Json) => void): void;
};

export type SharedWords = ReplicaWords & {
  /** Takes what a look found. */
  note(sealed: readonly string[]): void;
};

type Ports = StatePorts & {
  readonly link: Pick<StoreLink, 'leaveWord' | 'replicas'>;
  readonly isReachable: () => boolean;
  readonly onFault: (error: unknown) => void;
};

/** The words of a replica alone. */
export function createNoWords(): ReplicaWords {
  return {
    self: randomUUID(),
    tell: () => Promise.resolve('nobody'),
    tellAll: () => Promise.resolve('told'),
    onWord: () => undefined,
  };
}

/** The words of a replica among others. */
export function createSharedWords(ports: Ports): SharedWords {
  const { ring, now, link, isReachable, onFault } = ports;
  const self = randomUUID();
  const followers: ((word: Json) => void)[] = [];
  /** When what was read can be read no more, by its head and nonce. */
  const read = new Map<string, number>();

  /** A word counts once, though a store gave it twice. */
  function isNew(text: string): boolean {
    for (const [known, untilMs] of read) {
      if (untilMs > now() && read.size < MAX_READ) break;
      read.delete(known);
    }
    const mark = text.slice(0, MARK_CHARS);
    if (read.has(mark)) return false;
    read.set(mark, now() + 2 * WORD_OPENS_MS);
    return true;
  }

  async function leave(replica: string, word: Json): Promise<'told' | 'nobody'> {
    const text = JSON.stringify(word);
    if (text.length > MAX_WORD_CHARS) return 'nobody';
    const sealed = seal(ring, PURPOSE, [replica], text, now() + WORD_OPENS_MS);
    return (await link.leaveWord(replica, sealed, WORD_LEFT_MS)) ? 'told' : 'nobody';
  }

  async function unlessDown<T>(ask: () => Promise<T>): Promise<T | 'unavailable'> {
    if (!isReachable()) return 'unavailable';
    try {
      return await ask();
    } catch (error) {
      onFault(error);
      return 'unavailable';
    }
  }

  return {
    self,
    tell: (replica, word) => unlessDown(() => leave(replica, word)),
    tellAll: (word) =>
      unlessDown(async () => {
        const others = (await link.replicas()).filter((replica) => replica !== self);
        await Promise.all(others.map((replica) => leave(replica, word)));
        return 'told' as const;
      }),
    onWord: (told) => void followers.push(told),
    note(sealed) {
      for (const text of sealed) {
        const payload = open(ring, PURPOSE, [self], text, now(), MAX_SEALED_CHARS);
        if (payload === undefined || !isNew(text)) continue;
        // The cipher has proved that a gateway with this key wrote it.
        const word = JSON.parse(payload.toString('utf8')) as Json;
        for (const follow of followers) follow(word);
      }
    },
  };
}
