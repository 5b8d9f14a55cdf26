// Case 68: what is hidden in base64: text that is not UTF-8, and text that says it is an image. A client that
// decodes it reads it, so it is read here.

import { afterEach, describe, expect, it } from 'vitest';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { makeGithubToken } from '../support/secrets.js';
import { callStateless, type Reply } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const IMAGE = '![x](https://collect.example/a.png?q=1)';
/** A picture of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

type Carrier = readonly [what: string, encoding: BufferEncoding, build: (data: string) => JsonObject];

const blob = (mimeType: string) => (data: string) => ({
  type: 'resource',
  resource: { uri: 'memo://one', mimeType, blob: data },
});
const media = (type: string, mimeType: string) => (data: string) => ({ type, mimeType, data });

const CARRIERS: readonly Carrier[] = [
  ['a blob in UTF-16', 'utf16le', blob('text/plain')],
  ['a blob in UTF-16 of no type', 'utf16le', blob('application/octet-stream')],
  ['a blob in Latin-1', 'latin1', blob('text/plain; charset=iso-8859-1')],
  ['a blob in Latin-1 that says it is a PDF', 'latin1', blob('application/pdf')],
  ['an image that is text', 'utf8', media('image', 'image/png')],
  ['an image in UTF-16', 'utf16le', media('image', 'image/jpeg')],
  ['sound in Latin-1', 'latin1', media('audio', 'audio/wav')],
];

describe('text in base64', () => {
  const rig = sharedGateway();
  afterEach(() => rig.upstream.repent());

  async function callFor(block: JsonObject): Promise<Reply> {
    rig.upstream.obey(onMethod('tools/call', (request) => jsonBody(resultFor(request, { content: [block] }))));
    return callStateless(rig.access, 'read_record', { id: 'one' });
  }

  it.each(CARRIERS)('[X-68] [X-69] is read in %s', async (_what, encoding, build) => {
    const secret = makeGithubToken();
    const data = Buffer.from(`é ${secret} ${IMAGE} ü`, encoding).toString('base64');
    const reply = await callFor(build(data));
    const [block] = contentOf(reply);
    const left = block?.resource?.blob ?? block?.data ?? '';
    const text = Buffer.from(left, 'base64').toString(encoding);
    expect(text).toMatch(/^é \[redacted:github-token#[a-z2-7]{4}\] .*ü$/);
    expect(text).toContain('!\\[x](https://collect.example');
    expect(JSON.stringify(await rig.gateway.audit())).not.toContain(secret);
  });

  it('[X-68] is withheld where it cannot be written as it was', async () => {
    const text = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
    const bytes = Buffer.concat([text, Buffer.from(` ${makeGithubToken()}`)]);
    const block = blob('text/plain; charset=shift_jis')(bytes.toString('base64'));
    const reply = await callFor(block);
    expect(reply.text).not.toContain('"blob"');
    expect(reply.text).toContain('result-content');
  });

  it('[X-68] is none in a picture, which passes byte for byte', async () => {
    for (const block of [
      media('image', 'image/png')(PIXEL),
      blob('image/png')(PIXEL),
      blob('application/octet-stream')(PIXEL),
    ]) {
      const reply = await callFor(block);
      expect(reply.message).toMatchObject({ result: { content: [block] } });
    }
  });
});

type Block = { readonly data?: string; readonly resource?: { readonly blob?: string } };

function contentOf(reply: Reply): readonly Block[] {
  const result = reply.message?.['result'] as { content?: readonly Block[] } | undefined;
  return result?.content ?? [];
}
