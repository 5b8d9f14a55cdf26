// Blocks: what an administrator has switched off while the gateway runs. Here is what a block may name, and the blocks
// in force at one upstream in the form that a decision reads. They are kept with the revocations (state/revocations.ts),
// and reach decisions through the snapshot, so nothing is looked up where nothing is blocked.
// docs/reference/state.md#revoking-and-blocking.

import { type Refusal, refuseWith } from './decision.js';
import { foldItemName, type Pattern } from './patterns.js';
import { type Actor, identityOfActor, type PrincipalFacts } from './principal.js';
import { restrictionsOfUri, restrictsUri, type UriReadings } from './uris.js';

/** The kinds of items that can be blocked one by one. */
type BlockedKind = 'tool' | 'prompt' | 'template' | 'resource';

/** What a block names. Issuers are named by their identifiers, resources by their normalized URIs. */
export type BlockTarget =
  | { readonly target: 'everything' }
  | { readonly target: 'upstream'; readonly upstream: string }
  | { readonly target: BlockedKind; readonly upstream: string; readonly name: string }
  | { readonly target: 'subject'; readonly issuer: string; readonly subject: string }
  | { readonly target: 'client'; readonly issuer: string; readonly client: string };

/** All targets, in the order in which they are counted and shown. */
export const BLOCK_TARGETS = [
  ...(['tool', 'prompt', 'template', 'resource'] as const),
  ...(['upstream', 'subject', 'client', 'everything'] as const),
] as const satisfies readonly BlockTarget['target'][];

/** The blocks in force at one upstream, by their ids. */
export type UpstreamBlocks = {
  /** The ids of all of them, as one text. */
  readonly ids: string;
  /** The block of the whole upstream, or of everything. */
  readonly entire: string | undefined;
  /**
   * The block of one item, or the one of the whole upstream. Resources are compared by all spellings of their URIs, and
   * names that nothing pins whatever their case.
   */
  of(kind: BlockedKind, name: string, how?: BlockedHow): string | undefined;
};

export type BlockedHow = {
  readonly readings?: UriReadings | undefined;
  readonly isUnpinned?: boolean;
};

/** The blocks that concern an upstream; `undefined` if there are none. */
export function blocksAt(upstream: string, blocks: ReadonlyMap<string, BlockTarget>): UpstreamBlocks | undefined {
  const items = new Map<string, string>();
  const folded = new Map<string, string>();
  const resources: { readonly id: string; readonly patterns: readonly Pattern[] }[] = [];
  const ids: string[] = [];
  let entire: string | undefined;
  for (const [id, block] of blocks) {
    if (block.target === 'everything') entire ??= id;
    else if (!('upstream' in block) || block.upstream !== upstream) continue;
    else if (block.target === 'upstream') entire ??= id;
    else if (block.target === 'resource') resources.push({ id, patterns: restrictionsOfUri(block.name) });
    else {
      items.set(itemKey(block.target, block.name), id);
      folded.set(itemKey(block.target, foldItemName(block.name)), id);
    }
    ids.push(id);
  }
  if (ids.length === 0) return undefined;
  return {
    ids: ids.sort().join(' '),
    entire,
    of(kind, name, { readings, isUnpinned = false } = {}) {
      const byUri = readings && resources.find(({ patterns }) => restrictsUri(patterns, readings))?.id;
      const byName =
        items.get(itemKey(kind, name)) ?? (isUnpinned ? folded.get(itemKey(kind, foldItemName(name))) : undefined);
      return byUri ?? byName ?? entire;
    },
  };
}

function itemKey(kind: BlockedKind, name: string): string {
  return `${kind} ${name}`;
}

/** Of a caller what blocks and revocations compare: its subject, its client and whoever acts for it. */
export type Identities = Pick<PrincipalFacts, 'issuerUrl' | 'subject' | 'client' | 'actors'>;

/** One identity of a caller: the names that switches by identity know it by. */
type NamedIdentity = {
  /** The key of the subject. */
  readonly subject: string;
  /** The key of its client. */
  readonly client: string;
  /** The clients through which it is here, for a switch that names subject and client. */
  readonly through: readonly string[];
};

/**
 * Everyone on whose account a caller is here: the subject, then every actor of the chain, whichever issuer they have.
 * INVARIANT: blocks and revocations find a caller by this function alone. A client that acts in its own name is often an
 * actor under its client id alone, so an actor without a client counts as the client of that name (RFC 9068 §2.2).
 */
export function identitiesOf(caller: Identities): readonly NamedIdentity[] {
  const { issuerUrl, subject, client, actors } = caller;
  return [
    {
      subject: identityKey('subject', issuerUrl, subject),
      client: identityKey('client', issuerUrl, client),
      through: [client],
    },
    ...actors.map((actor: Actor) => {
      const { issuer, subject: name } = identityOfActor(actor, caller);
      const own = actor.client ?? name;
      return {
        subject: identityKey('subject', issuer, name),
        client: identityKey('client', issuer, own),
        through: [client, own],
      };
    }),
  ];
}

/** Identifies a subject or a client of an issuer. */
export function identityKey(of: 'subject' | 'client', issuer: string, name: string): string {
  return JSON.stringify([of, issuer, name]);
}

/** The key of the identity that a block names, if it names one. */
export function blockedIdentity(block: BlockTarget): string | undefined {
  switch (block.target) {
    case 'subject':
      return identityKey('subject', block.issuer, block.subject);
    case 'client':
      return identityKey('client', block.issuer, block.client);
    default:
      return undefined;
  }
}

/** The block of a subject among a caller's identities, by the ids of blocks under the keys that they name. */
export function subjectBlock(blocked: ReadonlyMap<string, string>, caller: Identities): string | undefined {
  return blockOf(blocked, caller, ['subject']);
}

/** The block of a caller: of a subject or else of a client among its identities. */
export function callerBlock(blocked: ReadonlyMap<string, string>, caller: Identities): string | undefined {
  return blockOf(blocked, caller, ['subject', 'client']);
}

function blockOf(
  blocked: ReadonlyMap<string, string>,
  caller: Identities,
  sorts: readonly ('subject' | 'client')[],
): string | undefined {
  // Nearly always nothing is blocked, and this is asked for every call.
  if (blocked.size === 0) return undefined;
  const identities = identitiesOf(caller);
  for (const sort of sorts) {
    for (const identity of identities) {
      const id = blocked.get(identity[sort]);
      if (id !== undefined) return id;
    }
  }
  return undefined;
}

/** The rule that the record of a refused request names for a block. */
export function blockRule(id: string): { readonly policy: string; readonly rule: string } {
  return { policy: 'builtin', rule: `block:${id}` };
}

/** The refusal of whoever is blocked: a caller, an upstream or everything. */
export function refuseBlocked(id: string): Refusal {
  return refuseWith('blocked', blockRule(id));
}
