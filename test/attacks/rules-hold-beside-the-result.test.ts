// Case 68 beside the result: what a rule demands of a tool's result holds for its errors and for what it
// says on the way, and a notice that a list changed carries nothing of the upstream's own.

import { afterEach, describe, expect, it } from 'vitest';
import { expectWithheldLines } from '../support/gateway.js';
import { jsonBody, onMethod, progressThenResult, resultFor, stream, textResult } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const SSN = ['SSN 536', '22', '8745'].join('-');
const LIMIT_BYTES = 2048;

/** The upstream's own profile is off; only the rule asks for inspection. */
const PROFILES = `inspection:
  profiles:
    default: {request: {secrets: block}, result: {secrets: "off", pii: "off", activeContent: "off", invisible: "off", injection: "off"}}
    strict: {request: {secrets: block}, result: {secrets: redact, pii: redact, activeContent: neutralize, invisible: strip, injection: flag}}
`;
const POLICY = `version: 1
policy: strict
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: careful
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    inspect: strict
    maxResultBytes: 2KiB
`;

function errorAnswer(request: HostileRequest, error: JsonObject): ReturnType<typeof jsonBody> {
  return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error: { code: -32000, ...error } });
}

describe('what a rule demands of the answer', () => {
  const rig = sharedGateway({ policies: { strict: POLICY }, more: PROFILES });
  afterEach(() => rig.upstream.repent());

  const call = (meta: JsonObject = {}) => callStateless(rig.access, 'read_record', { id: 'one' }, meta);

  it('[X-68] holds for the message and the data of an error', async () => {
    rig.upstream.obey(onMethod('tools/call', (request) => errorAnswer(request, { message: SSN, data: { a: SSN } })));
    const reply = await call();
    expect(reply.message).toHaveProperty('error');
    expect(reply.text).not.toContain(SSN);
  });

  it('[X-68] holds for progress on the way', async () => {
    rig.upstream.obey(onMethod('tools/call', (request) => progressThenResult(request, [SSN])));
    const reply = await call({ progressToken: 1 });
    expect(reply.messages).toHaveLength(2);
    expect(reply.text).not.toContain(SSN);
  });

  it('[X-68] caps the bytes of an error, and of each message on the way', async () => {
    const long = 'b'.repeat(LIMIT_BYTES);
    rig.upstream.obey(onMethod('tools/call', (request) => errorAnswer(request, { message: long })));
    const reply = await call();
    expect(reply.text).not.toContain(long);
    await expectWithheldLines(rig, reply, 'result-too-large');
    rig.upstream.obey(onMethod('tools/call', (request) => progressThenResult(request, [long])));
    const streamed = await call({ progressToken: 1 });
    expect(streamed.messages).toHaveLength(1);
    expect(streamed.text).not.toContain(long);
  });
});

describe('a notice that a list changed', () => {
  const rig = sharedGateway();

  it('[X-68] is told in words of our own', async () => {
    const session = await rig.openSession();
    const method = 'notifications/tools/list_changed';
    const notification = { jsonrpc: '2.0', method, params: { _meta: { note: SSN } } };
    rig.upstream.obey(
      onMethod('tools/call', (request) => stream([notification, resultFor(request, textResult('done'))])),
    );
    const reply = await session.call('read_record', { id: 'one' });
    expect(reply.messages[0]).toEqual({ jsonrpc: '2.0', method });
    expect(reply.text).not.toContain(SSN);
  });
});
