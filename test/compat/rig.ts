// What the rows of the compatibility table are made of, and the worlds in which they are proved: a gateway with its
// own issuer in front of an upstream that does what a row tells it, everything over real HTTP.

import { type GatewayUnderTest, type RunningGateway, settleListings } from '../support/gateway.js';
import { type HostileUpstream, type Order, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  type Access,
  callStateless,
  type OpenSession,
  openSession,
  type Reply,
  requestStateless,
} from '../support/wire-client.js';
import { untilTestEnds, withGateway } from '../support/with-gateway.js';

/** The pages of the table, in the order in which they are printed. */
export const AREAS = ['servers', 'clients', 'messages', 'schemas', 'content', 'definitions'] as const;

export type Area = (typeof AREAS)[number];

/** What becomes of it: passed as it is, repaired without a loss, changed for a reason, or refused. */
export type Verdict = 'accepts' | 'mends' | 'changes' | 'refuses';

export type CompatRow = {
  /** Unique, in kebab-case. */
  readonly id: string;
  readonly area: Area;
  /** The public report, the standard, or the page of ours that the row is about. */
  readonly source: string;
  /** What the server, client, schema or message does: one sentence. */
  readonly given: string;
  readonly verdict: Verdict;
  /** What the peer sees, and why: one sentence. */
  readonly sees: string;
  /** Proves it. */
  readonly run: () => Promise<void> | void;
};

const UPSTREAM = 'u';

export type World = {
  readonly gateway: RunningGateway;
  readonly upstream: HostileUpstream;
  readonly access: Access;
  openSession(): Promise<OpenSession>;
  /** A request of the stateless era. */
  request(method: string, params?: JsonObject): Promise<Reply>;
  /** A `tools/call` of the stateless era. */
  call(name: string, args?: JsonObject): Promise<Reply>;
};

export type WorldOptions = Partial<Omit<GatewayUnderTest, 'upstreams'>> & {
  /** What the upstream offers in `tools/list`, in place of its two tools. */
  readonly tools?: readonly JsonObject[];
  /** How the upstream behaves from its first request on. */
  readonly order?: Order;
  /** What `tools/call` returns. */
  readonly result?: (name: string, args: JsonObject) => JsonObject | undefined;
  /** YAML members of the upstream, in flow style. Default: `pinning: {mode: off}`. */
  readonly upstream?: readonly string[];
};

/** Starts a gateway in front of a scripted upstream, runs the test, and ends both whatever happens. */
export async function withWorld(
  { tools, order, result, upstream: members = ['pinning: {mode: "off"}'], ...rest }: WorldOptions,
  test: (world: World) => Promise<void>,
): Promise<void> {
  const upstream = await untilTestEnds(startHostileUpstream());
  if (tools !== undefined) upstream.offer(() => tools);
  if (order !== undefined) upstream.obey(order);
  if (result !== undefined) upstream.answerCalls(result);
  const isPinned = !members.some((member) => /mode: ["']?off/.test(member));
  await withGateway(
    {
      pin: isPinned,
      ...rest,
      upstreams: [{ name: UPSTREAM, url: upstream.url, more: members }],
    },
    async (gateway) => {
      if (isPinned) await settleListings(gateway, [upstream]);
      upstream.forget();
      const access = { url: gateway.url(UPSTREAM), token: await gateway.token(UPSTREAM) };
      await test({
        gateway,
        upstream,
        access,
        openSession: () => openSession(access),
        request: (method, params = {}) => requestStateless(access, method, params),
        call: (name, args = {}) => callStateless(access, name, args),
      });
    },
  );
}
