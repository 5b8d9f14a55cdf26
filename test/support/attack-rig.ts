// A running gateway in front of a hostile upstream, and what every attack must prove: what the client
// got, that the upstream saw nothing of it, and that the audit has its lines with the right reason.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import type { Reason } from '../../src/policy/reasons.js';
import type { Json } from '../../src/protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../../src/protocol/jsonrpc.js';
import { type HostileUpstream, startHostileUpstream } from './hostile-upstream.js';
import { type LegacySseFront, startLegacySseFront } from './legacy-sse-front.js';
import {
  type AuditLine,
  type GatewayUnderTest,
  type RunningGateway,
  startTestGateway,
} from './start-gateway.js';
import { type Access, type OpenSession, openSession, type Reply } from './wire-client.js';

export const UPSTREAM = 'target';

/** A listing that is under way asks the next thing within this time. */
const QUIET_MS = 60;

export type AttackRig = {
  readonly gateway: RunningGateway;
  readonly upstream: HostileUpstream;
  /** Where it was asked for. */
  readonly front: LegacySseFront | undefined;
  readonly port: number;
  readonly path: string;
  /** A good caller. */
  readonly access: Access;
  /** The same endpoint with another token. */
  as(token: string | undefined): Access;
  /** A session of the good caller. */
  openSession(): Promise<OpenSession>;
  /** Sets the clock of the gateway forward: what it keeps grows older at once. Its timers run on as before. */
  passTime(ms: number): void;
  close(): Promise<void>;
};

export type RigOptions = Partial<Omit<GatewayUnderTest, 'upstreams'>> & {
  /** Members of the upstream. Default: verified so seldom that a test sees no listing of the gateway's own. */
  readonly upstream?: readonly string[];
  /** Orders given before the pins are fetched. */
  readonly prepare?: (upstream: HostileUpstream) => void;
  /** The upstream is reached over HTTP+SSE. */
  readonly behindChannels?: boolean;
};

/** Starts both and waits until the definitions were verified; then the upstream forgets what it saw. */
export async function startRig(options: RigOptions = {}): Promise<AttackRig> {
  const { upstream: members = ['pinning: {maxAge: 10m}'], prepare, ...others } = options;
  const { behindChannels = false, ...rest } = others;
  const upstream = await startHostileUpstream();
  prepare?.(upstream);
  const front = behindChannels ? await startLegacySseFront(upstream.url) : undefined;
  const more = front === undefined ? members : [...members, 'transport: http-sse'];
  let aheadMs = 0;
  const gateway = await startTestGateway({
    now: () => Date.now() + aheadMs,
    ...rest,
    upstreams: [{ name: UPSTREAM, url: front?.url ?? upstream.url, more }],
  });
  await settleListing(gateway, upstream);
  upstream.forget();
  const url = gateway.url(UPSTREAM);
  const access = { url, token: await gateway.token(UPSTREAM) };
  return {
    gateway,
    upstream,
    front,
    port: Number(new URL(url).port),
    path: new URL(url).pathname,
    access,
    as: (token) => ({ url, token }),
    openSession: () => openSession(access),
    passTime(ms) {
      aheadMs += ms;
    },
    async close() {
      await gateway.close();
      await front?.close();
      await upstream.close();
    },
  };
}

/** Waits for the gateway's own first listing, in both eras, so that none of it comes during a test. */
async function settleListing(gateway: RunningGateway, upstream: HostileUpstream): Promise<void> {
  await vi.waitFor(
    async () => expect(await gateway.metrics()).toMatch(/^sallyport_upstream_up\{[^}]*\} [01]$/m),
    { timeout: 10_000, interval: 10 },
  );
  for (let seen = -1; seen !== upstream.seen().length; await sleep(QUIET_MS))
    seen = upstream.seen().length;
}

/** The id of the decision behind a refusal: in a header, in `data`, or in `_meta` of a result. */
export function decisionOf(reply: Reply): { readonly id: string; readonly reason?: string } {
  const header = reply.headers.get('sallyport-decision');
  if (header !== null) return { id: header };
  const error = reply.message?.['error'];
  const result = reply.message?.['result'];
  const holder = isObject(error) ? error['data'] : isObject(result) ? result['_meta'] : undefined;
  const decision = isObject(holder) ? holder['dev.sallyport/decision'] : undefined;
  if (!isObject(decision)) throw new Error(`no decision in ${reply.status} ${reply.text}`);
  return decision as { readonly id: string; readonly reason?: string };
}

/** The lines of one decision, once there are as many as a test waits for. */
export async function linesOf(
  gateway: RunningGateway,
  id: string,
  count: number,
): Promise<readonly AuditLine[]> {
  const find = async (): Promise<readonly AuditLine[]> =>
    (await gateway.audit()).filter((line) => line['decision']?.id === id);
  await expect
    .poll(async () => (await find()).length, { timeout: 5_000, interval: 10 })
    .toBeGreaterThanOrEqual(count);
  return find();
}

/** A refusal of a message writes its decision and its outcome, both refused for this reason. */
export async function expectRefusedLines(
  rig: Pick<AttackRig, 'gateway'>,
  reply: Reply,
  reason: Reason,
): Promise<readonly AuditLine[]> {
  const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
  expect(lines.map((line) => line['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
  for (const line of lines) {
    expect(line['decision']).toMatchObject({ verdict: 'deny', action: 'refused' });
    expect(line['decision'].reasons).toContain(reason);
  }
  return lines;
}

/** A refusal before anyone is known writes one line, for one of these reasons. */
export async function expectLoginLine(
  rig: AttackRig,
  reply: Pick<Reply, 'headers'>,
  ...reasons: readonly Reason[]
): Promise<void> {
  const id = reply.headers.get('sallyport-decision') ?? '';
  const lines = await linesOf(rig.gateway, id, 1);
  expect(lines.map((line) => line['type'])).toEqual(['auth.failure']);
  expect(reasons).toContain(lines[0]?.['decision'].reasons[0]);
}

/** A refusal at the edge is recorded like every other, with the id that stands in its header. */
export async function expectEdgeLines(
  rig: AttackRig,
  reply: Pick<Reply, 'headers'>,
  reason: Reason,
): Promise<void> {
  const id = reply.headers.get('sallyport-decision') ?? '';
  const lines = await linesOf(rig.gateway, id, 2);
  expect(lines.map((line) => line['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
  for (const line of lines) {
    expect(line['decision']).toMatchObject({ verdict: 'deny', stage: 'edge', reasons: [reason] });
  }
}

/** What came back was withheld: allowed, forwarded, and then not passed on. */
export async function expectWithheldLines(
  rig: AttackRig,
  reply: Reply,
  reason: Reason,
): Promise<void> {
  const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
  const [decision, outcome] = lines;
  expect(decision?.['decision']).toMatchObject({ verdict: 'allow', action: 'forwarded' });
  expect(outcome?.['decision']).toMatchObject({ action: 'withheld' });
  expect(outcome?.['decision'].reasons).toContain(reason);
}

export function expectNothingForwarded(rig: AttackRig): void {
  expect(rig.upstream.seen().map((request) => request.body)).toEqual([]);
}

/** A good call of both eras passes: an attack before it has broken nothing. */
export function textOf(result: JsonObject): string {
  const content = result['content'];
  if (!Array.isArray(content)) return '';
  return (content as readonly Json[])
    .map((block) => (isObject(block) ? String(block['text'] ?? '') : ''))
    .join('');
}
