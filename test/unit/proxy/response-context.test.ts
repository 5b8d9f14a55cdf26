// What one inspection of a message is given: the method that a response answers, the content rules of the
// decision, and the end of what was shown before.

import { describe, expect, it } from 'vitest';
import type { InspectionInput } from '../../../src/inspection/responses.js';
import { openRecord } from '../../../src/policy/record.js';
import { readJsonText } from '../../../src/protocol/json/json.js';
import { type CheckContext, inspect } from '../../../src/proxy/response-context.js';
import { profile } from '../inspection/samples.js';

/** A subject whose inspection notes what it was given, and answers that a message is clean. */
function subjectOf(requestMethod: string | undefined, given: InspectionInput[]): CheckContext {
  const subject = {
    call: {
      incoming: { upstream: 'github' },
      snapshot: {
        profile,
        profiles: new Map(),
        content: { kind: 'auto', tools: new Map() },
        policies: {},
      },
      record: openRecord({
        ...{ id: 'one', receivedAt: 0, startedMs: 0, upstream: 'one', httpMethod: 'POST', remoteAddress: '127.0.0.1' },
      }),
      ports: {
        inspection: {
          message(input: InspectionInput) {
            given.push(input);
            return { kind: 'clean', findings: [], previousTail: 'shown' };
          },
        },
      },
    },
    target: { kind: 'tool', name: 'read' },
    requestMethod,
    responseObligations: undefined,
    previousTail: 'before',
  };
  return subject as unknown as CheckContext;
}

function read(text: string) {
  const reading = readJsonText(text);
  if (!reading.ok) throw new Error(reading.error);
  return reading;
}

describe('an inspection of a message', () => {
  it('[X-68] knows the method of the request that is answered', async () => {
    for (const requestMethod of ['tools/list', 'tools/call', undefined]) {
      const given: InspectionInput[] = [];
      await inspect(subjectOf(requestMethod, given), read('{"jsonrpc":"2.0","id":1,"result":{}}'));
      expect(given.map((input) => input.requestMethod)).toEqual([requestMethod]);
    }
  });

  it('[X-72] goes on from what was shown before, and notes what is shown now', async () => {
    const given: InspectionInput[] = [];
    const subject = subjectOf('tools/call', given);
    await inspect(subject, read('{"jsonrpc":"2.0","id":1,"result":{}}'));
    expect(given[0]?.previousTail).toBe('before');
    expect(subject.previousTail).toBe('shown');
  });
});
