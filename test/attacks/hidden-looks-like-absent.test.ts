// Case 56: what is hidden, drifted, blocked or denied looks, to the byte, like what does not exist.

import { beforeAll, describe, expect, it } from 'vitest';
import { decisionOf, expectRefusedLines } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, type OpenSession, type Reply, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const NAMES = ['do_plain', 'do_hidden', 'do_denied', 'do_drifted', 'do_unpinned', 'do_scoped'];
const TOOLS: readonly JsonObject[] = NAMES.map((name) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
}));
const POLICIES = {
  some: `version: 1
policy: some
rules:
  - id: some
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [do_plain, do_denied, do_drifted], resources: ["memo://open/**"]}
  - id: scoped
    effect: allow
    who: {issuers: [test], groups: [staff]}
    what: {upstreams: [target], tools: [do_scoped, do_hidden]}
    scopes: [admin]
  - id: never
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: [do_denied]}
`,
};

describe('things that a caller may not know', () => {
  let session: OpenSession;
  const rig = sharedGateway({
    policies: POLICIES,
    prepare: (upstream) => upstream.offer(() => TOOLS.filter((tool) => tool['name'] !== 'do_unpinned')),
  });
  beforeAll(async () => {
    rig.upstream.offer(() => TOOLS.map((tool) => (tool['name'] === 'do_drifted' ? { ...tool, title: 'New' } : tool)));
    session = await rig.openSession();
    await requestStateless(rig.access, 'tools/list');
    rig.upstream.forget();
  });

  function shape(reply: Reply, name: string): unknown {
    const { id } = decisionOf(reply);
    const { date: _date, 'sallyport-decision': _id, ...headers } = Object.fromEntries(reply.headers);
    expect(reply.text).not.toContain(name);
    return { status: reply.status, headers, text: reply.text.replaceAll(id, 'ID') };
  }

  const CASES = [
    ['do_hidden', 'no-matching-allow'],
    ['do_scoped', 'no-matching-allow'],
    ['do_denied', 'denied-by-rule'],
    ['do_drifted', 'tool-changed'],
    ['do_unpinned', 'no-matching-allow'],
  ] as const;

  it.each(CASES)('[X-56] are unknown with any arguments: %s', async (name, reason) => {
    for (const args of [{ id: 'x' }, {}, { id: 1 }]) {
      const unknown = shape(await callStateless(rig.access, 'no_such_tool', args as never), 'no_such');
      const reply = await callStateless(rig.access, name, args as never);
      expect(shape(reply, name)).toEqual(unknown);
      await expectRefusedLines(rig, reply, reason);
      const inSession = await session.call(name, args as never);
      const unknownThere = await session.call('no_such_tool', args as never);
      expect(shape(inSession, name)).toEqual(shape(unknownThere, 'no_such'));
    }
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-56] are absent from lists, by name and by description', async () => {
    const listed = await requestStateless(rig.access, 'tools/list');
    expect(toolNames(listed)).toEqual(['do_plain']);
    for (const [name] of CASES) expect(listed.text).not.toContain(name);
    rig.upstream.forget();
  });

  it('[X-56] hold for prompts and resources, in the words of each era', async () => {
    for (const uri of ['memo://secret/one', 'file:///etc/passwd', 'memo://open/../secret']) {
      const reply = await requestStateless(rig.access, 'resources/read', { uri });
      const unknown = await requestStateless(rig.access, 'resources/read', { uri: 'x:none' });
      expect(shape(reply, uri)).toEqual(shape(unknown, 'x:none'));
      const inSession = await session.request('resources/read', { uri });
      expect(inSession.message).toMatchObject({ error: { code: -32002 } });
    }
    const prompt = await requestStateless(rig.access, 'prompts/get', { name: 'any' });
    expect(prompt.message).toMatchObject({ error: { code: -32602 } });
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-56] are counted like the unknown, with no name in the metrics', async () => {
    const text = await rig.gateway.metrics();
    for (const [name] of CASES) expect(text).not.toContain(`"${name}"`);
  });
});
