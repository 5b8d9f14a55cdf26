// What follows from blocks besides refusals: clients are told that lists changed, and the control `blocks` and its metric
// say what is blocked, by whom and why. docs/contract.md §10.

import { BLOCK_TARGETS, type BlockTarget, type UpstreamBlocks } from '../policy/blocks.js';
import { LIST_CHANGED_NOTIFICATIONS } from '../protocol/subscriptions.js';
import { type Block, UNTIL_LIFTED_MS } from '../state/revocations.js';
import type { Controls } from '../telemetry/controls.js';
import type { Metrics } from '../telemetry/metrics.js';

/** Tells the streams of each upstream whose blocks have changed since it was called last that its lists may have changed. */
export function createBlockAnnouncer(
  blocksAt: (upstream: string) => UpstreamBlocks | undefined,
  announce: (upstream: string, method: string) => void,
): (upstreams: Iterable<string>) => void {
  const announced = new Map<string, UpstreamBlocks | undefined>();
  return (upstreams) => {
    for (const upstream of upstreams) {
      const blocks = blocksAt(upstream);
      if (announced.get(upstream) === blocks) continue;
      announced.set(upstream, blocks);
      for (const method of LIST_CHANGED_NOTIFICATIONS) announce(upstream, method);
    }
  };
}

/** Blocks that the control names; the rest are counted. */
const MAX_DESCRIBED = 5;

/** A block takes no control away, so the control stays armed; the metric is what an alert would use. */
export function setBlocks(
  controls: Controls,
  metrics: Metrics,
  blocks: readonly Block[],
  isShared: boolean,
): void {
  for (const target of BLOCK_TARGETS)
    metrics.setBlocks(
      target,
      blocks.filter(({ revoked }) => revoked.block.target === target).length,
    );
  const described = blocks.slice(0, MAX_DESCRIBED).map(describe);
  const rest = blocks.length - described.length;
  const parts = [
    ...described,
    ...(rest > 0 ? [`and ${rest} more`] : []),
    ...(isShared ? [] : ['state.type: memory, so blocks and revocations end with the process']),
  ];
  controls.set('blocks', 'armed', parts.join('; '));
}

function describe({ revoked, by, note, expiresAtMs }: Block): string {
  const until = endOf(expiresAtMs);
  const end = until === undefined ? '' : ` until ${until}`;
  return `${nameOf(revoked.block)} is blocked${end} by ${JSON.stringify(by)}: ${JSON.stringify(note)}`;
}

/** When a block ends by itself (RFC 3339); `undefined` if only lifting ends it. */
export function endOf(expiresAtMs: number): string | undefined {
  return expiresAtMs >= UNTIL_LIFTED_MS ? undefined : new Date(expiresAtMs).toISOString();
}

/** Names of items come from people, but may quote an upstream, so they are quoted. */
function nameOf(block: BlockTarget): string {
  switch (block.target) {
    case 'everything':
      return 'everything';
    case 'upstream':
      return `upstream ${block.upstream}`;
    case 'subject':
      return `subject ${JSON.stringify(block.subject)} of ${block.issuer}`;
    case 'client':
      return `client ${JSON.stringify(block.client)} of ${block.issuer}`;
    case 'tool':
    case 'prompt':
    case 'template':
    case 'resource':
      return `${block.target} ${JSON.stringify(block.name)} of ${block.upstream}`;
  }
}
