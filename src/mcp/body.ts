// The body of a whole answer: in one piece, or in pieces that are kept from one answer to the next and written
// one behind the other, so that nothing is copied for each.

export type Pieces = readonly Uint8Array[];
export type Body = Uint8Array | string | Pieces;

/** True for a body in pieces. */
export function isInPieces(body: Body): body is Pieces {
  return Array.isArray(body);
}

/** The bytes of all pieces together. */
export function sizeOfPieces(pieces: Pieces): number {
  let size = 0;
  for (const piece of pieces) size += piece.byteLength;
  return size;
}

/** The body in one piece. */
export function inOnePiece(body: Body): Uint8Array | string {
  if (!isInPieces(body)) return body;
  const whole = new Uint8Array(sizeOfPieces(body));
  let at = 0;
  for (const piece of body) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}
