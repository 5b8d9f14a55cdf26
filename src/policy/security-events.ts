// What the audit log records besides requests, as the features say it: refused tokens, definitions that drift, are
// approved or are trusted, reloads, approvals, and what administrators do. Whoever records one is given `RecordEvent` or
// `RecordApproval`, which is src/audit/audit.ts. Decisions and outcomes of requests are recorded from their record
// (record.ts).

import type { Approval, ApprovalAnswer } from './approval.js';
import type { RefusedToken } from './record.js';

/** Hashes of gateway file, policies and lock files: SHA-256, lower-case hex. */
export type FileHashes = { readonly config: string; readonly policy: string; readonly pins: string };

/** What is in force after a reload, and what the files say beyond it. */
export type ReloadVersions = {
  readonly inForce: FileHashes;
  /** As far as they could be read. */
  readonly files: Partial<FileHashes>;
  /** Keys that wait for a restart. */
  readonly pending: readonly string[];
  /** What is not in use until then, because it needs their new values. */
  readonly leftOut: readonly string[];
  /** Rules and flows that are closed until then. */
  readonly closed: readonly string[];
};

/** `detail` of the line in the log holds what has no member of its own. */
export type SecurityEvent =
  | {
      readonly type: 'auth.failure';
      readonly upstream: string;
      readonly reason: string;
      readonly decisionId: string;
      readonly ip: string;
      readonly refusedToken?: RefusedToken | undefined;
    }
  | {
      readonly type: 'pin.drift';
      readonly upstream: string;
      readonly kind: string;
      readonly name: string;
      readonly change: string;
      readonly before: string | undefined;
      readonly after: string | undefined;
    }
  | {
      readonly type: 'pin.approval' | 'pin.block';
      readonly upstream: string;
      readonly kind: string;
      readonly name: string;
      readonly digest: string | undefined;
      /** Who decided; `undefined` where the lock file does not say it. */
      readonly by: string | undefined;
      readonly note: string | undefined;
    }
  | {
      readonly type: 'pin.first-use';
      readonly upstream: string;
      readonly kind: string;
      readonly name: string;
      readonly digest: string;
    }
  | {
      readonly type: 'pin.finding';
      readonly upstream: string;
      readonly kind: string;
      readonly name: string;
      /** Whether the lock file has the name. It decides how often the event is written, and is not written itself. */
      readonly isPinned: boolean;
      /** Id and kind of the finding. */
      readonly finding: string;
      readonly found: string;
      readonly tier: string;
      readonly pointer: string;
      readonly evidence: string;
      readonly action: 'withhold' | 'flag';
    }
  | {
      readonly type: 'config.reload';
      readonly result: 'applied' | 'rejected';
      readonly faults: number;
      readonly versions?: ReloadVersions;
    }
  | {
      readonly type: 'admin.action';
      /** The identifier of the issuer; absent for the break-glass token, and where nobody was verified. */
      readonly issuer?: string | undefined;
      readonly subject: string | undefined;
      readonly action: string;
      readonly status: number;
      readonly ip: string;
      /** What the action was applied to; the names are the gateway's own. */
      readonly detail?: Readonly<Record<string, string>> | undefined;
    };

/** Of an event that is written, how many before it were only counted; `undefined` if it is only counted itself. */
export type Admission = number | undefined;

/** Records an event, or only counts it where it is above its rate; whoever reports the event says which. */
export type RecordEvent = (event: SecurityEvent) => Admission;

/** What becomes of an approval. `void`: the call or its rules are others than those that were shown. */
export type ApprovalChange = 'requested' | 'granted' | 'denied' | 'expired' | 'used' | 'void';

/** A question to a person, or what became of it. */
export type ApprovalEvent = {
  readonly change: ApprovalChange;
  /** With the answer, if there is one. */
  readonly approval: Approval;
  /** Of `granted` and `denied`. Each yes is an event, of which several may be needed. */
  readonly answer?: ApprovalAnswer | undefined;
  /** Of `used`: the decision that used the yes. */
  readonly decisionId?: string | undefined;
  /** Of `used`: the yes was given for an earlier call, and counts again. */
  readonly isRemembered?: boolean | undefined;
};

/**
 * Records what becomes of an approval, whatever else is recorded. INVARIANT: a yes counts, and a request passes because of
 * one, only after this has resolved with true; with false, what depends on it is refused (`audit-unavailable`). Other
 * changes need not wait. A void approval has no line of its own: the decision that refuses because of it names it. Never
 * rejects.
 */
export type RecordApproval = (event: ApprovalEvent) => Promise<boolean>;
