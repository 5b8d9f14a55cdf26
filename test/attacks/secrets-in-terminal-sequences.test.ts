// A terminal shows nothing of what a sequence holds, or takes the sign behind it for its end; a model reads all of it. A secret
// there is found like any other: in arguments, where it is sent, and in results, whatever becomes of the sequence.

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { expectNothingForwarded } from '../support/gateway.js';
import { jsonBody, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const HOLDERS: readonly (readonly [what: string, before: string, behind: string])[] = [
  ['the title of a window', '\x1b]0;', '\x07'],
  ['the title of a window in one sign', '\u009d0;', '\u009c'],
  ['a device control string', '\x1bPq', '\x1b\\'],
  ['a device control string in one sign', '\u0090q', '\u009c'],
  ['a string without a meaning', '\x1bX', '\x1b\\'],
  ['a private message', '\u009e', '\u009c'],
  ['a command of a program', '\x1b_', '\x1b\\'],
  ['a colour that ends with its first letter', '\x1b[', ''],
  ['a colour in one sign that ends with its first letter', '\u009b', ''],
];

describe.each(['auto', 'code'])('a secret in a terminal sequence, in content of the kind %s', (kind) => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', `content: {kind: ${kind}}`] });
  beforeAll(async () => {
    await vi.waitFor(
      async () => expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200),
      PATIENT,
    );
  });
  afterEach(() => rig.upstream.repent());

  it.each(HOLDERS)('is not sent: %s', async (_what, before, behind) => {
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_record', { id: `a ${before}${makeGithubToken()}${behind} b` });
    expect(reply.text).toContain('arguments-content');
    expectNothingForwarded(rig);
  });

  it.each(HOLDERS)('does not arrive, nor most of it: %s', async (_what, before, behind) => {
    const secret = makeGithubToken();
    const text = `a ${before}${secret}${behind} b`;
    rig.upstream.obey(onMethod('tools/call', (request) => jsonBody(resultFor(request, textResult(text)))));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(200);
    expect(reply.text).not.toContain(secret.slice(6, 30));
  });
});
