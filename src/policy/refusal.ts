// Renders refusals: the one place that turns a reason into status, headers and body. A caller that may not
// know that a target exists gets the bytes that an unknown name gets (docs/contract.md §6).

import type { ProtocolError } from '../protocol/admitted-request.js';
import type { RequestId, Target } from '../protocol/jsonrpc.js';
import {
  INVALID_PARAMS,
  RESOURCE_NOT_FOUND,
  renderError,
  renderMethodRefusal,
  renderNotFound,
  renderToolRefusal,
} from '../protocol/responses.js';
import type { ProtocolVersion } from '../protocol/versions/revisions.js';
import type { Deny } from './decision.js';
import type { ProofError } from './principal.js';
import { REASONS, type Reason, type Stage } from './reasons.js';

/** A refusal by any stage. */
export type Refusal = {
  readonly kind: 'refused';
  readonly stage: Stage;
  readonly deny: Deny;
  readonly protocolError?: ProtocolError;
};

/** What is known of the message when it is refused; the earlier the stage, the less. */
type RefusalContext = {
  readonly decisionId: string;
  /** `undefined` before admission. */
  readonly protocol: ProtocolVersion | undefined;
  /** The id of the admitted request; absent before admission and for notifications. */
  readonly requestId: RequestId | undefined;
  readonly target: Target;
  readonly method: string | undefined;
  /** Builds the WWW-Authenticate value. */
  challenge(
    reason: Reason,
    scopes: readonly string[] | undefined,
    proof: ProofError | undefined,
  ): string;
};

type RenderedRefusal = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  readonly rpcCode: number | undefined;
};

const JSON_TYPE = { 'content-type': 'application/json' };
const DEFAULT_RETRY_AFTER_SECONDS = 5;

/** A refusal by one of the gateway's own checks. `stage` and visibility come from the table of reasons. */
export function refuseWith(
  reason: Reason,
  more?: Partial<Omit<Deny, 'reason' | 'verdict'>>,
): Refusal {
  return {
    kind: 'refused',
    stage: REASONS[reason].stage,
    deny: { verdict: 'deny', reason, listed: true, ...more },
  };
}

/** A refusal because of a protocol error, whose wire form the era defines. */
export function refuseProtocolError(protocolError: ProtocolError): Refusal {
  return {
    kind: 'refused',
    stage: 'admit',
    deny: { verdict: 'deny', reason: protocolError.reason, listed: true },
    protocolError,
  };
}

/** Renders a refusal. Nothing of the message is quoted except its id. */
export function renderRefusal(refusal: Refusal, context: RefusalContext): RenderedRefusal {
  const { deny, protocolError } = refusal;
  const row = REASONS[deny.reason];
  const decision = { 'sallyport-decision': context.decisionId };
  if (protocolError !== undefined) {
    const body = renderError(protocolError.id, protocolError.code, protocolError.message, {
      ...asMembers(protocolError.data),
      'dev.sallyport/decision': { id: context.decisionId, reason: protocolError.reason },
    });
    return {
      status: protocolError.status,
      headers: {
        ...JSON_TYPE,
        ...decision,
        ...(protocolError.status === 405 ? { allow: 'POST' } : {}),
      },
      body,
      rpcCode: protocolError.code,
    };
  }
  const rendering = deny.listed ? row.visible : row.hidden;
  switch (rendering.as) {
    case 'http':
      return {
        status: rendering.status,
        headers: { 'content-type': 'text/plain; charset=utf-8', ...decision },
        body: row.text,
        rpcCode: undefined,
      };
    case 'challenge':
      return {
        status: rendering.status,
        headers: {
          'content-type': 'text/plain; charset=utf-8',
          'www-authenticate': context.challenge(deny.reason, deny.scopes, deny.proof),
          ...decision,
        },
        body: row.text,
        rpcCode: undefined,
      };
    case 'error': {
      const body = renderError(context.requestId, rendering.code, row.text, {
        'dev.sallyport/decision': { id: context.decisionId, reason: deny.reason },
      });
      return {
        status: rendering.status,
        headers: { ...JSON_TYPE, ...decision, ...retryAfter(rendering.status, deny) },
        body,
        rpcCode: rendering.code,
      };
    }
    case 'not-found':
      return {
        status: 200,
        headers: JSON_TYPE,
        body: renderNotFound(
          context.protocol,
          context.target,
          context.requestId,
          context.decisionId,
        ),
        rpcCode: notFoundCode(context),
      };
    case 'refusal':
      return {
        status: 200,
        headers: JSON_TYPE,
        ...renderVisible(refusal, context, rendering.code),
      };
  }
}

function renderVisible(
  refusal: Refusal,
  context: RefusalContext,
  code: number,
): { body: string; rpcCode: number | undefined } {
  const { deny } = refusal;
  const { text: publicText } = REASONS[deny.reason];
  const text = deny.advice === undefined ? publicText : `${publicText} ${deny.advice}`;
  const decision = { id: context.decisionId, reason: deny.reason };
  if (context.method === 'tools/call')
    return {
      body: renderToolRefusal(context.protocol, context.requestId, text, decision),
      rpcCode: undefined,
    };
  return { body: renderMethodRefusal(context.requestId, code, text, decision), rpcCode: code };
}

/** The code of the version's "not found": sessions have a separate one for resources (MCP 2025-11-25, resources). */
function notFoundCode({ protocol, target }: RefusalContext): number {
  if (target.kind !== 'resource') return INVALID_PARAMS;
  return protocol?.resourceNotFoundCode ?? RESOURCE_NOT_FOUND;
}

function retryAfter(status: number, deny: Deny): { readonly [name: string]: string } {
  if (status !== 503) return {};
  return { 'retry-after': String(deny.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS) };
}

function asMembers(value: ProtocolError['data']): {
  readonly [member: string]: NonNullable<ProtocolError['data']> | null;
} {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as { readonly [member: string]: NonNullable<ProtocolError['data']> })
    : {};
}
