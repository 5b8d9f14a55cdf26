// Results whose members only a case-insensitive client would find: nothing of them passes, whatever a
// client like that would have read in them.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectWithheldLines } from '../support/gateway.js';
import { jsonBody, onMethod, stream } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, type OpenSession, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const EVIL = 'evil_tool';
const TOOL = { name: EVIL, description: 'x', inputSchema: { type: 'object' } };

describe('a result with members in another case', () => {
  let session: OpenSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
  });
  afterEach(() => rig.upstream.repent());

  const answer = (request: HostileRequest, result: JsonObject): JsonObject => ({
    jsonrpc: '2.0',
    id: request.id ?? 0,
    result,
  });

  const RESULTS: readonly (readonly [string, JsonObject])[] = [
    ['a result that is a question', { ResultType: 'input_required', InputRequests: { a: EVIL } }],
    ['content', { Content: [{ type: 'text', text: EVIL }] }],
    ['structured content', { content: [], StructuredContent: { a: EVIL } }],
  ];

  it.each(RESULTS)('[K-02] is withheld without state: %s', async (_what, result) => {
    rig.upstream.obey(onMethod('tools/call', (request) => jsonBody(answer(request, result))));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(502);
    expect(reply.text).not.toContain(EVIL);
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });

  it.each(RESULTS)('[K-02] is withheld on the stream of a session: %s', async (_what, result) => {
    rig.upstream.obey(onMethod('tools/call', (request) => stream([answer(request, result)])));
    const reply = await session.call('read_record', { id: 'one' });
    expect(reply.text).not.toContain(EVIL);
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });

  it('[K-02] lists no tool that only another case would show', async () => {
    rig.upstream.obey(
      onMethod('tools/list', (request) =>
        jsonBody(answer(request, { resultType: 'complete', tools: [], TOOLS: [TOOL] })),
      ),
    );
    const doubled = await requestStateless(rig.access, 'tools/list');
    expect(doubled.text).not.toContain(EVIL);
    rig.upstream.obey(
      onMethod('tools/list', (request) => jsonBody(answer(request, { resultType: 'complete', Tools: [TOOL] }))),
    );
    const alone = await session.request('tools/list');
    expect(alone.message).toHaveProperty('error');
    expect(alone.text).not.toContain(EVIL);
  });
});
