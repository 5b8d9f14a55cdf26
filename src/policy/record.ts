// The one record of a request and its response. The stages return what they have learned as facts, and `fold` alone
// writes them; audit, metrics and the process log are written from the record alone, so they cannot disagree. All
// fields exist from the start, so that all records have one shape and a stage that never ran leaves "nothing known"
// instead of a missing field.

import type { RequestId } from '../protocol/jsonrpc.js';
import type { TraceContext } from '../protocol/trace-context.js';
import type { Incoming } from '../protocol/transport.js';
import type { Era } from '../protocol/versions/revisions.js';
import type { Refusal } from './decision.js';
import type { PrincipalFacts } from './principal.js';
import type { Reason, Stage } from './reasons.js';

const NO_GROUPS: readonly string[] = Object.freeze([]);
const NO_URIS: readonly string[] = Object.freeze([]);
const NO_SHADOW: readonly ShadowDecision[] = Object.freeze([]);

/** What would have been decided by policies that are not enforced. */
export type ShadowDecision = {
  /** The policy with `mode: shadow`; `undefined` for all policies, under `policies.mode: observe`. */
  readonly policy: string | undefined;
  /** `policy/rule`. */
  readonly rule: string | undefined;
  readonly verdict: 'allow' | 'deny';
  readonly reason: Reason | undefined;
};

/** A record before any decision: a refusal until a stage says otherwise. */
export function openRecord(
  incoming: Pick<
    Incoming,
    'id' | 'partOf' | 'receivedAt' | 'startedMs' | 'upstream' | 'aggregate' | 'httpMethod' | 'remoteAddress'
  >,
  versions?: RequestRecord['versions'],
): RequestRecord {
  return {
    id: incoming.id,
    partOf: incoming.partOf,
    receivedAt: incoming.receivedAt,
    startedMs: incoming.startedMs,
    upstream: incoming.upstream,
    aggregate: incoming.aggregate?.name,
    httpMethod: incoming.httpMethod,
    versions,
    decidedSession: undefined,
    isDecisionWritten: false,
    isDecisionLost: false,
    suppressed: 0,
    principal: undefined,
    groupsUsed: NO_GROUPS,
    client: {
      ip: incoming.remoteAddress,
      era: undefined,
      version: undefined,
      session: undefined,
      selfReported: undefined,
    },
    target: {
      method: undefined,
      receivedMethod: undefined,
      kind: undefined,
      name: undefined,
      shownAs: undefined,
      definition: undefined,
      pin: undefined,
      requestId: undefined,
      uris: NO_URIS,
    },
    args: undefined,
    decision: {
      verdict: 'deny',
      action: 'refused',
      stage: 'edge',
      policy: undefined,
      rule: undefined,
      reasons: [],
      mode: 'enforce',
      shadow: NO_SHADOW,
      causes: undefined,
      approval: undefined,
      detail: undefined,
    },
    findings: [],
    result: {
      status: 'none',
      http: 0,
      rpcCode: undefined,
      bytes: 0,
      digest: undefined,
      list: undefined,
    },
    latency: { auth: 0, policy: 0, inspect: 0, upstream: 0 },
    decidedMs: undefined,
    exchange: undefined,
    trace: undefined,
    refusedToken: undefined,
  };
}

/** What a token says of itself, or what is accepted; absent where it is not known. */
export type TokenFacts = {
  readonly issuer?: string;
  readonly audience?: string;
  readonly type?: string;
  /** In seconds, as in `3600s`; the expected one is the maximum. Only where it is the reason. */
  readonly lifetime?: string;
};

/** A token that was refused: what would have been accepted, and what it said. Nothing of it was verified. */
export type RefusedToken = { readonly expected: TokenFacts; readonly presented: TokenFacts };

/** Something that a detector found. Never holds the content that was found. */
export type Finding = {
  readonly detector: string;
  readonly direction: 'to-upstream' | 'to-client';
  /** A JSON pointer into the message; names that no pinned schema has are cut and escaped. */
  readonly path: string;
  readonly count: number;
  readonly action: 'redact' | 'neutralize' | 'strip' | 'withhold' | 'block' | 'flag' | 'drop' | 'coerce';
};

/** Maximum number of separate findings in a record; a long stream would otherwise collect them without bound. */
export const MAX_FINDINGS = 256;

