// What an upstream sends back, as bytes that are pulled: the one place where undici's callbacks become
// values. Never buffers past a cap, never inflates, never follows a redirect.
// Back-pressure: a reader that lags pauses the socket (undici DispatchController).

import type { Dispatcher } from 'undici';
import type { ForwardFault, ForwardOutcome, UpstreamAnswer } from '../mcp/transport.js';

/** Chunks that may wait before the socket is paused. */
const MAX_WAITING_CHUNKS = 16;
/** What may follow an answer that nobody reads on: more of it costs the socket. */
const MAX_RELEASED_BYTES = 64 * 1024;
const RELEASE_WITHIN_MS = 1_000;

type Waiting = (value: Uint8Array | undefined | ForwardFault) => void;

/**
 * Reads one response of undici. Functions, not a stream: one allocation an exchange, no event emitter.
 * @param settle called once, with the answer when its headers are there, or with the fault.
 */
export function createAnswerReader(
  settle: (outcome: ForwardOutcome) => void,
): Dispatcher.DispatchHandler {
  let controller: Dispatcher.DispatchController | undefined;
  let settled = false;
  let end: 'open' | 'done' | ForwardFault = 'open';
  const chunks: Uint8Array[] = [];
  let waiting: Waiting | undefined;
  /** Below zero while what comes is still wanted. */
  let releasedBytes = -1;
  let collect:
    | {
        maxBytes: number;
        size: number;
        done: (value: Uint8Array | 'too-large' | ForwardFault) => void;
      }
    | undefined;

  function finish(how: 'done' | ForwardFault): void {
    if (end !== 'open') return;
    end = how;
    if (collect !== undefined) finishWhole();
    else if (waiting !== undefined && chunks.length === 0) {
      waiting(how === 'done' ? undefined : how);
      waiting = undefined;
    }
  }

  function finishWhole(): void {
    if (collect === undefined) return;
    const { done, maxBytes } = collect;
    collect = undefined;
    done(wholeOf(maxBytes));
  }

  /** What came, once the answer has ended. */
  function wholeOf(maxBytes: number): Uint8Array | 'too-large' | ForwardFault {
    if (end !== 'done') return end === 'open' ? 'upstream-protocol' : end;
    const bytes = joinChunks(chunks);
    return bytes.byteLength > maxBytes ? 'too-large' : bytes;
  }

  function take(chunk: Uint8Array): void {
    chunks.push(chunk);
    if (collect === undefined) return;
    collect.size += chunk.byteLength;
    if (collect.size <= collect.maxBytes) return;
    const { done } = collect;
    collect = undefined;
    abort();
    done('too-large');
  }

  /** Reads and drops what little is left, so that the socket can serve again; gives up past a bound. */
  function release(): void {
    if (end !== 'open') return;
    chunks.length = 0;
    releasedBytes = 0;
    controller?.resume();
    setTimeout(abort, RELEASE_WITHIN_MS).unref();
  }

  function discard(chunk: Uint8Array): void {
    releasedBytes += chunk.byteLength;
    if (releasedBytes > MAX_RELEASED_BYTES) abort();
  }

  function abort(): void {
    if (end !== 'open') return;
    giveUp('upstream-unavailable');
  }

  /** Closes the socket and tells whoever waits why. */
  function giveUp(why: ForwardFault): void {
    if (end !== 'open') return;
    end = why;
    controller?.abort(new Error('exchange given up'));
    waiting?.(why);
    waiting = undefined;
    finishWhole();
  }

  function whole(
    maxBytes: number,
    withinMs: number,
  ): Promise<Uint8Array | 'too-large' | ForwardFault> {
    // A short answer came with its headers: nothing is waited for.
    if (end !== 'open') return Promise.resolve(wholeOf(maxBytes));
    return new Promise((resolve) => {
      const timer = setTimeout(() => giveUp('upstream-timeout'), withinMs);
      const done = (value: Uint8Array | 'too-large' | ForwardFault): void => {
        clearTimeout(timer);
        resolve(value);
      };
      const size = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
      collect = { maxBytes, size, done };
      controller?.resume();
      if (size > maxBytes) {
        collect = undefined;
        abort();
        done('too-large');
      }
    });
  }

  /** All that waits, in one piece: what came in one reading of the socket is read as one. */
  function takeWaiting(): Uint8Array | undefined {
    if (chunks.length === 0) return undefined;
    const taken = chunks.splice(0);
    controller?.resume();
    return joinChunks(taken);
  }

  /** Behind the reading that brought the first chunk: what else it brought goes along. */
  function wake(): void {
    const waker = waiting;
    if (waker === undefined || chunks.length === 0) return;
    waiting = undefined;
    waker(takeWaiting());
  }

  function next(): Promise<Uint8Array | undefined | ForwardFault> {
    const taken = takeWaiting();
    if (taken !== undefined) return Promise.resolve(taken);
    if (end !== 'open') return Promise.resolve(end === 'done' ? undefined : end);
    return new Promise((resolve) => {
      waiting = resolve;
    });
  }

  return {
    onRequestStart(started) {
      controller = started;
      if (end !== 'open') started.abort(new Error('exchange given up'));
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200) return;
      settled = true;
      settle({
        kind: 'answer',
        status,
        headers: flattenHeaders(headers),
        whole,
        next,
        release,
        abort,
      });
    },
    onResponseData(_controller, chunk) {
      if (releasedBytes >= 0) return discard(chunk);
      take(chunk);
      if (waiting !== undefined && chunks.length === 1) queueMicrotask(wake);
      if (collect === undefined && chunks.length >= MAX_WAITING_CHUNKS) controller?.pause();
    },
    onResponseEnd() {
      finish('done');
    },
    onResponseError(_controller, error) {
      const reason = faultOf(error);
      if (!settled) {
        settled = true;
        settle({ kind: 'fault', reason });
      }
      finish(reason);
    },
  };
}

/** Maps undici's errors; what is not known is `upstream-unavailable`. */
export function faultOf(error: unknown): ForwardFault {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (
    code === 'UND_ERR_HEADERS_TIMEOUT' ||
    code === 'UND_ERR_BODY_TIMEOUT' ||
    code === 'UND_ERR_CONNECT_TIMEOUT'
  ) {
    return 'upstream-timeout';
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || (typeof code === 'string' && code.startsWith('HPE_')))
    return 'upstream-protocol';
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'upstream-protocol';
  return 'upstream-unavailable';
}

function flattenHeaders(
  headers: Record<string, string | string[] | undefined>,
): UpstreamAnswer['headers'] {
  const flat: { [name: string]: string | undefined } = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    flat[name.toLowerCase()] = Array.isArray(value) ? value.join(',') : value;
  }
  return flat;
}

function joinChunks(chunks: readonly Uint8Array[]): Uint8Array {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  let size = 0;
  for (const chunk of chunks) size += chunk.byteLength;
  const joined = Buffer.allocUnsafe(size);
  let offset = 0;
  for (const chunk of chunks) {
    joined.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return joined;
}
