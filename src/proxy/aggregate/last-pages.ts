// What an aggregate's list shows of a backend that hangs: the page that the same caller was shown last, if it is no
// older than `pinning.maxAge`, was kept under the version now in force, and every item of it would still be listed.

import { isListed } from '../../policy/decide.js';
import { callerKeyOf } from '../../policy/principal.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import type { Json, Target } from '../../protocol/jsonrpc.js';
import { isObject } from '../../protocol/jsonrpc.js';
import type { Snapshot } from '../ports.js';
import { listItems } from './merge.js';
import type { VerifiedRequest } from './requests.js';

/** A page of a backend's list: its position in the list. */
type Position = { readonly upstream: string; readonly cursor: string | undefined };

/** Keeps the response of a backend. */
export function keepPage(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  position: Position,
  text: string,
): void {
  const { context, principal } = verified;
  const snapshot = context.aggregate.snapshot(position.upstream);
  if (snapshot === undefined || targetOf(admitted.rule.method, {}) === undefined) return;
  const key = keyOf(verified, admitted, position, snapshot);
  context.ports.aggregates.lastPages.keep(callerKeyOf(principal), key, text);
}

/** The response that was kept; `undefined` where there is none that may be shown now. */
export function recallPage(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  position: Position,
): string | undefined {
  const { context, principal } = verified;
  const { upstream } = position;
  const snapshot = context.aggregate.snapshot(upstream);
  if (snapshot === undefined || !snapshot.isFresh) return undefined;
  const key = keyOf(verified, admitted, position, snapshot);
  const text = context.ports.aggregates.lastPages.recall(callerKeyOf(principal), key, upstream);
  if (text === undefined) return undefined;
  const { method } = admitted.rule;
  const catalog = snapshot.catalogFor(admitted);
  const isShown = (item: Json): boolean => {
    const target = targetOf(method, item);
    return (
      target !== undefined && isListed(snapshot.policies, principal, upstream, target, catalog)
    );
  };
  return listItems(text, method)?.every(isShown) === true ? text : undefined;
}

/** The target of an item in rules; `undefined` for lists whose pages are not kept. */
function targetOf(method: string, item: Json): Target | undefined {
  const textAt = (member: string): string => {
    const value = isObject(item) ? item[member] : undefined;
    return typeof value === 'string' ? value : '';
  };
  switch (method) {
    case 'tools/list':
      return { kind: 'tool', name: textAt('name') };
    case 'prompts/list':
      return { kind: 'prompt', name: textAt('name') };
    case 'resources/list':
      return { kind: 'resource', uri: textAt('uri') };
    case 'resources/templates/list':
      return { kind: 'template', uriTemplate: textAt('uriTemplate') };
    default:
      return undefined;
  }
}

/** Includes the version in force, so that no page outlives a change of configuration, policy or pins. */
function keyOf(
  { context }: VerifiedRequest,
  { rule, version, apps }: AdmittedMessage,
  { upstream, cursor }: Position,
  { versions }: Snapshot,
): string {
  const { config, policy, pins } = versions;
  return JSON.stringify([
    ...[context.aggregate.name, upstream, rule.method, cursor ?? null, version, apps],
    ...[config, policy, pins],
  ]);
}
