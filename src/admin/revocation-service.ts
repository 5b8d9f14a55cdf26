// Turns the orders of administrators into revocations and blocks: which configured issuer or upstream is meant, and how
// long it must last. A revocation never expires before the tokens that it names, because no token may live longer than
// its issuer's configuration allows. docs/reference/authorization.md;
// docs/reference/state.md#revoking-and-blocking.

import { randomUUID } from 'node:crypto';
import { CLOCK_TOLERANCE_MS, LIFETIME_SKEW_MS } from '../auth/claims.js';
import type { IssuerSettings, Settings } from '../config/settings.js';
import type { BlockTarget } from '../policy/blocks.js';
import { normalizeUri } from '../policy/uris.js';
import type { GatewayState } from '../state/memory.js';
import { endOf, type Revocation, type Revoked, tokenIdBytes, UNTIL_LIFTED_MS } from '../state/revocations.js';
import { SESSION_TTL_MS } from '../state/sealed-token.js';
import type { StatePorts } from '../state/store.js';
import type { BlockOrder, RevocationOrder, RevocationService, ShownRevocation } from './api.js';

type RevocationServicePorts = StatePorts & {
  readonly settings: () => Settings;
  readonly revocations: GatewayState['revocations'];
};

export function createRevocationService(ports: RevocationServicePorts): RevocationService {
  const { settings, revocations, now } = ports;
  return {
    list: () => revocations.list().map(toShown),
    async revoke(order, by) {
      const atMs = now();
      const planned = planRevocation(order, { ...ports, settings: settings(), atMs });
      if (typeof planned === 'string') return { kind: planned };
      const { revoked, lifetimeMs } = planned;
      const { note } = order;
      const revocation: Revocation = {
        ...{ id: randomUUID(), revoked, by, atMs, note },
        expiresAtMs: atMs + lifetimeMs,
      };
      const added = await revocations.add(revocation);
      if (added === 'full') return { kind: 'full' };
      const shown = toShown(revocation);
      const isOfActorsOnly = shown.issuer !== undefined && issuerOf(shown.issuer, settings().issuers) === undefined;
      return { kind: 'revoked', shown, isShared: added === 'shared', isOfActorsOnly };
    },
    lift: (id) => revocations.lift(id),
  };
}

type Plan = { readonly revoked: Revoked; readonly lifetimeMs: number };
type PlanContext = Pick<StatePorts, 'ring'> & {
  readonly settings: Settings;
  readonly atMs: number;
};
/** What is not configured is refused anyway, so an order about it is a mistake; except issuers that only actors have. */
type PlanError = 'unknown-issuer' | 'unknown-upstream' | 'invalid-uri';

function planRevocation(order: RevocationOrder, { ring, settings, atMs }: PlanContext): Plan | PlanError {
  const { issuers } = settings;
  switch (order.kind) {
    case 'session':
      return { revoked: { kind: 'session', digest: order.digest }, lifetimeMs: SESSION_TTL_MS };
    case 'token-digest': {
      const revoked = { kind: 'token', digest: order.digest } as const;
      return { revoked, lifetimeMs: maxLifetimeOfAllMs(issuers) };
    }
    case 'token': {
      const found = issuerOf(order.issuer, issuers);
      if (found === undefined) return 'unknown-issuer';
      const named = { issuer: found.issuer, tokenId: order.tokenId };
      const digest = ring.hmac('token-id', tokenIdBytes(named.issuer, named.tokenId));
      return { revoked: { kind: 'token', digest, named }, lifetimeMs: maxTokenLifetimeMs(found) };
    }
    case 'block': {
      const block = planBlock(order.block, settings);
      if (typeof block === 'string') return block;
      const lifetimeMs = order.expiresInMs ?? UNTIL_LIFTED_MS - atMs;
      return { revoked: { kind: 'block', block }, lifetimeMs };
    }
    case 'subject': {
      const issuer = identifierOf(order.issuer, issuers);
      if (issuer === undefined) return 'unknown-issuer';
      const { subject, client } = order;
      const revoked: Revoked = {
        ...{ kind: 'subject', issuer, subject },
        ...(client === undefined ? {} : { client }),
        // The issuer's clock may be ahead of ours by as much as verification tolerates.
        issuedUntilMs: atMs + CLOCK_TOLERANCE_MS,
      };
      // The tokens of any issuer may have it as an actor.
      return { revoked, lifetimeMs: maxLifetimeOfAllMs(issuers) };
    }
  }
}

