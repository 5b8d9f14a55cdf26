// A running gateway with an endpoint over hostile upstreams, and clients of both eras at it: what every test
// of an endpoint starts from.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { type HostileUpstream, startHostileUpstream } from './hostile-upstream.js';
import { startLegacySseFront } from './legacy-sse-front.js';
import { type GatewayUnderTest, type RunningGateway, startTestGateway } from './start-gateway.js';
import {
  type Access,
  type OpenSession,
  openSession,
  type Reply,
  requestStateless,
  resultOf,
} from './wire-client.js';

export const ENDPOINT = 'all';

/** A listing that is under way asks the next thing within this time. */
const QUIET_MS = 60;

export type MergedRig = {
  readonly gateway: RunningGateway;
  readonly left: HostileUpstream;
  readonly right: HostileUpstream;
  /** A good caller of the endpoint. */
  readonly access: Access;
  forget(): void;
  close(): Promise<void>;
};

export type MergedOptions = Partial<Omit<GatewayUnderTest, 'upstreams'>> & {
  /** Flow-style members of the endpoint; two members with short prefixes where absent. */
  readonly endpoint?: string;
  /** Members of both upstreams. */
  readonly upstream?: readonly string[];
  readonly prepare?: (left: HostileUpstream, right: HostileUpstream) => void;
  /** The upstreams are reached through faces of HTTP+SSE. */
  readonly behindChannels?: boolean;
};

/** Starts all of them and waits until the definitions were verified. */
export async function startMergedRig(options: MergedOptions = {}): Promise<MergedRig> {
  const {
    endpoint,
    upstream = ['pinning: {maxAge: 10m}'],
    prepare,
    more = '',
    ...others
  } = options;
  const { behindChannels = false, ...rest } = others;
  const [left, right] = [await startHostileUpstream(), await startHostileUpstream()];
  prepare?.(left, right);
  const members = endpoint ?? 'issuers: [test], upstreams: {left: {prefix: l_}, right: {}}';
  const fronts = behindChannels
    ? await Promise.all([startLegacySseFront(left.url), startLegacySseFront(right.url)])
    : [];
  const settings = behindChannels ? [...upstream, 'transport: http-sse'] : upstream;
  const closeUpstreams = (): Promise<unknown> =>
    Promise.all([left, right, ...fronts].map((one) => one.close()));
  const gateway = await startTestGateway({
    ...rest,
    upstreams: [
      { name: 'left', url: fronts[0]?.url ?? left.url, more: settings },
      { name: 'right', url: fronts[1]?.url ?? right.url, more: settings },
    ],
    more: `endpoints:\n  ${ENDPOINT}: {${members}}\n${more}`,
  }).catch(async (error: unknown) => {
    await closeUpstreams();
    throw error;
  });
  await settleListings(gateway, [left, right]);
  const access = { url: gateway.url(ENDPOINT), token: await gateway.token(ENDPOINT) };
  const forget = (): void => {
    left.forget();
    right.forget();
  };
  forget();
  return {
    ...{ gateway, left, right, access, forget },
    async close() {
      await gateway.close();
      await closeUpstreams();
    },
  };
}

async function settleListings(
  gateway: RunningGateway,
  upstreams: readonly HostileUpstream[],
): Promise<void> {
  await vi.waitFor(
    async () =>
      expect(
        (await gateway.metrics()).match(/^sallyport_upstream_up\{[^}]*\} [01]$/gm),
      ).toHaveLength(upstreams.length),
    { timeout: 10_000, interval: 10 },
  );
  const count = (): number => upstreams.reduce((sum, one) => sum + one.seen().length, 0);
  for (let seen = -1; seen !== count(); await sleep(QUIET_MS)) seen = count();
}

export type MergedCaller = {
  readonly session: OpenSession | undefined;
  request(method: string, params?: JsonObject): Promise<Reply>;
  call(name: string, args?: JsonObject): Promise<Reply>;
};

/** A client of one era. */
export async function connectTo(
  era: 'sessions' | 'stateless',
  access: Access,
): Promise<MergedCaller> {
  const session = era === 'sessions' ? await openSession(access) : undefined;
  const request = (method: string, params: JsonObject = {}): Promise<Reply> =>
    session === undefined
      ? requestStateless(access, method, params)
      : session.request(method, params);
  return {
    session,
    request,
    call: (name, args = {}) => request('tools/call', { name, arguments: args }),
  };
}

/** The text of the first content of a tool's result. */
export function firstTextOf(reply: Reply): unknown {
  const content = resultOf(reply)['content'];
  const first = Array.isArray(content) ? (content as readonly JsonObject[])[0] : undefined;
  return first?.['text'];
}
