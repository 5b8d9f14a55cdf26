// What is scanned and what is found: a definition as the server listed it, and a finding with its kind, its tier, its
// place and its evidence.

import type { PinnedKind } from '../../pins/digest.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';

/** How grave a finding is: withheld from approval, to be looked at, or for information. */
export type Tier = 'block' | 'review' | 'note';

export type FindingKind =
  | 'order-to-model'
  | 'secrecy'
  | 'sensitive-read'
  | 'exfiltration'
  | 'other-tool'
  | 'authority'
  | 'solicitation'
  | 'context-parameter'
  | 'hidden-text'
  /** It was not read, or not whole. */
  | 'too-large-to-scan'
  | 'look-alike-name'
  | 'false-annotation'
  | 'excess-scope'
  | 'shadowing';

/** What one rule found: the words from `start` to `end` of the reading. */
export type Match = {
  readonly kind: FindingKind;
  readonly tier: Tier;
  readonly reason: string;
  readonly start: number;
  readonly end: number;
};

/** A definition as the server listed it. `name` is what the lock file calls it. */
export type ScannedDefinition = {
  readonly kind: PinnedKind;
  readonly name: string;
  readonly definition: JsonObject | string;
  /** Of the whole definition, where it is known (pins/digest.ts). */
  readonly digest?: string;
};

/** What a finding is about: a definition, or an upstream with several of its definitions. */
export type FoundItem = { readonly kind: PinnedKind | 'upstream'; readonly name: string };

export type DefinitionFinding = {
  /** Names the finding in a command. Another text at its place makes another finding. */
  readonly id: string;
  readonly kind: FindingKind;
  readonly tier: Tier;
  readonly item: FoundItem;
  /** Where it is about an upstream, which of its definitions. */
  readonly covers?: readonly FoundItem[];
  /** JSON pointer to the string in the definition. */
  readonly pointer: string;
  /** The words that were found, with invisible characters visible, at most 200 characters. */
  readonly evidence: string;
  readonly reason: string;
};

/** A finding before it is named. */
export type UnnamedFinding = Omit<DefinitionFinding, 'id'>;

/** Whether a finding is about this definition, by itself or together with others of its upstream. */
export function isAbout({ item, covers = [] }: DefinitionFinding, pin: FoundItem): boolean {
  return [item, ...covers].some(({ kind, name }) => kind === pin.kind && name === pin.name);
}
