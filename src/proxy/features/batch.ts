// Runs the elements of a JSON-RPC batch one after the other, each through the whole pipeline on its own. The
// responses go to the client as one event stream, message by message, so that server requests can pass while it
// waits.
// Source: MCP 2025-03-26, transports (a server may answer an array by a stream).

import { type Refusal, refuseProtocolError } from '../../policy/decision.js';
import { fold } from '../../policy/record.js';
import type { AdmittedArray } from '../../protocol/admission.js';
import { acceptsEventStream } from '../../protocol/headers.js';
import { parseMessage } from '../../protocol/json/json.js';
import type { RequestId } from '../../protocol/jsonrpc.js';
import { notAcceptable } from '../../protocol/responses.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import type { TraceContext } from '../../protocol/trace-context.js';
import type { Incoming, Outgoing, ResponseHeaders } from '../../protocol/transport.js';
import { SESSION } from '../../protocol/versions/session.js';
import { authorize, passThrough, type Stages } from '../authorization.js';
import { toJsonRpcMessage } from '../legacy-sse/messages.js';
import type { AnyPort, HandleRequest } from '../ports.js';
import type { RequestContext } from '../request-context.js';
import { STREAM_HEADERS } from '../sse-response.js';

const ACCEPTED = 202;
const FIRST_REFUSAL = 400;

type BatchContext = Pick<RequestContext<AnyPort>, 'incoming' | 'outgoing' | 'ports' | 'record'>;
type Batch = { readonly call: BatchContext; readonly array: AdmittedArray };

/** The batch itself is recorded too: that it was admitted, and its status. Its elements are decided one by one. */
const BATCH: Stages<Batch> = {
  decide(batch) {
    const { call, array } = batch;
    if (array.hasRequests && !acceptsEventStream(call.incoming.headers))
      return { outcome: refuseProtocolError(notAcceptable({})) };
    const { version, hash } = array.session;
    const facts = {
      client: { era: SESSION.era, version, session: hash },
      target: { receivedMethod: 'array' },
      decision: { verdict: 'allow', stage: 'record' },
    } as const;
    return { outcome: batch, facts: [facts] };
  },
  inspect: passThrough,
  enforce: passThrough,
};

/** Runs the elements. */
export async function runBatch(
  call: BatchContext,
  array: AdmittedArray,
  run: HandleRequest,
): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record } = call;
  const batch = await authorize(call, BATCH, { call, array });
  if ('kind' in batch) return batch;
  if (array.hasRequests) outgoing.open(200, STREAM_HEADERS);
  let status = ACCEPTED;
  for (const element of array.elements) {
    const elementIncoming = elementOf(incoming, element, ports.audit.newDecisionId(), record.trace);
    const collected = createElementOutgoing(outgoing, array.hasRequests ? idOf(element) : undefined);
    await run(elementIncoming, collected.outgoing, ports);
    status = Math.max(status, collected.status());
  }
  fold(record, { result: { status: 'ok', http: array.hasRequests ? 200 : status } });
  if (array.hasRequests) outgoing.end();
  else outgoing.send(status < FIRST_REFUSAL ? ACCEPTED : status, {}, '');
  return undefined;
}

function elementOf(incoming: Incoming, element: string, id: string, trace: TraceContext | undefined): Incoming {
  return {
    ...incoming,
    id,
    partOf: incoming.id,
    trace: trace && { partOf: trace, isPassedOn: false },
    body: new TextEncoder().encode(element),
    // The batch keeps the concurrency slots for all of its elements, since they run one at a time.
    keepSlots: undefined,
    isProofUsed: true,
    startedMs: performance.now(),
    receivedAt: Date.now(),
  };
}

/** The id of a request; `undefined` for an element that gets no response. */
function idOf(element: string): RequestId | undefined {
  const { id, method } = parseMessage(element) as { id?: RequestId; method?: unknown };
  return method === undefined ? undefined : id;
}

/** Writes the response to one element into the stream of the batch, if the element gets one. */
function createElementOutgoing(
  batch: Outgoing,
  id: RequestId | undefined,
): { readonly outgoing: Outgoing; status(): number } {
  let status = 0;
  const write = (text: string): void | Promise<void> => batch.write(encodeSseMessage(text));
  const outgoing: Outgoing = {
    get isClosed() {
      return batch.isClosed;
    },
    // Such headers were already sent with the batch's own response.
    addHeader: () => undefined,
    send(sent: number, headers: ResponseHeaders, body) {
      status = sent;
      // A cancelled request gets no response.
      if (id === undefined || sent === ACCEPTED) return;
      void write(toJsonRpcMessage(id, sent, headers, body));
    },
    open(opened) {
      status = opened;
    },
    write: (bytes) => batch.write(bytes),
    // The stream continues with the next element.
    end: () => undefined,
    disconnect: () => batch.disconnect(),
  };
  return { outgoing, status: () => status };
}
