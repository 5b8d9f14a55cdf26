// Case 36: names that would break out of a header, a log line or a metric label.

import { describe, expect, it } from 'vitest';
import { expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { requestInSession, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const MARK = 'injected_by_a_name';
const NAMES = [
  ['a line end', `x\r\nx-${MARK}: 1`],
  ['NUL', `x\u0000${MARK}`],
  ['quotes', `x",upstream="${MARK}`],
  ['an escape', `x\u001b[2J${MARK}`],
  ['a line separator', `x\u2028${MARK}`],
  ['64 KiB', `${MARK}${'x'.repeat(64 * 1024)}`],
  ['an emoji', `🦊${MARK}`],
] as const;

const encoded = (name: string): string => `=?base64?${Buffer.from(name).toString('base64')}?=`.slice(0, 12_000);

describe('a name', () => {
  const rig = sharedGateway({
    prepare: (upstream) =>
      upstream.offer(() => [...HONEST_TOOLS, ...NAMES.map(([, name]) => ({ name, inputSchema: { type: 'object' } }))]),
  });

  it.each(NAMES)('[X-36] that no tool can have is refused without state: %s', async (_what, name) => {
    rig.upstream.forget();
    const reply = await requestStateless(
      rig.access,
      'tools/call',
      { name: `${name}?`, arguments: {} },
      { headers: { 'mcp-name': encoded(`${name}?`) } },
    );
    expect(reply.message === undefined || 'error' in reply.message).toBe(true);
    expect(JSON.stringify([...reply.headers]) + reply.text).not.toContain(MARK);
    expectNothingForwarded(rig);
  });

  it.each(NAMES)('[X-36] that no tool can have is refused in a session: %s', async (_what, name) => {
    const session = await rig.openSession();
    rig.upstream.forget();
    const params = { name: `${name}?`, arguments: {} };
    const reply = await requestInSession(rig.access, session.id, 'tools/call', params);
    expect(reply.text).not.toContain(MARK);
    // A name past every bound is looked up nowhere.
    const reason = name.length > 1024 ? 'no-matching-allow' : 'tool-unpinned';
    await expectRefusedLines(rig, reply, reason);
    expectNothingForwarded(rig);
  });

  it('[X-36] leaves one line a record, and no label, whoever offers it', async () => {
    expect(toolNames(await requestStateless(rig.access, 'tools/list')).length).toBeGreaterThan(1);
    expect(await rig.gateway.metrics()).not.toContain(MARK);
    for (const line of rig.gateway.log().split('\n').filter(Boolean)) expect(() => JSON.parse(line)).not.toThrow();
    for (const character of ['\u0000', '\u001b', '\u2028']) expect(rig.gateway.log()).not.toContain(character);
    expect((await rig.gateway.audit()).length).toBeGreaterThan(NAMES.length);
  });
});
