// What replicas tell each other, and where it is heard: words about sessions that the gateway holds for
// upstreams without any, by the upstream, and sessions that ended elsewhere.

import type { Json } from '../mcp/message.js';
import type { GatewayState } from '../state/gateway-state.js';
import type { ReplicaWords } from '../state/replica-words.js';
import {
  type SessionWord,
  type SessionWords,
  shareWords,
} from '../upstream/translate/session-words.js';
import type { Runtimes } from './runtimes.js';

type UpstreamWord = SessionWord & { readonly upstream: string };

/** The words that are said of the sessions of one upstream. */
export type WordsAbout = (upstream: string) => SessionWords;

/** Says them. An owner has one share, however many upstreams it has sessions with, and whatever is reloaded. */
export function createWordsAbout(words: ReplicaWords): WordsAbout {
  const { self, tell, tellAll } = shareWords({
    self: words.self,
    tell: (replica, word) => words.tell(replica, word as unknown as Json),
    tellAll: (word) => words.tellAll(word as unknown as Json),
  });
  return (upstream) => {
    const about = (word: SessionWord): UpstreamWord => ({ upstream, ...word });
    return {
      self,
      tell: (replica, word) => tell(replica, about(word)),
      tellAll: (word) => tellAll(about(word)),
    };
  };
}

/** Hears the other replicas from now on. */
export function hearReplicas(
  { words, ended }: Pick<GatewayState, 'words' | 'ended'>,
  runtimes: Runtimes,
): void {
  words.onWord((said) => {
    // Only gateways with this key say anything, and nothing but this.
    const { upstream, ...word } = said as unknown as UpstreamWord;
    runtimes.get(upstream)?.translation.sessions.hear(word);
  });
  ended.onElsewhere(() => {
    for (const { translation } of runtimes.all()) translation.sessions.forgetWhere(ended.has);
  });
}
