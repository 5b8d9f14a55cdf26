// The ports that lead to an upstream, and in which era it is spoken to: the one place where a message is translated or not; what may leave was decided before.
// Source: MCP 2026-07-28, versioning; MCP 2025-11-25, session management; mcp-spec.md §2.

import type { OwnAnswer, Ports, View } from '../exchange-ports.js';
import type { SessionFacts } from '../mcp/admitted.js';
import { eraTowards } from '../mcp/carried.js';
import type { RequestId } from '../mcp/message.js';
import type { LeaveSignal } from '../mcp/transport.js';
import type { Cleared } from '../settle/settle.js';
import { addressOf } from '../upstream/client.js';
import { credentialHeader } from '../upstream/credentials.js';
import { OWN_SESSION } from '../upstream/translate/for-sessions.js';
import { headersIn } from '../upstream/translate/open-session.js';
import { wholeAnswer } from '../upstream/translate/own-answer.js';
import type { UpstreamRuntime } from './upstream-runtime.js';

/** How long an answer to a server's own request may take. */
const OWN_ANSWER_TIMEOUT_MS = 5_000;
/** Answers of that kind under way at one upstream; a server that asks faster goes unanswered. */
const MAX_OWN_ANSWERS = 4;

type ForwardingPorts = Pick<
  Ports,
  'forward' | 'openStream' | 'forwardSessionEnd' | 'answerServer' | 'notePage'
>;

/** How a session's messages reach its upstream; `lost` where it was opened in an era that is gone there. */
type Route = 'direct' | 'translated' | 'lost';

/** Builds them. */
export function createForwarding(
  runtimeOf: (upstream: string) => UpstreamRuntime,
  viewOf: (runtime: UpstreamRuntime) => View,
): ForwardingPorts {
  const answering = new WeakMap<UpstreamRuntime, number>();

  function routeOf(runtime: UpstreamRuntime, session: SessionFacts): Route {
    const { carried } = viewOf(runtime);
    const isOwn = session.upstreamSession === OWN_SESSION;
    if (carried === undefined) return isOwn ? 'translated' : 'direct';
    const isTranslated = eraTowards('2025', carried) === '2026';
    if (isTranslated !== isOwn) return 'lost';
    return isOwn ? 'translated' : 'direct';
  }

  return {
    forward(upstream, cleared, signal) {
      const runtime = runtimeOf(upstream);
      const { era, session } = cleared.admitted;
      if (era === '2026') return forwardStateless(runtime, viewOf(runtime), cleared, signal);
      const route = session === undefined ? undefined : routeOf(runtime, session);
      if (route === 'lost') return Promise.resolve(wholeAnswer(404));
      const view = viewOf(runtime);
      const isTranslated = route === 'translated' || (route === undefined && speaksAnother(view));
      return isTranslated
        ? runtime.translation.sessions.forward(cleared, mirroredOf(view, cleared))
        : runtime.client.forward(cleared, signal);
    },
    openStream(upstream, session, signal, lastEventId) {
      const runtime = runtimeOf(upstream);
      switch (routeOf(runtime, session)) {
        case 'direct':
          return runtime.client.openStream(session, signal, lastEventId);
        case 'translated':
          return runtime.translation.sessions.openStream(session, signal);
        case 'lost':
          return Promise.resolve(wholeAnswer(404));
      }
    },
    forwardSessionEnd(upstream, session) {
      const { client, translation } = runtimeOf(upstream);
      return session.upstreamSession === OWN_SESSION
        ? Promise.resolve(translation.sessions.endSession(session))
        : client.endSession(session);
    },
    answerServer(upstream, session, id, own) {
      const runtime = runtimeOf(upstream);
      if (session.upstreamSession === OWN_SESSION) {
        const error = own === 'pong' ? undefined : own;
        return runtime.translation.sessions.answerQuestion(session, id, { kind: 'error', error });
      }
      const underWay = answering.get(runtime) ?? 0;
      if (underWay >= MAX_OWN_ANSWERS) return;
      answering.set(runtime, underWay + 1);
      void sendOwn(runtime, session, answerBody(id, own)).then(() => {
        answering.set(runtime, (answering.get(runtime) ?? 1) - 1);
      });
    },
    notePage: (upstream, page) => runtimeOf(upstream).notePage(page),
  };
}

function speaksAnother({ carried }: View): boolean {
  return eraTowards('2025', carried) === '2026';
}

function forwardStateless(
  { client, translation }: UpstreamRuntime,
  { carried }: View,
  cleared: Cleared,
  signal: LeaveSignal | undefined,
): ReturnType<Ports['forward']> {
  if (carried === undefined || eraTowards('2026', carried) === '2026')
    return client.forward(cleared, signal);
  return translation.stateless.forward(cleared, carried.sessions, signal);
}

type Mirrored = Parameters<UpstreamRuntime['translation']['sessions']['forward']>[1];

/** What the approved schema of the tool mirrors into headers. */
function mirroredOf(view: View, { admitted: { target } }: Cleared): Mirrored {
  if (target.kind !== 'tool') return [];
  return view.catalogueFor('2026').standing('tool', target.name).pinned?.mirrored ?? [];
}

async function sendOwn(
  { client, settings }: UpstreamRuntime,
  session: SessionFacts,
  body: string,
): Promise<void> {
  const target = addressOf(session);
  const credential = credentialHeader(settings.credentials);
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(target === undefined ? headersIn(session) : {}),
  };
  if (credential !== undefined) headers[credential.name] = credential.value;
  const outcome = await client.request({
    method: 'POST',
    target,
    headers,
    body,
    timeoutMs: OWN_ANSWER_TIMEOUT_MS,
  });
  if (outcome.kind === 'answer') outcome.release();
}

function answerBody(id: RequestId, answer: OwnAnswer): string {
  return JSON.stringify(
    answer === 'pong'
      ? { jsonrpc: '2.0', id, result: {} }
      : { jsonrpc: '2.0', id, error: { code: answer.code, message: answer.message } },
  );
}
