// Turns the orders of administrators into revocations: which configured issuer is meant, and how long the revocation
// must last. A revocation never expires before the tokens that it names, because no token may live longer than its
// issuer's configuration allows. docs/contract.md §3 (`maxLifetime`) and §10.

import { randomUUID } from 'node:crypto';
import type { RevocationOrder, RevocationService, ShownRevocation } from '../admin/revocations.js';
import { CLOCK_TOLERANCE_MS, LIFETIME_SKEW_MS } from '../auth/claims.js';
import type { IssuerSettings, Settings } from '../config/settings.js';
import type { GatewayState } from '../state/memory.js';
import type { Revocation, Revoked } from '../state/revocations.js';
import { tokenIdBytes } from '../state/revocations.js';
import type { StatePorts } from '../state/store.js';
import { SESSION_TTL_MS } from './sealed-ids.js';

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
      const planned = planRevocation(order, { ...ports, issuers: settings().issuers, atMs });
      if (planned === undefined) return { kind: 'unknown-issuer' };
      const { revoked, lifetimeMs } = planned;
      const { note } = order;
      const revocation: Revocation = {
        ...{ id: randomUUID(), revoked, by, atMs, note },
        expiresAtMs: atMs + lifetimeMs,
      };
      const added = await revocations.add(revocation);
      if (added === 'full') return { kind: 'full' };
      return { kind: 'revoked', shown: toShown(revocation), isShared: added === 'shared' };
    },
    lift: (id) => revocations.lift(id),
  };
}

type Plan = { readonly revoked: Revoked; readonly lifetimeMs: number };
type PlanContext = Pick<StatePorts, 'ring'> & {
  readonly issuers: Settings['issuers'];
  readonly atMs: number;
};

/** `undefined` where the issuer is not configured: its tokens are refused anyway. */
function planRevocation(
  order: RevocationOrder,
  { ring, issuers, atMs }: PlanContext,
): Plan | undefined {
  switch (order.kind) {
    case 'session':
      return { revoked: { kind: 'session', digest: order.digest }, lifetimeMs: SESSION_TTL_MS };
    case 'token-digest': {
      const lifetimes = [...issuers.values()].map(maxTokenLifetimeMs);
      const revoked = { kind: 'token', digest: order.digest } as const;
      return { revoked, lifetimeMs: Math.max(...lifetimes, 0) };
    }
    case 'token': {
      const found = issuerOf(order.issuer, issuers);
      if (found === undefined) return undefined;
      const named = { issuer: found.issuer, tokenId: order.tokenId };
      const digest = ring.hmac('token-id', tokenIdBytes(named.issuer, named.tokenId));
      return { revoked: { kind: 'token', digest, named }, lifetimeMs: maxTokenLifetimeMs(found) };
    }
    case 'subject': {
      const found = issuerOf(order.issuer, issuers);
      if (found === undefined) return undefined;
      const { subject, client } = order;
      const revoked: Revoked = {
        ...{ kind: 'subject', issuer: found.issuer, subject },
        ...(client === undefined ? {} : { client }),
        // The issuer's clock may be ahead of ours by as much as verification tolerates.
        issuedUntilMs: atMs + CLOCK_TOLERANCE_MS,
      };
      return { revoked, lifetimeMs: maxTokenLifetimeMs(found) };
    }
  }
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

function issuerOf(named: string, issuers: Settings['issuers']): IssuerSettings | undefined {
  return issuers.get(named) ?? [...issuers.values()].find(({ issuer }) => issuer === named);
}

function toShown({ id, revoked, by, note, atMs, expiresAtMs }: Revocation): ShownRevocation {
  return {
    id,
    ...shownTarget(revoked),
    by,
    note,
    at: new Date(atMs).toISOString(),
    expires: new Date(expiresAtMs).toISOString(),
  };
}

/** A token id is shown by its digest, as everywhere else. */
function shownTarget(
  revoked: Revoked,
): Pick<ShownRevocation, 'kind' | 'issuer' | 'subject' | 'client' | 'digest'> {
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
  }
}
