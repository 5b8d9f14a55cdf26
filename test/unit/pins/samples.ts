// Definitions, locks and observations for the tests of pins.

import { digestDefinition, type PinnedKind } from '../../../src/pins/digest.js';
import { mergeObserved, type Observed, observeListing } from '../../../src/pins/last-seen.js';
import {
  type Approval,
  emptyLock,
  type Lock,
  type Pin,
  type PinStatus,
  type PinVersion,
} from '../../../src/pins/lock.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import type { Listing } from '../../../src/protocol/methods.js';
import type { ListedEra } from '../../../src/protocol/versions/revisions.js';

export const APPROVAL: Approval = { by: 'alex', at: '2026-11-20T10:00:00.000Z', note: 'first' };

export function toolOf(name: string, more: JsonObject = {}): JsonObject {
  const inputSchema = { type: 'object', properties: { id: { type: 'string' } } };
  return { name, description: 'Reads one issue.', inputSchema, ...more };
}

export function digestOf(definition: unknown, kind: PinnedKind = 'tool'): string {
  const digest = digestDefinition(kind, definition);
  if (!digest.ok) throw new Error(digest.why);
  return digest.digest;
}

export function versionOf(definition: JsonObject, status: PinStatus): PinVersion<JsonObject> {
  const approval = status === 'approved' ? APPROVAL : undefined;
  return { status, sha256: digestOf(definition), approval, definition };
}

export function pinOf(
  definition: JsonObject,
  status: PinStatus = 'approved',
  variants: readonly PinVersion<JsonObject>[] = [],
): Pin {
  return { ...versionOf(definition, status), variants };
}

export function textPin(text: string, status: PinStatus = 'approved'): Pin<string> {
  const approval = status === 'approved' ? APPROVAL : undefined;
  const sha256 = digestOf(text, 'instructions');
  return { status, sha256, approval, definition: text, variants: [] };
}

/** A lock of tools, by their own names. */
export function lockOf(pins: readonly Pin[], instructions?: Pin<string>): Lock {
  const empty = emptyLock('github');
  const tool = new Map(pins.map((pin) => [String(pin.definition['name']), pin]));
  return { ...empty, instructions, pins: { ...empty.pins, tool } };
}

export type Offer = {
  readonly era?: ListedEra;
  readonly apps?: boolean;
  readonly atMs?: number;
  readonly prompts?: readonly JsonObject[];
  readonly templates?: readonly JsonObject[];
  readonly resources?: readonly JsonObject[];
  readonly instructions?: string;
  readonly serverInfo?: JsonObject;
  readonly isExact?: boolean;
};

export function listingOf(tools: readonly JsonObject[], offer: Offer = {}): Listing {
  const items = (definitions: readonly JsonObject[]) =>
    definitions.map((definition) => ({ definition, isExact: offer.isExact ?? true }));
  return {
    era: offer.era ?? '2025',
    apps: offer.apps ?? false,
    verifiedAtMs: offer.atMs ?? 1000,
    tools: items(tools),
    prompts: items(offer.prompts ?? []),
    templates: items(offer.templates ?? []),
    resources: items(offer.resources ?? []),
    instructions: offer.instructions,
    capabilities: { tools: {} },
    serverInfo: offer.serverInfo,
    protocolVersions: ['2025-11-25'],
  };
}

export function observedOf(tools: readonly JsonObject[], offer: Offer = {}): Observed {
  return mergeObserved([observeListing(listingOf(tools, offer))]);
}
