// Whose trace a request has, and which are exported: a caller chooses neither beyond what the configuration leaves to it.

import { describe, expect, it } from 'vitest';
import type { Caller } from '../../../src/policy/principal.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import { readJson } from '../../../src/protocol/json/json.js';
import type { Snapshot, TraceTerms } from '../../../src/proxy/ports.js';
import { beginTrace, continueTrace } from '../../../src/proxy/trace.js';
import { sampleRecord } from '../audit/samples.js';
import { compiled, document } from '../policy/samples.js';
import { CALLER, jsonResponse, POLICIES, requestOf, resultText, runRequest, SNAPSHOT, TOOL } from './pipeline-rig.js';

const ID = 'a1'.repeat(16);
const SPAN = 'b2'.repeat(8);
const MARKED = `00-${ID}-${SPAN}-01`;
const ISSUER = CALLER.issuer;
const TRUSTED = { trusted: new Set([ISSUER]), mayMark: new Set<string>() };
const CALL = requestOf('tools/call', { name: TOOL, arguments: {}, _meta: {} });
const INCOMING = { headers: { traceparent: MARKED }, repeated: new Set<string>() };

function terms(given: Partial<TraceTerms>): TraceTerms {
  return { sampling: 0, trusted: new Set(), mayMark: new Set(), takeMarked: () => true, ...given };
}

/** The trace of a request that names one in its header and, where that is given, in its message. */
function traceOf(under: TraceTerms, inMeta?: string): RequestRecord['trace'] {
  const record = sampleRecord({ trace: undefined });
  const traced = { incoming: INCOMING as never, record };
  beginTrace(traced, under);
  continueTrace(traced, CALLER, under);
  if (inMeta !== undefined) continueTrace(traced, CALLER, under, { inMeta });
  return record.trace;
}

describe('[TRC-10] the sampled flag of a caller', () => {
  it('has no effect where its trace is only continued, whichever id it has chosen', () => {
    const zeros = `00-${'a'.repeat(24)}${'0'.repeat(8)}-${SPAN}-01`;
    const shown = [undefined, zeros].map((inMeta) => traceOf(terms({ ...TRUSTED, sampling: 1e-9 }), inMeta));
    expect(shown.map((trace) => [trace?.isCallers, trace?.isSampled])).toEqual([
      [true, false],
      [true, false],
    ]);
  });

  it('does not keep a trace from being exported either', () => {
    const unmarked = MARKED.replace(/01$/, '00');
    expect(traceOf(terms({ ...TRUSTED, sampling: 1 }), unmarked)?.isSampled).toBe(true);
  });

  it('is followed where its issuer is trusted with it, within a bound of which a request takes one', () => {
    let left = 2;
    const takeMarked = (): boolean => left-- > 0;
    const under = terms({ trusted: new Set([ISSUER]), mayMark: new Set([ISSUER]), takeMarked });
    const marked = [1, 2, 3].map(() => traceOf(under, MARKED)?.isSampled);
    expect(marked).toEqual([true, true, false]);
    expect(traceOf({ ...under, sampling: 1 }, MARKED.replace(/01$/, '00'))?.isSampled).toBe(false);
  });
});

describe('[TRC-04] a flow that a reload brings while a request waits', () => {
  const { policies } = compiled([
    {
      ...document([], 'flows'),
      labels: { github: ['egress'] },
      flows: [{ id: 'no-leak', from: 'untrusted', to: 'egress', withinMs: 60_000, effect: 'deny' }],
    } as never,
  ]);
  const before: Snapshot = { ...SNAPSHOT, tracing: terms({ ...TRUSTED, sampling: 1 }) };
  const after: Snapshot = { ...before, id: 2, policies: { ...POLICIES, flows: policies.flows } };

  it.each([true, false])('the id is ours (with a flow: %s)', async (hasFlow) => {
    let current = before;
    const sent: Caller[] = [];
    const { records } = await runRequest({
      incoming: { ...CALL, headers: { ...CALL.headers, traceparent: MARKED } },
      ports: {
        upstreams: {
          snapshot: () => current,
          async forward(_upstream, { caller }) {
            sent.push(caller);
            return jsonResponse(resultText({ content: [] }));
          },
        },
        flows: { read: async () => new Map(), note: async () => true } as never,
        inspection: {
          async readJson(source) {
            if (hasFlow) current = after;
            return readJson(source as Uint8Array);
          },
        },
      },
    });
    expect(policies.flows).toBeDefined();
    expect(sent).toHaveLength(1);
    expect(sent[0]?.traceparent?.includes(ID)).toBe(!hasFlow);
    expect(records[0]?.trace?.links).toEqual(hasFlow ? [{ traceId: ID, spanId: SPAN }] : []);
  });
});
