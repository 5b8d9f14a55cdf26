// Spellings of the name of a tool or prompt that is denied or blocked, at an upstream without pins: no list of ours says
// which names there are, and a lenient server takes another spelling for the same. Other names pass as they are.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { connectIn, type EraCaller } from '../support/eras.js';
import { UPSTREAM } from '../support/gateway.js';
import { PATIENT } from '../support/timing.js';
import { toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: some
rules:
  - id: everything
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], prompts: ["*"]}
  - id: no-wiping
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [wipe_db, "Drop_*"], prompts: [wipe_db]}
sensitive: {${UPSTREAM}/fetch_page: [/structuredContent/code]}
`;
const RESTRICTED = ['wipe_db', 'drop_all', 'held'];
const RESPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toUpperCase(),
  (name) => name.replace(/^./, (letter) => letter.toUpperCase()),
  (name) => `${name} `,
  (name) => `\t${name}`,
  (name) => `${name}\n`,
  (name) => `${name}\u00a0`,
  (name) => `${name}\u0000`,
  (name) => `${name.slice(0, 2)}\u200b${name.slice(2)}`,
  (name) => `\ufeff${name}`,
  (name) => name.replace('l', '\uff4c').replace('w', '\uff37'),
  (name) => name.replace('d', '\u{1d41d}'),
];
const spellingsOf = (names: readonly string[]): readonly string[] =>
  names.flatMap((name) => RESPELLINGS.map((respell) => respell(name)));
const SPELLINGS = spellingsOf(RESTRICTED);
const CODE = 'C-77-4711';
const OTHERS = ['wipe_db2', 'wipe', 'Get_Item', 'get item', 'suche（neu）', 'drop', '\u2699\ufe0f run'];
const READ = spellingsOf(['fetch_page']);

describe.each(['sessions', 'stateless'] as const)('a tool in the %s era', (era) => {
  let caller: EraCaller;

  const rig = sharedGateway({
    era: era,
    policies: { some: POLICY },
    more: ADMINS,
    upstream: ['pinning: {mode: off}'],
    pin: false,
    prepare: (server) =>
      server.offer(() =>
        [...SPELLINGS, ...OTHERS, ...READ].map((name) => ({
          name,
          inputSchema: { type: 'object' },
        })),
      ),
  });
  beforeAll(async () => {
    for (const target of ['tool', 'prompt']) {
      const block = { target, upstream: UPSTREAM, name: 'held' };
      // A busy machine may not have the keys of administrators at once, which is 503.
      const revoke = async (): Promise<void> =>
        expect((await adminsOf(rig.gateway).revoke({ block })).status).toBe(201);
      await vi.waitFor(revoke, PATIENT);
    }
    caller = await connectIn(era, rig.access);
  });
  afterAll(async () => {
    caller.leave();
  });

  it('is called under none of its spellings, and others are', async () => {
    rig.upstream.forget();
    for (const name of [...SPELLINGS, ...OTHERS]) await caller.request('tools/call', { name, arguments: {} });
    expect(rig.upstream.uses().map(({ name }) => name)).toEqual(OTHERS);
  });

  it('keeps its sensitive fields to itself under each of its spellings', async () => {
    rig.upstream.answerCalls(() => ({ content: [], structuredContent: { code: CODE } }));
    const listed = toolNames(await caller.request('tools/list'));
    const read = listed.filter((name) => READ.includes(String(name)));
    expect(read.length).toBeGreaterThan(3);
    for (const name of read) {
      const answer = JSON.stringify(await caller.request('tools/call', { name, arguments: {} }));
      expect([name, answer]).toEqual([name, expect.stringContaining('[redacted:sensitive')]);
      expect(answer).not.toContain(CODE);
    }
    const other = await caller.request('tools/call', { name: 'wipe', arguments: {} });
    expect(JSON.stringify(other)).toContain(CODE);
  });

  it('is listed under none of its spellings', async () => {
    const listed = toolNames(await caller.request('tools/list'));
    expect(listed.filter((name) => !READ.includes(String(name)))).toEqual(OTHERS);
  });

  it('as a prompt is got under none of its spellings', async () => {
    rig.upstream.forget();
    for (const name of spellingsOf(['wipe_db', 'held'])) await caller.request('prompts/get', { name });
    expect(rig.upstream.uses()).toEqual([]);
  });
});
