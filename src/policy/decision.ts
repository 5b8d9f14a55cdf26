// A decision: its two verdicts, the obligations of an allow, and the refusal that a deny becomes, rendered as status,
// headers and body in this one place. There is no third verdict: an error is a deny. A caller that may not know that
// a target exists gets the bytes that an unknown name gets (docs/reference/responses.md).

import type { ProtocolError } from '../protocol/admitted-request.js';
import type { RequestId, Target } from '../protocol/jsonrpc.js';
import {
  INVALID_PARAMS,
  RESOURCE_NOT_FOUND,
  renderError,
  renderMethodRefusal,
  renderNotFound,
  renderPrompt,
  renderToolRefusal,
  type UserPrompt,
} from '../protocol/responses.js';
import type { PromptForm, ProtocolVersion } from '../protocol/versions/revisions.js';
import type { ApprovalRequirement } from './approval-terms.js';
import type { ProofError } from './principal.js';
import { REASONS, type Reason, type Stage, textOf } from './reasons.js';

/** No literal or spread can have this private member, so values of these types exist only where code casts to them. */
declare class AllowBrand {
  private readonly brand: never;
}

/** How often something may happen, and per whom it is counted. */
export type RateLimit = {
  readonly rule: string;
  readonly count: number;
  readonly windowMs: number;
  readonly per: 'subject' | 'client' | 'rule';
};

/** What may be spent within a time, by all rules that name the budget, and per whom it is counted. */
export type Budget = {
  readonly name: string;
  readonly max: number;
  readonly windowMs: number;
  readonly per: 'subject' | 'client' | 'all';
};

/** What must be done before an allowed message is forwarded, or to its response. */
export type Obligation =
  | { readonly kind: 'rate'; readonly limit: RateLimit }
  | {
      readonly kind: 'budget';
      readonly budget: Budget;
      readonly rule: string;
      /** What this call costs: finite and not negative. */
      readonly cost: number;
    }
  | { readonly kind: 'max-result-bytes'; readonly bytes: number }
  | { readonly kind: 'inspect'; readonly profile: string }
  | { readonly kind: 'capture'; readonly pointers: readonly string[] }
  | ApprovalObligation;

type LimitObligation = Extract<Obligation, { readonly kind: 'rate' | 'budget' }>;

/** A call within these limits is counted; of one beyond them a person is asked. */
export type LimitedRequirement = {
  readonly requirement: ApprovalRequirement;
  readonly limits: readonly LimitObligation[];
};

/** A person has to say yes to the message. */
export type ApprovalObligation = {
  readonly kind: 'approval';
  /** What rules ask in any case. */
  readonly requirements: readonly ApprovalRequirement[];
  /** SHA-256 over the texts of the rules that decided, lower-case hex. */
  readonly rules: string;
  /** What rules ask only about a call that their limits would refuse. */
  readonly beyond: readonly LimitedRequirement[];
  /** Some rules ask depending on what inspection finds in the arguments: the call is decided again with that. */
  readonly isPending: boolean;
};

/** An allow. Made only in policy/decide.ts. */
export type Allow = AllowBrand & {
  readonly verdict: 'allow';
  readonly policy: string;
  readonly rule: string;
  /** The text of the rule (rule-text.ts); empty for what no file says. */
  readonly text: string;
  /** The groups that the rule names, for the record. */
  readonly groups: readonly string[] | undefined;
  readonly obligations: readonly Obligation[];
};

/**
 * An argument that was refused, for the record: where it is and which keyword of a schema it fails, never its value.
 */
export type Violation = { readonly pointer: string; readonly keyword: string };