/** The issuer by its identifier, and a resource by its normalized URI, as decisions compare them. */
function planBlock(block: BlockOrder['block'], { issuers, upstreams }: Settings): BlockTarget | PlanError {
  if ('issuer' in block) {
    const issuer = identifierOf(block.issuer, issuers);
    return issuer === undefined ? 'unknown-issuer' : { ...block, issuer };
  }
  if ('upstream' in block && !upstreams.has(block.upstream)) return 'unknown-upstream';
  if (block.target !== 'resource') return block;
  const name = normalizeUri(block.name);
  return name === undefined ? 'invalid-uri' : { ...block, name };
}

/**
 * For an issuer with introspection, whose responses may omit `iat`: a token that has too long to live to be accepted
 * now may be accepted later, when less of its life is left.
 */
const LIFETIME_WITHOUT_IAT_MS = 24 * 24 * 60 * 60 * 1000;

/** How long a token that exists now can be accepted for, in milliseconds. */
function maxTokenLifetimeMs({ maxLifetimeMs, introspection }: IssuerSettings): number {
  if (introspection !== undefined) return LIFETIME_WITHOUT_IAT_MS;
  return maxLifetimeMs + LIFETIME_SKEW_MS + CLOCK_TOLERANCE_MS;
}

function maxLifetimeOfAllMs(issuers: Settings['issuers']): number {
  return Math.max(...[...issuers.values()].map(maxTokenLifetimeMs), 0);
}

/**
 * The identifier of an issuer whose subjects and clients are meant. Actors may have one that is not configured; what is
 * almost the identifier of one that is configured is a mistake.
 */
function identifierOf(named: string, issuers: Settings['issuers']): string | undefined {
  const found = issuerOf(named, issuers);
  if (found !== undefined) return found.issuer;
  const meant = comparableUrl(named);
  const isAlmost = [...issuers.values()].some(({ issuer }) => comparableUrl(issuer) === meant);
  return meant === undefined || isAlmost ? undefined : named;
}

/** A URL without what is easily mistaken; `undefined` for what is no URL of an issuer (RFC 8414 §2). */
function comparableUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  return `${url.host}${url.pathname.replace(/\/+$/, '')}`.toLowerCase();
}

function issuerOf(named: string, issuers: Settings['issuers']): IssuerSettings | undefined {
  return issuers.get(named) ?? [...issuers.values()].find(({ issuer }) => issuer === named);
}

function toShown({ id, revoked, by, note, atMs, expiresAtMs }: Revocation): ShownRevocation {
  const expires = endOf(expiresAtMs);
  return {
    id,
    ...shownTarget(revoked),
    by,
    note,
    at: new Date(atMs).toISOString(),
    ...(expires === undefined ? {} : { expires }),
  };
}

/** A token id is shown by its digest, as everywhere else. */
function shownTarget(revoked: Revoked): Omit<ShownRevocation, 'id' | 'by' | 'note' | 'at' | 'expires'> {
  switch (revoked.kind) {
    case 'token': {
      const { digest, named } = revoked;
      return { kind: 'token', ...(named === undefined ? {} : { issuer: named.issuer }), digest };
    }
    case 'subject': {
      const { issuer, subject, client } = revoked;
      return { kind: 'subject', issuer, subject, ...(client === undefined ? {} : { client }) };
    }
    case 'session':
      return { kind: 'session', digest: revoked.digest };
    case 'block':
      return { kind: 'block', ...revoked.block };
  }
}
