// Case 68: secrets and personal data in every carrier that a client reads, whole or cut in two. No byte
// of them reaches the client, and the record says what was found without holding it.

import { afterEach, describe, expect, it } from 'vitest';
import { jsonBody, onMethod, progressThenResult, resultFor, stream, textResult } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { makeAwsKey, makeCard, makeGithubToken, makeSsn } from '../support/secrets.js';
import { callStateless, errorOf, type Reply, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const SECRETS: readonly (readonly [string, () => string])[] = [
  ['a GitHub token', makeGithubToken],
  ['an AWS key', makeAwsKey],
  ['a card', makeCard],
  ['a social security number', makeSsn],
];

const CARRIERS: readonly (readonly [string, (secret: string) => JsonObject])[] = [
  ['a text block', (secret) => textResult(`Here: ${secret}.`)],
  ['two text blocks', (secret) => ({ content: halves(secret).map((text) => ({ type: 'text', text })) })],
  [
    'two text blocks with a resource between',
    (secret) => {
      const [one = '', other = ''] = halves(secret);
      const link = { type: 'resource_link', uri: 'memo://one', name: 'one' };
      return { content: [{ type: 'text', text: one }, link, { type: 'text', text: other }] };
    },
  ],
  ['a key of structured content', (secret) => structured({ [secret]: true })],
  ['a value of structured content', (secret) => structured({ deep: [{ note: secret }] })],
  ['an embedded resource', (secret) => embedded({ text: secret })],
  ['a blob of text', (secret) => embedded({ blob: btoa(`see ${secret}`), mimeType: 'text/plain' })],
  ['the URI of an embedded resource', (secret) => embedded({ text: 'x', uri: `memo://${secret}` })],
  [
    'a resource link',
    (secret) => ({
      content: [{ type: 'resource_link', uri: 'memo://x', name: secret, description: secret }],
    }),
  ],
  ['_meta', (secret) => ({ ...textResult('x'), _meta: { 'example.com/note': secret } })],
  ['an error result', (secret) => ({ ...textResult(`failed: ${secret}`), isError: true })],
  ['JSON within a text', (secret) => textResult(JSON.stringify({ note: secret }))],
  ['a member that is not defined', (secret) => ({ ...textResult('x'), note: secret })],
  ['one within another', (secret) => ({ ...textResult('x'), foo: { bar: [{ baz: secret }] } })],
  ['a list of texts that is not defined', (secret) => ({ ...textResult('x'), foo: halves(secret) })],
  ['the name of a member that is not defined', (secret) => ({ ...textResult('x'), [secret]: 1 })],
  ['an unknown block', (secret) => ({ content: [{ type: 'text', text: 'x', extra: secret }] })],
];

function halves(text: string): readonly string[] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

function structured(value: JsonObject): JsonObject {
  return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value };
}

function embedded(resource: JsonObject): JsonObject {
  return { content: [{ type: 'resource', resource: { uri: 'memo://one', ...resource } }] };
}

describe('a secret on its way to a client', () => {
  const rig = sharedGateway();
  afterEach(() => rig.upstream.repent());

  function expectNoSecret(reply: Reply, secret: string): void {
    const spoken = reply.text.replaceAll(/\\u([0-9a-f]{4})/gi, (_all, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    for (const text of [reply.text, spoken]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(btoa(`see ${secret}`));
    }
    // Joined as a reader joins it: text blocks one after the other.
    const content = (reply.message?.['result'] as JsonObject | undefined)?.['content'];
    const joined = Array.isArray(content) ? content.map((block: JsonObject) => block['text'] ?? '').join('') : '';
    expect(joined).not.toContain(secret);
    const foo = (reply.message?.['result'] as JsonObject | undefined)?.['foo'];
    if (Array.isArray(foo)) expect(foo.join('')).not.toContain(secret);
  }

  for (const [carrier, resultOfSecret] of CARRIERS) {
    it.each(SECRETS)(`[X-68] is not shown in ${carrier}: %s`, async (_name, make) => {
      const secret = make();
      rig.upstream.obey(onMethod('tools/call', (request) => jsonBody(resultFor(request, resultOfSecret(secret)))));
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.status).toBe(200);
      expectNoSecret(reply, secret);
      const log = rig.gateway.log();
      expect(log).not.toContain(secret);
      expect(JSON.stringify(await rig.gateway.audit())).not.toContain(secret);
    });
  }

  it.each(SECRETS)('[X-68] is not shown in an error and its data: %s', async (_name, make) => {
    const secret = make();
    rig.upstream.obey(
      onMethod('tools/call', (request) => {
        const error = { code: -32000, message: `no: ${secret}`, data: { [secret]: [secret] } };
        return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error });
      }),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expectNoSecret(reply, secret);
    expect(errorOf(reply)).not.toEqual({});
  });

  it.each(SECRETS)('[X-68, MCP-60] is not shown in progress and its answer: %s', async (_name, make) => {
    const secret = make();
    rig.upstream.obey(onMethod('tools/call', (request) => progressThenResult(request, [`at ${secret}`, 'half'])));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, { progressToken: 1 });
    expect(reply.messages).toHaveLength(3);
    expectNoSecret(reply, secret);
  });

  it.each(SECRETS)('[X-68] is not shown in a log message: %s', async (_name, make) => {
    const secret = make();
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        stream([
          {
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'info', logger: secret, data: { written: [secret], [secret]: 1 } },
          },
          resultFor(request, textResult('done')),
        ]),
      ),
    );
    const meta = { 'io.modelcontextprotocol/logLevel': 'debug' };
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, meta);
    expect(reply.message).toHaveProperty('result');
    expectNoSecret(reply, secret);
  });

  it.each(SECRETS)('[X-68] is not shown in a resource: %s', async (_name, make) => {
    const secret = make();
    rig.upstream.obey(
      onMethod('resources/read', (request) =>
        jsonBody(
          resultFor(request, {
            contents: [{ uri: 'memo://one', text: `One: ${secret}` }],
            ttlMs: 0,
          }),
        ),
      ),
    );
    const reply = await requestStateless(rig.access, 'resources/read', { uri: 'memo://one' });
    expect(reply.message).toHaveProperty('result');
    expectNoSecret(reply, secret);
  });

  it('[X-68] leaves a placeholder and the rest of the result', async () => {
    const secret = makeGithubToken();
    rig.upstream.obey(
      onMethod('tools/call', (request) => jsonBody(resultFor(request, textResult(`before ${secret} after`)))),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).toMatch(/before \[redacted:[a-z-]+#[a-z2-7]{4}\] after/);
    expect(reply.text).toContain('dev.sallyport/findings');
    const found = async () =>
      (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome')?.['findings'];
    await expect.poll(async () => (await found())?.length).toBeGreaterThan(0);
    expect((await found())[0]).toMatchObject({ direction: 'to-client', action: 'redact' });
    expect(await rig.gateway.metrics()).toMatch(
      /sallyport_findings_total\{upstream="target",direction="to-client",detector="[^"]+",action="redact"\} [1-9]/,
    );
  });

  it('[X-68] does not leave in arguments either', async () => {
    rig.upstream.forget();
    const secret = makeGithubToken();
    const reply = await callStateless(rig.access, 'read_record', { id: `use ${secret}` });
    expect(reply.message?.['result']).toMatchObject({ isError: true });
    expect(reply.text).not.toContain(secret);
    expect(rig.upstream.uses()).toEqual([]);
    expect(HONEST_TOOLS.length).toBeGreaterThan(0);
  });
});
