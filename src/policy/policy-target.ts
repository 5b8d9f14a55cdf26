// What a query is about, as rules see it: its kind and name, the readings of a URI, its pin and its block.
// docs/reference/definitions.md; docs/reference/responses.md.

import type { JsonObject, ServerRequestName, Target } from '../protocol/jsonrpc.js';
import { type EvaluationInput, prepareEvaluation } from './conditions.js';
import {
  approvedFormFor,
  type Catalog,
  type DefinitionStatus,
  definitionOf,
  type PinKind,
  type PinnedDefinition,
  type PinState,
} from './definitions.js';
import type { Reason } from './reasons.js';
import type { PolicyQuery, TargetKind } from './rules.js';
import { isAppUri, readUri, type UriReadings } from './uris.js';

export type PolicyTarget =
  | {
      readonly kind: TargetKind;
      readonly name: string;
      /** Of a resource. */
      readonly readings?: UriReadings;
      /** Of a resource that is pinned: its URI as it is written. */
      readonly pinName?: string;
    }
  | { readonly kind: 'server-request'; readonly name: ServerRequestName };

export function readPolicyTarget(target: Exclude<Target, { readonly kind: 'none' }>): PolicyTarget | undefined {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
      return { kind: target.kind, name: target.name };
    case 'template':
      return { kind: 'template', name: target.uriTemplate };
    case 'server-request':
      return target;
    // A task is subject to the rules of its tool, and to those that name its use.
    case 'task':
      return target.tool === undefined ? undefined : { kind: 'tool', name: target.tool };
    case 'resource':
      return readResource(target.uri);
  }
}

function readResource(uri: string): PolicyTarget | undefined {
  const readings = readUri(uri);
  if (readings === undefined) return undefined;
  const { normal: name } = readings;
  if (!isAppUri(name)) return { kind: 'resource', name, readings };
  // A resource that is pinned by its URI has one spelling; another spelling would bypass the pin.
  const isOdd = name !== uri && name !== `${uri}/`;
  return isOdd ? undefined : { kind: 'resource', name, readings, pinName: uri };
}

/** Whether no pin says which tools and prompts there are, so that a name may be another spelling of one that there is. */
export function isUnpinnedName({ mode }: Catalog, { kind }: PolicyTarget): boolean {
  return mode === 'off' && (kind === 'tool' || kind === 'prompt');
}

/** The block of a target. Server requests cannot be blocked; their upstream can. */
export function blockOf(catalog: Catalog, target: PolicyTarget): string | undefined {
  if (catalog.blockOf === undefined || target.kind === 'server-request') return undefined;
  const isUnpinned = isUnpinnedName(catalog, target);
  return catalog.blockOf(target.kind, target.name, { readings: target.readings, isUnpinned });
}

const PIN_REFUSALS: { readonly [state in PinState]: Reason | undefined } = {
  approved: undefined,
  pending: 'tool-unpinned',
  unpinned: 'tool-unpinned',
  absent: 'tool-unpinned',
  changed: 'tool-changed',
  blocked: 'tool-blocked',
  invalid: 'tool-invalid',
  shadowed: 'tool-shadowed',
  poisoned: 'tool-poisoned',
};

export type TargetPin = {
  readonly refusal: Reason | undefined;
  readonly pinned: PinnedDefinition | undefined;
  /** The definition that describes the arguments. */
  readonly described: PinnedDefinition | undefined;
  /** Whether what rules read must be described. */
  readonly mustDescribe: boolean;
};

export const NOT_PINNED: TargetPin = {
  refusal: undefined,
  pinned: undefined,
  described: undefined,
  mustDescribe: false,
};

/**
 * The pin of a target. Server requests and resources other than `ui://` are not pinned (docs/reference/definitions.md);
 * a stopped upstream stops them too.
 */
export function targetPinOf(catalog: Catalog, target: PolicyTarget, args: PolicyQuery['args']): TargetPin {
  if (catalog.isStopped) return { ...NOT_PINNED, refusal: 'tool-changed' };
  if (target.kind === 'server-request') return NOT_PINNED;
  const { kind, name } = target;
  if (kind === 'resource' && !isAppUri(name)) return NOT_PINNED;
  const pinName = target.pinName ?? name;
  const status = catalog.statusOf(kind satisfies PinKind, pinName);
  const { state, pinned, variants } = status;
  const form = variants === undefined || args === 'unknown' ? pinned : approvedFormFor(status, args);
  const approved = state === 'approved' ? form : undefined;
  const withheld = reasonOfWithheld(catalog.mode, status);
  if (withheld !== undefined) return { ...NOT_PINNED, refusal: withheld };
  if (catalog.mode === 'off') {
    const mustDescribe = status.observed !== undefined;
    const described = definitionOf(status);
    return { refusal: undefined, pinned: approved, described, mustDescribe };
  }
  const refusal = PIN_REFUSALS[state] ?? (approved === undefined ? 'tool-unpinned' : undefined);
  return { refusal, pinned: approved, described: approved, mustDescribe: true };
}

/** Why a target is refused before it is asked what is approved. */
function reasonOfWithheld(mode: Catalog['mode'], { state, isUnverified }: DefinitionStatus): Reason | undefined {
  if (isUnverified === true) return 'pins-stale';
  return isWithheldIn(mode, state) ? PIN_REFUSALS[state] : undefined;
}

/** States that refuse also where nothing is pinned: without a usable schema no arguments could be checked. */
function isWithheldIn(mode: Catalog['mode'], state: PinState): boolean {
  return state === 'shadowed' || state === 'poisoned' || (state === 'invalid' && mode === 'off');
}

/** What expressions see as the name of the item: empty for what has none. */
export function itemNameOf({ kind, name }: PolicyTarget): string {
  return kind === 'tool' || kind === 'prompt' ? name : '';
}

export function evaluationInputOf(
  query: Pick<PolicyQuery, 'principal' | 'upstream' | 'catalog' | 'findings'>,
  policyTarget: PolicyTarget,
  args: JsonObject,
  pin: TargetPin,
): EvaluationInput {
  const hasName = policyTarget.kind === 'tool' || policyTarget.kind === 'prompt';
  return prepareEvaluation({
    principal: query.principal,
    args,
    pinned: pin.pinned,
    described: pin.described,
    mustDescribe: hasName && pin.mustDescribe,
    undeclaredArguments: query.catalog.undeclaredArguments,
    upstream: query.upstream,
    name: itemNameOf(policyTarget),
    uri: policyTarget.kind === 'resource' ? policyTarget.name : undefined,
    readings: policyTarget.kind === 'resource' ? policyTarget.readings : undefined,
    findings: query.findings,
  });
}