/** A deny, with what its rendering needs. `listed` determines whether the caller learns the reason. */
export type Deny = {
  readonly verdict: 'deny';
  readonly reason: Reason;
  readonly listed: boolean;
  readonly policy?: string;
  readonly rule?: string;
  /** The groups that the rule names, for the record. */
  readonly groups?: readonly string[] | undefined;
  /** For `insufficient-scope`: every scope of the alternative with the fewest missing. */
  readonly scopes?: readonly string[];
  /** A sentence that a model can act on. Built from schema positions and texts of rules, never from traffic. */
  readonly advice?: string;
  readonly retryAfterSeconds?: number;
  /** For `arguments-invalid`: the first arguments that were refused. */
  readonly violations?: readonly Violation[];
  /** The decisions that caused this one, by their ids. */
  readonly causes?: readonly string[];
  /** JSON pointers to the arguments whose values the record keeps for a refused call too. */
  readonly captures?: readonly string[];
  /** For a failed authentication whose challenge must name an error of the proof of possession. */
  readonly proof?: ProofError;
  /** It is known that nothing of the request was sent to a server; false: it is a call that was sent. */
  readonly isUnsent?: boolean | undefined;
  /** How the client is to ask its user, where it can. */
  readonly ask?: UserPrompt | undefined;
  /** One clause for the log and the record that says what was wrong. INVARIANT: never rendered. */
  readonly detail?: string | undefined;
};

export type Decision = Allow | Deny;

/** What an allow asks of a person, if it does. */
export function approvalOf({ obligations }: Pick<Allow, 'obligations'>): ApprovalObligation | undefined {
  for (const obligation of obligations) if (obligation.kind === 'approval') return obligation;
  return undefined;
}

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
  challenge(reason: Reason, scopes: readonly string[] | undefined, proof: ProofError | undefined): string;
  /** How this client can be made to ask its user; absent where it cannot. */
  readonly prompts?: PromptForm | undefined;
};

type RenderedRefusal = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  readonly rpcCode: number | undefined;
};

const JSON_TYPE = { 'content-type': 'application/json' };
const DEFAULT_RETRY_AFTER_SECONDS = 5;

/** What a caller reads while a store that began empty has no history for its request. */
export function adviceForYoung(seconds: number): string {
  return `It began empty and does not know yet what happened before. It will in ${seconds} seconds; the operator can read why in the control "store".`;
}

/** A refusal by one of the gateway's own checks. `stage` and visibility come from the table of reasons. */
export function refuseWith(reason: Reason, more?: Partial<Omit<Deny, 'reason' | 'verdict'>>): Refusal {
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
        body: textOf(deny.reason, deny.isUnsent),
        rpcCode: undefined,
      };
    case 'error': {
      const body = renderError(context.requestId, rendering.code, textFor(deny, context), {
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
        body: renderNotFound(context.protocol, context.target, context.requestId, context.decisionId),
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

/** The lists that clients request, as an error names them. */
const LIST_NAMES: ReadonlyMap<string | undefined, string> = new Map([
  ['tools/list', 'tools'],
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resource templates'],
]);

/** Of a list that fails at its server, which one it is comes first: the others may be usable. */
function textFor({ reason, advice, isUnsent }: Deny, { method }: RefusalContext): string {
  const { stage } = REASONS[reason];
  const publicText = textOf(reason, isUnsent);
  const text = advice === undefined ? publicText : `${publicText} ${advice}`;
  const list = stage === 'forward' ? LIST_NAMES.get(method) : undefined;
  return list === undefined ? text : `The list of ${list} is not available. ${text}`;
}

function renderVisible(
  refusal: Refusal,
  context: RefusalContext,
  code: number,
): { body: string; rpcCode: number | undefined } {
  const { deny } = refusal;
  const publicText = textOf(deny.reason, deny.isUnsent);
  const text = deny.advice === undefined ? publicText : `${publicText} ${deny.advice}`;
  const decision = { id: context.decisionId, reason: deny.reason };
  const { ask } = deny;
  const { prompts } = context;
  // A form that no result can carry is sent on the stream of the response.
  if (ask !== undefined && prompts !== undefined && (ask.mode === 'url' || prompts === 'input-required'))
    return renderPrompt(prompts, context.requestId, ask, { text, decision });
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
