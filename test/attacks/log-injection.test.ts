// Cases 85, 88, 90 and 94: names that break logs, URIs that leave their rule, rules that contradict each
// other, and an end under load that loses no line.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readAudit } from '../support/audit-chain.js';
import { decisionOf, linesOf, startRig } from '../support/gateway.js';
import { callStateless, errorOf, initialize, post, requestStateless, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICIES = {
  some: `version: 1
policy: some
rules:
  - id: read
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: ["*_record"], resources: ["memo://open/**", "memo://one"]}
  - id: no-write
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: [write_record]}
    args: {id: {const: forbidden}}
`,
};

const NASTY = 'a"b\\c\r\nfake\u0000\u001b[31m\u2028\u2029\u0085 {"type":"mcp.outcome"}';

describe('names that want to be more than names', () => {
  const rig = sharedGateway({ policies: POLICIES });

  async function rawLines(): Promise<readonly string[]> {
    const text = await readAudit(join(rig.gateway.folder, 'audit.jsonl'));
    return text.split('\n').slice(0, -1);
  }

  it('[X-90] stand in the audit and the log on one line, escaped and cut', async () => {
    const token = await rig.gateway.token('target', { sub: `mallory ${'x'.repeat(50)}` });
    const access = rig.as(token);
    const clientInfo = { name: NASTY, version: NASTY };
    const meta = { 'io.modelcontextprotocol/clientInfo': clientInfo };
    const parts = statelessParts('tools/call', {
      name: NASTY,
      arguments: { [NASTY]: 1 },
      _meta: meta,
    });
    const name = `=?base64?${Buffer.from(NASTY).toString('base64')}?=`;
    await post(access, JSON.stringify(parts.body), { ...parts.headers, 'mcp-name': name });
    await callStateless(access, 'read_record', { id: 'x', [NASTY]: 'y' }, meta);
    await requestStateless(access, 'resources/read', { uri: `memo://${'u'.repeat(4000)}` });
    await initialize(access, { [NASTY]: {} });
    const reply = await requestStateless(access, 'x', {}, { id: NASTY });
    await linesOf(rig.gateway, decisionOf(reply).id, 2);
    for (const line of await rawLines()) {
      expect(() => JSON.parse(line)).not.toThrow();
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what may not stand in a line
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
      expect(line.length).toBeLessThan(8192);
    }
    for (const line of rig.gateway.log().split('\n').slice(0, -1)) {
      expect(() => JSON.parse(line)).not.toThrow();
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what may not stand in a line
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    }
    const text = (await rawLines()).join('\n');
    expect(text).not.toContain('u'.repeat(200));
    expect(await rig.gateway.metrics()).not.toContain('fake');
  });

  it.each([
    'file:///etc/passwd',
    'memo://open/../closed/one',
    'memo://open/%2e%2e/closed/one',
    'memo://open/..%2fclosed/one',
    'memo://user@open/one',
    'memo://open:1/one',
    'MEMO://closed/one',
    'memo:open/one',
    'memo:///open/one',
    'http://127.0.0.1/',
    'memo://one?x=1',
    'memo://one#x',
    'memo://öpen/one',
    '',
    'not a uri',
  ])('[X-85] a URI outside its rule is not read: %s', async (uri) => {
    rig.upstream.forget();
    const headers = /^[\x20-\x7e]*$/.test(uri)
      ? {}
      : { 'mcp-name': `=?base64?${Buffer.from(uri).toString('base64')}?=` };
    const reply = await requestStateless(rig.access, 'resources/read', { uri }, { headers });
    expect(errorOf(reply)['code']).toBeLessThan(0);
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-85] a URI within its rule leaves as it was checked, to the byte', async () => {
    rig.upstream.forget();
    await requestStateless(rig.access, 'resources/read', { uri: 'memo://open/a/b%20c' });
    expect(rig.upstream.uses()[0]?.name).toBe('memo://open/a/b%20c');
  });

  it('[X-88] a deny wins over an allow, in any order, and globs are anchored', async () => {
    rig.upstream.forget();
    const denied = await callStateless(rig.access, 'write_record', { id: 'forbidden', text: 'x' });
    expect(denied.message?.['result']).toMatchObject({ isError: true });
    expect(rig.upstream.uses()).toEqual([]);
    const other = await callStateless(rig.access, 'write_record', { id: 'fine', text: 'x' });
    expect(other.text).toContain('write_record fine');
    const [allow = '', deny = ''] = POLICIES.some.split('  - id: no-write');
    const [head = '', rule = ''] = allow.split('rules:\n');
    await rig.gateway.writePolicy('some', `${head}rules:\n  - id: no-write${deny}${rule}`);
    expect(await rig.gateway.reload()).toEqual([]);
    rig.upstream.forget();
    const again = await callStateless(rig.access, 'write_record', { id: 'forbidden', text: 'x' });
    expect(again.message?.['result']).toMatchObject({ isError: true });
    expect(rig.upstream.uses()).toEqual([]);
  });
});

describe('a gateway that ends under load', () => {
  it('[X-94] answers what it took, and loses no line', async () => {
    const rig = await startRig();
    const calls = Array.from({ length: 60 }, (_, i) =>
      callStateless(rig.access, 'read_record', { id: `r${i}` }).then(
        (reply) => (reply.status === 200 ? 'answered' : String(reply.status)),
        () => 'refused',
      ),
    );
    await expect.poll(() => rig.upstream.uses().length).toBeGreaterThan(5);
    const file = join(rig.gateway.folder, 'audit.jsonl');
    await rig.gateway.gateway.close();
    const outcomes = await Promise.all(calls);
    const lines = (await readAudit(file))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const answered = outcomes.filter((outcome) => outcome === 'answered').length;
    expect(answered).toBeGreaterThan(0);
    const of = (type: string) => lines.filter((line) => line.type === type && line.target.method === 'tools/call');
    expect(of('mcp.decision').length).toBe(rig.upstream.uses().length);
    expect(of('mcp.outcome').length).toBe(of('mcp.decision').length);
    expect(of('mcp.outcome').filter((line) => line.result.status === 'ok').length).toBe(answered);
    expect(lines.at(-1).type).toBe('checkpoint');
    await rig.gateway.issuer.close();
    await rig.upstream.close();
  });
});
