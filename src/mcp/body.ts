// The body of a whole answer: in one piece, or in pieces that are kept from one answer to the next and written
// one behind the other, so that nothing is copied for each.

export type Pieces = readonly Uint8Array[];
export type Bytes = Uint8Array | Pieces;
export type Body = Bytes | string;

/** True for a body in pieces. */
export function isInPieces(body: Body): body is Pieces {
  return Array.isArray(body);
}

/** How many bytes they are. */
export function sizeOfBytes(bytes: Bytes): number {
  if (!isInPieces(bytes)) return bytes.byteLength;
  let size = 0;
  for (const piece of bytes) size += piece.byteLength;
  return size;
}

/** The body in one piece. */
export function inOnePiece(body: Bytes): Uint8Array;
export function inOnePiece(body: Body): Uint8Array | string;
export function inOnePiece(body: Body): Uint8Array | string {
  if (!isInPieces(body)) return body;
  const joined = new Uint8Array(sizeOfBytes(body));
  let at = 0;
  for (const piece of body) {
    joined.set(piece, at);
    at += piece.byteLength;
  }
  return joined;
}
