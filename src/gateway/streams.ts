// The open streams of clients: who holds one, so that a change can be announced there and a stream
// whose reason is gone can be ended.

import type { AggregateSettings, IssuerSettings, Settings } from '../config/settings.js';
import type { Principal } from '../policy/principal.js';
import type { OpenStream } from '../proxy/ports.js';

// Who is told when a version was applied or somebody was revoked: listeners for good, and the open streams,
// which come and go with every exchange.

export type ChangeEmitter = {
  /** Tells `told` from now on, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Tells everyone who follows, in no order. */
  emit(): void;
};

type ChangeListener = { readonly listener: () => void; at: number };

/**
 * Nobody follows yet. An array, not a Set, for the reason that live-table.ts gives.
 */
export function createChangeEmitter(): ChangeEmitter {
  const listeners: ChangeListener[] = [];

  const isHere = (entry: ChangeListener): boolean => listeners[entry.at] === entry;

  function leave(entry: ChangeListener): void {
    if (!isHere(entry)) return;
    const last = listeners.pop();
    if (last === undefined || last === entry) return;
    listeners[entry.at] = last;
    last.at = entry.at;
  }

  return {
    subscribe(listener) {
      const entry = { listener, at: listeners.length };
      listeners.push(entry);
      return () => leave(entry);
    },
    emit() {
      for (const entry of [...listeners]) if (isHere(entry)) entry.listener();
    },
  };
}

// Whether a stream that was opened under one configuration may stay open under the next: only where it still
// goes where it went, and its caller would be let in as the same principal. It verifies nothing and looks at
// no rule: what may be seen on a stream is judged message by message.
// docs/contract.md §3 (reload: a stream whose principal, token or upstream is gone is closed).

type Holder = Pick<OpenStream, 'upstream' | 'aggregate' | 'principal'>;

/** True where what let the holder of a stream in stands in `next` as it stood in `before`. */
export function isAccessUnchanged(holder: Holder, before: Settings, next: Settings): boolean {
  const terms = accessTermsOf(holder, next);
  return terms !== undefined && terms === accessTermsOf(holder, before);
}

/** What the settings say of this caller's tokens here; `undefined` where nobody vouches for them. */
function accessTermsOf(holder: Holder, settings: Settings): string | undefined {
  const { principal } = holder;
  const through = wayOf(holder, settings);
  if (through === undefined || through.authentication === 'none') return through?.authentication;
  const { issuers, resource, audiences, binding } = through;
  if (!issuers.includes(principal.issuer)) return undefined;
  const issuer = settings.issuers.get(principal.issuer);
  const isProvedByCertificate = principal.token.boundTo?.certificate !== undefined;
  return JSON.stringify([
    ...[resource, audiences[principal.issuer], binding, issuer && rulesOf(issuer)],
    isProvedByCertificate && settings.listeners.data.tls?.clientCa,
  ]);
}

/** The upstream, or the endpoint of several of which it is still a member. */
function wayOf(
  { upstream, aggregate }: Holder,
  { upstreams, aggregates }: Settings,
): Omit<AggregateSettings, 'backends' | 'scopesSupported'> | undefined {
  const found = upstreams.get(upstream);
  if (found === undefined || aggregate === undefined) return found;
  const through = aggregates.get(aggregate);
  return through?.backends.some((one) => one.upstream === upstream) ? through : undefined;
}

/** What decides about tokens: how keys are had, or how the issuer is asked, changes no verdict. */
function rulesOf({ introspection, ...issuer }: IssuerSettings): unknown {
  const { network: _network, keysMaxAgeMs: _keysMaxAgeMs, ...rules } = issuer;
  return [rules, introspection !== undefined];
}

/** Idle streams are cheap and not free: one caller's must not be everyone's. */
export const MAX_STREAMS_A_CALLER = 64;
const MAX_STREAMS = 10_000;

/** A caller by identity, not by token: tokens are refreshed. */
function holderOf(upstream: string, { issuerUrl, subject, client }: Principal): string {
  return JSON.stringify([upstream, issuerUrl, subject, client]);
}

export type StreamRegistry = {
  /** False when this caller, or everyone together, holds as many streams as allowed. */
  hasCapacity(upstream: string, principal: Principal): boolean;
  register(stream: OpenStream): () => void;
  /** Tells every stream of an upstream that a list changed. */
  announce(upstream: string, method: string): void;
  /** Ends the streams for which `isGone` holds. */
  endWhere(isGone: (stream: OpenStream) => boolean): void;
  readonly size: number;
};

/** `count` is told of every stream that opens (1) and ends (-1). */
export function createStreamRegistry(
  count: (upstream: string, delta: 1 | -1) => void,
): StreamRegistry {
  const open = new Set<OpenStream>();
  const held = new Map<string, number>();

  function hold(stream: OpenStream, delta: 1 | -1): void {
    const holder = holderOf(stream.upstream, stream.principal);
    const now = (held.get(holder) ?? 0) + delta;
    if (now > 0) held.set(holder, now);
    else held.delete(holder);
    count(stream.upstream, delta);
  }

  return {
    hasCapacity(upstream, principal) {
      const own = held.get(holderOf(upstream, principal)) ?? 0;
      return open.size < MAX_STREAMS && own < MAX_STREAMS_A_CALLER;
    },
    register(stream) {
      open.add(stream);
      hold(stream, 1);
      return () => {
        if (open.delete(stream)) hold(stream, -1);
      };
    },
    announce(upstream, method) {
      for (const stream of open) if (stream.upstream === upstream) stream.announce(method);
    },
    endWhere(isGone) {
      for (const stream of [...open]) if (isGone(stream)) stream.end();
    },
    get size() {
      return open.size;
    },
  };
}
