// Case 68: members of the protocol that look as if nobody need read them, as carriers of anything. Where a
// method does not define one, or it holds another value, it is text like all other.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { jsonBody, onMethod, stream, textResult } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { makeGithubToken } from '../support/secrets.js';
import { callStateless, type OpenSession, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const PICTURE = '<img src="https://collect.example/?q=1">';

describe('a member that is exempt somewhere', () => {
  let session: OpenSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
  });
  afterEach(() => rig.upstream.repent());

  function answer(method: string, result: JsonObject): void {
    rig.upstream.obey(onMethod(method, ({ id = 0 }) => jsonBody({ jsonrpc: '2.0', id, result })));
  }

  it.each(['nextCursor', 'protocolVersion', 'cacheScope', 'resultType'])(
    '[X-68] carries nothing in the result of a call: %s',
    async (member) => {
      for (const load of [makeGithubToken(), PICTURE]) {
        answer('tools/call', { ...textResult('done'), [member]: load });
        const inSession = await session.call('read_record', { id: 'one' });
        expect(inSession.message).toHaveProperty('result.content');
        const alone = await callStateless(rig.access, 'read_record', { id: 'one' });
        for (const { text } of [inSession, alone]) {
          expect(text).not.toContain(JSON.stringify(load).slice(1, -1));
        }
      }
    },
  );

  it.each(['level', 'progressToken', 'requestId'])('[X-68] carries nothing in a log message: %s', async (member) => {
    for (const load of [makeGithubToken(), PICTURE]) {
      const params = { level: 'info', data: 'told', [member]: load };
      rig.upstream.obey(
        onMethod('tools/call', ({ id = 0 }) =>
          stream([
            { jsonrpc: '2.0', method: 'notifications/message', params },
            { jsonrpc: '2.0', id, result: textResult('done') },
          ]),
        ),
      );
      const reply = await session.call('read_record', { id: 'one' });
      expect(reply.messages).toHaveLength(2);
      expect(reply.text).not.toContain(JSON.stringify(load).slice(1, -1));
    }
  });

  it('[X-68] is a cursor of at most 4 KiB of printable ASCII, in a list', async () => {
    const cursor = `page ${makeGithubToken()}`;
    const list = { resources: [], ttlMs: 0, cacheScope: 'private', resultType: 'complete' };
    answer('resources/list', { ...list, nextCursor: cursor });
    const passed = await requestStateless(rig.access, 'resources/list');
    expect(passed.message).toHaveProperty('result.nextCursor', cursor);
    for (const nextCursor of [`${cursor}${' .'.repeat(2048)}`, `${cursor} \u2603`]) {
      answer('resources/list', { ...list, nextCursor });
      const cut = await requestStateless(rig.access, 'resources/list');
      expect(cut.message).toHaveProperty('result.resources');
      expect(cut.text).not.toContain(cursor);
    }
  });
});
