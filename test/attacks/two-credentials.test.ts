// Case 4: two Authorization headers, or a header and a token in the query. None of them wins.

import { beforeAll, describe, expect, it } from 'vitest';
import { expectLoginLine, expectNothingForwarded } from '../support/gateway.js';
import { callStateless, hasCompleteResponse, rawPost, sendRaw, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a request with two credentials', () => {
  let other: string;
  const rig = sharedGateway();
  beforeAll(async () => {
    other = await rig.gateway.token('target', { sub: 'mallory' });
  });

  async function sendTwo(first: string, second: string): Promise<Headers> {
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
    });
    const text = JSON.stringify(body);
    const reply = await sendRaw(
      rig.port,
      [
        rawPost(
          rig.path,
          [
            `Host: 127.0.0.1:${rig.port}`,
            'Content-Type: application/json',
            `Content-Length: ${text.length}`,
            `Authorization: ${first}`,
            ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
            `authorization: ${second}`,
          ],
          text,
        ),
      ],
      hasCompleteResponse,
    );
    expect(reply.status).toBe(401);
    const lines = reply.text.split('\r\n\r\n', 1)[0]?.split('\r\n').slice(1) ?? [];
    return new Headers(
      lines.map((line): [string, string] => [
        line.slice(0, line.indexOf(':')),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
  }

  it.each([
    ['the same twice', () => [rig.access.token, rig.access.token]],
    ['two good ones', () => [rig.access.token, other]],
    ['a bad one first', () => ['x.y.z', rig.access.token]],
    ['a bad one last', () => [rig.access.token, 'x.y.z']],
  ])('[X-04] is a 401, never "first wins": %s', async (_name, tokens) => {
    const [first, second] = tokens();
    const headers = await sendTwo(`Bearer ${first}`, `Bearer ${second}`);
    expect(headers.get('www-authenticate')).toContain('error="invalid_token"');
    await expectLoginLine(rig, { headers }, 'token-malformed');
    expectNothingForwarded(rig);
  });

  it.each(['Basic YTpi', 'DPoP a.b.c'])('[X-04] is a 401 where one of them has another scheme: %s', async (other) => {
    const good = `Bearer ${rig.access.token}`;
    for (const [first, second] of [
      [other, good],
      [good, other],
    ] as const) {
      const headers = await sendTwo(first, second);
      await expectLoginLine(rig, { headers }, 'token-malformed');
    }
    expectNothingForwarded(rig);
  });

  it.each(['access_token', 'ACCESS_TOKEN', 'a=b&access_token'])(
    '[X-04] is a 401 for a header and ?%s=',
    async (name) => {
      const access = { ...rig.access, url: `${rig.access.url}?${name}=${other}` };
      const reply = await callStateless(access, 'read_record', { id: 'one' });
      expect(reply.status).toBe(401);
      expect(reply.text).not.toContain(other);
      await expectLoginLine(rig, reply, 'token-malformed');
      expectNothingForwarded(rig);
    },
  );

  it('[X-04] is a 401 for a token in the query alone', async () => {
    const url = `${rig.access.url}?access_token=${rig.access.token}`;
    const reply = await callStateless({ url, token: undefined }, 'read_record', { id: 'one' });
    expect(reply.status).toBe(401);
    expectNothingForwarded(rig);
  });
});
