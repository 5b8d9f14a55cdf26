// The kind of what an upstream or one of its tools returns, and what an inspection profile does to content of that kind.
// A kind is chosen by a person in the configuration. Nothing in a message chooses one: media types, URIs and arguments
// belong to the server, or to a model that a page has persuaded. docs/guides/content.md, content kinds.

import type { ContentKind, ContentSettings, InspectionProfile } from '../config/settings.js';
import { type DefinitionStatus, definitionOf } from '../policy/definitions.js';
import { foldItemName } from '../policy/patterns.js';

/**
 * The kind of what a tool returns. `code` of a tool holds only for the definitions that it was written for or, where
 * none is named, for one that is approved; for any other definition the kind is `auto`.
 */
export function kindOfTool(
  { kind, tools }: ContentSettings,
  tool: string,
  status: () => DefinitionStatus,
): ContentKind {
  const chosen = tools.get(tool);
  if (chosen === undefined) return status().state === 'approved' ? kind : strictestOf(kind, tools, foldItemName(tool));
  if (chosen.kind !== 'code' && chosen.digests === undefined) return chosen.kind;
  return isChosenFor(chosen.digests, status()) ? chosen.kind : 'auto';
}

/** Without a pin a server may take another spelling of a name for the same. */
function strictestOf(kind: ContentKind, tools: ContentSettings['tools'], folded: string): ContentKind {
  let strictest = kind;
  for (const [name, other] of tools) if (foldItemName(name) === folded) strictest = stricterKind(strictest, other.kind);
  return strictest;
}

/** Every form in which the tool may have been offered to the caller has to be one that the kind was chosen for. */
function isChosenFor(digests: readonly string[] | undefined, status: DefinitionStatus): boolean {
  const definition = definitionOf(status);
  if (definition === undefined) return false;
  const isApproved = status.state === 'approved';
  if (digests === undefined) return isApproved;
  if (!isApproved && status.listed === undefined) return false;
  const forms = [definition, ...(status.variants ?? [])];
  return forms.every(({ digest }) => digests.includes(digest));
}

type Rules = InspectionProfile['result'];

/**
 * The profile for content of a kind. A kind says how much of a content is changed, so it takes the place of `neutralize`
 * and `strip`; `block`, `flag` and `off` stay what the profile says.
 */
export function profileForKind(profile: InspectionProfile, kind: ContentKind): InspectionProfile {
  if (kind === 'auto') return profile;
  const { result } = profile;
  const rules: Rules = { ...result, kind };
  if (kind === 'markup') return { ...profile, result: rules };
  const activeContent = result.activeContent === 'neutralize' ? 'flag' : result.activeContent;
  const invisible = kind === 'code' && result.invisible === 'strip' ? 'flag' : result.invisible;
  return { ...profile, result: { ...rules, activeContent, invisible } };
}

/** Kinds from the one that changes least on. */
const STRICTNESS: readonly ContentKind[] = ['code', 'text', 'auto', 'markup'];

/** The kind of content that two profiles apply to. An absent kind is `auto`. */
export function stricterKind(one: ContentKind = 'auto', other: ContentKind = 'auto'): ContentKind {
  return STRICTNESS.indexOf(other) > STRICTNESS.indexOf(one) ? other : one;
}
