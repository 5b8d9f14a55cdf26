// Puts the page together on which callers answer: their logins, their sessions, and where answers go. The pages themselves
// are in approvals/caller-pages.ts. docs/reference/approvals.md#the-page-and-the-login.

import {
  type ApprovalSession,
  createCallerPages,
  MAX_LOGIN_AGE_SECONDS,
  type PendingApproval,
} from '../approvals/caller-pages.js';
import { callbackUrl } from '../approvals/link.js';
import type { Identity } from '../auth/identity.js';
import { createLogins } from '../auth/login.js';
import type { DataServerPorts } from '../http/data-server.js';
import type { ApprovalDesk } from '../policy/approval.js';
import type { Emit } from '../policy/events.js';
import { createRate } from '../state/bounds.js';
import type { KeyRing } from '../state/derived-keys.js';
import type { GatewayState } from '../state/memory.js';
import { sealedToken } from '../state/sealed-token.js';
import type { GuardedFetch } from '../upstream/safe-fetch.js';

const SESSION = sealedToken<ApprovalSession>('approval-session/1');
const LOGIN = sealedToken<PendingApproval>('approval-login/1');
const FORM_PURPOSE = 'approval-form';
const STATE_PURPOSE = 'approval-login-state';
/** Of what is shared with other uses of the same store. */
const OWNER = 'approvals';

/** Lines about refused logins, of all callers of an issuer. */
const REFUSALS = { burst: 10, perSecond: 0.1 };

/** Reports refused logins, and counts those that are too many to report. */
function boundedRefusals(emit: Emit, now: () => number): (issuer: string, detail: string) => void {
  const rate = createRate(REFUSALS, now);
  const suppressed = new Map<string, number>();
  return (issuer, detail) => {
    const before = suppressed.get(issuer) ?? 0;
    if (rate.left(issuer) < 1) {
      suppressed.set(issuer, before + 1);
      return;
    }
    rate.spend(1, issuer);
    suppressed.delete(issuer);
    emit('loginRefused', { issuer, detail, suppressed: before });
  };
}

type CallerPageSources = {
  /** The public URL of the gateway, without a slash behind it. */
  readonly publicBase: string;
  readonly desk: Pick<ApprovalDesk, 'find' | 'answer'>;
  readonly identity: () => Identity;
  readonly state: Pick<GatewayState, 'replays' | 'revocations'>;
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly ring: KeyRing;
  readonly emit: Emit;
  readonly now: () => number;
};

/** Creates what answers requests for the page. It connects to nothing until somebody logs in. */
export function createCallerPage(sources: CallerPageSources): NonNullable<DataServerPorts['answerPage']> {
  const { publicBase, desk, identity, state, ring, emit, now } = sources;
  const demand = { maxAgeSeconds: MAX_LOGIN_AGE_SECONDS };
  const logins = createLogins(callbackUrl(publicBase), () => true, { ...sources.guardedFetch, identity, now }, demand);
  return createCallerPages({
    ...{ publicBase, desk, now, client: logins.get },
    sealSession: (session, expiresAtMs) => SESSION.seal(ring, [], session, expiresAtMs),
    openSession: (sealed) => SESSION.open(ring, [], sealed, now()),
    sealLogin: (login, expiresAtMs) => LOGIN.seal(ring, [], login, expiresAtMs),
    openLogin: (sealed) => LOGIN.open(ring, [], sealed, now()),
    formToken: (session, approval) => ring.hmac(FORM_PURPOSE, JSON.stringify([session, approval])),
    useState: async (used, expiresAtMs) => state.replays.useOnce(ring.hmac(STATE_PURPOSE, used), expiresAtMs, OWNER),
    isShut({ issuerName, issuer: issuerUrl, subject, issuedAtMs }) {
      const { issuer, login } = identity().issuers.get(issuerName) ?? {};
      if (login === undefined || issuer !== issuerUrl) return true;
      return state.revocations.isLoginShut({ issuerUrl, subject, client: login.clientId, actors: [] }, issuedAtMs);
    },
    onLoginImpossible: (issuer, detail) => emit('loginImpossible', { issuer, detail }),
    onLoginRefused: boundedRefusals(emit, now),
  });
}
