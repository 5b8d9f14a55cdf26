// The response plan: the request that a response answers, its caller, and the obligations on the response. For
// an ordinary response it is the authorized request itself; for a resumed stream it is read from the sealed
// event id, and for legacy SSE from the sealed request id.
// Source: ARCHITECTURE.md, "How a response finds its plan"; MCP 2025-11-25, resumability.

import type { ResponseObligations } from '../policy/obligations.js';
import type { Principal } from '../policy/principal.js';
import type {
  AdmittedMessage,
  OpenedTask,
  RequestFacts,
  SessionFacts,
  TaskFacts,
} from '../protocol/admitted-request.js';
import { findMethod } from '../protocol/methods.js';
import { protocolOfSession } from '../protocol/versions/negotiation.js';

/** What checking a response needs of the admitted request. */
export type PlannedMessage = Pick<
  AdmittedMessage,
  | 'protocol'
  | 'version'
  | 'session'
  | 'rule'
  | 'target'
  | 'message'
  | 'serverRequestId'
  | 'allowedServerRequests'
  | 'apps'
  | 'mayBecomeTask'
  | 'task'
>;

/** By what a response is checked. An authorized request is one of these. */
export type ResponsePlan = {
  readonly admitted: PlannedMessage;
  readonly principal: Principal;
  readonly responseObligations: ResponseObligations;
};

/**
 * The plan of a stream that is resumed; `undefined` if its method is no longer supported, or the task that it is about
 * has expired.
 */
export function resumeResponsePlan(
  request: RequestFacts,
  session: SessionFacts,
  principal: Principal,
  openTask: (sealed: string) => TaskFacts | undefined,
): ResponsePlan | undefined {
  const sealed = request.task;
  if (sealed === undefined) return planOf(request, session, principal);
  const facts = openTask(sealed);
  return facts && planOf(request, session, principal, { ...facts, sealed });
}

/** The plan for the response to a sealed request; `undefined` if its method is no longer supported. */
export function planOf(
  request: RequestFacts,
  session: SessionFacts,
  principal: Principal,
  task?: OpenedTask,
): ResponsePlan | undefined {
  const { id, method, target, maxResultBytes, profiles, progressToken } = request;
  const { mayDefer: mayBecomeTask = false } = request;
  const protocol = protocolOfSession(session.version);
  const rule = findMethod(protocol.era, 'client', method, session.version);
  if (rule?.type !== 'request') return undefined;
  const params = progressToken === undefined ? undefined : { _meta: { progressToken } };
  const message = { kind: 'request', id, method, params } as const;
  const { version, allowedServerRequests = [], apps = false } = session;
  return {
    admitted: {
      protocol,
      version,
      session,
      rule,
      target,
      message,
      serverRequestId: undefined,
      allowedServerRequests,
      apps,
      mayBecomeTask,
      task,
    },
    principal,
    responseObligations: { maxResultBytes, profiles },
  };
}
