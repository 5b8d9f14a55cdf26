// Refresh tokens of the development issuer: each works once and is replaced; one that is shown again ends
// all that came of the same login, for either its owner or a thief has shown it before. Kept in memory.
// RFC 6749 §6, RFC 9700 §4.14.2; nothing here speaks HTTP.

import { randomBytes } from 'node:crypto';
import { type Grant, type OAuthError, oauthError, type Parameters } from './issuer-grants.js';

const LIFETIME_MS = 24 * 60 * 60 * 1000;
const MAX_TOKENS = 1_000;

export type RefreshService = {
  /** The refresh token of a new login. */
  issue(grant: Grant): string;
  /** The grant of an access token, with the refresh token that takes the place of the shown one. */
  refresh(
    parameters: Parameters,
    clientId: string,
  ): { readonly grant: Grant; readonly refreshToken: string } | OAuthError;
};

type Family = { readonly grant: Grant; readonly untilMs: number; isOver: boolean };

/** No tokens. Past a thousand the oldest are forgotten. */
export function createRefreshService(): RefreshService {
  const tokens = new Map<string, { readonly family: Family; isUsed: boolean }>();

  function keep(family: Family): string {
    const oldest = tokens.keys().next().value;
    if (tokens.size >= MAX_TOKENS && oldest !== undefined) tokens.delete(oldest);
    const name = randomBytes(32).toString('base64url');
    tokens.set(name, { family, isUsed: false });
    return name;
  }

  return {
    issue: (grant) => keep({ grant, untilMs: Date.now() + LIFETIME_MS, isOver: false }),
    refresh(parameters, clientId) {
      const shown = tokens.get(parameters.get('refresh_token') ?? '');
      if (shown?.isUsed === true) shown.family.isOver = true;
      const isGood =
        shown !== undefined &&
        !shown.family.isOver &&
        shown.family.untilMs > Date.now() &&
        shown.family.grant.client === clientId;
      if (!isGood) return oauthError('invalid_grant', 'The refresh token is not valid.');
      const { grant } = shown.family;
      if ((parameters.get('resource') ?? grant.resource) !== grant.resource)
        return oauthError('invalid_target', 'The login was for another resource.');
      const scopes = parameters.get('scope')?.split(' ') ?? grant.scopes;
      if (!scopes.every((scope) => grant.scopes.includes(scope)))
        return oauthError('invalid_scope', 'A refresh asks for no more than the login.');
      shown.isUsed = true;
      return { grant: { ...grant, scopes }, refreshToken: keep(shown.family) };
    },
  };
}
