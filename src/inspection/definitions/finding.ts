// What is scanned, and what the scan of definitions finds.

import type { PinnedKind } from '../../pins/digest.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import type { FindingKind, Tier } from './demands.js';

/** A definition as the server listed it. `name` is what the lock file calls it. */
export type ScannedDefinition = {
  readonly kind: PinnedKind;
  readonly name: string;
  readonly definition: JsonObject | string;
};

export type DefinitionFinding = {
  /** Names the finding in a command. Another text at its place makes another finding. */
  readonly id: string;
  readonly kind: FindingKind;
  readonly tier: Tier;
  readonly item: { readonly kind: PinnedKind; readonly name: string };
  /** JSON pointer to the string in the definition. */
  readonly pointer: string;
  /** The words that were found, with invisible characters visible, at most 200 characters. */
  readonly evidence: string;
  readonly reason: string;
};

/** A finding before it is named. */
export type UnnamedFinding = Omit<DefinitionFinding, 'id'>;
