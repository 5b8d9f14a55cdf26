// Case 29: a header that names a safe tool over a body that names another one. Neither is believed.

import { describe, expect, it } from 'vitest';
import { expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import { errorOf, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('Mcp-Name that differs from the body', () => {
  const rig = sharedGateway();

  const call = { name: 'write_record', arguments: { id: 'one', text: 'x' } };

  it.each([
    ['another tool', 'read_record'],
    ['another case', 'Write_Record'],
    ['a name with a suffix', 'write_record2'],
    ['two names', 'write_record, read_record'],
    ['the body in base64 of another', `=?base64?${btoa('read_record')}?=`],
    ['base64 that is not canonical', '=?base64?d3JpdGVfcmVjb3Jk=?='],
    ['base64 in another case', `=?BASE64?${btoa('write_record')}?=`],
    ['nothing', ''],
  ])('[X-29] is 400 with -32020: %s', async (_name, header) => {
    const reply = await requestStateless(rig.access, 'tools/call', call, {
      headers: { 'mcp-name': header },
    });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32020 });
    expect(reply.message?.['id']).toBe(1);
    await expectRefusedLines(rig, reply, 'header-mismatch');
    expectNothingForwarded(rig);
  });

  it('[X-29] is refused the same where the body names nothing that exists', async () => {
    const reply = await requestStateless(
      rig.access,
      'tools/call',
      { name: 'no_such_tool', arguments: {} },
      { headers: { 'mcp-name': 'read_record' } },
    );
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32020 });
    expectNothingForwarded(rig);
  });
});
