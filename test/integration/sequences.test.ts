// Rules over time as properties: generated sequences of calls under labels and flows, and of blocks that are made and
// lifted, compared with a small model of each. docs/reference/flows.md; docs/reference/state.md.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  ADMINS,
  type Admins,
  adminsOf,
  ENDPOINT,
  LONG_ANSWERS,
  openAt,
  startMergedRig,
  streamOf,
} from '../support/deployments.js';
import { connectIn, type EraCaller } from '../support/eras.js';
import { decisionOf } from '../support/gateway.js';
import { paramsOf } from '../support/hostile-upstream.js';
import {
  type Access,
  bearer,
  errorOf,
  type Listening,
  listenOn,
  type Reply,
  requestStateless,
  resultOf,
  statelessParts,
} from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

/** Every run tries the same sequences; a failure names its own. */
const SEED = 20_261_123;
/** Hundreds of requests on a busy machine. */
const TIMEOUT_MS = 120_000;

const UPSTREAMS = ['left', 'right'] as const;
const TOOLS = ['read_record', 'write_record'] as const;
type Upstream = (typeof UPSTREAMS)[number];
type Called = { readonly upstream: Upstream; readonly tool: (typeof TOOLS)[number] };
const PREFIX = { left: 'l_', right: 'right_' };
type Claims = Readonly<Record<string, unknown>>;

