// Serves the GET stream of a session whose upstream is stateless: one subscription at the upstream, replaced
// whenever the session's subscriptions change. If the upstream has no subscriptions, it has no stream (405),
// and the client gets only what the gateway itself observes.
// Source: MCP 2026-07-28, subscriptions; MCP 2025-11-25, transports (listening for messages).

import type { Caller } from '../../../policy/principal.js';
import type { Json } from '../../../protocol/jsonrpc.js';
import { isEventStream } from '../../../protocol/sse-reader.js';
import {
  type DisconnectSignal,
  errorOfStatus,
  type ForwardOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import type { SessionUpstream } from '../../client.js';
import { type ReadBounds, readMessages } from '../../message-reader.js';
import {
  bodyResponse,
  type OutboundItem,
  type OutboundItems,
  streamResponse,
} from '../local-response.js';
import {
  gatewayForm,
  type RequestEnvelope,
  toSessionNotification,
} from '../message-translation.js';
import type { SessionState } from './session-state.js';

type StreamDependencies = ReadBounds & {
  readonly client: Pick<SessionUpstream, 'subscribe'>;
  readonly caller: Caller;
  readonly envelope: RequestEnvelope;
};

const LISTEN_ID = 1;

/** Opens the stream: the response to the session's GET. */
export async function listenForSession(
  dependencies: StreamDependencies,
  sessionState: SessionState,
  signal: DisconnectSignal,
): Promise<ForwardOutcome> {
  if (signal.aborted) return { kind: 'error', reason: 'upstream-unavailable' };
  const stop = new AbortController();
  const end = (): void => stop.abort();
  signal.addEventListener('abort', end, { once: true });
  // The signal may be that of a client that opens many such streams, one after the other.
  stop.signal.addEventListener('abort', () => signal.removeEventListener('abort', end), {
    once: true,
  });
  const first = await subscribe(dependencies, sessionState, stop.signal);
  if (first.kind === 'error') {
    end();
    return first;
  }
  if (!isEventStream(first.response)) {
    const { status } = first.response;
    first.response.release();
    end();
    const reason = errorOfStatus(status);
    if (reason !== undefined) return { kind: 'error', reason };
    return bodyResponse(status >= 500 ? status : 405);
  }
  return streamResponse(relaySubscriptions(dependencies, sessionState, first, stop), {
    release: end,
    abort: end,
  });
}

type Subscribed =
  | {
      readonly kind: 'subscribed';
      readonly response: UpstreamResponse;
      readonly isSuperseded: () => boolean;
    }
  | Extract<ForwardOutcome, { readonly kind: 'error' }>;

/**
 * Subscribes to the session's current resources. When they change the subscription is ended, but not before
 * it was answered, so that any number of changes meanwhile costs only one more request.
 */
async function subscribe(
  { client, caller, envelope }: StreamDependencies,
  sessionState: SessionState,
  signal: DisconnectSignal,
): Promise<Subscribed> {
  const notifications: Record<string, Json> = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
  };
  if (sessionState.resources.size > 0)
    notifications['resourceSubscriptions'] = [...sessionState.resources];
  const form = gatewayForm('subscriptions/listen', LISTEN_ID, { notifications }, envelope);
  let isOutdated = false;
  let hasResponse = false;
  const controller = new AbortController();
  const end = (): void => {
    sessionState.listeners.delete(resubscribe);
    signal.removeEventListener('abort', end);
    controller.abort();
  };
  function resubscribe(): void {
    isOutdated = true;
    if (hasResponse) end();
  }
  sessionState.listeners.add(resubscribe);
  signal.addEventListener('abort', end, { once: true });
  const outcome = await client.subscribe(form, caller, controller.signal);
  hasResponse = true;
  if (isOutdated || outcome.kind === 'error') end();
  if (outcome.kind === 'error') return outcome;
  return { kind: 'subscribed', response: outcome, isSuperseded: () => isOutdated };
}

async function* relaySubscriptions(
  dependencies: StreamDependencies,
  sessionState: SessionState,
  first: Extract<Subscribed, { readonly kind: 'subscribed' }>,
  stop: AbortController,
): OutboundItems {
  let current = first;
  try {
    for (;;) {
      yield* relaySubscription(current, dependencies);
      if (!current.isSuperseded() || stop.signal.aborted) return;
      const next = await subscribe(dependencies, sessionState, stop.signal);
      if (next.kind === 'error') return yield next;
      current = next;
    }
  } finally {
    // The upstream may have ended it; the session's listener must be removed in any case.
    stop.abort();
  }
}

async function* relaySubscription(
  { response, isSuperseded }: Extract<Subscribed, { readonly kind: 'subscribed' }>,
  bounds: ReadBounds,
): OutboundItems {
  for await (const inbound of readMessages(response, bounds)) {
    // A subscription that was replaced by another ends with an error of its own.
    if (inbound.kind === 'error' && isSuperseded()) return;
    const outbound =
      inbound.kind === 'message' ? notificationOf(inbound.text, inbound.value) : inbound;
    if (outbound !== undefined) yield outbound;
  }
}

/** What cannot be read is passed on as it is: the check of the session's stream drops and records it. */
function notificationOf(text: string, value: Json | undefined): OutboundItem | undefined {
  const translated = value === undefined ? text : toSessionNotification(text, value);
  return translated === undefined ? undefined : { kind: 'message', text: translated };
}
