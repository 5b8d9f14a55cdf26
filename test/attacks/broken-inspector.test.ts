// Case 76: an inspector that throws. What it should have read is withheld, never passed on unread, and
// that shows in the metrics. The inspectors of this file are broken on purpose, on command.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectRefusedLines, expectWithheldLines } from '../support/gateway.js';
import { onMethod, progressThenResult, resultFor, stream, textResult } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { replace } from '../support/seams.js';
import { callStateless, errorOf, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const broken = { sanitize: false, guard: false, list: false };

replace('sanitizer', {
  sanitizeMessage(real, input) {
    if (broken.sanitize) throw new Error('the sanitizer is broken');
    return real.sanitizeMessage(input);
  },
});
// Nothing is surely clean here, so that every message reaches the inspectors.
replace('prefilter', { isSurelyClean: () => false, isSurelyCleanJson: () => false });
replace('requests', {
  guardFully(real, input) {
    if (broken.guard) throw new Error('the guard is broken');
    return real.guardFully(input);
  },
});
replace('filters', {
  filterItems(real, input) {
    if (broken.list) throw new Error('the filter is broken');
    return real.filterItems(input);
  },
});

const CANARY = 'the-content-that-nobody-read';

describe('an inspector that throws', () => {
  const rig = sharedGateway();
  beforeAll(async () => {
    rig.upstream.answerCalls(() => textResult(CANARY));
  });
  afterEach(() => {
    broken.sanitize = false;
    broken.guard = false;
    broken.list = false;
    rig.upstream.obey(() => undefined);
  });

  it('[X-76] withholds the result', async () => {
    broken.sanitize = true;
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(500);
    expect(errorOf(reply)).toMatchObject({ code: -32603 });
    expect(reply.message?.['id']).toBe(1);
    expect(reply.text).not.toContain(CANARY);
    expect(reply.text).not.toContain('broken');
    await expectWithheldLines(rig, reply, 'internal');
    expect(await rig.gateway.metrics()).toMatch(/sallyport_denials_total\{[^}]*reason="internal"[^}]*\} [1-9]/);
  });

  it('[X-76] withholds each message of a stream', async () => {
    broken.sanitize = true;
    rig.upstream.obey(onMethod('tools/call', (request) => progressThenResult(request, [CANARY], textResult(CANARY))));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, { progressToken: 1 });
    expect(reply.text).not.toContain(CANARY);
    expect(reply.message).toHaveProperty('error');
  });

  it('[X-76] refuses the call when it is the guard of arguments', async () => {
    rig.upstream.forget();
    broken.guard = true;
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(500);
    await expectRefusedLines(rig, reply, 'internal');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[X-76] withholds the list when it is the filter of lists', async () => {
    broken.list = true;
    const reply = await requestStateless(rig.access, 'tools/list', { _meta: { fresh: 1 } });
    expect(reply.message).not.toHaveProperty('result');
    expect(reply.text).not.toContain('read_record');
  });

  it('[X-76] ends a stream that has begun with a refusal, and the upstream connection with it', async () => {
    broken.list = true;
    rig.upstream.obey(
      onMethod('tools/list', (request) => stream([resultFor(request, { tools: [...HONEST_TOOLS] })], 'hold')),
    );
    const reply = await requestStateless(rig.access, 'tools/list');
    expect(errorOf(reply)).toMatchObject({ code: -32603 });
    expect(reply.text).not.toContain('read_record');
    await expectWithheldLines(rig, reply, 'internal');
    await expect.poll(() => rig.upstream.seen().at(-1)?.isAborted).toBe(true);
  });

  it('[X-76] serves again once it is whole', async () => {
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).toContain(CANARY);
  });
});
