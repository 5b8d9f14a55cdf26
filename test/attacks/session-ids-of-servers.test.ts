// Case 81, session ids of servers: an id that means something to the gateway elsewhere is an id like any other.

import { describe, expect, it } from 'vitest';
import { sharedGateway } from '../support/with-gateway.js';

describe('a server that issues a session id of the gateway’s own', () => {
  const rig = sharedGateway();

  it.each([
    'sallyport:stateless-upstream',
    'sallyport:bridged-channel',
    '["gateway"]',
    '[["left","sealed"]]',
    '/message',
  ])('[X-81] is sent that very id: %s', async (id) => {
    rig.upstream.openNextSessionAs(id);
    const session = await rig.openSession();
    rig.upstream.forget();
    expect((await session.call('read_record', { id: 'one' })).status).toBe(200);
    expect(rig.upstream.uses().map(({ headers }) => headers['mcp-session-id'])).toEqual([id]);
  });
});
