// Words of one replica to another, by the store that they share: sealed, bound to the replica that they are
// for, taken once, and gone after a minute. What is told to all, its teller included, is heard everywhere in
// one order, that of the store; so replicas that were told of the same things agree on them. A word grants
// nothing: it concerns a session that its reader knows by a keyed hash, and whatever comes of it is judged as
// ever. Contract §10.

import { randomUUID } from 'node:crypto';
import type { Json } from '../mcp/message.js';
import type { StatePorts } from './gateway-state.js';
import { open, seal } from './seal.js';
import type { SealedWord, SeenBefore, StoreLink, StoreNews } from './store-link.js';

const PURPOSE = 'replica-word';
/** A replica looks far more often; what nobody took by then is for nobody. */
const WORD_LEFT_MS = 60_000;
/** By the clocks of two replicas, which may differ by a minute. */
export const WORD_OPENS_MS = 2 * WORD_LEFT_MS;
/** Words that are known to have been read; past it the oldest are forgotten first. */
const MAX_READ = 100_000;
/** Words that wait for one replica; it reads them as they come. */
export const MAX_WORDS = 256;
/** So that a look is short however much was said: at the longest, as many MiB. The next look follows at once. */
export const MAX_WORDS_A_LOOK = 32;
/** The longest word, in UTF-16 units: the answer to a question is one. */
export const MAX_WORD_CHARS = 256 * 1024;
/** A sealed word of that length, in base64url, with room for characters of three bytes. */
const MAX_SEALED_CHARS = 4 * MAX_WORD_CHARS + 256;
/** Head and nonce of a sealed text, which no two have in common: 27 bytes. */
const MARK_CHARS = 36;

/** `nobody`: no such replica runs, or the word is too long. `unavailable`: for now, it cannot be told. */
export type Told = 'told' | 'nobody' | 'unavailable';

export type ReplicaWords = {
  /** The name of this replica, another after each start. */
  readonly self: string;
  /** Tells one replica. Never rejects. */
  tell(replica: string, word: Json): Promise<Told>;
  /** Tells all that run now, or none, and resolves when this replica has heard it too. Never rejects. */
  tellAll(word: Json): Promise<Exclude<Told, 'nobody'>>;
  /** Called with each word for this replica. */
  onWord(told: (word: Json) => void): void;
};

export type SharedWords = ReplicaWords & {
  /**
   * What the next look asks for. Words too long for an answer in time would hide all else that is looked for:
   * after a look that failed the next reads none, and that after it one, then more again.
   */
  ask(): Pick<SeenBefore, 'readTo' | 'mostWords'>;
  /** Takes what a look found. */
  note(found: StoreNews['words']): void;
  /** Whether the last look showed as many as it asked for. */
  mayBeMore(): boolean;
};

type Ports = StatePorts & {
  readonly link: Pick<StoreLink, 'leaveWords' | 'replicas'>;
  readonly isReachable: () => boolean;
  /** Looks, until it holds or nothing is left to see. */
  readonly lookUntil: (isHeard: () => boolean) => Promise<void>;
  readonly onFault: (error: unknown) => void;
};

/** The words of a replica alone: all is itself. */
export function createNoWords(): ReplicaWords {
  const followers: ((word: Json) => void)[] = [];
  return {
    self: randomUUID(),
    tell: () => Promise.resolve('nobody'),
    tellAll(word) {
      for (const follow of followers) follow(word);
      return Promise.resolve('told');
    },
    onWord: (told) => void followers.push(told),
  };
}

/** The words of a replica among others. */
export function createSharedWords(ports: Ports): SharedWords {
  const { ring, now, link, isReachable, lookUntil, onFault } = ports;
  const self = randomUUID();
  const followers: ((word: Json) => void)[] = [];
  /** When what was read can be read no more, by its head and nonce. */
  const read = new Map<string, number>();
  /** The newest word of the last look: the next one lets the store forget what was read. */
  let readTo = 0;
  let asked = MAX_WORDS_A_LOOK;
  let isAnswered = true;
  let mayBeMore = false;

  /** A word counts once, though a store gave it twice. */
  function isNew(text: string): boolean {
    for (const [known, untilMs] of read) {
      if (untilMs > now() && read.size < MAX_READ) break;
      read.delete(known);
    }
    if (read.has(markOf(text))) return false;
    read.set(markOf(text), now() + 2 * WORD_OPENS_MS);
    return true;
  }

  function sealFor(replica: string, word: string): SealedWord {
    return { replica, text: seal(ring, PURPOSE, [replica], word, now() + WORD_OPENS_MS) };
  }

  async function leave(replica: string, word: string): Promise<Told> {
    const left = await link.leaveWords([sealFor(replica, word)], WORD_LEFT_MS);
    if (left === 'full') return 'unavailable';
    return left === 'gone' ? 'nobody' : 'told';
  }

  async function leaveForAll(word: string): Promise<'told' | 'unavailable'> {
    const sealed = (await link.replicas()).map((replica) => sealFor(replica, word));
    const own = sealed.find(({ replica }) => replica === self)?.text;
    if (own === undefined) return 'unavailable';
    if ((await link.leaveWords(sealed, WORD_LEFT_MS)) !== 'left') return 'unavailable';
    const isHeard = (): boolean => read.has(markOf(own));
    await lookUntil(isHeard);
    return isHeard() ? 'told' : 'unavailable';
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
    async tell(replica, word) {
      const text = JSON.stringify(word);
      return text.length > MAX_WORD_CHARS ? 'nobody' : unlessDown(() => leave(replica, text));
    },
    async tellAll(word) {
      const text = JSON.stringify(word);
      return text.length > MAX_WORD_CHARS ? 'unavailable' : unlessDown(() => leaveForAll(text));
    },
    onWord: (told) => void followers.push(told),
    ask() {
      asked = isAnswered ? Math.min(Math.max(1, 2 * asked), MAX_WORDS_A_LOOK) : 0;
      isAnswered = false;
      return { readTo, mostWords: asked };
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
        const word = JSON.parse(payload.toString('utf8')) as Json;
        for (const follow of followers) follow(word);
      }
    },
  };
}

/** What marks a sealed text; see {@link MARK_CHARS}. */
function markOf(sealed: string): string {
  return sealed.slice(0, MARK_CHARS);
}
