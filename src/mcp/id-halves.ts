// A message as the bytes before its id and those behind it, so that the same message under another id is
// recognized, and written, without being read again. Decides nothing about either.

import { type Bytes, isInPieces, type Pieces } from './body.js';
import { spanOf } from './json.js';
import type { RequestId } from './message.js';

export type Halves = { readonly head: Uint8Array; readonly tail: Uint8Array };

/** Whether two stretches of bytes are equal; the composition root gives the fastest it has. */
export type IsEqual = (one: Uint8Array, other: Uint8Array) => boolean;

const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array(0);

/** The bytes before and behind the id; undefined where the id is not spelled as JSON.stringify would. */
export function splitAtId(text: string, id: RequestId): Halves | undefined {
  const span = spanOf(text, ['id']);
  if (span === undefined || text.slice(span.start, span.end) !== JSON.stringify(id))
    return undefined;
  return {
    head: encoder.encode(text.slice(0, span.start)),
    tail: encoder.encode(text.slice(span.end)),
  };
}

/** Whether these bytes are those halves with this id between them. */
export function isJoined(halves: Halves, bytes: Bytes, id: RequestId, isEqual: IsEqual): boolean {
  return isInPieces(bytes)
    ? areItsPieces(halves, bytes, id, isEqual)
    : isSameMessage(halves, bytes, id, isEqual);
}

/** Pieces that are cut elsewhere are not recognized. */
function areItsPieces(halves: Halves, pieces: Pieces, id: RequestId, isEqual: IsEqual): boolean {
  const own = piecesAtId(halves, id);
  return (
    pieces.length === own.length &&
    own.every((piece, index) => isEqual(piece, pieces[index] ?? NO_BYTES))
  );
}

function isSameMessage(
  { head, tail }: Halves,
  bytes: Uint8Array,
  id: RequestId,
  isEqual: IsEqual,
): boolean {
  const idBytes = encoder.encode(JSON.stringify(id));
  const idEnd = head.length + idBytes.length;
  return (
    bytes.length === idEnd + tail.length &&
    isEqual(bytes.subarray(0, head.length), head) &&
    isEqual(bytes.subarray(head.length, idEnd), idBytes) &&
    isEqual(bytes.subarray(idEnd), tail)
  );
}

/** The message with this id, in the pieces that are kept. */
export function piecesAtId({ head, tail }: Halves, id: RequestId): Pieces {
  return [head, encoder.encode(JSON.stringify(id)), tail];
}