/** Grows while the request is handled; audit/ and telemetry/ read it at the decision and once more at the end. */
export type RequestRecord = {
  readonly id: string;
  /** The decision id of the HTTP request that this is a part of. */
  readonly partOf?: string | undefined;
  readonly receivedAt: number;
  readonly startedMs: number;
  readonly upstream: string;
  /** The aggregate that the request came through. */
  readonly aggregate?: string | undefined;
  readonly httpMethod: string;
  /** Hashes of the files that the request is decided under; the current ones if absent. */
  readonly versions?: { readonly config: string; readonly policy: string; readonly pins: string } | undefined;
  /** The session that the audit line of the decision names; a request may open another one. */
  decidedSession?: string | undefined;
  /** The decision was handed to the audit. */
  isDecisionWritten?: boolean;
  /** The audit had no room for the line of the decision, so that the outcome has to say all of it. */
  isDecisionLost?: boolean;
  /** Only its parts were decided, each in a record of its own. */
  isDivided?: boolean;
  /** Refusals before this one, at the edge, that the audit has only counted. */
  suppressed?: number;
  /** For the record alone: whoever acts for the caller has the principal from the request. */
  readonly principal: PrincipalFacts | undefined;
  /** Groups of the principal that the deciding rule names, within a bound. */
  readonly groupsUsed?: readonly string[];
  readonly client: {
    readonly ip: string;
    readonly era: Era | undefined;
    /** The protocol revision, if it is supported. */
    readonly version: string | undefined;
    /** Keyed hash of the sealed session id. */
    readonly session: string | undefined;
    /** What the client states about itself, separate from what its token proves. */
    readonly selfReported: { readonly name: string; readonly version: string } | undefined;
  };
  readonly target: {
    /** A method of protocol/methods.ts, or `undefined` if it is unknown: never a label from the wire. */
    readonly method: string | undefined;
    /** The method as received, for the audit only, which cuts and escapes it. */
    readonly receivedMethod: string | undefined;
    readonly kind: string | undefined;
    readonly name: string | undefined;
    /** The name by which the client called it, where the operator has given it another than the server. */
    readonly shownAs: string | undefined;
    /** Digest of the definition that the upstream listed last, and of the pinned one. */
    readonly definition: string | undefined;
    readonly pin: string | undefined;
    readonly requestId: RequestId | undefined;
    /** The resources that a subscription names besides its target, as received. */
    readonly uris: readonly string[];
  };
  readonly args:
    | {
        readonly digest: string;
        readonly bytes: number;
        readonly keys: readonly string[];
        readonly captured: Readonly<Record<string, string>>;
        /** The first arguments that were refused: their JSON pointers and the keywords that they fail. */
        readonly violations?: readonly { readonly pointer: string; readonly keyword: string }[] | undefined;
      }
    | undefined;
  readonly decision: {
    readonly verdict: 'allow' | 'deny';
    readonly action: 'forwarded' | 'refused' | 'withheld';
    readonly stage: Stage;
    readonly policy: string | undefined;
    readonly rule: string | undefined;
    readonly reasons: readonly Reason[];
    /** `observe`: no rule was enforced. */
    readonly mode: 'enforce' | 'observe';
    readonly shadow: readonly ShadowDecision[];
    /** The decisions that caused this one. */
    readonly causes?: readonly string[] | undefined;
    /** Id of the approval that was used, that stands, or because of which the request was refused. */
    readonly approval?: string | undefined;
    /** What was wrong, in one clause: of an upstream's answer, or of what a caller sent. */
    readonly detail?: string | undefined;
  };
  readonly findings: readonly Finding[];
  readonly result: {
    /** Of the upstream: `ok`, `error` (a JSON-RPC error or isError), `none` (no response). */
    readonly status: 'ok' | 'error' | 'none';
    readonly http: number;
    readonly rpcCode: number | undefined;
    readonly bytes: number;
    readonly digest: string | undefined;
    readonly list:
      | {
          readonly advertised: number;
          readonly visible: number;
          readonly advertisedBytes: number;
          readonly visibleBytes: number;
        }
      | undefined;
  };
  /** Milliseconds spent in the stages. The total is taken when the record is closed. */
  readonly latency: { readonly [stage in TimedStage]: number };
  /** When the last decision began, as a monotonic reading. */
  readonly decidedMs?: number | undefined;
  /** When the last exchange with the upstream began, and how long inspection had taken by then. */
  readonly exchange?: { readonly startedMs: number; readonly inspectedMs: number } | undefined;
  /** Undefined while nothing is traced. */
  readonly trace: TraceContext | undefined;
  /** Of a token that could not be verified. */
  readonly refusedToken?: RefusedToken | undefined;
};

type TimedStage = 'auth' | 'policy' | 'inspect' | 'upstream';

