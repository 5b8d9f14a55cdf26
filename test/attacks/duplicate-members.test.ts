// Case 17: members of one name, or of names that a parser of another language takes for one. Bytes that
// two parsers read differently are never forwarded, and never passed back.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  decisionOf,
  expectNothingForwarded,
  expectRefusedLines,
  expectWithheldLines,
  linesOf,
} from '../support/gateway.js';
import { body, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import { callStateless, type OpenSession, post, sessionHeaders, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** A good call with one member written differently: `mark` is replaced in its text. */
const SPELLINGS: readonly (readonly [string, string, string])[] = [
  ['a name twice', '"name":"read_record"', '"name":"read_record","name":"write_record"'],
  ['an escaped name', '"name":"read_record"', '"name":"read_record","n\\u0061me":"write_record"'],
  ['a name in another case', '"name":"read_record"', '"name":"read_record","Name":"write_record"'],
  ['a method twice', '"method":"tools/call"', '"method":"tools/list","method":"tools/call"'],
  ['a method in another case', '"method":"tools/call"', '"METHOD":"tools/list","method":"tools/call"'],
  ['an id twice', '"id":1', '"id":1,"id":2'],
  ['params twice', '"params":{', '"params":{},"params":{'],
  ['params in another case', '"params":{', '"Params":{},"params":{'],
  ['an argument twice', '"id":"safe"', '"id":"safe","id":"evil"'],
  ['an argument cut by NUL', '"id":"safe"', '"id":"safe","id\\u0000x":"evil"'],
  ['a deep argument', '"id":"safe"', '"id":"safe","deep":[{"a":{"b":[1,{"c":1,"c":2}]}}]'],
  ['arguments in another case', '"arguments":{', '"Arguments":{"id":"evil"},"arguments":{'],
  ['a member of _meta', '"_meta":{', '"_meta":{"x":1,"x":2,'],
];

/** Names of arguments are the tool's own: one in another case is another name, which has to be declared. */
const UNDECLARED: readonly (readonly [string, string])[] = [
  ['an argument in another case', '"id":"safe","ID":"evil"'],
  ['an argument that folds to another', '"id":"safe","k":1,"\u212a":2'],
  ['an argument with a long s', '"id":"safe","s":1,"\u017f":2'],
];

describe('a message with members of one name', () => {
  let session: OpenSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
    rig.upstream.forget();
  });
  afterEach(() => rig.upstream.repent());

  const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'safe' } });
  const good = JSON.stringify(parts.body);

  it.each(SPELLINGS)('[X-17] is a 400 without state: %s', async (_name, mark, spelling) => {
    expect(good).toContain(mark);
    const reply = await post(
      rig.access,
      good.replace(mark, () => spelling),
      parts.headers,
    );
    expect(reply.status).toBe(400);
    const [decision] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(['duplicate-key', 'invalid-message']).toContain(decision?.['decision'].reasons[0]);
    expectNothingForwarded(rig);
  });

  it.each(SPELLINGS)('[X-17] is a 400 in a session: %s', async (_name, mark, spelling) => {
    const text = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'read_record', arguments: { id: 'safe' }, _meta: { y: 1 } },
    });
    expect(text).toContain(mark);
    const spelled = text.replace(mark, () => spelling);
    const reply = await post(rig.access, spelled, sessionHeaders(session.id));
    expect(reply.status).toBe(400);
    expectNothingForwarded(rig);
  });

  it.each(UNDECLARED)('[X-17] is not forwarded: %s', async (_name, spelling) => {
    const reply = await post(rig.access, good.replace('"id":"safe"', spelling), parts.headers);
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('arguments-invalid')]);
    await expectRefusedLines(rig, reply, 'arguments-invalid');
    expectNothingForwarded(rig);
  });

  it('[X-17] is recorded as refused', async () => {
    const spelled = good.replace('"id":"safe"', '"id":"safe","id":"evil"');
    const reply = await post(rig.access, spelled, parts.headers);
    await expectRefusedLines(rig, reply, 'duplicate-key');
  });

  it.each([
    ['a result', '"result":{', '"result":{},"result":{'],
    ['a text', '"text":"ok"', '"text":"ok","text":"evil"'],
    ['a text in another case', '"text":"ok"', '"text":"ok","Text":"evil"'],
    ['an id', '"id":1', '"id":2,"id":1'],
  ])('[X-17] is withheld when an upstream sends it: %s', async (_name, mark, spelling) => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => {
        const text = JSON.stringify(resultFor(request, textResult('ok')));
        expect(text).toContain(mark);
        return body(text.replace(mark, () => spelling));
      }),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'safe' });
    expect(reply.status).toBe(502);
    expect(reply.text).not.toContain('evil');
    await expectWithheldLines(rig, reply, 'upstream-protocol');
  });
});