const ALL = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
`;

let admins: Admins;
/** How far the clock of the gateway is ahead of that of its administrators, whose tokens then count no more. */
let aheadMs = 0;

const rig = shared(() =>
  startMergedRig({
    policies: { open: ALL },
    more: ADMINS,
    upstream: ['pinning: {maxAge: 1h}'],
    now: () => Date.now() + aheadMs,
  }),
);
beforeAll(async () => {
  admins = adminsOf(rig.gateway);
});

async function accessTo(name: string, claims: Claims): Promise<Access> {
  const iat = Math.floor((Date.now() + aheadMs) / 1000);
  const token = await rig.gateway.token(name, { ...claims, iat, exp: iat + 600 });
  return { url: rig.gateway.url(name), token };
}

function callIn(caller: Pick<EraCaller, 'request'>, { tool }: Called, prefix = ''): Promise<Reply> {
  const args = tool === 'read_record' ? { id: 'one' } : { id: 'one', text: 'two' };
  return caller.request('tools/call', { name: `${prefix}${tool}`, arguments: args });
}

function check<Values extends [unknown, ...unknown[]]>(
  numRuns: number,
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  predicate: (...values: Values) => Promise<void>,
): Promise<void> {
  const property = fc.asyncProperty<Values>(...arbitraries, predicate);
  return fc.assert(property, { seed: SEED, numRuns, endOnFailure: true });
}

const called: fc.Arbitrary<Called> = fc.record({
  upstream: fc.constantFrom(...UPSTREAMS),
  tool: fc.constantFrom(...TOOLS),
});

describe('blocks', () => {
  type Block =
    | { readonly target: 'everything' }
    | { readonly target: 'upstream'; readonly upstream: Upstream }
    | { readonly target: 'tool'; readonly upstream: Upstream; readonly name: string }
    | { readonly target: 'subject'; readonly issuer: 'test'; readonly subject: string }
    | { readonly target: 'client'; readonly issuer: 'test'; readonly client: string };
  type By = { readonly sub: string; readonly client_id: string };

  const CALLERS: readonly By[] = [
    { sub: 'ada', client_id: 'editor' },
    { sub: 'ada', client_id: 'desk' },
    { sub: 'bob', client_id: 'editor' },
  ];
  const block: fc.Arbitrary<Block> = fc.constantFrom<Block>(
    { target: 'everything' },
    ...UPSTREAMS.map((upstream) => ({ target: 'upstream', upstream }) as const),
    ...UPSTREAMS.flatMap((upstream) => TOOLS.map((name) => ({ target: 'tool', upstream, name }) as const)),
    ...['ada', 'bob'].map((subject) => ({ target: 'subject', issuer: 'test', subject }) as const),
    ...['editor', 'desk'].map((client) => ({ target: 'client', issuer: 'test', client }) as const),
  );
  /** Makes a block, or lifts the one that was made at this place. */
  const steps = fc.array(fc.record({ block, lifts: fc.boolean(), place: fc.nat({ max: 9 }) }), {
    ...{ minLength: 10, maxLength: 10 },
  });

  /** What the blocks say of a caller at an upstream, apart from single tools. */
  function isShut(blocks: readonly Block[], by: By, upstream: Upstream): boolean {
    return blocks.some((one) => {
      if (one.target === 'everything') return true;
      if (one.target === 'upstream') return one.upstream === upstream;
      if (one.target === 'subject') return one.subject === by.sub;
      return one.target === 'client' && one.client === by.client_id;
    });
  }
  function isHidden(blocks: readonly Block[], { upstream, tool }: Called): boolean {
    return blocks.some((one) => one.target === 'tool' && one.upstream === upstream && one.name === tool);
  }

  function outcomeOf(reply: Reply): string {
    if (reply.status === 403) return reply.text.includes('"blocked"') ? 'blocked' : reply.text;
    if (errorOf(reply)['code'] === -32602) return 'hidden';
    return resultOf(reply)['content'] === undefined ? reply.text : 'answered';
  }

  /** A stream that a caller holds open at an upstream; that of a call is one of its tool. */
  type Held = {
    readonly by: By;
    readonly upstream: Upstream;
    readonly tool?: Called['tool'];
    readonly stream: Listening;
  };
  const OPENERS: readonly ((by: By, upstream: Upstream) => Promise<Held>)[] = [
    async (by, upstream) => {
      const params = { notifications: { toolsListChanged: true } };
      return { by, upstream, stream: await open(by, upstream, 'subscriptions/listen', params) };
    },
    async (by, upstream) => {
      const params = {
        name: 'read_record',
        arguments: { id: 'long' },
        _meta: { progressToken: 1 },
      };
      const stream = await open(by, upstream, 'tools/call', params);
      return { by, upstream, tool: 'read_record', stream };
    },
    async (by, upstream) => {
      const access = await accessTo(upstream, by);
      return { by, upstream, stream: await streamOf(access, await openAt(access)) };
    },
    async (by, upstream) => {
      const { url, token } = await accessTo(upstream, by);
      const headers = { ...bearer(token), accept: 'text/event-stream' };
      return { by, upstream, stream: await listenOn(await fetch(`${url}/sse`, { headers })) };
    },
  ];

  async function open(by: By, upstream: Upstream, method: string, params: object) {
    const { url, token } = await accessTo(upstream, by);
    const { headers, body } = statelessParts(method, params as never);
    const accept = 'application/json, text/event-stream';
    return listenOn(
      await fetch(url, {
        method: 'POST',
        headers: { accept, 'content-type': 'application/json', ...bearer(token), ...headers },
        body: JSON.stringify(body),
      }),
    );
  }

  async function lift(id: string): Promise<void> {
    const token = await admins.token('platform');
    expect((await admins.ask('DELETE', `/api/revocations/${id}`, { token })).status).toBe(204);
  }

  it(
    '[REV-60, REV-61, REV-62] refuse and end what they name while they last, and nothing else',
    async () => {
      for (const upstream of [rig.left, rig.right])
        upstream.obey((request) => {
          const args = paramsOf(request)['arguments'] as { id?: string } | undefined;
          return args?.id === 'long' ? LONG_ANSWERS(request) : undefined;
        });
      const sessions = new Map<By, Map<Upstream, EraCaller>>();
      for (const by of CALLERS) {
        const own = new Map<Upstream, EraCaller>();
        for (const upstream of UPSTREAMS) own.set(upstream, await connectIn('sessions', await accessTo(upstream, by)));
        sessions.set(by, own);
      }
      let ended = 0;

      await check(3, [steps], async (sequence) => {
        const inForce = new Map<string, Block>();
        let held: Held[] = [];
        for (const [index, { block: next, lifts, place }] of sequence.entries()) {
          const about = (what: object): string => `step ${index}: ${JSON.stringify(what)}`;
          // What ended is opened again where the blocks let it be, in all ways by turns.
          for (const [number, by] of CALLERS.entries())
            for (const upstream of UPSTREAMS) {
              const isOpen = held.some((one) => one.by === by && one.upstream === upstream);
              const opener = OPENERS[(index + number) % OPENERS.length];
              const blocks = [...inForce.values()];
              if (isOpen || opener === undefined || isShut(blocks, by, upstream)) continue;
              if (isHidden(blocks, { upstream, tool: 'read_record' })) continue;
              held.push(await opener(by, upstream));
            }
          const old = [...inForce.keys()][place % inForce.size];
          if (lifts && old !== undefined) {
            await lift(old);
            inForce.delete(old);
          } else {
            const made = await admins.revoke({ block: next });
            expect(made.status).toBe(201);
            inForce.set(made.body.revocation.id, next);
          }
          const blocks = [...inForce.values()];
          const mustEnd = ({ by, upstream, tool }: Held): boolean =>
            isShut(blocks, by, upstream) || (tool !== undefined && isHidden(blocks, { upstream, tool }));
          for (const one of held.filter(mustEnd)) {
            await expect
              .poll(() => one.stream.isOver(), { timeout: 2_000, interval: 5, message: about(one) })
              .toBe(true);
            ended += 1;
          }
          held = held.filter((one) => !mustEnd(one));
          for (const { stream, ...one } of held) expect(stream.isOver(), about(one)).toBe(false);
          for (const by of CALLERS)
            for (const upstream of UPSTREAMS)
              for (const tool of TOOLS) {
                const what = { by, upstream, tool, blocks };
                const at = { upstream, tool };
                const expected = isShut(blocks, by, upstream)
                  ? 'blocked'
                  : isHidden(blocks, at)
                    ? 'hidden'
                    : 'answered';
                const own = sessions.get(by)?.get(upstream);
                const access = await accessTo(ENDPOINT, by);
                const merged = {
                  request: (method: string, params = {}) => requestStateless(access, method, params),
                };
                expect(own && outcomeOf(await callIn(own, at)), about(what)).toBe(expected);
                const there = await callIn(merged, at, PREFIX[upstream]);
                expect(outcomeOf(there), about(what)).toBe(expected);
              }
        }
        for (const { stream } of held) stream.leave();
        for (const id of inForce.keys()) await lift(id);
      });
      expect(ended).toBeGreaterThan(10);
    },
    TIMEOUT_MS,
  );
});

describe('flows', () => {
  type Labels = { readonly [target: string]: readonly string[] };
  type Flow = { readonly from: readonly string[]; readonly within: number };
  /** Who calls, through which actor; `agent` also calls for itself. */
  type By = { readonly sub: string; readonly act?: string };
  const PATHS = ['stateless', 'sessions', 'channels', 'at the endpoint'] as const;
  type Step =
    | { readonly kind: 'wait'; readonly seconds: number }
    | { readonly kind: 'call'; readonly by: By; readonly at: Called; readonly path: string };

  const some = fc.subarray(['trusted', 'untrusted', 'sensitive', 'egress'], { minLength: 1 });
  // Each label has a target, or a flow that names it would be a mistake.
  const labels: fc.Arbitrary<Labels> = fc
    .record(
      { left: some, right: some, 'left/read_*': some, 'right/*': some, 'right/read_record': some },
      { requiredKeys: [] },
    )
    .map((more) => ({
      ...more,
      'left/write_record': ['egress'],
      'right/write_record': ['sensitive', 'trusted'],
    }));
  const flow: fc.Arbitrary<Flow> = fc.record({
    // Both labels where one of them is not enough, more often than not.
    from: fc.constantFrom(
      ...[['untrusted'], ['sensitive']],
      ...Array.from({ length: 3 }, () => ['untrusted', 'sensitive']),
    ),
    within: fc.constantFrom(100, 300),
  });
  const flows: fc.Arbitrary<readonly Flow[]> = fc.oneof(
    { weight: 3, arbitrary: fc.tuple(flow) },
    { weight: 1, arbitrary: fc.tuple(flow, flow) },
  );
  // Waits of 40 seconds keep every age apart from the ends of the flows, however slow the machine is.
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 1,
      arbitrary: fc.constantFrom(40, 120).map((seconds) => ({ kind: 'wait', seconds })),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('call'),
        by: fc.constantFrom<By>(
          ...[{ sub: 'ada' }, { sub: 'ada' }, { sub: 'bob' }, { sub: 'agent' }],
          ...[
            { sub: 'ada', act: 'agent' },
            { sub: 'bob', act: 'agent' },
          ],
        ),
        at: called,
        path: fc.constantFrom(...PATHS),
      }),
    },
  ) as fc.Arbitrary<Step>;

  function labelsOf(given: Labels, { upstream, tool }: Called): ReadonlySet<string> {
    const found = new Set<string>();
    for (const [target, own] of Object.entries(given)) {
      const [at, pattern = '*'] = target.split('/');
      const glob = new RegExp(`^${pattern.replaceAll('*', '.*')}$`);
      if (at === upstream && glob.test(tool)) for (const label of own) found.add(label);
    }
    if (!found.has('trusted')) found.add('untrusted');
    return found;
  }

  /** Whose history a result goes into, and whose counts for a request. */
  const written = ({ sub, act }: By) => [`own ${sub}`, ...(act ? [`for others ${act}`] : [])];
  const read = ({ sub, act }: By) => [...[`own ${sub}`, `for others ${sub}`], ...(act ? [`own ${act}`] : [])];

  let run = 0;
  let refused = 0;
  let answered = 0;

  it(
    '[FL-01, FL-02, FL-03, FL-04] refuse what the history of its caller forbids, and nothing else',
    async () => {
      await check(
        10,
        [labels, flows, fc.array(step, { minLength: 25, maxLength: 25 })],
        async (given, rules, steps) => {
          run += 1;
          const list = rules.map(({ from, within }, index) => ({
            ...{ id: `f${index}`, from, to: 'egress', within: `${within}s`, effect: 'deny' },
          }));
          const policy = `${ALL}labels: ${JSON.stringify(given)}\nflows: ${JSON.stringify(list)}\n`;
          await rig.gateway.writePolicy('open', policy);
          const errors = (await rig.gateway.reload()).filter(({ severity }) => severity === 'error');
          expect(errors).toEqual([]);
          /** The time of the newest result, by history and label, in seconds. */
          const newest = new Map<string, number>();
          /** By the decision of a refusal, the flows that may have refused. */
          const refusals = new Map<string, readonly string[]>();
          let now = 0;
          for (const [index, one] of steps.entries()) {
            if (one.kind === 'wait') {
              now += one.seconds;
              aheadMs += one.seconds * 1000;
              continue;
            }
            const { by, at, path } = one;
            const about = `step ${index}: ${JSON.stringify(one)}`;
            const own = labelsOf(given, at);
            const ageOf = (label: string): number =>
              now - Math.max(...read(by).map((history) => newest.get(`${history} ${label}`) ?? -1e9));
            const violated = rules.filter(
              ({ from, within }) => own.has('egress') && from.every((label) => ageOf(label) < within),
            );
            const reply = await callOn(path, by, at);
            if (violated.length > 0) {
              refused += 1;
              const { id, reason } = decisionOf(reply);
              expect(reason, about).toBe('tainted-flow');
              refusals.set(
                id,
                violated.map((flow) => `f${rules.indexOf(flow)}`),
              );
              continue;
            }
            answered += 1;
            expect(resultOf(reply)['_meta'] ?? {}, about).not.toHaveProperty('dev.sallyport/decision');
            expect(reply.text, about).toContain(`${at.tool} one`);
            for (const history of written(by)) for (const label of own) newest.set(`${history} ${label}`, now);
          }
          await expectRecorded(refusals);
        },
      );
      expect(Math.min(refused, answered)).toBeGreaterThan(10);
    },
    TIMEOUT_MS,
  );

  /** The record of each names the flow, and decisions that delivered something. */
  async function expectRecorded(refusals: ReadonlyMap<string, readonly string[]>): Promise<void> {
    const find = async () => {
      const lines = (await rig.gateway.audit()).filter(({ type }) => type === 'mcp.decision');
      return new Map(lines.map(({ decision }) => [decision.id, decision]));
    };
    await expect
      .poll(async () => {
        const found = await find();
        return [...refusals.keys()].filter((id) => !found.has(id));
      })
      .toEqual([]);
    const decisions = await find();
    for (const [id, flows] of refusals) {
      const { rule, causes, reasons } = decisions.get(id);
      expect(reasons).toEqual(['tainted-flow']);
      expect(flows).toContain(rule);
      expect(causes.length).toBeGreaterThan(0);
      for (const cause of causes) expect(decisions.get(cause)).toMatchObject({ verdict: 'allow' });
    }
  }

  /** Subjects of their own in each run, since histories outlive it. */
  async function callOn(path: string, { sub, act }: By, at: Called): Promise<Reply> {
    const unique = (name: string): string => `${name} ${run}`;
    const claims = { sub: unique(sub), ...(act && { act: { sub: unique(act) } }) };
    if (path === 'at the endpoint') {
      const access = await accessTo(ENDPOINT, claims);
      const caller: Pick<EraCaller, 'request'> = {
        request: (method, params) => requestStateless(access, method, params),
      };
      return callIn(caller, at, PREFIX[at.upstream]);
    }
    const caller = await connectIn(path as 'stateless', await accessTo(at.upstream, claims));
    const reply = await callIn(caller, at);
    caller.leave();
    return reply;
  }
});
