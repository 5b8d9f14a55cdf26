// A running gateway in front of two hostile upstreams, and one caller who may call both: what belongs to the
// one must be unknown at the other.

import { type HostileUpstream, startHostileUpstream } from './hostile-upstream.js';
import { startTestGateway } from './start-gateway.js';
import type { Access } from './wire-client.js';

export type TwoUpstreams = {
  readonly one: Access;
  readonly two: Access;
  /** What the second upstream was asked. */
  seenByTwo(): ReturnType<HostileUpstream['seen']>;
  close(): Promise<void>;
};

/** Starts all three. `prepare` is called for each upstream before its pins are fetched. */
export async function startTwoUpstreams(
  prepare?: (upstream: HostileUpstream) => void,
): Promise<TwoUpstreams> {
  const [first, second] = [await startHostileUpstream(), await startHostileUpstream()];
  prepare?.(first);
  prepare?.(second);
  const gateway = await startTestGateway({
    upstreams: [
      { name: 'one', url: first.url },
      { name: 'two', url: second.url },
    ],
  });
  const accessTo = async (name: string): Promise<Access> => ({
    url: gateway.url(name),
    token: await gateway.token(name),
  });
  return {
    one: await accessTo('one'),
    two: await accessTo('two'),
    seenByTwo: () => second.seen(),
    async close() {
      await gateway.close();
      await first.close();
      await second.close();
    },
  };
}
