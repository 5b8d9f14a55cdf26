// The sizes that the audit log and the metrics give are bytes, also of texts with characters beyond ASCII.

import { describe, expect, it } from 'vitest';
import { ALLOW_ALL, type AuditLine } from '../support/gateway.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { openRawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** Three bytes a character, and one UTF-16 unit. */
const WIDE = '\u6f22\u5b57'.repeat(50);

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, questions: grantQuestions() },
  prepare: (upstream) => upstream.offer(() => HONEST_TOOLS.map((tool) => ({ ...tool, description: `Reads ${WIDE}.` }))),
});

/** The newest outcome with a target like this. */
async function outcomeOf(target: object): Promise<AuditLine | undefined> {
  const isLike = (line: AuditLine): boolean =>
    Object.entries(target).every(([name, value]) => line['target']?.[name] === value);
  return (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome' && isLike(line));
}

describe('[G-01] a size on record', () => {
  it('of arguments counts their bytes', async () => {
    const args = { id: WIDE };
    await callStateless(rig.access, 'read_record', args);
    const bytes = Buffer.byteLength(JSON.stringify(args));
    await expect
      .poll(async () => (await outcomeOf({ name: 'read_record' }))?.['args'], PATIENT)
      .toMatchObject({ bytes });
  });

  it('of a list counts its bytes, of the first that is seen and of one that is known', async () => {
    for (const _ of ['first', 'known']) {
      const reply = await requestStateless(rig.access, 'tools/list');
      const sample = /^sallyport_tools_list_bytes\{.*side="visible".*\} (\d+)$/m;
      const [, bytes] = sample.exec(await rig.gateway.metrics()) ?? [];
      expect(Number(bytes)).toBe(Buffer.byteLength(reply.text));
    }
  });

  it('of a server request counts its bytes', async () => {
    const { url, token = '' } = rig.access;
    const session = await openRawSession(url, { token, capabilities: ALL_QUESTIONS });
    const content = { type: 'text', text: WIDE };
    const params = { maxTokens: 1, messages: [{ role: 'user', content }] };
    const question = { id: 'q', method: 'sampling/createMessage', params };
    rig.upstream.obeyOnce((request) =>
      request.method === 'tools/call' ? askThenAnswer(request, [question], 5) : undefined,
    );
    const call = { name: 'read_record', arguments: { id: 'one' } };
    const [asked] = (await session.ask(9, 'tools/call', call)).messages;
    const bytes = Buffer.byteLength(JSON.stringify(asked));
    await expect
      .poll(async () => (await outcomeOf({ kind: 'question' }))?.['result'], PATIENT)
      .toMatchObject({ bytes });
  });

  it('of a refusal counts its bytes', async () => {
    const { url, token = '' } = rig.access;
    const session = await openRawSession(url, { token });
    const refused = await session.ask(WIDE, 'tools/call', { name: 'no_such_tool' });
    expect(refused.text).toContain(WIDE);
    await expect
      .poll(async () => (await outcomeOf({ name: 'no_such_tool' }))?.['result'], PATIENT)
      .toMatchObject({ bytes: Buffer.byteLength(refused.text) });
  });
});
