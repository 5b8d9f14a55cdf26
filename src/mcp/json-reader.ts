// How a message of the other side becomes a value: at once, or, where it is large, by work that is done
// elsewhere and in parts, so that nobody else waits for it.

import type { JsonReading } from './json.js';

/** `overloaded`: too much waits to be read already. `internal`: whoever read it failed. */
export type ReadError =
  | Extract<JsonReading, { readonly ok: false }>['error']
  | 'overloaded'
  | 'internal';

export type ReadOutcome =
  | Extract<JsonReading, { readonly ok: true }>
  | { readonly ok: false; readonly error: ReadError };

export type ReadTerms = {
  /** In whose turn it waits. */
  readonly upstream: string;
  readonly maxValues: number;
};

/** Reads UTF-8 bytes, or text decoded from them, as one JSON value under the usual caps. Never rejects. */
export type ReadJson = (
  source: Uint8Array | string,
  terms: ReadTerms,
) => ReadOutcome | Promise<ReadOutcome>;