/**
 * What was learned at one stage. A member that is `undefined` says nothing. Within one, what is absent says nothing, and
 * what is `undefined` is not known any more.
 */
export type RecordFacts = {
  readonly versions?: RequestRecord['versions'];
  readonly caller?: Partial<Pick<RequestRecord, 'principal' | 'groupsUsed' | 'refusedToken'>>;
  readonly client?: Partial<RequestRecord['client']>;
  readonly target?: Partial<RequestRecord['target']> | undefined;
  readonly args?: RequestRecord['args'];
  readonly decision?: Partial<Omit<RequestRecord['decision'], 'reasons'>>;
  /** Comes behind the reasons so far, unless it is the last of them. */
  readonly reason?: Reason | undefined;
  /** Added to those so far. */
  readonly findings?: readonly Finding[] | undefined;
  readonly result?: Partial<RequestRecord['result']>;
  /** Milliseconds, added to those so far. */
  readonly latency?: Partial<RequestRecord['latency']>;
  readonly decidedMs?: number;
  readonly trace?: TraceContext;
};

/** What a stage returns: its value or a refusal, and what it has learned for the record. */
export type Staged<T> = { readonly outcome: T | Refusal; readonly facts?: readonly RecordFacts[] | undefined };

type Draft = { -readonly [Member in keyof RequestRecord]: RequestRecord[Member] } & {
  readonly decision: { reasons: Reason[] };
  readonly findings: Finding[];
  readonly latency: { [stage in TimedStage]: number };
};

/**
 * Writes what was learned into the record. INVARIANT: this module alone does; the audit marks in it, besides, what became of
 * its own lines.
 */
export function fold(record: RequestRecord, facts: RecordFacts): void {
  const draft = record as Draft;
  const { versions, caller, client, target, args, decision, reason, findings, result, latency, decidedMs, trace } =
    facts;
  if (versions !== undefined) draft.versions = versions;
  merge(draft, caller);
  merge(draft.client, client);
  merge(draft.target, target);
  if (args !== undefined) draft.args = args;
  merge(draft.decision, decision);
  if (reason !== undefined && draft.decision.reasons.at(-1) !== reason) draft.decision.reasons.push(reason);
  if (findings !== undefined) addFindings(record, findings);
  merge(draft.result, result);
  if (latency !== undefined) addLatency(draft.latency, latency);
  if (decidedMs !== undefined) draft.decidedMs = decidedMs;
  if (trace !== undefined) draft.trace = trace;
}

function merge<Part extends object>(part: Part, learned: Partial<Part> | undefined): void {
  if (learned !== undefined) Object.assign(part, learned);
}

function addLatency(
  sums: Draft['latency'],
  { auth = 0, policy = 0, inspect = 0, upstream = 0 }: Partial<RequestRecord['latency']>,
): void {
  sums.auth += auth;
  sums.policy += policy;
  sums.inspect += inspect;
  sums.upstream += upstream;
}

/**
 * What the inspection of a message found, and its milliseconds. It comes with every message of a stream, where an object
 * of facts would cost more than to add them.
 */
export function addInspection(record: RequestRecord, findings: readonly Finding[], ms: number): void {
  addFindings(record, findings);
  (record as Draft).latency.inspect += ms;
}

/** An exchange with the upstream, once its response has begun. Milliseconds. */
export function noteExchange(record: RequestRecord, startedMs: number, waitedMs: number): void {
  const draft = record as Draft;
  draft.exchange = { startedMs, inspectedMs: draft.latency.inspect };
  draft.latency.upstream += waitedMs;
}

/** Milliseconds of waiting for the upstream, which come with every part of a stream. */
export function addUpstreamWait(record: RequestRecord, ms: number): void {
  (record as Draft).latency.upstream += ms;
}

export function addFindings({ findings }: RequestRecord, found: readonly Finding[]): void {
  for (const finding of found) addFinding(findings as Finding[], finding);
}

/** Adds a finding: equal ones are counted together, and past the bound regardless of their path. */
function addFinding(findings: Finding[], finding: Finding): void {
  const isFull = findings.length >= MAX_FINDINGS;
  const isSame = (other: Finding): boolean =>
    other.detector === finding.detector &&
    other.direction === finding.direction &&
    other.action === finding.action &&
    (isFull || other.path === finding.path);
  const at = findings.findIndex(isSame);
  const known = findings[at];
  if (known !== undefined) findings[at] = { ...known, count: known.count + finding.count };
  // There are few detectors, so each gets an entry, however many findings of others came before.
  else findings.push(isFull ? { ...finding, path: '' } : finding);
}
